/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests changes while saker runs: differences, what is adopted, saved files. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "settings_rig.h"

TestSuite(app_settings_change, .init = settings_setup, .fini = settings_teardown);

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

Test(app_settings_change, a_difference_names_both_values_and_when_it_takes_effect)
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

Test(app_settings_change, only_what_changes_at_once_is_adopted)
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

Test(app_settings_change, a_saved_file_has_the_same_values_and_replaces_the_old_one)
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

Test(app_settings_change, a_section_that_is_removed_has_its_defaults_again)
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

Test(app_settings_change, the_addresses_of_the_options_are_those_of_a_saved_file)
{
	const char *both = "--address 0=10.0.0.1/24 --address 0=10.0.0.3/24";

	file_is("");
	cr_assert_eq(options(both), OPTIONS_RUN, "%s", why);
	cr_assert_eq(settings_save(&s, path, why), 0, "%s", why);
	was = s;
	cr_assert_eq(options(both), OPTIONS_RUN, "%s", why);
	differences[0] = '\0';
	settings_diff(&was, &s, differs, NULL);
	cr_assert_str_eq(differences, "");
}

Test(app_settings_change, a_text_that_no_file_can_hold_is_refused)
{
	char ips[VALUE_LEN] = "";

	file_is("");
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	cr_assert_eq(settings_set(&s, "client 0", "name", "a;b", FROM_COMMAND, why), -EINVAL);
	cr_assert_not_null(strstr(why, "a ';', which a configuration file cannot hold"), "%s", why);
	cr_assert_eq(settings_set(&s, "client 0", "name", "a\nb", FROM_COMMAND, why), -EINVAL);
	cr_assert_not_null(strstr(why, "a control character"), "%s", why);
	cr_assert_eq(settings_set(&s, "client 0", "name", "a ", FROM_COMMAND, why), -EINVAL);
	cr_assert_not_null(strstr(why, "begins or ends with a blank"), "%s", why);
	/* The longest list of addresses that a machine may have. */
	for (unsigned i = 0; i < 8; i++)
		snprintf(ips + strlen(ips), sizeof(ips) - strlen(ips),
			"%s2001:0db8:1111:2222:3333:4444:5555:666%u/128", i > 0 ? "," : "", i);
	cr_assert_eq(settings_set(&s, "vm 0", "ip", ips, FROM_COMMAND, why), 0, "%s", why);
	cr_assert_str_eq(s.vms[0].value[VM_IP], ips);
}
