/* SPDX-License-Identifier: BSD-3-Clause */
/* PLB (10.4): rounds, congested rounds, and the change of path after several consecutive ones. */
#include <criterion/criterion.h>

#include "rue_event.h"

#define NOW 1000000u

static struct rue_case t;

static void
init(void)
{
	rue_case_init(&t, NOW);
}

TestSuite(plb, .init = init);

static bool
ack(uint32_t acked, bool congested)
{
	return fa_plb_ack(&t.cc, &t.p.plb, W(10), acked, congested ? acked : 0);
}

Test(plb, a_round_is_a_window_of_packets)
{
	cr_assert_not(ack(9, true));
	cr_assert_eq(t.cc.plb_acked, 9);
	cr_assert_eq(t.cc.plb_congested, 9);
	cr_assert_eq(t.cc.plb_attempts, 0);
	cr_assert_not(ack(1, false));
	cr_assert_eq(t.cc.plb_acked, 0);
	cr_assert_eq(t.cc.plb_congested, 0);
	cr_assert_eq(t.cc.plb_attempts, 1);
}

Test(plb, half_of_a_round_makes_it_congested)
{
	ack(6, false);
	ack(4, true);
	cr_assert_eq(t.cc.plb_attempts, 0);
	ack(5, false);
	ack(5, true);
	cr_assert_eq(t.cc.plb_attempts, 1);
}

Test(plb, five_congested_rounds_in_a_row_change_the_path)
{
	for (int i = 0; i < 4; i++)
		cr_assert_not(ack(10, true));
	cr_assert(ack(10, true));
	cr_assert_eq(t.cc.plb_attempts, 0);
	cr_assert_not(ack(10, true), "counting starts again");
}

Test(plb, a_good_round_starts_the_count_again)
{
	for (int i = 0; i < 4; i++)
		ack(10, true);
	ack(10, false);
	for (int i = 0; i < 4; i++)
		cr_assert_not(ack(10, true));
	cr_assert(ack(10, true));
}

Test(plb, can_be_switched_off)
{
	t.p.plb.attempts = 0;
	for (int i = 0; i < 100; i++)
		cr_assert_not(ack(10, true));
	cr_assert_eq(t.cc.plb_acked, 0);
}

/* 1.01 times the target of 100 does not exceed it, one more does; and the window is the smaller one
 * before the event. */
Test(plb, swift_feeds_it_with_acknowledgements)
{
	t.nic.ncwnd = W(4);
	t.ev.acked = 3;
	rue_ack(&t, 200, 100);
	cr_assert_eq(t.cc.plb_acked, 3);
	cr_assert_eq(t.cc.plb_congested, 0);
	t.ev.acked = 0;
	t.cc.plb_acked = 0;
	t.nic.ncwnd = W(4);
	t.ev.acked = 3;
	t.p.swift.plb_delay = FA_FRACTION_ONE * 3 / 2;
	rue_ack(&t, 200, 150);
	cr_assert_eq(t.cc.plb_congested, 0, "not beyond");
	rue_ack(&t, 200, 151);
	cr_assert_eq(t.cc.plb_acked, 0, "six of five: the round is over");
	cr_assert_eq(t.cc.plb_attempts, 1);
	t.cc.plb_attempts = 4;
	t.ev.acked = 10;
	rue_ack(&t, 200, 151);
	cr_assert(t.res.randomize_path);
	rue_retransmit(&t, FA_RUE_TIMEOUT, 1);
	cr_assert_not(t.res.randomize_path, "every event sets the result");
}
