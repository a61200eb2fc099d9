/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests for which the ULP is not ready (sections 8.5.3.4, 11). */
#include "tl_fake.h"

#define PUSH  FALCON_PUSH_DATA
#define PULL  FALCON_PULL_REQUEST
#define MS_64 12 /* code of 0.64 ms */
#define NS_64 640000u

static void
wait_for_retransmission(struct fa_config *cfg, struct fa_params *p)
{
	cfg->push_reoffer = false;
}

static void
rnr_nack(uint32_t psn)
{
	struct fake_entry *e = fake_next(F_NACK);

	cr_assert_eq(e->a, FALCON_NACK_RNR);
	cr_assert_eq(e->b, psn);
	cr_assert_eq(e->c, MS_64);
}

Test(falcon_tl_rnr, s8_5_3_4_a_push_is_nacked_and_offered_again_after_its_timeout)
{
	fake_start(true, NULL);
	fake_rx(0, PUSH, 1, 300, 8);
	cr_assert(!fake_expect(FA_PUSH, 1)->restart);
	fake_rnr(0, 1, MS_64);
	rnr_nack(300);
	fake_wait(NS_64 - 1);
	fake_quiet();
	fake_wait(1);
	cr_assert(fake_expect(FA_PUSH, 1)->restart, "the ULP ends its refusing here");
	fake_outcome(0, 1, FA_TAKEN);
	cr_assert_eq(fake_next(F_ACK)->b, 300);
	fake_wait(10 * NS_64);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_rnr, s11_a_push_is_offered_again_when_its_retransmission_comes)
{
	fake_start(true, wait_for_retransmission);
	fake_rx(0, PUSH, 1, 300, 8);
	fake_expect(FA_PUSH, 1);
	fake_rnr(0, 1, MS_64);
	rnr_nack(300);
	fake_wait(10 * NS_64);
	fake_quiet();
	cr_assert_eq(fake_rx_again(0, 1, 300, 8), TL_TAKEN);
	fake_expect(FA_PUSH, 1);
	/* A second copy while the ULP has the first: no second delivery. */
	cr_assert_eq(fake_rx_again(0, 1, 300, 8), TL_TAKEN);
	fake_quiet();
	fake_rnr(0, 1, MS_64);
	rnr_nack(300);
	cr_assert_eq(fake_rx_again(0, 1, 300, 8), TL_TAKEN);
	fake_expect(FA_PUSH, 1);
	fake_outcome(0, 1, FA_TAKEN);
	cr_assert_eq(fake_next(F_ACK)->b, 300);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_rnr, s8_5_3_4_a_pull_is_kept_and_offered_again_without_any_packet)
{
	fake_start(true, wait_for_retransmission);
	fake_rx_pull(0, 1, 100, 64);
	fake_expect(FA_PULL, 1);
	fake_rnr(0, 1, MS_64);
	fake_quiet();
	fake_wait(NS_64);
	fake_expect(FA_PULL, 1);
	cr_assert_eq(fake_counted(FA_RNR_OUT), 1);
	fake_outcome(0, 1, FA_TAKEN);
	fa_pull_data(&fk.c[0], fk.now, 1, fake_buf(64));
	cr_assert_eq(fake_next(F_SEND)->b, 1);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_rnr, s8_5_3_4_behind_a_refused_one_all_are_refused_also_those_on_their_way)
{
	fake_start(true, NULL);
	fake_rx(0, PUSH, 1, 300, 8);
	fake_rx_pull(0, 2, 100, 64);
	fake_rx(0, PUSH, 3, 301, 8);
	fake_expect(FA_PUSH, 1);
	fake_expect(FA_PULL, 2);
	fake_expect(FA_PUSH, 3);
	fake_rnr(0, 1, MS_64);
	rnr_nack(300);
	fake_rx(0, PUSH, 4, 302, 8); /* arrives meanwhile: NACKed with the same timeout */
	rnr_nack(302);
	fake_rx_again(0, 4, 302, 8); /* and again */
	rnr_nack(302);
	fake_rnr(0, 2, MS_64);
	fake_rnr(0, 3, MS_64);
	rnr_nack(301);
	fake_rx_pull(0, 5, 101, 64);
	fake_quiet();
	fake_wait(NS_64);
	cr_assert(fake_expect(FA_PUSH, 1)->restart);
	fake_quiet(); /* alone, until its outcome */
	fake_outcome(0, 1, FA_TAKEN);
	cr_assert_eq(fake_next(F_ACK)->b, 300);
	cr_assert(!fake_expect(FA_PULL, 2)->restart);
	fake_expect(FA_PUSH, 3);
	fake_expect(FA_PUSH, 4);
	fake_expect(FA_PULL, 5);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_rnr, what_comes_back_late_does_not_overtake_the_one_that_was_offered_again)
{
	fake_start(true, NULL);
	fake_rx(0, PUSH, 1, 300, 8);
	fake_rx(0, PUSH, 2, 301, 8);
	fake_rnr(0, 1, MS_64);
	fk.read = fk.count;
	fake_wait(NS_64);
	fake_expect(FA_PUSH, 1); /* again, while 2 still returns */
	fake_rnr(0, 2, MS_64);
	rnr_nack(301);
	fake_wait(10 * NS_64);
	fake_quiet(); /* 1 decides */
	fake_rnr(0, 1, MS_64);
	rnr_nack(300);
	fake_wait(NS_64);
	cr_assert(fake_expect(FA_PUSH, 1)->restart);
	fake_outcome(0, 1, FA_TAKEN);
	fake_next(F_ACK);
	cr_assert(!fake_expect(FA_PUSH, 2)->restart);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_rnr, s8_5_3_4_a_refusal_in_the_middle_leaves_what_was_before_it_alone)
{
	fake_start(true, NULL);
	for (unsigned i = 0; i < 4; i++)
		fake_rx(0, PUSH, 1 + i, 300 + i, 8);
	fk.read = fk.count;
	fake_outcome(0, 1, FA_TAKEN);
	cr_assert_eq(fake_next(F_ACK)->b, 300);
	fake_rnr(0, 2, MS_64);
	rnr_nack(301);
	fake_rnr(0, 3, MS_64);
	rnr_nack(302);
	fake_rnr(0, 4, MS_64);
	rnr_nack(303);
	fake_wait(NS_64);
	fake_expect(FA_PUSH, 2);
	fake_rnr(0, 2, MS_64); /* still not ready */
	rnr_nack(301);
	fake_quiet();
	fake_wait(NS_64);
	fake_expect(FA_PUSH, 2);
	fake_outcome(0, 2, FA_CIE); /* any verdict but RNR lets the others continue */
	cr_assert_eq(fake_next(F_NACK)->a, FALCON_NACK_CIE);
	fake_expect(FA_PUSH, 3);
	fake_expect(FA_PUSH, 4);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_rnr, s8_5_3_4_unordered_each_one_waits_for_its_own_timeout)
{
	fake_start(false, NULL);
	for (unsigned i = 0; i < 3; i++)
		fake_rx(0, PUSH, 1 + i, 300 + i, 8);
	fk.read = fk.count;
	fake_rnr(0, 1, 17); /* 3.84 ms */
	fake_rnr(0, 2, MS_64);
	fake_rnr(0, 3, 13); /* 0.96 ms */
	fk.read = fk.count;
	fake_rx(0, PUSH, 4, 303, 8);
	fake_expect(FA_PUSH, 4);
	fake_wait(NS_64);
	cr_assert(
		!fake_expect(FA_PUSH, 2)->restart, "each for itself: there is no refusing to end");
	fake_wait(320000);
	fake_expect(FA_PUSH, 3);
	fake_rx_again(0, 1, 300, 8);
	fake_expect(FA_PUSH, 1);
	fake_wait(3840000);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_rnr, a_refused_push_that_its_sender_gave_up_is_passed_over)
{
	fake_start(true, NULL);
	for (unsigned i = 0; i < 3; i++)
		fake_rx(0, PUSH, 1 + i, 300 + i, 8);
	for (unsigned i = 0; i < 3; i++)
		fake_rnr(0, 1 + i, MS_64);
	fk.read = fk.count;
	cr_assert_eq(fake_resync(0, PUSH, 1, 300), TL_TAKEN);
	/* The ULP refused all until 1: the next delivery ends that. */
	cr_assert(fake_expect(FA_PUSH, 2)->restart);
	cr_assert(!fake_expect(FA_PUSH, 3)->restart);
	fake_outcome(0, 2, FA_TAKEN);
	fake_next(F_ACK);
	fake_outcome(0, 3, FA_TAKEN);
	fake_next(F_ACK);
	fake_wait(NS_64);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_rnr, a_push_given_up_while_the_ulp_has_it_gets_no_answer)
{
	fake_start(true, NULL);
	fake_rx(0, PUSH, 1, 300, 8);
	fake_rx(0, PUSH, 2, 301, 8);
	fk.read = fk.count;
	fake_resync(0, PUSH, 1, 300);
	fake_rnr(0, 1, MS_64);
	fake_rnr(0, 2, MS_64);
	rnr_nack(301);
	cr_assert(fake_expect(FA_PUSH, 2)->restart);
	fake_outcome(0, 2, FA_TAKEN);
	cr_assert_eq(fake_next(F_ACK)->b, 301);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_rnr, a_gap_that_was_passed_over_is_found_again_after_a_refusal)
{
	fake_start(true, NULL);
	fake_rx(0, PUSH, 1, 300, 8);
	fake_resync(0, PUSH, 2, 301);
	fake_rx(0, PUSH, 3, 302, 8);
	fake_expect(FA_PUSH, 1);
	fake_quiet(); /* 2 counts as skipped only when no refusal can return to it */
	fake_rnr(0, 1, MS_64);
	rnr_nack(300);
	fake_wait(NS_64);
	fake_expect(FA_PUSH, 1);
	fake_outcome(0, 1, FA_TAKEN);
	cr_assert_eq(fake_next(F_ACK)->b, 300);
	fake_expect(FA_PUSH, 3);
	fake_outcome(0, 3, FA_TAKEN);
	fake_next(F_ACK);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_rnr, a_ulp_that_takes_what_stands_behind_a_refused_one_loses_the_connection)
{
	fake_start(true, NULL);
	fake_rx(0, PUSH, 1, 300, 8);
	fake_rx(0, PUSH, 2, 301, 8);
	fk.read = fk.count;
	fake_rnr(0, 1, MS_64);
	rnr_nack(300);
	fake_outcome(0, 2, FA_TAKEN);
	cr_assert_eq(fake_next(F_FAIL)->a, FA_OPERATION_ERROR);
	cr_assert_eq(fake_counted(FA_BAD_OUTCOME), 1);
	fake_quiet(); /* and 2 is not acknowledged */
	fake_stop();
}

Test(falcon_tl_rnr, nor_may_it_refuse_what_stands_before_one_that_it_took)
{
	fake_start(true, NULL);
	fake_rx(0, PUSH, 1, 300, 8);
	fake_rx(0, PUSH, 2, 301, 8);
	fk.read = fk.count;
	fake_outcome(0, 2, FA_TAKEN);
	cr_assert_eq(fake_next(F_ACK)->b, 301);
	fake_rnr(0, 1, MS_64);
	cr_assert_eq(fake_next(F_FAIL)->a, FA_OPERATION_ERROR);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_rnr, a_full_way_at_the_second_offer_loses_nothing)
{
	fake_start(true, NULL);
	fake_rx(0, PUSH, 1, 300, 8);
	fake_rx(0, PUSH, 2, 301, 8);
	fake_rnr(0, 1, MS_64);
	fake_rnr(0, 2, MS_64);
	fk.read = fk.count;
	fk.room = 0;
	fake_wait(NS_64);
	fake_quiet();
	fk.room = 9;
	fa_deliver_resume(&fk.c[0], fk.now);
	cr_assert(fake_expect(FA_PUSH, 1)->restart);
	fake_quiet();
	fake_outcome(0, 1, FA_TAKEN);
	fake_next(F_ACK);
	cr_assert(!fake_expect(FA_PUSH, 2)->restart);
	fake_quiet();
	fake_stop();
}

static unsigned refusals;

static void
refuse_at_once(struct fa_conn *c, const struct fa_delivery *d)
{
	struct fa_outcome o = {.rsn = d->rsn, .rnr = MS_64, .buf = d->buf};

	o.verdict = d->rsn == 1 && refusals++ < 3 ? FA_RNR : FA_TAKEN;
	if (o.verdict == FA_TAKEN) {
		c->s->ops.buf_free(NULL, d->buf);
		o.buf = NULL;
	}
	fk.log[fk.count - 1].buf = NULL;
	fa_outcome(c, fk.now, &o);
}

Test(falcon_tl_rnr, refusals_from_inside_the_delivery)
{
	fake_start(true, NULL);
	fk.react = refuse_at_once;
	fake_rx(0, PUSH, 2, 301, 8);
	fake_rx(0, PUSH, 1, 300, 8);
	for (unsigned i = 0; i < 3; i++) {
		fake_expect(FA_PUSH, 1);
		rnr_nack(300);
		fake_quiet();
		fake_wait(NS_64);
	}
	fake_expect(FA_PUSH, 1);
	cr_assert_eq(fake_next(F_ACK)->b, 300);
	fake_expect(FA_PUSH, 2);
	cr_assert_eq(fake_next(F_ACK)->b, 301);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_rnr, what_came_again_is_not_let_go_since_it_would_not_come_a_third_time)
{
	fake_start(true, NULL);
	for (unsigned i = 0; i < 3; i++)
		fake_rx(0, PUSH, 1 + i, 300 + i, 8);
	for (unsigned i = 0; i < 3; i++)
		fake_rnr(0, 1 + i, MS_64);
	fake_wait(NS_64); /* 1 is delivered again; 2 and 3 wait for its outcome */
	fk.read = fk.count;
	fake_rx_again(0, 2, 301, 8); /* PDL treats this copy as the one that TL needs */
	cr_assert(tl_rnr_evict(&fk.s, fk.now));
	cr_assert(!tl_rnr_evict(&fk.s, fk.now));
	fake_outcome(0, 1, FA_TAKEN);
	fake_next(F_ACK);
	fake_expect(FA_PUSH, 2);
	fake_quiet(); /* 3 was dropped */
	fake_rx_again(0, 3, 302, 8);
	fake_expect(FA_PUSH, 3);
	fake_quiet();
	fake_stop();
}
