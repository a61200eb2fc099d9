/* SPDX-License-Identifier: BSD-3-Clause */
/* The sample of requests, and the histogram of their latencies. */
#include "latency.h"

#include "../base/mem.h"
#include "../base/reason.h"

void
rd_sample_next(struct rd_latency *l, struct rd_sample *s)
{
	uint32_t place;

	l->random = l->random * 1664525u + 1013904223u;
	place = (uint32_t)((uint64_t)l->random * RD_SAMPLE >> 32);
	s->left = (uint8_t)(s->rest + 1 + place);
	s->rest = (uint8_t)(RD_SAMPLE - 1 - place);
}

/* Returns the bucket of a latency: the number of bits by which the next power of two exceeds the
 * first bound. */
static unsigned
latency_bucket(uint64_t ns)
{
	unsigned bits;

	if (ns <= 1u << RD_LATENCY_LOG2)
		return 0;
	bits = 64 - (unsigned)__builtin_clzll(ns - 1);
	return SK_MIN(bits - RD_LATENCY_LOG2, (unsigned)RD_LATENCY_BOUNDS);
}

void
rd_latency_add(struct rd_latency *l, uint64_t taken)
{
	uint64_t ns = l->now - taken;

	sk_count_n(&l->sum, 0, ns);
	sk_count(l->bucket, latency_bucket(ns));
}
