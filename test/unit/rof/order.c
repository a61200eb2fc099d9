/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads and Atomics behind other requests of their QP, which they overtake in the network: on a
 * strongly or weakly ordered QP they see what was written before them, and Atomics are executed in
 * their order (RDMA over Falcon 6.2, RFC 5040 5.5, RFC 7306 7).
 */
#include "pair.h"

#include "../../../lib/rof/rof_priv.h"

#include <criterion/criterion.h>
#include <string.h>

#define BEFORE 0x1111111111111111ull
#define PUT    0x2222222222222222ull
#define RESULT 4096u /* offset of the answers in the initiator's memory */

static struct pair p;
static unsigned requests;

/* The first request arrives after those that follow it. */
static bool
slow_first(void *arg, unsigned from, const struct wire_falcon *h)
{
	bool request = h->type == FALCON_PUSH_DATA || h->type == FALCON_PULL_REQUEST;

	p.delay = from == 0 && request && requests++ == 0 ? 90000 : 5000;
	return true;
}

static uint64_t
word(const struct end *e, uint64_t off)
{
	uint64_t v;

	memcpy(&v, e->mem + off, sizeof(v));
	return v;
}

static void
begin(uint8_t ordering)
{
	struct rof_chan_params cp = {.ordering = ordering,
		.errors = ordering == ROF_ORDER_NONE ? ROF_ERRORS_COMPLETE : ROF_ERRORS_VERBS};
	const uint64_t before = BEFORE, put = PUT;

	requests = 0;
	pair_init(&p, &cp, 3);
	p.hook = slow_first;
	memcpy(p.e[1].mem, &before, sizeof(before));
	memcpy(p.e[0].mem, &put, sizeof(put));
}

static struct rd_wr *
pull(uint8_t opcode, uint64_t wr_id, uint64_t off)
{
	struct rd_wr *wr = end_post(&p.e[0], opcode, wr_id);

	wr->rkey = p.e[1].mr.stag;
	wr->remote_addr = END_BASE;
	wr_sge(&p.e[0], wr, off, 8);
	return wr;
}

static void
finish(unsigned n)
{
	pair_run(&p, 10000000000, pair_sent);
	cr_assert_eq(p.e[0].nsend, n);
	for (unsigned i = 0; i < n; i++) {
		cr_assert_eq(p.e[0].send_wc[i].wr_id, i);
		cr_assert_eq(p.e[0].send_wc[i].status, RD_SUCCESS);
	}
	pair_run(&p, 1000000000, NULL);
	cr_assert(pair_fini(&p));
}

static void
behind_a_write(uint8_t ordering, uint8_t opcode, bool fence)
{
	struct rd_wr *wr;
	uint64_t got;

	begin(ordering);
	end_msg(&p.e[0], RD_WRITE, 0, 0, 8);
	wr = pull(opcode, 1, RESULT);
	wr->flags |= fence ? RD_FENCE : 0;
	wr->data = 5;
	wr->compare = PUT;
	pair_run(&p, 10000000000, pair_sent);
	got = word(&p.e[0], RESULT);
	cr_assert_eq(got, PUT, "ordering %u opcode %u fence %d: %lx", ordering, opcode, fence, got);
	cr_assert_eq(word(&p.e[1], 0), opcode == RD_READ       ? PUT
				       : opcode == RD_CMP_SWAP ? 5
							       : PUT + 5);
	finish(2);
}

Test(rof_order, reads_and_atomics_see_the_write_before_them_rof_6_2)
{
	static const uint8_t pulls[] = {RD_READ, RD_FETCH_ADD, RD_CMP_SWAP};

	for (uint8_t ordering = ROF_ORDER_STRONG; ordering <= ROF_ORDER_WEAK; ordering++)
		for (unsigned i = 0; i < SK_ARRAY_LEN(pulls); i++)
			for (int fence = 0; fence < 2; fence++)
				behind_a_write(ordering, pulls[i], fence);
}

Test(rof_order, atomics_are_executed_in_their_order_rof_6_2)
{
	for (uint8_t ordering = ROF_ORDER_STRONG; ordering <= ROF_ORDER_WEAK; ordering++) {
		begin(ordering);
		for (unsigned i = 0; i < 8; i++)
			pull(RD_FETCH_ADD, i, RESULT + 8 * i)->data = 1 + i;
		pair_run(&p, 10000000000, pair_sent);
		for (uint64_t i = 0; i < 8; i++)
			cr_assert_eq(
				word(&p.e[0], RESULT + 8 * i), BEFORE + i * (i + 1) / 2, "%lu", i);
		finish(8);
	}
}

/* A Write behind a Read may be placed before the Read is executed; with a fence it is not. */
Test(rof_order, a_fence_keeps_a_write_behind_the_read_before_it)
{
	for (uint8_t ordering = ROF_ORDER_STRONG; ordering <= ROF_ORDER_NONE; ordering++) {
		begin(ordering);
		pull(RD_READ, 0, RESULT);
		end_msg(&p.e[0], RD_WRITE, 1, 0, 8)->flags |= RD_FENCE;
		pair_run(&p, 10000000000, pair_sent);
		cr_assert_eq(word(&p.e[0], RESULT), BEFORE);
		cr_assert_eq(word(&p.e[1], 0), PUT);
		finish(2);
	}
}

Test(rof_order, what_waits_when_the_qp_ends_comes_home)
{
	begin(ROF_ORDER_WEAK);
	end_msg(&p.e[0], RD_WRITE, 0, 0, 8);
	pull(RD_READ, 1, RESULT);
	pair_run(&p, 40000, NULL);
	cr_assert_not_null(p.e[1].c->parked);
	rof_disconnect(p.e[1].q);
	pair_run(&p, 40000, NULL);
	cr_assert(pair_fini(&p));
}

/* The refusal of a pull that has waited is that of any other. */
Test(rof_order, a_pull_that_has_waited_is_checked_when_it_is_executed)
{
	begin(ROF_ORDER_WEAK);
	end_msg(&p.e[0], RD_WRITE, 0, 0, 8);
	pull(RD_READ, 1, RESULT)->remote_addr = END_BASE + END_MEM - 7;
	pair_run(&p, 10000000000, pair_sent);
	cr_assert_eq(p.e[0].send_wc[0].status, RD_SUCCESS);
	cr_assert_eq(p.e[0].send_wc[1].status, RD_REM_ACCESS_ERR);
	cr_assert_eq(p.e[1].st.counters[ROF_BOUNDS], 1);
	pair_run(&p, 1000000000, NULL);
	cr_assert(pair_fini(&p));
}

/* ---- At random ---- */

#define SLOTS  60u
#define SUM    8192u /* of the Atomics, in the target's memory */
#define VALUES 16384u

/* Writes SLOTS words in turn among Reads of all of them and Atomics, over a bad wire. Each Read
 * must see all Writes before it, each Atomic the sum of those before it. */
static void
at_random(uint8_t ordering, uint64_t seed)
{
	uint8_t kind[SLOTS];
	uint64_t sum = 0;

	begin(ordering);
	p.hook = NULL;
	p.rng = seed;
	p.loss = p.dup = 300;
	p.reorder = 3000;
	for (uint64_t i = 0; i < SLOTS; i++) {
		struct rd_wr *wr;

		kind[i] = (uint8_t)rng_below(&p.rng, 3);
		memcpy(p.e[0].mem + 8 * i, &(uint64_t){PUT + i}, 8);
		if (kind[i] == 0) {
			end_msg(&p.e[0], RD_WRITE, i, 8 * i, 8);
			continue;
		}
		wr = pull(kind[i] == 1 ? RD_READ : RD_FETCH_ADD, i, VALUES + 8 * SLOTS * i);
		wr->data = i + 1;
		if (kind[i] == 1)
			wr->sge[0].len = 8 * SLOTS;
		else
			wr->remote_addr = END_BASE + SUM;
	}
	memset(p.e[1].mem, 0, 8 * SLOTS);
	pair_run(&p, 10000000000, pair_sent);
	for (uint64_t i = 0; i < SLOTS; i++) {
		uint64_t at = VALUES + 8 * SLOTS * i;

		for (uint64_t k = 0; k < i && kind[i] == 1; k++)
			if (kind[k] == 0)
				cr_assert_eq(word(&p.e[0], at + 8 * k), PUT + k, "%lu %lu", i, k);
		if (kind[i] == 2)
			cr_assert_eq(word(&p.e[0], at), sum, "%lu", i);
		sum += kind[i] == 2 ? i + 1 : 0;
	}
	cr_assert_gt(p.lost, 0);
	finish(SLOTS);
}

Test(rof_order, at_random_over_a_bad_wire_rof_6_2)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		at_random(ROF_ORDER_STRONG, seed);
		at_random(ROF_ORDER_WEAK, seed);
	}
}
