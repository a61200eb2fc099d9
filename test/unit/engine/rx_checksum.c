/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port's result of the checksum of a received frame (RTE_MBUF_F_RX_L4_CKSUM_*), with both
 * transports: the stage accepts the result, and computes the checksum of a frame without one.
 */
#include <criterion/criterion.h>
#include <rte_mbuf.h>
#include <string.h>

#include "../../../lib/base/mem.h"
#include "falcon_rig.h"

#define L4 (ETH_LEN + IP4_LEN)

TestSuite(engine_rx_checksum, .init = pair_eal);

static const struct transport {
	enum saker_transport transport;
	const char *name, *wrong;
	uint8_t proto;
	unsigned checksum; /* offset of the checksum field */
} transports[] = {
	{SAKER_IWARP, "iWARP", "WIRE_TCP_CHECKSUM", IP_TCP, L4 + TCP_CKSUM_OFFSET},
	{SAKER_FALCON, "Falcon", "WIRE_UDP_CHECKSUM", IP_UDP, L4 + UDP_CKSUM_OFFSET},
};

/* The port of node 1. */
static const struct transport *of;
static uint64_t verdict;
static bool spoil;   /* the checksum field is wrong, as behind virtio's partial checksums */
static unsigned cut; /* frames come in a segment of so many bytes and one of the rest; 0: whole */

static void
in_two(struct rte_mbuf *m)
{
	uint32_t rest = m->pkt_len - cut;
	struct rte_mbuf *tail = rte_pktmbuf_alloc(frig.pool);

	cr_assert_not_null(tail);
	memcpy(rte_pktmbuf_append(tail, (uint16_t)rest), rte_pktmbuf_mtod_offset(m, char *, cut),
		rest);
	cr_assert_eq(rte_pktmbuf_trim(m, (uint16_t)rest), 0);
	cr_assert_eq(rte_pktmbuf_chain(m, tail), 0);
}

/* Makes a checksum wrong. Not 0: that is a UDP packet without a checksum, which Falcon refuses. */
static void
falsify(uint8_t sum[2])
{
	sum[0] ^= 0x40;
	if (sum[0] == 0 && sum[1] == 0)
		sum[1] = 1;
}

static void
port(struct rte_mbuf *m, int node)
{
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);

	if (node != 1 || m->data_len < of->checksum + 2u || p[ETH_LEN + 9] != of->proto)
		return;
	if (spoil)
		falsify(p + of->checksum);
	m->ol_flags &= ~RTE_MBUF_F_RX_L4_CKSUM_MASK;
	m->ol_flags |= verdict;
	if (cut > 0 && m->nb_segs == 1 && m->pkt_len > cut)
		in_two(m);
}

/* Makes a connection with transport `t`. From then on, the port sets the flags `says`. */
static void
begin(const struct transport *t, uint64_t says, bool wrong)
{
	frig_connect_over(t->transport);
	of = t;
	verdict = says;
	spoil = wrong;
	frig.port = port;
}

static void
believed(uint64_t says)
{
	uint64_t before = 0;

	frig_start(NULL);
	for (unsigned i = 0; i < SK_ARRAY_LEN(transports); i++) {
		begin(&transports[i], says, true);
		frig_works();
		cr_assert_gt(frig_count(1, "eng", "ENG_RX_CKSUM"), before, "%s", of->name);
		before = frig_count(1, "eng", "ENG_RX_CKSUM");
		cr_assert_eq(frig_count(1, "wire", of->wrong), 0, "%s", of->name);
		cr_assert_eq(frig_count(1, "eng", "ENG_RX_BAD"), 0, "%s", of->name);
		frig.port = NULL;
	}
	frig_stop();
}

Test(engine_rx_checksum, good_is_accepted)
{
	believed(RTE_MBUF_F_RX_L4_CKSUM_GOOD);
}

Test(engine_rx_checksum, none_means_that_the_bytes_are_intact_though_the_field_is_not)
{
	believed(RTE_MBUF_F_RX_L4_CKSUM_NONE);
}

Test(engine_rx_checksum, without_a_verdict_the_sum_is_computed)
{
	frig_start(NULL);
	for (unsigned i = 0; i < SK_ARRAY_LEN(transports); i++) {
		begin(&transports[i], RTE_MBUF_F_RX_L4_CKSUM_UNKNOWN, false);
		frig_works();
		frig.port = NULL;
	}
	cr_assert_eq(frig_count(1, "eng", "ENG_RX_CKSUM"), 0);
	cr_assert_eq(frig_count(1, "eng", "ENG_RX_BAD"), 0);
	frig_stop();
}

/* Checks that no byte arrives while the stage drops the frames, and that all arrive afterwards. */
static void
refused(uint64_t says, bool wrong, const char *layer, const char *reason)
{
	frig_start(NULL);
	for (unsigned i = 0; i < SK_ARRAY_LEN(transports); i++) {
		const char *name = reason != NULL ? reason : transports[i].wrong;
		uint64_t before = frig_count(1, layer, name);
		uint64_t bad = frig_count(1, "eng", "ENG_RX_BAD");

		begin(&transports[i], says, wrong);
		memset(frig.n[0].mem, 0x5a, 100);
		memset(frig.n[1].mem, 0, 100);
		frig_post(0, RD_WRITE, 100, 0);
		frig_turns(200);
		cr_assert_gt(frig_count(1, layer, name), before, "%s", of->name);
		cr_assert_gt(frig_count(1, "eng", "ENG_RX_BAD"), bad, "%s", of->name);
		cr_assert_eq(frig.n[1].mem[0], 0, "%s: the frame was placed", of->name);
		frig.port = NULL;
		cr_assert_eq(frig_wc(0).status, RD_SUCCESS, "%s", of->name);
		frig_works();
	}
	frig_stop();
}

Test(engine_rx_checksum, bad_is_dropped_and_counted)
{
	refused(RTE_MBUF_F_RX_L4_CKSUM_BAD, false, "eng", "ENG_RX_OFFLOAD_BAD");
}

Test(engine_rx_checksum, a_wrong_sum_without_a_verdict_is_dropped_and_counted)
{
	refused(RTE_MBUF_F_RX_L4_CKSUM_UNKNOWN, true, "wire", NULL);
}

/* The stage checks the IP header itself: computing its checksum costs less than testing the word.
 */
Test(engine_rx_checksum, the_words_for_other_headers_decide_nothing)
{
	static const uint64_t words[] = {RTE_MBUF_F_RX_IP_CKSUM_GOOD, RTE_MBUF_F_RX_IP_CKSUM_BAD,
		RTE_MBUF_F_RX_IP_CKSUM_NONE, RTE_MBUF_F_RX_OUTER_IP_CKSUM_BAD,
		RTE_MBUF_F_RX_OUTER_L4_CKSUM_GOOD, RTE_MBUF_F_RX_OUTER_L4_CKSUM_BAD};

	frig_start(NULL);
	for (unsigned i = 0; i < SK_ARRAY_LEN(transports); i++) {
		begin(&transports[i], 0, false);
		for (unsigned k = 0; k < SK_ARRAY_LEN(words); k++) {
			verdict = words[k];
			frig_works();
		}
		frig.port = NULL;
	}
	cr_assert_eq(frig_count(1, "eng", "ENG_RX_CKSUM"), 0);
	cr_assert_eq(frig_count(1, "eng", "ENG_RX_BAD"), 0);
	frig_stop();
}

/* A datagram whose headers are in two segments is copied into one mbuf, with the port's result. */
Test(engine_rx_checksum, the_verdict_survives_a_copy)
{
	frig_start(NULL);
	cut = L4 + UDP_LEN + 10;
	begin(&transports[1], RTE_MBUF_F_RX_L4_CKSUM_NONE, true);
	frig_works();
	cr_assert_eq(frig_count(1, "wire", of->wrong), 0);
	frig.port = NULL;
	frig_stop();
}
