/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes before a segment (RFC 791, RFC 1071, RFC 8200, RFC 3168, IEEE 802.1Q), and the events
 * after which a path makes them again. */
#include "fixture.h"

TestSuite(path, .init = net_fixture, .fini = net_fixture_end);

Test(path, rfc791_head_as_on_the_wire)
{
	/* The checksum was computed by hand: 4500 0428 1234 4000 4006 0000 c000 0201 c000 0209. */
	static const uint8_t want[34] = {0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 0x08, 0x00, 0x45,
		0x00, 0x04, 0x28, 0x12, 0x34, 0x40, 0x00, 0x40, 0x06, 0xa0, 0x91, 192, 0, 2, 1, 192,
		0, 2, 9};
	struct net_path p;
	uint8_t at[64];

	path_resolved(&p, "192.0.2.9", 0);
	cr_assert_eq(net_head_emit(at, &p, 1044, IP_ECN_NOT, 0x1234, false), 34);
	cr_assert_arr_eq(at, want, 34);
	cr_assert_eq(p.l2_len, 14);
	cr_assert_eq(p.l3_len, 20);
	cr_assert_eq(p.mtu, 1500);
	cr_assert_eq(p.port, 3);
}

Test(path, rfc1071_checksum_is_right_for_every_length_id_and_ecn)
{
	struct net_path p;
	uint8_t at[64];
	uint32_t x = 1;

	path_resolved(&p, "192.0.2.9", 0);
	for (int i = 0; i < 20000; i++) {
		uint32_t len = x % 65516;
		uint16_t id = (uint16_t)(x >> 13);
		uint8_t ecn = x >> 30;

		net_head_emit(at, &p, len, ecn, id, false);
		cr_assert_eq(wire_sum_fold(wire_sum(0, at + 14, 20)), 0, "%u %u %u", len, id, ecn);
		cr_assert_eq(at[15], ecn);
		cr_assert_eq(at[16] << 8 | at[17], (int)len + 20);
		cr_assert_eq(at[18] << 8 | at[19], id);
		x = x * 1664525 + 1013904223;
	}
}

Test(path, checksum_is_left_to_the_port_when_it_can)
{
	struct net_path p;
	uint8_t at[64];

	path_resolved(&p, "192.0.2.9", 0);
	memset(at, 0xee, sizeof(at));
	net_head_emit(at, &p, 100, IP_ECN_ECT0, 7, true);
	cr_assert_eq(at[24] | at[25], 0);
	cr_assert_eq(at[34], 0xee, "nothing is written behind the head");
}

Test(path, rfc8200_head_length_ecn_and_flow_label)
{
	struct wire_ip ip;
	struct net_path p, q;
	uint8_t at[2048];

	path_resolved(&p, "2001:db8::9", 0);
	cr_assert_eq(net_head_emit(at, &p, 1440, IP_ECN_CE, 0, false), 54);
	cr_assert_eq(wire_ip6_parse(&ip, at + 14, 40 + 1440), 40);
	cr_assert_eq(ip.payload_len, 1440);
	cr_assert_eq(ip.ecn, IP_ECN_CE);
	cr_assert_eq(ip.dscp, 0);
	cr_assert_eq(ip.proto, IP_TCP);
	cr_assert_eq(ip.ttl, 64);
	path_to(&q, "2001:db8::9");
	cr_assert(memcmp(p.head + 15, q.head + 15, 3) != 0, "RFC 6437: each path has its label");
}

Test(path, ieee802_1q_tag_stands_in_the_head)
{
	struct sk_addr a = addr("198.51.100.1"), dst = addr("198.51.100.9"), src = {{0}};
	int vif = net_if_add(net, 3, 42, my_mac, 9000);
	struct net_path p;
	uint8_t at[64];

	cr_assert_eq(vif, 1);
	cr_assert_eq(net_addr_add(net, vif, &a, 24, 0), 0);
	cr_assert_eq(net_path_init(net, &p, &src, &dst, IP_TCP, 0), 0);
	cr_assert_eq(p.mtu, 9000);
	cr_assert_eq(p.ifindex, 1);
	cr_assert_eq(net_head_emit(at, &p, 20, 0, 0, false), 38);
	cr_assert_eq(at[12] << 8 | at[13], 0x8100);
	cr_assert_eq(at[14] << 8 | at[15], 42);
	cr_assert_eq(at[16] << 8 | at[17], ETH_IPV4);
	cr_assert_eq(wire_sum_fold(wire_sum(0, at + 18, 20)), 0);
	cr_assert_eq(net_path_check(net, &p, 0), 1);
	cr_assert_eq(last_sent()->pkt.eth.vlan, 42, "the question is tagged too");
}

/* ---- The class of a path ---- */

Test(path, class_sets_dscp_and_leaves_ecn_to_the_transport_rfc2474_3)
{
	const struct net_class class = {.dscp = 46, .pcp = 5, .flow = 0x12345};
	struct net_path p;
	uint8_t at[64];

	path_resolved(&p, "192.0.2.9", 0);
	net_path_set_class(&p, &class);
	cr_assert_eq(net_path_check(net, &p, 0), 0, "the path stays resolved");
	for (uint8_t ecn = 0; ecn < 4; ecn++) {
		cr_assert_eq(net_head_emit(at, &p, 100, ecn, 7, false), 34, "no VLAN tag");
		cr_assert_eq(at[15], 46 << 2 | ecn);
		cr_assert_eq(wire_sum_fold(wire_sum(0, at + 14, 20)), 0);
		net_head_emit_v4(at, &p, 100, ecn, 7);
		cr_assert_eq(at[15], 46 << 2 | ecn);
		cr_assert_eq(wire_sum_fold(wire_sum(0, at + 14, 20)), 0);
	}
	net_path_set_class(&p, &(struct net_class){0});
	net_head_emit(at, &p, 100, IP_ECN_ECT0, 7, false);
	cr_assert_eq(at[15], IP_ECN_ECT0);
	cr_assert_eq(wire_sum_fold(wire_sum(0, at + 14, 20)), 0);
}

Test(path, class_sets_traffic_class_and_flow_label_of_ipv6_rfc8200_3)
{
	struct net_class class = {.dscp = 0x2b};
	struct net_path p;
	struct wire_ip ip;
	uint8_t at[2048];
	uint32_t chosen;

	path_resolved(&p, "2001:db8::9", 0);
	net_head_emit(at, &p, 100, 0, 0, false);
	wire_ip6_parse(&ip, at + 14, 140);
	chosen = ip.flow;
	net_path_set_class(&p, &class);
	net_head_emit(at, &p, 100, IP_ECN_CE, 0, false);
	cr_assert_eq(wire_ip6_parse(&ip, at + 14, 140), 40);
	cr_assert_eq(ip.dscp, 0x2b);
	cr_assert_eq(ip.ecn, IP_ECN_CE);
	cr_assert_eq(ip.flow, chosen, "a label of 0 leaves the choice to the path");
	class.flow = 0xfffff;
	net_path_set_class(&p, &class);
	net_head_emit(at, &p, 100, IP_ECN_ECT0, 0, false);
	wire_ip6_parse(&ip, at + 14, 140);
	cr_assert_eq(ip.flow, 0xfffff);
	cr_assert_eq(ip.dscp, 0x2b);
	cr_assert_eq(ip.ecn, IP_ECN_ECT0);
	cr_assert_eq(p.class.flow, 0xfffff);
}

Test(path, class_sets_the_priority_of_the_tag_ieee802_1q_6_9)
{
	const struct net_class class = {.dscp = 8, .pcp = 6};
	struct sk_addr a = addr("198.51.100.1"), dst = addr("198.51.100.9"), src = {{0}};
	int vif = net_if_add(net, 3, 42, my_mac, 1500);
	struct net_path p;
	uint8_t at[64];

	cr_assert_eq(net_addr_add(net, vif, &a, 24, 0), 0);
	cr_assert_eq(net_path_init(net, &p, &src, &dst, IP_TCP, 0), 0);
	net_path_set_class(&p, &class);
	cr_assert_eq(net_head_emit(at, &p, 20, 0, 0, false), 38);
	cr_assert_eq(at[14] << 8 | at[15], 6 << 13 | 42);
	cr_assert_eq(at[19], 8 << 2);
	cr_assert_eq(wire_sum_fold(wire_sum(0, at + 18, 20)), 0);
}

Test(path, source_is_chosen_or_checked)
{
	struct sk_addr src = {{0}}, dst = addr("192.0.2.9");
	struct sk_addr want = addr("192.0.2.1"), foreign = addr("192.0.2.5");
	struct sk_addr v6 = addr("2001:db8::1");
	struct net_path p;

	cr_assert_eq(net_path_init(net, &p, &src, &dst, IP_TCP, 0), 0);
	cr_assert(sk_addr_eq(&src, &want));
	cr_assert_eq(net_path_init(net, &p, &foreign, &dst, IP_TCP, 0), -EADDRNOTAVAIL);
	cr_assert_eq(net_path_init(net, &p, &v6, &dst, IP_TCP, 0), -EADDRNOTAVAIL);
}

Test(path, generation_holds_while_nothing_changes)
{
	struct net_path p;
	uint32_t generation;

	path_resolved(&p, "192.0.2.9", 0);
	generation = p.generation;
	cr_assert_neq(generation, 0);
	for (int i = 0; i < 10; i++)
		cr_assert_eq(net_path_check(net, &p, (uint64_t)i), 0);
	cr_assert_eq(p.generation, generation);
	cr_assert_eq(rec.nsent, 1);
}

Test(path, generation_changes_with_the_mac)
{
	struct net_path p;
	uint32_t generation;

	path_resolved(&p, "192.0.2.9", 0);
	generation = p.generation;
	in_arp(0, ARP_REQUEST, other_mac, "192.0.2.9", "192.0.2.1", broadcast_mac);
	cr_assert_eq(net_path_check(net, &p, 0), 0);
	cr_assert_neq(p.generation, generation);
	cr_assert_arr_eq(p.head, other_mac, 6);
}

Test(path, confirmation_of_an_old_mac_does_not_count)
{
	struct net_path p;

	path_resolved(&p, "192.0.2.9", 0);
	in_arp(0, ARP_REQUEST, other_mac, "192.0.2.9", "192.0.2.1", broadcast_mac);
	net_path_confirm(net, &p, 0);
	cr_assert_str_eq(state_of("192.0.2.9", NULL), "stale");
}

Test(path, generation_ends_with_the_source_address)
{
	struct sk_addr a = addr("192.0.2.1");
	struct net_path p;

	path_resolved(&p, "192.0.2.9", 0);
	cr_assert_eq(net_addr_del(net, 0, &a), 0);
	cr_assert_eq(net_path_check(net, &p, 0), -EHOSTUNREACH);
	cr_assert_eq(net_addr_del(net, 0, &a), -EADDRNOTAVAIL);
}

Test(path, generation_changes_with_a_better_route)
{
	struct sk_addr far = addr("203.0.113.0"), gw1 = addr("192.0.2.253"),
		       gw2 = addr("192.0.2.254"), any = addr("0.0.0.0");
	struct net_path p;

	net_neighbor_add(net, 0, &gw1, peer_mac);
	net_neighbor_add(net, 0, &gw2, other_mac);
	cr_assert_eq(net_route_add(net, &any, 0, &gw1), 0);
	path_to(&p, "203.0.113.5");
	cr_assert_eq(net_path_check(net, &p, 0), 0);
	cr_assert_arr_eq(p.head, peer_mac, 6);
	cr_assert_eq(net_route_add(net, &far, 24, &gw2), 0);
	cr_assert_eq(net_path_check(net, &p, 0), 0);
	cr_assert_arr_eq(p.head, other_mac, 6);
}

Test(path, better_route_over_another_interface_makes_the_head_anew)
{
	struct sk_addr a = addr("198.51.100.1"), gw1 = addr("192.0.2.253"),
		       gw2 = addr("198.51.100.254"), any = addr("0.0.0.0"),
		       far = addr("203.0.113.0");
	int vif = net_if_add(net, 5, 42, other_mac, 9000);
	struct net_path p;
	struct wire_ip ip;
	uint8_t at[64];

	cr_assert_eq(net_addr_add(net, vif, &a, 24, 0), 0);
	net_neighbor_add(net, 0, &gw1, peer_mac);
	net_neighbor_add(net, vif, &gw2, peer_mac);
	cr_assert_eq(net_route_add(net, &any, 0, &gw1), 0);
	path_to(&p, "203.0.113.5");
	net_path_set_class(&p, &(struct net_class){.dscp = 10, .pcp = 3});
	cr_assert_eq(net_path_check(net, &p, 0), 0);
	cr_assert_eq(p.port, 3);
	cr_assert_eq(net_route_add(net, &far, 24, &gw2), 0);
	cr_assert_eq(net_path_check(net, &p, 0), 0);
	cr_assert_eq(p.port, 5);
	cr_assert_eq(p.mtu, 9000);
	cr_assert_eq(net_head_emit(at, &p, 0, 0, 9, false), 38);
	cr_assert_eq(at[14] << 8 | at[15], 3 << 13 | 42, "the class stays, with its tag");
	cr_assert_arr_eq(at + 6, other_mac, 6);
	cr_assert_eq(wire_ip4_parse(&ip, at + 18, 20), 20);
	cr_assert_eq(ip.dscp, 10);
	a = addr("192.0.2.1");
	cr_assert(sk_addr_eq(&ip.src, &a), "the connection keeps its address");
	a = addr("203.0.113.5");
	cr_assert(sk_addr_eq(&ip.dst, &a));
	cr_assert_eq(ip.proto, IP_TCP);
}

Test(path, ieee802_1q_tag_in_front_of_ipv6)
{
	struct sk_addr a = addr("2001:db8:1::1"), dst = addr("2001:db8:1::9"), src = {{0}};
	int vif = net_if_add(net, 3, 42, my_mac, 1500);
	struct net_path p;
	struct wire_ip ip;
	uint8_t at[2048];

	cr_assert_eq(net_addr_add(net, vif, &a, 64, 0), 0);
	cr_assert_eq(net_path_init(net, &p, &src, &dst, IP_TCP, 0), 0);
	cr_assert_eq(net_head_emit(at, &p, 20, IP_ECN_ECT0, 0, false), 58);
	cr_assert_eq(at[16] << 8 | at[17], ETH_IPV6);
	cr_assert_eq(wire_ip6_parse(&ip, at + 18, 60), 40);
	cr_assert(sk_addr_eq(&ip.dst, &dst) && sk_addr_eq(&ip.src, &a));
	cr_assert_eq(ip.ecn, IP_ECN_ECT0);
}

Test(path, rfc6724_source_has_the_scope_of_the_destination)
{
	struct sk_addr src = {{0}}, dst = addr("fe80::9"), want = addr("fe80::ff:fe00:1");
	struct net_path p;

	cr_assert_eq(net_path_init(net, &p, &src, &dst, IP_TCP, 0), 0);
	cr_assert(sk_addr_eq(&src, &want));
	src = (struct sk_addr){{0}};
	dst = addr("2001:db8::9");
	want = addr("2001:db8::1");
	cr_assert_eq(net_path_init(net, &p, &src, &dst, IP_TCP, 0), 0);
	cr_assert(sk_addr_eq(&src, &want));
}
