/* SPDX-License-Identifier: BSD-3-Clause */
/* Falcon's keys and connections at the prompt. */
#include <inttypes.h>
#include <time.h>

#include "../../lib/rof/exchange.h"
#include "../../lib/wire/falcon.h"
#include "identity.h"
#include "saker.h"
#include "values.h"

#define SECOND UINT64_C(1000000000)

static void
show_exchange(struct rofx_tls *tls)
{
	struct rofx_tls_view v;
	time_t end;
	struct tm tm;
	char text[32] = "";

	if (tls == NULL) {
		printf("  exchange: IN CLEAR: no peer proves its identity; there are no keys\n");
		return;
	}
	rofx_tls_look(tls, &v);
	printf("  exchange: TLS 1.3; %s; loaded %" PRIu64 " times\n",
		v.others == ROFX_BY_PSK           ? "psk for all peers"
		: v.others == ROFX_BY_CERTIFICATE ? "certificates"
						  : "only for the peers that have a section",
		v.loads);
	if (v.psk_peers + v.certificate_peers > 0)
		printf("  peers with a section: %u with a psk, %u with a certificate\n",
			v.psk_peers, v.certificate_peers);
	if (v.subject[0] == '\0')
		return;
	end = (time_t)v.not_after;
	if (gmtime_r(&end, &tm) != NULL)
		strftime(text, sizeof(text), "%F %T UTC", &tm);
	printf("  certificate: %s, until %s\n", v.subject, text);
}

static void
show_versions(const struct eng_falcon_view *v)
{
	static const struct {
		const char *name;
		uint8_t version;
	} all[] = {{"gcm256", PSP_AES_GCM_256}, {"gcm128", PSP_AES_GCM_128},
		{"gmac256", PSP_GMAC_256}, {"gmac128", PSP_GMAC_128}, {"none", PSP_NO_CRYPTO}};

	printf("  connections: %u of %u;", v->reserved, v->most);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		printf(" %s %u", all[i].name, v->open[all[i].version]);
	printf("\n  half-done exchanges: %u, of which %u wait for their turn with TLS\n",
		v->starting, v->waiting);
}

void
show_falcon(struct app *a, const char *arg)
{
	const struct eng_falcon_config *f = &a->s.eng.falcon;
	struct eng_falcon_view v;
	char psps[NAME_LEN];

	if (!f->enabled) {
		printf("  Falcon is not enabled. Set [falcon] enabled = yes.\n");
		return;
	}
	eng_falcon_look(a->e, &v);
	show_exchange(f->tls);
	value_format(KIND_PSP, &f->psps, psps, sizeof(psps));
	printf("  psp: %s; require-psp = %s\n", psps, f->require_psp ? "yes" : "no");
	show_versions(&v);
	printf("  device key: %" PRIu64 " s old", v.device_key_age_ns / SECOND);
	if (f->device_key_ns > 0)
		printf(" (a new one every %" PRIu64 " s)", f->device_key_ns / SECOND);
	printf("; key changes of connections: %" PRIu64 "\n", v.rekeyed);
}

void
falcon_reload(struct app *a, const char *arg)
{
	char why[WHY_LEN];

	if (a->s.eng.falcon.tls == NULL)
		printf("There is nothing to read: no key or certificate of Falcon is in use.\n");
	else if (identity_load(&a->s, why) < 0)
		printf("Nothing has changed: %s.\n", why);
	else
		printf("Read again. Connections that exist keep their keys.\n");
}
