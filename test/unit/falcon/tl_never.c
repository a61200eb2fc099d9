/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One packet never gets through while all others do, so that its timer is restarted again and
 * again: early retransmission (RACK-TLP, or by distance) must not continue for ever. Its attempts
 * end as timeouts would have ended them (9.1.5, 11), long before its transaction is reclaimed.
 */
#include "pair.h"

#define PUSH FALCON_PUSH_DATA
#define MS   1000000ull
#define SEC  1000000000ull

/* With a first timeout of 1 ms and 4 retransmissions: 1 + 2 + 4 + 8 + 16. */
#define LADDER (31 * MS)

static unsigned done, failed;
static uint64_t failed_at;
static enum fa_completion code;
static bool resync_too;
static uint32_t waiting[64]; /* pulls without an answer of node 1 */
static unsigned nwaiting;

static bool
deliver(unsigned node, unsigned conn, const struct fa_delivery *d)
{
	struct fa_outcome o = {.rsn = d->rsn, .verdict = FA_TAKEN};
	struct fa_conn *c = pair.n[node].c[conn];

	if (d->buf != NULL)
		pair_buf_free(d->buf);
	if (node == 1) {
		fa_outcome(c, pair.now, &o);
		if (d->type == FA_PULL)
			waiting[nwaiting++] = d->rsn;
	} else if (d->type == FA_PULL_DATA || d->completion == FA_DONE) {
		done++;
	} else if (failed++ == 0) {
		cr_assert(d->rsn == 2 || d->completion == FA_DEAD_CONNECTION);
		failed_at = pair.now;
		code = d->completion;
	}
	return true;
}

static struct pair_fate
lose_rsn_2(const struct pair_packet *p)
{
	bool push = p->h.type == PUSH || (resync_too && p->h.type == FALCON_RESYNC);

	return (struct pair_fate){.lose = p->from == 0 && push && p->h.rsn == 2};
}

static struct pair_fate
lose_some(const struct pair_packet *p)
{
	static uint32_t r = 1;

	r = r * 1664525 + 1013904223;
	return (struct pair_fate){.lose = (r >> 16) % 20 == 0};
}

static void
start(void)
{
	pair_init();
	pair.no_trace = true;
	pair.deliver = deliver;
	pair.wire = lose_rsn_2;
	for (unsigned i = 0; i < 2; i++) {
		pair.n[i].params.ordered = false;
		pair.n[i].cfg.rack = true;
		pair.n[i].cfg.max_retransmits = 4;
	}
	done = failed = nwaiting = 0;
	pair_start();
	for (unsigned i = 0; i < 2; i++)
		fa_push(pair.n[0].c[0], pair.now, pair_buf(64));
}

/* Keeps pulls going in the other window, so that nothing ever stalls; they are acknowledged before
 * their data arrives. */
static void
traffic(uint64_t ns)
{
	uint64_t until = pair.now + ns;

	while (pair.now < until && pair.n[0].deaths == 0) {
		fa_pull(pair.n[0].c[0], pair.now, pair_buf(28), 256);
		pair_run(40 * PAIR_US);
		while (nwaiting > 0)
			fa_pull_data(pair.n[1].c[0], pair.now, waiting[--nwaiting], pair_buf(256));
	}
}

TestSuite(falcon_tl_never);

Test(falcon_tl_never, s9_1_5_under_rack_it_becomes_a_resync_when_timeouts_would_have_made_it_one)
{
	uint64_t began;

	start();
	began = pair.now;
	traffic(3 * LADDER);
	cr_assert_eq(failed, 1);
	cr_assert_eq(code, FA_LOCAL_TIMEOUT);
	cr_assert(failed_at - began >= LADDER / 2 && failed_at - began <= 2 * LADDER, "%lu us",
		(failed_at - began) / 1000);
	cr_assert_gt(done, 1000);
	cr_assert_eq(pair.n[0].deaths, 0);
	cr_assert_gt(pair_counted(0, FA_EARLY), 20, "%lu", pair_counted(0, FA_EARLY));
	pair_run(SEC);
	pair_stop();
}

Test(falcon_tl_never, s11_and_when_its_resync_does_not_get_through_the_connection_is_given_up)
{
	uint64_t began;

	resync_too = true;
	start();
	began = pair.now;
	traffic(10 * LADDER);
	cr_assert_eq(pair.n[0].deaths, 1);
	cr_assert_eq(code, FA_DEAD_CONNECTION);
	cr_assert_leq(failed_at - began, 4 * LADDER);
	cr_assert_eq(pair_counted(0, FA_GIVEN_UP), 1);
	pair_run(SEC);
	pair_stop();
}

Test(falcon_tl_never, packets_that_are_lost_at_random_are_not_given_up)
{
	start();
	pair.wire = lose_some;
	traffic(10 * LADDER);
	cr_assert_gt(pair.lost, 500);
	cr_assert_eq(failed, 0);
	cr_assert_eq(pair_counted(0, FA_RESYNC_OUT), 0);
	pair_run(SEC);
	pair_stop();
}
