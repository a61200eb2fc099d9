/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The example flows of sections 6.6.1 to 6.6.6, packet by packet, with RSN and PSN as in the text.
 * Node 0 is the initiator, node 1 the target. The test is the ULP: it decides when to answer.
 */
#include "pair.h"

#define PULL    FALCON_PULL_REQUEST
#define DATA    FALCON_PULL_DATA
#define PUSH    FALCON_PUSH_DATA
#define RNR_1MS 13 /* 0.96 ms, in the order of the retransmission timeout */
#define RNR_4MS 17 /* 3.84 ms */

static struct fa_delivery got[2][64];
static unsigned gots[2], seen[2];

static bool
deliver(unsigned node, unsigned conn, const struct fa_delivery *d)
{
	cr_assert_lt(gots[node], 64);
	got[node][gots[node]++] = *d;
	return true;
}

static struct fa_delivery *
next_at(unsigned node, enum fa_delivery_type type, uint32_t rsn)
{
	struct fa_delivery *d = &got[node][seen[node]];

	cr_assert_lt(seen[node], gots[node], "nothing was delivered at node %u", node);
	cr_assert_eq(d->type, (unsigned)type);
	cr_assert_eq(d->rsn, rsn, "RSN %u, not %u", d->rsn, rsn);
	seen[node]++;
	return d;
}

static void
nothing_at(unsigned node)
{
	cr_assert_eq(seen[node], gots[node], "a delivery too many at node %u", node);
}

static void
verdict(struct fa_delivery *d, enum fa_verdict v, uint8_t rnr, uint8_t ulp_code)
{
	struct fa_outcome o = {.rsn = d->rsn, .verdict = v, .rnr = rnr, .ulp_code = ulp_code};

	if (v == FA_RNR)
		o.buf = d->buf;
	else
		pair_buf_free(d->buf);
	fa_outcome(pair.n[1].c[0], pair.now, &o);
}

static void
setup(void)
{
	pair_init();
	pair.deliver = deliver;
}

/* Ends a flow: frees the last completions, and checks that no packet follows for ten seconds. */
static void
finish(void)
{
	nothing_at(0);
	nothing_at(1);
	pair_run(10000000 * PAIR_US);
	nothing_at(0);
	nothing_at(1);
	pair_quiet();
	pair_stop();
}

static void
read_answer(uint32_t rsn)
{
	struct fa_delivery *d = next_at(0, FA_PULL_DATA, rsn);

	cr_assert_eq(d->buf->len, 4096);
	pair_buf_free(d->buf);
}

/* Delays the first of two packets behind the second. */
static struct pair_fate
first_is_late(const struct pair_packet *p)
{
	static bool done;
	struct pair_fate f = {.extra = done ? 0 : 2 * PAIR_US};

	done = true;
	return f;
}

Test(falcon_flows, s6_6_1_rdma_read, .init = setup)
{
	unsigned i;

	pair.wire = first_is_late;
	pair_start();
	/* 1, 2: two pull requests, RSN 1 and 2, PSN 100 and 101 */
	for (i = 0; i < 2; i++)
		fa_pull(pair.n[0].c[0], pair.now, pair_buf(28), 4096);
	pair_run(1);
	cr_assert_eq(pair_expect(0, PULL, 100, 1)->h.request_len, 4096);
	pair_expect(0, PULL, 101, 2);
	/* 3: they arrive in reverse order, go to the ULP by RSN; one coalesced ACK */
	pair_run(6 * PAIR_US);
	nothing_at(1);
	pair_run(1 * PAIR_US);
	struct fa_delivery *one = next_at(1, FA_PULL, 1), *two = next_at(1, FA_PULL, 2);
	pair_run(20 * PAIR_US);
	cr_assert_eq(pair_expect_ack(1, FALCON_BACK)->h.rbpsn, 102);
	pair_quiet();
	/* 4, 5: pull responses, PSN 200 and 201 */
	verdict(one, FA_TAKEN, 0, 0);
	fa_pull_data(pair.n[1].c[0], pair.now, 1, pair_buf(4096));
	verdict(two, FA_TAKEN, 0, 0);
	fa_pull_data(pair.n[1].c[0], pair.now, 2, pair_buf(4096));
	pair_run(20 * PAIR_US);
	pair_expect(1, DATA, 200, 1);
	pair_expect(1, DATA, 201, 2);
	/* 6, 7: acknowledged together; both responses are with the ULP */
	cr_assert_eq(pair_expect_ack(0, FALCON_BACK)->h.dbpsn, 202);
	read_answer(1);
	read_answer(2);
	finish();
}

Test(falcon_flows, s6_6_2_rdma_write, .init = setup)
{
	unsigned i;

	pair.wire = first_is_late;
	pair_start();
	/* 1, 2: RSN 1 and 2, PSN 300 and 301 */
	for (i = 0; i < 2; i++)
		fa_push(pair.n[0].c[0], pair.now, pair_buf(4096));
	pair_run(1);
	pair_expect(0, PUSH, 300, 1);
	pair_expect(0, PUSH, 301, 2);
	/* 3: reordered, delivered by RSN */
	pair_run(6 * PAIR_US);
	nothing_at(1);
	pair_run(1 * PAIR_US);
	struct fa_delivery *one = next_at(1, FA_PUSH, 1), *two = next_at(1, FA_PUSH, 2);
	/* 4: the ULP's completions, then one coalesced ACK */
	verdict(one, FA_TAKEN, 0, 0);
	verdict(two, FA_TAKEN, 0, 0);
	pair_run(20 * PAIR_US);
	cr_assert_eq(pair_expect_ack(1, FALCON_BACK)->h.dbpsn, 302);
	/* 5, 6 */
	cr_assert_eq(next_at(0, FA_COMPLETION, 1)->completion, FA_DONE);
	cr_assert_eq(next_at(0, FA_COMPLETION, 2)->completion, FA_DONE);
	finish();
}

static unsigned nacks_to_lose;

static struct pair_fate
lose_nacks(const struct pair_packet *p)
{
	struct pair_fate f = {.lose = p->h.type == FALCON_NACK && nacks_to_lose};

	nacks_to_lose -= f.lose;
	return f;
}

static void
one_push_with_psn_301(void)
{
	pair.n[0].params.tx_data_psn = 301;
	/* as in the text: delivered again by the retransmission */
	pair.n[1].cfg.push_reoffer = false;
	/* No acknowledgement before the ULP's: the text has none for a received packet. */
	pair.n[0].cfg.ar_window = UINT32_MAX;
	pair.n[1].cfg.ack_delay_ns = 1000000000;
	pair.wire = lose_nacks;
	nacks_to_lose = 1;
	pair_start();
	fa_push(pair.n[0].c[0], pair.now, pair_buf(64));
}

static const struct pair_packet *
expect_nack(uint8_t code, bool lost)
{
	const struct pair_packet *p = pair_expect_ack(1, FALCON_NACK);

	cr_assert_eq(p->h.nack_code, code);
	cr_assert_eq(p->h.psn, 301);
	cr_assert(!p->h.nack_request);
	cr_assert_eq(p->lost, lost);
	return p;
}

/* Runs until the next push of node 0 has arrived. */
static void
until_push(uint64_t at_most)
{
	uint64_t end = pair.now + at_most;
	unsigned count = pair.count;

	while (pair.now < end && pair.count == count)
		pair_run(PAIR_US);
	pair_run(PAIR_DELAY);
}

Test(falcon_flows, s6_6_3_push_rnr_with_a_lost_nack, .init = setup)
{
	const struct pair_packet *p;
	uint64_t refused_at;

	one_push_with_psn_301(); /* 1, 2 */
	pair_run(PAIR_DELAY);
	pair_expect(0, PUSH, 301, 1);
	verdict(next_at(1, FA_PUSH, 1), FA_RNR, RNR_4MS, 0); /* 3, 4 */
	pair_run(PAIR_DELAY);
	expect_nack(FALCON_NACK_RNR, true);
	/* 5: the retransmission timeout fires */
	until_push(3000 * PAIR_US);
	p = pair_expect(0, PUSH, 301, 1);
	cr_assert(p->again);
	/* 6: delivered again, refused again */
	verdict(next_at(1, FA_PUSH, 1), FA_RNR, RNR_4MS, 0);
	refused_at = pair.now;
	pair_run(PAIR_DELAY);
	cr_assert_eq(expect_nack(FALCON_NACK_RNR, false)->h.rnr_timeout, RNR_4MS); /* 7 */
	nothing_at(1);
	/* 8: retransmitted when the RNR delay is over, not before */
	until_push(10000 * PAIR_US);
	p = pair_expect(0, PUSH, 301, 1);
	cr_assert_geq(p->sent_at, refused_at + 3840 * PAIR_US);
	cr_assert_leq(p->sent_at, refused_at + 4000 * PAIR_US);
	/* 9, 10, 11 */
	verdict(next_at(1, FA_PUSH, 1), FA_TAKEN, 0, 0);
	nothing_at(0);
	pair_run(20 * PAIR_US);
	cr_assert_eq(pair_expect_ack(1, FALCON_BACK)->h.dbpsn, 302);
	cr_assert_eq(next_at(0, FA_COMPLETION, 1)->completion, FA_DONE);
	finish();
}

Test(falcon_flows, s6_6_4_pull_rnr, .init = setup)
{
	uint64_t refused_at;

	pair.n[0].params.tx_request_psn = 101;
	pair.n[1].params.tx_data_psn = 201;
	pair_start();
	fa_pull(pair.n[0].c[0], pair.now, pair_buf(28), 4096); /* 1, 2 */
	pair_run(PAIR_DELAY);
	pair_expect(0, PULL, 101, 1);
	/* 3, 4: refused, but acknowledged */
	refused_at = pair.now;
	verdict(next_at(1, FA_PULL, 1), FA_RNR, RNR_1MS, 0);
	pair_run(20 * PAIR_US);
	cr_assert_eq(pair_expect_ack(1, FALCON_BACK)->h.rbpsn, 102);
	/* 5: the target delivers it again, no packet in between */
	pair_run(959 * PAIR_US - (pair.now - refused_at));
	nothing_at(1);
	pair_run(3 * PAIR_US);
	struct fa_delivery *d = next_at(1, FA_PULL, 1);
	pair_quiet();
	/* 6, 7, 8, 9 */
	verdict(d, FA_TAKEN, 0, 0);
	fa_pull_data(pair.n[1].c[0], pair.now, 1, pair_buf(4096));
	pair_run(20 * PAIR_US);
	pair_expect(1, DATA, 201, 1);
	cr_assert_eq(pair_expect_ack(0, FALCON_BACK)->h.dbpsn, 202);
	read_answer(1);
	finish();
}

Test(falcon_flows, s6_6_5_push_cie_with_a_lost_nack_then_resync, .init = setup)
{
	const struct pair_packet *p;

	one_push_with_psn_301(); /* 1, 2 */
	pair_run(PAIR_DELAY);
	pair_expect(0, PUSH, 301, 1);
	verdict(next_at(1, FA_PUSH, 1), FA_CIE, 0, 0x5a); /* 3, 4 */
	pair_run(PAIR_DELAY);
	cr_assert_eq(expect_nack(FALCON_NACK_CIE, true)->h.ulp_code, 0x5a);
	/* 5: retransmitted after the timeout */
	until_push(3000 * PAIR_US);
	cr_assert(pair_expect(0, PUSH, 301, 1)->again);
	/* 6: the same NACK, without the ULP */
	nothing_at(1);
	pair_run(2 * PAIR_DELAY);
	cr_assert_eq(expect_nack(FALCON_NACK_CIE, false)->h.ulp_code, 0x5a);
	/* 7: a Resync replaces the packet */
	p = pair_expect(0, FALCON_RESYNC, 301, 1);
	cr_assert_eq(p->h.resync_code, FALCON_RESYNC_CIE);
	cr_assert_eq(p->h.resync_type, PUSH);
	nothing_at(0);
	/* 8, 9: acknowledged, and completed with the error */
	pair_run(20 * PAIR_US);
	cr_assert_eq(pair_expect_ack(1, FALCON_BACK)->h.dbpsn, 302);
	struct fa_delivery *d = next_at(0, FA_COMPLETION, 1);
	cr_assert_eq(d->completion, FA_TARGET_CIE);
	cr_assert_eq(d->ulp_code, 0x5a);
	finish();
}

static struct pair_fate
lose_first(const struct pair_packet *p)
{
	return (struct pair_fate){.lose = p->h.type == PUSH && p->h.psn == 300 && !p->again};
}

static void
eack_flow(bool rack)
{
	const struct pair_packet *p;
	unsigned i;

	pair.n[0].cfg.rack = rack;
	pair.n[0].cfg.ooo_threshold = 2; /* the flow has three packets after the gap */
	pair.wire = lose_first;
	pair_start();
	/* 1, 2: four pushes, RSN 1 to 4, PSN 300 to 303 */
	for (i = 0; i < 4; i++) {
		fa_push(pair.n[0].c[0], pair.now, pair_buf(4096));
		pair_run(PAIR_US); /* recency (9.1.4): older than the round trip of the others */
	}
	pair_run(PAIR_DELAY);
	for (i = 0; i < 4; i++)
		pair_expect(0, PUSH, 300 + i, 1 + i);
	/* 3: the first is lost, the others are held */
	nothing_at(1);
	/* 4: an EACK shows the gap: bits 1, 2, 3 received, none acknowledged */
	pair_run(15 * PAIR_US);
	p = pair_expect_ack(1, FALCON_EACK);
	cr_assert_eq(p->h.dbpsn, 300);
	cr_assert_eq(p->h.data_rx[0], 0xe);
	cr_assert_eq(p->h.data_ack[0], 0);
	/* 5: early retransmission of only that packet, long before its timeout */
	for (i = 0; i < 15 && gots[1] == 0; i++)
		pair_run(PAIR_US);
	p = pair_expect(0, PUSH, 300, 1);
	cr_assert(p->again);
	/* 6, 7: all four by RSN, one coalesced ACK */
	for (i = 0; i < 4; i++)
		verdict(next_at(1, FA_PUSH, 1 + i), FA_TAKEN, 0, 0);
	pair_run(20 * PAIR_US);
	cr_assert_eq(pair_expect_ack(1, FALCON_BACK)->h.dbpsn, 304);
	/* 8, 9 */
	for (i = 0; i < 4; i++)
		cr_assert_eq(next_at(0, FA_COMPLETION, 1 + i)->completion, FA_DONE);
	finish();
}

Test(falcon_flows, s6_6_6_eack_hole_by_distance, .init = setup)
{
	eack_flow(false);
}

Test(falcon_flows, s6_6_6_eack_hole_by_rack, .init = setup)
{
	eack_flow(true);
}
