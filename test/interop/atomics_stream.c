/* SPDX-License-Identifier: BSD-3-Clause */
/* See atomics.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/base/mem.h"
#include "atomics.h"

#define UPPER  0xffffffff00000000ull
#define FIELDS (1ull << 31) /* the highest bit of the lower field: no carry leaves it */
#define NEVER  UINT64_MAX   /* no original value */
#define TELL   10           /* the number of errors that are described */

int
worker_init(struct worker *w, unsigned index, uint64_t total)
{
	*w = (struct worker){.index = index, .total = total};
	w->seen = calloc(total / 64 + 1, sizeof(*w->seen));
	w->won = calloc(total / BATCH / 64 + 1, sizeof(*w->won));
	return w->seen != NULL && w->won != NULL ? 0 : -ENOMEM;
}

void
worker_free(struct worker *w)
{
	free(w->seen);
	free(w->won);
}

bool
bit_is_set(const uint64_t *map, uint64_t n)
{
	return map[n / 64] >> n % 64 & 1;
}

static void
bit_set(uint64_t *map, uint64_t n)
{
	map[n / 64] |= 1ull << n % 64;
}

static void
mistake(struct worker *w, const char *what, uint64_t value)
{
	if (w->mistakes++ < TELL)
		printf("worker %u: %s: %" PRIu64 "\n", w->index, what, value);
}

/* Returns a number whose sums overflow 32 bits now and then. */
static uint32_t
addend(const struct stream *st)
{
	return (st->posted + 1) * 2654435761u;
}

static int
post_batch(struct worker *w, struct stream *st)
{
	uint32_t slot = st->posted % BATCHES;
	struct rd_sge sge[OPS];
	struct saker_wr wr[OPS];
	struct saker_wr *add = &wr[BATCH], *swap = &wr[BATCH + 1];

	for (unsigned i = 0; i < OPS; i++) {
		st->sinks[slot][i] = NEVER;
		sge[i] = (struct rd_sge){(uintptr_t)&st->sinks[slot][i], 8, st->lkey};
		wr[i] = (struct saker_wr){.wr_id = (uintptr_t)st,
			.opcode = RD_FETCH_ADD,
			.nsge = 1,
			.rkey = st->rkey,
			.remote_addr = st->to + (i < BATCH ? 0 : 8),
			.data = 1,
			.sge = &sge[i]};
	}
	add->data = addend(st);
	add->data_mask = FIELDS;
	w->added += addend(st);
	st->compared[slot] = st->upper;
	swap->opcode = RD_CMP_SWAP;
	swap->compare = (uint64_t)st->upper << 32;
	swap->data = (uint64_t)(st->upper + 1) << 32;
	swap->data_mask = swap->compare_mask = UPPER;
	swap->flags = RD_SIGNALED;
	st->posted++;
	return saker_post_send(st->qp, wr, OPS) == OPS ? 0 : -1;
}

/* Records an original value of word 0. A stream's requests are executed in order, so its values
 * ascend. */
static void
take_count(struct worker *w, struct stream *st, uint64_t value)
{
	if (value >= w->total) {
		mistake(w, "an original value that was never there", value);
		return;
	}
	if (value < st->last)
		mistake(w, "an original value that is older than the one before it", value);
	if (bit_is_set(w->seen, value))
		mistake(w, "an original value for the second time", value);
	bit_set(w->seen, value);
	st->last = value + 1;
}

static void
take_swap(struct worker *w, struct stream *st, uint32_t slot)
{
	uint64_t original = st->sinks[slot][BATCH + 1];

	st->upper = (uint32_t)(original >> 32);
	if (st->upper != st->compared[slot])
		return;
	if (st->upper >= w->total / BATCH || bit_is_set(w->won, st->upper))
		mistake(w, "a CmpSwap that hit what was gone", st->upper);
	else
		bit_set(w->won, st->upper);
	w->hits++;
	st->upper++;
}

static void
take_batch(struct worker *w, struct stream *st)
{
	uint32_t slot = st->done++ % BATCHES;

	for (unsigned i = 0; i < BATCH; i++)
		take_count(w, st, st->sinks[slot][i]);
	take_swap(w, st, slot);
}

int
worker_turn(struct worker *w)
{
	struct rd_wc wc[STREAMS * BATCHES];
	bool all = true;
	int n;

	for (unsigned i = 0; i < w->nstreams; i++) {
		struct stream *st = w->streams[i];

		while (st->posted < st->batches && st->posted - st->done < BATCHES)
			if (post_batch(w, st))
				return -1;
	}
	n = saker_cq_poll(w->cq, wc, (int)SK_ARRAY_LEN(wc));
	for (int i = 0; i < n; i++) {
		if (wc[i].status != RD_SUCCESS) {
			printf("a request failed: status %u, reason %u\n", wc[i].status,
				wc[i].vendor_err);
			return -1;
		}
		take_batch(w, (struct stream *)(uintptr_t)wc[i].wr_id);
	}
	for (unsigned i = 0; i < w->nstreams; i++)
		all = all && w->streams[i]->done == w->streams[i]->batches;
	return n < 0 ? -1 : all;
}
