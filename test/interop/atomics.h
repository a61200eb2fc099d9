/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams of Atomics on two words of one RNIC, and the accounting of their results. Word 0 is a
 * counter: every FetchAdd adds 1, so that the original values are the numbers from 0 on, each of
 * them once. Word 1 has two fields of 32 bits: FetchAdds with a mask add to the lower field, which
 * overflows again and again, and CmpSwaps with masks increment the upper field.
 */
#ifndef TEST_INTEROP_ATOMICS_H
#define TEST_INTEROP_ATOMICS_H

#include <stdbool.h>
#include <stdint.h>

#include <saker/saker.h>

#define STREAMS 8
#define WORKERS 2
#define BATCH   16 /* FetchAdds on word 0, followed by one of each kind on word 1 */
#define OPS     (BATCH + 2)
#define BATCHES 6 /* outstanding on a stream; OPS * BATCHES is within ORD */

struct stream {
	struct saker_qp *qp;
	uint64_t to;            /* address of the words at the target */
	uint32_t rkey;          /* their STag */
	uint64_t (*sinks)[OPS]; /* [BATCHES]: sinks of the original values */
	uint32_t lkey;
	uint32_t batches, posted, done;
	uint64_t last;              /* original value of the latest FetchAdd, plus 1 */
	uint32_t compared[BATCHES]; /* compare value of the CmpSwap of each batch */
	uint32_t upper;             /* last known value of word 1's upper field */
};

/* The state of one thread. */
struct worker {
	unsigned index;
	struct saker_cq *cq;
	struct stream *streams[STREAMS];
	unsigned nstreams;
	uint64_t total; /* number of FetchAdds of all streams on word 0 */
	uint64_t *seen; /* bitmap [total]: original values of word 0 that were returned */
	/* Bitmap [total / BATCH]: values of the upper field that a CmpSwap replaced. */
	uint64_t *won;
	uint64_t hits;  /* number of successful CmpSwaps */
	uint32_t added; /* sum added to the lower field, modulo 2^32 */
	uint64_t mistakes;
};

/* Returns 0 or -ENOMEM. */
int worker_init(struct worker *w, unsigned index, uint64_t total);
void worker_free(struct worker *w);
/* Posts as many requests as there is room for, and accounts for the completed ones. Returns 1 when
 * all streams have done their share, 0 when work remains, or -1 when a request failed. */
int worker_turn(struct worker *w);
bool bit_is_set(const uint64_t *map, uint64_t n);

#endif
