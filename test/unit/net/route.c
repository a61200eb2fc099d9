/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes: RFC 1122 3.3.1, RFC 1812 5.2.4.3 (longest prefix), and addresses that belong to no
 * host. */
#include "fixture.h"

TestSuite(route, .init = net_fixture, .fini = net_fixture_end);

static int
route(const char *dst, unsigned prefix, const char *gateway)
{
	struct sk_addr d = addr(dst), g = addr(gateway);

	return net_route_add(net, &d, prefix, &g);
}

/* Returns the last byte of the address that a packet to `dst` solicits first; 0: no route. */
static int
solicits(const char *dst)
{
	struct sk_addr src = {{0}}, to = addr(dst);
	struct net_path p;
	unsigned before = rec.nsent;

	if (net_path_init(net, &p, &src, &to, IP_TCP, 0) != 0)
		return 0;
	cr_assert_eq(net_path_check(net, &p, 0), 1);
	cr_assert_eq(rec.nsent, before + 1);
	if (last_sent()->pkt.eth.type == ETH_ARP)
		return last_sent()->pkt.arp.tpa.b[15];
	return last_sent()->pkt.icmp.target.b[15];
}

Test(route, connected_destination_is_its_own_next_hop)
{
	cr_assert_eq(solicits("192.0.2.77"), 77);
	cr_assert_eq(solicits("2001:db8::77"), 0x77);
}

Test(route, rfc1812_5_2_4_3_longest_prefix_wins_in_any_order)
{
	cr_assert_eq(route("0.0.0.0", 0, "192.0.2.10"), 0);
	cr_assert_eq(route("10.1.2.0", 24, "192.0.2.13"), 0);
	cr_assert_eq(route("10.0.0.0", 8, "192.0.2.11"), 0);
	cr_assert_eq(route("10.1.0.0", 17, "192.0.2.12"), 0);
	cr_assert_eq(route("10.1.2.3", 32, "192.0.2.14"), 0);
	cr_assert_eq(solicits("10.1.2.3"), 14);
	cr_assert_eq(route("192.0.2.128", 25, "192.0.2.15"), 0);
	cr_assert_eq(solicits("192.0.2.200"), 15, "longer than the connected route");
	cr_assert_eq(solicits("192.0.2.100"), 100);
}

Test(route, rfc1812_5_2_4_3_each_length_has_its_next_hop)
{
	static const char *const dst[] = {"10.1.2.4", "10.1.127.9", "10.1.128.9", "11.0.0.1"};

	route("0.0.0.0", 0, "192.0.2.10");
	route("10.1.2.0", 24, "192.0.2.13");
	route("10.0.0.0", 8, "192.0.2.11");
	route("10.1.0.0", 17, "192.0.2.12");
	cr_assert_eq(solicits(dst[0]), 13);
	cr_assert_eq(solicits(dst[1]), 12);
	cr_assert_eq(solicits(dst[2]), 11);
	cr_assert_eq(solicits(dst[3]), 10);
}

Test(route, ipv6_default_route)
{
	cr_assert_eq(solicits("2001:db8:1::1"), 0);
	cr_assert_eq(route("::", 0, "2001:db8::fe"), 0);
	cr_assert_eq(solicits("2001:db8:1::1"), 0xfe);
}

Test(route, families_do_not_mix)
{
	cr_assert_eq(route("::", 0, "2001:db8::fe"), 0);
	cr_assert_eq(solicits("203.0.113.1"), 0, "an IPv6 default is none for IPv4");
	cr_assert_eq(route("10.0.0.0", 8, "2001:db8::fe"), -EINVAL);
}

Test(route, rfc1122_3_3_1_gateway_must_be_connected)
{
	cr_assert_eq(route("10.0.0.0", 8, "203.0.113.1"), -ENETUNREACH);
	cr_assert_eq(route("10.0.0.0", 8, "192.0.2.1"), -ENETUNREACH, "nor be ourselves");
	cr_assert_eq(route("10.0.0.0", 33, "192.0.2.9"), -EINVAL);
	cr_assert_eq(route("10.0.0.0", 8, "192.0.2.9"), 0);
	cr_assert_eq(route("10.9.9.9", 8, "192.0.2.8"), -EEXIST);
}

Test(route, gateway_route_sleeps_while_its_link_is_gone)
{
	struct sk_addr a = addr("192.0.2.1");

	route("10.0.0.0", 8, "192.0.2.9");
	cr_assert_eq(solicits("10.0.0.1"), 9);
	net_addr_del(net, 0, &a);
	cr_assert_eq(solicits("10.0.0.1"), 0);
}

Test(route, rfc1122_3_2_1_3_no_host_has_a_group_broadcast_or_network_address)
{
	static const char *const none[] = {"224.0.0.1", "255.255.255.255", "192.0.2.255",
		"192.0.2.0", "0.0.0.0", "127.0.0.1", "ff02::1", "::", "::1"};

	route("0.0.0.0", 0, "192.0.2.10");
	route("::", 0, "2001:db8::fe");
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		cr_assert_eq(solicits(none[i]), 0, "%s", none[i]);
}

Test(route, table_is_bounded)
{
	char dst[32];
	int i, rc = 0;

	for (i = 0; i < 2 * NET_MAX_ROUTES && rc == 0; i++) {
		snprintf(dst, sizeof(dst), "10.%d.%d.0", i >> 8, i & 255);
		rc = route(dst, 24, "192.0.2.9");
	}
	cr_assert_eq(rc, -ENOSPC);
	cr_assert_eq(i, NET_MAX_ROUTES - 3 + 1, "three connected routes are in it");
	cr_assert_eq(solicits("10.0.0.1"), 9);
}

Test(route, rfc1122_3_3_4_2_source_decides_between_equal_routes)
{
	struct sk_addr a = addr("192.0.2.2"), b = addr("198.51.100.1"), to = addr("192.0.2.77");
	uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
	int second = net_if_add(net, 4, ETH_NO_VLAN, mac, 1500);
	int third = net_if_add(net, 5, ETH_NO_VLAN, mac, 1500);
	struct net_path p;

	cr_assert_eq(net_addr_add(net, second, &a, 24, 0), 0);
	cr_assert_eq(net_addr_add(net, third, &b, 24, 0), 0);
	cr_assert_eq(net_path_init(net, &p, &a, &to, IP_TCP, 0), 0);
	cr_assert_eq(p.port, 4, "the one that has the address");
	cr_assert_eq(net_path_init(net, &p, &b, &to, IP_TCP, 0), 0);
	cr_assert_eq(p.port, 3, "none has it: the first");
}

Test(route, rfc4007_link_local_destination_follows_its_source)
{
	struct sk_addr to = addr("fe80::9"), src = addr("fe80::ff:fe00:9");
	struct sk_addr global = addr("2001:db8:7::1");
	uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
	int second = net_if_add(net, 4, ETH_NO_VLAN, mac, 1500);
	struct net_path p;

	cr_assert_eq(net_path_init(net, &p, &src, &to, IP_TCP, 0), 0);
	cr_assert_eq(p.port, 4);
	cr_assert_eq(net_addr_add(net, second, &global, 64, 0), 0);
	cr_assert_eq(net_path_init(net, &p, &global, &to, IP_TCP, 0), 0);
	cr_assert_eq(p.port, 4);
}

static int
unroute(const char *dst, unsigned prefix, const char *gateway)
{
	struct sk_addr d = addr(dst), g = addr(gateway);

	return net_route_del(net, &d, prefix, &g);
}

Test(route, a_removed_route_leads_nowhere_and_the_others_remain)
{
	cr_assert_eq(route("10.1.0.0", 16, "192.0.2.12"), 0);
	cr_assert_eq(route("10.0.0.0", 8, "192.0.2.11"), 0);
	cr_assert_eq(route("0.0.0.0", 0, "192.0.2.10"), 0);
	cr_assert_eq(unroute("10.0.0.0", 8, "192.0.2.12"), -ESRCH, "another gateway");
	cr_assert_eq(unroute("10.0.0.0", 9, "192.0.2.11"), -ESRCH, "another length");
	cr_assert_eq(unroute("10.0.0.0", 33, "192.0.2.11"), -EINVAL);
	cr_assert_eq(unroute("10.1.0.0", 16, "192.0.2.12"), 0);
	cr_assert_eq(solicits("10.1.0.1"), 11);
	cr_assert_eq(unroute("0.0.0.0", 0, "192.0.2.10"), 0);
	cr_assert_eq(solicits("11.1.0.1"), 0);
	cr_assert_eq(unroute("0.0.0.0", 0, "192.0.2.10"), -ESRCH);
}

Test(route, a_path_follows_a_route_that_replaces_another)
{
	struct sk_addr src = {{0}}, to = addr("10.1.0.1");
	struct net_path p;

	cr_assert_eq(route("10.0.0.0", 8, "192.0.2.11"), 0);
	cr_assert_eq(net_path_init(net, &p, &src, &to, IP_TCP, 0), 0);
	cr_assert_eq(net_path_check(net, &p, 0), 1);
	cr_assert_eq(unroute("10.0.0.0", 8, "192.0.2.11"), 0);
	cr_assert_eq(net_path_check(net, &p, 0), -EHOSTUNREACH);
	cr_assert_eq(route("10.0.0.0", 8, "192.0.2.12"), 0);
	cr_assert_eq(net_path_check(net, &p, 0), 1);
	cr_assert_eq(last_sent()->pkt.arp.tpa.b[15], 12);
}
