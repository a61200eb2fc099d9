/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures a round, and verifies operations before the first one: the operation under test, and the
 * one of --versus on the same connections. Both ends execute the same steps in the same order.
 */
#include "perf.h"

bool
perf_late(const struct perf_options *o, uint64_t start)
{
	return o->duration && eng_clock() - start > o->duration / o->rounds;
}

static int
round_measure(struct perf_end *e, enum perf_op op, uint32_t iters, struct perf_figures *f)
{
	e->op = op;
	e->runs++;
	if (e->o->test != PERF_LAT)
		return perf_stream(e, iters, f);
	return e->active ? perf_lat_run(e, iters, f) : perf_lat_serve(e);
}

int
perf_round(struct perf_end *e, uint32_t r, uint32_t iters, struct perf_figures *real,
	struct perf_figures *versus)
{
	enum perf_op other = e->o->versus;

	if (other != PERF_NO_OP && r % 2 == 0 && round_measure(e, other, iters, versus))
		return -1;
	if (round_measure(e, e->o->op, iters, real))
		return -1;
	return other != PERF_NO_OP && r % 2 == 1 ? round_measure(e, other, iters, versus) : 0;
}

static int
verify(struct perf_end *e, enum perf_op op)
{
	uint32_t n = perf_verified(e->o);

	e->op = op;
	if (n == 0 || op == PERF_NO_OP)
		return 0;
	if (perf_op_atomic(op))
		return e->active ? perf_verify_atomic_run(e, n) : perf_verify_atomic_serve(e, n);
	return e->active ? perf_verify_run(e, n) : perf_verify_serve(e, n);
}

int
perf_verify(struct perf_end *e)
{
	return verify(e, e->o->op) || verify(e, e->o->versus) ? -1 : 0;
}
