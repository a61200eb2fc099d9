/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Internet checksum (RFC 1071), and passes that take bytes for it and for the CRC32C at once.
 * A function that copies reads each byte of the source once, since another thread may write to it.
 *
 * A sum is a running one's complement sum in 64 bits, of words as they lie in memory; its order and
 * width make no difference (RFC 1071 section 2). Only the last piece of a sum may have an odd
 * number of bytes; sk_sum_odd() is for pieces behind it. A CRC is a running value as in crc32c.h.
 */
#ifndef SAKER_BASE_CHECK_H
#define SAKER_BASE_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "crc32c.h"

/* Two running values. The upper 32 bits of `crc` are 0. */
struct sk_check {
	uint64_t crc, sum;
};

/* The values before the first byte. */
#define SK_CHECK_INIT ((struct sk_check){SK_CRC32C_INIT, 0})

/* Returns the sum after `len` bytes at `data`. */
uint64_t sk_sum(uint64_t sum, const void *data, size_t len);
/* Copies `len` bytes from `src` to `dst` and returns the sum after them. */
uint64_t sk_sum_copy(uint64_t sum, void *dst, const void *src, size_t len);
/* Returns both values after `len` bytes at `data`. */
struct sk_check sk_check(struct sk_check c, const void *data, size_t len);
/* Copies `len` bytes from `src` to `dst` and returns both values after them. */
struct sk_check sk_check_copy(struct sk_check c, void *dst, const void *src, size_t len);

/* Adds two sums. */
static inline uint64_t
sk_sum_add(uint64_t a, uint64_t b)
{
	a += b;
	return a + (a < b); /* adds the carry at the low end */
}

/* Returns both values after 8 bytes, given as they lie in memory: for headers that are composed in
 * registers. */
static inline struct sk_check
sk_check_word(struct sk_check c, uint64_t word)
{
	return (struct sk_check){sk_crc32c_word((uint32_t)c.crc, word), sk_sum_add(c.sum, word)};
}

/* Does the same for 4 bytes. */
static inline struct sk_check
sk_check_half_word(struct sk_check c, uint32_t word)
{
	return (struct sk_check){_mm_crc32_u32((uint32_t)c.crc, word), sk_sum_add(c.sum, word)};
}

/* Returns a sum with each byte in the other half of its word. A piece that begins at an odd byte is
 * added between two calls. */
static inline uint64_t
sk_sum_odd(uint64_t sum)
{
	return sum << 8 | sum >> 56;
}

/* Folds a sum to 16 bits as they lie in memory; it is not complemented. The result is 0 only if all
 * bytes are 0. */
static inline uint16_t
sk_sum_fold(uint64_t sum)
{
	uint32_t half;

	/* The upper half of the sum of both halves, in either order, has the carry of the lower
	 * one. */
	half = (uint32_t)((sum + (sum << 32 | sum >> 32)) >> 32);
	return (uint16_t)((half + (half << 16 | half >> 16)) >> 16);
}

#endif
