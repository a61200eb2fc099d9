/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams of Atomics on two words of one RNIC, and the books that are kept of them. Word 0 counts:
 * every FetchAdd adds 1, so that the original values are the numbers from 0 on, each of them once.
 * Word 1 has two fields of 32 bits: FetchAdds with a mask add to the lower one, which overflows
 * again and again, and CmpSwaps with masks count the upper one up by 1.
 */
#ifndef TEST_INTEROP_ATOMICS_H
#define TEST_INTEROP_ATOMICS_H

#include <stdbool.h>
#include <stdint.h>

#include "../../lib/client/saker.h"

#define STREAMS 8
#define WORKERS 2
#define BATCH   16 /* FetchAdds on word 0 behind which one of either kind on word 1 stands */
#define OPS     (BATCH + 2)
#define BATCHES 6 /* outstanding on a stream: OPS * BATCHES is within ORD */

struct stream {
	struct saker_qp *qp;
	uint64_t to;            /* the words' address at the target, and */
	uint32_t rkey;          /* their STag */
	uint64_t (*sinks)[OPS]; /* [BATCHES]: where original values come */
	uint32_t lkey;
	uint32_t batches, posted, done;
	uint64_t last;              /* original value of its latest FetchAdd, plus 1 */
	uint32_t compared[BATCHES]; /* by the CmpSwap of a batch */
	uint32_t upper;             /* field of word 1 as last seen */
};

/* What one thread does and knows. */
struct worker {
	unsigned index;
	struct saker_cq *cq;
	struct stream *streams[STREAMS];
	unsigned nstreams;
	uint64_t total; /* FetchAdds of all streams on word 0 */
	uint64_t *seen; /* bitmap [total]: original values of word 0 */
	uint64_t *won;  /* bitmap [total / BATCH]: of the upper field, where a CmpSwap hit */
	uint64_t hits;  /* CmpSwaps that hit */
	uint32_t added; /* to the lower field, modulo 2^32 */
	uint64_t mistakes;
};

/* 0 or -ENOMEM. */
int worker_init(struct worker *w, unsigned index, uint64_t total);
void worker_free(struct worker *w);
/* Posts what there is room for, and takes what has completed into the books. Returns 1 when all its
 * streams have done their share, 0 when there is more to do, -1 when a request failed. */
int worker_turn(struct worker *w);
bool bit_is_set(const uint64_t *map, uint64_t n);

#endif
