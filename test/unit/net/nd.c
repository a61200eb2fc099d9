/* SPDX-License-Identifier: BSD-3-Clause */
/* Neighbour discovery: RFC 4861, RFC 4862 5.4, RFC 4291 2.7. */
#include "fixture.h"

#define PEER    "2001:db8::9"
#define ME      "2001:db8::1"
#define MY_NODE "ff02::1:ff00:1" /* solicited-node group of ME */

TestSuite(nd, .init = net_fixture, .fini = net_fixture_end);

static bool
is_addr(const struct sk_addr *a, const char *text)
{
	struct sk_addr b = addr(text);

	return sk_addr_eq(a, &b);
}

static struct wire_pkt
solicit(void)
{
	return nd_pkt(ICMP_NEIGHBOR_SOLICIT, peer_mac, PEER, MY_NODE, ME);
}

static struct wire_pkt
advert(bool solicited, bool override)
{
	struct wire_pkt na = nd_pkt(ICMP_NEIGHBOR_ADVERT, other_mac, PEER, ME, PEER);

	na.icmp.solicited = solicited;
	na.icmp.override = override;
	return na;
}

/* Each rule of RFC 4861 7.1 is violated by one change of a valid message. */
static void
refused(const struct wire_pkt *pkt, const char *rule)
{
	uint64_t before = counted(NET_ND_BAD);

	cr_assert_eq(in_pkt(0, pkt), -NET_ND_BAD, "%s", rule);
	cr_assert_eq(counted(NET_ND_BAD), before + 1, "%s", rule);
	cr_assert_eq(rec.nsent, 0, "%s", rule);
	cr_assert_str_eq(state_of(PEER, NULL), "absent", "%s", rule);
}

Test(nd, rfc4861_7_1_1_bad_solicitations_are_refused)
{
	struct wire_pkt ns = solicit();

	ns.ip.ttl = 254;
	refused(&ns, "hop limit 255");
	ns = solicit();
	ns.icmp.code = 1;
	refused(&ns, "code 0");
	ns = solicit();
	ns.icmp.target = addr("ff02::1");
	refused(&ns, "target not multicast");
	ns = solicit();
	ns.ip.src = addr("::");
	refused(&ns, "unspecified source carries no link-layer option");
	ns = nd_pkt(ICMP_NEIGHBOR_SOLICIT, peer_mac, "::", ME, ME);
	ns.icmp.has_lladdr = false;
	refused(&ns, "unspecified source asks the solicited-node group");
}

Test(nd, rfc4861_7_1_2_bad_advertisements_are_refused)
{
	struct wire_pkt na = advert(true, true);

	na.ip.ttl = 64;
	refused(&na, "hop limit 255");
	na = advert(true, true);
	na.icmp.code = 1;
	refused(&na, "code 0");
	na = advert(true, true);
	na.icmp.target = addr("ff02::9");
	refused(&na, "target not multicast");
	na = nd_pkt(ICMP_NEIGHBOR_ADVERT, peer_mac, PEER, "ff02::1", PEER);
	na.icmp.solicited = true;
	refused(&na, "no solicited flag to a group");
}

Test(nd, rfc4861_7_2_4_solicitation_is_answered)
{
	struct wire_pkt ns = solicit();
	const struct sent *s = &rec.sent[0];

	cr_assert_eq(in_pkt(0, &ns), 0);
	cr_assert_eq(rec.nsent, 1);
	cr_assert_eq(s->pkt.icmp.kind, ICMP_NEIGHBOR_ADVERT);
	cr_assert_eq(s->pkt.ip.ttl, 255);
	cr_assert(is_addr(&s->pkt.ip.src, ME));
	cr_assert(is_addr(&s->pkt.ip.dst, PEER));
	cr_assert_arr_eq(s->pkt.eth.dst, peer_mac, 6);
	cr_assert(is_addr(&s->pkt.icmp.target, ME));
	cr_assert(s->pkt.icmp.solicited && s->pkt.icmp.override && !s->pkt.icmp.router);
	cr_assert(s->pkt.icmp.has_lladdr);
	cr_assert_arr_eq(s->pkt.icmp.lladdr, my_mac, 6);
	cr_assert_eq(counted(NET_ND_IN), 1);
}

Test(nd, rfc4861_7_2_3_solicitor_is_remembered_as_stale)
{
	struct wire_pkt ns = solicit();
	uint8_t mac[6];

	in_pkt(0, &ns);
	cr_assert_str_eq(state_of(PEER, mac), "stale");
	cr_assert_arr_eq(mac, peer_mac, 6);
}

Test(nd, rfc4861_7_2_3_solicitation_without_option_is_answered_to_its_sender)
{
	struct wire_pkt ns = solicit();

	ns.icmp.has_lladdr = false;
	cr_assert_eq(in_pkt(0, &ns), 0);
	cr_assert_arr_eq(last_sent()->pkt.eth.dst, peer_mac, 6);
	cr_assert_str_eq(state_of(PEER, NULL), "absent");
}

Test(nd, rfc4862_5_4_duplicate_detection_is_answered_to_all)
{
	struct wire_pkt ns = nd_pkt(ICMP_NEIGHBOR_SOLICIT, peer_mac, "::", MY_NODE, ME);
	static const uint8_t all[6] = {0x33, 0x33, 0, 0, 0, 1};

	ns.icmp.has_lladdr = false;
	cr_assert_eq(in_pkt(0, &ns), 0);
	cr_assert_eq(rec.nsent, 1);
	cr_assert(is_addr(&last_sent()->pkt.ip.dst, "ff02::1"));
	cr_assert_arr_eq(last_sent()->pkt.eth.dst, all, 6);
	cr_assert_not(last_sent()->pkt.icmp.solicited);
}

Test(nd, rfc4861_7_2_2_question_goes_to_the_solicited_node_group)
{
	static const uint8_t group[6] = {0x33, 0x33, 0xff, 0x00, 0x12, 0x34};
	struct net_path p;

	path_to(&p, "2001:db8::1234");
	cr_assert_eq(net_path_check(net, &p, 0), 1);
	cr_assert_eq(last_sent()->pkt.icmp.kind, ICMP_NEIGHBOR_SOLICIT);
	cr_assert_arr_eq(last_sent()->pkt.eth.dst, group, 6);
	cr_assert(is_addr(&last_sent()->pkt.ip.dst, "ff02::1:ff00:1234"));
	cr_assert(is_addr(&last_sent()->pkt.ip.src, ME));
	cr_assert_eq(last_sent()->pkt.ip.ttl, 255);
	cr_assert_arr_eq(last_sent()->pkt.icmp.lladdr, my_mac, 6);
}

Test(nd, rfc4861_7_2_5_advertisement_without_entry_is_dropped)
{
	struct wire_pkt na = advert(true, true);

	cr_assert_eq(in_pkt(0, &na), -NET_UNASKED);
	cr_assert_str_eq(state_of(PEER, NULL), "absent");
}

Test(nd, rfc4861_7_2_5_incomplete_needs_an_address)
{
	struct wire_pkt na = advert(true, true);
	struct net_path p;

	path_to(&p, PEER);
	net_path_check(net, &p, 0);
	na.icmp.has_lladdr = false;
	in_pkt(0, &na);
	cr_assert_eq(net_path_check(net, &p, 0), 1);
}

Test(nd, rfc4861_7_2_5_unsolicited_answer_to_incomplete_is_stale)
{
	struct wire_pkt na = advert(false, false);
	struct net_path p;

	path_to(&p, PEER);
	net_path_check(net, &p, 0);
	cr_assert_eq(in_pkt(0, &na), 0);
	cr_assert_str_eq(state_of(PEER, NULL), "stale");
	cr_assert_eq(net_path_check(net, &p, 0), 0);
}

Test(nd, rfc4861_7_2_5_without_override_the_address_stays)
{
	struct wire_pkt na = advert(true, false);
	struct net_path p;
	uint8_t mac[6];

	path_resolved(&p, PEER, 0);
	cr_assert_str_eq(state_of(PEER, NULL), "reachable");
	cr_assert_eq(in_pkt(0, &na), 0);
	cr_assert_str_eq(state_of(PEER, mac), "stale");
	cr_assert_arr_eq(mac, peer_mac, 6);
}

Test(nd, rfc4861_7_2_5_override_replaces_the_address)
{
	struct wire_pkt na = advert(false, true);
	struct net_path p;
	uint8_t mac[6];

	path_resolved(&p, PEER, 0);
	cr_assert_eq(in_pkt(0, &na), 0);
	cr_assert_str_eq(state_of(PEER, mac), "stale");
	cr_assert_arr_eq(mac, other_mac, 6);
	cr_assert_eq(net_deadline(net), UINT64_MAX, "a stale neighbour costs no timer");
	na.icmp.solicited = true;
	cr_assert_eq(in_pkt(0, &na), 0);
	cr_assert_str_eq(state_of(PEER, NULL), "reachable");
}

Test(nd, advertisement_of_our_own_address_is_spoofed)
{
	struct wire_pkt na = nd_pkt(ICMP_NEIGHBOR_ADVERT, peer_mac, PEER, "ff02::1", ME);

	cr_assert_eq(in_pkt(0, &na), -NET_SPOOFED);
}

Test(nd, rfc4861_7_2_6_new_address_is_announced_to_all_nodes)
{
	struct sk_addr a = addr("2001:db8::77");

	cr_assert_eq(net_addr_add(net, 0, &a, 64, 0), 0);
	cr_assert_eq(last_sent()->pkt.icmp.kind, ICMP_NEIGHBOR_ADVERT);
	cr_assert(is_addr(&last_sent()->pkt.icmp.target, "2001:db8::77"));
	cr_assert(is_addr(&last_sent()->pkt.ip.dst, "ff02::1"));
	cr_assert_not(last_sent()->pkt.icmp.solicited);
}

Test(nd, rfc4861_7_2_3_solicitation_for_the_link_local_address)
{
	struct wire_pkt ns = nd_pkt(
		ICMP_NEIGHBOR_SOLICIT, peer_mac, "fe80::9", "ff02::1:ff00:1", "fe80::ff:fe00:1");

	cr_assert_eq(in_pkt(0, &ns), 0);
	cr_assert(is_addr(&last_sent()->pkt.ip.src, "fe80::ff:fe00:1"));
}

Test(nd, overheard_solicitation_is_learned_and_not_answered)
{
	struct wire_pkt ns = solicit();
	uint8_t mac[6];

	cr_assert_eq(net_overhear(net, 0, 3, &ns, NULL, 0), 0);
	cr_assert_eq(rec.nsent, 0);
	cr_assert_str_eq(state_of(PEER, mac), "stale");
	cr_assert_arr_eq(mac, peer_mac, 6);
	cr_assert_eq(in_pkt(0, &ns), 0);
	cr_assert_eq(rec.nsent, 1);
}

Test(nd, answers_are_limited_in_rate)
{
	struct wire_pkt ns = solicit();
	int answered = 0;

	for (int i = 0; i < 2000; i++)
		answered += in_pkt(10 * S, &ns) == 0;
	cr_assert_eq(answered, 512);
	cr_assert_eq(counted(NET_ANSWER_LIMIT), 2000 - 512);
	cr_assert_eq(in_pkt(11 * S, &ns), 0);
}
