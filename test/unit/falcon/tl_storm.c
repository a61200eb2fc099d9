/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * No deadlock (section 8.2.1), delivery at most once, in order: random traffic over a lossy wire,
 * with pools from ample down to one request of each kind. Time is virtual; all transactions must
 * end. STORM_SEEDS=n in the environment runs n seeds of each test.
 */
#include "tl_storm.h"

#include <stdlib.h>

#define SEC 1000000000ull

static const struct storm base = {
	.conns = 3,
	.requests = 150,
	.loss = 30,
	.late = 100,
	.twice = 20,
	.rnr = 30,
	.cie = 20,
	.full = 30,
	.pulls = 400,
	.big = 200,
	.verdict_ns = 20 * PAIR_US,
	.rsn = UINT32_MAX - 70,
	.rnr_code = 6, /* 80 us */
	.limit_ns = 60 * SEC,
};

static void
runs(struct storm st, unsigned seeds)
{
	unsigned i;
	const char *more = getenv("STORM_SEEDS");

	for (i = 1; i <= (more != NULL ? (unsigned)atoi(more) : seeds); i++) {
		st.seed = i;
		st.ordered = true;
		storm_run(&st);
		st.ordered = false;
		storm_run(&st);
	}
}

/* Asserts that each of these has happened. */
static void
happened(const enum fa_reason *r, unsigned n)
{
	while (n--)
		cr_assert_gt(
			storm_counted[r[n]], 0, "%s never happened", fa_reasons.reasons[r[n]].name);
}
#define HAPPENED(...)                                                                              \
	happened((const enum fa_reason[]){__VA_ARGS__},                                            \
		SK_ARRAY_LEN(((const enum fa_reason[]){__VA_ARGS__})))

Test(falcon_tl_storm, with_plenty_of_resources)
{
	struct storm st = base;

	st.requests = 600;
	runs(st, 4);
	HAPPENED(FA_RETRANSMIT, FA_DUPLICATE, FA_RNR_OUT, FA_RNR_IN, FA_RESYNC_OUT, FA_RESYNC_IN,
		FA_DELIVER_BUSY);
}

Test(falcon_tl_storm, s8_2_1_no_deadlock_with_the_smallest_pools)
{
	struct storm st = base;

	st.tune = storm_smallest;
	runs(st, 6);
	HAPPENED(FA_RNR_OUT, FA_DELIVER_BUSY);
}

/* Lets initiators have many requests outstanding, and targets hold one request. */
static void
smallest_target(struct fa_config *cfg)
{
	struct fa_pools roomy = cfg->pools;

	storm_smallest(cfg);
	cfg->pools.tx_pkt_req = roomy.tx_pkt_req;
	cfg->pools.tx_buf_req = roomy.tx_buf_req;
	cfg->pools.rx_pkt_ulp = roomy.rx_pkt_ulp;
	cfg->pools.rx_buf_ulp = roomy.rx_buf_ulp;
}

Test(falcon_tl_storm, s8_2_1_no_deadlock_with_targets_that_hold_one_request)
{
	struct storm st = base;

	st.tune = smallest_target;
	st.requests = 60;
	runs(st, 4);
	HAPPENED(FA_NO_RESOURCE, FA_EVICTED, FA_RNR_OUT, FA_DELIVER_BUSY);
}

static void
few(struct fa_config *cfg)
{
	smallest_target(cfg);
	cfg->pools.rx_pkt_net = 4;
	cfg->pools.rx_buf_net = 24;
	cfg->conn_requests = 3;
}

Test(falcon_tl_storm, s8_2_1_no_deadlock_when_targets_are_the_bottleneck)
{
	struct storm st = base;

	st.tune = few;
	st.conns = 6;
	runs(st, 4);
	HAPPENED(FA_NO_RESOURCE);
}

static void
smallest_of_users(struct fa_config *cfg)
{
	storm_smallest(cfg);
	cfg->shares.users = 2; /* no minimum fits into pools of one packet */
}

static void
few_of_users(struct fa_config *cfg)
{
	few(cfg);
	cfg->pools.tx_pkt_data = 4;
	cfg->pools.tx_buf_data *= 4;
	cfg->shares = (struct fa_shares){.users = 3, .reserved = 2, .minimum = 25};
}

Test(falcon_tl_storm, s8_2_1_no_deadlock_among_users)
{
	struct storm st = base;

	st.conns = 6;
	st.tune = smallest_of_users;
	runs(st, 3);
	st.tune = few_of_users;
	runs(st, 3);
	HAPPENED(FA_NO_RESOURCE);
}

static void
few_by_retransmission(struct fa_config *cfg)
{
	few(cfg);
	cfg->push_reoffer = false;
}

Test(falcon_tl_storm, s8_2_1_no_deadlock_when_refused_pushes_make_room)
{
	struct storm st = base;

	st.tune = few_by_retransmission;
	st.conns = 6;
	st.rnr = 200;
	runs(st, 4);
	HAPPENED(FA_EVICTED, FA_NO_RESOURCE);
}

Test(falcon_tl_storm, s8_2_1_2_pulls_in_both_directions_only)
{
	struct storm st = base;

	st.tune = storm_smallest;
	st.pulls = 1000;
	st.big = 1000;
	runs(st, 3);
}

Test(falcon_tl_storm, refusals_all_the_time)
{
	struct storm st = base;

	st.rnr = 400;
	st.loss = 50;
	runs(st, 3);
}

Test(falcon_tl_storm, errors_all_the_time)
{
	struct storm st = base;

	st.cie = 500;
	st.loss = 50;
	runs(st, 3);
}

static void
by_distance(struct fa_config *cfg)
{
	cfg->rack = false;
}

Test(falcon_tl_storm, without_rack)
{
	struct storm st = base;

	st.tune = by_distance;
	runs(st, 3);
}

Test(falcon_tl_storm, over_a_clean_wire)
{
	struct storm st = base;

	st.loss = st.late = st.twice = st.rnr = st.cie = st.full = 0;
	st.requests = 2000;
	runs(st, 2);
}

Test(falcon_tl_storm, s8_2_3_credits_of_more_than_there_is)
{
	struct storm st = base;

	st.tune = storm_smallest;
	st.overrun = true;
	runs(st, 4);
	HAPPENED(FA_POOL_EMPTY);
}

Test(falcon_tl_storm, over_four_paths)
{
	struct storm st = base;

	st.flows = 4;
	st.late = 300;
	runs(st, 3);
}

Test(falcon_tl_storm, s11_connections_that_are_given_up_complete_all_once_and_harm_no_other)
{
	struct storm st = base;

	st.kills = 2;
	st.conns = 4;
	runs(st, 4);
	st.tune = few;
	runs(st, 4);
	HAPPENED(FA_DEAD, FA_GIVEN_UP);
}

Test(falcon_tl_storm, s11_connections_that_are_destroyed_in_the_middle_leave_nothing)
{
	struct storm st = base;
	unsigned i;

	for (i = 0; i < 20; i++) {
		st.tune = i & 1 ? few : NULL;
		st.abandon_ns = (20 + i * 37) * PAIR_US;
		runs(st, 1);
	}
}

static void
no_patience(struct fa_config *cfg)
{
	cfg->ulp_rto_ns = 200000;
}

Test(falcon_tl_storm, verdicts_that_take_longer_than_timeouts)
{
	struct storm st = base;

	st.tune = no_patience;
	st.verdict_ns = 3000 * PAIR_US;
	runs(st, 3);
}
