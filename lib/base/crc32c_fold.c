/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copy and CRC32C in one pass, for processors with carry-less multiplication in 512-bit registers:
 * a loaded register is stored and folded, so each byte is touched once.
 *
 * Folding: 128 bits that stand D bits before other bits of a message may be replaced by their
 * remainder after multiplication by x^D, added (xor) to those other bits. Four registers take turns
 * (D = 2048); in the end they are folded into one (D = 512), and those 64 bytes, which have the CRC
 * of the whole, go through the crc32 instruction. Bits are reflected: the lower half of a lane has
 * the higher powers. Hence the multipliers are x^(D+32) for the lower half and x^(D-32) for the
 * upper half, modulo the polynomial, reflected in 32 bits, and shifted up by one because the
 * product of two reflected numbers is one bit too low.
 */
#include "crc32c_priv.h"

#include <immintrin.h>

#define FOLD_TARGET __attribute__((target("avx512f,avx512vl,vpclmulqdq,pclmul,sse4.2")))
#define FOLD_INLINE FOLD_TARGET __attribute__((always_inline))

#define STEP  64u        /* bytes of a register */
#define BLOCK (4 * STEP) /* bytes of a round */

/*
 * A long copy bypasses the caches, since another processor reads the bytes next: that processor
 * read the same lines the last time, and each line that this processor takes back costs a round
 * trip between the two.
 */
#define AROUND_FROM 2048u /* bytes; a shorter copy is probably read again soon */

/* The multipliers, for the lower and the upper half of a lane. */
#define K2048_LOW  0xdcb17aa4
#define K2048_HIGH 0xb9e02b86
#define K512_LOW   0x740eef02
#define K512_HIGH  0x9e4addf8

bool
sk_crc32c_can_fold(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
	       __builtin_cpu_supports("vpclmulqdq");
}

/* Folds `v` onto `next`, over the distance of the multipliers `k`. */
static inline FOLD_TARGET __m512i
fold(__m512i v, __m512i k, __m512i next)
{
	__m512i low = _mm512_clmulepi64_epi128(v, k, 0x00);
	__m512i high = _mm512_clmulepi64_epi128(v, k, 0x11);

	return _mm512_ternarylogic_epi64(low, high, next, 0x96); /* xor of the three */
}

static inline FOLD_INLINE __m512i
copy_step(uint8_t *dst, const uint8_t *src, bool around)
{
	__m512i v = _mm512_loadu_si512(src);

	if (around)
		_mm512_stream_si512((void *)dst, v);
	else
		_mm512_storeu_si512(dst, v);
	return v;
}

/* `around`: bypasses the caches; `dst` is then aligned to a register. */
static inline FOLD_INLINE uint32_t
fold_copy(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t len, bool around)
{
	const __m512i by2048 = _mm512_broadcast_i32x4(_mm_set_epi64x(K2048_HIGH, K2048_LOW));
	const __m512i by512 = _mm512_broadcast_i32x4(_mm_set_epi64x(K512_HIGH, K512_LOW));
	__m512i a = copy_step(dst, src, around), b = copy_step(dst + STEP, src + STEP, around);
	__m512i c = copy_step(dst + 2 * STEP, src + 2 * STEP, around);
	__m512i d = copy_step(dst + 3 * STEP, src + 3 * STEP, around);
	uint64_t rest[8], wide = 0;
	size_t at;

	a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
	for (at = BLOCK; len - at >= BLOCK; at += BLOCK) {
		a = fold(a, by2048, copy_step(dst + at, src + at, around));
		b = fold(b, by2048, copy_step(dst + at + STEP, src + at + STEP, around));
		c = fold(c, by2048, copy_step(dst + at + 2 * STEP, src + at + 2 * STEP, around));
		d = fold(d, by2048, copy_step(dst + at + 3 * STEP, src + at + 3 * STEP, around));
	}
	a = fold(fold(fold(a, by512, b), by512, c), by512, d);
	for (; len - at >= STEP; at += STEP)
		a = fold(a, by512, copy_step(dst + at, src + at, around));
	_mm512_storeu_si512(rest, a);
	for (unsigned i = 0; i < 8; i++)
		wide = _mm_crc32_u64(wide, rest[i]);
	return (uint32_t)wide;
}

FOLD_TARGET uint32_t
sk_crc32c_fold_copy(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t len)
{
	if (len < AROUND_FROM || (uintptr_t)dst % STEP != 0)
		return fold_copy(crc, dst, src, len, false);
	crc = fold_copy(crc, dst, src, len, true);
	/* Streaming stores are not ordered with the stores that publish the bytes. */
	_mm_sfence();
	return crc;
}
