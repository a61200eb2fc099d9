/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Verifies Atomics. One at a time, with operands and masks of every kind: the original value must
 * be the result of the previous Atomic, and the peer's cell must hold the result by RFC 7306 5.1,
 * computed bit by bit. In measured rounds, where each Atomic increments a cell by one: the sum.
 */
#include "perf.h"

static uint64_t
noise(uint64_t n)
{
	n = (n + 1) * 0x9e3779b97f4a7c15ull;
	n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9ull;
	return n ^ n >> 27;
}

/* Returns the i-th operands for a cell that holds `value`. Every other CmpSwap matches the value
 * under its mask; the others differ from it in one bit under the mask. */
static struct perf_operands
verify_atomic_operands(const struct perf_end *e, uint32_t i, uint64_t value)
{
	const uint64_t masks[] = {
		0, 1ull << 63, 0x8000800080008000ull, ~0ull, 0x00000000ffffffffull, noise(3 * i)};
	struct perf_operands o = {
		.data = noise(3 * i + 1),
		.data_mask = masks[i % 6],
		.compare_mask = masks[(i / 6 + 1) % 6],
	};

	if (e->o->transport == SAKER_FALCON) { /* Falcon's headers have no masks */
		o.data_mask = e->op == PERF_ATOMIC_CS ? ~0ull : 0;
		o.compare_mask = ~0ull;
	}
	if (e->op != PERF_ATOMIC_CS)
		return o;
	o.compare = value ^ (noise(3 * i + 2) & ~o.compare_mask);
	if (i % 2)
		o.compare ^= o.compare_mask & -o.compare_mask;
	return o;
}

/* Adds fields (RFC 7306 5.1.1): a carry goes to the next bit, except from the highest bit of a
 * field. */
static uint64_t
add_fields(uint64_t value, uint64_t add, uint64_t mask)
{
	uint64_t sum = 0;
	unsigned carry = 0;

	for (unsigned bit = 0; bit < 64; bit++) {
		unsigned s = (value >> bit & 1) + (add >> bit & 1) + carry;

		sum |= (uint64_t)(s & 1) << bit;
		carry = mask >> bit & 1 ? 0 : s >> 1;
	}
	return sum;
}

/* Compares and swaps (RFC 7306 5.1.2): if all bits under the compare mask are equal, the bits under
 * the data mask are replaced. */
static uint64_t
swapped(uint64_t value, const struct perf_operands *o)
{
	uint64_t result = 0;

	for (unsigned bit = 0; bit < 64; bit++) {
		if ((o->compare_mask >> bit & 1) && ((value ^ o->compare) >> bit & 1))
			return value;
		result |= ((o->data_mask >> bit & 1 ? o->data : value) >> bit & 1) << bit;
	}
	return result;
}

static uint64_t
result(enum perf_op op, const struct perf_operands *o, uint64_t value)
{
	return op == PERF_ATOMIC_CS ? swapped(value, o) : add_fields(value, o->data, o->data_mask);
}

/* Both ends compute the value of the cell of flow 0, which is 0 at the start and at the end. */
int
perf_verify_atomic_run(struct perf_end *e, uint32_t iters)
{
	struct perf_flow *f = &e->flow[0];
	uint64_t value = 0;

	for (uint32_t i = 0; i < iters; i++) {
		struct perf_operands o = verify_atomic_operands(e, i, value);

		*perf_cell(e, 0) = ~value;
		if (perf_sync(e) || perf_post_atomic(e, 0, &o))
			return -1;
		while (f->done < f->signals)
			if (perf_turn(e) || perf_reap(e))
				return -1;
		if (*perf_cell(e, 0) != value)
			perf_mistake(e, "original value", i, *perf_cell(e, 0), value);
		value = result(e->op, &o, value);
		if (perf_sync(e))
			return -1;
	}
	return 0;
}

int
perf_verify_atomic_serve(struct perf_end *e, uint32_t iters)
{
	uint64_t *cell = perf_cell(e, 0), value = 0;

	for (uint32_t i = 0; i < iters; i++) {
		struct perf_operands o = verify_atomic_operands(e, i, value);

		if (perf_sync(e) || perf_sync_wait(e))
			return -1;
		value = result(e->op, &o, value);
		if (*cell != value)
			perf_mistake(e, "cell after operation", i, *cell, value);
		if (i + 1 == iters)
			*cell = 0;
		if (perf_sync_answer(e))
			return -1;
	}
	return 0;
}

void
perf_check_cell(struct perf_end *e, uint32_t qp)
{
	uint64_t n = e->flow[qp].atomics, is = *perf_cell(e, qp);

	if (perf_op_atomic(e->op) && n > 0 && is != n - 1)
		perf_mistake(e, "original value of QP", qp, is, n - 1);
}

int
perf_check_served(struct perf_end *e, uint32_t qp)
{
	uint64_t is = *perf_cell(e, qp);
	uint32_t msgs;

	if (!perf_op_atomic(e->op))
		return 0;
	if (perf_wait_end(e, qp, &msgs))
		return -1;
	e->flow[qp].atomics += msgs;
	if (is != e->flow[qp].atomics)
		perf_mistake(e, "count in the cell of QP", qp, is, e->flow[qp].atomics);
	return 0;
}
