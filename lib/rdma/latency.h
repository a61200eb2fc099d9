/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The latencies of work requests: a histogram over a sample of them. Of each RD_SAMPLE requests of
 * a QP in succession, one is in the sample. Its place among them is random, so that a program whose
 * requests repeat a pattern gets a sample of all of them. An engine stage has one histogram for
 * each transport. Its lcore writes the histogram, and any thread may read it, relaxed.
 */
#ifndef SAKER_RDMA_LATENCY_H
#define SAKER_RDMA_LATENCY_H

#include <stdbool.h>
#include <stdint.h>

#define RD_SAMPLE 64 /* at most 128: see struct rd_sample */
/* Bucket i counts latencies up to 2^(RD_LATENCY_LOG2 + i) ns (1 us to 1 s) that no bucket before it
 * counts; the last bucket counts the longer ones. */
#define RD_LATENCY_LOG2   10
#define RD_LATENCY_BOUNDS 21

struct rd_latency {
	uint64_t now; /* ns, the time of this turn; the owner sets it */
	uint64_t sum; /* ns */
	uint64_t bucket[RD_LATENCY_BOUNDS + 1];
	uint32_t random; /* state of the generator of places */
};

/* Of a QP: the number of requests to the next one in the sample, that one included, and the number
 * of those behind it that are of the same RD_SAMPLE requests. */
struct rd_sample {
	uint8_t left, rest;
};

/* Sets s->left, which is 0: at first, when s->rest is 0, too, and after each request in the
 * sample. */
void rd_sample_next(struct rd_latency *l, struct rd_sample *s);
/* Counts a request of the QP. Returns whether it is in the sample; rd_sample_next() must follow. */
static inline bool
rd_sample_due(struct rd_sample *s)
{
	return --s->left == 0;
}
/* Adds the latency of a request that left its queue at `taken` (ns) and completes now. */
void rd_latency_add(struct rd_latency *l, uint64_t taken);

#endif
