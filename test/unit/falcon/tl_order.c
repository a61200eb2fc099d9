/* SPDX-License-Identifier: BSD-3-Clause */
/* Order by RSN at both ends (sections 8.4.1, 8.4.2, 8.5.1, 8.5.2), and attempts to violate it. */
#include "tl_fake.h"

#define PUSH FALCON_PUSH_DATA
#define PULL FALCON_PULL_REQUEST
#define DATA FALCON_PULL_DATA

static void
at_wrap(struct fa_config *cfg, struct fa_params *p)
{
	p->tx_rsn = p->rx_rsn = UINT32_MAX - 1;
}

Test(falcon_tl_order, s8_4_3_rsn_is_assigned_in_order_of_handing_over_pushes_and_pulls_alike)
{
	unsigned i;

	fake_start(true, NULL);
	fa_push(&fk.c[0], fk.now, fake_buf(100));
	fa_pull(&fk.c[0], fk.now, fake_buf(28), 4096);
	fa_push(&fk.c[0], fk.now, fake_buf(0));
	for (i = 0; i < 3; i++) {
		struct fake_entry *e = fake_next(F_SEND);

		cr_assert_eq(e->b, 1 + i);
		cr_assert_eq(e->a, (uint32_t)(i == 1 ? PULL : PUSH));
	}
	cr_assert_eq(fk.log[0].d, 100, "a push has its length");
	cr_assert_eq(fk.log[1].d, 4096, "a pull has the length of its response");
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_order, s8_5_2_target_delivers_pushes_and_pulls_by_rsn)
{
	fake_start(true, NULL);
	cr_assert_eq(fake_rx(0, PUSH, 3, 302, 10), TL_TAKEN);
	cr_assert_eq(fake_rx_pull(0, 2, 100, 64), TL_TAKEN);
	cr_assert_eq(fake_rx(0, PUSH, 5, 303, 10), TL_TAKEN);
	fake_quiet();
	cr_assert_eq(fake_rx(0, PUSH, 1, 300, 10), TL_TAKEN);
	fake_expect(FA_PUSH, 1);
	cr_assert_eq(fake_expect(FA_PULL, 2)->d, 64);
	fake_expect(FA_PUSH, 3);
	fake_quiet();
	fake_rx(0, PUSH, 4, 304, 10);
	fake_expect(FA_PUSH, 4);
	fake_expect(FA_PUSH, 5);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_order, s8_5_2_an_unordered_target_delivers_as_they_come)
{
	fake_start(false, NULL);
	fake_rx(0, PUSH, 900, 302, 10);
	fake_expect(FA_PUSH, 900);
	fake_rx_pull(0, 2, 100, 64);
	fake_expect(FA_PULL, 2);
	fake_rx(0, PUSH, 1, 300, 10);
	fake_expect(FA_PUSH, 1);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_order, s8_4_2_completions_come_back_by_rsn_pull_data_among_them)
{
	fake_start(true, NULL);
	fa_push(&fk.c[0], fk.now, fake_buf(8));
	fa_pull(&fk.c[0], fk.now, fake_buf(28), 64);
	fa_push(&fk.c[0], fk.now, fake_buf(8));
	fk.read = fk.count;
	fake_sent(0, PUSH, 3, FA_DONE, 0);
	fake_sent(0, PULL, 2, FA_DONE, 0);
	fake_rx(0, DATA, 2, 200, 64);
	fake_quiet();
	fake_sent(0, PUSH, 1, FA_DONE, 0);
	cr_assert_eq(fake_expect(FA_COMPLETION, 1)->c, FA_DONE);
	cr_assert_eq(fake_expect(FA_PULL_DATA, 2)->buf->len, 64);
	cr_assert_eq(fake_expect(FA_COMPLETION, 3)->c, FA_DONE);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_order, s8_4_2_an_unordered_initiator_completes_as_it_comes)
{
	fake_start(false, NULL);
	fa_push(&fk.c[0], fk.now, fake_buf(8));
	fa_pull(&fk.c[0], fk.now, fake_buf(28), 64);
	fa_push(&fk.c[0], fk.now, fake_buf(8));
	fk.read = fk.count;
	fake_sent(0, PUSH, 3, FA_DONE, 0);
	fake_expect(FA_COMPLETION, 3);
	fake_rx(0, DATA, 2, 200, 64);
	fake_expect(FA_PULL_DATA, 2);
	fake_sent(0, PUSH, 1, FA_DONE, 0);
	fake_expect(FA_COMPLETION, 1);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_order, s8_4_1_pull_data_may_overtake_the_acknowledgement_of_its_request)
{
	fake_start(true, NULL);
	fa_pull(&fk.c[0], fk.now, fake_buf(28), 64);
	fk.read = fk.count;
	cr_assert_eq(fake_rx(0, DATA, 1, 200, 64), TL_TAKEN);
	fake_expect(FA_PULL_DATA, 1);
	cr_assert_eq(fk.sent_count, 0, "it implies that the request has arrived");
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_order, s8_4_1_8_5_1_rsn_wraps_at_both_ends)
{
	unsigned i;

	fake_start(true, at_wrap);
	for (i = 0; i < 4; i++)
		fa_push(&fk.c[0], fk.now, fake_buf(8));
	fk.read = fk.count;
	for (i = 0; i < 4; i++)
		fake_sent(0, PUSH, UINT32_MAX - 1 + (3 - i), FA_DONE, 0);
	for (i = 0; i < 4; i++)
		fake_expect(FA_COMPLETION, UINT32_MAX - 1 + i);
	for (i = 0; i < 4; i++)
		fake_rx(0, PUSH, UINT32_MAX - 1 + (3 - i), 10 + i, 8);
	for (i = 0; i < 4; i++)
		fake_expect(FA_PUSH, UINT32_MAX - 1 + i);
	/* After the wrap, RSNs from before it are old. */
	cr_assert_eq(fake_rx(0, PUSH, UINT32_MAX, 20, 8), TL_DROPPED);
	cr_assert_eq(fake_counted(FA_RSN), 1);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_order, hostile_rsn_far_off_or_used_before_is_counted_and_dropped)
{
	fake_start(true, NULL);
	cr_assert_eq(fake_rx(0, PUSH, 1 + TL_RSN_REACH, 1, 8), TL_DROPPED);
	cr_assert_eq(fake_rx(0, PUSH, 0, 2, 8), TL_DROPPED);
	cr_assert_eq(fake_rx(0, PUSH, 0x80000001, 3, 8), TL_DROPPED);
	cr_assert_eq(fake_rx(0, PUSH, 2, 4, 8), TL_TAKEN);
	cr_assert_eq(fake_rx(0, PUSH, 2, 5, 8), TL_DROPPED, "held, and comes with another PSN");
	cr_assert_eq(fake_rx_pull(0, 2, 5, 8), TL_DROPPED, "as another type");
	cr_assert_eq(fake_rx_again(0, 2, 5, 8), TL_DROPPED, "as a repetition of another PSN");
	fake_quiet();
	cr_assert_eq(fake_rx(0, PUSH, 1, 6, 8), TL_TAKEN);
	fake_expect(FA_PUSH, 1);
	fake_expect(FA_PUSH, 2);
	cr_assert_eq(fake_rx(0, PUSH, 1, 7, 8), TL_DROPPED, "with the ULP");
	fake_outcome(0, 1, FA_TAKEN);
	cr_assert_eq(fake_next(F_ACK)->b, 6);
	cr_assert_eq(fake_rx(0, PUSH, 1, 8, 8), TL_DROPPED, "done");
	cr_assert_eq(fake_counted(FA_RSN), 8);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_order, hostile_an_unordered_rsn_that_the_ulp_has_is_not_delivered_twice)
{
	fake_start(false, NULL);
	cr_assert_eq(fake_rx(0, PUSH, 7, 1, 8), TL_TAKEN);
	fake_expect(FA_PUSH, 7);
	cr_assert_eq(fake_rx(0, PUSH, 7, 2, 8), TL_DROPPED);
	cr_assert_eq(fake_counted(FA_RSN), 1);
	/* The other connection has RSNs of its own. */
	cr_assert_eq(fake_rx(1, PUSH, 7, 1, 8), TL_TAKEN);
	fake_expect(FA_PUSH, 7);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_order, s8_5_3_a_push_is_acknowledged_only_when_the_ulp_has_taken_it)
{
	fake_start(true, NULL);
	fake_rx(0, PUSH, 1, 300, 8);
	fake_rx(0, PUSH, 2, 301, 8);
	fake_expect(FA_PUSH, 1);
	fake_expect(FA_PUSH, 2);
	fake_quiet();
	fake_outcome(0, 2, FA_TAKEN);
	cr_assert_eq(fake_next(F_ACK)->b, 301);
	fake_outcome(0, 1, FA_TAKEN);
	cr_assert_eq(fake_next(F_ACK)->b, 300);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_order, s8_5_3_2_pull_data_carries_the_rsn_of_its_request)
{
	fake_start(true, NULL);
	fake_rx_pull(0, 1, 100, 4096);
	fake_rx_pull(0, 2, 101, 4096);
	fk.read = fk.count;
	fake_outcome(0, 1, FA_TAKEN);
	fake_outcome(0, 2, FA_TAKEN);
	fake_quiet(); /* pulls were acknowledged when they arrived */
	fa_pull_data(&fk.c[0], fk.now, 2, fake_buf(4096));
	fa_pull_data(&fk.c[0], fk.now, 1, NULL);
	cr_assert_eq(fake_next(F_SEND)->b, 2);
	cr_assert_eq(fk.sent[0]->type, DATA);
	cr_assert_eq(fk.sent[0]->buf->len, 4096);
	cr_assert_eq(fake_next(F_SEND)->b, 1);
	cr_assert_null(fk.sent[1]->buf, "pull data of no bytes");
	fake_sent(0, DATA, 2, FA_DONE, 0);
	fake_sent(0, DATA, 1, FA_DONE, 0);
	fake_quiet(); /* the ULP gets nothing of it */
	fake_stop();
}

/* ---- The queue to the ULP is full ---- */

Test(falcon_tl_order, a_full_way_keeps_the_delivery_and_the_order_until_it_is_resumed)
{
	unsigned i;

	fake_start(true, NULL);
	for (i = 0; i < 2; i++)
		fa_push(&fk.c[0], fk.now, fake_buf(8));
	fk.read = fk.count;
	fk.room = 1;
	fake_rx(0, PUSH, 2, 301, 8);
	fake_rx(0, PUSH, 1, 300, 8);
	fake_expect(FA_PUSH, 1);
	fake_sent(0, PUSH, 1, FA_DONE, 0);
	fake_sent(0, PUSH, 2, FA_DONE, 0);
	fk.room = 9;
	fake_rx(0, PUSH, 3, 302, 8);
	fake_quiet(); /* not before fa_deliver_resume() */
	cr_assert_eq(fake_counted(FA_DELIVER_BUSY), 1, "it calls deliver once");
	fa_deliver_resume(&fk.c[0], fk.now);
	fake_expect(FA_COMPLETION, 1);
	fake_expect(FA_COMPLETION, 2);
	fake_expect(FA_PUSH, 2);
	fake_expect(FA_PUSH, 3);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_order, a_full_way_keeps_what_an_unordered_connection_has_ready)
{
	fake_start(false, NULL);
	fa_pull(&fk.c[0], fk.now, fake_buf(28), 64);
	fk.read = fk.count;
	fk.room = 0;
	fake_rx(0, PUSH, 9, 300, 8);
	fake_rx(0, DATA, 1, 301, 64);
	fake_rx(0, PUSH, 5, 302, 8);
	fake_quiet();
	fk.room = 2;
	fa_deliver_resume(&fk.c[0], fk.now);
	fake_expect(FA_PUSH, 9);
	fake_expect(FA_PULL_DATA, 1);
	fake_quiet();
	cr_assert_eq(fake_counted(FA_DELIVER_BUSY), 2);
	fk.room = 9;
	fa_deliver_resume(&fk.c[0], fk.now);
	fake_expect(FA_PUSH, 5);
	fake_quiet();
	fake_stop();
}

static void
take_at_once(struct fa_conn *c, const struct fa_delivery *d)
{
	struct fa_outcome o = {.rsn = d->rsn, .verdict = FA_TAKEN};

	if (d->type != FA_PUSH)
		return;
	fa_outcome(c, fk.now, &o);
	fa_push(c, fk.now, fake_buf(1)); /* and answers with a request of its own */
}

Test(falcon_tl_order, the_ulp_may_answer_from_inside_a_delivery_which_stays_in_order)
{
	fake_start(true, NULL);
	fk.react = take_at_once;
	fake_rx(0, PUSH, 2, 301, 8);
	fake_rx(0, PUSH, 3, 302, 8);
	fake_rx(0, PUSH, 1, 300, 8);
	for (unsigned i = 0; i < 3; i++) {
		fake_expect(FA_PUSH, 1 + i);
		cr_assert_eq(fake_next(F_ACK)->b, 300 + i);
		cr_assert_eq(fake_next(F_SEND)->b, 1 + i);
	}
	fake_quiet();
	cr_assert_eq(fk.s.tl.rx_pkt_net.used, 0);
	fake_stop();
}

/* With few buffers, packet delivery takes no other payload. */
Test(falcon_tl_order, the_next_of_a_line_is_the_one_that_all_others_wait_for)
{
	struct wire_falcon push = {.type = PUSH, .rsn = 1}, data = {.type = DATA, .rsn = 1};
	struct fa_conn *c = &fk.c[0];

	fake_start(true, NULL);
	cr_assert(tl_rx_is_next(c, &push));
	push.rsn = 2;
	cr_assert_not(tl_rx_is_next(c, &push));
	fake_rx(0, PUSH, 1, 300, 10);
	cr_assert(tl_rx_is_next(c, &push));
	fake_expect(FA_PUSH, 1);
	fake_outcome(0, 1, FA_TAKEN);
	cr_assert_not(tl_rx_is_next(c, &data), "nothing was asked for");
	fa_pull(c, fk.now, fake_buf(28), 64);
	fa_pull(c, fk.now, fake_buf(28), 64);
	cr_assert(tl_rx_is_next(c, &data));
	data.rsn = 2;
	cr_assert_not(tl_rx_is_next(c, &data));
	fake_stop();
}
