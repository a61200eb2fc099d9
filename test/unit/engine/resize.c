/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues that grow: what the control stage checks, allocates and sends to the stages. */
#include <criterion/criterion.h>
#include <errno.h>

#include "../../../lib/engine/control/registry/registry.h"
#include "script.h"

static struct script *s;
static struct hand a;

static void
setup(void)
{
	s = script_new(NULL);
	hand_attach(&a, s);
}

static void
teardown(void)
{
	script_free(s);
	hand_free(&a);
}

TestSuite(engine_resize, .init = setup, .fini = teardown);

/* ---- Completion queues ---- */

static struct shm_msg
resize(uint32_t cq, uint32_t depth)
{
	return (struct shm_msg){.body.cq = {.cq = cq, .depth = depth}};
}

Test(engine_resize, the_stages_with_completions_move_to_larger_rings_in_a_row)
{
	uint32_t cq = hand_cq(&a), pd = hand_pd(&a);
	const struct eng_ctl *last;
	struct shm_msg m;

	hand_qp(&a, pd, cq);
	m = resize(cq, 100);
	cr_assert_eq(hand_do(&a, &m, SHM_CQ_RESIZE), 0);
	cr_assert_eq(m.body.cq.depth, 128);
	cr_assert_eq(m.body.cq.nsubs, 1, "one stage has a QP");
	cr_assert_eq(script_count(s, ENG_CE_CQ_MOVE), 1);
	last = script_last(s, ENG_CE_CQ_MOVE);
	cr_assert_eq(last->object.ring.cons, m.body.cq.at);
	cr_assert_eq(last->object.ring.entries, m.body.cq.at + SHM_LINE);
	cr_assert_eq(last->object.ring.log2_count, 7);
	hand_qp(&a, pd, cq);
	m = resize(cq, 200);
	cr_assert_eq(hand_do(&a, &m, SHM_CQ_RESIZE), 0);
	cr_assert_eq(m.body.cq.nsubs, SCRIPT_STAGES);
	cr_assert_eq(script_count(s, ENG_CE_CQ_MOVE), 1 + SCRIPT_STAGES);
	last = script_last(s, ENG_CE_CQ_MOVE);
	cr_assert_eq(last->object.ring.cons, m.body.cq.at + shm_cq_ring_bytes(8));
}

Test(engine_resize, a_queue_without_completions_or_with_the_room_needs_no_stage)
{
	uint32_t cq = hand_cq(&a);
	struct shm_msg m = resize(cq, 1024);

	cr_assert_eq(hand_do(&a, &m, SHM_CQ_RESIZE), 0);
	cr_assert_eq(m.body.cq.depth, 1024);
	cr_assert_eq(m.body.cq.nsubs, 0);
	hand_qp(&a, hand_pd(&a), cq);
	m = resize(cq, 5);
	cr_assert_eq(hand_do(&a, &m, SHM_CQ_RESIZE), 0);
	cr_assert_eq(m.body.cq.depth, 1024, "it does not shrink");
	cr_assert_eq(m.body.cq.nsubs, 0);
	cr_assert_eq(script_count(s, ENG_CE_CQ_MOVE), 0);
}

Test(engine_resize, bad_sizes_and_unknown_queues_are_refused)
{
	static const uint32_t bad[] = {0, 1025, UINT32_MAX};
	uint32_t cq = hand_cq(&a);
	struct shm_msg m;

	hand_qp(&a, hand_pd(&a), cq);
	for (unsigned i = 0; i < 3; i++) {
		m = resize(cq, bad[i]);
		cr_assert_eq(hand_do(&a, &m, SHM_CQ_RESIZE), -EINVAL);
	}
	m = resize(cq + 1, 100);
	cr_assert_eq(hand_do(&a, &m, SHM_CQ_RESIZE), -EINVAL);
	cr_assert_eq(script_count(s, ENG_CE_CQ_MOVE), 0);
}

Test(engine_resize, a_queue_that_moves_is_not_resized_and_gets_rings_of_the_new_depth)
{
	uint32_t cq = hand_cq(&a), pd = hand_pd(&a);
	struct shm_msg m;

	hand_qp(&a, pd, cq);
	s->hold = ENG_CE_CQ_MOVE;
	m = resize(cq, 100);
	hand_send(&a, &m, SHM_CQ_RESIZE);
	script_turns(s, 3);
	m = resize(cq, 200);
	cr_assert_eq(hand_do(&a, &m, SHM_CQ_RESIZE), -EBUSY);
	hand_qp(&a, pd, cq);
	cr_assert_eq(ctl_cq_find(hand_client(&a), cq)->eng.sub[0].ring.count +
			     ctl_cq_find(hand_client(&a), cq)->eng.sub[1].ring.count,
		16 + 128, "the script does not move the first one");
	s->hold = -1;
	script_release(s, 0);
	cr_assert(hand_next(&a, &m));
	cr_assert_eq(m.op, SHM_CQ_RESIZE);
	cr_assert_eq(m.body.cq.depth, 128);
	m = resize(cq, 200);
	cr_assert_eq(hand_do(&a, &m, SHM_CQ_RESIZE), 0);
}

Test(engine_resize, all_rings_of_a_queue_are_freed_with_it)
{
	const struct heap *heap = &hand_client(&a)->heap;
	uint64_t used = heap->used;
	uint32_t cq = hand_cq(&a), pd = hand_pd(&a);
	struct shm_msg qp = hand_qp(&a, pd, cq), m;

	for (uint32_t depth = 32; depth <= 1024; depth *= 2) {
		m = resize(cq, depth);
		cr_assert_eq(hand_do(&a, &m, SHM_CQ_RESIZE), 0);
	}
	cr_assert_gt(heap->used, used + 2 * 1024 * sizeof(struct shm_cqe) - 4096);
	cr_assert_eq(hand_destroy(&a, SHM_QP_DESTROY, qp.body.qp.qp), 0);
	cr_assert_eq(hand_destroy(&a, SHM_CQ_DESTROY, cq), 0);
	cr_assert_eq(heap->used, used);
}

Test(engine_resize, a_queue_that_finds_no_room_stays_as_it_is)
{
	uint32_t pd = hand_pd(&a), cq, n = 0;
	struct shm_msg m;

	s->cfg.limits.cq_depth = 1u << 22;
	cq = hand_cq(&a);
	hand_qp(&a, pd, cq);
	for (uint32_t depth = 32; depth <= 1u << 22; depth *= 2, n++) {
		m = resize(cq, depth);
		if (hand_do(&a, &m, SHM_CQ_RESIZE) < 0)
			break;
	}
	cr_assert_eq(m.status, -ENOMEM);
	cr_assert_eq(script_count(s, ENG_CE_CQ_MOVE), n);
	m = resize(cq, 16u << n);
	cr_assert_eq(hand_do(&a, &m, SHM_CQ_RESIZE), 0);
	cr_assert_eq(m.body.cq.nsubs, 0, "it has this depth");
}

/* ---- Shared receive queues ---- */

static uint32_t
srq_make(uint32_t depth)
{
	struct shm_msg m = {.body.srq = {.pd = hand_pd(&a),
				    .depth = depth,
				    .max_sge = 1,
				    .xrcd = SHM_NONE,
				    .cq = SHM_NONE}};

	cr_assert_eq(hand_do(&a, &m, SHM_SRQ_CREATE), 0);
	return m.body.srq.srq;
}

static struct shm_msg
srq_depth(uint32_t srq, uint32_t depth)
{
	return (struct shm_msg){.body.srq = {.srq = srq, .depth = depth}};
}

Test(engine_resize, a_receive_queue_moves_to_the_ring_that_its_client_has_filled)
{
	const struct heap *heap = &hand_client(&a)->heap;
	uint64_t used = heap->used;
	uint32_t srq = srq_make(8);
	uint64_t small = heap->used - used;
	struct shm_ring_at at;
	struct shm_msg m = srq_depth(srq, 50);

	cr_assert_eq(hand_do(&a, &m, SHM_SRQ_RESIZE), 0);
	cr_assert_eq(m.body.srq.depth, 64);
	at = m.body.srq.rq;
	cr_assert_eq(at.log2_count, 6);
	cr_assert_eq(script_count(s, ENG_CE_SRQ_MOVE), 0, "the client has to fill it");
	m = srq_depth(srq, 0);
	cr_assert_eq(hand_do(&a, &m, SHM_SRQ_RESIZE), 0);
	cr_assert_eq(memcmp(&script_last(s, ENG_CE_SRQ_MOVE)->object.ring, &at, sizeof(at)), 0);
	cr_assert_gt(heap->used - used, 4 * small, "the former ring is free");
	cr_assert_lt(heap->used - used, 8 * small);
	m = (struct shm_msg){.body.srq = {.srq = srq, .limit = 64}};
	cr_assert_eq(hand_do(&a, &m, SHM_SRQ_MODIFY), 0, "the limit may be the new depth");
	cr_assert_eq(hand_destroy(&a, SHM_SRQ_DESTROY, srq), 0);
	cr_assert_eq(heap->used, used);
}

Test(engine_resize, a_client_that_asks_again_and_never_moves_holds_one_ring)
{
	const struct heap *heap = &hand_client(&a)->heap;
	uint64_t used = heap->used, after = 0;
	uint32_t srq = srq_make(8);

	for (unsigned i = 0; i < 50; i++) {
		struct shm_msg m = srq_depth(srq, 16);

		cr_assert_eq(hand_do(&a, &m, SHM_SRQ_RESIZE), 0);
		cr_assert(i == 0 || heap->used == after);
		after = heap->used;
	}
	cr_assert_eq(hand_destroy(&a, SHM_SRQ_DESTROY, srq), 0);
	cr_assert_eq(heap->used, used);
}

Test(engine_resize, bad_depths_of_receive_queues_are_refused)
{
	static const uint32_t bad[] = {0, 1, 8, 1025, UINT32_MAX};
	uint32_t srq = srq_make(8);
	struct shm_msg m;

	for (unsigned i = 0; i < 5; i++) {
		m = srq_depth(srq, bad[i]);
		cr_assert_eq(hand_do(&a, &m, SHM_SRQ_RESIZE), -EINVAL, "depth %u", bad[i]);
	}
	m = srq_depth(srq + 1, 16);
	cr_assert_eq(hand_do(&a, &m, SHM_SRQ_RESIZE), -EINVAL);
	m = srq_depth(srq, 16);
	cr_assert_eq(hand_do(&a, &m, SHM_SRQ_RESIZE), 0);
	s->hold = ENG_CE_SRQ_MOVE;
	m = srq_depth(srq, 0);
	hand_send(&a, &m, SHM_SRQ_RESIZE);
	script_turns(s, 3);
	m = srq_depth(srq, 32);
	cr_assert_eq(hand_do(&a, &m, SHM_SRQ_RESIZE), -EBUSY);
	s->hold = -1;
	script_release(s, 0);
	cr_assert(hand_next(&a, &m));
	cr_assert_eq(m.status, 0);
}
