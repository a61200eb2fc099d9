/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Errors and the release of resources (section 11): completion codes, lengths, reclaim, Resync, the
 * end of a connection.
 */
#include "tl_fake.h"

#define PUSH FALCON_PUSH_DATA
#define PULL FALCON_PULL_REQUEST
#define DATA FALCON_PULL_DATA
#define SEC  1000000000ull

static void
completion(uint32_t rsn, enum fa_completion code, uint8_t ulp_code)
{
	struct fake_entry *e = fake_expect(FA_COMPLETION, rsn);

	cr_assert_eq(e->c, (uint32_t)code, "RSN %u: completion %u, not %d", rsn, e->c, code);
	cr_assert_eq(e->d, ulp_code);
}

Test(falcon_tl_error, s8_5_3_5_each_verdict_on_a_push_is_a_nack_with_the_ulps_code)
{
	static const uint8_t codes[] = {[FA_CIE] = FALCON_NACK_CIE,
		[FA_FATAL_ERROR] = FALCON_NACK_NON_RECOVERABLE,
		[FA_WRONG_CID] = FALCON_NACK_INVALID_CID};
	unsigned v;

	fake_start(true, NULL);
	for (v = FA_CIE; v <= FA_WRONG_CID; v++) {
		struct fake_entry *e;

		fake_rx(0, PUSH, v - FA_CIE + 1, 300 + v, 8);
		fake_expect(FA_PUSH, v - FA_CIE + 1);
		fake_outcome(0, v - FA_CIE + 1, v);
		e = fake_next(F_NACK);
		cr_assert_eq(e->a, codes[v]);
		cr_assert_eq(e->b, 300 + v);
		cr_assert_eq(e->d, 0x5a);
		/* Its Resync has no effect, and the connection continues. */
		cr_assert_eq(fake_resync(0, PUSH, v - FA_CIE + 1, 300 + v), TL_TAKEN);
		cr_assert_eq(fk.s.tl.rx_pkt_net.used, 0, "resources are given back");
	}
	fake_quiet();
	cr_assert_eq(fake_counted(FA_RSN), 0);
	fake_stop();
}

Test(falcon_tl_error, s8_4_3_completions_in_error_come_in_rsn_order_with_the_peers_code)
{
	fake_start(true, NULL);
	for (unsigned i = 0; i < 5; i++)
		fa_push(&fk.c[0], fk.now, fake_buf(8));
	fk.read = fk.count;
	fake_sent(0, PUSH, 2, FA_TARGET_CIE, 0x5a);
	fake_sent(0, PUSH, 3, FA_TARGET_FATAL, 0x11);
	fake_sent(0, PUSH, 5, FA_REMOTE_ERROR, 0);
	fake_sent(0, PUSH, 4, FA_TARGET_CID, 0);
	fake_quiet();
	fake_sent(0, PUSH, 1, FA_DONE, 0);
	completion(1, FA_DONE, 0);
	completion(2, FA_TARGET_CIE, 0x5a);
	completion(3, FA_TARGET_FATAL, 0x11);
	completion(4, FA_TARGET_CID, 0);
	completion(5, FA_REMOTE_ERROR, 0);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_error, s11_verdicts_on_a_pull)
{
	fake_start(true, NULL);
	for (unsigned i = 0; i < 3; i++)
		fake_rx_pull(0, 1 + i, 100 + i, 64);
	fk.read = fk.count;
	fake_outcome(0, 1, FA_WRONG_CID); /* reclaimed, without a message */
	cr_assert_eq(fake_counted(FA_BAD_OUTCOME), 0);
	fake_outcome(0, 2, FA_CIE); /* not applicable */
	fake_outcome(0, 3, FA_FATAL_ERROR);
	cr_assert_eq(fake_counted(FA_BAD_OUTCOME), 2);
	fake_quiet();
	cr_assert_eq(fk.s.tl.rx_pkt_net.used, 0);
	fake_stop();
}

Test(falcon_tl_error, s11_pull_data_smaller_than_asked_is_right_larger_is_an_operation_error)
{
	fake_start(true, NULL);
	for (unsigned i = 0; i < 3; i++)
		fa_pull(&fk.c[0], fk.now, fake_buf(28), 100);
	fk.read = fk.count;
	cr_assert_eq(fake_rx(0, DATA, 1, 200, 0), TL_TAKEN);
	cr_assert_eq(fake_expect(FA_PULL_DATA, 1)->buf->len, 0);
	cr_assert_eq(fake_rx(0, DATA, 2, 201, 101), TL_DROPPED);
	completion(2, FA_OPERATION_ERROR, 0);
	cr_assert_eq(fake_counted(FA_LENGTH), 1);
	cr_assert_eq(fake_rx(0, DATA, 3, 202, 100), TL_TAKEN);
	fake_expect(FA_PULL_DATA, 3);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_error, s8_4_3_2_pull_data_for_nothing_is_discarded)
{
	fake_start(true, NULL);
	fa_push(&fk.c[0], fk.now, fake_buf(8));
	fa_pull(&fk.c[0], fk.now, fake_buf(28), 100);
	fk.read = fk.count;
	cr_assert_eq(fake_rx(0, DATA, 1, 200, 8), TL_DROPPED, "that was a push");
	cr_assert_eq(fake_rx(0, DATA, 3, 201, 8), TL_DROPPED, "that is to come");
	cr_assert_eq(fake_rx(1, DATA, 2, 201, 8), TL_DROPPED, "another connection's");
	cr_assert_eq(fake_rx(0, DATA, 2, 202, 8), TL_TAKEN);
	cr_assert_eq(fake_rx(0, DATA, 2, 203, 8), TL_DROPPED, "waits for its turn already");
	fake_quiet();
	fake_sent(0, PUSH, 1, FA_DONE, 0);
	completion(1, FA_DONE, 0);
	cr_assert_eq(fake_expect(FA_PULL_DATA, 2)->buf->len, 8);
	cr_assert_eq(fake_rx(0, DATA, 2, 204, 8), TL_DROPPED, "and is done");
	cr_assert_eq(fake_counted(FA_NO_REQUEST), 5);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_error, hostile_lengths_of_requests)
{
	struct wire_falcon h = {.type = PUSH, .rsn = 1, .psn = 1, .request_len = 9};
	struct fa_buf *b;

	fake_start(true, NULL);
	b = fake_buf(8);
	cr_assert_eq(
		tl_rx(&fk.c[0], fk.now, &h, b, false), TL_DROPPED, "9 bytes announced, 8 sent");
	fa_buf_free(&fk.s, b);
	cr_assert_eq(fake_rx(0, PUSH, 1, 2, 4097), TL_DROPPED, "beyond the MTU");
	cr_assert_eq(fake_rx_pull(0, 1, 1, 65535), TL_DROPPED, "requests more than an MTU");
	cr_assert_eq(fake_rx_pull(0, 1, 1, 4097), TL_DROPPED);
	cr_assert_eq(fake_rx_pull(0, 1, 1, 4096), TL_TAKEN);
	cr_assert_eq(fake_counted(FA_LENGTH), 4);
	fake_expect(FA_PULL, 1);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_error, a_false_outcome_or_pull_data_of_our_ulp_changes_nothing)
{
	fake_start(true, NULL);
	fake_rx_pull(0, 1, 100, 64);
	fake_rx(0, PUSH, 3, 300, 8);
	fk.read = fk.count;
	fake_outcome(0, 2, FA_TAKEN); /* never arrived */
	fake_outcome(0, 3, FA_TAKEN); /* was not delivered yet */
	fake_outcome(0, 1, 17);
	fa_pull_data(&fk.c[0], fk.now, 1, fake_buf(8)); /* before it was taken */
	fake_outcome(0, 1, FA_TAKEN);
	fake_outcome(0, 1, FA_TAKEN);                   /* twice */
	fa_pull_data(&fk.c[0], fk.now, 3, fake_buf(8)); /* a push */
	cr_assert_eq(fake_counted(FA_BAD_OUTCOME), 6);
	fake_quiet();
	fa_pull_data(&fk.c[0], fk.now, 1, fake_buf(64));
	cr_assert_eq(fake_next(F_SEND)->b, 1);
	fa_pull_data(&fk.c[0], fk.now, 1, fake_buf(64)); /* twice */
	cr_assert_eq(fake_counted(FA_BAD_OUTCOME), 7);
	fake_quiet();
	fake_stop();
}

/* A peer whose ULP requests more of ours than its Falcon announced must not leave a pull here for
 * ever. */
Test(falcon_tl_error, pull_data_longer_than_its_request_goes_out_empty_falcon_11)
{
	fake_start(true, NULL);
	fake_rx_pull(0, 1, 100, 64);
	fk.read = fk.count;
	fake_outcome(0, 1, FA_TAKEN);
	fa_pull_data(&fk.c[0], fk.now, 1, fake_buf(65));
	cr_assert_eq(fake_counted(FA_BAD_OUTCOME), 1);
	cr_assert_eq(fake_next(F_SEND)->b, 1);
	cr_assert_eq(fk.s.tl.shares.pulls.held, 0);
	fake_quiet();
	fake_stop();
}

/* ---- Reclaim ---- */

static void
ten_seconds(struct fa_config *cfg, struct fa_params *p)
{
	cfg->reclaim_ns = 10 * SEC;
}

Test(falcon_tl_error, s11_a_pull_whose_data_never_comes_is_reclaimed)
{
	fake_start(true, ten_seconds);
	fa_pull(&fk.c[0], fk.now, fake_buf(28), 64);
	fake_sent(0, PULL, 1, FA_DONE, 0);
	fake_wait(4 * SEC);
	fa_push(&fk.c[0], fk.now, fake_buf(8));
	fk.read = fk.count;
	fake_wait(6 * SEC - 1);
	fake_quiet();
	fake_wait(1);
	completion(1, FA_LOCAL_TIMEOUT, 0);
	fake_quiet(); /* the push is younger */
	cr_assert_eq(fake_counted(FA_RECLAIMED), 1);
	cr_assert_eq(fake_rx(0, DATA, 1, 200, 64), TL_DROPPED, "too late");
	fake_sent(0, PUSH, 2, FA_DONE, 0);
	completion(2, FA_DONE, 0);
	fake_wait(100 * SEC);
	fake_quiet();
	cr_assert_eq(fk.timer[0], SK_NEVER, "an idle connection has no timer");
	fake_stop();
}

Test(falcon_tl_error, s11_a_packet_that_never_gets_through_becomes_a_resync)
{
	fake_start(true, ten_seconds);
	fa_push(&fk.c[0], fk.now, fake_buf(8));
	fa_pull(&fk.c[0], fk.now, fake_buf(28), 64);
	fk.read = fk.count;
	fake_wait(10 * SEC);
	cr_assert_eq(fake_next(F_WITHDRAW)->c, FALCON_RESYNC_TIMEOUT);
	cr_assert_eq(fake_next(F_WITHDRAW)->b, 2);
	completion(1, FA_LOCAL_TIMEOUT, 0);
	completion(2, FA_LOCAL_TIMEOUT, 0);
	cr_assert_eq(fk.s.tl.tx_pkt_req.used, 2, "the packets are still with PDL");
	/* The acknowledgements arrive, and nothing completes twice. */
	fake_sent(0, PUSH, 1, FA_LOCAL_TIMEOUT, 0);
	fake_sent(0, PULL, 2, FA_LOCAL_TIMEOUT, 0);
	fake_quiet();
	cr_assert_eq(fk.s.tl.tx_pkt_req.used, 0);
	fake_stop();
}

Test(falcon_tl_error, s11_what_was_not_sent_is_simply_taken_back)
{
	fake_start(false, ten_seconds);
	fk.withdraw = true;
	fa_push(&fk.c[0], fk.now, fake_buf(8));
	fake_next(F_SEND);
	fake_wait(10 * SEC);
	fake_next(F_WITHDRAW);
	completion(1, FA_LOCAL_TIMEOUT, 0);
	cr_assert_eq(fk.s.tl.tx_pkt_req.used, 0);
	cr_assert_eq(fk.bufs, 0);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_error, s11_a_peer_that_reports_not_ready_is_alive_its_push_is_not_reclaimed)
{
	fake_start(true, ten_seconds);
	fa_push(&fk.c[0], fk.now, fake_buf(8));
	fk.read = fk.count;
	for (unsigned i = 0; i < 5; i++) {
		fake_wait(9 * SEC);
		fk.sent[0]->since = fk.now; /* as PDL does at an RNR NACK */
	}
	fake_quiet();
	fake_wait(10 * SEC);
	fake_next(F_WITHDRAW);
	completion(1, FA_LOCAL_TIMEOUT, 0);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_error, s11_requests_behind_a_gap_that_is_never_filled_do_not_stay_for_ever)
{
	fake_start(true, ten_seconds);
	fake_rx_pull(0, 2, 100, 64);
	fake_wait(19 * SEC);
	fake_quiet();
	fake_wait(1 * SEC);
	cr_assert_eq(fake_next(F_FAIL)->a, FA_DEAD_CONNECTION);
	fake_bury(0);
	cr_assert_eq(fake_next(F_EVENT)->a, FA_EV_DEAD);
	cr_assert_eq(fk.s.tl.rx_pkt_net.used, 0);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_error, s11_a_gap_that_is_filled_late_is_no_error)
{
	fake_start(true, ten_seconds);
	fake_rx_pull(0, 2, 100, 64);
	fake_rx_pull(0, 4, 101, 64);
	fake_wait(15 * SEC);
	fake_rx(0, PUSH, 1, 300, 8);
	fake_expect(FA_PUSH, 1);
	fake_expect(FA_PULL, 2);
	fake_outcome(0, 1, FA_TAKEN);
	fake_next(F_ACK);
	fake_outcome(0, 2, FA_TAKEN);
	fake_wait(15 * SEC); /* the second gap counts from its own start */
	fake_rx(0, PUSH, 3, 301, 8);
	fake_expect(FA_PUSH, 3);
	fake_expect(FA_PULL, 4);
	fake_wait(100 * SEC);
	fake_quiet();
	fake_stop();
}

/* The gap is behind a push that the ULP refuses and takes later. */
Test(falcon_tl_error, s11_a_gap_that_shows_after_rnr_does_not_stay_for_ever)
{
	fake_start(true, ten_seconds);
	fake_rx(0, PUSH, 1, 300, 8);
	fake_expect(FA_PUSH, 1);
	fake_rnr(0, 1, 12);
	fake_next(F_NACK);
	fake_rx_pull(0, 3, 100, 64); /* 2 is missing */
	fake_wait(640000);
	fake_expect(FA_PUSH, 1);
	fake_outcome(0, 1, FA_TAKEN);
	fake_next(F_ACK);
	fake_quiet();
	fake_wait(19 * SEC);
	fake_quiet();
	fake_wait(2 * SEC);
	cr_assert_eq(fake_next(F_FAIL)->a, FA_DEAD_CONNECTION);
	fake_quiet();
	fake_stop();
}

/* Makes a gap: the room of a push that the ULP refused, for which a pull waits, is needed. */
static void
evict_the_head(void)
{
	fake_start(true, ten_seconds);
	fake_rx(0, PUSH, 1, 300, 8);
	fake_expect(FA_PUSH, 1);
	fake_rnr(0, 1, 12);
	fake_next(F_NACK);
	fake_rx_pull(0, 2, 100, 64);
	fake_wait(100000);
	cr_assert(tl_rnr_evict(&fk.s, fk.now));
	fake_wait(15 * SEC);
	fake_quiet();
}

Test(falcon_tl_error, s11_a_gap_in_place_of_a_refused_push_does_not_stay_for_ever)
{
	evict_the_head();
	fake_wait(6 * SEC);
	cr_assert_eq(fake_next(F_FAIL)->a, FA_DEAD_CONNECTION);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_error, s11_a_refused_push_may_come_again_late)
{
	evict_the_head();
	fake_rx_again(0, 1, 300, 8);
	fake_expect(FA_PUSH, 1);
	fake_wait(100 * SEC);
	fake_quiet();
	fake_rnr(0, 1, 12); /* no gap is left, as old as it would be */
	fake_next(F_NACK);
	cr_assert(tl_rnr_evict(&fk.s, fk.now));
	fake_wait(15 * SEC);
	fake_quiet();
	fake_rx_again(0, 1, 300, 8);
	fake_expect(FA_PUSH, 1);
	fake_outcome(0, 1, FA_TAKEN);
	fake_next(F_ACK);
	fake_expect(FA_PULL, 2);
	fake_wait(100 * SEC);
	fake_quiet();
	fake_stop();
}

/* ---- Resync ---- */

Test(falcon_tl_error, s9_2_5_a_resync_fills_the_place_of_what_will_not_come)
{
	fake_start(true, NULL);
	fake_rx(0, PUSH, 2, 301, 8);
	fake_rx(0, PUSH, 5, 304, 8);
	cr_assert_eq(fake_resync(0, PULL, 4, 100), TL_TAKEN);
	cr_assert_eq(fake_resync(0, PUSH, 3, 302), TL_TAKEN);
	cr_assert_eq(fake_resync(0, PUSH, 3, 302), TL_TAKEN, "a repetition");
	fake_quiet();
	cr_assert_eq(fake_resync(0, PUSH, 1, 300), TL_TAKEN);
	fake_expect(FA_PUSH, 2);
	fake_quiet();
	fake_outcome(0, 2, FA_TAKEN);
	fake_next(F_ACK);
	fake_expect(FA_PUSH, 5);
	cr_assert_eq(fake_resync(0, PUSH, 1 + TL_RSN_REACH + 5, 305), TL_DROPPED);
	cr_assert_eq(fake_counted(FA_RSN), 1);
	cr_assert_eq(fake_rx(0, PUSH, 3, 306, 8), TL_DROPPED, "it was given up");
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_error, s9_2_5_what_waits_for_its_turn_and_is_given_up_is_not_delivered)
{
	fake_start(true, NULL);
	fake_rx(0, PUSH, 2, 301, 8);
	fake_rx(0, PUSH, 3, 302, 8);
	fake_resync(0, PUSH, 2, 301);
	cr_assert_eq(fk.bufs, 1, "its payload is gone");
	fake_rx(0, PUSH, 1, 300, 8);
	fake_expect(FA_PUSH, 1);
	fake_outcome(0, 1, FA_TAKEN);
	fake_next(F_ACK);
	fake_expect(FA_PUSH, 3);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_error, s9_2_5_pull_data_that_was_given_up_fails_its_pull)
{
	fake_start(true, NULL);
	fa_pull(&fk.c[0], fk.now, fake_buf(28), 64);
	fake_sent(0, PULL, 1, FA_DONE, 0);
	fk.read = fk.count;
	cr_assert_eq(fake_resync(0, DATA, 1, 200), TL_TAKEN);
	completion(1, FA_REMOTE_ERROR, 0);
	cr_assert_eq(fake_resync(0, DATA, 1, 200), TL_DROPPED);
	cr_assert_eq(fake_counted(FA_NO_REQUEST), 1);
	fake_quiet();
	fake_stop();
}

/* ---- The end of a connection ---- */

Test(falcon_tl_error, s11_a_dead_connection_completes_all_that_is_outstanding_once_and_in_order)
{
	fake_start(true, NULL);
	fa_push(&fk.c[0], fk.now, fake_buf(8));      /* with PDL */
	fa_pull(&fk.c[0], fk.now, fake_buf(28), 64); /* acknowledged, waits for its data */
	fa_pull(&fk.c[0], fk.now, fake_buf(28), 64); /* has its data */
	fake_sent(0, PULL, 2, FA_DONE, 0);
	fake_rx(0, DATA, 3, 200, 64);
	fake_rx(0, PUSH, 1, 300, 8); /* with the ULP */
	fake_rx(0, PUSH, 3, 302, 8); /* behind a gap */
	fake_rx_pull(0, 2, 100, 64);
	fake_outcome(0, 2, FA_TAKEN);
	fk.read = fk.count;
	fa_conn_fail(&fk.c[0], fk.now, FA_DEAD_CONNECTION);
	fake_next(F_FAIL);
	fake_outcome(0, 1, FA_TAKEN); /* late, and no fault */
	fa_pull_data(&fk.c[0], fk.now, 2, fake_buf(64));
	fake_bury(0);
	completion(1, FA_DEAD_CONNECTION, 0);
	completion(2, FA_DEAD_CONNECTION, 0);
	fake_expect(FA_PULL_DATA, 3);
	cr_assert_eq(fake_next(F_EVENT)->a, FA_EV_DEAD);
	cr_assert_eq(fk.s.tl.rx_pkt_net.used, 0);
	fa_push(&fk.c[0], fk.now, fake_buf(8));
	completion(4, FA_DEAD_CONNECTION, 0);
	fake_outcome(0, 3, FA_TAKEN);
	cr_assert_eq(fake_counted(FA_BAD_OUTCOME), 0);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_error, s11_the_end_waits_for_a_way_to_the_ulp_that_is_full)
{
	fake_start(true, NULL);
	fa_push(&fk.c[0], fk.now, fake_buf(8));
	fk.read = fk.count;
	fa_conn_fail(&fk.c[0], fk.now, FA_DEAD_CONNECTION);
	fake_next(F_FAIL);
	fk.room = 0;
	fake_bury(0);
	fa_push(&fk.c[0], fk.now, fake_buf(8));
	fa_push(&fk.c[0], fk.now, fake_buf(8));
	fake_quiet();
	fk.room = 2;
	fa_deliver_resume(&fk.c[0], fk.now);
	completion(1, FA_DEAD_CONNECTION, 0);
	completion(2, FA_DEAD_CONNECTION, 0);
	fake_quiet();
	fk.room = 9;
	fa_deliver_resume(&fk.c[0], fk.now);
	completion(3, FA_DEAD_CONNECTION, 0);
	cr_assert_eq(fake_next(F_EVENT)->a, FA_EV_DEAD);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_error, a_request_beyond_the_mtu_ends_an_ordered_connection_not_an_unordered_one)
{
	fake_start(false, NULL);
	fa_push(&fk.c[0], fk.now, fake_buf(4097));
	completion(1, FA_OPERATION_ERROR, 0);
	fa_pull(&fk.c[0], fk.now, fake_buf(8), 4097);
	completion(2, FA_OPERATION_ERROR, 0);
	fa_push(&fk.c[0], fk.now, fake_buf(4096));
	cr_assert_eq(fake_next(F_SEND)->b, 3);
	fake_quiet();
	fake_stop();
	fake_start(true, NULL);
	fa_push(&fk.c[0], fk.now, fake_buf(8));
	fake_next(F_SEND);
	fa_push(&fk.c[0], fk.now, fake_buf(4097));
	cr_assert_eq(fake_next(F_FAIL)->a, FA_OPERATION_ERROR);
	fa_push(&fk.c[0], fk.now, fake_buf(8));
	fake_quiet();
	fake_bury(0);
	for (unsigned i = 0; i < 3; i++)
		completion(1 + i, FA_OPERATION_ERROR, 0);
	cr_assert_eq(fake_next(F_EVENT)->a, FA_EV_DEAD);
	fake_quiet();
	fake_stop();
}
