/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the sentence for each mistake in options, environment and configuration file. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "settings_rig.h"

TestSuite(app_settings_refused, .init = settings_setup, .fini = settings_teardown);

Test(app_settings_refused, a_wrong_option_is_named)
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

Test(app_settings_refused, a_wrong_address_is_named)
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

Test(app_settings_refused, an_identity_that_is_incomplete_is_named)
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

Test(app_settings_refused, a_wrong_key_or_section_of_the_file_is_named)
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

Test(app_settings_refused, a_file_that_cannot_be_read_is_named)
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
Test(app_settings_refused, a_value_that_is_too_long_is_refused_with_its_reason)
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

Test(app_settings_refused, keys_that_exclude_each_other_are_named)
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

Test(app_settings_refused, a_wrong_interface_or_route_is_named)
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

Test(app_settings_refused, a_wrong_variable_of_the_environment_is_named)
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
	setenv("SAKER_IFADDRS", "1", 1);
	cr_assert_eq(options(""), OPTIONS_RUN, "variables of other programs: %s", why);
	setenv("SAKER_CONFIG", "", 1);
	refused("", "environment variable SAKER_CONFIG: '' is empty");
}
