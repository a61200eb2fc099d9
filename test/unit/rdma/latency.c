/* SPDX-License-Identifier: BSD-3-Clause */
/* The sample of requests, and the histogram of latencies. */
#include "../../../lib/rdma/latency.h"

#include <criterion/criterion.h>
#include <string.h>

Test(rdma_latency, one_of_each_64_requests_is_in_the_sample_at_each_place)
{
	struct rd_latency l = {.random = 7};
	struct rd_sample s = {0};
	unsigned at[RD_SAMPLE] = {0}, least = UINT32_MAX, most = 0;
	const unsigned blocks = 6400;

	rd_sample_next(&l, &s);
	for (unsigned block = 0; block < blocks; block++) {
		unsigned n = 0;

		for (unsigned i = 0; i < RD_SAMPLE; i++) {
			if (!rd_sample_due(&s))
				continue;
			rd_sample_next(&l, &s);
			at[i]++;
			n++;
		}
		cr_assert_eq(n, 1, "block %u has %u", block, n);
	}
	for (unsigned i = 0; i < RD_SAMPLE; i++) {
		least = at[i] < least ? at[i] : least;
		most = at[i] > most ? at[i] : most;
	}
	cr_assert(least > 50 && most < 160, "of 100 at each place: %u to %u", least, most);
}

/* Returns the bucket in which a latency is counted. */
static unsigned
bucket_of(uint64_t ns)
{
	struct rd_latency l = {.now = 1000000 + ns, .sum = 5};
	unsigned found = UINT32_MAX, n = 0;

	rd_latency_add(&l, 1000000);
	cr_assert_eq(l.sum, 5 + ns);
	for (unsigned i = 0; i <= RD_LATENCY_BOUNDS; i++) {
		n += (unsigned)l.bucket[i];
		if (l.bucket[i] == 1)
			found = i;
	}
	cr_assert_eq(n, 1);
	return found;
}

Test(rdma_latency, a_bucket_ends_with_its_bound_which_is_a_power_of_two)
{
	cr_assert_eq(bucket_of(0), 0);
	cr_assert_eq(bucket_of(1), 0);
	for (unsigned i = 0; i < RD_LATENCY_BOUNDS; i++) {
		uint64_t bound = 1024ull << i;

		cr_assert_eq(bucket_of(bound - 1), i);
		cr_assert_eq(bucket_of(bound), i);
		cr_assert_eq(bucket_of(bound + 1), i + 1);
	}
	cr_assert_eq(bucket_of(1ull << 40), RD_LATENCY_BOUNDS);
	cr_assert_eq(bucket_of(1ull << 63), RD_LATENCY_BOUNDS);
}
