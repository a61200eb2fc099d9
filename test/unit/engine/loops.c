/* SPDX-License-Identifier: BSD-3-Clause */
/* Stages on several loops, which threads run and which sleep when idle, have the same results as
 * stages on one loop. */
#include <sched.h>

#include <criterion/criterion.h>

#include "ends.h"

TestSuite(engine_loops, .init = pair_eal);

static void
start(enum eng_idle how)
{
	pair_init(&ends_pair);
	for (int i = 0; i < 2; i++) {
		struct eng_config *cfg = &ends_pair.cfg[i];

		cfg->nloops = 2;
		cfg->transport_loop[0] = 0;
		cfg->stage_loop[0] = cfg->control_loop = 1;
		cfg->idle = how;
	}
	ends_start(0);
}

Test(engine_loops, split_stages_give_the_same_bytes)
{
	start(ENG_IDLE_YIELD);
	for (unsigned round = 0; round < 60; round++)
		ends_exchange(&ends[0], &ends[1], round);
	for (int i = 0; i < 2; i++)
		cr_assert_gt(pair_counter(ends_pair.e[i], "eng", "ENG_CROSS"), 60);
	ends_finish();
}

Test(engine_loops, a_loop_that_yields_sleeps)
{
	struct eng_loop_stats stats;

	start(ENG_IDLE_YIELD);
	do {
		sched_yield();
		eng_loop_stats(ends_pair.e[0], 0, &stats);
	} while (stats.sleeps == 0);
	ends_exchange(&ends[0], &ends[1], 0);
	ends_finish();
}

Test(engine_loops, loops_that_sleep_are_woken)
{
	struct eng_loop_stats stats;

	start(ENG_IDLE_SLEEP);
	for (unsigned round = 0; round < 20; round++)
		ends_exchange(&ends[0], &ends[1], round);
	/* Idle loops sleep. */
	do {
		sched_yield();
		eng_loop_stats(ends_pair.e[0], 0, &stats);
	} while (stats.sleeps == 0);
	ends_exchange(&ends[0], &ends[1], 99);
	ends_finish();
}
