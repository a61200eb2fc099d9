/* SPDX-License-Identifier: BSD-3-Clause */
/* Keyed functions: SipHash, the permutation, random bytes. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "../../../lib/base/prf.h"

/* The key 00 01 .. 0f and the inputs 00 01 .. of the SipHash paper (appendix A), and its reference
 * vectors. */
Test(prf, siphash_reference_vectors)
{
	static const uint64_t want[] = {
		0x726fdb47dd0e0e31,
		0x74f839c593dc67fd,
		0x0d6c8009d9a94f5a,
		0x85676696d7fb7e2d,
		0xcf2794e0277187b7,
		0x18765564cd99a68d,
		0xcbc9466e58fee3ce,
		0xab0200f58b01d137,
		0x93f5f5799a932462,
		0x9e0082df0ba9e4b0,
		0x7a5dbbc594ddb9f3,
		0xf4b32f46226bada7,
		0x751e8fbc860ee5fb,
		0x14ea5627c0843d90,
		0xf723ca908e7af2ee,
		0xa129ca6149be45e5,
		0x3f2acc7f57c29bdb,
	};
	struct sk_key key = {{0x0706050403020100, 0x0f0e0d0c0b0a0908}};
	uint8_t in[16];

	for (unsigned i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)i;
	for (unsigned len = 0; len < sizeof(want) / sizeof(want[0]); len++)
		cr_assert_eq(sk_siphash(&key, in, len), want[len], "%u bytes", len);
}

Test(prf, perm24_is_a_bijection_with_its_inverse)
{
	struct sk_key key = {{0x0123456789abcdef, 0xfedcba9876543210}};
	uint8_t *seen = calloc(1, 1 << 21);

	cr_assert_not_null(seen);
	for (uint32_t v = 0; v < 1 << 24; v++) {
		uint32_t p = sk_perm24(&key, v);

		if (p >> 24 || seen[p / 8] & 1 << p % 8 || sk_perm24_inv(&key, p) != v)
			cr_assert_fail("%06x gives %06x", v, p);
		seen[p / 8] |= (uint8_t)(1 << p % 8);
	}
	free(seen);
}

/* Returns how many of the first 4096 numbers keep a distance of at most 256 from their
 * neighbour. */
static unsigned
close_neighbours(const struct sk_key *key)
{
	unsigned n = 0;

	for (uint32_t v = 0; v < 4096; v++) {
		int32_t d = (int32_t)(sk_perm24(key, v) - sk_perm24(key, v + 1));

		n += abs(d) <= 256;
	}
	return n;
}

Test(prf, perm24_hides_the_order_of_slots)
{
	struct sk_key zero = {{0, 0}}, one = {{1, 0}},
		      k = {{0x9d5a1c3b7e2f4860, 0x1f3c5b79d8e6a042}};

	/* The chance of each such pair is about one in 30 000. */
	cr_assert_lt(close_neighbours(&zero), 8);
	cr_assert_lt(close_neighbours(&one), 8);
	cr_assert_lt(close_neighbours(&k), 8);
}

Test(prf, perm24_depends_on_each_bit_of_the_key)
{
	struct sk_key key = {{0x9d5a1c3b7e2f4860, 0x1f3c5b79d8e6a042}};

	for (unsigned bit = 0; bit < 128; bit++) {
		struct sk_key flipped = key;
		unsigned same = 0;

		flipped.k[bit / 64] ^= 1ull << bit % 64;
		for (uint32_t v = 0; v < 256; v++)
			same += sk_perm24(&key, v) == sk_perm24(&flipped, v);
		cr_assert_lt(same, 4, "bit %u: %u", bit, same);
	}
}

Test(prf, random_fills_the_whole_buffer)
{
	uint8_t a[300] = {0}, seen[300] = {0};

	/* The chance that a byte is 0 eight times is one in 2^64. */
	for (unsigned round = 0; round < 8; round++) {
		sk_random(a, 299);
		for (unsigned i = 0; i < 300; i++)
			seen[i] |= a[i];
	}
	for (unsigned i = 0; i < 299; i++)
		cr_assert_neq(seen[i], 0, "byte %u", i);
	cr_assert_eq(seen[299], 0);
}
