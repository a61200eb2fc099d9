/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP echo and errors: RFC 792, RFC 1122 3.2.2, RFC 4443. */
#include "fixture.h"

TestSuite(icmp, .init = net_fixture, .fini = net_fixture_end);

static uint8_t frame[2048];

/* Builds a whole echo request; returns its length. */
static size_t
echo_request(struct wire_pkt *pkt, const char *src, const char *dst, size_t data)
{
	struct wire_eth eth = {.vlan = ETH_NO_VLAN};
	struct wire_ip ip = {.ttl = 9, .payload_len = (uint32_t)(8 + data)};
	struct wire_icmp icmp = {.kind = ICMP_ECHO_REPLY, .echo_id = 77, .echo_seq = 3};
	unsigned l4;
	bool v4;

	ip.src = addr(src);
	ip.dst = addr(dst);
	v4 = sk_addr_is_v4(&ip.dst);
	ip.proto = v4 ? IP_ICMP : IP_ICMP6;
	eth.type = v4 ? ETH_IPV4 : ETH_IPV6;
	memcpy(eth.dst, my_mac, 6);
	memcpy(eth.src, peer_mac, 6);
	l4 = wire_eth_emit(frame, &eth);
	l4 += wire_ip_emit(frame + l4, &ip);
	wire_icmp_emit(frame + l4, &icmp, !v4);
	frame[l4] = v4 ? 8 : 128;
	for (size_t i = 0; i < data; i++)
		frame[l4 + 8 + i] = (uint8_t)(i * 7);
	frame[l4 + 2] = frame[l4 + 3] = 0;
	wire_icmp_checksum(frame + l4, 8 + data, &ip.src, &ip.dst);
	cr_assert_eq(wire_pkt_parse(pkt, frame, l4 + 8 + data, l4 + 8 + data), 0);
	return l4 + 8 + data;
}

static void
echo_is_answered(const char *src, const char *dst)
{
	struct sk_addr s = addr(src), d = addr(dst);
	const struct sent *reply = &rec.sent[0];
	struct wire_pkt pkt;
	size_t len = echo_request(&pkt, src, dst, 101);

	cr_assert_eq(net_input(net, 0, 3, &pkt, frame, len), 0);
	cr_assert_eq(rec.nsent, 1);
	cr_assert_eq(reply->pkt.icmp.kind, ICMP_ECHO_REPLY);
	cr_assert_eq(reply->pkt.icmp.echo_id, 77);
	cr_assert_eq(reply->pkt.icmp.echo_seq, 3);
	cr_assert(sk_addr_eq(&reply->pkt.ip.src, &d));
	cr_assert(sk_addr_eq(&reply->pkt.ip.dst, &s));
	cr_assert_arr_eq(reply->pkt.eth.dst, peer_mac, 6);
	cr_assert_eq(reply->pkt.ip.ttl, 64);
	cr_assert_eq(reply->len, len);
	cr_assert_arr_eq(reply->frame + len - 101, frame + len - 101, 101);
	cr_assert_eq(counted(NET_ECHO), 1);
}

Test(icmp, rfc1122_3_2_2_6_echo_is_answered_with_its_data)
{
	echo_is_answered("192.0.2.9", "192.0.2.1");
}

Test(icmp, rfc4443_4_2_echo_is_answered_with_its_data)
{
	echo_is_answered("2001:db8::9", "2001:db8::1");
}

Test(icmp, echo_replies_are_limited_in_rate)
{
	struct wire_pkt pkt;
	size_t len = echo_request(&pkt, "192.0.2.9", "192.0.2.1", 8);
	int first = 0, second = 0;

	for (int i = 0; i < 500; i++)
		first += net_input(net, 10 * S, 3, &pkt, frame, len) == 0;
	cr_assert_eq(first, 100);
	cr_assert_eq(counted(NET_ECHO_LIMIT), 400);
	for (int i = 0; i < 500; i++)
		second += net_input(net, 10 * S + S / 50, 3, &pkt, frame, len) == 0;
	cr_assert_eq(second, 20, "1000 a second");
	cr_assert_eq(rec.nsent, 120);
}

Test(icmp, echo_longer_than_what_is_there_is_refused)
{
	struct wire_pkt pkt;
	size_t len = echo_request(&pkt, "192.0.2.9", "192.0.2.1", 64);

	cr_assert_eq(net_input(net, 0, 3, &pkt, frame, len - 1), -NET_ICMP_OTHER);
	cr_assert_eq(net_input(net, 0, 3, &pkt, frame, 0), -NET_ICMP_OTHER);
	pkt.ip.payload_len = 7;
	cr_assert_eq(net_input(net, 0, 3, &pkt, frame, len), -NET_ICMP_OTHER);
	cr_assert_eq(rec.nsent, 0);
}

Test(icmp, echo_longer_than_the_mtu_is_refused)
{
	struct wire_pkt pkt;
	size_t len = echo_request(&pkt, "192.0.2.9", "192.0.2.1", 1473);

	cr_assert_eq(net_input(net, 0, 3, &pkt, frame, len), -NET_ICMP_OTHER);
	len = echo_request(&pkt, "192.0.2.9", "192.0.2.1", 1472);
	cr_assert_eq(net_input(net, 0, 3, &pkt, frame, len), 0);
}

Test(icmp, rfc1122_3_2_2_6_echo_to_a_group_stays_unanswered)
{
	struct wire_pkt pkt;
	size_t len = echo_request(&pkt, "2001:db8::9", "2001:db8::1", 8);
	static const uint8_t all[6] = {0x33, 0x33, 0, 0, 0, 1};

	pkt.ip.dst = addr("ff02::1");
	memcpy(pkt.eth.dst, all, 6);
	cr_assert_eq(net_input(net, 0, 3, &pkt, frame, len), -NET_ICMP_OTHER);
	cr_assert_eq(rec.nsent, 0);
}

Test(icmp, echo_from_ourselves_is_spoofed)
{
	struct wire_pkt pkt;
	size_t len = echo_request(&pkt, "192.0.2.1", "192.0.2.1", 8);

	cr_assert_eq(net_input(net, 0, 3, &pkt, frame, len), -NET_SPOOFED);
	cr_assert_eq(rec.nsent, 0);
}

static struct wire_pkt
too_big(const char *quoted_src)
{
	struct wire_pkt pkt = {.eth = {.type = ETH_IPV4, .vlan = ETH_NO_VLAN}};

	memcpy(pkt.eth.dst, my_mac, 6);
	memcpy(pkt.eth.src, peer_mac, 6);
	pkt.ip.src = addr("203.0.113.1");
	pkt.ip.dst = addr("192.0.2.1");
	pkt.ip.proto = IP_ICMP;
	pkt.icmp.kind = ICMP_TOO_BIG;
	pkt.icmp.mtu = 1400;
	pkt.icmp.quote.src = addr(quoted_src);
	return pkt;
}

Test(icmp, rfc1122_3_2_2_errors_go_up_to_the_transport)
{
	struct wire_pkt pkt = too_big("192.0.2.1");

	cr_assert_eq(in_pkt(0, &pkt), 0);
	cr_assert_eq(rec.nerrors, 1);
	cr_assert_eq(rec.error.mtu, 1400);
	cr_assert_eq(rec.error_vlan, ETH_NO_VLAN);
	pkt.icmp.kind = ICMP_UNREACHABLE;
	cr_assert_eq(in_pkt(0, &pkt), 0);
	cr_assert_eq(rec.nerrors, 2);
	cr_assert_eq(counted(NET_ICMP_ERROR), 2);
}

Test(icmp, rfc5927_error_that_quotes_a_foreign_packet_is_ignored)
{
	struct wire_pkt pkt = too_big("192.0.2.2");

	cr_assert_eq(in_pkt(0, &pkt), -NET_ICMP_OTHER);
	cr_assert_eq(rec.nerrors, 0);
}

Test(icmp, other_messages_are_counted)
{
	struct wire_pkt pkt = too_big("192.0.2.1");

	pkt.icmp.kind = ICMP_OTHER;
	cr_assert_eq(in_pkt(0, &pkt), -NET_ICMP_OTHER);
	pkt.icmp.kind = ICMP_ECHO_REPLY;
	cr_assert_eq(in_pkt(0, &pkt), -NET_ICMP_OTHER);
	pkt.icmp.kind = ICMP_ROUTER_ADVERT;
	cr_assert_eq(in_pkt(0, &pkt), -NET_ICMP_OTHER);
	cr_assert_eq(counted(NET_ICMP_OTHER), 3);
	cr_assert_eq(rec.nsent, 0);
}

Test(icmp, overheard_echo_is_not_answered_and_costs_no_allowance)
{
	struct wire_pkt pkt;
	size_t len = echo_request(&pkt, "192.0.2.9", "192.0.2.1", 8);

	for (int i = 0; i < 1000; i++)
		cr_assert_eq(net_overhear(net, 0, 3, &pkt, frame, len), 0);
	cr_assert_eq(rec.nsent, 0);
	cr_assert_eq(net_input(net, 0, 3, &pkt, frame, len), 0);
	cr_assert_eq(rec.nsent, 1);
}
