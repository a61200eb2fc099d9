/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A log-linear histogram of nanoseconds (or of any counts): 64 linear steps in each power of two,
 * so a quantile is exact below 64 and within 1.6 % above.
 */
#ifndef SAKER_BASE_HIST_H
#define SAKER_BASE_HIST_H

#include <stdint.h>

#define SK_HIST_BUCKETS (64 * 59)

struct sk_hist {
	uint64_t count, sum, min, max;
	uint64_t bucket[SK_HIST_BUCKETS];
};

/* Makes `h` empty; each histogram needs this before its first value. */
void sk_hist_init(struct sk_hist *h);
void sk_hist_add(struct sk_hist *h, uint64_t v);
/* Returns the quantile `q` (0 to 1): the middle of the bucket in which it lies, or 0 when the
 * histogram is empty. */
uint64_t sk_hist_quantile(const struct sk_hist *h, double q);
/* Return the mean, which is exact, and the variance (the square of the standard deviation), which
 * takes each value for the middle of its bucket. 0 when the histogram is empty. */
double sk_hist_mean(const struct sk_hist *h);
double sk_hist_variance(const struct sk_hist *h);
/* Returns the value that stands for all values in bucket `b`: its middle. */
uint64_t sk_hist_bucket_middle(unsigned b);

#endif
