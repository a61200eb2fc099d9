/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Executes the operation under test once at a time, and compares every byte at the receiver.
 * perf_reap() compares Immediate Data. The passive end sends the number of its mistakes in
 * perf_sync(), so that the active end reports all of them.
 */
#include <string.h>

#include "perf.h"

static uint8_t
pattern(uint32_t round, uint32_t i)
{
	return (uint8_t)(((i + 1) * 2654435761u + round * 40503u) >> 13);
}

static void
verify_fill(uint8_t *b, uint32_t len, uint32_t round)
{
	for (uint32_t i = 0; i < len; i++)
		b[i] = pattern(round, i);
}

static uint64_t
compare(struct perf_end *e, uint32_t round)
{
	const uint8_t *b = perf_in(e);

	for (uint32_t i = 0; i < e->o->size; i++) {
		if (b[i] != pattern(round, i)) {
			fprintf(stderr,
				"saker-perf: operation %u: byte %u is 0x%02x instead of 0x%02x\n",
				round, i, b[i], pattern(round, i));
			return 1;
		}
	}
	return 0;
}

int
perf_verify_run(struct perf_end *e, uint32_t iters)
{
	bool read = e->op == PERF_READ;

	for (uint32_t i = 0; i < iters; i++) {
		struct perf_flow *f = &e->flow[0];

		if (read)
			memset(perf_in(e), 0xee, e->o->size);
		else
			verify_fill(perf_out(e), e->o->size, i);
		if (perf_sync(e) || perf_post(e, 0, 1, true))
			return -1;
		while (f->done < f->signals)
			if (perf_turn(e) || perf_reap(e))
				return -1;
		if (read)
			e->errors += compare(e, i);
		if (perf_sync(e))
			return -1;
	}
	return 0;
}

int
perf_verify_serve(struct perf_end *e, uint32_t iters)
{
	bool read = e->op == PERF_READ, takes = perf_op_receives(e->op);

	for (uint32_t i = 0; i < iters; i++) {
		uint64_t got = e->received + takes;

		if (read)
			verify_fill(perf_out(e), e->o->size, i);
		else
			memset(perf_in(e), 0xee, e->o->size);
		if (takes && e->flow[0].recv_posted == e->flow[0].received &&
			perf_post_recv(e, 0, 1))
			return -1;
		if (perf_sync(e) || perf_sync_wait(e))
			return -1;
		while (e->received < got)
			if (perf_turn(e) || perf_reap(e))
				return -1;
		if (!read)
			e->errors += compare(e, i);
		if (perf_sync_answer(e))
			return -1;
	}
	return 0;
}
