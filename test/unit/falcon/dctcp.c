/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DCTCP's law (RFC 8257) on events of Falcon: the estimate of the marked share, the cut by it, and
 * growth and losses as with Reno. A round trip is 200 ticks.
 */
#include <criterion/criterion.h>

#include "rue_event.h"

#define NOW 1000000u
#define RTT 200

static struct rue_case t;

static void
init(void)
{
	rue_case_init(&t, NOW);
	t.a = &fa_dctcp;
	t.cc = (struct fa_cc){.rto_min = 1000};
	t.p.dctcp.max = W(1000);
	fa_dctcp.init(&t.cc, &t.nic, &t.p);
	t.cc.rtt = RTT;
}

TestSuite(dctcp, .init = init);

/* An acknowledgement of `acked` packets, of which `marked` had CE, `after` ticks later. */
static void
ack(uint32_t after, uint32_t acked, uint32_t marked)
{
	t.ev.now += after;
	t.ev.acked = acked;
	t.ev.ecn = (t.ev.ecn + marked) & 0x3fff;
	rue_ack(&t, RTT, 50);
}

static void
near_packets(double want)
{
	cr_assert_float_eq(t.cc.fcwnd / 1024.0, want, 0.1, "%f", t.cc.fcwnd / 1024.0);
}

/* Ends slow start with a window of `w`. */
static void
avoid(uint32_t w)
{
	ack(0, 1, 1);
	t.cc.fcwnd = w;
	rue_retransmit(&t, FA_RUE_EARLY, 1); /* within the round trip of the cut: no effect */
	cr_assert_eq(t.cc.fcwnd, w);
}

Test(dctcp, starts_with_its_windows)
{
	cr_assert_eq(t.cc.fcwnd, W(32));
	cr_assert_eq(t.nic.ncwnd, W(64));
	cr_assert_eq(t.cc.rto, 1000);
	t.nic.ncwnd = 1;
	fa_dctcp.init(&t.cc, NULL, &t.p);
	cr_assert_eq(t.nic.ncwnd, 1, "another flow: the NIC's part does not change");
	fa_dctcp.init(&t.cc, &t.nic, NULL);
	cr_assert_eq(t.nic.ncwnd, W(64));
}

Test(dctcp, slow_start_adds_what_is_acknowledged_rfc5681_3_1)
{
	ack(1, 10, 0);
	cr_assert_eq(t.cc.fcwnd, W(42));
	ack(1, 42, 0);
	cr_assert_eq(t.cc.fcwnd, W(84));
	ack(1, 5000, 0);
	cr_assert_eq(t.cc.fcwnd, W(1000), "the largest window");
}

/* The estimate starts with 1 (RFC 8257 3.3), so that the first mark halves the window. */
Test(dctcp, the_first_mark_halves_rfc8257_3_3)
{
	ack(0, 1, 1);
	cr_assert_eq(t.cc.fcwnd, W(16));
	cr_assert_eq(t.cc.fabric_marker, NOW);
	ack(RTT - 1, 16, 16);
	cr_assert_eq(t.cc.fcwnd, W(16), "once in a round trip");
	ack(1, 16, 16);
	cr_assert_eq(t.cc.fcwnd, W(8));
}

/* Without marks, a window of packets adds `ai`. */
Test(dctcp, congestion_avoidance_adds_a_packet_in_a_round_trip_rfc5681_3_1)
{
	avoid(W(20));
	ack(1, 10, 0);
	cr_assert_eq(t.cc.fcwnd, W(20.5));
	t.p.dctcp.ai = W(2);
	t.cc.fcwnd = W(20);
	ack(1, 10, 0);
	cr_assert_eq(t.cc.fcwnd, W(21));
	ack(1, 21, 1);
	cr_assert_eq(t.cc.fcwnd, W(21), "not with a mark");
}

/* Slow start ends at half of the window at the first mark. */
Test(dctcp, growth_changes_its_pace_at_ssthresh)
{
	ack(0, 1, 1); /* 16: window and ssthresh */
	t.cc.fcwnd = W(14);
	ack(1, 2 + 16, 0);
	cr_assert_eq(t.cc.fcwnd, W(17), "two by slow start, one by 16 of 16");
}

/* alpha = alpha * 15 / 16 + F / 16, once in a round trip, and the cut is alpha / 2. */
Test(dctcp, the_estimate_is_an_average_of_shares_rfc8257_3_3)
{
	double alpha = 1;

	avoid(W(100));
	for (unsigned i = 0; i < 200; i++) {
		double share = i % 4 == 3 ? 0.25 : 0;
		uint32_t before;

		t.cc.fcwnd = before = W(100);
		/* The cut uses the estimate that includes this acknowledgement. */
		ack(RTT, 100, (uint32_t)(100 * share));
		alpha = alpha * 15 / 16 + share / 16;
		if (share == 0)
			cr_assert_eq(t.cc.fcwnd, before + W(1), "round %u", i);
		else
			near_packets(100 * (1 - alpha / 2));
	}
	cr_assert_float_eq(alpha, 0.0625, 0.01);
}

Test(dctcp, the_gain_is_a_parameter)
{
	avoid(W(100));
	t.p.dctcp.gain = FA_FRACTION_ONE;
	ack(RTT, 100, 0); /* alpha is 0 */
	t.cc.fcwnd = W(100);
	ack(RTT, 100, 10);
	near_packets(95);
}

Test(dctcp, a_share_is_that_of_a_round_trip)
{
	avoid(W(100));
	t.p.dctcp.gain = FA_FRACTION_ONE;
	ack(RTT, 1, 0);
	for (unsigned i = 0; i < 9; i++)
		ack(10, 10, i == 4 ? 10 : 0);
	t.cc.fcwnd = W(100);
	t.cc.fabric_marker = t.ev.now - RTT;
	ack(RTT, 10, 10); /* 20 of 100 */
	near_packets(90);
}

/* The peer's count has 14 bits. */
Test(dctcp, the_count_of_marks_wraps_7_7_1)
{
	avoid(W(100));
	for (unsigned i = 0; i < 3; i++)
		ack(RTT, 8000, 8000);
	t.p.dctcp.gain = FA_FRACTION_ONE;
	ack(RTT, 1, 0);
	t.cc.fcwnd = W(100);
	ack(RTT, 100, 10);
	near_packets(95);
}

/* On several paths an older acknowledgement may come last. */
Test(dctcp, an_older_count_is_no_mark)
{
	avoid(W(100));
	ack(RTT, 100, 10);
	t.cc.fcwnd = W(100);
	t.ev.ecn -= 5;
	ack(RTT, 50, 0);
	cr_assert_eq(t.cc.fcwnd, W(100.5));
	t.ev.ecn += 5;
	ack(RTT, 100, 0);
	cr_assert_gt(t.cc.fcwnd, W(101), "the same marks count once");
}

/* A peer counts packets that wait for its ULP; one that forges its count gains nothing. */
Test(dctcp, more_marks_than_packets_are_a_share_of_one)
{
	avoid(W(100));
	ack(RTT, 1, 8000);
	cr_assert_eq(t.cc.fcwnd, W(50));
	ack(RTT, 0, 100);
	cr_assert_eq(t.cc.fcwnd, W(25));
}

Test(dctcp, the_least_window)
{
	avoid(W(1.5));
	ack(RTT, 1, 1);
	cr_assert_eq(t.cc.fcwnd, W(1));
	cr_assert_eq(t.cc.ipg, 0);
	t.p.dctcp.min = W(0.25);
	ack(RTT, 1, 1);
	cr_assert_eq(t.cc.fcwnd, W(0.5));
	cr_assert_eq(t.cc.ipg, 2 * RTT, "departures are spaced");
	ack(RTT, 1, 0);
	cr_assert_eq(t.cc.fcwnd, W(1.5));
}

Test(dctcp, a_loss_halves_once_in_a_round_trip_rfc8257_3_5)
{
	t.ev.now += RTT;
	rue_retransmit(&t, FA_RUE_EARLY, 1);
	cr_assert_eq(t.cc.fcwnd, W(16));
	rue_retransmit(&t, FA_RUE_EARLY, 1);
	cr_assert_eq(t.cc.fcwnd, W(16));
	ack(RTT, 16, 0);
	cr_assert_eq(t.cc.fcwnd, W(17), "slow start is over");
	t.p.dctcp.early_cuts = false;
	t.ev.now += RTT;
	rue_retransmit(&t, FA_RUE_EARLY, 1);
	cr_assert_eq(t.cc.fcwnd, W(17));
}

Test(dctcp, a_timeout_begins_with_a_packet_rfc5681_3_1)
{
	t.p.dctcp.early_cuts = false;
	t.ev.now += RTT;
	rue_retransmit(&t, FA_RUE_TIMEOUT, 1);
	cr_assert_eq(t.cc.fcwnd, W(1));
	cr_assert_eq(t.nic.ncwnd, W(64));
	t.ev.now += 4 * RTT;
	rue_retransmit(&t, FA_RUE_TIMEOUT, 2);
	ack(RTT, 20, 0);
	near_packets(16.3); /* slow start to half of the window */
	cr_assert_not(t.res.randomize_path);
}

/* Delay is measured, and does not count. */
Test(dctcp, delay_is_no_congestion)
{
	avoid(W(20));
	t.ev.acked = 20;
	t.ev.now++;
	rue_ack(&t, 100000, 90000);
	cr_assert_eq(t.cc.fcwnd, W(21));
	cr_assert_eq(t.cc.delay, 90000);
	cr_assert_eq(t.cc.rto, 200000);
}

Test(dctcp, the_window_of_the_nic_is_swifts_10_3_1)
{
	t.ev.rx_level = 14;
	ack(RTT, 1, 0);
	cr_assert_eq(t.nic.ncwnd, W(65));
	t.ev.now += RTT;
	rue_nack(&t, RTT, 50, 1);
	cr_assert_eq(t.nic.ncwnd, W(65) / 2);
}

/* PLB with ECN: half of a round's packets are marked, five rounds in a row. */
Test(dctcp, marks_change_the_path_10_4)
{
	t.nic.ncwnd = W(10);
	t.nic.up = true;
	t.p.nic.ai = 0;
	for (unsigned i = 0; i < 20; i++) {
		ack(1, 10, 4);
		cr_assert_not(t.res.randomize_path);
	}
	for (unsigned i = 0; i < 5; i++) {
		t.cc.fcwnd = W(10);
		ack(1, 10, 5);
		cr_assert_eq(t.res.randomize_path, i == 4, "round %u", i);
	}
}

Test(dctcp, time_wraps)
{
	rue_case_init(&t, 50);
	t.a = &fa_dctcp;
	fa_dctcp.init(&t.cc, &t.nic, &t.p);
	t.cc.rtt = RTT;
	t.cc.fabric_marker = 50u - (RTT - 1);
	ack(0, 1, 1);
	cr_assert_eq(t.cc.fcwnd, W(32));
	ack(1, 1, 1);
	cr_assert_eq(t.cc.fcwnd, W(16));
	/* After a while without marks the marker is a round trip ago, and not 2^32 ticks. */
	ack(3 * RTT, 1, 0);
	cr_assert_eq(t.cc.fabric_marker, t.ev.now - RTT);
}
