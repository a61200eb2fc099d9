/* SPDX-License-Identifier: BSD-3-Clause */
/* Corruption of both kinds, and ECN marks: RFC 1071, RFC 9293 3.1, RFC 3168 5, RFC 1624. */
#include "fixture.h"

#include "../../../drivers/net/impair/impair_priv.h"

#define N 2000

TestSuite(corrupt, .init = impair_fixture, .fini = impair_fixture_end);

/* Sends a frame of which the test keeps a second reference, to compare the two. */
static struct rte_mbuf *
send_shared(uint16_t port, struct rte_mbuf *m)
{
	struct rte_mbuf *out = NULL;

	rte_mbuf_refcnt_update(m, 1);
	cr_assert_eq(rte_eth_tx_burst(port, 0, &m, 1), 1);
	cr_assert_eq(take_out(port, &out, 1), 1);
	return out;
}

/* Compares the 16-bit words from the TCP header on. Returns the number of different words and
 * stores the first two positions in at[]. */
static unsigned
words_that_differ(struct rte_mbuf *a, struct rte_mbuf *b, unsigned l4, unsigned at[2])
{
	const uint8_t *p = rte_pktmbuf_mtod(a, uint8_t *), *q = rte_pktmbuf_mtod(b, uint8_t *);
	unsigned n = 0;

	cr_assert_eq(a->pkt_len, b->pkt_len);
	cr_assert_arr_eq(p, q, l4, "what is in front of TCP stays");
	for (unsigned i = l4; i + 1 < a->pkt_len; i += 2) {
		if (memcmp(p + i, q + i, 2) == 0)
			continue;
		if (n < 2)
			at[n] = i - l4;
		n++;
	}
	return n;
}

Test(corrupt, rfc1071_one_word_is_always_seen_by_the_checksum)
{
	uint16_t port = start("seed=11,corrupt=1");
	unsigned at[2], in_header = 0, in_payload = 0;

	for (uint32_t i = 0; i < N; i++) {
		struct rte_mbuf *m = tcp_frame(i, 4 + i % 200, 0, false), *out;

		cr_assert(l4_checksum_right(m));
		out = send_shared(port, m);
		cr_assert_neq(out, m, "what is altered is copied");
		cr_assert(l4_checksum_right(m), "the original stays");
		cr_assert_eq(words_that_differ(m, out, 34, at), 1);
		cr_assert_not(l4_checksum_right(out));
		cr_assert(ip4_checksum_right(out));
		at[0] < 20 ? in_header++ : in_payload++;
		rte_pktmbuf_free(out);
		rte_pktmbuf_free(m);
	}
	cr_assert_gt(in_header, 0);
	cr_assert_gt(in_payload, in_header);
	cr_assert_eq(impair_count(port, true, IMPAIR_CORRUPT), N);
	stop(port);
}

static void
set_checksum(struct rte_mbuf *m)
{
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
	struct wire_ip ip;
	uint16_t sum = 0;

	cr_assert_eq(wire_ip4_parse(&ip, p + 14, m->pkt_len - 14), 20);
	memcpy(p + 34 + TCP_CKSUM_OFFSET, &sum, 2);
	sum = wire_sum_fold(wire_sum(
		wire_pseudo_sum(&ip.src, &ip.dst, IP_TCP, ip.payload_len), p + 34, ip.payload_len));
	memcpy(p + 34 + TCP_CKSUM_OFFSET, &sum, 2);
}

/* 0x0000 and 0xffff are the same number to the checksum, so a flip of all bits in such a word must
 * not be chosen. */
Test(corrupt, rfc1071_word_never_turns_from_all_zeros_to_all_ones)
{
	for (uint64_t word = 0; word < 62; word++) {
		struct rte_mbuf *m = tcp_frame(0, 104, 0, false);
		const uint64_t flips[] = {0xffff, 0, 1, 0x8000};
		uint8_t *p = rte_pktmbuf_mtod_offset(m, uint8_t *, HEAD);

		memset(p, 0, 104);
		set_checksum(m);
		for (unsigned k = 0; k < 4; k++) {
			struct rte_mbuf *out = m;

			rte_mbuf_refcnt_update(m, 1);
			cr_assert_eq(impair_alter_word(&out, pool, flips[k] << 48 | word), 1);
			cr_assert_not(l4_checksum_right(out), "%lu %u", (unsigned long)word, k);
			rte_pktmbuf_free(out);
		}
		rte_pktmbuf_free(m);
	}
}

Test(corrupt, rfc1071_neutral_change_is_never_seen_by_the_checksum)
{
	uint16_t port = start("seed=11,corrupt_crc=1");
	unsigned at[2];

	for (uint32_t i = 0; i < N; i++) {
		struct rte_mbuf *m = tcp_frame(i, 4 + i % 200, 0, i % 2), *out;
		unsigned l4 = i % 2 ? 54 : 34;

		out = send_shared(port, m);
		cr_assert_eq(words_that_differ(m, out, l4, at), 2);
		cr_assert(at[0] >= 20 && at[1] >= 20, "only payload");
		cr_assert(l4_checksum_right(out));
		cr_assert(l4_checksum_right(m));
		rte_pktmbuf_free(out);
		rte_pktmbuf_free(m);
	}
	cr_assert_eq(impair_count(port, true, IMPAIR_CORRUPT_CRC), N);
	stop(port);
}

Test(corrupt, neutral_change_needs_two_words_of_payload)
{
	uint16_t port = start("corrupt_crc=1");
	struct rte_mbuf *m = tcp_frame(1, 3, 0, false), *out;

	out = send_shared(port, m);
	cr_assert_eq(out, m);
	cr_assert_eq(impair_count(port, true, IMPAIR_CORRUPT_CRC), 0);
	rte_pktmbuf_free(out);
	rte_pktmbuf_free(m);
	stop(port);
}

Test(corrupt, copy_that_finds_no_mbuf_loses_the_frame)
{
	uint16_t port = start("corrupt=1");
	struct rte_mbuf *m = tcp_frame(1, 100, 0, false), *all[POOL], *out;

	cr_assert_eq(rte_pktmbuf_alloc_bulk(pool, all, POOL - 1), 0);
	cr_assert_eq(rte_eth_tx_burst(port, 0, &m, 1), 1);
	cr_assert_eq(take_out(port, &out, 1), 0);
	cr_assert_eq(impair_count(port, true, IMPAIR_NO_MBUF), 1);
	free_all(all, POOL - 1);
	stop(port);
}

Test(corrupt, rate_is_kept)
{
	uint16_t port = start("seed=2,corrupt=0.1");
	static struct rte_mbuf *got[N];
	unsigned n = send_all(port, 0, N, got, N), wrong = 0;

	cr_assert_eq(n, N);
	for (unsigned i = 0; i < n; i++)
		wrong += !l4_checksum_right(got[i]);
	cr_assert_eq(wrong, impair_count(port, true, IMPAIR_CORRUPT));
	cr_assert(wrong > 200 - 68 && wrong < 200 + 68, "%u: five standard deviations", wrong);
	free_all(got, n);
	stop(port);
}

Test(corrupt, frames_that_are_not_tcp_or_udp_are_left_alone)
{
	uint16_t port = start("corrupt=1,corrupt_crc=1,ecn=1");
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool), *out;

	memset(rte_pktmbuf_append(m, 60), 0x5a, 60);
	out = send_shared(port, m);
	cr_assert_eq(out, m);
	rte_pktmbuf_free(out);
	rte_pktmbuf_free(m);
	/* First an IPv4 length beyond the frame, then a TCP header beyond the packet. */
	for (int i = 0; i < 2; i++) {
		m = tcp_frame(1, 10, 0, false);
		if (i == 0)
			*rte_pktmbuf_mtod_offset(m, uint8_t *, 16) = 0x7f;
		else
			*rte_pktmbuf_mtod_offset(m, uint8_t *, 46) = 0xf0;
		out = send_shared(port, m);
		cr_assert_eq(out, m);
		rte_pktmbuf_free(out);
		rte_pktmbuf_free(m);
	}
	stop(port);
}

/* Returns a frame of `payload` bytes in mbufs of at most 2048 bytes, the second of which begins at
 * `cut`. */
static struct rte_mbuf *
long_frame(unsigned payload, unsigned cut)
{
	struct wire_ip ip = {.proto = IP_TCP, .ttl = 64, .payload_len = 20 + payload};
	struct rte_mbuf *m = tcp_frame(1, cut - HEAD, 0, false), *tail;
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
	uint16_t sum = 0;
	uint8_t flat[8192];

	for (unsigned left = payload - (cut - HEAD), k; left != 0; left -= k) {
		k = RTE_MIN(left, 2048u);
		tail = rte_pktmbuf_alloc(pool);
		memset(rte_pktmbuf_append(tail, (uint16_t)k), 0x3c, k);
		cr_assert_eq(rte_pktmbuf_chain(m, tail), 0);
	}
	sk_addr_parse("192.0.2.1", &ip.src);
	sk_addr_parse("192.0.2.2", &ip.dst);
	wire_ip_emit(p + 14, &ip);
	memcpy(p + 34 + TCP_CKSUM_OFFSET, &sum, 2);
	sum = wire_sum_fold(wire_sum(wire_pseudo_sum(&ip.src, &ip.dst, IP_TCP, ip.payload_len),
		rte_pktmbuf_read(m, 34, ip.payload_len, flat), ip.payload_len));
	memcpy(p + 34 + TCP_CKSUM_OFFSET, &sum, 2);
	cr_assert(l4_checksum_right(m));
	return m;
}

Test(corrupt, chained_frames_are_altered_wherever_the_seams_are)
{
	uint16_t port = start("seed=4");
	struct impair_cfg cfg = config(port);
	struct rte_mbuf *out = NULL;

	for (uint32_t i = 0; i < 400; i++) {
		struct rte_mbuf *m = long_frame(5001 + i % 2, HEAD + 1 + i % 150);

		cfg.seed = i;
		cfg.corrupt_crc = i % 2;
		cfg.corrupt = 1 - i % 2;
		impair_set(port, &cfg);
		cr_assert_eq(rte_eth_tx_burst(port, 0, &m, 1), 1);
		cr_assert_eq(take_out(port, &out, 1), 1);
		cr_assert_eq(l4_checksum_right(out), i % 2);
		rte_pktmbuf_free(out);
	}
	cr_assert_eq(impair_count(port, true, IMPAIR_CORRUPT_CRC), 200);
	cr_assert_eq(impair_count(port, true, IMPAIR_CORRUPT), 200);
	stop(port);
}

static uint8_t
ecn_of(struct rte_mbuf *m)
{
	const uint8_t *p = rte_pktmbuf_mtod_offset(m, uint8_t *, 14);

	return p[0] >> 4 == 4 ? p[1] & 3 : p[1] >> 4 & 3;
}

Test(corrupt, rfc3168_5_only_capable_packets_are_marked)
{
	static const uint8_t want[] = {IP_ECN_NOT, IP_ECN_CE, IP_ECN_CE, IP_ECN_CE};
	uint16_t port = start("ecn=1");

	for (unsigned v6 = 0; v6 < 2; v6++) {
		for (uint8_t ecn = 0; ecn < 4; ecn++) {
			struct rte_mbuf *m = tcp_frame(ecn, 100, ecn, v6), *out;

			out = send_shared(port, m);
			cr_assert_eq(ecn_of(m), ecn, "the original stays");
			cr_assert_eq(ecn_of(out), want[ecn]);
			cr_assert(v6 || ip4_checksum_right(out), "RFC 1624");
			cr_assert(l4_checksum_right(out));
			rte_pktmbuf_free(out);
			rte_pktmbuf_free(m);
		}
	}
	cr_assert_eq(impair_count(port, true, IMPAIR_ECN), 4);
	stop(port);
}

Test(corrupt, rfc1624_checksum_stays_right_for_any_packet)
{
	uint16_t port = start("ecn=1");

	for (uint32_t i = 0; i < 1000; i++) {
		struct rte_mbuf *m = tcp_frame(i, i, IP_ECN_ECT0 - i % 2, false), *out;

		out = send_shared(port, m);
		cr_assert(ip4_checksum_right(out), "%u", i);
		rte_pktmbuf_free(out);
		rte_pktmbuf_free(m);
	}
	stop(port);
}
