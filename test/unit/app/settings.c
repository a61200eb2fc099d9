/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests options, environment and configuration file: their precedence, and the sentence for each
 * mistake. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../app/saker/options.h"
#include "../../../lib/rof/rof.h"
#include "../../../lib/wire/falcon.h"
#include "../../../lib/wire/wire.h"

static struct settings s;
static char why[WHY_LEN];
static char path[] = "/tmp/saker-test-XXXXXX";

static void
teardown(void)
{
	unlink(path);
}

static void
setup(void)
{
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	close(fd);
	unsetenv("SAKER_CONFIG");
}

TestSuite(app_settings, .init = setup, .fini = teardown);

static void
file_is(const char *text)
{
	FILE *f = fopen(path, "w");

	cr_assert_not_null(f);
	fputs(text, f);
	fclose(f);
	setenv("SAKER_CONFIG", path, 1);
}

/* Parses the words of `line` as a command line. */
static enum options_result
options(const char *line)
{
	static char copy[1024];
	char *argv[32] = {"saker"}, *save = NULL;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *w = strtok_r(copy, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	why[0] = '\0';
	return options_read(&s, argc, argv, why);
}

static void
refused(const char *line, const char *sentence)
{
	cr_assert_eq(options(line), OPTIONS_REFUSED, "%s", line);
	cr_assert_str_eq(why, sentence);
}

Test(app_settings, nothing_said_means_the_engines_defaults)
{
	struct eng_config plain;

	eng_config_default(&plain);
	cr_assert_eq(options(""), OPTIONS_RUN);
	cr_assert_eq(s.eng.limits.qps, plain.limits.qps);
	cr_assert_eq(s.eng.tcp.rto_min_ns, plain.tcp.rto_min_ns);
	cr_assert_eq(s.mtu, 1500);
	cr_assert_not(s.eng.mpa_fall_back);
	cr_assert_eq(s.eng.mpa_first_fpdu_ns, 0, "RFC 5044 7.1.2");
	cr_assert_eq(s.eng.mpa_first_fpdu_delay_ns, 0);
	cr_assert_not(s.eng.draft_ext);
	cr_assert_str_eq(s.socket, SHM_SOCKET_DEFAULT);
	cr_assert_eq(settings_source(&s, "saker", "mtu"), FROM_DEFAULT);
}

Test(app_settings, the_file_wins_over_the_default)
{
	file_is("[saker]\nmtu = 9000\nidle = sleep\n[tcp]\nrto-min = 5ms\ncc = dctcp\n"
		"[limits]\nclient-memory = 2g\n[mpa]\ncrc = no\nfall-back = yes\n"
		"first-fpdu-wait = 50ms\nfirst-fpdu-delay = 20ms\n"
		"[rdmap]\ndraft-ext = yes\n");
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	cr_assert_eq(s.mtu, 9000);
	cr_assert_eq(s.eng.idle, ENG_IDLE_SLEEP);
	cr_assert_eq(s.eng.tcp.rto_min_ns, 5000000);
	cr_assert_str_eq(s.eng.tcp.cc, "dctcp");
	cr_assert_eq(s.eng.limits.client_mem_bytes, 2ull << 30);
	cr_assert_not(s.eng.mpa_crc);
	cr_assert(s.eng.mpa_fall_back);
	cr_assert_eq(s.eng.mpa_first_fpdu_ns, 50000000);
	cr_assert_eq(s.eng.mpa_first_fpdu_delay_ns, 20000000);
	cr_assert(s.eng.draft_ext);
	cr_assert_eq(settings_source(&s, "saker", "mtu"), FROM_FILE);
}

#define KEY "000102030405060708090a0b0c0d0e0fF0"

Test(app_settings, falcon_has_a_section_of_its_own)
{
	cr_assert_eq(options(""), OPTIONS_RUN);
	cr_assert_not(s.eng.falcon.enabled);
	cr_assert_eq(s.eng.falcon.psps, 1u << PSP_NO_CRYPTO);
	file_is("[falcon]\nenabled = yes\npsp = gmac256, gcm128\npsk = /k/psk\nordering = none\n"
		"errors = complete\nmtu = 1024\nflows = 4\nrnr-retry = 3\nrnr-delay = 1ms\n"
		"port = 700\npatience = 20ms\ndatagram-ordering = strong\n"
		"datagram-errors = verbs\n");
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	cr_assert(s.eng.falcon.enabled);
	cr_assert_eq(s.eng.falcon.psps, 1u << PSP_GMAC_256 | 1u << PSP_AES_GCM_128);
	cr_assert_str_eq(s.identity.psk, "/k/psk");
	cr_assert_null(s.eng.falcon.tls);
	cr_assert_eq(s.eng.falcon.ordering, ROF_ORDER_NONE);
	cr_assert_eq(s.eng.falcon.errors, ROF_ERRORS_COMPLETE);
	cr_assert_eq(s.eng.falcon.datagram_ordering, ROF_ORDER_STRONG);
	cr_assert_eq(s.eng.falcon.datagram_errors, ROF_ERRORS_VERBS);
	cr_assert_eq(s.eng.falcon.mtu, 1024);
	cr_assert_eq(s.eng.falcon.flows, 4);
	cr_assert_eq(s.eng.falcon.rnr_retry, 3);
	cr_assert_eq(s.eng.falcon.rnr_code, wire_rnr_code(1000000));
	cr_assert_geq(wire_rnr_ns(s.eng.falcon.rnr_code), 1000000, "rounded up");
	cr_assert_eq(s.eng.falcon.port, 700);
	cr_assert_eq(s.eng.falcon.patience_ns, 20000000);
	setenv("SAKER_FALCON_ORDERING", "weak", 1);
	cr_assert_eq(options("--falcon no --psp gcm128"), OPTIONS_RUN, "%s", why);
	cr_assert_not(s.eng.falcon.enabled);
	cr_assert_eq(s.eng.falcon.psps, 1u << PSP_AES_GCM_128);
	cr_assert_eq(s.eng.falcon.ordering, ROF_ORDER_WEAK);
}

Test(app_settings, falcons_connections_may_have_modes_of_their_own)
{
	const struct eng_modes_config *rows = s.eng.falcon.modes;
	struct sk_addr net;

	file_is("[connection 0]\naddress = 10.0.1.0/24\nport = 7000\nordering = weak\n"
		"errors = verbs\nmtu = 512\nflows = 4\npsp = none\n"
		"[connection 7]\nport = 1\nordering = none\n");
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	cr_assert(rows[0].present && !rows[1].present && rows[7].present);
	cr_assert_eq(sk_addr_parse("10.0.1.0", &net), 0);
	cr_assert(sk_addr_eq(&rows[0].addr, &net));
	cr_assert_eq(rows[0].prefix, 96 + 24);
	cr_assert_eq(rows[0].port, 7000);
	cr_assert_eq(rows[0].modes.ordering, SHM_ORDER_WEAK);
	cr_assert_eq(rows[0].modes.errors, SHM_ERRORS_VERBS);
	cr_assert_eq(rows[0].modes.mtu, 512);
	cr_assert_eq(rows[0].modes.flows, 4);
	cr_assert_eq(rows[0].modes.psp, 1u << PSP_NO_CRYPTO);
	cr_assert_eq(rows[7].prefix, 0);
	cr_assert_eq(rows[7].modes.ordering, SHM_ORDER_NONE);
	cr_assert_eq(rows[7].modes.errors, SHM_ERRORS_CONFIGURED);
	cr_assert_eq(rows[7].modes.psp, 0);
	file_is("[connection 3]\nordering = weak\n");
	cr_assert_eq(options(""), OPTIONS_REFUSED);
	cr_assert_not_null(strstr(why, "[connection 3] needs an address or a port"), "%s", why);
}

Test(app_settings, falcons_keys_have_a_life_time)
{
	file_is("[falcon]\nrekey-time = 60s\nrekey-packets = 4m\ndevice-key-time = 0\n");
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	cr_assert_eq(s.eng.falcon.rekey_ns, 60000000000);
	cr_assert_eq(s.eng.falcon.rekey_packets, 4000000);
	cr_assert_eq(s.eng.falcon.device_key_ns, 0);
}

Test(app_settings, falcons_congestion_control_has_a_name)
{
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	cr_assert_str_eq(s.eng.falcon.cc, "swift");
	file_is("[falcon]\ncc = dctcp\n");
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	cr_assert_str_eq(s.eng.falcon.cc, "dctcp");
	setenv("SAKER_FALCON_CC", "fixed", 1);
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	cr_assert_str_eq(s.eng.falcon.cc, "fixed");
	setenv("SAKER_FALCON_CC", "cubic", 1);
	refused("", "environment variable SAKER_FALCON_CC: 'cubic' is not one of swift, dctcp, "
		    "fixed");
}

/* Each parameter has a key, and no two keys have the same place. */
Test(app_settings, falcons_congestion_control_can_be_tuned)
{
	const struct fa_rue_params *p = &s.eng.falcon.rue;
	const struct fa_swift_params *w = &p->swift;
	const struct fa_dctcp_params *d = &p->dctcp;

	file_is("[falcon]\nrtt-weight = 0.5\nrto-round-trips = 3\n"
		"swift-target = 250us\nswift-per-hop = 2us\nswift-flow-scaling = 50us\n"
		"swift-flow-from = 0.5\nswift-flow-to = 64\nswift-delay = forward\n"
		"swift-delay-weight = 0.25\nswift-initial = 8\nswift-min = 0.125\n"
		"swift-max = 128\nswift-increase = 1.5\nswift-decrease = 0.75\n"
		"swift-max-decrease = 0.375\nswift-retransmits = 4\nswift-early-cuts = yes\n"
		"swift-drop-cuts = yes\nswift-plb-delay = 1.25\n"
		"dctcp-initial = 10\ndctcp-min = 2\ndctcp-max = 100\ndctcp-increase = 2.5\n"
		"dctcp-gain = 0.125\ndctcp-early-cuts = no\nfixed-window = 20\n"
		"fixed-nic-window = 30\nnic-initial = 50\nnic-min = 3\nnic-max = 200\n"
		"nic-increase = 4\nnic-decrease = 0.625\nnic-max-decrease = 0.875\n"
		"nic-level = 20\nplb-attempts = 0\nplb-fraction = 1\n");
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
#define PACKETS(n) ((uint32_t)((n)*FA_CWND_ONE))
	cr_assert_eq(p->rtt_alpha, 512);
	cr_assert_eq(p->rto_scalar, 3);
	cr_assert_eq(w->base_delay, 1907, "ticks of 131.072 ns");
	cr_assert_eq(w->per_hop, 15);
	cr_assert_eq(w->flow_max, 381);
	cr_assert_eq(w->flow_from, PACKETS(0.5));
	cr_assert_eq(w->flow_to, PACKETS(64));
	cr_assert_eq(w->delay_select, FA_DELAY_FORWARD);
	cr_assert_eq(w->delay_alpha, 256);
	cr_assert_eq(w->initial, PACKETS(8));
	cr_assert_eq(w->min, PACKETS(0.125));
	cr_assert_eq(w->max, PACKETS(128));
	cr_assert_eq(w->ai, PACKETS(1.5));
	cr_assert_eq(w->md, 768);
	cr_assert_eq(w->max_md, 384);
	cr_assert_eq(w->retransmit_limit, 4);
	cr_assert(w->early_cuts && w->drop_cuts);
	cr_assert_eq(w->plb_delay, 1280);
	cr_assert_eq(d->initial, PACKETS(10));
	cr_assert_eq(d->min, PACKETS(2));
	cr_assert_eq(d->max, PACKETS(100));
	cr_assert_eq(d->ai, PACKETS(2.5));
	cr_assert_eq(d->gain, 128);
	cr_assert_not(d->early_cuts);
	cr_assert_eq(p->fixed.fcwnd, PACKETS(20));
	cr_assert_eq(p->fixed.ncwnd, PACKETS(30));
	cr_assert_eq(p->nic.initial, PACKETS(50));
	cr_assert_eq(p->nic.min, PACKETS(3));
	cr_assert_eq(p->nic.max, PACKETS(200));
	cr_assert_eq(p->nic.ai, PACKETS(4));
	cr_assert_eq(p->nic.md, 640);
	cr_assert_eq(p->nic.max_md, 896);
	cr_assert_eq(p->nic.level, 20);
	cr_assert_eq(p->plb.attempts, 0);
	cr_assert_eq(p->plb.fraction, FA_FRACTION_ONE);
}

Test(app_settings, falcons_retransmission_can_be_tuned)
{
	file_is("[falcon]\nrto-min = 4ms\nrto-max = 50ms\nretransmits = 7\nreclaim = 5s\n"
		"rack = no\n");
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	cr_assert_eq(s.eng.falcon.stack.rto_min_ns, 4000000);
	cr_assert_eq(s.eng.falcon.stack.rto_max_ns, 50000000);
	cr_assert_eq(s.eng.falcon.stack.max_retransmits, 7);
	cr_assert_eq(s.eng.falcon.stack.reclaim_ns, 5000000000);
	cr_assert_not(s.eng.falcon.stack.rack);
}

/* A key in the place of its file is refused, and no error sentence contains it. */
Test(app_settings, a_key_is_never_printed)
{
	setenv("SAKER_FALCON_PSK", KEY, 1);
	refused("", "environment variable SAKER_FALCON_PSK: '(a secret)' is neither the path of a "
		    "file (/...) nor credential:NAME");
	unsetenv("SAKER_FALCON_PSK");
	file_is("[falcon]\npsk = " KEY "\n");
	cr_assert_eq(options(""), OPTIONS_REFUSED);
	cr_assert_null(strstr(why, KEY), "%s", why);
	file_is("[peer 3]\npsk = " KEY "\n");
	cr_assert_eq(options(""), OPTIONS_REFUSED);
	cr_assert_null(strstr(why, KEY), "%s", why);
}

Test(app_settings, peers_and_their_identity_come_by_number)
{
	char text[32768];
	FILE *f;

	file_is("[falcon]\nca = /k/ca.pem\ncertificate = /k/cert.pem\nkey = credential:falcon\n"
		"peer-name = .fabric.test\nrequire-psp = yes\n"
		"[peer 0]\naddress = 10.0.0.7\npsk = credential:seven\n"
		"[peer 255]\naddress = fd00::/64\nname = spine.test\n");
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	cr_assert_str_eq(s.identity.key, "credential:falcon");
	cr_assert_str_eq(s.identity.peer_name, ".fabric.test");
	cr_assert(s.eng.falcon.require_psp);
	cr_assert(s.peers[0].present);
	cr_assert_eq(s.peers[0].address.len, 32);
	cr_assert_str_eq(s.peers[0].psk, "credential:seven");
	cr_assert_eq(s.peers[255].address.len, 64);
	cr_assert_str_eq(s.peers[255].name, "spine.test");
	f = fmemopen(text, sizeof(text), "w");
	cr_assert_not_null(f);
	settings_print(&s, f);
	fclose(f);
	cr_assert_not_null(strstr(text, "key = credential:falcon"));
	cr_assert_not_null(
		strstr(text, "[peer 0]\naddress = 10.0.0.7/32\npsk = credential:seven\n"));
}

/* 0x3FFF is not a depth (RFC 6581 9.1). */
Test(app_settings, a_depth_has_14_bits_less_one_value_6581_9_1)
{
	file_is("[limits]\nird = 16382\nord = 16382\n");
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	cr_assert_eq(s.eng.limits.ird, 16382);
	file_is("[limits]\nord = 16383\n");
	cr_assert_eq(options(""), OPTIONS_REFUSED);
	cr_assert_not_null(strstr(why, "0..16382"), "%s", why);
}

Test(app_settings, the_environment_wins_over_the_file_and_the_option_over_both)
{
	file_is("[saker]\nmtu = 9000\nidle = sleep\nname = file\n");
	setenv("SAKER_MTU", "4000", 1);
	setenv("SAKER_IDLE", "yield", 1);
	setenv("SAKER_TCP_RTO_MIN", "7ms", 1);
	cr_assert_eq(options("--mtu 1400"), OPTIONS_RUN, "%s", why);
	cr_assert_eq(s.mtu, 1400);
	cr_assert_eq(settings_source(&s, "saker", "mtu"), FROM_OPTION);
	cr_assert_eq(s.eng.idle, ENG_IDLE_YIELD);
	cr_assert_eq(settings_source(&s, "saker", "idle"), FROM_ENVIRONMENT);
	cr_assert_str_eq(s.eng.name, "file");
	cr_assert_eq(s.eng.tcp.rto_min_ns, 7000000);
}

Test(app_settings, an_option_names_its_file_before_the_environment_does)
{
	file_is("[saker]\nmtu = 9000\n");
	setenv("SAKER_CONFIG", "/nonexistent", 1);
	cr_assert_eq(options("-i --mtu 1300"), OPTIONS_REFUSED);
	snprintf(why, sizeof(why), "--config %s", path);
	cr_assert_eq(options(why), OPTIONS_RUN);
	cr_assert_eq(s.mtu, 9000);
}

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

Test(app_settings, the_sample_file_names_every_key)
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

Test(app_settings, the_sample_file_is_accepted_and_says_what_the_defaults_are)
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

Test(app_settings, ports_interfaces_and_routes_come_by_number)
{
	file_is("[port 3]\ndevice = net_ring0\nmtu = 9000\ntso = no\ninterrupts = no\n"
		"[interface 1]\nport = 3\nvlan = 100\naddress = fd00::1/64\n"
		"[route 0]\ndestination = ::/0\ngateway = fd00::fe\n");
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	cr_assert(s.ports[3].present);
	cr_assert_not(s.ports[0].present);
	cr_assert_str_eq(s.ports[3].device, "net_ring0");
	cr_assert_eq(s.ports[3].mtu, 9000);
	cr_assert_not(s.ports[3].tso);
	cr_assert(s.ports[3].checksum);
	cr_assert_not(s.ports[3].interrupts);
	cr_assert(s.ports[4].interrupts);
	cr_assert_eq(s.ifs[1].vlan, 100);
	cr_assert_eq(s.ifs[1].address.len, 64);
	cr_assert(s.routes[0].present);
	cr_assert_eq(s.routes[0].destination.len, 0);
}

Test(app_settings, a_client_has_a_name_or_a_uid_and_rates)
{
	char text[16384] = "";
	FILE *f = fmemopen(text, sizeof(text), "w");

	file_is("[client 0]\nuid = 0\nweight = 30\n"
		"[client 63]\nname = backup\nmax-gbps = 2.5\nmax-mops = 0.000001\n");
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	cr_assert(s.eng.rates[0].present && s.eng.rates[63].present);
	cr_assert_not(s.eng.rates[1].present);
	cr_assert_eq(s.eng.rates[0].uid, 0);
	cr_assert_eq(s.eng.rates[0].rates.weight, 30);
	cr_assert_eq(s.eng.rates[0].rates.bits, 0);
	cr_assert_eq(s.eng.rates[63].uid, ENG_NO_UID);
	cr_assert_str_eq(s.eng.rates[63].name, "backup");
	cr_assert_eq(s.eng.rates[63].rates.bits, 2500000000ull);
	cr_assert_eq(s.eng.rates[63].rates.messages, 1);
	settings_print(&s, f);
	fclose(f);
	cr_assert_not_null(strstr(text, "[client 0]\nuid = 0\nweight = 30\n"));
	cr_assert_not_null(
		strstr(text, "[client 63]\nname = backup\nmax-gbps = 2.5\nmax-mops = 0.000001\n"));
}

Test(app_settings, a_client_has_a_class_and_priorities_have_those_of_tags)
{
	static const uint8_t same[] = {0, 1, 2, 3, 4, 5, 6, 7}, other[] = {1, 0, 2, 3, 4, 5, 7, 7};
	char text[16384] = "";
	FILE *f = fmemopen(text, sizeof(text), "w");

	file_is("[client 0]\nuid = 0\n");
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	cr_assert_arr_eq(s.eng.vlan_pcp, same, sizeof(same));
	cr_assert_eq(s.eng.rates[0].traffic_class, 0);
	cr_assert_eq(s.eng.rates[0].priority, 0);
	file_is("[saker]\nvlan-priorities = 1,0,2,3,4,5,7,7\n"
		"[client 0]\nuid = 0\ntraffic-class = 184\npriority = 7\n");
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	cr_assert_arr_eq(s.eng.vlan_pcp, other, sizeof(other));
	cr_assert_eq(s.eng.rates[0].traffic_class, 184);
	cr_assert_eq(s.eng.rates[0].priority, 7);
	settings_print(&s, f);
	fclose(f);
	cr_assert_not_null(strstr(text, "vlan-priorities = 1,0,2,3,4,5,7,7"));
	cr_assert_not_null(strstr(text, "uid = 0\ntraffic-class = 184\npriority = 7\n"));
}

Test(app_settings, addresses_on_the_command_line_add_up)
{
	file_is("[interface 0]\nport = 0\naddress = 10.0.0.1/24\n");
	cr_assert_eq(options("--address 1=10.0.1.1/24 --address net_tap0=fd00::5/64"), OPTIONS_RUN,
		"%s", why);
	cr_assert_str_eq(s.ifs[0].port, "0");
	cr_assert_str_eq(s.ifs[1].port, "1");
	cr_assert_eq(s.ifs[1].address.len, 24);
	cr_assert_eq(s.ifs[1].vlan, ETH_NO_VLAN);
	cr_assert_str_eq(s.ifs[2].port, "net_tap0");
	cr_assert_not(s.ifs[3].present);
}

Test(app_settings, words_of_testpmd_are_understood)
{
	cr_assert_eq(options("-i --stats-period 5 --rxd 512 --txd 256 --total-num-mbufs 8192 "
			     "--cmdline-file /x --socket /tmp/s --idle yield"),
		OPTIONS_RUN, "%s", why);
	cr_assert(s.interactive);
	cr_assert_eq(s.stats_period, 5);
	cr_assert_eq(s.rxd, 512);
	cr_assert_eq(s.txd, 256);
	cr_assert_eq(s.eng.limits.rx_mbufs, 4096);
	cr_assert_eq(s.eng.limits.tx_mbufs, 4096);
	cr_assert_str_eq(s.cmdline_file, "/x");
	cr_assert_str_eq(s.socket, "/tmp/s");
	cr_assert_eq(options("--help"), OPTIONS_HELP);
	cr_assert_eq(options("-v"), OPTIONS_VERSION);
}

Test(app_settings, a_wrong_option_is_named)
{
	refused("--frobnicate", "option '--frobnicate' is unknown");
	refused("-z", "option '-z' is unknown");
	refused("--mtu", "option '--mtu' needs an argument");
	refused("surplus", "'surplus' is not an option");
	refused("--mtu 12", "--mtu 12 is not a number within 1280..65517");
	refused("--mtu 1500x", "--mtu 1500x is not a number within 1280..65517");
	refused("--mtu -5", "--mtu -5 is not a number within 1280..65517");
	refused("--rxd 99999999999999999999",
		"--rxd 99999999999999999999 is not a number within 32..32768");
	refused("--idle fast", "--idle fast is not one of poll, yield, sleep");
	refused("--cc reno", "--cc reno is not one of cubic, dctcp, none");
	refused("--crc maybe", "--crc maybe is neither yes nor no");
	refused("--stats-period 0", "--stats-period 0 is not a number within 1..86400");
	refused("--total-num-mbufs 100", "total-num-mbufs 100 gives a stage fewer than 256 mbufs");
}

/* Checks the sentence about the last line of a file. */
static void
file_refused(const char *text, const char *end)
{
	char sentence[WHY_LEN];
	unsigned lines = 0;

	file_is(text);
	for (const char *p = text; *p != '\0'; p++)
		lines += *p == '\n';
	snprintf(sentence, sizeof(sentence), "%s:%u: %s", path, lines, end);
	refused("", sentence);
}

/* Checks the sentence about keys that do not fit together: about line `line`, or 0. */
static void
together_refused(const char *text, unsigned line, const char *end)
{
	char sentence[WHY_LEN];

	file_is(text);
	if (line != 0)
		snprintf(sentence, sizeof(sentence), "%s:%u: %s", path, line, end);
	else
		snprintf(sentence, sizeof(sentence), "%s", end);
	refused("", sentence);
}

Test(app_settings, a_wrong_address_is_named)
{
	refused("--address 10.0.0.1/24", "--address 10.0.0.1/24 is not PORT=ADDRESS/LENGTH");
	refused("--address 0=10.0.0.1",
		"--address 0=10.0.0.1 is not an address with its prefix length, such as "
		"10.0.0.1/24");
	refused("--address 0=10.0.0.300/24",
		"--address 0=10.0.0.300/24 is not an IPv4 or IPv6 address with its prefix length");
	refused("--address 0=10.0.0.1/33",
		"--address 0=10.0.0.1/33 has a prefix length that is not within 0..32");
	refused("--address 0=fd00::1/129",
		"--address 0=fd00::1/129 has a prefix length that is not within 0..128");
	refused("--address 0=0.0.0.0/0", "--address 0=0.0.0.0/0 is the unspecified address");
	refused("--address 0=127.0.0.1/8", "--address 0=127.0.0.1/8 is a loopback address");
	refused("--address 0=224.0.0.1/24", "--address 0=224.0.0.1/24 is a multicast address");
	refused("--address 0=10.0.0.0/24",
		"--address 0=10.0.0.0/24 is the address of its network, which no host has");
	refused("--address 0=10.0.0.255/24", "--address 0=10.0.0.255/24 is the broadcast address "
					     "of its network, which no host has");
	refused("--address 0=::1/128", "--address 0=::1/128 is a loopback address");
	refused("--address 0=10.0.0.1/24 --address 0=10.0.0.1/24",
		"[interface 1] has the address 10.0.0.1 of [interface 0] again");
	together_refused("[client 2]\nweight = 3\n", 1, "[client 2] needs either a name or a uid");
	together_refused(
		"[client 2]\nname = a\nuid = 3\n", 1, "[client 2] needs either a name or a uid");
}

Test(app_settings, an_identity_that_is_incomplete_is_named)
{
	together_refused("[falcon]\nca = /c\nkey = /k\n", 0,
		"[falcon] ca, certificate and key belong together, but certificate is missing");
	together_refused("[falcon]\nca = /c\nkey = /k\ncertificate = /c\npsk = /p\n", 0,
		"[falcon] psk and [falcon] certificate exclude each other: both are for all peers");
	together_refused("[falcon]\npeer-name = a.test\n", 2,
		"[falcon] peer-name = a.test requires ca, certificate and key");
	together_refused("[peer 4]\npsk = /p\n", 1, "[peer 4] lacks an address");
	together_refused("[peer 4]\naddress = 10.0.0.1\n", 1,
		"[peer 4] lacks psk, and there is no [falcon] certificate");
	together_refused("[peer 4]\naddress = 10.0.0.1\npsk = /p\nname = a\n", 1,
		"[peer 4] has both psk and name, but a name belongs to a certificate");
	file_refused("[peer 256]\n", "section [peer 256] needs a number within 0..255");
	file_refused("[peer 1]\naddress = ten\n",
		"[peer 1] address = ten is neither an IPv4 or IPv6 address nor a prefix of "
		"addresses");
	file_refused("[falcon]\nkey = credential:../../etc/shadow\n",
		"[falcon] key = credential:../../etc/shadow is neither the path of a file (/...) "
		"nor credential:NAME");
}

Test(app_settings, a_wrong_key_or_section_of_the_file_is_named)
{
	file_refused("[saker]\nfoo = 1\n", "[saker] has no key 'foo'");
	file_refused("[sacre]\n", "section [sacre] is unknown");
	file_refused("[port]\n", "section [port] needs a number within 0..15");
	file_refused("[port x]\n", "section [port x] needs a number within 0..15");
	file_refused("[port 16]\n", "section [port 16] needs a number within 0..15");
	file_refused("[port 1]\nspeed = 1\n", "[port 1] has no key 'speed'");
	file_refused("[tcp]\nrto-min = 10\n",
		"[tcp] rto-min = 10 is not a time with its unit (ns, us, ms, s)");
	file_refused(
		"[tcp]\nrto-min = 1us\n", "[tcp] rto-min = 1us is not a time within 100us..60s");
	file_refused("[client 0]\nuid = 4294967295\n",
		"[client 0] uid = 4294967295 is not a user ID within 0..4294967294");
	file_refused("[client 0]\nmax-gbps = 0\n",
		"[client 0] max-gbps = 0 is not a rate in bits per second within 1k..10000g, where "
		"1 stands for 1g");
	file_refused("[client 0]\nmax-mops = 1.\n",
		"[client 0] max-mops = 1. is not a number within 1..10g, where 1 stands for 1m");
	file_refused("[client 0]\nweight = 101\n",
		"[client 0] weight = 101 is not a number within 1..100");
	file_refused("[client 0]\npriority = 8\n",
		"[client 0] priority = 8 is not a number within 0..7");
	file_refused("[client 0]\ntraffic-class = 256\n",
		"[client 0] traffic-class = 256 is not a number within 0..255");
	file_refused("[saker]\nvlan-priorities = 0,1,2,3,4,5,6\n",
		"[saker] vlan-priorities = 0,1,2,3,4,5,6 is not a list of 8 priorities within "
		"0..7, such as 1,0,2,3,4,5,6,7");
	file_refused("[saker]\nvlan-priorities = 0,1,2,3,4,5,6,8\n",
		"[saker] vlan-priorities = 0,1,2,3,4,5,6,8 is not a list of 8 priorities within "
		"0..7, such as 1,0,2,3,4,5,6,7");
	file_refused("[interface 0]\nport = 0\nvlan = 4095\n",
		"[interface 0] vlan = 4095 is not a VLAN within 1..4094, or 0 for none");
	file_refused("[falcon]\npsp = aes\n",
		"[falcon] psp = aes is not a list of none, gcm128, gcm256, gmac128, gmac256");
	file_refused("[falcon]\npsp = ,\n",
		"[falcon] psp = , is not a list of none, gcm128, gcm256, gmac128, gmac256");
	file_refused("[falcon]\npsk = 00112233445566778899aabbccddeeff\n",
		"[falcon] psk = (a secret) is neither the path of a file (/...) nor "
		"credential:NAME");
	file_refused("[falcon]\nordering = strict\n",
		"[falcon] ordering = strict is not one of strong, weak, none");
	file_refused("[falcon]\nerrors = ignore\n",
		"[falcon] errors = ignore is not one of verbs, complete");
	file_refused(
		"[falcon]\nmtu = 9000\n", "[falcon] mtu = 9000 is not a number within 256..8192");
	file_refused("[falcon]\nflows = 2\n", "[falcon] flows = 2 is not one of 1, 4");
	file_refused(
		"[falcon]\nrnr-retry = 8\n", "[falcon] rnr-retry = 8 is not a number within 0..7");
	file_refused("[falcon]\nrnr-delay = 1s\n",
		"[falcon] rnr-delay = 1s is not a time within 10us..655360us");
	file_refused("[limits]\nclient-home = 99999999999g\n",
		"[limits] client-home = 99999999999g is not a size within 1m..64g");
}

Test(app_settings, a_file_that_cannot_be_read_is_named)
{
	refused("--config /nonexistent.ini",
		"the file /nonexistent.ini cannot be read: No such file or directory");
	refused("--config /tmp", "the file /tmp cannot be read: Is a directory");
	file_refused("[saker\n", "the line '[saker' is not [section]");
	file_refused("[falcon]\npsp gcm256\n",
		"the line 'psp gcm256' is neither [section] nor key = value");
	file_refused("[tcp]\nhello world\n",
		"the line 'hello world' is neither [section] nor key = value");
	file_refused("[tcp]\ncc = cubic\ncc = dctcp\n", "[tcp] cc stands in line 2 already");
	file_refused(
		"[port 0]\nmtu = 1500\n[port 0]\n", "section [port 0] stands in line 1 already");
	file_refused("cc = cubic\n", "the key 'cc' stands before the first [section]");
	file_refused("[tcp]\ncc =\n", "[tcp] cc has no value");
	file_refused("[flacon]\n", "section [flacon] is unknown");
	file_refused("[port 03]\n", "section [port 03] needs a number within 0..15");
	file_refused("# comment\n[tcp]\ncc = cubic # because\n",
		"[tcp] cc = cubic # because is not one of cubic, dctcp, none");
}

/* The value of a sentence is cut, and its reason is not. */
Test(app_settings, a_value_that_is_too_long_is_refused_with_its_reason)
{
	char text[400] = "[saker]\nname = ", name[300], sentence[512];

	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 2] = '\n';
	name[sizeof(name) - 1] = '\0';
	snprintf(sentence, sizeof(sentence), "[saker] name = %.60s... is longer than %d bytes",
		name, SHM_NAME_MAX - 1);
	file_refused(strcat(text, name), sentence);
	memset(name, 'y', sizeof(name) - 2);
	snprintf(text, sizeof(text), "--config /%.298s", name);
	snprintf(sentence, sizeof(sentence), "--config /%.59s... is longer than %d bytes", name,
		FILE_LEN - 1);
	text[strcspn(text, "\n")] = '\0';
	refused(text, sentence);
}

Test(app_settings, keys_that_exclude_each_other_are_named)
{
	together_refused("[tcp]\nrto-max = 10ms\nrto-min = 4s\n", 3,
		"[tcp] rto-min = 4s exceeds rto-max = 10ms");
	together_refused(
		"[falcon]\nrto-min = 1s\n", 2, "[falcon] rto-min = 1s exceeds rto-max = 200ms");
	together_refused("[tcp]\nport-min = 5000\nport-max = 4000\n", 2,
		"[tcp] port-min = 5000 exceeds port-max = 4000");
	together_refused("[limits]\nconnections = 0x1000000\n", 2,
		"[limits] connections = 16777216 with [tcp] half-open = 1024 and time-wait = 4096 "
		"exceeds 16777215");
	file_refused("[falcon]\nmtu = 1000\n",
		"[falcon] mtu = 1000 is not a power of two within 256..8192");
	together_refused("[vm 3]\nname = a\n", 1, "[vm 3] requires [gateway] enabled = yes");
	setenv("SAKER_TCP_RTO_MAX", "1ms", 1);
	together_refused("", 0, "[tcp] rto-min = 10ms exceeds rto-max = 1ms");
}

#define IF0 "[interface 0]\nport = 0\naddress = 10.0.0.1/24\n"

Test(app_settings, a_wrong_interface_or_route_is_named)
{
	together_refused("[interface 0]\naddress = 10.0.0.1/24\n", 1, "[interface 0] lacks a port");
	together_refused("[interface 0]\nport = 0\n", 1, "[interface 0] lacks an address");
	together_refused(IF0 "[interface 7]\nport = 0\naddress = 10.0.0.1/16\n", 4,
		"[interface 7] has the address 10.0.0.1 of [interface 0] again");
	file_refused("[interface 0]\naddress = 10.0.0.255/24\n",
		"[interface 0] address = 10.0.0.255/24 is the broadcast address of its network, "
		"which no host has");
	together_refused(
		IF0 "[route 0]\ngateway = 10.0.0.254\n", 4, "[route 0] lacks a destination");
	together_refused(
		IF0 "[route 0]\ndestination = 0.0.0.0/0\n", 4, "[route 0] lacks a gateway");
	together_refused(IF0 "[route 0]\ndestination = ::/0\ngateway = 10.0.0.254\n", 4,
		"[route 0] destination = ::/0 and gateway = 10.0.0.254 are of different families");
	together_refused(IF0 "[route 0]\ndestination = 0.0.0.0/0\ngateway = 192.168.7.1\n", 4,
		"[route 0] gateway = 192.168.7.1 is in the network of no [interface]");
	together_refused(IF0 "[route 0]\ndestination = 0.0.0.0/0\ngateway = 10.0.0.1\n", 4,
		"[route 0] gateway = 10.0.0.1 is the address of [interface 0]");
	together_refused(IF0 "[route 0]\ndestination = 0.0.0.0/0\ngateway = 224.0.0.5\n", 4,
		"[route 0] gateway = 224.0.0.5 is a multicast address");
	file_is(IF0 "[interface 1]\nport = 0\nvlan = 7\naddress = 10.0.0.1/24\n"
		    "[route 0]\ndestination = 0.0.0.0/0\ngateway = 10.0.0.254\n");
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
}

Test(app_settings, a_wrong_variable_of_the_environment_is_named)
{
	setenv("SAKER_LIMITS_SQ_DEPTH", "1", 1);
	refused("", "environment variable SAKER_LIMITS_SQ_DEPTH: '1' is not a number within "
		    "2..1048576");
	unsetenv("SAKER_LIMITS_SQ_DEPTH");
	setenv("SAKER_MTUU", "5", 1);
	refused("", "environment variable SAKER_MTUU is unknown");
	unsetenv("SAKER_MTUU");
	setenv("SAKER_DEVICES", "a", 1);
	setenv("SAKER_GUEST_MEM", "1g", 1);
	cr_assert_eq(options(""), OPTIONS_RUN, "variables of other programs: %s", why);
	setenv("SAKER_CONFIG", "", 1);
	refused("", "environment variable SAKER_CONFIG: '' is empty");
}

Test(app_settings, numbers_have_one_notation)
{
	file_is("[saker]\nmtu = 0x2328\n[tcp]\nrto-min = 1.5ms\nsend-buffer = 1.5m\n"
		"[falcon]\nrekey-packets = 2m\n[limits]\nqps = 16k\n");
	cr_assert_eq(options("--rxd 0x100"), OPTIONS_RUN, "%s", why);
	cr_assert_eq(s.mtu, 9000);
	cr_assert_eq(s.rxd, 256);
	cr_assert_eq(s.eng.tcp.rto_min_ns, 1500000);
	cr_assert_eq(s.eng.tcp.snd_buf, 1572864, "bytes: 1024");
	cr_assert_eq(s.eng.falcon.rekey_packets, 2000000, "a count: 1000");
	cr_assert_eq(s.eng.limits.qps, 16000);
}

Test(app_settings, the_socket_has_a_group_and_a_mode)
{
	cr_assert_eq(options(""), OPTIONS_RUN);
	cr_assert_str_eq(s.eng.socket_group, "");
	cr_assert_eq(s.eng.socket_mode, 0660);
	file_is("[saker]\nsocket-group = rdma\nsocket-mode = 0606\n");
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	cr_assert_str_eq(s.eng.socket_group, "rdma");
	cr_assert_eq(s.eng.socket_mode, 0606);
	file_refused("[saker]\nsocket-mode = 0560\n",
		"[saker] socket-mode = 0560 is not an octal mode within 0600..0777");
	file_refused("[saker]\nsocket-mode = 4660\n",
		"[saker] socket-mode = 4660 is not an octal mode within 0600..0777");
	file_refused("[saker]\nsocket-mode = 0668\n",
		"[saker] socket-mode = 0668 is not an octal mode within 0600..0777");
	file_refused("[saker]\nsocket-mode = rw-rw----\n",
		"[saker] socket-mode = rw-rw---- is not an octal mode within 0600..0777");
}

Test(app_settings, stages_spread_over_loops)
{
	cr_assert_eq(options("--loops 2"), OPTIONS_RUN);
	cr_assert_eq(s.eng.transport_loop[0], 0);
	cr_assert_eq(s.eng.stage_loop[0], 1, "a loop for each");
	cr_assert_eq(options("--loops 2 --transports 2 --stages 2"), OPTIONS_RUN);
	cr_assert_eq(s.eng.transport_loop[1], 1);
	cr_assert_eq(s.eng.stage_loop[0], 0, "a couple on each");
	cr_assert_eq(s.eng.stage_loop[1], 1);
	cr_assert_eq(
		options("--loops 2 --stages 2 --stage-loops 1,0 --transport-loops 1"), OPTIONS_RUN);
	cr_assert_eq(s.eng.stage_loop[0], 1);
	cr_assert_eq(s.eng.stage_loop[1], 0);
	cr_assert_eq(s.eng.transport_loop[0], 1);
	refused("--stages 2 --stage-loops 0", "stage-loops lists 1 loops for 2 engine stages");
	refused("--transport-loops 0,1", "transport-loops lists 2 loops for 1 transport stages");
	refused("--stage-loops x", "--stage-loops x is not a list of loops, such as 0,1,1");
	cr_assert_eq(options("--loops 16 --transports 64 --stages 64"), OPTIONS_RUN);
	cr_assert_eq(s.eng.stage_loop[63], 15);
	refused("--stages 65", "--stages 65 is not a number within 1..64");
	refused("--transports 65", "--transports 65 is not a number within 1..64");
	refused("--loops 33", "--loops 33 is not a number within 1..32");
}

Test(app_settings, what_is_printed_is_a_configuration_file_that_says_the_same)
{
	struct settings first;
	FILE *f;

	cr_assert_eq(options("--mtu 4000 --cc none --idle sleep --address 0=10.0.0.1/24 --loops 3"),
		OPTIONS_RUN);
	first = s;
	f = fopen(path, "w");
	cr_assert_not_null(f);
	settings_print(&s, f);
	fclose(f);
	setenv("SAKER_CONFIG", path, 1);
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	cr_assert_eq(s.mtu, 4000);
	cr_assert_str_eq(s.eng.tcp.cc, "none");
	cr_assert_eq(s.eng.idle, ENG_IDLE_SLEEP);
	cr_assert_eq(s.eng.nloops, 3);
	cr_assert(sk_addr_eq(&s.ifs[0].address.addr, &first.ifs[0].address.addr));
	cr_assert_arr_eq(&s.eng.limits, &first.eng.limits, sizeof(s.eng.limits));
	cr_assert_eq(s.eng.tcp.keepalive_idle_ns, first.eng.tcp.keepalive_idle_ns);
	cr_assert_eq(settings_source(&s, "saker", "idle"), FROM_FILE);
}

/* ---- Changes while saker runs ---- */

static char differences[1024];

static void
differs(void *arg, const char *section, const char *key, const char *was, const char *next,
	enum takes_effect when)
{
	size_t n = strlen(differences);

	snprintf(differences + n, sizeof(differences) - n, "%s.%s %s>%s %d\n", section,
		key != NULL ? key : "*", was, next, (int)when);
}

static struct settings was;

/* Reads a file, and then a second one into `s`. */
static void
two_files(const char *before, const char *after)
{
	file_is(before);
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	was = s;
	file_is(after);
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	differences[0] = '\0';
	settings_diff(&was, &s, differs, NULL);
}

#define IF_0 "[interface 0]\nport = 0\naddress = 10.0.0.1/24\n"

Test(app_settings, a_difference_names_both_values_and_when_it_takes_effect)
{
	two_files("[tcp]\ncc = dctcp\n[limits]\nclient-qps = 5\n" IF_0,
		"[limits]\nclient-qps = 0x10\n[saker]\nlog = debug\n" IF_0
		"vlan = 7\n[client 3]\nuid = 9\n");
	cr_assert_str_eq(differences, "saker.log info>debug 1\n"
				      "tcp.cc dctcp>cubic 0\n"
				      "limits.client-qps 5>16 1\n"
				      "interface 0.vlan 0>7 1\n"
				      "client 3.* >client 3 1\n");
	two_files(IF_0, IF_0 "; a comment\n");
	cr_assert_str_eq(differences, "");
}

Test(app_settings, only_what_changes_at_once_is_adopted)
{
	two_files("[tcp]\ncc = dctcp\n[route 1]\ndestination = 10.2.0.0/16\n"
		  "gateway = 10.0.0.9\n" IF_0,
		"[falcon]\npsk = /a\n[saker]\nlog = debug\nname = other\n"
		"[limits]\nclient-home = 2m\n"
		"[interface 5]\nport = 0\naddress = 10.0.0.5/24\n");
	settings_adopt(&was, &s, false);
	cr_assert_str_eq(was.eng.tcp.cc, "dctcp");
	cr_assert_str_eq(was.eng.name, "saker");
	cr_assert_str_eq(was.identity.psk, "");
	cr_assert_eq(was.log_level, SK_LOG_DEBUG);
	cr_assert_eq(was.eng.limits.client_home_bytes, 2u << 20);
	cr_assert(!was.ifs[0].present && was.ifs[5].present && !was.routes[1].present);
	settings_adopt(&was, &s, true);
	cr_assert_str_eq(was.identity.psk, "/a");
	differences[0] = '\0';
	settings_diff(&was, &s, differs, NULL);
	cr_assert_str_eq(differences, "saker.name saker>other 0\ntcp.cc dctcp>cubic 0\n");
}

Test(app_settings, a_saved_file_has_the_same_values_and_replaces_the_old_one)
{
	static struct settings before;

	file_is("[saker]\nidle = sleep\n[tcp]\nrto-min = 1.5ms\n[falcon]\npsp = gcm256,none\n"
		"swift-target = 25us\n" IF_0
		"[route 0]\ndestination = 0.0.0.0/0\ngateway = 10.0.0.9\n"
		"[client 0]\nname = a b\nmax-gbps = 2.5\n[peer 1]\naddress = 10.0.0.7\npsk = /k\n"
		"[connection 2]\nport = 99\nordering = weak\n[vm 3]\nname = x\npath = /y\n"
		"[gateway]\nenabled = yes\n");
	cr_assert_eq(options("--cc dctcp"), OPTIONS_RUN, "%s", why);
	cr_assert_eq(settings_set(&s, "limits", "client-qps", "77", FROM_COMMAND, why), 0);
	before = s;
	cr_assert_eq(settings_save(&s, path, why), 0, "%s", why);
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	differences[0] = '\0';
	settings_diff(&before, &s, differs, NULL);
	cr_assert_str_eq(differences, "");
	cr_assert_eq(settings_save(&s, "/dev/null", why), -EINVAL);
	cr_assert_str_eq(why, "/dev/null is not a file");
	cr_assert_eq(settings_save(&s, "/nonexistent/x", why), -EINVAL);
	cr_assert_str_eq(why, "/nonexistent/x cannot be written: No such file or directory");
}

Test(app_settings, a_section_that_is_removed_has_its_defaults_again)
{
	file_is(IF_0 "vlan = 9\n");
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	cr_assert_eq(settings_unset(&s, "interface 0", why), 0);
	cr_assert(!s.ifs[0].present);
	cr_assert_eq(s.ifs[0].vlan, ETH_NO_VLAN);
	cr_assert_eq(settings_unset(&s, "interface 0", why), -ENOENT);
	cr_assert_str_eq(why, "does not exist");
	cr_assert_eq(settings_unset(&s, "tcp", why), -ENOENT);
	cr_assert_eq(settings_when("tcp", "cc"), AT_RESTART);
	cr_assert_eq(settings_when("port 0", "mtu"), AT_RESTART);
	cr_assert_eq(settings_when("route 0", "gateway"), AT_ONCE);
}
