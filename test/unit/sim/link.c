/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests a link: arrival times, drops and marks of its queue, losses and delays of its wire. */
#include <criterion/criterion.h>
#include <math.h>

#include "rig.h"

static struct rig r;
static struct sim_link l;

static void
init(void)
{
	rig_init(&r);
}

static void
fini(void)
{
	rig_run(&r);
	rig_fini(&r);
}

TestSuite(link, .init = init, .fini = fini);

static void
make(struct sim_link_params p)
{
	sim_link_init(&l, &p, &r.events, &r.memory, &r.node, 42, 1);
}

/* 4096 bytes at 200 Gb/s are 163.84 ns. */
Test(link, a_packet_takes_its_bytes_and_the_delay)
{
	make((struct sim_link_params){.bps = 200000000000, .delay = 12500 * SIM_NS});
	sim_link_send(&l, rig_packet(&r, 1, 4096), 0);
	rig_run(&r);
	cr_assert_eq(r.count, 1);
	cr_assert_eq(r.at[0], 12500 * SIM_NS + 163840);
	cr_assert_eq(l.stats.packets, 1);
	cr_assert_eq(l.stats.bytes, 4096);
}

Test(link, packets_queue_behind_one_another)
{
	make((struct sim_link_params){.bps = 8000000000, .delay = 7}); /* a byte takes 1 ns */
	for (uint32_t i = 0; i < 3; i++)
		sim_link_send(&l, rig_packet(&r, i, 100), 0);
	cr_assert_eq(sim_link_backlog(&l, 0), 300);
	cr_assert_eq(sim_link_backlog(&l, 50 * SIM_NS), 250);
	cr_assert_eq(sim_link_backlog(&l, 300 * SIM_NS), 0);
	cr_assert_eq(sim_link_drained(&l, 0), 300 * SIM_NS);
	cr_assert_eq(sim_link_drained(&l, 100), 200 * SIM_NS);
	cr_assert_eq(sim_link_drained(&l, 1000), 0);
	rig_run(&r);
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(r.tag[i], i);
		cr_assert_eq(r.at[i], (i + 1) * 100 * SIM_NS + 7);
	}
}

Test(link, rests_between_packets)
{
	make((struct sim_link_params){.bps = 8000000000});
	sim_link_send(&l, rig_packet(&r, 0, 100), 0);
	sim_link_send(&l, rig_packet(&r, 1, 100), 500 * SIM_NS);
	rig_run(&r);
	cr_assert_eq(r.at[1], 600 * SIM_NS);
}

/* At 3 Gb/s, a byte takes 2666 2/3 ps. The link carries the fractions, so a million bytes take
 * 8/3 ms. */
Test(link, fractions_of_a_picosecond_are_not_lost)
{
	make((struct sim_link_params){.bps = 3000000000});
	for (uint32_t i = 0; i < 1000; i++)
		sim_link_send(&l, rig_packet(&r, i, 1000), 0);
	rig_run(&r);
	cr_assert_leq(llabs((long long)r.at[999] - 2666666667ll), 10);
}

Test(link, tail_drop_at_the_limit)
{
	make((struct sim_link_params){.bps = 8000000000, .queue_bytes = 1000});
	for (uint32_t i = 0; i < 12; i++)
		sim_link_send(&l, rig_packet(&r, i, 100), 0);
	cr_assert_eq(l.stats.dropped, 2);
	cr_assert_eq(l.stats.packets, 10);
	cr_assert_eq(l.stats.deepest, 1000);
	sim_link_send(&l, rig_packet(&r, 12, 100), 99 * SIM_NS); /* one byte too many */
	cr_assert_eq(l.stats.dropped, 3);
	sim_link_send(&l, rig_packet(&r, 13, 100), 100 * SIM_NS);
	cr_assert_eq(l.stats.dropped, 3);
	rig_run(&r);
	cr_assert_eq(r.count, 11);
}

Test(link, marks_beyond_the_threshold_what_can_be_marked)
{
	struct sim_packet *p;

	make((struct sim_link_params){.bps = 8000000000, .ecn_bytes = 200});
	for (uint32_t i = 0; i < 4; i++)
		sim_link_send(&l, rig_packet(&r, i, 100), 0);
	p = rig_packet(&r, 4, 100);
	p->ecn = IP_ECN_NOT;
	sim_link_send(&l, p, 0);
	rig_run(&r);
	cr_assert_eq(r.ecn[2], IP_ECN_ECT0, "200 waiting are not beyond 200");
	cr_assert_eq(r.ecn[3], IP_ECN_CE);
	cr_assert_eq(r.ecn[4], IP_ECN_NOT);
	cr_assert_eq(l.stats.marked, 1);
}

/* Of 100 000 packets, the link loses its share within five standard deviations, and the same ones
 * with the same seed. */
Test(link, loses_its_share_from_the_seed)
{
	static uint32_t first[RIG_MAX];
	unsigned n;

	make((struct sim_link_params){.bps = 8000000000, .loss = 0.01});
	for (uint32_t i = 0; i < RIG_MAX; i++)
		sim_link_send(&l, rig_packet(&r, i, 10), 0);
	rig_run(&r);
	cr_assert_leq(fabs((double)l.stats.lost - 1000), 5 * sqrt(990));
	cr_assert_eq(r.count + l.stats.lost, RIG_MAX);
	memcpy(first, r.tag, sizeof(first));
	n = r.count;
	r.count = 0;
	make((struct sim_link_params){.bps = 8000000000, .loss = 0.01});
	for (uint32_t i = 0; i < RIG_MAX; i++)
		sim_link_send(&l, rig_packet(&r, i, 10), 0);
	rig_run(&r);
	cr_assert_eq(r.count, n);
	cr_assert_eq(memcmp(first, r.tag, n * sizeof(first[0])), 0);
}

/* The link loses two percent of the packets, in bursts of eight on average. */
Test(link, loses_in_bursts)
{
	unsigned bursts = 0;

	make((struct sim_link_params){.bps = 8000000000, .loss = 0.02, .burst = 8});
	for (uint32_t i = 0; i < RIG_MAX; i++)
		sim_link_send(&l, rig_packet(&r, i, 10), 0);
	rig_run(&r);
	for (unsigned i = 1; i < r.count; i++)
		bursts += r.tag[i] != r.tag[i - 1] + 1;
	cr_assert(l.stats.lost > 1400 && l.stats.lost < 2700, "%lu", l.stats.lost);
	cr_assert(l.stats.lost > 6 * bursts && l.stats.lost < 10 * bursts, "%u", bursts);
}

Test(link, late_packets_are_overtaken)
{
	unsigned behind = 0;

	make((struct sim_link_params){.bps = 8000000000,
		.delay = 50 * SIM_NS,
		.reorder = 0.1,
		.reorder_span = 1000 * SIM_NS});
	for (uint32_t i = 0; i < 10000; i++)
		sim_link_send(&l, rig_packet(&r, i, 10), 0);
	rig_run(&r);
	cr_assert_eq(r.count, 10000);
	cr_assert(l.stats.reordered > 800 && l.stats.reordered < 1200);
	for (unsigned i = 0; i < r.count; i++) {
		sim_time on_time = (r.tag[i] + 1) * 10 * SIM_NS + 50 * SIM_NS;

		cr_assert_geq(r.at[i], on_time);
		cr_assert_leq(r.at[i], on_time + 1001 * SIM_NS);
		behind += r.at[i] > on_time;
	}
	cr_assert_eq(behind, l.stats.reordered);
}

Test(link, notes_the_depth_that_each_packet_finds)
{
	static struct sk_hist h;

	sk_hist_init(&h);
	make((struct sim_link_params){.bps = 8000000000});
	l.depths = &h;
	for (uint32_t i = 0; i < 5; i++)
		sim_link_send(&l, rig_packet(&r, i, 10), 0);
	cr_assert_eq(h.count, 5);
	cr_assert_eq(h.min, 0);
	cr_assert_eq(h.max, 40);
}
