/* SPDX-License-Identifier: BSD-3-Clause */
/* Incoming acknowledgements and NACKs (9.2.3, 9.2.4), with stale and forged ones among them. */
#include <errno.h>

#include "rig.h"

static void
setup(void)
{
	rig_init();
}

static void
teardown(void)
{
	rig_end();
}

TestSuite(pdl_ack, .init = setup, .fini = teardown);

static struct pdl_txw *
data(void)
{
	return &rig.c->pdl.tx[PDL_DATA];
}

Test(pdl_ack, s9_2_3_both_bases_move_and_packets_are_done)
{
	rig_start();
	rig_send(FALCON_PULL_REQUEST, 1);
	rig_pushes(2, 3);
	rig_run(0);
	rig_back(101, 302);
	cr_assert_eq(rig.dones, 3);
	cr_assert_eq(rig.done[0].rsn, 1);
	cr_assert_eq(rig.done[2].rsn, 3);
	cr_assert_eq(rig.done[2].how, FA_DONE);
	cr_assert_eq(rig.c->pdl.tx[PDL_REQUEST].base, 101);
	cr_assert_eq(data()->base, 302);
	cr_assert_eq(data()->orc, 1);
}

Test(pdl_ack, s9_2_3_an_ack_with_one_base_behind_is_stale)
{
	rig_start();
	rig_send(FALCON_PULL_REQUEST, 1);
	rig_pushes(2, 3);
	rig_run(0);
	rig_back(101, 300);
	rig_back(100, 303); /* its data base is ahead; the request base is older */
	cr_assert_eq(data()->base, 300);
	cr_assert_eq(rig.dones, 1);
	cr_assert_eq(rig_reason(FA_STALE_ACK), 1);
	cr_assert_eq(rig.evs, 1);
}

Test(pdl_ack, s9_2_4_a_stale_nack_does_nothing)
{
	rig_start();
	rig_pushes(1, 3);
	rig_run(0);
	rig_back(100, 301);
	rig_in((struct wire_falcon){.type = FALCON_NACK,
		.rbpsn = 100,
		.dbpsn = 300,
		.psn = 301,
		.nack_code = FALCON_NACK_CIE});
	rig_run(0);
	cr_assert_eq(rig_count(FALCON_RESYNC), 0);
	cr_assert_eq(rig_reason(FA_STALE_ACK), 1);
}

Test(pdl_ack, a_base_beyond_what_was_sent_is_refused)
{
	rig_start();
	rig_pushes(1, 3);
	rig_run(0);
	rig_back(100, 304);
	rig_back(101, 300);
	rig_back(100u + 0x7fffffff, 300);
	cr_assert_eq(rig.dones, 0);
	cr_assert_eq(rig_reason(FA_FUTURE_ACK), 3);
	rig_back(100, 303);
	cr_assert_eq(rig.dones, 3);
}

Test(pdl_ack, bits_beyond_what_was_sent_are_ignored)
{
	rig_start();
	rig_pushes(1, 3);
	rig_run(0);
	rig_in((struct wire_falcon){.type = FALCON_EACK,
		.rbpsn = 100,
		.dbpsn = 300,
		.data_ack = {0xfffffffffffffff8, UINT64_MAX},
		.data_rx = {UINT64_MAX, UINT64_MAX},
		.req_map = UINT64_MAX});
	cr_assert_eq(rig.dones, 0);
	/* A packet that reuses the numbers is a new one. */
	rig_pushes(4, 1);
	rig_run(0);
	cr_assert(pdl_bit(data()->live, PDL_WINDOW_MAX, 303));
	cr_assert_not(pdl_bit(data()->held, PDL_WINDOW_MAX, 303));
	cr_assert(pdl_before(data()->highest, 303));
}

Test(pdl_ack, s9_2_3_bitmaps_free_packets_behind_a_hole)
{
	rig_start();
	for (unsigned i = 0; i < 100; i++)
		rig_send(FALCON_PUSH_DATA, i);
	rig_run(0);
	rig_in((struct wire_falcon){.type = FALCON_EACK,
		.rbpsn = 100,
		.dbpsn = 300,
		.data_ack = {1ull << 63, 1ull << 35},
		.data_rx = {1ull << 63, 1ull << 35}});
	cr_assert_eq(rig.dones, 2);
	cr_assert_eq(rig.done[0].psn, 363);
	cr_assert_eq(rig.done[1].psn, 399);
	/* The base passes them: each is acknowledged once. */
	rig_back(100, 400);
	cr_assert_eq(rig.dones, 100);
}

Test(pdl_ack, s9_2_3_bitmaps_stand_behind_the_base_of_the_same_packet)
{
	rig_start();
	rig_pushes(0, 8);
	rig_run(0);
	rig_in((struct wire_falcon){
		.type = FALCON_EACK, .rbpsn = 100, .dbpsn = 303, .data_ack = {4}, .data_rx = {4}});
	cr_assert_eq(rig.dones, 4);
	cr_assert_eq(rig.done[3].psn, 305);
}

Test(pdl_ack, s9_2_2_piggybacked_bases_count)
{
	rig_start();
	rig_pushes(1, 3);
	rig_run(0);
	rig_in((struct wire_falcon){.type = FALCON_PUSH_DATA,
		.rbpsn = 100,
		.dbpsn = 302,
		.psn = 1300,
		.rsn = 1,
		.request_len = 8});
	cr_assert_eq(rig.dones, 2);
	/* A packet that is dropped carries bases, too (11). */
	rig_in((struct wire_falcon){.type = FALCON_PUSH_DATA,
		.rbpsn = 100,
		.dbpsn = 303,
		.psn = 1300,
		.rsn = 1,
		.request_len = 8});
	cr_assert_eq(rig_reason(FA_DUPLICATE), 1);
	cr_assert_eq(rig.dones, 3);
}

Test(pdl_ack, s9_what_the_ulp_has_is_not_lost)
{
	unsigned from;

	rig_start();
	rig_pushes(1, 8);
	rig_run(0);
	rig_in((struct wire_falcon){
		.type = FALCON_EACK, .rbpsn = 100, .dbpsn = 300, .data_rx = {0xff}});
	from = rig.sents;
	rig_let(rig.cfg.ulp_rto_ns - 100 * US);
	cr_assert_eq(rig.sents, from); /* many RTOs */
	/* Then the packet goes out again, since a NACK may have been lost. */
	rig_let(200 * US);
	cr_assert_eq(rig.sents - from, 8);
	cr_assert_eq(rig.dones, 0);
	/* The peer reports again that it has them: they wait again. */
	rig_in((struct wire_falcon){
		.type = FALCON_EACK, .rbpsn = 100, .dbpsn = 300, .data_rx = {0xff}});
	from = rig.sents;
	rig_let(rig.cfg.ulp_rto_ns - 100 * US);
	cr_assert_eq(rig.sents, from);
	/* That repeats as often as the peer reports that it has them: the path is not silent. */
	for (unsigned i = 0; i < 3 * rig.cfg.max_retransmits; i++) {
		rig_in((struct wire_falcon){
			.type = FALCON_EACK, .rbpsn = 100, .dbpsn = 300, .data_rx = {0xff}});
		rig_let(rig.cfg.ulp_rto_ns + 100 * US);
	}
	cr_assert_eq(rig_count(FALCON_RESYNC), 0);
}

/* ---- NACKs ---- */

static void
nack(uint32_t psn, uint8_t code, uint8_t rnr, uint8_t ulp)
{
	rig_in((struct wire_falcon){.type = FALCON_NACK,
		.rbpsn = rig.c->pdl.tx[PDL_REQUEST].base,
		.dbpsn = data()->base,
		.psn = psn,
		.nack_code = code,
		.rnr_timeout = rnr,
		.ulp_code = ulp});
}

Test(pdl_ack, s9_2_4_a_nack_of_any_code_is_a_sample_of_the_round_trip)
{
	static const uint8_t codes[] = {FALCON_NACK_RESOURCES, FALCON_NACK_RNR, FALCON_NACK_XLR,
		FALCON_NACK_CIE, FALCON_NACK_NON_RECOVERABLE, FALCON_NACK_INVALID_CID};

	rig_start();
	rig_pushes(1, SK_ARRAY_LEN(codes));
	rig_run(0);
	for (unsigned i = 0; i < SK_ARRAY_LEN(codes); i++) {
		rig.now += RTT;
		nack(300 + i, codes[i], 1, 0);
		cr_assert_eq(rig.evs, i + 1, "code %u", codes[i]);
		cr_assert_eq(rig.ev[i].type, FA_RUE_NACK);
		cr_assert_eq(rig.ev[i].nack_code, codes[i]);
		/* Either time is rounded to ticks. */
		cr_assert_leq(rig.ev[i].t4 - rig.ev[i].t1 - fa_ticks(RTT) + 1, 2);
	}
}

Test(pdl_ack, s6_6_3_rnr_waits_as_long_as_the_nack_requests)
{
	unsigned from;

	rig_start();
	rig_pushes(1, 2);
	rig_run(0);
	nack(300, FALCON_NACK_RNR, 19, 0); /* 7.68 ms */
	rig_back(100, 300);
	from = rig.sents;
	rig_let(7680 * US - 50 * US);
	for (unsigned i = from; i < rig.sents; i++)
		cr_assert_eq(rig.sent[i].h.psn, 301);
	from = rig.sents;
	rig_let(100 * US);
	cr_assert_eq(rig.sent[from].h.psn, 300);
	cr_assert_eq(rig_reason(FA_RNR_IN), 1);
	/* It is no timeout: it causes no event for congestion control, and no step towards a
	 * Resync. */
	for (unsigned i = 0; i < rig.evs; i++)
		cr_assert(rig.ev[i].type != FA_RUE_RETRANSMIT || rig.ev[i].retransmits > 0);
	cr_assert_eq(pdl_txw_get(data(), 300)->timeouts, 0);
}

Test(pdl_ack, s11_rnr_waits_no_shorter_than_the_rto)
{
	unsigned from;

	rig_start();
	rig_pushes(1, 1);
	rig_run(0);
	nack(300, FALCON_NACK_RNR, 1, 0); /* 10 us */
	from = rig.sents;
	rig_let(rig.cfg.rto_min_ns - 20 * US);
	cr_assert_eq(rig.sents, from);
	rig_let(40 * US);
	cr_assert_eq(rig.sents, from + 1);
}

Test(pdl_ack, when_the_time_is_over_the_ulp_is_asked_whatever_an_eack_says)
{
	unsigned from;

	rig_start();
	rig_pushes(1, 1);
	rig_run(0);
	nack(300, FALCON_NACK_RNR, 1, 0);
	rig.output_rc = -EAGAIN;
	rig_let(rig.cfg.rto_min_ns + 10 * US);
	/* The peer has it, as before. */
	rig_in((struct wire_falcon){
		.type = FALCON_EACK, .rbpsn = 100, .dbpsn = 300, .data_rx = {1}});
	rig.output_rc = 0;
	from = rig.sents;
	rig_run(0);
	cr_assert_eq(rig.sents, from + 1);
	cr_assert_eq(rig.sent[from].h.psn, 300);
}

Test(pdl_ack, rnr_without_end_is_not_given_up)
{
	rig_start();
	rig_pushes(1, 1);
	rig_run(0);
	for (unsigned i = 0; i < 4 * rig.cfg.max_retransmits; i++) {
		nack(300, FALCON_NACK_RNR, 1, 0);
		rig_let(rig.cfg.rto_min_ns + 50 * US);
	}
	cr_assert_eq(rig_count(FALCON_RESYNC), 0);
	cr_assert_eq(rig.deaths, 0);
	for (unsigned i = 0; i < rig.evs; i++)
		cr_assert_eq(rig.ev[i].type, FA_RUE_NACK); /* no retransmission event */
	rig_back(100, 301);
	cr_assert_eq(rig.done[0].how, FA_DONE);
}

Test(pdl_ack, rnr_is_left_alone_by_early_retransmission)
{
	unsigned from;

	rig_start();
	rig_pushes(1, 10);
	rig_run(0);
	nack(300, FALCON_NACK_RNR, 19, 0);
	rig.now += 2 * RTT;
	from = rig.sents;
	rig_in((struct wire_falcon){.type = FALCON_EACK,
		.rbpsn = 100,
		.dbpsn = 300,
		.data_ack = {0x3fe},
		.data_rx = {0x3fe}});
	rig_run(0);
	cr_assert_eq(rig.sents, from);
}

static const struct {
	uint8_t nack, resync, how;
} refusals[] = {
	{FALCON_NACK_XLR, FALCON_RESYNC_REMOTE_XLR, FA_REMOTE_ERROR},
	{FALCON_NACK_CIE, FALCON_RESYNC_CIE, FA_TARGET_CIE},
	{FALCON_NACK_NON_RECOVERABLE, FALCON_RESYNC_NON_RECOVERABLE, FA_TARGET_FATAL},
	{FALCON_NACK_INVALID_CID, FALCON_RESYNC_INVALID_CID, FA_TARGET_CID},
};

Test(pdl_ack, s6_6_5_a_refusal_becomes_a_resync)
{
	rig_start();
	rig_pushes(1, 5);
	rig_run(0);
	for (unsigned i = 0; i < SK_ARRAY_LEN(refusals); i++)
		nack(301 + i, refusals[i].nack, 0, (uint8_t)(0x50 + i));
	rig_run(0);
	cr_assert_eq(rig_count(FALCON_RESYNC), 4);
	for (unsigned i = 0; i < SK_ARRAY_LEN(refusals); i++) {
		const struct rig_sent *s = &rig.sent[5 + i];

		cr_assert_eq(s->h.type, FALCON_RESYNC);
		cr_assert_eq(s->h.psn, 301 + i); /* PSN and RSN of the replaced packet: 9.1.8 */
		cr_assert_eq(s->h.rsn, 2 + i);
		cr_assert_eq(s->h.resync_code, refusals[i].resync);
		cr_assert_eq(s->h.resync_type, FALCON_PUSH_DATA);
		cr_assert_eq(s->len, 0);
	}
	cr_assert_eq(rig.dones, 0); /* when the Resync is acknowledged */
	rig_back(100, 305);
	for (unsigned i = 0; i < SK_ARRAY_LEN(refusals); i++) {
		cr_assert_eq(rig.done[1 + i].how, refusals[i].how);
		cr_assert_eq(rig.done[1 + i].ulp_code, 0x50 + i);
	}
	cr_assert_eq(rig.done[0].how, FA_DONE);
}

Test(pdl_ack, s6_6_5_a_refusal_that_is_repeated_counts_once)
{
	rig_start();
	rig_pushes(1, 1);
	rig_run(0);
	nack(300, FALCON_NACK_CIE, 0, 7);
	nack(300, FALCON_NACK_NON_RECOVERABLE, 0, 9);
	rig_run(0);
	cr_assert_eq(rig_count(FALCON_RESYNC), 1);
	rig_back(100, 301);
	cr_assert_eq(rig.done[0].how, FA_TARGET_CIE);
	cr_assert_eq(rig.done[0].ulp_code, 7);
}

Test(pdl_ack, s9_2_4_resources_are_for_congestion_control)
{
	unsigned from;

	rig_start();
	rig_pushes(1, 2);
	rig_run(0);
	from = rig.sents;
	nack(300, FALCON_NACK_RESOURCES, 0, 0);
	rig_run(0);
	cr_assert_eq(rig.ev[0].type, FA_RUE_NACK);
	cr_assert_eq(rig.ev[0].nack_code, FALCON_NACK_RESOURCES);
	cr_assert_eq(rig.sents, from);
	rig_let(rig.cfg.rto_initial_ns + 10 * US);
	cr_assert_eq(rig.sents, from + 2); /* as for a lost packet */
	cr_assert_eq(rig.sent[from].h.type, FALCON_PUSH_DATA);
}

Test(pdl_ack, s9_2_4_a_nack_carries_bases)
{
	rig_start();
	rig_pushes(1, 3);
	rig_send(FALCON_PULL_REQUEST, 4);
	rig_send(FALCON_PULL_REQUEST, 5);
	rig_run(0);
	rig_in((struct wire_falcon){.type = FALCON_NACK,
		.rbpsn = 101,
		.dbpsn = 302,
		.psn = 302,
		.nack_code = FALCON_NACK_RNR});
	cr_assert_eq(data()->base, 302);
	cr_assert_eq(rig.c->pdl.tx[PDL_REQUEST].base, 101);
	cr_assert_eq(rig.dones, 3);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(rig.done[i].how, FA_DONE);
}

/* The first push of a run acknowledges the packets of both windows. */
Test(pdl_ack, s9_1_6_a_run_of_pushes_carries_both_bases)
{
	struct wire_falcon_plain h = {.type = FALCON_PUSH_DATA,
		.rbpsn = 101,
		.dbpsn = 302,
		.len = 8,
		.proto = FALCON_RDMA};

	rig_start();
	h.psn = rig.params.rx_data_psn;
	h.function = rig.params.function;
	rig_pushes(1, 3);
	rig_send(FALCON_PULL_REQUEST, 4);
	rig_run(0);
	cr_assert(pdl_run_acks(rig.c, rig.now, &h));
	cr_assert_eq(data()->base, 302);
	cr_assert_eq(rig.c->pdl.tx[PDL_REQUEST].base, 101);
	cr_assert_eq(rig.dones, 3);
}

Test(pdl_ack, nacks_that_cannot_be)
{
	rig_start();
	rig_pushes(1, 2);
	rig_run(0);
	nack(302, FALCON_NACK_CIE, 0, 0); /* never sent */
	nack(300, 5, 0, 0);               /* reserved */
	nack(300, 255, 0, 0);
	rig_in((struct wire_falcon){.type = FALCON_NACK,
		.rbpsn = 100,
		.dbpsn = 300,
		.psn = 300,
		.nack_request = true,
		.nack_code = FALCON_NACK_CIE}); /* other window */
	cr_assert_eq(rig_reason(FA_NACK_UNKNOWN), 4);
	rig_run(0);
	cr_assert_eq(rig_count(FALCON_RESYNC), 0);
}

Test(pdl_ack, s10_1_times_of_an_ack_reach_the_algorithm)
{
	struct wire_falcon h = {.type = FALCON_BACK,
		.rbpsn = 100,
		.dbpsn = 303,
		.hops = 3,
		.rx_level = 17,
		.ecn = 1234};

	rig_start();
	rig_pushes(1, 4);
	rig_run(0);
	rig.now += 100 * US;
	h.t1 = fa_ticks(rig.now) - 500;
	h.t2 = 0x12345678; /* the peer's clock is its own */
	rig_in(h);
	cr_assert_eq(rig.evs, 1);
	cr_assert_eq(rig.ev[0].type, FA_RUE_ACK);
	cr_assert_eq(rig.ev[0].t1, h.t1);
	cr_assert_eq(rig.ev[0].t2, h.t2);
	cr_assert_eq(rig.ev[0].t3, h.t2);
	cr_assert_eq(rig.ev[0].t4, fa_ticks(rig.now));
	cr_assert_eq(rig.ev[0].acked, 3);
	cr_assert_eq(rig.ev[0].hops, 3);
	cr_assert_eq(rig.ev[0].rx_level, 17);
	cr_assert_eq(rig.ev[0].ecn, 1234);
	rig_back(100, 304);
	cr_assert_eq(rig.ev[1].acked, 1);
}

Test(pdl_ack, s10_6_2_1_the_peers_metadata_reaches_the_algorithm)
{
	rig_start();
	rig_pushes(1, 8);
	rig_run(0);
	rig.now += 100 * US;
	rig_in((struct wire_falcon){
		.type = FALCON_BACK, .rbpsn = 100, .dbpsn = 301, .rue = 0x1abcde});
	rig_in((struct wire_falcon){
		.type = FALCON_EACK, .rbpsn = 100, .dbpsn = 302, .data_rx = {2}, .rue = 0x54321});
	rig_in((struct wire_falcon){.type = FALCON_NACK,
		.rbpsn = 100,
		.dbpsn = 302,
		.psn = 302,
		.nack_code = FALCON_NACK_RESOURCES,
		.rue = 0x7fffff});
	cr_assert_eq(rig.evs, 3);
	cr_assert_eq(rig.ev[0].metadata, 0x1abcde);
	cr_assert_not(rig.ev[0].eack);
	cr_assert_eq(rig.ev[1].metadata, 0x54321);
	cr_assert(rig.ev[1].eack);
	cr_assert_eq(rig.ev[2].metadata, 0x7fffff);
}

/* Sends a push, which is acknowledged 100 us later. */
static void
acknowledged(const struct fa_in *in)
{
	struct wire_falcon h = {.type = FALCON_BACK, .rbpsn = 100, .dbpsn = 301, .t2 = 1000};
	struct fa_in ack = *in;

	rig_start();
	rig_pushes(1, 1);
	rig_run(0);
	rig.now += 100 * US;
	h.cid = rig.params.cid;
	h.proto = rig.params.protocol;
	h.t1 = fa_ticks(rig.now) - 500;
	ack.hdr = &h;
	fa_input(rig.c, rig.now, &ack);
	cr_assert_eq(rig.evs, 1);
}

/* The algorithm receives the time of arrival, but the whole round trip ends when the packet is
 * processed. */
Test(pdl_ack, s10_1_time_in_the_queue_of_the_port_is_not_delay)
{
	const struct fa_in in = {.stamp = 1100, .ttl = 64, .waited = 300};

	acknowledged(&in);
	cr_assert_eq(rig.ev[0].t4, fa_ticks(rig.now) - 300);
	cr_assert_eq(rig.ev[0].now, fa_ticks(rig.now));
	cr_assert_eq(rig.ev[0].t3 - rig.ev[0].t2, 100);
}

/* After a stop of the peer, t2 is long before the packet was sent. */
Test(pdl_ack, s10_1_a_longer_stay_at_the_peer_than_the_round_trip_is_used)
{
	const struct fa_in in = {.stamp = 1000 + 1000000, .ttl = 64};

	acknowledged(&in);
	cr_assert_eq(rig.c->pdl.flow[0].rack_rtt, 0);
}

Test(pdl_ack, s10_1_times_that_cannot_be_are_ignored)
{
	struct wire_falcon h = {.type = FALCON_BACK, .rbpsn = 100, .dbpsn = 301};

	rig_start();
	rig_pushes(1, 4);
	rig_run(0);
	h.t1 = fa_ticks(rig.now) + 100; /* sent in the future */
	h.t2 = 1;
	rig_in(h);
	cr_assert_eq(rig.evs, 0);
	cr_assert_eq(rig.dones, 1); /* its bases count nevertheless */
	h.dbpsn = 302;
	h.t1 = fa_ticks(rig.now) - (1u << 30);
	rig_in(h);
	cr_assert_eq(rig.evs, 0);
	rig_back(100, 303);
	cr_assert_eq(rig.evs, 1);
	cr_assert_eq(rig.ev[0].acked, 3); /* since the last event */
}

Test(pdl_ack, s3_3_pull_data_acknowledges_its_request)
{
	struct fa_pkt *p, *q;

	rig_start();
	p = rig_send(FALCON_PULL_REQUEST, 1);
	q = rig_send(FALCON_PULL_REQUEST, 2);
	rig_run(0);
	pdl_implied_ack(rig.c, rig.now, q);
	cr_assert_eq(rig.dones, 1);
	cr_assert_eq(rig.c->pdl.tx[PDL_REQUEST].orc, 1);
	pdl_implied_ack(rig.c, rig.now, p);
	rig_back(102, 300); /* acknowledges both */
	cr_assert_eq(rig.dones, 2);
}

Test(pdl_ack, s11_what_tl_withdraws_becomes_a_resync)
{
	struct fa_pkt *p;

	rig_start();
	p = rig_send(FALCON_PUSH_DATA, 1);
	rig_pushes(2, 1);
	rig_run(0);
	cr_assert_not(pdl_withdraw(rig.c, rig.now, p, FALCON_RESYNC_TIMEOUT, FA_LOCAL_TIMEOUT));
	cr_assert_eq(rig.bufs, 1);
	rig_run(0);
	cr_assert_eq(rig_last(FALCON_RESYNC)->h.psn, 300);
	cr_assert_eq(rig_last(FALCON_RESYNC)->h.resync_code, FALCON_RESYNC_TIMEOUT);
	rig_back(100, 302);
	cr_assert_eq(rig.done[0].how, FA_LOCAL_TIMEOUT);
	cr_assert_eq(rig.done[1].how, FA_DONE);
}

Test(pdl_ack, s11_a_withdrawn_request_that_was_not_sent_leaves_no_hole_in_the_rsns)
{
	struct fa_pkt *p;

	rig.fcwnd = FA_CWND_ONE;
	rig_start();
	rig_pushes(1, 1);
	p = rig_send(FALCON_PUSH_DATA, 2);
	rig_run(0);
	cr_assert_not(pdl_withdraw(rig.c, rig.now, p, FALCON_RESYNC_TIMEOUT, FA_LOCAL_TIMEOUT));
	rig_back(100, 301);
	rig_run(0);
	cr_assert_eq(rig_last(FALCON_RESYNC)->h.rsn, 2);
	cr_assert_eq(rig_last(FALCON_RESYNC)->h.psn, 301);
	/* No order depends on pull data. */
	p = rig_send(FALCON_PULL_DATA, 5);
	cr_assert(pdl_withdraw(rig.c, rig.now, p, FALCON_RESYNC_TIMEOUT, FA_LOCAL_TIMEOUT));
	tl_pkt_free(rig.c, p);
	rig_back(100, 302);
	cr_assert_eq(rig_run(0), 0);
}
