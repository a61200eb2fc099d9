/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Passes over bytes. Short pieces go through the integer registers: the crc32 instruction takes 8
 * bytes in 3 cycles, addition with carry 8 bytes in 1, both without start-up cost. Long pieces go
 * through the widest registers that the processor has (check_fold.c). Where these cannot fold a
 * CRC, blocks that stay in the first-level cache take several passes.
 */
#include "check_priv.h"

#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#define LONG       SK_FOLD_MIN /* bytes from which the start-up cost of vectors pays */
#define COPY_BLOCK 16384       /* bytes that stay in the first-level cache between two passes */

/* ---- Integer registers ---- */

/* The parameters of a pass; constants in each call, so that each pass has code of its own. */
#define W_COPY 1u
#define W_CRC  2u
#define W_SUM  4u

/* Takes the 8 bytes at offset `at`; `*carry` belongs to the sum. */
static inline __attribute__((always_inline)) void
take_word(struct sk_check *c, unsigned char *carry, uint8_t *dst, const uint8_t *src, size_t at,
	unsigned what)
{
	unsigned long long v, sum = c->sum;

	memcpy(&v, src + at, 8);
	if (what & W_COPY)
		memcpy(dst + at, &v, 8);
	if (what & W_CRC)
		c->crc = _mm_crc32_u64(c->crc, v);
	if (what & W_SUM)
		*carry = _addcarry_u64(*carry, sum, v, &sum);
	c->sum = sum;
}

/* Takes the last bytes, at most 7. */
static inline __attribute__((always_inline)) struct sk_check
rest(struct sk_check c, uint8_t *dst, const uint8_t *src, size_t len, unsigned what)
{
	uint64_t all = 0; /* RFC 1071 section 1: pads with zero bytes behind the last one */
	uint32_t four;
	uint16_t two;

	if (len & 1) {
		all = src[len - 1];
		if (what & W_COPY)
			dst[len - 1] = (uint8_t)all;
	}
	if (len & 2) {
		memcpy(&two, src + (len & 4), 2);
		if (what & W_COPY)
			memcpy(dst + (len & 4), &two, 2);
		all = all << 16 | two;
	}
	if (len & 4) {
		memcpy(&four, src, 4);
		if (what & W_COPY)
			memcpy(dst, &four, 4);
		all = all << 32 | four;
	}
	if (what & W_SUM)
		c.sum = sk_sum_add(c.sum, all);
	if (!(what & W_CRC))
		return c;
	if (len & 4) {
		c.crc = _mm_crc32_u32((uint32_t)c.crc, (uint32_t)all);
		all >>= 32;
	}
	if (len & 2) {
		c.crc = _mm_crc32_u16((uint32_t)c.crc, (uint16_t)all);
		all >>= 16;
	}
	if (len & 1)
		c.crc = _mm_crc32_u8((uint32_t)c.crc, (uint8_t)all);
	return c;
}

/* `dst` is NULL in a pass that does not copy. */
static inline __attribute__((always_inline)) uint8_t *
advance(uint8_t *dst, size_t n, unsigned what)
{
	return what & W_COPY ? dst + n : dst;
}

static inline __attribute__((always_inline)) struct sk_check
words(struct sk_check c, uint8_t *dst, const uint8_t *src, size_t len, unsigned what)
{
	for (; len >= 64; dst = advance(dst, 64, what), src += 64, len -= 64) {
		unsigned char carry = 0;

		take_word(&c, &carry, dst, src, 0, what);
		take_word(&c, &carry, dst, src, 8, what);
		take_word(&c, &carry, dst, src, 16, what);
		take_word(&c, &carry, dst, src, 24, what);
		take_word(&c, &carry, dst, src, 32, what);
		take_word(&c, &carry, dst, src, 40, what);
		take_word(&c, &carry, dst, src, 48, what);
		take_word(&c, &carry, dst, src, 56, what);
		c.sum += carry;
	}
	for (; len >= 8; dst = advance(dst, 8, what), src += 8, len -= 8) {
		unsigned char carry = 0;

		take_word(&c, &carry, dst, src, 0, what);
		c.sum += carry;
	}
	return len > 0 ? rest(c, dst, src, len, what) : c;
}

/* ---- Vectors ---- */

/* Adds 32-bit words into 64-bit lanes, which cannot overflow over less than 16 GiB. `len` is a
 * multiple of 64. */
static __attribute__((target("avx2"))) uint64_t
sum_avx2(uint64_t sum, const uint8_t *p, size_t len)
{
	const __m256i word = _mm256_set1_epi64x(0xffffffff);
	__m256i low = _mm256_setzero_si256(), high = low;
	uint64_t lane[4];

	for (size_t at = 0; at < len; at += 64) {
		__m256i a = _mm256_loadu_si256((const __m256i *)(p + at));
		__m256i b = _mm256_loadu_si256((const __m256i *)(p + at + 32));

		low = _mm256_add_epi64(low, _mm256_and_si256(a, word));
		high = _mm256_add_epi64(high, _mm256_srli_epi64(a, 32));
		low = _mm256_add_epi64(low, _mm256_and_si256(b, word));
		high = _mm256_add_epi64(high, _mm256_srli_epi64(b, 32));
	}
	_mm256_storeu_si256((__m256i *)lane, _mm256_add_epi64(low, high));
	_mm256_zeroupper(); /* the compiler adds it only when it optimizes */
	return sk_sum_add(sum, lane[0] + lane[1] + lane[2] + lane[3]);
}

static uint64_t
sum_long(uint64_t sum, const uint8_t *p, size_t len)
{
	size_t n = len & ~(size_t)63;

	switch (sk_vectors()) {
	case SK_VECTORS_FOLD:
		sum = sk_fold_sum(sum, p, n);
		break;
	case SK_VECTORS_AVX2:
		sum = sum_avx2(sum, p, n);
		break;
	default:
		n = 0;
	}
	return words((struct sk_check){0, sum}, NULL, p + n, len - n, W_SUM).sum;
}

uint64_t
sk_sum(uint64_t sum, const void *data, size_t len)
{
	if (len >= LONG)
		return sum_long(sum, data, len);
	return words((struct sk_check){0, sum}, NULL, data, len, W_SUM).sum;
}

/*
 * From so many bytes on, a copy by the string instruction takes ownership of whole cache lines
 * without reading them. This matters when another processor, not on the same third-level cache,
 * read the lines the last time; vector stores to such a line wait for its old content. The pass
 * that follows reads the copy from the first-level cache. With fewer bytes, it would wait for the
 * string instruction.
 */
#define STRING_FROM 8192

static void
string_copy(void *dst, const void *src, size_t len)
{
	__asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(len) : : "memory");
}

/* Returns the bytes of the next block of a copy, of which `len` are left. */
static size_t
copy_block(size_t len)
{
	return len < 2 * COPY_BLOCK ? len : COPY_BLOCK;
}

static uint64_t
sum_copy_long(uint64_t sum, uint8_t *dst, const uint8_t *src, size_t len)
{
	size_t n = len & ~(size_t)63;

	if (sk_vectors() == SK_VECTORS_FOLD) {
		sum = sk_fold_sum_copy(sum, dst, src, n);
		return words((struct sk_check){0, sum}, dst + n, src + n, len - n, W_COPY | W_SUM)
			.sum;
	}
	for (; len > 0; dst += n, src += n, len -= n) {
		n = copy_block(len);
		memcpy(dst, src, n);
		sum = sk_sum(sum, dst, n);
	}
	return sum;
}

uint64_t
sk_sum_copy(uint64_t sum, void *dst, const void *src, size_t len)
{
	if (len >= LONG)
		return sum_copy_long(sum, dst, src, len);
	return words((struct sk_check){0, sum}, dst, src, len, W_COPY | W_SUM).sum;
}

static struct sk_check
check_long(struct sk_check c, const uint8_t *p, size_t len)
{
	size_t n = len & ~(size_t)63;

	if (sk_vectors() == SK_VECTORS_FOLD) {
		c = sk_fold_check(c, p, n);
		return words(c, NULL, p + n, len - n, W_CRC | W_SUM);
	}
	for (; len > 0; p += n, len -= n) {
		n = copy_block(len);
		c.crc = sk_crc32c((uint32_t)c.crc, p, n);
		c.sum = sk_sum(c.sum, p, n);
	}
	return c;
}

struct sk_check
sk_check(struct sk_check c, const void *data, size_t len)
{
	if (len >= LONG)
		return check_long(c, data, len);
	return words(c, NULL, data, len, W_CRC | W_SUM);
}

static struct sk_check
check_copy_long(struct sk_check c, uint8_t *dst, const uint8_t *src, size_t len)
{
	bool folds = sk_vectors() == SK_VECTORS_FOLD;
	size_t n = len & ~(size_t)63;

	if (folds && len < STRING_FROM) {
		c = sk_fold_check_copy(c, dst, src, n);
		return words(c, dst + n, src + n, len - n, W_COPY | W_CRC | W_SUM);
	}
	for (; len > 0; dst += n, src += n, len -= n) {
		n = copy_block(len);
		if (folds)
			string_copy(dst, src, n);
		else
			memcpy(dst, src, n);
		c = check_long(c, dst, n);
	}
	return c;
}

struct sk_check
sk_check_copy(struct sk_check c, void *dst, const void *src, size_t len)
{
	if (len >= LONG)
		return check_copy_long(c, dst, src, len);
	return words(c, dst, src, len, W_COPY | W_CRC | W_SUM);
}
