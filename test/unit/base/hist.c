/* SPDX-License-Identifier: BSD-3-Clause */
/* The histogram: exact below 64, and within its bound of 1.6 % above. */
#include <criterion/criterion.h>

#include "../../../lib/base/hist.h"

static struct sk_hist h;

Test(hist, empty)
{
	sk_hist_init(&h);
	cr_assert_eq(h.count, 0);
	cr_assert_eq(sk_hist_quantile(&h, 0.5), 0);
}

Test(hist, quantiles_below_64_are_exact)
{
	sk_hist_init(&h);
	for (uint64_t v = 1; v <= 50; v++)
		sk_hist_add(&h, v);
	cr_assert_eq(sk_hist_quantile(&h, 0), 1);
	cr_assert_eq(sk_hist_quantile(&h, 0.02), 1);
	cr_assert_eq(sk_hist_quantile(&h, 0.021), 2);
	cr_assert_eq(sk_hist_quantile(&h, 0.5), 25);
	cr_assert_eq(sk_hist_quantile(&h, 0.51), 26);
	cr_assert_eq(sk_hist_quantile(&h, 0.98), 49);
	cr_assert_eq(sk_hist_quantile(&h, 1), 50);
	cr_assert_eq(h.count, 50);
	cr_assert_eq(h.sum, 50 * 51 / 2);
	cr_assert_eq(h.min, 1);
	cr_assert_eq(h.max, 50);
}

/* Adds three values around each power of two and far behind it: the quantile of the middle one is
 * off by at most 1.6 %. */
Test(hist, quantile_is_within_a_64th_over_all_64_bits)
{
	for (unsigned e = 0; e < 64; e++)
		for (unsigned f = 0; f < 256; f++) {
			uint64_t v = (1ull << e) + (e >= 8 ? (uint64_t)f << (e - 8) : 0);
			uint64_t q, off;

			sk_hist_init(&h);
			sk_hist_add(&h, 0);
			sk_hist_add(&h, v);
			sk_hist_add(&h, UINT64_MAX);
			q = sk_hist_quantile(&h, 0.5);
			off = q > v ? q - v : v - q;
			cr_assert_leq(off, v / 64, "%lu gave %lu", v, q);
			if (v < 128)
				cr_assert_eq(q, v);
		}
}

Test(hist, quantile_never_leaves_what_was_seen)
{
	sk_hist_init(&h);
	sk_hist_add(&h, UINT64_MAX);
	cr_assert_eq(sk_hist_quantile(&h, 0.5), UINT64_MAX);
	sk_hist_init(&h);
	sk_hist_add(&h, 1000001);
	sk_hist_add(&h, 1000003);
	cr_assert_geq(sk_hist_quantile(&h, 0), 1000001);
	cr_assert_leq(sk_hist_quantile(&h, 1), 1000003);
}

Test(hist, quantiles_grow_with_q)
{
	uint64_t last = 0, x = 7;

	sk_hist_init(&h);
	for (unsigned i = 0; i < 10000; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		sk_hist_add(&h, x >> (x % 60));
	}
	for (unsigned i = 0; i <= 1000; i++) {
		uint64_t q = sk_hist_quantile(&h, i / 1000.0);

		cr_assert_geq(q, last);
		last = q;
	}
	cr_assert_eq(last, sk_hist_quantile(&h, 2.0));
	cr_assert_eq(sk_hist_quantile(&h, -1.0), sk_hist_quantile(&h, 0));
}

Test(hist, mean_and_variance)
{
	static const uint64_t values[] = {2, 4, 4, 4, 5, 5, 7, 9};

	sk_hist_init(&h);
	cr_assert_eq(sk_hist_mean(&h), 0);
	cr_assert_eq(sk_hist_variance(&h), 0);
	for (unsigned i = 0; i < 8; i++)
		sk_hist_add(&h, values[i]);
	cr_assert_float_eq(sk_hist_mean(&h), 5, 1e-12);
	cr_assert_float_eq(sk_hist_variance(&h), 4, 1e-12);
}
