/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Swift's fabric window: the effect of acknowledgements, NACKs and retransmissions on fcwnd, on the
 * pacing gap and on the timeout. The expected numbers are derived beside each rule.
 */
#include <criterion/criterion.h>

#include "rue_event.h"

#define NOW 1000000u

static struct rue_case t;

static void
init(void)
{
	rue_case_init(&t, NOW);
}

TestSuite(swift, .init = init);

Test(swift, starts_with_the_initial_windows)
{
	struct fa_cc cc = {.rto_min = 7629};
	struct fa_cc_nic nic = {0};

	fa_swift.init(&cc, &nic, NULL);
	cr_assert_eq(cc.fcwnd, W(32));
	cr_assert_eq(nic.ncwnd, W(64));
	cr_assert_eq(cc.base_delay, 191);
	cr_assert_eq(cc.rto, 7629);
	cr_assert_eq(cc.ipg, 0);
	fa_swift.init(&cc, NULL, NULL); /* another flow: the NIC's part does not change */
}

/* fcwnd += ai * n / fcwnd */
Test(swift, additive_increase_10_3_1)
{
	t.cc.fcwnd = W(8);
	t.ev.acked = 4;
	rue_ack(&t, 200, 99);
	cr_assert_eq(t.cc.fcwnd, W(8.5));
	t.cc.fcwnd = W(32);
	t.ev.acked = 1;
	rue_ack(&t, 200, 100); /* a delay on target is not above it */
	cr_assert_eq(t.cc.fcwnd, W(32) + 32);
}

/* fcwnd += ai * n below one packet */
Test(swift, additive_increase_of_a_fraction_10_3_1)
{
	t.cc.fcwnd = W(0.25);
	t.p.swift.ai = W(0.5);
	rue_ack(&t, 200, 50);
	cr_assert_eq(t.cc.fcwnd, W(0.75));
	cr_assert_eq(t.cc.ipg, 266); /* 200 / 0.75 */
	rue_ack(&t, 200, 50);
	cr_assert_eq(t.cc.fcwnd, W(1.25));
	cr_assert_eq(t.cc.ipg, 0);
}

Test(swift, nothing_acknowledged_nothing_gained)
{
	t.ev.acked = 0;
	rue_ack(&t, 200, 50);
	cr_assert_eq(t.cc.fcwnd, W(32));
}

Test(swift, increase_stops_at_the_maximum)
{
	t.cc.fcwnd = W(256) - 1;
	t.ev.acked = 256;
	rue_ack(&t, 200, 50);
	cr_assert_eq(t.cc.fcwnd, W(256));
}

/* Delay 150 % of target: 1 - 0.8 * 50 / 150 = 0.7333. With beta = 819 / 1024: 32768 * 819 * 50 /
 * 150 / 1024 = 8736 are cut. */
Test(swift, multiplicative_decrease_10_3_1)
{
	rue_ack(&t, 200, 150);
	cr_assert_eq(t.cc.fcwnd, W(32) - 8736);
	cr_assert_eq(t.cc.fabric_marker, NOW);
	cr_assert_eq(t.cc.delay, 150);
}

Test(swift, a_tick_beyond_target_decreases)
{
	rue_ack(&t, 200, 101); /* 32768 * 819 * 1 / 101 / 1024 = 259 */
	cr_assert_eq(t.cc.fcwnd, W(32) - 259);
}

/* Delay 400 % of target: 0.8 * 0.75 is more than the largest cut. */
Test(swift, largest_decrease_at_once_10_3_1)
{
	rue_ack(&t, 500, 400);
	cr_assert_eq(t.cc.fcwnd, W(16));
}

Test(swift, one_decrease_in_a_round_trip_10_3_6)
{
	t.cc.fabric_marker = NOW - 199;
	rue_ack(&t, 200, 150);
	cr_assert_eq(t.cc.fcwnd, W(32));
	cr_assert_eq(t.cc.fabric_marker, NOW - 199, "inside the round trip the marker stays");
	t.cc.fabric_marker = NOW - 200;
	rue_ack(&t, 200, 150);
	cr_assert_lt(t.cc.fcwnd, W(32));
	cr_assert_eq(t.cc.fabric_marker, NOW);
}

Test(swift, increase_is_not_guarded_and_drags_the_marker_10_3_6)
{
	t.cc.fabric_marker = NOW - 10;
	rue_ack(&t, 200, 50);
	cr_assert_eq(t.cc.fcwnd, W(32) + 32);
	cr_assert_eq(t.cc.fabric_marker, NOW - 10);
	t.cc.fabric_marker = NOW - 201;
	rue_ack(&t, 200, 50);
	cr_assert_eq(t.cc.fabric_marker, NOW - 200);
}

Test(swift, minimum_counts_as_a_decrease_10_3_6)
{
	t.cc.fcwnd = 10;
	t.cc.fabric_marker = NOW - 100; /* no cut yet, but the marker moves */
	rue_ack(&t, 200, 150);
	cr_assert_eq(t.cc.fcwnd, 10);
	cr_assert_eq(t.cc.fabric_marker, NOW);
	t.cc.fabric_marker = NOW - 1000;
	rue_ack(&t, 500, 400);
	cr_assert_eq(t.cc.fcwnd, 10);
}

/* Times wrap at 2^32 ticks without an effect on the guard, the delays and the marker. */
Test(swift, time_wraps)
{
	rue_case_init(&t, 50);
	t.cc.fabric_marker = 50u - 199;
	rue_ack(&t, 200, 150);
	cr_assert_eq(t.cc.fcwnd, W(32));
	cr_assert_eq(t.cc.rtt, 200);
	cr_assert_eq(t.cc.delay, 150);
	t.cc.fabric_marker = 50u - 200;
	rue_ack(&t, 200, 150);
	cr_assert_eq(t.cc.fcwnd, W(32) - 8736);
	cr_assert_eq(t.cc.fabric_marker, 50);
	t.ev.now = 60;
	t.cc.fabric_marker = 60u - 500;
	rue_ack(&t, 200, 50);
	cr_assert_eq(t.cc.fabric_marker, 60u - 200);
	t.ev.t2 = UINT32_MAX - 10; /* the peer's clock wraps between reception and transmission */
	t.ev.t3 = 39;
	fa_swift.run(&t.cc, &t.nic, &t.ev, &t.res, &t.p);
	cr_assert_eq(t.cc.delay, 150);
}

/* A peer that claims more time than the whole round trip, or echoes a time in the future. */
Test(swift, senseless_times_are_bounded)
{
	t.ev.t1 = NOW - 200;
	t.ev.t4 = NOW;
	t.ev.t2 = 0;
	t.ev.t3 = 1000;
	fa_swift.run(&t.cc, &t.nic, &t.ev, &t.res, &t.p);
	cr_assert_eq(t.cc.delay, 0);
	cr_assert_eq(t.cc.rtt, 200);
	t.ev.t1 = NOW + 5;
	fa_swift.run(&t.cc, &t.nic, &t.ev, &t.res, &t.p);
	cr_assert_eq(t.cc.rtt, 1);
	t.ev.t1 = NOW - 0x7fffffff;
	fa_swift.run(&t.cc, &t.nic, &t.ev, &t.res, &t.p);
	cr_assert_eq(t.cc.rtt, FA_DELAY_MAX);
	cr_assert_eq(t.cc.rto, 2 * FA_DELAY_MAX);
}

Test(swift, delay_can_be_selected_10_6_2_1)
{
	static const uint32_t want[] = {[FA_DELAY_FULL] = 200,
		[FA_DELAY_FABRIC] = 170,
		[FA_DELAY_FORWARD] = 60,
		[FA_DELAY_REVERSE] = 110};

	t.ev.t1 = NOW - 200;
	t.ev.t2 = NOW - 140;
	t.ev.t3 = NOW - 110;
	t.ev.t4 = NOW;
	for (uint8_t i = 0; i < 4; i++) {
		t.p.swift.delay_select = i;
		fa_swift.run(&t.cc, &t.nic, &t.ev, &t.res, &t.p);
		cr_assert_eq(t.cc.delay, want[i], "selector %u: %u", i, t.cc.delay);
	}
}

/* The weight is the old value's: 0.75 * 200 + 0.25 * 400. */
Test(swift, smoothing_weighs_the_old_value_10_3_4)
{
	t.p.rtt_alpha = FA_FRACTION_ONE * 3 / 4;
	t.p.swift.delay_alpha = FA_FRACTION_ONE / 2;
	t.cc.delay = 80;
	rue_ack(&t, 400, 100);
	cr_assert_eq(t.cc.rtt, 250);
	cr_assert_eq(t.cc.delay, 90);
	t.cc.rtt = 0;
	rue_ack(&t, 400, 100);
	cr_assert_eq(t.cc.rtt, 400, "the first sample stands for itself");
}

Test(swift, timeout_follows_the_round_trip_10_3_2)
{
	rue_ack(&t, 200, 50);
	cr_assert_eq(t.cc.rto, 1000);
	rue_ack(&t, 700, 50);
	cr_assert_eq(t.cc.rto, 1400);
}

Test(swift, timeout_covers_the_time_in_the_loops_and_delay_does_not_10_1)
{
	t.ev.t1 = t.ev.now - 9000;
	t.ev.t4 = t.ev.now - 4000; /* 4000 ticks in the queue of the port */
	t.ev.t2 = 77000;
	t.ev.t3 = t.ev.t2 + 4950;
	fa_swift.run(&t.cc, &t.nic, &t.ev, &t.res, &t.p);
	cr_assert_eq(t.cc.delay, 50);
	cr_assert_eq(t.cc.rtt, 9000);
	cr_assert_eq(t.cc.rto, 18000);
	cr_assert_gt(t.cc.fcwnd, t.p.swift.initial);
	cr_assert_not(t.res.randomize_path);
}

Test(swift, hops_raise_the_target_10_3_4)
{
	t.p.swift.per_hop = 8;
	t.ev.hops = 5;
	rue_ack(&t, 200, 140);
	cr_assert_gt(t.cc.fcwnd, W(32));
	rue_ack(&t, 200, 141);
	cr_assert_lt(t.cc.fcwnd, W(32) + 32);
}

Test(swift, first_timeout_halves_10_3_2)
{
	rue_retransmit(&t, FA_RUE_TIMEOUT, 1);
	cr_assert_eq(t.cc.fcwnd, W(16));
	cr_assert_eq(t.cc.fabric_marker, NOW);
	cr_assert_eq(t.nic.ncwnd, W(64));
	cr_assert_not(t.res.randomize_path);
	rue_retransmit(&t, FA_RUE_TIMEOUT, 1); /* another packet, in the same round trip */
	cr_assert_eq(t.cc.fcwnd, W(16));
}

Test(swift, second_timeout_waits_10_3_2)
{
	rue_retransmit(&t, FA_RUE_TIMEOUT, 2);
	cr_assert_eq(t.cc.fcwnd, W(32));
	cr_assert_eq(t.cc.fabric_marker, NOW - 1000);
}

Test(swift, timeouts_to_the_limit_leave_the_minimum_10_3_2)
{
	t.cc.fabric_marker = NOW - 1; /* no guard for this case */
	rue_retransmit(&t, FA_RUE_TIMEOUT, 3);
	cr_assert_eq(t.cc.fcwnd, 10);
	cr_assert_eq(t.cc.fabric_marker, NOW);
	cr_assert_eq(t.cc.ipg, 20480); /* 200 / (10 / 1024) */
	t.cc.fcwnd = W(4);
	rue_retransmit(&t, FA_RUE_TIMEOUT, 7);
	cr_assert_eq(t.cc.fcwnd, 10);
}

Test(swift, early_retransmission_is_no_congestion_unless_configured)
{
	rue_retransmit(&t, FA_RUE_EARLY, 1);
	rue_retransmit(&t, FA_RUE_EARLY, 7);
	cr_assert_eq(t.cc.fcwnd, W(32));
	t.p.swift.early_cuts = true;
	rue_retransmit(&t, FA_RUE_EARLY, 1);
	cr_assert_eq(t.cc.fcwnd, W(16));
}

Test(swift, eack_drop_is_no_congestion_unless_configured_10_6_2_1)
{
	t.ev.eack_drop = true;
	rue_ack(&t, 200, 50);
	cr_assert_eq(t.cc.fcwnd, W(32) + 32, "32 packets grow by a 32nd of one");
	t.p.swift.drop_cuts = true;
	t.cc.fcwnd = W(32);
	rue_ack(&t, 200, 50);
	cr_assert_eq(t.cc.fcwnd, W(16));
	cr_assert_eq(t.cc.fabric_marker, NOW);
	rue_ack(&t, 200, 50); /* once in a round trip, and no increase in it */
	cr_assert_eq(t.cc.fcwnd, W(16));
	t.ev.eack_drop = false;
	rue_ack(&t, 200, 50);
	cr_assert_gt(t.cc.fcwnd, W(16));
}

/* Below one packet: a departure every rtt / fcwnd. */
Test(swift, pacing_gap_10_3_4)
{
	t.cc.fcwnd = W(1);
	rue_ack(&t, 200, 400); /* full - there is negative: delay 0, the window grows */
	t.cc.fcwnd = W(1);
	t.cc.fabric_marker = NOW - 1000;
	rue_ack(&t, 800, 800);
	cr_assert_eq(t.cc.fcwnd, W(0.5));
	cr_assert_eq(t.cc.ipg, 1600);
}

/* After round trips of any length: a queued packet goes out before its transaction is given up. */
Test(swift, pacing_gap_leaves_800_kbps_10_6)
{
	t.cc.fcwnd = W(0.5);
	t.cc.rtt = 1000000;
	rue_retransmit(&t, FA_RUE_TIMEOUT, 7);
	cr_assert_eq(t.cc.fcwnd, W(1) / 100);
	cr_assert_eq(t.cc.ipg, FA_IPG_MAX);
}

/* The second algorithm: the windows never change. */
Test(fixed, windows_stay)
{
	struct fa_rue_params p = fa_rue_defaults;
	struct fa_cc cc = {.rto_min = 1000};
	struct fa_cc_nic nic = {0};
	struct fa_rue_event ev = {.t1 = 0, .t2 = 5, .t3 = 6, .t4 = 900, .now = 900, .acked = 9};
	struct fa_rue_result res = {.randomize_path = true};

	fa_fixed.init(&cc, &nic, NULL);
	cr_assert_eq(cc.fcwnd, W(128));
	cr_assert_eq(nic.ncwnd, W(128));
	p.fixed = (struct fa_fixed_params){.fcwnd = W(40), .ncwnd = W(20)};
	fa_fixed.init(&cc, &nic, &p);
	for (ev.type = FA_RUE_ACK; ev.type <= FA_RUE_RETRANSMIT; ev.type++) {
		ev.nack_code = 1;
		ev.retransmits = 7;
		fa_fixed.run(&cc, &nic, &ev, &res, &p);
		cr_assert_eq(cc.fcwnd, W(40));
		cr_assert_eq(nic.ncwnd, W(20));
		cr_assert_eq(cc.ipg, 0);
		cr_assert_eq(cc.rto, 1800);
		cr_assert_not(res.randomize_path);
	}
}
