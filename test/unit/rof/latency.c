/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The latencies of requests: a sampled request counts once, from the turn that takes it to the turn
 * that completes it, whichever path starts and ends it, and only if it completes without an error.
 */
#include "pair.h"

#include <criterion/criterion.h>

#include "../../../lib/base/mem.h"

#define BLOCKS 10          /* of RD_SAMPLE requests */
#define LONG   10000000000 /* ns, more than any run takes */

static struct pair p;
static struct end *const a = &p.e[0];

static void
tune_runs(struct fa_config *cfg)
{
	cfg->runs = true;
}

static void
start(uint8_t ordering, uint8_t errors, bool general)
{
	struct pair_options o = {.chan = {.ordering = ordering, .errors = errors},
		.tune = tune_runs,
		.general = general};

	pair_init_with(&p, &o, 3);
	a->rd.sig_all = false;
}

static uint64_t
counted(const struct end *e)
{
	uint64_t n = 0;

	for (unsigned i = 0; i <= RD_LATENCY_BOUNDS; i++)
		n += e->st.latency.bucket[i];
	return n;
}

static bool
quiet(struct pair *pair)
{
	return rof_idle(pair->e[0].q);
}

static struct rd_wr *
post(uint8_t opcode, bool signaled)
{
	struct rd_wr *wr = end_msg(a, opcode, 9, 0, 8);

	wr->flags = signaled ? RD_SIGNALED : 0;
	if (opcode == RD_SEND)
		end_recv_at(&p.e[1], 1, 0, 64);
	return wr;
}

static void
blocks(const uint8_t *opcodes, unsigned n, unsigned every, uint8_t ordering, bool general)
{
	start(ordering, ROF_ERRORS_COMPLETE, general);
	for (unsigned block = 1; block <= BLOCKS; block++) {
		for (unsigned i = 0; i < RD_SAMPLE; i++)
			post(opcodes[i % n], every != 0 && i % every == 0);
		pair_run(&p, LONG, quiet);
		cr_assert(quiet(&p));
		cr_assert_eq(counted(a), block, "block %u: %lu", block, counted(a));
	}
	cr_assert_eq(counted(&p.e[1]), 0, "the peer has no requests");
	cr_assert_eq(a->nsend, every != 0 ? BLOCKS * RD_SAMPLE / every : 0);
	/* A request takes a way to the peer and back. */
	cr_assert_geq(a->st.latency.sum, BLOCKS * 2 * p.delay);
	cr_assert(pair_fini(&p));
}

Test(rof_latency, one_of_each_64_requests_counts_signaled_or_not_on_each_path)
{
	static const uint8_t writes[] = {RD_WRITE}, sends[] = {RD_SEND}, reads[] = {RD_READ},
			     mixed[] = {RD_WRITE, RD_SEND, RD_READ, RD_FETCH_ADD, RD_WRITE};
	static const unsigned signals[] = {0, 1, 16};

	for (unsigned i = 0; i < SK_ARRAY_LEN(signals); i++)
		for (uint8_t ordering = ROF_ORDER_STRONG; ordering <= ROF_ORDER_NONE; ordering++)
			for (int general = 0; general <= 1; general++) {
				blocks(writes, 1, signals[i], ordering, general);
				blocks(sends, 1, signals[i], ordering, general);
				blocks(reads, 1, signals[i], ordering, general);
				blocks(mixed, SK_ARRAY_LEN(mixed), signals[i], ordering, general);
			}
}

/* Completes requests until the next one is in the sample. Returns its number, from 1. */
static unsigned
approach(void)
{
	struct rd_latency l = {.random = 0};
	struct rd_sample s = {0};

	rd_sample_next(&l, &s); /* as rof_qp_create() */
	for (unsigned i = 1; i < s.left; i++)
		post(RD_WRITE, false);
	pair_run(&p, LONG, quiet);
	cr_assert_eq(counted(a), 0);
	return s.left;
}

Test(rof_latency, a_request_counts_in_the_bucket_of_the_time_to_its_end)
{
	static const uint8_t opcodes[] = {RD_WRITE, RD_SEND, RD_READ, RD_FETCH_ADD};

	for (unsigned i = 0; i < SK_ARRAY_LEN(opcodes); i++)
		for (int signaled = 0; signaled <= 1; signaled++) {
			uint64_t took;

			start(ROF_ORDER_STRONG, ROF_ERRORS_VERBS, false);
			approach();
			p.delay = 300000;
			took = p.now;
			post(opcodes[i], signaled);
			pair_run(&p, LONG, quiet);
			took = p.now - took;
			cr_assert(took > 524288 && took < 1048576, "%lu ns", took);
			cr_assert_eq(a->st.latency.bucket[10], 1, "0.5 ms to 1 ms");
			cr_assert_eq(counted(a), 1);
			cr_assert_eq(a->st.latency.sum, took);
			cr_assert_eq(a->nsend, (unsigned)signaled);
			cr_assert(pair_fini(&p));
		}
}

Test(rof_latency, a_flushed_request_does_not_count)
{
	start(ROF_ORDER_STRONG, ROF_ERRORS_VERBS, false);
	approach();
	post(RD_READ, true);
	pair_run(&p, 2000, NULL);
	cr_assert_eq(a->sq_head, a->sq_tail, "the request is outstanding");
	rof_disconnect(a->q);
	cr_assert_eq(a->nsend, 1);
	cr_assert_eq(a->send_wc[0].status, RD_WR_FLUSH_ERR);
	cr_assert_eq(counted(a), 0);
	cr_assert_eq(a->st.latency.sum, 0);
	cr_assert(pair_fini(&p));
}

Test(rof_latency, a_request_that_fails_does_not_count_but_the_next_of_the_sample_does)
{
	unsigned n;

	start(ROF_ORDER_STRONG, ROF_ERRORS_COMPLETE, false);
	n = approach();
	post(RD_WRITE, false)->rkey ^= 1;
	pair_run(&p, LONG, quiet);
	cr_assert_eq(a->nsend, 1);
	cr_assert_neq(a->send_wc[0].status, RD_SUCCESS);
	cr_assert_eq(counted(a), 0);
	for (; n < 2 * RD_SAMPLE; n++)
		post(RD_WRITE, false);
	pair_run(&p, LONG, quiet);
	cr_assert_eq(counted(a), 1);
	cr_assert(pair_fini(&p));
}
