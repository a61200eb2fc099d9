/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the values that options, environment and configuration file set, and their precedence. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "../../../lib/shm/shm_sock.h"
#include "settings_rig.h"

TestSuite(app_settings, .init = settings_setup, .fini = settings_teardown);

Test(app_settings, an_empty_configuration_means_the_engines_defaults)
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

Test(app_settings, printed_settings_are_a_configuration_file_with_the_same_values)
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
