/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive windows: new packets, duplicates, packets out of window (9.2.2.4); Resync (9.2.5);
 * pushes that the ULP refused (6.6.3, 6.6.5, 11).
 */
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

TestSuite(pdl_rx, .init = setup, .fini = teardown);

static void
push_in(uint32_t psn)
{
	rig_in((struct wire_falcon){
		.type = FALCON_PUSH_DATA, .psn = psn, .rsn = psn - 1300, .request_len = 8});
}

static void
pull_in(uint32_t psn)
{
	rig_in((struct wire_falcon){
		.type = FALCON_PULL_REQUEST, .psn = psn, .rsn = psn, .request_len = 100});
}

static void
resync_in(uint32_t psn, uint8_t of)
{
	rig_in((struct wire_falcon){.type = FALCON_RESYNC,
		.psn = psn,
		.rsn = psn - 1300,
		.resync_code = FALCON_RESYNC_CIE,
		.resync_type = of});
}

static struct pdl_rx *
rx(void)
{
	return &rig.c->pdl.rx;
}

Test(pdl_rx, s9_2_2_4_in_order_the_base_follows)
{
	rig_start();
	for (unsigned i = 0; i < 300; i++)
		push_in(1300 + i);
	for (unsigned i = 0; i < 100; i++)
		pull_in(1100 + i);
	cr_assert_eq(rig.rxs, 400);
	cr_assert_eq(rx()->dbase, 1600);
	cr_assert_eq(rx()->rbase, 1200);
	cr_assert_eq(rx()->ack[0] | rx()->ack[1] | rx()->rx[0] | rx()->rx[1] | rx()->req, 0);
}

Test(pdl_rx, s9_2_2_4_out_of_order_bits_fill_and_shift)
{
	rig_start();
	push_in(1302);
	push_in(1303);
	push_in(1400);
	cr_assert_eq(rx()->dbase, 1300);
	cr_assert_eq(rx()->ack[0], 0xc);
	cr_assert_eq(rx()->rx[1], 1ull << 36);
	push_in(1300);
	cr_assert_eq(rx()->dbase, 1301);
	push_in(1301);
	cr_assert_eq(rx()->dbase, 1304);
	cr_assert_eq(rx()->ack[0], 0);
	cr_assert_eq(rx()->ack[1], 1ull << 32);
	for (uint32_t psn = 1304; psn < 1400; psn++)
		push_in(psn);
	cr_assert_eq(rx()->dbase, 1401);
	cr_assert_eq(rx()->ack[0] | rx()->ack[1], 0);
}

Test(pdl_rx, s9_2_2_4_a_full_window_backwards)
{
	rig_start();
	for (unsigned i = FA_DATA_WINDOW; i-- > 0;)
		push_in(1300 + i);
	for (unsigned i = FA_REQUEST_WINDOW; i-- > 0;)
		pull_in(1100 + i);
	cr_assert_eq(rig.rxs, FA_DATA_WINDOW + FA_REQUEST_WINDOW);
	cr_assert_eq(rx()->dbase, 1300 + FA_DATA_WINDOW);
	cr_assert_eq(rx()->rbase, 1100 + FA_REQUEST_WINDOW);
}

Test(pdl_rx, s9_2_2_4_windows_wrap)
{
	rig.params.rx_data_psn = UINT32_MAX - 5;
	rig.params.rx_request_psn = UINT32_MAX - 5;
	rig_start();
	for (unsigned i = 0; i < 20; i += 2) {
		push_in(UINT32_MAX - 4 + i);
		push_in(UINT32_MAX - 5 + i);
		pull_in(UINT32_MAX - 4 + i);
		pull_in(UINT32_MAX - 5 + i);
	}
	cr_assert_eq(rx()->dbase, 14);
	cr_assert_eq(rx()->rbase, 14);
	push_in(UINT32_MAX - 5);
	cr_assert_eq(rig_reason(FA_DUPLICATE), 1);
	cr_assert_eq(rig.rxs, 40);
}

Test(pdl_rx, s9_2_2_4_duplicates_before_the_base_and_in_the_window)
{
	rig_start();
	push_in(1300);
	push_in(1302);
	pull_in(1100);
	pull_in(1102);
	rig_let(20 * US);
	cr_assert_eq(rig.sents, 1);
	push_in(1300);
	push_in(1302);
	pull_in(1100);
	pull_in(1102);
	cr_assert_eq(rig_reason(FA_DUPLICATE), 4);
	cr_assert_eq(rig.rxs, 4);
	/* 11: dropped and acknowledged. */
	rig_let(20 * US);
	cr_assert_eq(rig.sents, 2);
	cr_assert_eq(rig.sent[1].h.type, FALCON_EACK);
	cr_assert_eq(rig.bufs, 0);
}

Test(pdl_rx, s9_2_2_4_too_early_is_dropped_and_notified)
{
	rig_start();
	push_in(1300 + FA_DATA_WINDOW);
	pull_in(1100 + FA_REQUEST_WINDOW);
	cr_assert_eq(rig.rxs, 0);
	cr_assert_eq(rig_reason(FA_OUT_OF_WINDOW), 2);
	rig_let(20 * US);
	cr_assert_eq(rig.sents, 1);
	cr_assert_eq(rig.sent[0].h.type, FALCON_EACK);
	cr_assert(rig.sent[0].h.own_data);
	cr_assert(rig.sent[0].h.own_request);
	/* The EACK carried the bits: 9.2.1. */
	push_in(1301);
	rig_let(20 * US);
	cr_assert_not(rig_last(FALCON_EACK)->h.own_data);
	cr_assert_not(rig_last(FALCON_EACK)->h.own_request);
	/* The last PSN in the window. */
	push_in(1300 + FA_DATA_WINDOW - 1);
	pull_in(1100 + FA_REQUEST_WINDOW - 1);
	cr_assert_eq(rig.rxs, 3);
}

Test(pdl_rx, s9_2_2_4_own_is_of_its_window)
{
	rig_start();
	push_in(1300 + FA_DATA_WINDOW);
	rig_let(20 * US);
	cr_assert(rig.sent[0].h.own_data);
	cr_assert_not(rig.sent[0].h.own_request);
}

Test(pdl_rx, s9_a_push_is_acknowledged_when_the_ulp_has_taken_it)
{
	rig.ulp_acks = false;
	rig_start();
	push_in(1300);
	push_in(1301);
	cr_assert_eq(rx()->dbase, 1300);
	cr_assert_eq(rx()->rx[0], 3);
	cr_assert_eq(rx()->ack[0], 0);
	pdl_ulp_ack(rig.c, rig.now, 1301);
	cr_assert_eq(rx()->dbase, 1300);
	cr_assert_eq(rx()->ack[0], 2);
	pdl_ulp_ack(rig.c, rig.now, 1300);
	cr_assert_eq(rx()->dbase, 1302);
	cr_assert_eq(rx()->rx[0], 0);
	/* Invalid ones: repeated, never received, behind the base. */
	pdl_ulp_ack(rig.c, rig.now, 1301);
	pdl_ulp_ack(rig.c, rig.now, 1303);
	cr_assert_eq(rx()->dbase, 1302);
	cr_assert_eq(rx()->ack[0] | rx()->rx[0], 0);
}

Test(pdl_rx, s11_a_push_that_the_ulp_has_is_not_delivered_again)
{
	rig.ulp_acks = false;
	rig_start();
	push_in(1300);
	push_in(1300);
	cr_assert_eq(rig.rxs, 1);
	rig_let(20 * US);
	cr_assert_eq(rig.sent[0].h.type, FALCON_EACK); /* so that it is not sent a third time */
	cr_assert_eq(rig.sent[0].h.data_rx[0], 1);
	cr_assert_eq(rig.sent[0].h.data_ack[0], 0);
}

Test(pdl_rx, s9_pull_data_is_acknowledged_at_once)
{
	rig.ulp_acks = false;
	rig_start();
	rig_in((struct wire_falcon){.type = FALCON_PULL_DATA, .psn = 1300, .rsn = 4});
	cr_assert_eq(rig.rx[0].type, FALCON_PULL_DATA);
	cr_assert_eq(rx()->dbase, 1301);
}

/* ---- Refused packets ---- */

Test(pdl_rx, s8_2_no_resources_is_nacked_and_forgotten)
{
	rig_start();
	rig.take = TL_REFUSED;
	push_in(1300);
	pull_in(1100);
	rig_in((struct wire_falcon){.type = FALCON_PULL_DATA, .psn = 1301, .rsn = 4});
	cr_assert_eq(rx()->rx[0] | rx()->ack[0] | rx()->req, 0);
	rig_run(0);
	cr_assert_eq(rig_count(FALCON_NACK), 3);
	cr_assert_eq(rig.sent[0].h.nack_code, FALCON_NACK_RESOURCES);
	cr_assert_eq(rig.sent[0].h.psn, 1300);
	cr_assert_not(rig.sent[0].h.nack_request);
	cr_assert_eq(rig.sent[1].h.psn, 1100);
	cr_assert(rig.sent[1].h.nack_request);
	cr_assert_eq(rig.bufs, 0);
	/* It arrives again as if for the first time. */
	rig.take = TL_TAKEN;
	push_in(1300);
	cr_assert_eq(rig.rx[3].type, FALCON_PUSH_DATA);
	cr_assert_not(rig.rx[3].again);
	cr_assert_eq(rx()->dbase, 1301);
}

Test(pdl_rx, what_tl_drops_counts_as_acknowledged)
{
	rig_start();
	rig.take = TL_DROPPED;
	push_in(1300);
	pull_in(1100);
	cr_assert_eq(rx()->dbase, 1301);
	cr_assert_eq(rx()->rbase, 1101);
	cr_assert_eq(rig.bufs, 0);
}

Test(pdl_rx, s6_6_3_a_push_that_met_rnr_is_offered_again)
{
	rig.ulp_acks = false;
	rig_start();
	push_in(1300);
	pdl_nack(rig.c, rig.now, false, 1300, FALCON_NACK_RNR, 9, 0);
	rig_run(0);
	cr_assert_eq(rig_last(FALCON_NACK)->h.nack_code, FALCON_NACK_RNR);
	cr_assert_eq(rig_last(FALCON_NACK)->h.rnr_timeout, 9);
	cr_assert_eq(rig_last(FALCON_NACK)->h.psn, 1300);
	push_in(1300);
	cr_assert_eq(rig.rxs, 2);
	cr_assert(rig.rx[1].again);
	/* This time the ULP takes its time: another copy is a duplicate. */
	push_in(1300);
	cr_assert_eq(rig.rxs, 2);
	pdl_ulp_ack(rig.c, rig.now, 1300);
	cr_assert_eq(rx()->dbase, 1301);
	cr_assert_eq(rig_reason(FA_RNR_OUT), 1);
}

Test(pdl_rx, rnr_then_no_room_is_still_offered_again)
{
	rig.ulp_acks = false;
	rig_start();
	push_in(1300);
	pdl_nack(rig.c, rig.now, false, 1300, FALCON_NACK_RNR, 9, 0);
	rig.take = TL_REFUSED;
	push_in(1300);
	rig.take = TL_TAKEN;
	push_in(1300);
	cr_assert_eq(rig.rxs, 3);
	cr_assert(rig.rx[2].again);
}

Test(pdl_rx, s6_6_3_marks_do_not_outlive_their_push)
{
	rig.ulp_acks = false;
	rig_start();
	push_in(1300);
	pdl_nack(rig.c, rig.now, false, 1300, FALCON_NACK_RNR, 9, 0);
	pdl_ulp_ack(rig.c, rig.now, 1300); /* delivered again here, and taken */
	for (uint32_t psn = 1301; psn <= 1300 + FA_DATA_WINDOW; psn++) {
		push_in(psn);
		pdl_ulp_ack(rig.c, rig.now, psn);
	}
	cr_assert_eq(rig.rxs, 1 + FA_DATA_WINDOW);
	/* The same place in the map. */
	push_in(1300 + FA_DATA_WINDOW);
	cr_assert_eq(rig.rxs, 1 + FA_DATA_WINDOW);
	for (unsigned i = 0; i < rig.rxs; i++)
		cr_assert_not(rig.rx[i].again);
}

Test(pdl_rx, s6_6_5_a_lost_nack_is_repeated_with_the_same_code)
{
	static const uint8_t codes[] = {
		FALCON_NACK_CIE, FALCON_NACK_NON_RECOVERABLE, FALCON_NACK_INVALID_CID};

	rig.ulp_acks = false;
	rig_start();
	for (unsigned i = 0; i < 3; i++) {
		push_in(1300 + i);
		pdl_nack(rig.c, rig.now, false, 1300 + i, codes[i], 0, (uint8_t)(0x40 + i));
	}
	rig_run(0);
	cr_assert_eq(rig_count(FALCON_NACK), 3);
	for (unsigned i = 3; i-- > 0;)
		push_in(1300 + i);
	cr_assert_eq(rig.rxs, 3); /* the ULP does not get it */
	rig_run(0);
	cr_assert_eq(rig_count(FALCON_NACK), 6);
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(rig.sent[5 - i].h.psn, 1300 + i);
		cr_assert_eq(rig.sent[5 - i].h.nack_code, codes[i]);
		cr_assert_eq(rig.sent[5 - i].h.ulp_code, 0x40 + i);
	}
	/* Until its Resync arrives. */
	resync_in(1300, FALCON_PUSH_DATA);
	cr_assert_eq(rx()->dbase, 1301);
	push_in(1300);
	rig_run(0);
	cr_assert_eq(rig_count(FALCON_NACK), 6);
}

/* ---- Resync ---- */

Test(pdl_rx, s9_2_5_a_resync_fills_the_hole)
{
	rig_start();
	push_in(1301);
	resync_in(1300, FALCON_PUSH_DATA);
	cr_assert_eq(rx()->dbase, 1302);
	cr_assert_eq(rig.rx[1].type, FALCON_RESYNC);
	cr_assert_eq(rig.rx[1].psn, 1300);
	resync_in(1101, FALCON_PULL_REQUEST);
	cr_assert_eq(rx()->req, 2);
	resync_in(1302, FALCON_PULL_DATA);
	cr_assert_eq(rx()->dbase, 1303);
	cr_assert_eq(rig_reason(FA_RESYNC_IN), 3);
	rig_let(20 * US);
	cr_assert_eq(rig_count(FALCON_EACK), 1);
}

Test(pdl_rx, s11_a_second_resync_is_dropped_and_acknowledged)
{
	rig_start();
	resync_in(1300, FALCON_PUSH_DATA);
	rig_let(20 * US);
	resync_in(1300, FALCON_PUSH_DATA);
	cr_assert_eq(rig.rxs, 1);
	cr_assert_eq(rig_reason(FA_DUPLICATE), 1);
	rig_let(20 * US);
	cr_assert_eq(rig_count(FALCON_BACK), 2);
	cr_assert_eq(rig_last(FALCON_BACK)->h.dbpsn, 1301);
}

Test(pdl_rx, a_resync_overtakes_the_ulp)
{
	rig.ulp_acks = false;
	rig_start();
	push_in(1300);
	resync_in(1300, FALCON_PUSH_DATA);
	cr_assert_eq(rx()->dbase, 1301);
	pdl_ulp_ack(rig.c, rig.now, 1300); /* too late, and without effect */
	cr_assert_eq(rx()->dbase, 1301);
	pdl_nack(rig.c, rig.now, false, 1300, FALCON_NACK_CIE, 0, 0);
	rig_run(0);
	cr_assert_eq(rig_count(FALCON_NACK), 0);
}

Test(pdl_rx, a_resync_without_room_is_nacked)
{
	rig_start();
	rig.take = TL_REFUSED;
	resync_in(1300, FALCON_PUSH_DATA);
	cr_assert_eq(rx()->dbase, 1300);
	rig_run(0);
	cr_assert_eq(rig_last(FALCON_NACK)->h.nack_code, FALCON_NACK_RESOURCES);
}

/* ---- Invalid packets ---- */

Test(pdl_rx, false_packets_are_counted_and_dropped)
{
	struct wire_falcon h = {.type = FALCON_PUSH_DATA, .psn = 1300, .request_len = 4097};

	rig_start();
	rig_in(h);
	cr_assert_eq(rig_reason(FA_LENGTH), 1);
	resync_in(1300, FALCON_BACK);
	cr_assert_eq(rig_reason(FA_TYPE), 1);
	rig.params.protocol = FALCON_NVME; /* of the packets that arrive */
	push_in(1300);
	cr_assert_eq(rig_reason(FA_PROTOCOL), 1);
	cr_assert_eq(rig.rxs, 0);
	cr_assert_eq(rig.bufs, 0);
	rig_let(20 * US);
	cr_assert_eq(rig.sents, 0);
}

/* Not a rule of the specification: what is dropped counts as lost on the wire. */
Test(pdl_rx, with_few_buffers_what_must_wait_counts_as_lost)
{
	rig_start();
	fa_stack_scarce(rig.s, true);
	rig.next_rsn = 0;
	push_in(1301);
	push_in(1302);
	cr_assert_eq(rig.rxs, 0);
	cr_assert_eq(rig_reason(FA_SCARCE), 2);
	rig_run(100 * US);
	cr_assert_eq(rig_count(FALCON_NACK), 0);
	push_in(1300);
	cr_assert_eq(rig.rxs, 1, "the head of the line is taken");
	push_in(1300);
	cr_assert_eq(rig_reason(FA_SCARCE), 2, "a duplicate holds nothing");
	fa_stack_scarce(rig.s, false);
	push_in(1302);
	push_in(1301);
	cr_assert_eq(rig.rxs, 3, "the peer's retransmissions");
}
