/* SPDX-License-Identifier: BSD-3-Clause */
/* Swift's NIC window: the fill level of the peer's receive buffers, and NACKs for lack of them. */
#include <criterion/criterion.h>

#include "rue_event.h"

#define NOW 1000000u

static struct rue_case t;

static void
init(void)
{
	rue_case_init(&t, NOW);
}

TestSuite(swift_nic, .init = init);

Test(swift_nic, grows_below_the_target_level_10_3_1)
{
	t.ev.rx_level = 14;
	rue_ack(&t, 200, 50);
	cr_assert_eq(t.nic.ncwnd, W(65));
	cr_assert_eq(t.nic.marker, NOW);
	cr_assert(t.nic.up);
}

Test(swift_nic, grows_by_fractions)
{
	t.p.nic.ai = W(0.25);
	rue_ack(&t, 200, 50);
	cr_assert_eq(t.nic.ncwnd, W(64.25));
}

Test(swift_nic, one_increase_in_a_round_trip_10_3_6)
{
	t.nic.up = true;
	t.nic.marker = NOW - 199;
	rue_ack(&t, 200, 50);
	cr_assert_eq(t.nic.ncwnd, W(64));
	cr_assert_eq(t.nic.marker, NOW - 199);
	t.nic.marker = NOW - 200;
	rue_ack(&t, 200, 50);
	cr_assert_eq(t.nic.ncwnd, W(65));
}

Test(swift_nic, increase_after_a_decrease_waits_for_nothing_10_3_6)
{
	t.nic.up = false;
	t.nic.marker = NOW - 1;
	rue_ack(&t, 200, 50);
	cr_assert_eq(t.nic.ncwnd, W(65));
}

/* Level 20 of target 15: 1 - 0.8 * 5 / 20 = 0.8. 65536 * 819 * 5 / 20 / 1024 = 13104. */
Test(swift_nic, shrinks_beyond_the_target_level_10_3_1)
{
	t.nic.up = true;
	t.ev.rx_level = 20;
	rue_ack(&t, 200, 50);
	cr_assert_eq(t.nic.ncwnd, W(64) - 13104);
	cr_assert_eq(t.nic.marker, NOW);
	cr_assert_not(t.nic.up);
	rue_ack(&t, 200, 50);
	cr_assert_eq(t.nic.ncwnd, W(64) - 13104, "once in a round trip");
}

Test(swift_nic, on_target_nothing_is_cut_and_the_marker_is_dragged_10_3_6)
{
	t.nic.up = true;
	t.ev.rx_level = 15;
	rue_ack(&t, 200, 50);
	cr_assert_eq(t.nic.ncwnd, W(64));
	cr_assert_eq(t.nic.marker, NOW - 200);
	cr_assert_not(t.nic.up);
}

/* Level 31 of a target of 1: 0.8 * 30 / 31 is more than the largest cut. */
Test(swift_nic, largest_decrease_at_once)
{
	t.p.nic.level = 1;
	t.ev.rx_level = 31;
	rue_ack(&t, 200, 50);
	cr_assert_eq(t.nic.ncwnd, W(32));
}

Test(swift_nic, stays_within_its_bounds_and_marks_10_3_6)
{
	t.nic.ncwnd = W(256);
	rue_ack(&t, 200, 50);
	cr_assert_eq(t.nic.ncwnd, W(256));
	cr_assert_eq(t.nic.marker, NOW, "at the maximum counts as an increase");
	t.nic.ncwnd = W(1);
	t.nic.marker = NOW - 1000;
	t.ev.rx_level = 31;
	rue_ack(&t, 200, 50);
	cr_assert_eq(t.nic.ncwnd, W(1));
	cr_assert_eq(t.nic.marker, NOW, "at the minimum counts as a decrease");
}

Test(swift_nic, nack_for_resources_halves_10_3_3)
{
	t.nic.up = true;
	t.nic.marker = NOW - 1; /* the last change was an increase: the guard does not apply */
	t.ev.acked = 0;
	rue_nack(&t, 200, 50, 1);
	cr_assert_eq(t.nic.ncwnd, W(32));
	cr_assert_eq(t.nic.marker, NOW);
	cr_assert_not(t.nic.up);
	t.ev.now = NOW + 199;
	rue_nack(&t, 200, 50, 1);
	cr_assert_eq(t.nic.ncwnd, W(32), "once in a round trip");
	t.ev.now = NOW + 200;
	rue_nack(&t, 200, 50, 1);
	cr_assert_eq(t.nic.ncwnd, W(16));
	t.nic.ncwnd = W(1.5);
	t.ev.now = NOW + 400;
	rue_nack(&t, 200, 50, 1);
	cr_assert_eq(t.nic.ncwnd, W(1));
}

Test(swift_nic, other_nacks_count_as_acknowledgements_10_3_1)
{
	static const uint8_t codes[] = {2, 4, 6, 7, 8};

	for (unsigned i = 0; i < sizeof(codes); i++) {
		init();
		rue_nack(&t, 200, 50, codes[i]);
		cr_assert_eq(t.nic.ncwnd, W(65), "code %u", codes[i]);
		cr_assert_eq(t.cc.fcwnd, W(32) + 32);
		cr_assert_eq(t.cc.plb_acked, 0, "PLB is for ACKs");
	}
}

/* A resource NACK moves the fabric's window as any other (10.3.3). */
Test(swift_nic, nack_for_resources_has_a_delay_too)
{
	rue_nack(&t, 200, 150, 1);
	cr_assert_eq(t.cc.fcwnd, W(32) - 8736);
	cr_assert_eq(t.nic.ncwnd, W(32));
}
