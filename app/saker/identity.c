/* SPDX-License-Identifier: BSD-3-Clause */
#include "identity.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../lib/base/log.h"
#include "../../lib/base/secret.h"
#include "../../lib/rof/exchange.h"
#include "../../lib/wire/falcon.h"
#include "sources.h"

#define SOON (7 * 86400) /* seconds before the end of a certificate from which saker warns */

struct psk {
	uint8_t b[ROFX_PSK_MAX];
	size_t len;
};

/* The contents of the files, in memory that no core dump contains. */
struct identity {
	struct psk psk, peer_psk[PEER_MAX];
	struct source_text ca, certificate, key;
	struct rofx_peer peers[PEER_MAX];
};

/* ---- Files ---- */

static int
hex_digit(char c)
{
	return isdigit((unsigned char)c)    ? c - '0'
	       : isxdigit((unsigned char)c) ? (c | 32) - 'a' + 10
					    : -1;
}

/* Parses the first line of a file. */
static int
psk_parse(const char *text, struct psk *out, char why[WHY_LEN])
{
	size_t n = strspn(text, "0123456789abcdefABCDEF");

	if (text[n] != '\0' && strchr(" \t\r\n", text[n]) == NULL)
		return settings_refuse(why, "does not begin with a line of hexadecimal digits");
	if (n % 2 != 0 || n / 2 < ROFX_PSK_MIN || n / 2 > ROFX_PSK_MAX)
		return settings_refuse(why,
			"has %zu hexadecimal digits in its first line; a key of %d to %d bytes has "
			"%d to %d",
			n, ROFX_PSK_MIN, ROFX_PSK_MAX, 2 * ROFX_PSK_MIN, 2 * ROFX_PSK_MAX);
	for (size_t i = 0; i < n / 2; i++)
		out->b[i] = (uint8_t)(hex_digit(text[2 * i]) << 4 | hex_digit(text[2 * i + 1]));
	out->len = n / 2;
	return 0;
}

/* Reads a pre-shared key, or nothing if there is no source. */
static int
psk_read(const char *source, struct psk *out, char why[WHY_LEN])
{
	struct source_text text = {0};
	int rc;

	if (source[0] == '\0')
		return 0;
	rc = source_read(source, true, &text, why);
	if (rc == 0)
		rc = psk_parse(text.text, out, why);
	source_free(&text);
	return rc;
}

static int
identity_refuse(const char *section, const char *key, const char *value, const char *reason,
	char why[WHY_LEN])
{
	return settings_refuse(why, "[%s] %s = %s %s", section, key, value, reason);
}

/* Reads a PEM text, or nothing if there is no source. */
static int
pem_read(const char *key, const char *source, bool secret, struct source_text *out,
	char why[WHY_LEN])
{
	char reason[WHY_LEN];

	if (source[0] == '\0' || source_read(source, secret, out, reason) == 0)
		return 0;
	return identity_refuse("falcon", key, source, reason, why);
}

static int
read_peers(const struct settings *s, struct identity *id, struct rofx_tls_config *cfg,
	char why[WHY_LEN])
{
	char reason[WHY_LEN], section[NAME_LEN];

	for (unsigned i = 0; i < PEER_MAX; i++) {
		const struct peer_setting *p = &s->peers[i];

		if (!p->present)
			continue;
		if (psk_read(p->psk, &id->peer_psk[i], reason) < 0) {
			snprintf(section, sizeof(section), "peer %u", i);
			return identity_refuse(section, "psk", p->psk, reason, why);
		}
		id->peers[cfg->npeers++] = (struct rofx_peer){.addr = p->address.addr,
			.prefix = p->address.len,
			.psk = id->peer_psk[i].b,
			.psk_len = id->peer_psk[i].len,
			.name = p->name[0] != '\0' ? p->name : NULL};
	}
	cfg->peers = id->peers;
	return 0;
}

static int
identity_read(const struct settings *s, struct identity *id, struct rofx_tls_config *cfg,
	char why[WHY_LEN])
{
	const struct identity_setting *set = &s->identity;
	char reason[WHY_LEN];

	if (psk_read(set->psk, &id->psk, reason) < 0)
		return identity_refuse("falcon", "psk", set->psk, reason, why);
	if (pem_read("ca", set->ca, false, &id->ca, why) < 0 ||
		pem_read("certificate", set->certificate, false, &id->certificate, why) < 0 ||
		pem_read("key", set->key, true, &id->key, why) < 0)
		return -EINVAL;
	*cfg = (struct rofx_tls_config){.psk = id->psk.b,
		.psk_len = id->psk.len,
		.ca = id->ca.text,
		.certificate = id->certificate.text,
		.private_key = id->key.text,
		.peer_name = set->peer_name[0] != '\0' ? set->peer_name : NULL};
	return read_peers(s, id, cfg, why);
}

/* ---- Contexts ---- */

bool
identity_configured(const struct settings *s)
{
	for (unsigned i = 0; i < PEER_MAX; i++)
		if (s->peers[i].present)
			return true;
	return s->identity.psk[0] != '\0' || s->identity.certificate[0] != '\0';
}

int
identity_load(struct settings *s, char why[WHY_LEN])
{
	struct eng_falcon_config *f = &s->eng.falcon;
	struct rofx_tls_config cfg = {0};
	char reason[WHY_LEN - 16];
	struct identity *id;
	int rc;

	if (!f->enabled || !identity_configured(s))
		return 0;
	id = sk_secret_alloc(sizeof(*id));
	if (id == NULL)
		return settings_refuse(why, "[falcon]: out of memory");
	rc = identity_read(s, id, &cfg, why);
	if (rc == 0 && f->tls != NULL) {
		rc = rofx_tls_load(f->tls, &cfg, reason, sizeof(reason));
	} else if (rc == 0) {
		f->tls = rofx_tls_create(&cfg, reason, sizeof(reason));
		rc = f->tls == NULL ? -EINVAL : 0;
	} else {
		reason[0] = '\0';
	}
	if (rc < 0 && reason[0] != '\0')
		settings_refuse(why, "[falcon]: %s", reason);
	source_free(&id->ca);
	source_free(&id->certificate);
	source_free(&id->key);
	sk_secret_free(id, sizeof(*id));
	return rc;
}

void
identity_free(struct settings *s)
{
	rofx_tls_destroy(s->eng.falcon.tls);
	s->eng.falcon.tls = NULL;
}

/* ---- Warnings ---- */

static void
warn_validity(const struct rofx_tls_view *v, int64_t now)
{
	time_t at = (time_t)(v->not_before > now ? v->not_before : v->not_after);
	char text[32] = "";
	struct tm tm;

	if (gmtime_r(&at, &tm) != NULL)
		strftime(text, sizeof(text), "%F %T UTC", &tm);
	if (v->not_before > now)
		sk_log(SK_LOG_WARNING, "Falcon: the certificate %s is not valid before %s",
			v->subject, text);
	else if (v->not_after <= now)
		sk_log(SK_LOG_WARNING,
			"Falcon: the certificate %s expired at %s: all peers refuse it", v->subject,
			text);
	else if (v->not_after - now < SOON)
		sk_log(SK_LOG_WARNING, "Falcon: the certificate %s expires at %s", v->subject,
			text);
}

void
identity_warn(const struct settings *s, int64_t now)
{
	const struct eng_falcon_config *f = &s->eng.falcon;
	struct rofx_tls_view v;

	if (!f->enabled)
		return;
	if (f->tls == NULL) {
		sk_log(SK_LOG_WARNING,
			"FALCON IS UNPROTECTED: without [falcon] psk or certificate, any host that "
			"reaches this one can connect, and any on the path can read, change and "
			"forge all data. require-psp = yes refuses this.");
		return;
	}
	rofx_tls_look(f->tls, &v);
	if (v.subject[0] != '\0')
		warn_validity(&v, now);
	if (f->psps & ROFX_PSP(PSP_NO_CRYPTO) && !f->require_psp)
		sk_log(SK_LOG_INFO,
			"Falcon: psp includes none, so packets of a peer that offers no other "
			"version are neither encrypted nor authenticated");
}
