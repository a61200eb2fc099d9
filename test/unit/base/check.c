/* SPDX-License-Identifier: BSD-3-Clause */
/* Internet checksums and CRC32Cs against their definitions, for each kind of processor. */
#include <criterion/criterion.h>
#include <string.h>

#include "../../../lib/base/check_priv.h"
#include "../../../lib/base/crc32c.h"
#include "../../support/upper.h"

#define MOST 9100 /* bytes: a jumbo frame, and more than the blocks of a pass */

static uint8_t src[MOST + 64], dst[MOST + 192] __attribute__((aligned(64)));

static uint32_t
crc_by_definition(uint32_t c, const uint8_t *p, size_t len)
{
	while (len-- > 0) {
		c ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			c = c >> 1 ^ (c & 1 ? 0x82f63b78 : 0);
	}
	return c;
}

/* Returns the sum of RFC 1071 section 1, folded, in the order of the bytes in memory. */
static uint16_t
sum_by_definition(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i++) {
		sum += i % 2 == 0 ? p[i] : (uint32_t)p[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return (uint16_t)sum;
}

static void
check_fill(void)
{
	uint32_t x = 4711;

	for (size_t i = 0; i < sizeof(src); i++) {
		x = x * 1664525 + 1013904223;
		src[i] = (uint8_t)(x >> 24);
	}
}

/* Checks all passes over src[at..at+len), with the copies at dst[to]. */
static void
check_passes(enum sk_vectors kind, size_t at, size_t to, size_t len)
{
	uint32_t crc = crc_by_definition(0x12345678, src + at, len);
	struct sk_check c = {0x12345678, 0};
	uint16_t sum = sum_by_definition(src + at, len);

	sk_vectors_set(kind);
	cr_assert(sk_sum_fold(sk_sum(0, src + at, len)) == sum, "%d %zu %zu", kind, at, len);
	c = sk_check(c, src + at, len);
	cr_assert(c.crc == crc && sk_sum_fold(c.sum) == sum, "%d %zu %zu", kind, at, len);
	memset(dst, 0xa5, sizeof(dst));
	cr_assert(sk_sum_fold(sk_sum_copy(0, dst + to, src + at, len)) == sum, "%d %zu %zu", kind,
		at, len);
	cr_assert(memcmp(dst + to, src + at, len) == 0 && dst[to + len] == 0xa5);
	memset(dst, 0xa5, sizeof(dst));
	c = sk_check_copy((struct sk_check){0x12345678, 0}, dst + to, src + at, len);
	cr_assert(c.crc == crc && sk_sum_fold(c.sum) == sum, "%d %zu %zu", kind, at, len);
	cr_assert(memcmp(dst + to, src + at, len) == 0 && dst[to + len] == 0xa5);
	cr_assert(to == 0 || dst[to - 1] == 0xa5);
	sk_vectors_set(SK_VECTORS_UNKNOWN);
}

Test(check, short_passes_agree_with_the_definitions_at_each_alignment)
{
	check_fill();
	for (int kind = SK_VECTORS_NONE; kind <= SK_VECTORS_FOLD; kind++)
		for (size_t len = 0; len <= 300; len++)
			for (size_t at = 0; at < 8; at++)
				check_passes((enum sk_vectors)kind, at, len % 3 * 7 + at, len);
}

Test(check, long_passes_agree_with_the_definitions)
{
	check_fill();
	for (int kind = SK_VECTORS_NONE; kind <= SK_VECTORS_FOLD; kind++)
		for (size_t len = 300; len <= MOST; len += len % 7 + 61)
			/* The copies of every other length are aligned to a cache line. */
			check_passes((enum sk_vectors)kind, len % 64, len % 2 * 20, len);
}

Test(check, carries_are_added_at_the_low_end)
{
	memset(src, 0xff, sizeof(src));
	for (int kind = SK_VECTORS_NONE; kind <= SK_VECTORS_FOLD; kind++)
		for (size_t len = 1; len <= MOST; len = len * 5 / 4 + 1)
			check_passes((enum sk_vectors)kind, 0, 0, len);
}

Test(check, words_and_pieces_give_the_same_as_the_whole)
{
	struct sk_check c = SK_CHECK_INIT, whole;
	uint64_t first, second;

	check_fill();
	whole = sk_check(c, src, 4000);
	memcpy(&first, src, 8);
	memcpy(&second, src + 8, 8);
	c = sk_check_word(sk_check_word(c, first), second);
	for (size_t at = 16, n = 1; at < 4000; n = n * 3 / 2 + 1) {
		size_t len = n < 4000 - at ? n : 4000 - at;

		if (at % 2 == 1)
			c.sum = sk_sum_odd(c.sum);
		c = sk_check(c, src + at, len);
		if (at % 2 == 1)
			c.sum = sk_sum_odd(c.sum);
		at += len;
	}
	cr_assert_eq(c.crc, whole.crc);
	cr_assert_eq(sk_sum_fold(c.sum), sum_by_definition(src, 4000));
}

Test(check, only_bytes_that_are_all_0_have_the_sum_0)
{
	cr_assert_eq(sk_sum_fold(0), 0);
	for (unsigned bit = 0; bit < 64; bit++) {
		uint64_t one = (uint64_t)1 << bit;

		cr_assert_neq(sk_sum_fold(one), 0);
		cr_assert_neq(sk_sum_fold(-one), 0);
		cr_assert_neq(sk_sum_fold(sk_sum_add(one, ~one)), 0);
	}
}

Test(check, passes_leave_no_upper_halves_in_use)
{
	if (!upper_is_reported())
		cr_skip_test("the processor does not report upper halves in use");
	for (int kind = SK_VECTORS_UNKNOWN + 1; kind <= (int)sk_vectors_best(); kind++) {
		sk_vectors_set((enum sk_vectors)kind);
		for (size_t len = 32; len < MOST; len = len * 3 / 2) {
			upper_clear();
			(void)sk_crc32c(0, src, len);
			cr_assert_not(upper_in_use(), "CRC32C, %d, %zu bytes", kind, len);
			(void)sk_sum(0, src, len);
			cr_assert_not(upper_in_use(), "sum, %d, %zu bytes", kind, len);
			(void)sk_sum_copy(0, dst, src, len);
			cr_assert_not(upper_in_use(), "sum and copy, %d, %zu bytes", kind, len);
			(void)sk_check(SK_CHECK_INIT, src, len);
			cr_assert_not(upper_in_use(), "check, %d, %zu bytes", kind, len);
			(void)sk_check_copy(SK_CHECK_INIT, dst, src, len);
			cr_assert_not(upper_in_use(), "check and copy, %d, %zu bytes", kind, len);
		}
	}
}
