/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands for Falcon's keys and connections. */
#include <time.h>

#include "../../lib/rof/exchange.h"
#include "../../lib/wire/falcon.h"
#include "identity.h"
#include "saker.h"
#include "values.h"

#define SECOND UINT64_C(1000000000)

static void
show_exchange(struct cmd_out *out, struct rofx_tls *tls)
{
	struct rofx_tls_view v;
	time_t end;
	struct tm tm;
	char text[32] = "";

	cmd_record(out, "exchange");
	if (tls == NULL) {
		cmd_text(out, "protection",
			"IN CLEAR: no peer proves its identity; there are no keys");
		cmd_end(out);
		return;
	}
	rofx_tls_look(tls, &v);
	cmd_text(out, "protection", "TLS 1.3; %s",
		v.others == ROFX_BY_PSK           ? "psk for all peers"
		: v.others == ROFX_BY_CERTIFICATE ? "certificates"
						  : "only for the peers that have a section");
	cmd_number(out, "times_loaded", v.loads);
	cmd_number(out, "peers_with_psk", v.psk_peers);
	cmd_number(out, "peers_with_certificate", v.certificate_peers);
	if (v.subject[0] != '\0') {
		end = (time_t)v.not_after;
		if (gmtime_r(&end, &tm) != NULL)
			strftime(text, sizeof(text), "%F %T UTC", &tm);
		cmd_text(out, "certificate", "%s", v.subject);
		cmd_text(out, "valid_until", "%s", text);
	}
	cmd_end(out);
}

static void
show_connections(struct cmd_out *out, const struct eng_falcon_view *v)
{
	static const struct {
		const char *name;
		uint8_t version;
	} all[] = {{"gcm256", PSP_AES_GCM_256}, {"gcm128", PSP_AES_GCM_128},
		{"gmac256", PSP_GMAC_256}, {"gmac128", PSP_GMAC_128}, {"none", PSP_NO_CRYPTO}};

	cmd_record(out, "connections");
	cmd_number(out, "reserved", v->reserved);
	cmd_number(out, "most", v->most);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		cmd_number(out, all[i].name, v->open[all[i].version]);
	cmd_number(out, "half_done_exchanges", v->starting);
	cmd_number(out, "waiting_for_tls", v->waiting);
	cmd_end(out);
}

int
show_falcon(void *app, const char *arg, struct cmd_out *out)
{
	const struct app *a = app;
	const struct eng_falcon_config *f = &a->s.eng.falcon;
	struct eng_falcon_view v;
	char psps[NAME_LEN];

	if (!f->enabled)
		return cmd_refuse(out, "Falcon is not enabled; set [falcon] enabled = yes");
	eng_falcon_look(a->e, &v);
	value_format(KIND_PSP, &f->psps, psps, sizeof(psps));
	cmd_text(out, "psp", "%s", psps);
	cmd_flag(out, "require_psp", f->require_psp);
	cmd_number(out, "device_key_age_s", v.device_key_age_ns / SECOND);
	if (f->device_key_ns > 0)
		cmd_number(out, "device_key_period_s", f->device_key_ns / SECOND);
	cmd_number(out, "key_changes", v.rekeyed);
	show_exchange(out, f->tls);
	show_connections(out, &v);
	return 0;
}

int
falcon_reload(void *app, const char *arg, struct cmd_out *out)
{
	struct app *a = app;
	char why[WHY_LEN];

	if (a->s.eng.falcon.tls == NULL)
		return cmd_refuse(
			out, "there is nothing to read: no key or certificate of Falcon is in use");
	if (identity_load(&a->s, why) < 0)
		return cmd_refuse(out, "nothing has changed: %s", why);
	return cmd_say(out, "Read again. Connections that exist keep their keys.");
}
