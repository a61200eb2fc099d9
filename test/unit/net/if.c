/* SPDX-License-Identifier: BSD-3-Clause */
/* Interfaces, their addresses, and the frames that are accepted. */
#include "fixture.h"

TestSuite(iface, .init = net_fixture, .fini = net_fixture_end);

/* Returns a TCP frame, with the fields that net checks. */
static struct wire_pkt
tcp_pkt(const char *src, const char *dst)
{
	struct wire_pkt pkt = {.eth = {.vlan = ETH_NO_VLAN}};

	pkt.ip.src = addr(src);
	pkt.ip.dst = addr(dst);
	pkt.eth.type = sk_addr_is_v4(&pkt.ip.dst) ? ETH_IPV4 : ETH_IPV6;
	pkt.ip.proto = IP_TCP;
	memcpy(pkt.eth.dst, my_mac, 6);
	memcpy(pkt.eth.src, peer_mac, 6);
	return pkt;
}

static int
accepts(const char *src, const char *dst)
{
	struct wire_pkt pkt = tcp_pkt(src, dst);

	return net_accept(net, 3, &pkt);
}

Test(iface, rfc4291_a_link_local_address_is_made_from_the_mac)
{
	cr_assert_eq(accepts("fe80::9", "fe80::ff:fe00:1"), 0);
}

Test(iface, wrong_interfaces_are_refused)
{
	static const uint8_t group[6] = {1}, zero[6];

	cr_assert_eq(net_if_add(net, 3, ETH_NO_VLAN, my_mac, 1500), -EEXIST);
	cr_assert_eq(net_if_add(net, 4, ETH_NO_VLAN, my_mac, 1279), -EINVAL);
	cr_assert_eq(net_if_add(net, 4, ETH_NO_VLAN, my_mac, 65536), -EINVAL);
	cr_assert_eq(net_if_add(net, 4, 4095, my_mac, 1500), -EINVAL);
	cr_assert_eq(net_if_add(net, 4, ETH_NO_VLAN, group, 1500), -EINVAL);
	cr_assert_eq(net_if_add(net, 4, ETH_NO_VLAN, zero, 1500), -EINVAL);
	cr_assert_eq(net_if_add(net, 4, ETH_NO_VLAN, my_mac, 1280), 1);
}

Test(iface, interfaces_are_bounded)
{
	uint16_t i;

	for (i = 1; i < NET_MAX_IFS; i++)
		cr_assert_eq(net_if_add(net, 3, i, my_mac, 1500), i);
	cr_assert_eq(net_if_add(net, 3, i, my_mac, 1500), -ENOSPC);
}

Test(iface, wrong_addresses_are_refused)
{
	static const char *const bad[] = {"0.0.0.0", "224.0.0.1", "127.0.0.1", "::1", "ff02::1"};
	struct sk_addr a;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		a = addr(bad[i]);
		cr_assert_eq(net_addr_add(net, 0, &a, 24, 0), -EINVAL, "%s", bad[i]);
	}
	a = addr("192.0.2.1");
	cr_assert_eq(net_addr_add(net, 0, &a, 24, 0), -EEXIST);
	a = addr("192.0.2.2");
	cr_assert_eq(net_addr_add(net, 0, &a, 33, 0), -EINVAL);
	cr_assert_eq(net_addr_add(net, 1, &a, 24, 0), -EINVAL);
	cr_assert_eq(net_addr_add(net, -1, &a, 24, 0), -EINVAL);
}

Test(iface, addresses_are_bounded)
{
	struct sk_addr a = addr("192.0.2.0");
	int rc = 0, i;

	for (i = 3; rc == 0; i++) {
		a.b[15] = (uint8_t)(i + 10);
		rc = net_addr_add(net, 0, &a, 24, 0);
	}
	cr_assert_eq(rc, -ENOSPC);
	cr_assert_eq(i - 1, NET_MAX_ADDRS);
}

Test(iface, frames_to_our_address_and_mac_are_accepted)
{
	cr_assert_eq(accepts("192.0.2.9", "192.0.2.1"), 0);
	cr_assert_eq(accepts("203.0.113.9", "192.0.2.1"), 0);
	cr_assert_eq(accepts("2001:db8::9", "2001:db8::1"), 0);
	cr_assert_eq(accepts("192.0.2.9", "192.0.2.2"), -NET_NOT_FOR_US);
	cr_assert_eq(accepts("2001:db8::9", "2001:db8::2"), -NET_NOT_FOR_US);
	cr_assert_eq(counted(NET_NOT_FOR_US), 2);
}

Test(iface, rfc1122_3_3_6_unicast_packet_in_a_group_frame_is_refused)
{
	struct wire_pkt pkt = tcp_pkt("192.0.2.9", "192.0.2.1");

	memset(pkt.eth.dst, 0xff, 6);
	cr_assert_eq(net_accept(net, 3, &pkt), -NET_NOT_FOR_US);
	memcpy(pkt.eth.dst, other_mac, 6);
	cr_assert_eq(net_accept(net, 3, &pkt), -NET_NOT_FOR_US);
}

Test(iface, rfc9293_mlpc_no_tcp_to_groups)
{
	struct wire_pkt pkt = tcp_pkt("2001:db8::9", "ff02::1");
	static const uint8_t all[6] = {0x33, 0x33, 0, 0, 0, 1};

	memcpy(pkt.eth.dst, all, 6);
	cr_assert_eq(net_accept(net, 3, &pkt), -NET_NOT_FOR_US);
	pkt.ip.proto = IP_ICMP6;
	cr_assert_eq(net_accept(net, 3, &pkt), 0);
}

Test(iface, rfc4291_2_8_solicited_node_groups_are_ours)
{
	struct wire_pkt pkt = tcp_pkt("2001:db8::9", "ff02::1:ff00:1");
	static const uint8_t mine[6] = {0x33, 0x33, 0xff, 0, 0, 1};
	static const uint8_t foreign[6] = {0x33, 0x33, 0xff, 0, 0, 2};

	pkt.ip.proto = IP_ICMP6;
	memcpy(pkt.eth.dst, mine, 6);
	cr_assert_eq(net_accept(net, 3, &pkt), 0);
	memcpy(pkt.eth.dst, foreign, 6);
	cr_assert_eq(net_accept(net, 3, &pkt), -NET_NOT_FOR_US, "MAC and group contradict");
	pkt.ip.dst = addr("ff02::1:ff00:2");
	cr_assert_eq(net_accept(net, 3, &pkt), -NET_NOT_FOR_US);
}

Test(iface, rfc1122_3_2_1_3_impossible_sources_are_refused)
{
	static const char *const bad[] = {"224.0.0.9", "255.255.255.255", "0.0.0.0", "127.0.0.1"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(accepts(bad[i], "192.0.2.1"), -NET_BAD_SOURCE, "%s", bad[i]);
	cr_assert_eq(accepts("ff02::9", "2001:db8::1"), -NET_BAD_SOURCE);
	cr_assert_eq(accepts("::", "2001:db8::1"), -NET_BAD_SOURCE);
	cr_assert_eq(accepts("::1", "2001:db8::1"), -NET_BAD_SOURCE);
	cr_assert_eq(counted(NET_BAD_SOURCE), 7);
}

Test(iface, our_own_address_as_source_is_spoofed)
{
	cr_assert_eq(accepts("192.0.2.1", "192.0.2.1"), -NET_SPOOFED);
	cr_assert_eq(accepts("fe80::ff:fe00:1", "2001:db8::1"), -NET_SPOOFED);
	cr_assert_eq(counted(NET_SPOOFED), 2);
}

Test(iface, group_mac_as_source_is_refused)
{
	struct wire_pkt pkt = tcp_pkt("192.0.2.9", "192.0.2.1");

	pkt.eth.src[0] |= 1;
	cr_assert_eq(net_accept(net, 3, &pkt), -NET_BAD_SOURCE);
}

Test(iface, ieee802_1q_each_vlan_is_its_own_interface)
{
	struct sk_addr a = addr("198.51.100.1");
	struct wire_pkt pkt = tcp_pkt("198.51.100.9", "198.51.100.1");
	int vif = net_if_add(net, 3, 42, my_mac, 1500);

	net_addr_add(net, vif, &a, 24, 0);
	cr_assert_eq(net_if_index(net, 3, 42), vif);
	cr_assert_eq(net_accept(net, 3, &pkt), -NET_NOT_FOR_US);
	pkt.eth.vlan = 42;
	cr_assert_eq(net_accept(net, 3, &pkt), 0);
	pkt.eth.vlan = 43;
	cr_assert_eq(net_accept(net, 3, &pkt), -NET_NO_INTERFACE);
	pkt.eth.vlan = 42;
	cr_assert_eq(net_accept(net, 4, &pkt), -NET_NO_INTERFACE);
	cr_assert_eq(counted(NET_NO_INTERFACE), 2);
}

Test(iface, loop_port_joins_our_own_addresses)
{
	struct sk_addr src = {{0}}, me = addr("192.0.2.1");
	struct wire_pkt pkt = tcp_pkt("192.0.2.1", "192.0.2.1");
	struct net_path p;
	int loop;

	cr_assert_eq(net_path_init(net, &p, &src, &me, IP_TCP, 0), -ENETUNREACH);
	loop = net_if_add_loop(net, 9, 65535);
	cr_assert_geq(loop, 0);
	cr_assert_eq(net_if_add_loop(net, 8, 65535), -EEXIST);
	cr_assert_eq(net_path_init(net, &p, &src, &me, IP_TCP, 0), 0);
	cr_assert(sk_addr_eq(&src, &me));
	cr_assert_eq(p.port, 9);
	cr_assert_eq(p.mtu, 65535);
	cr_assert_eq(net_path_check(net, &p, 0), 0);
	cr_assert_eq(net_if_index(net, 9, ETH_NO_VLAN), loop);
	memset(pkt.eth.dst, 0, 6);
	memset(pkt.eth.src, 0, 6);
	cr_assert_eq(net_accept(net, 9, &pkt), 0);
	cr_assert_eq(net_accept(net, 3, &pkt), -NET_NOT_FOR_US);
	pkt.ip.src = addr("192.0.2.9");
	cr_assert_eq(net_accept(net, 9, &pkt), -NET_BAD_SOURCE);
}

/* ---- net_addr_share() ---- */

static const char shared[] = "198.51.100.1", shared6[] = "2001:db8:1::1";

static void
share(void)
{
	struct sk_addr a = addr(shared), b = addr(shared6);

	cr_assert_eq(net_addr_share(net, 0, &a, 24), 0);
	cr_assert_eq(net_addr_share(net, 0, &b, 64), 0);
	cr_assert_eq(net_addr_share(net, 0, &a, 24), -EEXIST);
	cr_assert_eq(rec.nsent, 0, "it is announced");
}

Test(iface, a_shared_address_is_taken_and_not_answered_for)
{
	struct wire_pkt ns =
		nd_pkt(ICMP_NEIGHBOR_SOLICIT, peer_mac, "2001:db8::9", shared6, shared6);

	share();
	cr_assert_eq(accepts("192.0.2.9", shared), 0);
	cr_assert_eq(accepts("2001:db8::9", shared6), 0);
	in_arp(0, ARP_REQUEST, peer_mac, "198.51.100.9", shared, broadcast_mac);
	in_pkt(0, &ns);
	cr_assert_eq(rec.nsent, 0);
}

/* Another host with the shared address may send to us, and its MAC address is learned. */
Test(iface, a_shared_address_is_anothers_as_well)
{
	struct sk_addr a = addr(shared), src = a;
	struct net_path p;

	share();
	cr_assert_eq(accepts(shared, shared), 0);
	cr_assert_eq(net_path_init(net, &p, &src, &a, IP_UDP, 0), 0);
	cr_assert_eq(net_path_check(net, &p, 0), 1, "it leads to the link");
	cr_assert_eq(last_sent()->pkt.eth.type, ETH_ARP);
	a = addr("192.0.2.1");
	cr_assert(sk_addr_eq(&last_sent()->pkt.arp.spa, &a), "asked in its name");
	cr_assert_eq(in_arp(0, ARP_REPLY, peer_mac, shared, "192.0.2.1", my_mac), 0);
	cr_assert_eq(net_path_check(net, &p, 0), 0);
	cr_assert_arr_eq(p.head, peer_mac, 6);
}

Test(iface, a_shared_address_is_a_source_where_it_is_asked_for)
{
	struct sk_addr src = addr(shared), none = {0}, dst = addr("198.51.100.9");
	struct net_path p;

	share();
	cr_assert_eq(net_path_init(net, &p, &src, &dst, IP_UDP, 0), 0);
	cr_assert_eq(net_path_init(net, &p, &none, &dst, IP_UDP, 0), 0);
	src = addr("192.0.2.1");
	cr_assert(sk_addr_eq(&none, &src));
	src = addr("198.51.100.2");
	cr_assert_eq(net_path_init(net, &p, &src, &dst, IP_UDP, 0), -EADDRNOTAVAIL);
}
