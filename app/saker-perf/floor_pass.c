/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One pass over the bytes. With carry-less multiplication in 512-bit registers, each register is
 * loaded once, stored, folded into the CRC and added to the checksum. Other processors take blocks
 * that fit into the first-level cache through ISA-L, a sum (with AVX2 where they have it) and a
 * copy. The string instruction copies behind a pass for the sums.
 *
 * The multipliers of the CRC are computed at start. To move 64 bits of a reflected message D bits
 * forward is to multiply them by x^(D+32) (the lower half of 128 bits) or x^(D-32) (the upper half)
 * modulo the polynomial.
 */
#include "floor_pass.h"

#include <immintrin.h>
#include <isa-l/crc.h>
#include <stdbool.h>

#define WIDE_TARGET __attribute__((target("avx512f,avx512vl,vpclmulqdq,pclmul,sse4.2")))
#define WIDE_INLINE static inline WIDE_TARGET __attribute__((always_inline))

#define POLYNOMIAL 0x82f63b78u /* CRC32C (RFC 3385), reflected */
#define REGISTER   64u
#define BLOCK      2048u /* bytes between two passes without wide registers */

/* Multipliers for the distances of four registers and of one: upper half, lower half. */
static uint64_t by_four[2], by_one[2];
static bool wide, avx2;

/* Returns x^n modulo the polynomial, reflected, and shifted up because the product of two reflected
 * numbers is one bit too low. */
static uint64_t
power_of_x(unsigned n)
{
	uint32_t r = 0x80000000;

	while (n-- > 0)
		r = r >> 1 ^ (r & 1 ? POLYNOMIAL : 0);
	return (uint64_t)r << 1;
}

void
perf_pass_init(void)
{
	wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
	       __builtin_cpu_supports("vpclmulqdq");
	avx2 = __builtin_cpu_supports("avx2");
	by_four[0] = power_of_x(4 * 512 - 32);
	by_four[1] = power_of_x(4 * 512 + 32);
	by_one[0] = power_of_x(512 - 32);
	by_one[1] = power_of_x(512 + 32);
}

/* ---- 512-bit registers ---- */

/* Two sums of 64-bit lanes: of the lower and of the upper 32-bit words. */
struct lanes {
	__m512i low, high;
};

WIDE_INLINE void
add_register(struct lanes *l, __m512i v)
{
	l->low = _mm512_add_epi64(
		l->low, _mm512_and_si512(v, _mm512_set1_epi64((long long)UINT32_MAX)));
	l->high = _mm512_add_epi64(l->high, _mm512_srli_epi64(v, 32));
}

WIDE_INLINE __m512i
move_register(struct lanes *l, uint8_t *dst, const uint8_t *src, unsigned how)
{
	__m512i v = _mm512_loadu_si512(src);

	if (how & PERF_PASS_STREAM)
		_mm512_stream_si512((void *)dst, v);
	else if (!(how & PERF_PASS_STRING))
		_mm512_storeu_si512(dst, v);
	if (how & PERF_PASS_SUM)
		add_register(l, v);
	return v;
}

/* Returns `next` plus `v` moved forward by the distance of the multipliers `k`. */
WIDE_INLINE __m512i
forward(__m512i v, __m512i k, __m512i next)
{
	return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(v, k, 0x00),
		_mm512_clmulepi64_epi128(v, k, 0x11), next, 0x96);
}

WIDE_INLINE uint32_t
crc_of_register(__m512i v)
{
	uint64_t words[REGISTER / sizeof(uint64_t)], crc = 0;

	_mm512_storeu_si512(words, v);
	for (unsigned i = 0; i < REGISTER / sizeof(uint64_t); i++)
		crc = _mm_crc32_u64(crc, words[i]);
	return (uint32_t)crc;
}

/* Copies `len` bytes, a multiple of a register's size and at least four of them. With
 * PERF_PASS_STRING, the caller copies them. */
WIDE_INLINE void
copy_wide(struct perf_sums *s, uint8_t *dst, const uint8_t *src, size_t len, unsigned how)
{
	const __m512i four = _mm512_broadcast_i32x4(
		_mm_set_epi64x((long long)by_four[0], (long long)by_four[1]));
	const __m512i one =
		_mm512_broadcast_i32x4(_mm_set_epi64x((long long)by_one[0], (long long)by_one[1]));
	struct lanes l = {_mm512_setzero_si512(), _mm512_setzero_si512()};
	__m512i acc[4], v;
	size_t at;

	for (unsigned i = 0; i < 4; i++)
		acc[i] = move_register(&l, dst + i * REGISTER, src + i * REGISTER, how);
	acc[0] = _mm512_xor_si512(acc[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)s->crc)));
	for (at = 4 * REGISTER; len - at >= 4 * REGISTER; at += 4 * REGISTER) {
		for (unsigned i = 0; i < 4; i++) {
			v = move_register(
				&l, dst + at + i * REGISTER, src + at + i * REGISTER, how);
			acc[i] = how & PERF_PASS_CRC ? forward(acc[i], four, v) : v;
		}
	}
	for (unsigned i = 1; i < 4 && how & PERF_PASS_CRC; i++)
		acc[0] = forward(acc[0], one, acc[i]);
	for (; at < len; at += REGISTER) {
		v = move_register(&l, dst + at, src + at, how);
		acc[0] = how & PERF_PASS_CRC ? forward(acc[0], one, v) : v;
	}
	if (how & PERF_PASS_CRC)
		s->crc = crc_of_register(acc[0]);
	if (how & PERF_PASS_SUM)
		s->sum += (uint64_t)_mm512_reduce_add_epi64(_mm512_add_epi64(l.low, l.high));
}

/* Each combination is a loop of its own. */
static WIDE_TARGET void
copy_wide_as(struct perf_sums *s, uint8_t *dst, const uint8_t *src, size_t len, unsigned how)
{
#define COPY_AS(combination)                                                                       \
	case combination:                                                                          \
		copy_wide(s, dst, src, len, combination);                                          \
		return
	switch (how) {
		COPY_AS(0);
		COPY_AS(PERF_PASS_CRC);
		COPY_AS(PERF_PASS_SUM);
		COPY_AS(PERF_PASS_CRC | PERF_PASS_SUM);
		COPY_AS(PERF_PASS_STREAM);
		COPY_AS(PERF_PASS_CRC | PERF_PASS_STREAM);
		COPY_AS(PERF_PASS_SUM | PERF_PASS_STREAM);
		COPY_AS(PERF_PASS_CRC | PERF_PASS_SUM | PERF_PASS_STREAM);
		COPY_AS(PERF_PASS_CRC | PERF_PASS_STRING);
		COPY_AS(PERF_PASS_SUM | PERF_PASS_STRING);
		COPY_AS(PERF_PASS_CRC | PERF_PASS_SUM | PERF_PASS_STRING);
	default: /* no sum before the string instruction */
		return;
	}
#undef COPY_AS
}

static WIDE_TARGET uint64_t
sum_wide(const uint8_t *p, size_t len)
{
	struct lanes l = {_mm512_setzero_si512(), _mm512_setzero_si512()};

	for (; len >= REGISTER; p += REGISTER, len -= REGISTER)
		add_register(&l, _mm512_loadu_si512(p));
	return (uint64_t)_mm512_reduce_add_epi64(_mm512_add_epi64(l.low, l.high));
}

/* Returns the sum of the 32-bit words of `len` bytes, a multiple of REGISTER. */
static __attribute__((target("avx2"))) uint64_t
sum_avx2(const uint8_t *p, size_t len)
{
	__m256i mask = _mm256_set1_epi64x(UINT32_MAX), sum[2] = {{0}, {0}};
	uint64_t lane[4];

	for (; len > 0; p += REGISTER, len -= REGISTER) {
		for (unsigned i = 0; i < 2; i++) {
			__m256i v = _mm256_loadu_si256((const void *)(p + i * sizeof(v)));

			v = _mm256_add_epi64(_mm256_and_si256(v, mask), _mm256_srli_epi64(v, 32));
			sum[i] = _mm256_add_epi64(sum[i], v);
		}
	}
	_mm256_storeu_si256((void *)lane, _mm256_add_epi64(sum[0], sum[1]));
	return lane[0] + lane[1] + lane[2] + lane[3];
}

void
perf_pass_sum_long(struct perf_sums *s, const uint8_t *src, size_t len)
{
	size_t n = wide || avx2 ? len / REGISTER * REGISTER : 0;

	if (n)
		s->sum += wide ? sum_wide(src, n) : sum_avx2(src, n);
	perf_pass_take(s, src + n, len - n, PERF_PASS_SUM);
}

/* ---- Processors without them ---- */

/* Copies `len` bytes past the caches, a multiple of 16, to an aligned address. */
static void
stream_block(uint8_t *dst, const uint8_t *src, size_t len)
{
	for (size_t at = 0; at < len; at += sizeof(__m128i))
		_mm_stream_si128((void *)(dst + at), _mm_loadu_si128((const void *)(src + at)));
}

/* Copies a block, a multiple of a register's size. With PERF_PASS_STRING, the caller copies it. */
static void
floor_copy_block(struct perf_sums *s, uint8_t *dst, const uint8_t *src, size_t len, unsigned how)
{
	/* ISA-L declares its input without const, yet only reads it. */
	if (how & PERF_PASS_CRC)
		s->crc = crc32_iscsi((unsigned char *)(uintptr_t)src, (int)len, s->crc);
	if (how & PERF_PASS_SUM)
		perf_pass_sum_long(s, src, len);
	if (how & PERF_PASS_STREAM)
		stream_block(dst, src, len);
	else if (!(how & PERF_PASS_STRING))
		memcpy(dst, src, len);
}

static void
copy_blocks(struct perf_sums *s, uint8_t *dst, const uint8_t *src, size_t len, unsigned how)
{
	while (len > 0) {
		size_t n = len < BLOCK ? len : BLOCK;

		floor_copy_block(s, dst, src, n, how);
		dst += n;
		src += n;
		len -= n;
	}
}

static void
copy_string(uint8_t *dst, const uint8_t *src, size_t len)
{
	__asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(len) : : "memory");
}

void
perf_pass_copy_long(struct perf_sums *s, uint8_t *dst, const uint8_t *src, size_t len, unsigned how)
{
	unsigned sums = how & (PERF_PASS_CRC | PERF_PASS_SUM);
	/* A streaming store needs an aligned register. */
	size_t lead = how & PERF_PASS_STREAM ? -(uintptr_t)dst % REGISTER : 0, n;

	if (lead % 2 != 0 || len < (how & PERF_PASS_STRING ? PERF_STRING_MIN : PERF_STREAM_MIN)) {
		how = sums;
		lead = 0;
	}
	perf_pass_copy_short(s, dst, src, lead, sums);
	n = (len - lead) / REGISTER * REGISTER;
	(wide ? copy_wide_as : copy_blocks)(s, dst + lead, src + lead, n, how);
	if (how & PERF_PASS_STRING)
		copy_string(dst, src, n);
	n += lead;
	perf_pass_copy_short(s, dst + n, src + n, len - n, sums);
}

void
perf_pass_fence(void)
{
	_mm_sfence();
}
