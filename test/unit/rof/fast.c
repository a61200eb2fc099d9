/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fast paths of lib/rof and lib/falcon, compared with the general path: the same script gives
 * the same packets at the same times, the same completions, counters and bytes of memory, whatever
 * the wire does.
 */
#include "pair.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "../../../lib/base/mem.h"

#define STEPS 120
#define SLOT  4096u

struct plan {
	uint64_t seed;
	uint32_t noise;
	struct fa_credits credits;
	uint8_t errors;
	bool faults;    /* some requests are invalid, or name no memory of the peer */
	uint32_t pulls; /* of 10 requests, those that are Reads and Atomics */
	bool buffers;   /* buffers are missing now and then */
	bool sums;      /* long payloads carry their sums */
	uint32_t longest;
};

static void
tune_fast(struct fa_config *cfg)
{
	cfg->runs = true;
}

static void
tune_general(struct fa_config *cfg)
{
	cfg->general = true;
}

static bool
quiet(struct pair *p)
{
	return p->e[0].sq_head == p->e[0].sq_tail && rof_idle(p->e[0].q);
}

static void
post_one(struct pair *p, const struct plan *plan, uint64_t *rng, uint64_t id)
{
	static const uint8_t ops[] = {
		RD_WRITE, RD_WRITE, RD_WRITE, RD_SEND, RD_SEND, RD_WRITE_IMM, RD_SEND_IMM};
	static const uint8_t pulls[] = {
		RD_READ, RD_READ, RD_READ, RD_FETCH_ADD, RD_FETCH_ADD, RD_CMP_SWAP, RD_CMP_SWAP};
	struct end *a = &p->e[0], *b = &p->e[1];
	bool pull = rng_below(rng, 10) < plan->pulls;
	uint8_t op = pull ? pulls[rng_below(rng, SK_ARRAY_LEN(pulls))]
			  : ops[rng_below(rng, SK_ARRAY_LEN(ops))];
	bool atomic = op == RD_FETCH_ADD || op == RD_CMP_SWAP;
	uint32_t len = atomic ? 8 : rng_below(rng, plan->longest + 1);
	uint64_t at = rng_below(rng, 64) * (uint64_t)SLOT + 8 * rng_below(rng, 64);
	struct rd_wr *wr;

	if (op == RD_SEND || op == RD_SEND_IMM || op == RD_WRITE_IMM)
		end_recv_at(b, id, END_MEM / 2 + (id % 64) * SLOT, SLOT);
	wr = end_post(a, op, id);
	wr->flags = (rng_below(rng, 4) == 0 ? RD_SIGNALED : 0) |
		    (rng_below(rng, 8) == 0 ? RD_SOLICITED : 0) |
		    (rng_below(rng, 16) == 0 ? RD_FENCE : 0);
	wr->rkey = b->mr.stag;
	wr->remote_addr = END_BASE + at;
	wr->imm = id;
	wr->data = id;
	wr->compare = rng_below(rng, 2) ? id : 0;
	if (op == RD_CMP_SWAP)
		wr->data_mask = wr->compare_mask = UINT64_MAX;
	if (atomic && plan->faults && rng_below(rng, 40) == 0)
		wr->data_mask ^= 1;
	if (plan->faults && rng_below(rng, 40) == 0)
		wr->rkey ^= 1;
	if (len <= 64 && !pull && rng_below(rng, 3) == 0) {
		wr->flags |= RD_INLINE;
		wr->inline_len = len;
		memset(wr->inl, (int)id, len);
	} else if (len > 1 && !atomic && rng_below(rng, 5) == 0) {
		wr_sge(a, wr, at, len / 2);
		wr_sge(a, wr, at + len / 2, len - len / 2);
	} else {
		wr_sge(a, wr, at, len);
	}
	if (plan->faults && wr->nsge > 0 && rng_below(rng, 40) == 0)
		wr->sge[0].lkey ^= 1;
}

/* Runs the plan and leaves the pair for a comparison. */
static void
run_plan(struct pair *p, const struct plan *plan, bool fast)
{
	struct pair_options o = {.chan = {.ordering = ROF_ORDER_STRONG,
					 .errors = plan->errors,
					 .credits = plan->credits,
					 .sums = plan->sums},
		.tune = fast ? tune_fast : tune_general,
		.general = !fast};
	uint64_t rng = plan->seed, id = 0;

	pair_init_with(p, &o, plan->seed);
	p->loss = p->dup = plan->noise;
	p->reorder = 4 * plan->noise;
	for (unsigned i = 0; i < 2; i++) {
		p->e[i].rd.sig_all = false;
		for (uint32_t k = 0; k < END_MEM / 2; k++)
			p->e[i].mem[k] = (uint8_t)(k * 7 + k / 256 + i);
	}
	for (unsigned step = 0; step < STEPS; step++) {
		for (unsigned n = rng_below(&rng, 40); n > 0; n--)
			post_one(p, plan, &rng, id++);
		if (plan->buffers)
			p->e[0].no_buffers = rng_below(&rng, 4);
		pair_run(p, 1000 + rng_below(&rng, 20000), rng_below(&rng, 4) == 0 ? NULL : quiet);
		if (p->e[0].rd.state == RD_QP_ERR)
			break;
		/* The queues of the test hold END_WRS requests. */
		if (p->e[0].sq_tail - p->e[0].sq_head > 64)
			pair_run(p, 10000000000ull, quiet);
	}
	pair_run(p, 10000000000ull, quiet);
}

/* Without a buffer, a run leaves a request in the send queue and the general path has taken it from
 * there, so that their latencies begin at different times. */
static void
compare_ends(const struct plan *plan, const struct end *a, const struct end *b)
{
	struct rof_info x, y;

	cr_assert_eq(a->nsend, b->nsend);
	cr_assert_eq(a->nrecv, b->nrecv);
	cr_assert_arr_eq(a->send_wc, b->send_wc, a->nsend * sizeof(a->send_wc[0]));
	cr_assert_arr_eq(a->recv_wc, b->recv_wc, a->nrecv * sizeof(a->recv_wc[0]));
	cr_assert_arr_eq(a->mem, b->mem, END_MEM);
	cr_assert_arr_eq(a->st.counters, b->st.counters, sizeof(a->st.counters));
	cr_assert_arr_eq(fa_stack_counters(a->fa), fa_stack_counters(b->fa),
		fa_reason_count * sizeof(uint64_t));
	rof_get_info(a->q, &x);
	rof_get_info(b->q, &y);
	cr_assert_arr_eq(&x, &y, sizeof(x));
	cr_assert_eq(a->rd.state, b->rd.state);
	cr_assert_eq(a->live, b->live);
	cr_assert_eq(a->sums, b->sums);
	if (!plan->buffers)
		cr_assert_arr_eq(&a->st.latency, &b->st.latency, sizeof(a->st.latency));
}

static void
compare(const struct plan *plan, uint64_t packets)
{
	static struct pair fast, general;

	run_plan(&fast, plan, true);
	run_plan(&general, plan, false);
	cr_assert_geq(fast.packets, packets, "%llu packets", (unsigned long long)fast.packets);
	cr_assert_eq(fast.packets, general.packets, "seed %llu: %llu and %llu packets",
		(unsigned long long)plan->seed, (unsigned long long)fast.packets,
		(unsigned long long)general.packets);
	cr_assert_eq(fast.digest, general.digest);
	cr_assert_eq(fast.now, general.now);
	compare_ends(plan, &fast.e[0], &general.e[0]);
	compare_ends(plan, &fast.e[1], &general.e[1]);
	cr_assert(pair_fini(&fast));
	cr_assert(pair_fini(&general));
}

Test(rof_fast, short_pushes_are_those_of_the_general_path)
{
	for (uint64_t seed = 1; seed <= 10; seed++)
		compare(&(struct plan){.seed = seed, .longest = 200}, 1000);
}

Test(rof_fast, so_are_messages_of_any_length_and_pulls)
{
	for (uint64_t seed = 1; seed <= 10; seed++)
		compare(&(struct plan){.seed = seed, .longest = 3000, .pulls = 2}, 1000);
}

Test(rof_fast, so_are_short_pulls)
{
	for (uint64_t seed = 1; seed <= 20; seed++)
		compare(&(struct plan){.seed = seed,
				.noise = seed % 4 ? 0 : 100,
				.longest = seed % 2 ? 16 : 300,
				.pulls = 8},
			1000);
}

Test(rof_fast, so_they_are_on_a_wire_that_loses_and_reorders)
{
	for (uint64_t seed = 1; seed <= 20; seed++)
		compare(&(struct plan){.seed = seed,
				.noise = (uint32_t)(10 * seed),
				.longest = seed % 2 ? 100 : 2000,
				.pulls = seed % 3 ? 0 : 5},
			1000);
}

Test(rof_fast, so_they_are_without_credits_and_buffers)
{
	for (uint64_t seed = 1; seed <= 20; seed++)
		compare(&(struct plan){.seed = seed,
				.noise = seed % 2 ? 0 : 100,
				.credits = {4, 80, 4, 80, 4, 80},
				.buffers = true,
				.pulls = seed % 2 ? 3 : 0,
				.longest = 300},
			1000);
}

Test(rof_fast, so_are_faults_in_both_error_modes)
{
	for (uint64_t seed = 1; seed <= 40; seed++)
		compare(&(struct plan){.seed = seed,
				.noise = seed % 4 ? 0 : 100,
				.errors = seed % 2 ? ROF_ERRORS_VERBS : ROF_ERRORS_COMPLETE,
				.faults = true,
				.pulls = seed % 3 ? 0 : 4,
				.longest = 300},
			0);
}

/* pair.c compares each sum with the bytes of its payload. */
Test(rof_fast, long_payloads_carry_the_sums_of_their_bytes_rfc_1071)
{
	static struct pair with, without;

	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct plan plan = {.seed = seed,
			.noise = seed % 2 ? 0 : 100,
			.pulls = 3,
			.longest = 3000,
			.sums = true};

		compare(&plan, 1000);
		run_plan(&with, &plan, true);
		plan.sums = false;
		run_plan(&without, &plan, true);
		cr_assert_eq(with.digest, without.digest);
		cr_assert_gt(with.e[0].sums, 100, "pushes");
		cr_assert_gt(with.e[1].sums, 10, "pull data");
		cr_assert_eq(without.e[0].sums + without.e[1].sums, 0);
		cr_assert(pair_fini(&with));
		cr_assert(pair_fini(&without));
	}
}
