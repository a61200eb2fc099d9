/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bucket b < 64 holds the value b. Each power of two 2^e (e from 6 to 63) then has 64 buckets of
 * width 2^(e-6): the index consists of the exponent and of the six bits behind the leading one.
 */
#include "hist.h"

#include "mem.h"

#include <string.h>

#define STEP_BITS 6
#define STEPS     (1u << STEP_BITS)

static unsigned
hist_bucket_of(uint64_t v)
{
	unsigned e;

	if (v < STEPS)
		return (unsigned)v;
	e = 63 - (unsigned)__builtin_clzll(v);
	return (e - STEP_BITS + 1) * STEPS + (unsigned)((v >> (e - STEP_BITS)) & (STEPS - 1));
}

uint64_t
sk_hist_bucket_middle(unsigned b)
{
	unsigned shift;

	if (b < STEPS)
		return b;
	shift = b / STEPS - 1;
	return ((uint64_t)(STEPS + b % STEPS) << shift) + ((1ull << shift) >> 1);
}

void
sk_hist_init(struct sk_hist *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

void
sk_hist_add(struct sk_hist *h, uint64_t v)
{
	h->count++;
	h->sum += v;
	h->min = SK_MIN(h->min, v);
	h->max = SK_MAX(h->max, v);
	h->bucket[hist_bucket_of(v)]++;
}

/* Returns the smallest rank (from 1) that has at least the share `q` of all values at or below
 * it. */
static uint64_t
rank_of(double q, uint64_t count)
{
	double exact = q * (double)count;
	uint64_t rank;

	if (!(exact >= 1))
		return 1;
	if (exact >= (double)count)
		return count;
	rank = (uint64_t)exact;
	return (double)rank < exact ? rank + 1 : rank;
}

uint64_t
sk_hist_quantile(const struct sk_hist *h, double q)
{
	uint64_t seen = 0;
	uint64_t rank;
	uint64_t v = 0;

	if (h->count == 0)
		return 0;
	rank = rank_of(q, h->count);
	for (unsigned b = 0; b < SK_HIST_BUCKETS; b++) {
		seen += h->bucket[b];
		if (seen >= rank) {
			v = sk_hist_bucket_middle(b);
			break;
		}
	}
	/* The middle of an outermost bucket may lie outside of the values that were added. */
	return SK_MAX(h->min, SK_MIN(h->max, v));
}

double
sk_hist_mean(const struct sk_hist *h)
{
	return h->count ? (double)h->sum / (double)h->count : 0;
}

double
sk_hist_variance(const struct sk_hist *h)
{
	double mean = sk_hist_mean(h), squares = 0;

	for (unsigned b = 0; b < SK_HIST_BUCKETS; b++) {
		double off = (double)sk_hist_bucket_middle(b) - mean;

		if (h->bucket[b])
			squares += (double)h->bucket[b] * off * off;
	}
	return h->count ? squares / (double)h->count : 0;
}
