/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The offloading NIC against an oracle: the same bytes, segmented and summed by lib/wire. Each test
 * of a refusal violates one requirement of rte_mbuf_core.h on a sender.
 */
#include "fixture.h"

#include <rte_ip.h>

#define TSO_TX                                                                                     \
	(RTE_ETH_TX_OFFLOAD_TCP_TSO | RTE_ETH_TX_OFFLOAD_TCP_CKSUM |                               \
		RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM |                     \
		RTE_ETH_TX_OFFLOAD_MULTI_SEGS)
#define RX (RTE_ETH_RX_OFFLOAD_CHECKSUM | RTE_ETH_RX_OFFLOAD_RSS_HASH)

TestSuite(nic, .init = impair_fixture, .fini = impair_fixture_end);

static uint16_t port;
static struct rte_mbuf *got[256];

struct shape {
	bool v6;
	uint16_t vlan;
	uint8_t flags;
	unsigned payload, segsz;
	unsigned piece; /* payload bytes in each mbuf of the chain */
};

static uint8_t
byte_of(unsigned i)
{
	return (uint8_t)(i * 131 + (i >> 8) * 17);
}

/* Writes the parts of the headers that all segments share; the caller fills in the rest. */
static unsigned
emit_head(uint8_t *p, const struct shape *s, struct wire_ip *ip, struct wire_tcp *tcp)
{
	struct wire_eth eth = {.type = s->v6 ? ETH_IPV6 : ETH_IPV4, .vlan = s->vlan};
	unsigned len;

	eth.dst[0] = eth.src[0] = 2;
	sk_addr_parse(s->v6 ? "2001:db8::1" : "192.0.2.1", &ip->src);
	sk_addr_parse(s->v6 ? "2001:db8::2" : "192.0.2.2", &ip->dst);
	ip->proto = IP_TCP;
	ip->ttl = 64;
	ip->payload_len += 32;
	tcp->sport = 1000;
	tcp->dport = 2000;
	tcp->wscale = 0xff;
	tcp->ts = true; /* 12 bytes of options */
	tcp->ts_val = 0x01020304;
	len = wire_eth_emit(p, &eth);
	len += wire_ip_emit(p + len, ip);
	return len + wire_tcp_emit(p + len, tcp);
}

static void
chain_payload(struct rte_mbuf *m, const struct shape *s)
{
	for (unsigned done = 0; done < s->payload;) {
		unsigned k = RTE_MIN(s->payload - done, s->piece);
		struct rte_mbuf *tail = rte_pktmbuf_alloc(pool);
		uint8_t *p = (uint8_t *)rte_pktmbuf_append(tail, (uint16_t)k);

		for (unsigned i = 0; i < k; i++)
			p[i] = byte_of(done + i);
		cr_assert_eq(rte_pktmbuf_chain(m, tail), 0);
		done += k;
	}
}

/* Returns a frame with correct offload fields, with TSO if segsz is not 0. */
static struct rte_mbuf *
offloaded(const struct shape *s)
{
	struct wire_ip ip = {.id = 0xfffe, .payload_len = s->payload};
	struct wire_tcp tcp = {.seq = 0xfffffff0, .flags = s->flags};
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t *p = (uint8_t *)rte_pktmbuf_append(m, 128);
	unsigned len = emit_head(p, s, &ip, &tcp), l3 = s->vlan == ETH_NO_VLAN ? 14 : 18;
	uint16_t sum = 0;

	rte_pktmbuf_trim(m, (uint16_t)(128 - len));
	m->l2_len = l3;
	m->l3_len = s->v6 ? 40 : 20;
	m->l4_len = 32;
	m->tso_segsz = (uint16_t)s->segsz;
	m->ol_flags = RTE_MBUF_F_TX_TCP_CKSUM |
		      (s->v6 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM);
	if (s->segsz != 0)
		m->ol_flags |= RTE_MBUF_F_TX_TCP_SEG;
	if (!s->v6)
		memcpy(p + l3 + 10, &sum, 2);
	sum = (uint16_t)~wire_sum_fold(
		wire_pseudo_sum(&ip.src, &ip.dst, IP_TCP, s->segsz != 0 ? 0 : s->payload + 32));
	memcpy(p + l3 + m->l3_len + TCP_CKSUM_OFFSET, &sum, 2);
	chain_payload(m, s);
	return m;
}

/* Writes segment `i` as the oracle computes it. Returns its length. */
static unsigned
oracle(uint8_t *p, const struct shape *s, unsigned i)
{
	unsigned done = i * s->segsz, k = RTE_MIN(s->payload - done, s->segsz);
	bool first = i == 0, last = done + k == s->payload;
	struct wire_ip ip = {.id = (uint16_t)(0xfffe + i), .payload_len = k};
	struct wire_tcp tcp = {.seq = 0xfffffff0 + done, .flags = s->flags};
	unsigned len, l4;
	uint16_t sum;

	if (!last)
		tcp.flags &= (uint8_t) ~(TCP_FIN | TCP_PSH);
	if (!first)
		tcp.flags &= (uint8_t)~TCP_CWR;
	len = emit_head(p, s, &ip, &tcp);
	l4 = len - 32;
	for (unsigned b = 0; b < k; b++)
		p[len + b] = byte_of(done + b);
	sum = wire_sum_fold(
		wire_sum(wire_pseudo_sum(&ip.src, &ip.dst, IP_TCP, 32 + k), p + l4, 32 + k));
	memcpy(p + l4 + TCP_CKSUM_OFFSET, &sum, 2);
	return len + k;
}

static void
send_one(struct rte_mbuf *m)
{
	cr_assert_eq(rte_eth_tx_burst(port, 0, &m, 1), 1);
}

static void
tso_is_cut_as_the_oracle_does(const struct shape *s)
{
	unsigned n = (s->payload + s->segsz - 1) / s->segsz;
	uint8_t want[2048], buf[2048];

	send_one(offloaded(s));
	cr_assert_eq(take_out(port, got, 256), n);
	for (unsigned i = 0; i < n; i++) {
		unsigned len = oracle(want, s, i);

		cr_assert_eq(got[i]->pkt_len, len, "segment %u", i);
		cr_assert_arr_eq(rte_pktmbuf_read(got[i], 0, len, buf), want, len, "segment %u", i);
		cr_assert_eq(got[i]->ol_flags & RTE_MBUF_F_TX_OFFLOAD_MASK, 0);
	}
	free_all(got, n);
	cr_assert_eq(impair_count(port, true, IMPAIR_OFFLOAD_ERROR), 0);
}

Test(nic, tso_segments_are_the_oracles)
{
	static const struct shape shapes[] = {
		{false, ETH_NO_VLAN, TCP_ACK | TCP_PSH | TCP_FIN | TCP_CWR, 10000, 1448, 1500},
		{true, ETH_NO_VLAN, TCP_ACK | TCP_PSH | TCP_CWR, 10000, 1428, 1333},
		{false, 42, TCP_ACK | TCP_ECE, 9999, 1001, 777},
		{true, 42, TCP_ACK | TCP_FIN, 3001, 1000, 1},
		{false, ETH_NO_VLAN, TCP_ACK | TCP_PSH, 65000, 1400, 2048},
		{false, ETH_NO_VLAN, TCP_ACK, 1000, 1000, 500},
		{false, ETH_NO_VLAN, TCP_ACK, 1, 1000, 500},
	};

	port = start_nic("nic=1", TSO_TX, 0);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct shape s = shapes[i];

		if (s.piece == 1)
			s.piece = 64;
		tso_is_cut_as_the_oracle_does(&s);
	}
	cr_assert_eq(impair_count(port, true, IMPAIR_TSO), 7);
	stop(port);
}

Test(nic, tso_of_segments_longer_than_an_mbuf)
{
	struct shape s = {false, ETH_NO_VLAN, TCP_ACK, 20000, 8000, 2000};
	uint8_t want[9000], buf[9000];

	port = start_nic("nic=1", TSO_TX, 0);
	cr_assert_eq(rte_eth_dev_set_mtu(port, 9000), 0);
	send_one(offloaded(&s));
	cr_assert_eq(take_out(port, got, 256), 3);
	for (unsigned i = 0; i < 3; i++) {
		unsigned len = oracle(want, &s, i);

		cr_assert_eq(got[i]->pkt_len, len);
		cr_assert_arr_eq(rte_pktmbuf_read(got[i], 0, len, buf), want, len);
	}
	free_all(got, 3);
	stop(port);
}

Test(nic, checksums_are_filled_in)
{
	struct shape s = {false, ETH_NO_VLAN, TCP_ACK, 777, 0, 500};
	struct rte_mbuf *m;

	port = start_nic("nic=1", TSO_TX, 0);
	for (unsigned i = 0; i < 4; i++) {
		s.v6 = i & 1;
		s.vlan = i & 2 ? 42 : ETH_NO_VLAN;
		send_one(offloaded(&s));
		cr_assert_eq(take_out(port, &m, 1), 1);
		cr_assert(s.v6 || ip4_checksum_right(m));
		cr_assert(l4_checksum_right(m));
		rte_pktmbuf_free(m);
	}
	cr_assert_eq(impair_count(port, true, IMPAIR_CKSUM_FILLED), 4);
	stop(port);
}

/* Turns a frame of tcp_frame() into a UDP frame that requests its checksum. */
static struct rte_mbuf *
udp_frame(void)
{
	struct rte_mbuf *m = tcp_frame(1, 100, 0, false);
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
	struct wire_udp udp = {.sport = 1, .dport = 2, .payload_len = 112};
	uint16_t sum;

	p[23] = IP_UDP;
	p[24] = p[25] = 0;
	wire_udp_emit(p + 34, &udp);
	m->ol_flags = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_UDP_CKSUM;
	m->l2_len = 14;
	m->l3_len = 20;
	sum = rte_ipv4_phdr_cksum((void *)(p + 14), 0);
	memcpy(p + 40, &sum, 2);
	return m;
}

Test(nic, rfc768_udp_checksum_is_filled_in)
{
	struct rte_mbuf *m;

	port = start_nic("nic=1", TSO_TX, 0);
	send_one(udp_frame());
	cr_assert_eq(take_out(port, &m, 1), 1);
	cr_assert(ip4_checksum_right(m));
	cr_assert(l4_checksum_right(m));
	rte_pktmbuf_free(m);
	stop(port);
}

static void
bend(struct rte_mbuf *m, unsigned rule)
{
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);

	switch (rule) {
	case 0:
		m->l2_len = 18;
		break;
	case 1:
		m->l3_len = 24;
		break;
	case 2:
		m->l4_len = 20;
		break;
	case 3:
		m->tso_segsz = 0;
		break;
	case 4: /* the length belongs in the pseudo-header only without TSO */
		p[34 + 16] ^= 1;
		break;
	case 5:
		p[24] = 1; /* IPv4 checksum not 0 */
		break;
	case 6:
		m->ol_flags &= ~RTE_MBUF_F_TX_IPV4;
		break;
	case 7:
		m->ol_flags |= RTE_MBUF_F_TX_IPV6;
		break;
	case 8:
		m->ol_flags &= ~RTE_MBUF_F_TX_IP_CKSUM;
		break;
	case 9:
		m->ol_flags = (m->ol_flags & ~RTE_MBUF_F_TX_L4_MASK) | RTE_MBUF_F_TX_UDP_CKSUM;
		break;
	case 10:
		m->ol_flags |= RTE_MBUF_F_TX_UDP_SEG;
		break;
	case 11:
		m->tso_segsz = 1449; /* a segment longer than the MTU */
		break;
	case 12:
		p[16] = 0xff; /* a total length beyond the frame */
		break;
	default:
		p[12] = 0x12; /* not an IP packet */
		break;
	}
}

Test(nic, contradictions_are_counted_and_dropped)
{
	const struct shape s = {false, ETH_NO_VLAN, TCP_ACK, 5000, 1448, 1500};
	uint64_t errors = 0;

	port = start_nic("nic=1", TSO_TX, 0);
	for (unsigned rule = 0; rule < 14; rule++) {
		struct rte_mbuf *m = offloaded(&s);

		bend(m, rule);
		send_one(m);
		cr_assert_eq(
			impair_count(port, true, IMPAIR_OFFLOAD_ERROR), ++errors, "rule %u", rule);
		cr_assert_eq(take_out(port, got, 256), 0, "rule %u", rule);
	}
	stop(port);
}

Test(nic, frames_that_ask_for_nothing_pass_untouched)
{
	struct rte_mbuf *m = tcp_frame(1, 100, 0, false), *out;

	port = start_nic("nic=1", TSO_TX, 0);
	send_one(m);
	cr_assert_eq(take_out(port, &out, 1), 1);
	cr_assert_eq(out, m);
	rte_pktmbuf_free(out);
	stop(port);
}

Test(nic, shared_frames_are_copied_before_checksums_are_filled_in)
{
	struct shape s = {false, ETH_NO_VLAN, TCP_ACK, 100, 0, 100};
	struct rte_mbuf *m = offloaded(&s), *out;
	uint8_t before[54];

	port = start_nic("nic=1", TSO_TX, 0);
	memcpy(before, rte_pktmbuf_mtod(m, uint8_t *), sizeof(before));
	rte_mbuf_refcnt_update(m, 1);
	send_one(m);
	cr_assert_eq(take_out(port, &out, 1), 1);
	cr_assert_neq(out, m);
	cr_assert_arr_eq(rte_pktmbuf_mtod(m, uint8_t *), before, sizeof(before));
	rte_pktmbuf_free(out);
	cr_assert_eq(rte_mbuf_refcnt_read(m), 1);
	rte_pktmbuf_free(m);
	stop(port);
}

Test(nic, tx_prepare_makes_what_is_asked_for)
{
	struct shape s = {false, ETH_NO_VLAN, TCP_ACK, 5000, 1448, 1500};
	struct rte_mbuf *m = offloaded(&s);

	port = start_nic("nic=1", TSO_TX, 0);
	memset(rte_pktmbuf_mtod_offset(m, uint8_t *, 50), 0x77, 2);
	memset(rte_pktmbuf_mtod_offset(m, uint8_t *, 24), 0x77, 2);
	cr_assert_eq(rte_eth_tx_prepare(port, 0, &m, 1), 1);
	send_one(m);
	cr_assert_eq(impair_count(port, true, IMPAIR_OFFLOAD_ERROR), 0);
	cr_assert_eq(take_out(port, got, 256), 4);
	free_all(got, 4);
	stop(port);
}

static uint64_t
received_flags(struct rte_mbuf *m)
{
	struct rte_mbuf *in;
	uint64_t flags;

	rte_ring_enqueue(wire_in, m);
	cr_assert_eq(rte_eth_rx_burst(port, 0, &in, 1), 1);
	flags = in->ol_flags & (RTE_MBUF_F_RX_IP_CKSUM_MASK | RTE_MBUF_F_RX_L4_CKSUM_MASK);
	rte_pktmbuf_free(in);
	return flags;
}

Test(nic, received_frames_are_verified)
{
	struct rte_mbuf *m = tcp_frame(1, 101, 0, false);

	port = start_nic("nic=1", 0, RX);
	cr_assert_eq(received_flags(m), RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD);
	m = tcp_frame(1, 101, 0, true);
	cr_assert_eq(received_flags(m), RTE_MBUF_F_RX_L4_CKSUM_GOOD);
	m = tcp_frame(1, 101, 0, false);
	*rte_pktmbuf_mtod_offset(m, uint8_t *, 22) -= 1; /* TTL */
	cr_assert_eq(received_flags(m), RTE_MBUF_F_RX_IP_CKSUM_BAD | RTE_MBUF_F_RX_L4_CKSUM_GOOD);
	m = tcp_frame(1, 101, 0, false);
	*rte_pktmbuf_mtod_offset(m, uint8_t *, 100) ^= 1;
	cr_assert_eq(received_flags(m), RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_BAD);
	cr_assert_eq(impair_count(port, false, IMPAIR_CKSUM_BAD), 2);
	/* Ethernet padding is not part of the packet. */
	m = tcp_frame(1, 0, 0, false);
	memset(rte_pktmbuf_append(m, 6), 0x55, 6);
	cr_assert_eq(received_flags(m), RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD);
	m = rte_pktmbuf_alloc(pool);
	memset(rte_pktmbuf_append(m, 60), 0, 60);
	cr_assert_eq(received_flags(m), 0);
	stop(port);
}

/* Microsoft's RSS verification suite: 66.9.149.187:2794 to 161.142.100.80:1766 over TCP gives
 * 0x51ccc178. */
Test(nic, rss_hash_as_in_the_verification_suite)
{
	static const uint8_t tuple[12] = {
		66, 9, 149, 187, 161, 142, 100, 80, 2794 >> 8, 2794 & 255, 1766 >> 8, 1766 & 255};
	struct rte_mbuf *m = tcp_frame(1, 100, 0, false), *in;

	port = start_nic("nic=1", 0, RX);
	memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, 26), tuple, 12);
	rte_ring_enqueue(wire_in, m);
	cr_assert_eq(rte_eth_rx_burst(port, 0, &in, 1), 1);
	cr_assert(in->ol_flags & RTE_MBUF_F_RX_RSS_HASH);
	cr_assert_eq(in->hash.rss, 0x51ccc178);
	rte_pktmbuf_free(in);
	stop(port);
}

Test(nic, offers_what_it_does_and_nothing_otherwise)
{
	struct rte_eth_dev_info info;

	port = start_nic("nic=1", TSO_TX, RX);
	cr_assert_eq(rte_eth_dev_info_get(port, &info), 0);
	cr_assert_eq(info.tx_offload_capa & TSO_TX, TSO_TX);
	cr_assert_eq(info.rx_offload_capa & RX, RX);
	cr_assert_str_eq(info.driver_name, "net_impair");
	stop(port);
}

Test(nic, plain_wire_offers_no_checksums)
{
	struct rte_eth_dev_info info;

	port = start("");
	cr_assert_eq(rte_eth_dev_info_get(port, &info), 0);
	cr_assert_eq(info.tx_offload_capa & (TSO_TX & ~RTE_ETH_TX_OFFLOAD_MULTI_SEGS), 0);
	cr_assert_eq(info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_CHECKSUM, 0);
	stop(port);
}

Test(nic, segments_are_impaired_one_by_one)
{
	const struct shape s = {false, ETH_NO_VLAN, TCP_ACK, 14480, 1448, 1500};
	unsigned n = 0;

	port = start_nic("nic=1,drop=0.2,seed=5", TSO_TX, 0);
	for (int i = 0; i < 100; i++) {
		unsigned k;

		send_one(offloaded(&s));
		k = take_out(port, got, 256);
		free_all(got, k);
		n += k;
	}
	cr_assert_eq(n + impair_count(port, true, IMPAIR_DROP), 1000);
	cr_assert(n > 800 - 64 && n < 800 + 64);
	stop(port);
}

Test(nic, segments_that_find_no_mbuf_are_counted)
{
	const struct shape s = {false, ETH_NO_VLAN, TCP_ACK, 14480, 1448, 1500};
	struct rte_mbuf *m, *all[POOL];
	unsigned rest;

	port = start_nic("nic=1", TSO_TX, 0);
	m = offloaded(&s);
	rest = rte_mempool_avail_count(pool) - 4;
	cr_assert_eq(rte_pktmbuf_alloc_bulk(pool, all, rest), 0);
	send_one(m);
	cr_assert_eq(take_out(port, got, 256), 4);
	cr_assert_eq(impair_count(port, true, IMPAIR_NO_MBUF), 6);
	free_all(got, 4);
	free_all(all, rest);
	stop(port);
}

Test(nic, rfc768_received_datagram_without_checksum_is_no_error)
{
	struct rte_mbuf *m = udp_frame();
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
	uint16_t sum;

	port = start_nic("nic=1", 0, RX);
	m->ol_flags = 0;
	sum = wire_sum_fold(wire_sum(0, p + 14, 20));
	memcpy(p + 24, &sum, 2);
	p[40] = p[41] = 0;
	cr_assert_eq(received_flags(m), RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD);
	stop(port);
}
