/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copy, CRC32C and Internet checksum in one pass, for processors with carry-less multiplication in
 * 512-bit registers: a loaded register is stored, folded and added, so each byte is touched once.
 *
 * Folding: 128 bits that stand D bits before other bits of a message may be replaced by their
 * remainder after multiplication by x^D, added (xor) to those other bits. Four registers take turns
 * (D = 2048); then they are folded into one (D = 512), and its lanes into the last one of them (D =
 * 384, 256, 128). These 16 bytes have the CRC of the whole, and go through the crc32 instruction.
 * Bits are reflected: the lower half of a lane has the higher powers. Hence the multipliers are
 * x^(D+32) for the lower half and x^(D-32) for the upper half, modulo the polynomial, reflected in
 * 32 bits, and shifted up by one because the product of two reflected numbers is one bit too low.
 *
 * Summing: 32-bit words are added into 64-bit lanes, which cannot overflow over less than 16 GiB.
 */
#include "check_priv.h"

#include <immintrin.h>

#define FOLD_TARGET __attribute__((target("avx512f,avx512vl,vpclmulqdq,pclmul,sse4.2")))
#define FOLD_INLINE FOLD_TARGET __attribute__((always_inline))

#define STEP  SK_FOLD_STEP /* bytes of a register */
#define BLOCK (4 * STEP)   /* bytes of a round */

/* The multipliers, for the lower and the upper half of a lane. */
#define K2048_LOW  0xdcb17aa4
#define K2048_HIGH 0xb9e02b86
#define K512_LOW   0x740eef02
#define K512_HIGH  0x9e4addf8
#define K384_LOW   0x1c291d04
#define K384_HIGH  0x1d82c63da
#define K256_LOW   0x1384aa63a
#define K256_HIGH  0xba4fc28e
#define K128_LOW   0xf20c0dfe
#define K128_HIGH  0x14cd00bd6

/* The parameters of a pass; constants in each call, so that each pass has code of its own. */
#define P_COPY 1u
#define P_CRC  2u
#define P_SUM  4u

/* The sums of the lower and of the upper words of the lanes. */
struct sums {
	__m512i low, high;
};

/* Folds `v` onto `next`, over the distance of the multipliers `k`. */
static inline FOLD_INLINE __m512i
fold(__m512i v, __m512i k, __m512i next)
{
	__m512i low = _mm512_clmulepi64_epi128(v, k, 0x00);
	__m512i high = _mm512_clmulepi64_epi128(v, k, 0x11);

	return _mm512_ternarylogic_epi64(low, high, next, 0x96); /* xor of the three */
}

/* Loads the register at offset `at`, stores it and adds it to the sums. */
static inline FOLD_INLINE __m512i
fold_step(struct sums *s, uint8_t *dst, const uint8_t *src, size_t at, unsigned what)
{
	__m512i v = _mm512_loadu_si512(src + at);

	if (what & P_COPY)
		_mm512_storeu_si512(dst + at, v);
	if (what & P_SUM) {
		s->low = _mm512_add_epi64(
			s->low, _mm512_and_si512(v, _mm512_set1_epi64(0xffffffff)));
		s->high = _mm512_add_epi64(s->high, _mm512_srli_epi64(v, 32));
	}
	return v;
}

/* Returns the running CRC of the 64 bytes of `v`. */
static inline FOLD_INLINE uint32_t
fold_end(__m512i v)
{
	const __m512i by = _mm512_set_epi64(
		0, 0, K128_HIGH, K128_LOW, K256_HIGH, K256_LOW, K384_HIGH, K384_LOW);
	__m512i w = fold(v, by, _mm512_maskz_mov_epi64(0xc0, v));
	__m256i half = _mm256_xor_si256(_mm512_castsi512_si256(w), _mm512_extracti64x4_epi64(w, 1));
	__m128i lane =
		_mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
	uint64_t crc = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(lane));

	return (uint32_t)_mm_crc32_u64(crc, (uint64_t)_mm_extract_epi64(lane, 1));
}

static inline FOLD_INLINE uint32_t
fold_crc(struct sums *s, uint32_t crc, uint8_t *dst, const uint8_t *src, size_t len, unsigned what)
{
	const __m512i by2048 = _mm512_broadcast_i32x4(_mm_set_epi64x(K2048_HIGH, K2048_LOW));
	const __m512i by512 = _mm512_broadcast_i32x4(_mm_set_epi64x(K512_HIGH, K512_LOW));
	__m512i a = fold_step(s, dst, src, 0, what);
	__m512i b = fold_step(s, dst, src, STEP, what);
	__m512i c = fold_step(s, dst, src, 2 * STEP, what);
	__m512i d = fold_step(s, dst, src, 3 * STEP, what);
	size_t at;

	a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
	for (at = BLOCK; len - at >= BLOCK; at += BLOCK) {
		a = fold(a, by2048, fold_step(s, dst, src, at, what));
		b = fold(b, by2048, fold_step(s, dst, src, at + STEP, what));
		c = fold(c, by2048, fold_step(s, dst, src, at + 2 * STEP, what));
		d = fold(d, by2048, fold_step(s, dst, src, at + 3 * STEP, what));
	}
	a = fold(fold(fold(a, by512, b), by512, c), by512, d);
	for (; len - at >= STEP; at += STEP)
		a = fold(a, by512, fold_step(s, dst, src, at, what));
	return fold_end(a);
}

/* Does a pass over `len` bytes. */
static inline FOLD_INLINE struct sk_check
fold_pass(struct sk_check c, uint8_t *dst, const uint8_t *src, size_t len, unsigned what)
{
	struct sums s = {_mm512_setzero_si512(), _mm512_setzero_si512()};

	if (what & P_CRC)
		c.crc = fold_crc(&s, (uint32_t)c.crc, dst, src, len, what);
	else
		for (size_t at = 0; at < len; at += STEP)
			fold_step(&s, dst, src, at, what);
	if (what & P_SUM)
		c.sum = sk_sum_add(
			c.sum, (uint64_t)_mm512_reduce_add_epi64(_mm512_add_epi64(s.low, s.high)));
	_mm256_zeroupper(); /* the compiler adds it only when it optimizes */
	return c;
}

FOLD_TARGET struct sk_check
sk_fold_check(struct sk_check c, const uint8_t *src, size_t len)
{
	return fold_pass(c, NULL, src, len, P_CRC | P_SUM);
}

FOLD_TARGET struct sk_check
sk_fold_check_copy(struct sk_check c, uint8_t *dst, const uint8_t *src, size_t len)
{
	return fold_pass(c, dst, src, len, P_COPY | P_CRC | P_SUM);
}

FOLD_TARGET uint64_t
sk_fold_sum(uint64_t sum, const uint8_t *src, size_t len)
{
	return fold_pass((struct sk_check){0, sum}, NULL, src, len, P_SUM).sum;
}

FOLD_TARGET uint64_t
sk_fold_sum_copy(uint64_t sum, uint8_t *dst, const uint8_t *src, size_t len)
{
	return fold_pass((struct sk_check){0, sum}, dst, src, len, P_COPY | P_SUM).sum;
}
