/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the settings of Falcon, of its peers and of their keys. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "../../../lib/rof/rof.h"
#include "../../../lib/wire/falcon.h"
#include "../../../lib/wire/wire.h"

#include "settings_rig.h"

TestSuite(app_settings_falcon, .init = settings_setup, .fini = settings_teardown);

#define KEY "000102030405060708090a0b0c0d0e0fF0"

Test(app_settings_falcon, falcon_has_a_section_of_its_own)
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

Test(app_settings_falcon, falcons_connections_may_have_modes_of_their_own)
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

Test(app_settings_falcon, falcons_keys_have_a_life_time)
{
	file_is("[falcon]\nrekey-time = 60s\nrekey-packets = 4m\ndevice-key-time = 0\n");
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	cr_assert_eq(s.eng.falcon.rekey_ns, 60000000000);
	cr_assert_eq(s.eng.falcon.rekey_packets, 4000000);
	cr_assert_eq(s.eng.falcon.device_key_ns, 0);
}

Test(app_settings_falcon, falcons_congestion_control_has_a_name)
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
Test(app_settings_falcon, falcons_congestion_control_can_be_tuned)
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

Test(app_settings_falcon, falcons_retransmission_can_be_tuned)
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
Test(app_settings_falcon, a_key_is_never_printed)
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

Test(app_settings_falcon, peers_and_their_identity_come_by_number)
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
