/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of RFC 7306 7, with a test for each row, from client to client: two engines, a wire
 * that loses, duplicates and reorders frames, and two operations of random sizes that are posted
 * one after the other, repeatedly and on several connections. After each turn of an engine, the
 * test checks at both ends that no effect is visible earlier than the row permits.
 *
 * Both clients run in this thread, so that nothing changes while the test checks both ends.
 */
#include <string.h>

#include <criterion/criterion.h>

#include "ordering.h"

#define IDLE  20000000  /* turns without progress after which the test fails */
#define STILL 20000     /* turns without progress after which the clock advances, for timers */
#define STEP  100000000 /* ns by which it advances */

/* The last three columns of a row. */
enum rule {
	FREE,     /* the second may take effect before the first's response is generated */
	IN_ORDER, /* completed in order at the remote peer */
	BEHIND,   /* the second takes effect only when the first has (at the remote peer) */
	ANSWERS,  /* the second's response is generated behind the first's */
};

static enum rule rule;
static uint64_t early; /* checks at which the second was there before the answer to the first */
static unsigned idle_turns;

/* ---- Checks ---- */

/* Returns whether a part of the response is at the local peer. */
static bool
response_placed(const struct ord_link *l, unsigned nth)
{
	return ord_answered(l->act[nth].op) && l->posted > nth && ord_sink(l, nth)[0] != OLD;
}

static bool
response_whole(const struct ord_link *l, unsigned nth)
{
	const struct ord_act *a = &l->act[nth];

	return ord_sink(l, nth)[a->len - 1] != OLD;
}

static void
completion_local(const struct rd_wc *wc)
{
	struct ord_link *l = &ord_links[wc->wr_id >> 8];
	unsigned nth = wc->wr_id & 1;

	cr_assert_eq(wc->status, RD_SUCCESS, "status %u", wc->status);
	cr_assert(!l->act[nth].acked && (nth == 0 || l->act[0].acked), "not in posting order");
	if (ord_answered(l->act[nth].op))
		cr_assert(response_whole(l, nth), "completed before the response was placed");
	l->act[nth].acked = true;
}

static void
completion_remote(const struct rd_wc *wc)
{
	struct ord_link *l = &ord_links[wc->wr_id >> 8];
	struct ord_act *a = &l->act[wc->wr_id & 1];

	cr_assert_eq(wc->status, RD_SUCCESS, "status %u", wc->status);
	cr_assert_not(a->there);
	if (rule == IN_ORDER && a == &l->act[1])
		cr_assert(l->act[0].there, "completed before the first");
	if (a->op == IMM)
		cr_assert(wc->opcode == RD_RECV_IMM && wc->imm == a->imm);
	else
		cr_assert(wc->byte_len == a->len &&
			  ord_is(ord_receive(l, wc->wr_id & 1), a->len, a->key));
	if (a->doomed != NULL)
		cr_assert(wc->flags & RD_WC_INV && wc->inv_stag == saker_mr_stag(a->doomed));
	if (rule == BEHIND && a == &l->act[1] && l->act[0].op == WRITE)
		cr_assert(ord_is(ord_target(l, 0), l->act[0].len, l->act[0].key),
			"completed before the Write was placed");
	a->there = true;
}

static void
look_link(struct ord_link *l)
{
	bool first = response_placed(l, 0), second = response_placed(l, 1);

	for (unsigned i = 0; i < l->posted; i++)
		if (l->act[i].op == WRITE)
			l->act[i].there = ord_is(ord_target(l, i), l->act[i].len, l->act[i].key);
	if (rule == BEHIND && second)
		cr_assert(l->act[0].there, "its response came before the first took effect");
	if (rule == ANSWERS && second)
		cr_assert(first && response_whole(l, 0), "the responses are not in order");
	if (rule == FREE && l->act[1].there && !first)
		early++;
}

static void
look(void)
{
	struct rd_wc wc[2][16];
	int n[2];

	for (int i = 0; i < 2; i++)
		n[i] = saker_cq_poll(ord_cq[i], wc[i], 16);
	for (int i = 0; i < n[1]; i++)
		completion_remote(&wc[1][i]);
	for (unsigned i = 0; i < LINKS; i++)
		look_link(&ord_links[i]);
	for (int i = 0; i < n[0]; i++)
		completion_local(&wc[0][i]);
	idle_turns = n[0] + n[1] > 0 ? 0 : idle_turns + 1;
	if (idle_turns % STILL == STILL - 1)
		ord_rig.hand[0].ahead += STEP;
	cr_assert_lt(idle_turns, IDLE, "nothing happens any more");
}

/* ---- The end of a repetition ---- */

static bool
over(const struct ord_link *l)
{
	for (unsigned i = 0; i < 2; i++)
		if (!l->act[i].acked || (!ord_answered(l->act[i].op) && !l->act[i].there))
			return false;
	return true;
}

/* The values show in which order a Read and an Atomic, or two Atomics, accessed the same word. */
static void
verify(const struct ord_link *l, unsigned nth)
{
	const struct ord_act *a = &l->act[nth];
	bool changed = nth == 1 && l->act[0].op == ATOMIC && ord_target_of(l, 1) == 0;
	uint32_t right = 8;
	uint64_t got;

	if (!ord_answered(a->op))
		return;
	memcpy(&got, ord_sink(l, nth), 8);
	cr_assert_eq(got, a->word + (changed ? 2 : 0), "the %s met %lx instead of %lx",
		a->op == READ ? "Read" : "Atomic", got, a->word + (changed ? 2 : 0));
	while (right < a->len && ord_sink(l, nth)[right] == ord_pattern(a->key, right))
		right++;
	cr_assert_eq(right, a->len, "byte %u of %u is wrong", right, a->len);
	cr_assert_eq(ord_sink(l, nth)[a->len], OLD, "a byte too much");
}

static void
step(struct ord_link *l)
{
	if (l->reps == REPS)
		return;
	if (l->posted == 0)
		ord_post(l);
	if (l->posted == 1 && l->wait-- == 0)
		ord_post(l);
	if (!over(l))
		return;
	for (unsigned i = 0; i < 2; i++) {
		verify(l, i);
		if (l->act[i].doomed != NULL)
			cr_assert_eq(saker_mr_destroy(l->act[i].doomed), 0);
	}
	if (++l->reps < REPS)
		ord_begin(l);
}

static bool
all_over(void)
{
	for (unsigned i = 0; i < LINKS; i++)
		if (ord_links[i].reps < REPS)
			return false;
	return true;
}

static void
run(enum op first, enum op second, enum rule r)
{
	rule = r;
	ord_start(first, second);
	while (!all_over()) {
		for (unsigned i = 0; i < LINKS; i++)
			step(&ord_links[i]);
		for (int i = 0; i < 2; i++) {
			eng_poll(ord_rig.eng[i], 0, ord_clock());
			look();
		}
	}
	if (rule == FREE && ord_answered(first))
		cr_assert_gt(early, 0, "the second always waited for the first's response");
	cr_assert_gt(rig_count(ord_rig.eng[0], "tcp", "TCP_RETRANSMIT"), 0, "nothing was lost");
	cr_assert_gt(rig_count(ord_rig.eng[1], "tcp", "TCP_DUP_PAYLOAD"), 0, "nothing came twice");
	ord_stop();
}

/* clang-format off */
Test(ordering, immediate_then_send_7306_7)       { run(IMM, SEND, IN_ORDER); }
Test(ordering, immediate_then_write_7306_7)      { run(IMM, WRITE, FREE); }
Test(ordering, immediate_then_read_7306_7)       { run(IMM, READ, BEHIND); }
Test(ordering, immediate_then_atomic_7306_7)     { run(IMM, ATOMIC, BEHIND); }
Test(ordering, immediate_then_immediate_7306_7)  { run(IMM, IMM, IN_ORDER); }
Test(ordering, send_then_immediate_7306_7)       { run(SEND, IMM, IN_ORDER); }
Test(ordering, write_then_immediate_7306_7)      { run(WRITE, IMM, BEHIND); }
Test(ordering, read_then_immediate_7306_7)       { run(READ, IMM, FREE); }
Test(ordering, atomic_then_immediate_7306_7)     { run(ATOMIC, IMM, FREE); }
Test(ordering, atomic_then_send_7306_7)          { run(ATOMIC, SEND, FREE); }
Test(ordering, atomic_then_write_7306_7)         { run(ATOMIC, WRITE, FREE); }
Test(ordering, atomic_then_read_7306_7)          { run(ATOMIC, READ, ANSWERS); }
Test(ordering, atomic_then_atomic_7306_7)        { run(ATOMIC, ATOMIC, ANSWERS); }
Test(ordering, send_then_atomic_7306_7)          { run(SEND, ATOMIC, BEHIND); }
Test(ordering, write_then_atomic_7306_7)         { run(WRITE, ATOMIC, BEHIND); }
Test(ordering, read_then_atomic_7306_7)          { run(READ, ATOMIC, ANSWERS); }
/* clang-format on */
