/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests that config/saker.ini names every key with its default. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "settings_rig.h"

TestSuite(app_settings_sample, .init = settings_setup, .fini = settings_teardown);

struct sample {
	const char *text;
	const char *at; /* the section that the visit is in */
};

/* Checks that a section of the sample has the key. */
static void
sample_names(void *arg, const char *section, const char *key, const char *value, const char *source)
{
	struct sample *sample = arg;
	char line[80];
	const char *found;

	if (key == NULL) {
		snprintf(line, sizeof(line), "[%s]", section);
		sample->at = strstr(sample->text, line);
		cr_assert_not_null(sample->at, "config/saker.ini lacks %s", line);
		return;
	}
	snprintf(line, sizeof(line), "%s = ", key);
	for (found = strstr(sample->at, line); found != NULL; found = strstr(found + 1, line))
		if (found[-1] == ';' || (found[-1] == ' ' && found[-2] == ';'))
			return;
	cr_assert_fail("config/saker.ini lacks [%s] %s", section, key);
}

Test(app_settings_sample, the_sample_file_names_every_key)
{
	static char text[1 << 16];
	struct sample sample = {.text = text};
	FILE *in = fopen(SAMPLE, "r");

	cr_assert_not_null(in);
	cr_assert_lt(fread(text, 1, sizeof(text), in), sizeof(text) - 1);
	fclose(in);
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	settings_each(&s, sample_names, &sample);
	cr_assert_not_null(sample.at);
}

Test(app_settings_sample, the_sample_file_is_accepted_and_says_what_the_defaults_are)
{
	struct settings plain;
	char line[300];

	setenv("SAKER_CONFIG", SAMPLE, 1);
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	/* Uncomments each key; its value must be the default. */
	FILE *in = fopen(SAMPLE, "r"), *out = fopen(path, "w");

	cr_assert(in != NULL && out != NULL);
	while (fgets(line, sizeof(line), in) != NULL) {
		char *equals = strstr(line, " = ");
		bool key = line[0] == ';' && line[1] != ' ' && equals != NULL;

		fputs(key || strncmp(line, ";[", 2) == 0 ? line + 1 : line, out);
	}
	fclose(in);
	fclose(out);
	plain = s;
	setenv("SAKER_CONFIG", path, 1);
	setenv("SAKER_GATEWAY_ENABLED", "yes", 1); /* which [vm 0] requires */
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	cr_assert(s.ports[0].present && s.ifs[0].present && s.routes[0].present);
	cr_assert_eq(s.ports[0].mtu, 1500);
	cr_assert_eq(settings_source(&s, "limits", "ord"), FROM_FILE);
	/* Compares field by field, because padding is undefined and the ISN key is random. */
#define SAME(f) cr_assert_eq(s.eng.f, plain.eng.f, #f)
	SAME(limits.clients);
	SAME(limits.qps);
	SAME(limits.cqs);
	SAME(limits.mrs);
	SAME(limits.mws);
	SAME(limits.pds);
	SAME(limits.srqs);
	SAME(limits.listeners);
	SAME(limits.conns);
	SAME(limits.rx_mbufs);
	SAME(limits.tx_mbufs);
	SAME(limits.client_qps);
	SAME(limits.client_cqs);
	SAME(limits.client_mrs);
	SAME(limits.client_mws);
	SAME(limits.client_regions);
	SAME(limits.client_home_bytes);
	SAME(limits.client_mem_bytes);
	SAME(limits.sq_depth);
	SAME(limits.rq_depth);
	SAME(limits.cq_depth);
	SAME(limits.ird);
	SAME(limits.ord);
	SAME(falcon.enabled);
	SAME(falcon.psps);
	SAME(falcon.require_psp);
	SAME(falcon.ordering);
	SAME(falcon.errors);
	SAME(falcon.datagram_ordering);
	SAME(falcon.datagram_errors);
	SAME(falcon.mtu);
	SAME(falcon.flows);
	SAME(falcon.rnr_retry);
	SAME(falcon.rnr_code);
	SAME(falcon.tunnel);
	SAME(falcon.pcid);
	SAME(falcon.function);
	SAME(falcon.keepalive_ns);
	SAME(falcon.rekey_ns);
	SAME(falcon.rekey_packets);
	SAME(falcon.device_key_ns);
	SAME(falcon.rue.rtt_alpha);
	SAME(falcon.rue.rto_scalar);
	SAME(falcon.rue.nic.initial);
	SAME(falcon.rue.nic.min);
	SAME(falcon.rue.nic.max);
	SAME(falcon.rue.nic.ai);
	SAME(falcon.rue.nic.md);
	SAME(falcon.rue.nic.max_md);
	SAME(falcon.rue.nic.level);
	SAME(falcon.rue.plb.fraction);
	SAME(falcon.rue.plb.attempts);
	SAME(falcon.rue.swift.initial);
	SAME(falcon.rue.swift.min);
	SAME(falcon.rue.swift.max);
	SAME(falcon.rue.swift.ai);
	SAME(falcon.rue.swift.md);
	SAME(falcon.rue.swift.max_md);
	SAME(falcon.rue.swift.delay_alpha);
	SAME(falcon.rue.swift.base_delay);
	SAME(falcon.rue.swift.per_hop);
	SAME(falcon.rue.swift.flow_max);
	SAME(falcon.rue.swift.flow_from);
	SAME(falcon.rue.swift.flow_to);
	SAME(falcon.rue.swift.delay_select);
	SAME(falcon.rue.swift.retransmit_limit);
	SAME(falcon.rue.swift.early_cuts);
	SAME(falcon.rue.swift.drop_cuts);
	SAME(falcon.rue.swift.plb_delay);
	SAME(falcon.rue.dctcp.initial);
	SAME(falcon.rue.dctcp.min);
	SAME(falcon.rue.dctcp.max);
	SAME(falcon.rue.dctcp.ai);
	SAME(falcon.rue.dctcp.gain);
	SAME(falcon.rue.dctcp.early_cuts);
	SAME(falcon.rue.fixed.fcwnd);
	SAME(falcon.rue.fixed.ncwnd);
	SAME(falcon.stack.rto_min_ns);
	SAME(falcon.stack.rto_max_ns);
	SAME(falcon.stack.max_retransmits);
	SAME(falcon.stack.reclaim_ns);
	SAME(falcon.stack.rack);
	SAME(falcon.port);
	SAME(falcon.patience_ns);
	SAME(tcp.max_conns);
	SAME(tcp.max_half_open);
	SAME(tcp.half_open_per_listener);
	SAME(tcp.half_open_per_prefix);
	SAME(tcp.zero_window_ns);
	SAME(tcp.max_time_wait);
	SAME(tcp.snd_buf);
	SAME(tcp.rcv_buf);
	SAME(tcp.ooo_slices);
	SAME(tcp.ooo_slices_total);
	SAME(tcp.msl_ns);
	SAME(tcp.rto_min_ns);
	SAME(tcp.rto_max_ns);
	SAME(tcp.rto_initial_ns);
	SAME(tcp.delack_ns);
	SAME(tcp.keepalive_idle_ns);
	SAME(tcp.keepalive_held_ns);
	SAME(tcp.keepalive_interval_ns);
	SAME(tcp.keepalive_probes);
	SAME(tcp.syn_retries);
	SAME(tcp.data_retries);
	SAME(tcp.ecn);
	SAME(tcp.timestamps);
	SAME(tcp.sack);
	SAME(tcp.rcv_wscale);
#undef SAME
	cr_assert_str_eq(s.eng.tcp.cc, plain.eng.tcp.cc);
	cr_assert_str_eq(s.eng.falcon.cc, plain.eng.falcon.cc);
	cr_assert_eq(s.eng.idle, plain.eng.idle);
	cr_assert_eq(s.eng.sleep_after, plain.eng.sleep_after);
	cr_assert_eq(s.eng.mpa_revision, plain.eng.mpa_revision);
	cr_assert_eq(s.eng.port_min, plain.eng.port_min);
}
