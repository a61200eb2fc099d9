/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP: RFC 826, RFC 5227, RFC 1122 2.3.2. */
#include "fixture.h"

TestSuite(arp, .init = net_fixture, .fini = net_fixture_end);

static bool
is_addr(const struct sk_addr *a, const char *text)
{
	struct sk_addr b = addr(text);

	return sk_addr_eq(a, &b);
}

Test(arp, rfc826_request_for_us_is_answered)
{
	const struct wire_arp *arp = &rec.sent[0].pkt.arp;

	cr_assert_eq(in_arp(0, ARP_REQUEST, peer_mac, "192.0.2.9", "192.0.2.1", broadcast_mac), 0);
	cr_assert_eq(rec.nsent, 1);
	cr_assert_eq(rec.sent[0].port, 3);
	cr_assert_eq(rec.sent[0].pkt.eth.type, ETH_ARP);
	cr_assert_arr_eq(rec.sent[0].pkt.eth.dst, peer_mac, 6);
	cr_assert_arr_eq(rec.sent[0].pkt.eth.src, my_mac, 6);
	cr_assert_eq(arp->op, ARP_REPLY);
	cr_assert_arr_eq(arp->sha, my_mac, 6);
	cr_assert_arr_eq(arp->tha, peer_mac, 6);
	cr_assert(is_addr(&arp->spa, "192.0.2.1"));
	cr_assert(is_addr(&arp->tpa, "192.0.2.9"));
	cr_assert_eq(counted(NET_ARP_IN), 1);
}

Test(arp, rfc826_requester_is_remembered)
{
	uint8_t mac[6];

	in_arp(0, ARP_REQUEST, peer_mac, "192.0.2.9", "192.0.2.1", broadcast_mac);
	cr_assert_str_eq(state_of("192.0.2.9", mac), "stale");
	cr_assert_arr_eq(mac, peer_mac, 6);
}

Test(arp, rfc826_request_for_others_is_not_answered_nor_remembered)
{
	cr_assert_eq(in_arp(0, ARP_REQUEST, peer_mac, "192.0.2.9", "192.0.2.77", broadcast_mac),
		-NET_NOT_FOR_US);
	cr_assert_eq(rec.nsent, 0);
	cr_assert_str_eq(state_of("192.0.2.9", NULL), "absent");
	cr_assert_eq(counted(NET_NOT_FOR_US), 1);
}

Test(arp, rfc826_question_goes_to_all_and_its_answer_resolves)
{
	struct net_path p;
	uint8_t mac[6];

	path_to(&p, "192.0.2.9");
	cr_assert_eq(net_path_check(net, &p, 0), 1);
	cr_assert_eq(rec.nsent, 1);
	cr_assert_arr_eq(last_sent()->pkt.eth.dst, broadcast_mac, 6);
	cr_assert_eq(last_sent()->pkt.arp.op, ARP_REQUEST);
	cr_assert(is_addr(&last_sent()->pkt.arp.spa, "192.0.2.1"));
	cr_assert(is_addr(&last_sent()->pkt.arp.tpa, "192.0.2.9"));
	cr_assert_eq(in_arp(0, ARP_REPLY, peer_mac, "192.0.2.9", "192.0.2.1", my_mac), 0);
	cr_assert_str_eq(state_of("192.0.2.9", mac), "reachable");
	cr_assert_arr_eq(mac, peer_mac, 6);
}

Test(arp, rfc826_unasked_reply_changes_nothing)
{
	struct net_path p;
	uint8_t mac[6];

	cr_assert_eq(
		in_arp(0, ARP_REPLY, peer_mac, "192.0.2.8", "192.0.2.1", my_mac), -NET_UNASKED);
	cr_assert_str_eq(state_of("192.0.2.8", NULL), "absent");
	path_resolved(&p, "192.0.2.9", 0);
	cr_assert_eq(
		in_arp(0, ARP_REPLY, other_mac, "192.0.2.9", "192.0.2.1", my_mac), -NET_UNASKED);
	cr_assert_str_eq(state_of("192.0.2.9", mac), "reachable");
	cr_assert_arr_eq(mac, peer_mac, 6);
	cr_assert_eq(counted(NET_UNASKED), 2);
}

Test(arp, rfc826_reply_sent_to_all_does_not_resolve)
{
	struct net_path p;

	path_to(&p, "192.0.2.9");
	net_path_check(net, &p, 0);
	cr_assert_eq(in_arp(0, ARP_REPLY, peer_mac, "192.0.2.9", "192.0.2.1", broadcast_mac),
		-NET_UNASKED);
	cr_assert_eq(net_path_check(net, &p, 0), 1);
}

Test(arp, rfc5227_announcement_corrects_what_is_known)
{
	struct net_path p;
	uint8_t mac[6];

	path_resolved(&p, "192.0.2.9", 0);
	cr_assert_eq(in_arp(0, ARP_REQUEST, other_mac, "192.0.2.9", "192.0.2.9", broadcast_mac), 0);
	cr_assert_str_eq(state_of("192.0.2.9", mac), "stale");
	cr_assert_arr_eq(mac, other_mac, 6);
	cr_assert_eq(net_path_check(net, &p, 0), 0);
	cr_assert_arr_eq(p.head, other_mac, 6);
}

Test(arp, rfc5227_announcement_of_a_stranger_adds_nothing)
{
	cr_assert_eq(in_arp(0, ARP_REQUEST, peer_mac, "192.0.2.9", "192.0.2.9", broadcast_mac),
		-NET_NOT_FOR_US);
	cr_assert_str_eq(state_of("192.0.2.9", NULL), "absent");
}

Test(arp, rfc5227_2_1_1_probe_is_answered_and_not_remembered)
{
	cr_assert_eq(in_arp(0, ARP_REQUEST, peer_mac, "0.0.0.0", "192.0.2.1", broadcast_mac), 0);
	cr_assert_eq(rec.nsent, 1);
	cr_assert_str_eq(state_of("0.0.0.0", NULL), "absent");
}

Test(arp, rfc5227_new_address_is_announced)
{
	struct sk_addr a = addr("192.0.2.7");

	cr_assert_eq(net_addr_add(net, 0, &a, 24, 0), 0);
	cr_assert_eq(rec.nsent, 1);
	cr_assert_arr_eq(last_sent()->pkt.eth.dst, broadcast_mac, 6);
	cr_assert(is_addr(&last_sent()->pkt.arp.spa, "192.0.2.7"));
	cr_assert(is_addr(&last_sent()->pkt.arp.tpa, "192.0.2.7"));
}

Test(arp, our_own_address_as_sender_is_spoofed)
{
	cr_assert_eq(in_arp(0, ARP_REQUEST, peer_mac, "192.0.2.1", "192.0.2.1", broadcast_mac),
		-NET_SPOOFED);
	cr_assert_eq(
		in_arp(0, ARP_REPLY, peer_mac, "192.0.2.1", "192.0.2.1", my_mac), -NET_SPOOFED);
	cr_assert_eq(counted(NET_SPOOFED), 2);
	cr_assert_eq(rec.nsent, 0);
}

Test(arp, group_or_broadcast_senders_are_refused)
{
	static const uint8_t group[6] = {0x01, 0, 0x5e, 0, 0, 1};

	cr_assert_eq(
		in_arp(0, ARP_REQUEST, group, "192.0.2.9", "192.0.2.1", my_mac), -NET_BAD_SOURCE);
	cr_assert_eq(in_arp(0, ARP_REQUEST, peer_mac, "224.0.0.1", "192.0.2.1", my_mac),
		-NET_BAD_SOURCE);
	cr_assert_eq(in_arp(0, ARP_REQUEST, peer_mac, "255.255.255.255", "192.0.2.1", my_mac),
		-NET_BAD_SOURCE);
	cr_assert_eq(rec.nsent, 0);
}

Test(arp, frame_for_another_station_is_left_alone)
{
	cr_assert_eq(in_arp(0, ARP_REQUEST, peer_mac, "192.0.2.9", "192.0.2.1", other_mac),
		-NET_NOT_FOR_US);
	cr_assert_eq(rec.nsent, 0);
}

Test(arp, rfc1122_2_3_2_1_questions_are_at_most_one_a_second)
{
	struct net_path p;

	path_to(&p, "192.0.2.9");
	for (uint64_t t = 0; t < S; t += S / 100) {
		net_poll(net, t);
		cr_assert_eq(net_path_check(net, &p, t), 1);
	}
	cr_assert_eq(rec.nsent, 1);
	net_poll(net, S + S / 100);
	cr_assert_eq(rec.nsent, 2);
}

Test(arp, fixed_neighbour_is_neither_asked_nor_changed)
{
	struct sk_addr a = addr("192.0.2.9");
	struct net_path p;
	uint8_t mac[6];

	cr_assert_eq(net_neighbor_add(net, 0, &a, other_mac), 0);
	path_to(&p, "192.0.2.9");
	cr_assert_eq(net_path_check(net, &p, 0), 0);
	cr_assert_arr_eq(p.head, other_mac, 6);
	cr_assert_eq(rec.nsent, 0);
	in_arp(0, ARP_REQUEST, peer_mac, "192.0.2.9", "192.0.2.1", broadcast_mac);
	cr_assert_str_eq(state_of("192.0.2.9", mac), "static");
	cr_assert_arr_eq(mac, other_mac, 6);
}

Test(arp, answers_are_limited_in_rate_and_neighbours_in_use_keep_theirs)
{
	struct net_path path;
	int first = 0, second = 0;

	path_resolved(&path, "192.0.2.9", 0);
	rec.nsent = 0;
	for (int i = 0; i < 2000; i++)
		first += in_arp(10 * S, ARP_REQUEST, peer_mac, "192.0.2.8", "192.0.2.1",
				 broadcast_mac) == 0;
	cr_assert_eq(first, 512);
	cr_assert_eq(counted(NET_ANSWER_LIMIT), 2000 - 512);
	cr_assert_eq(
		in_arp(10 * S, ARP_REQUEST, peer_mac, "192.0.2.9", "192.0.2.1", broadcast_mac), 0);
	for (int i = 0; i < 2000; i++)
		second += in_arp(10 * S + S / 50, ARP_REQUEST, peer_mac, "192.0.2.8", "192.0.2.1",
				  broadcast_mac) == 0;
	cr_assert_eq(second, 100, "5000 a second");
	cr_assert_eq(rec.nsent, 512 + 1 + 100);
}
