/* SPDX-License-Identifier: BSD-3-Clause */
/* Reachability (RFC 4861 7.3), the frames that wait, and the limits of the table. */
#include "fixture.h"

#define PEER "192.0.2.9"

TestSuite(neighbor, .init = net_fixture, .fini = net_fixture_end);

/* Polls at each deadline, up to `until`. */
static void
run(uint64_t until)
{
	uint64_t at;

	while ((at = net_deadline(net)) <= until)
		net_poll(net, at);
	net_poll(net, until);
}

Test(neighbor, rfc4861_7_3_2_reachable_becomes_stale_after_its_time)
{
	struct net_path p;

	path_resolved(&p, PEER, 0);
	run(29 * S);
	cr_assert_str_eq(state_of(PEER, NULL), "reachable");
	run(31 * S);
	cr_assert_str_eq(state_of(PEER, NULL), "stale");
	cr_assert_eq(rec.nsent, 1, "nothing is asked while nothing is sent");
	cr_assert_eq(net_deadline(net), UINT64_MAX, "a stale neighbour costs no timer");
}

Test(neighbor, rfc4861_7_3_1_progress_above_keeps_it_reachable)
{
	struct net_path p;

	path_resolved(&p, PEER, 0);
	for (uint64_t t = 0; t < 100 * S; t += 10 * S) {
		run(t);
		cr_assert_eq(net_path_check(net, &p, t), 0);
		net_path_confirm(net, &p, t);
	}
	cr_assert_str_eq(state_of(PEER, NULL), "reachable");
	cr_assert_eq(rec.nsent, 1);
}

Test(neighbor, rfc4861_7_3_3_use_of_a_stale_one_waits_five_seconds_then_probes)
{
	struct net_path p;

	path_resolved(&p, PEER, 0);
	run(31 * S);
	cr_assert_eq(net_path_check(net, &p, 31 * S), 0, "frames go meanwhile");
	run(35 * S);
	cr_assert_eq(rec.nsent, 1);
	run(36 * S + S / 10);
	cr_assert_eq(rec.nsent, 2);
	cr_assert_arr_eq(last_sent()->pkt.eth.dst, peer_mac, 6, "the probe is unicast");
	cr_assert_str_eq(state_of(PEER, NULL), "probing");
	cr_assert_eq(net_path_check(net, &p, 36 * S), 0);
	cr_assert_eq(in_arp(37 * S, ARP_REPLY, peer_mac, PEER, "192.0.2.1", my_mac), 0);
	cr_assert_str_eq(state_of(PEER, NULL), "reachable");
	cr_assert_eq(net_path_check(net, &p, 37 * S), 0);
}

Test(neighbor, rfc4861_7_3_3_confirmation_during_the_delay_saves_the_probe)
{
	struct net_path p;

	path_resolved(&p, PEER, 0);
	run(31 * S);
	net_path_check(net, &p, 31 * S);
	net_path_confirm(net, &p, 32 * S);
	run(40 * S);
	cr_assert_eq(rec.nsent, 1);
	cr_assert_str_eq(state_of(PEER, NULL), "reachable");
}

Test(neighbor, rfc4861_7_3_3_three_probes_then_the_entry_goes)
{
	struct net_path p;

	path_resolved(&p, PEER, 0);
	run(31 * S);
	net_path_check(net, &p, 31 * S);
	run(50 * S);
	cr_assert_eq(rec.nsent, 1 + 3);
	cr_assert_str_eq(state_of(PEER, NULL), "absent");
	cr_assert_eq(counted(NET_NEIGHBOR_FAILED), 1);
	cr_assert_eq(net_path_check(net, &p, 50 * S), 1, "and is asked for anew");
	cr_assert_arr_eq(last_sent()->pkt.eth.dst, broadcast_mac, 6);
}

Test(neighbor, a_port_that_lost_its_link_has_no_neighbours_but_fixed_ones)
{
	const uint8_t fixed_mac[6] = {2, 0, 0, 0, 0, 9};
	struct sk_addr fixed;
	struct net_path p;

	cr_assert_eq(sk_addr_parse("192.0.2.99", &fixed), 0);
	path_resolved(&p, PEER, 0);
	cr_assert_eq(net_neighbor_add(net, 0, &fixed, fixed_mac), 0);
	net_port_forget(net, 4);
	cr_assert_str_eq(state_of(PEER, NULL), "reachable", "another port's");
	net_port_forget(net, 3);
	cr_assert_str_eq(state_of(PEER, NULL), "absent");
	cr_assert_str_eq(state_of("192.0.2.99", NULL), "static");
	cr_assert_eq(net_path_check(net, &p, S), 1, "and is asked for anew");
	cr_assert_arr_eq(last_sent()->pkt.eth.dst, broadcast_mac, 6);
}

Test(neighbor, rfc4861_7_2_2_three_questions_then_unreachable)
{
	struct net_path p;

	path_to(&p, PEER);
	net_path_check(net, &p, 0);
	run(3 * S + S / 10);
	cr_assert_eq(rec.nsent, 3);
	cr_assert_str_eq(state_of(PEER, NULL), "failed");
	cr_assert_eq(net_path_check(net, &p, 4 * S), -EHOSTUNREACH);
	cr_assert_eq(rec.nsent, 3);
	run(7 * S);
	cr_assert_eq(net_path_check(net, &p, 7 * S), 1, "later it is asked again");
	cr_assert_eq(rec.nsent, 4);
}

Test(neighbor, rfc1122_2_3_2_2_waiting_frames_go_in_order_when_it_answers)
{
	struct net_path p;
	int frame[3];

	path_to(&p, PEER);
	net_path_check(net, &p, 0);
	for (int i = 0; i < 3; i++)
		net_hold(net, &p, &frame[i]);
	cr_assert_eq(rec.nreleased, 0);
	in_arp(0, ARP_REPLY, peer_mac, PEER, "192.0.2.1", my_mac);
	cr_assert_eq(rec.nreleased, 3);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(rec.released[i].frame, &frame[i]);
		cr_assert_eq(rec.released[i].port, 3);
		cr_assert_not(rec.released[i].dropped);
		cr_assert_arr_eq(rec.released[i].mac, peer_mac, 6);
	}
	cr_assert_eq(counted(NET_HELD_DROPPED), 0);
}

Test(neighbor, held_frames_are_bounded_and_the_oldest_goes_first)
{
	struct net_path p;
	int frame[NET_NEIGHBOR_HELD + 1];

	path_to(&p, PEER);
	net_path_check(net, &p, 0);
	for (int i = 0; i < NET_NEIGHBOR_HELD; i++)
		net_hold(net, &p, &frame[i]);
	cr_assert_eq(rec.nreleased, 0);
	net_hold(net, &p, &frame[NET_NEIGHBOR_HELD]);
	cr_assert_eq(rec.nreleased, 1);
	cr_assert_eq(rec.released[0].frame, &frame[0]);
	cr_assert(rec.released[0].dropped);
	cr_assert_eq(counted(NET_HELD_DROPPED), 1);
	in_arp(0, ARP_REPLY, peer_mac, PEER, "192.0.2.1", my_mac);
	cr_assert_eq(rec.nreleased, 1 + NET_NEIGHBOR_HELD);
	cr_assert_eq(rec.released[NET_NEIGHBOR_HELD].frame, &frame[NET_NEIGHBOR_HELD]);
}

Test(neighbor, held_frames_come_back_when_it_does_not_answer)
{
	struct net_path p;
	int frame[2];

	path_to(&p, PEER);
	net_path_check(net, &p, 0);
	net_hold(net, &p, &frame[0]);
	net_hold(net, &p, &frame[1]);
	run(4 * S);
	cr_assert_eq(rec.nreleased, 2);
	cr_assert(rec.released[0].dropped && rec.released[1].dropped);
	cr_assert_eq(counted(NET_HELD_DROPPED), 2);
	net_hold(net, &p, &frame[0]);
	cr_assert_eq(rec.nreleased, 3, "a frame for a failed one is not kept");
	cr_assert(rec.released[2].dropped);
}

Test(neighbor, held_frame_that_comes_after_the_answer_goes_at_once)
{
	struct net_path p;
	int frame;

	path_to(&p, PEER);
	net_path_check(net, &p, 0);
	in_arp(0, ARP_REPLY, peer_mac, PEER, "192.0.2.1", my_mac);
	net_hold(net, &p, &frame);
	cr_assert_eq(rec.nreleased, 1);
	cr_assert_arr_eq(rec.released[0].mac, peer_mac, 6);
}

Test(neighbor, held_frames_come_back_at_the_end)
{
	struct net_path p;
	int frame;

	path_to(&p, PEER);
	net_path_check(net, &p, 0);
	net_hold(net, &p, &frame);
	net_destroy(net);
	net = NULL;
	cr_assert_eq(rec.nreleased, 1);
	cr_assert(rec.released[0].dropped);
}

static struct sk_addr
nth(unsigned i)
{
	struct sk_addr a = addr("2001:db8::");

	a.b[13] = 1;
	a.b[14] = (uint8_t)(i >> 8);
	a.b[15] = (uint8_t)i;
	return a;
}

Test(neighbor, rfc6583_questions_do_not_push_out_what_is_in_use)
{
	struct sk_addr src = addr("2001:db8::1");
	struct net_path used, p;
	int frame;

	path_resolved(&used, "2001:db8::9", 0);
	for (unsigned i = 0; i < 3 * NET_MAX_NEIGHBORS; i++) {
		struct sk_addr dst = nth(i);

		cr_assert_eq(net_path_init(net, &p, &src, &dst, IP_TCP, 0), 0);
		cr_assert_eq(net_path_check(net, &p, 0), 1);
		if (i == 0)
			net_hold(net, &p, &frame);
	}
	cr_assert_gt(counted(NET_NEIGHBOR_FULL), 0);
	cr_assert_eq(rec.nreleased, 1, "an evicted entry gives back what it held");
	cr_assert(rec.released[0].dropped);
	cr_assert_str_eq(state_of("2001:db8::9", NULL), "reachable");
	cr_assert_eq(net_path_check(net, &used, 0), 0);
}

Test(neighbor, requests_of_strangers_do_not_push_out_what_is_in_use)
{
	struct net_path used;

	path_resolved(&used, "2001:db8::9", 0);
	for (unsigned i = 0; i < 2 * NET_MAX_NEIGHBORS; i++) {
		struct wire_pkt ns = nd_pkt(ICMP_NEIGHBOR_SOLICIT, other_mac, "2001:db8::5",
			"ff02::1:ff00:1", "2001:db8::1");

		ns.ip.src = nth(i);
		cr_assert_eq(in_pkt(i * 250000ull, &ns), 0);
	}
	cr_assert_eq(counted(NET_NEIGHBOR_FULL), NET_MAX_NEIGHBORS + 1);
	cr_assert_str_eq(state_of("2001:db8::9", NULL), "reachable");
}

Test(neighbor, full_of_used_ones_the_oldest_gives_way_to_a_path_and_to_no_stranger)
{
	struct sk_addr src = addr("2001:db8::1"), dst;
	struct wire_pkt nd =
		nd_pkt(ICMP_NEIGHBOR_ADVERT, peer_mac, "2001:db8::9", "2001:db8::1", "2001:db8::9");
	struct net_path p, first;

	nd.icmp.solicited = nd.icmp.override = true;
	for (unsigned i = 0; i < NET_MAX_NEIGHBORS; i++) {
		dst = nth(i);
		cr_assert_eq(net_path_init(net, &p, &src, &dst, IP_TCP, 0), 0);
		cr_assert_eq(net_path_check(net, &p, 0), 1);
		nd.icmp.target = dst;
		cr_assert_eq(in_pkt(0, &nd), 0);
		cr_assert_eq(net_path_check(net, &p, 0), 0);
		if (i == 0)
			first = p;
	}
	cr_assert_eq(counted(NET_NEIGHBOR_FULL), 0);
	nd = nd_pkt(
		ICMP_NEIGHBOR_SOLICIT, other_mac, "2001:db8::5", "ff02::1:ff00:1", "2001:db8::1");
	cr_assert_eq(in_pkt(0, &nd), 0, "a stranger is answered");
	cr_assert_eq(counted(NET_NEIGHBOR_FULL), 1);
	cr_assert_str_eq(state_of("2001:db8::5", NULL), "absent", "and not remembered");
	cr_assert_eq(net_path_check(net, &first, 0), 0);
	path_to(&p, "2001:db8::7");
	cr_assert_eq(net_path_check(net, &p, 0), 1);
	cr_assert_eq(net_path_check(net, &first, 0), 1, "the oldest has to be asked again");
	path_to(&p, "2001:db8::8");
	cr_assert_eq(net_path_check(net, &p, 0), 1);
	cr_assert_eq(counted(NET_NEIGHBOR_FULL), 4);
}

Test(neighbor, stale_handle_does_not_send_to_the_next_owner_of_its_slot)
{
	struct sk_addr src = addr("2001:db8::1"), dst = nth(0);
	struct net_path first, p;
	int frame;

	cr_assert_eq(net_path_init(net, &first, &src, &dst, IP_TCP, 0), 0);
	cr_assert_eq(net_path_check(net, &first, 0), 1);
	for (unsigned i = 1; i < 2 * NET_MAX_NEIGHBORS; i++) {
		dst = nth(i);
		net_path_init(net, &p, &src, &dst, IP_TCP, 0);
		net_path_check(net, &p, 0);
	}
	net_hold(net, &first, &frame);
	cr_assert_eq(rec.nreleased, 1);
	cr_assert(rec.released[0].dropped);
}

Test(neighbor, fixed_neighbours_leave_room_for_others)
{
	unsigned i;

	for (i = 0; i < NET_MAX_NEIGHBORS; i++) {
		struct sk_addr a = nth(i);

		if (net_neighbor_add(net, 0, &a, peer_mac) != 0)
			break;
	}
	cr_assert_eq(i, NET_MAX_NEIGHBORS / 2);
}
