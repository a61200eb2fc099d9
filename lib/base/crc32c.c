/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC32C by the faster of two ways. The processor's crc32 instruction takes 8 bytes in 3 cycles,
 * without start-up cost. ISA-L folds with carry-less multiplication, which is faster as soon as its
 * start-up cost is spread over about 256 bytes. So short pieces use the instruction, and long
 * pieces use ISA-L.
 */
#include "crc32c.h"

#include <immintrin.h>
#include <isa-l/crc.h>
#include <string.h>

#define FOLD_FROM 256        /* bytes from which ISA-L is faster */
#define FOLD_MAX  (1u << 30) /* ISA-L takes its length as an int */

/* Loads a value of `type`; the compiler makes a single instruction of it. */
#define LOAD(type, p)                                                                              \
	({                                                                                         \
		type v_;                                                                           \
		memcpy(&v_, (p), sizeof(v_));                                                      \
		v_;                                                                                \
	})

static uint32_t
crc_short(uint32_t crc, const uint8_t *p, size_t len)
{
	uint64_t wide = crc;

	for (; len >= 64; p += 64, len -= 64) {
		wide = _mm_crc32_u64(wide, LOAD(uint64_t, p));
		wide = _mm_crc32_u64(wide, LOAD(uint64_t, p + 8));
		wide = _mm_crc32_u64(wide, LOAD(uint64_t, p + 16));
		wide = _mm_crc32_u64(wide, LOAD(uint64_t, p + 24));
		wide = _mm_crc32_u64(wide, LOAD(uint64_t, p + 32));
		wide = _mm_crc32_u64(wide, LOAD(uint64_t, p + 40));
		wide = _mm_crc32_u64(wide, LOAD(uint64_t, p + 48));
		wide = _mm_crc32_u64(wide, LOAD(uint64_t, p + 56));
	}
	for (; len >= 8; p += 8, len -= 8)
		wide = _mm_crc32_u64(wide, LOAD(uint64_t, p));
	crc = (uint32_t)wide;
	if (len & 4) {
		crc = _mm_crc32_u32(crc, LOAD(uint32_t, p));
		p += 4;
	}
	if (len & 2) {
		crc = _mm_crc32_u16(crc, LOAD(uint16_t, p));
		p += 2;
	}
	if (len & 1)
		crc = _mm_crc32_u8(crc, *p);
	return crc;
}

/* ISA-L leaves bits in the upper halves of the vector registers. As long as they are there, many
 * processors take 60 to 150 ns for the next SSE instruction, and as much again at the next call. */
static __attribute__((target("avx"))) void
upper_halves_clear(void)
{
	_mm256_zeroupper();
}

static uint32_t
crc_long(uint32_t crc, const uint8_t *p, size_t len)
{
	while (len > 0) {
		size_t n = len < FOLD_MAX ? len : FOLD_MAX;

		/* ISA-L declares its input without const, yet only reads it. */
		crc = crc32_iscsi((unsigned char *)(uintptr_t)p, (int)n, crc);
		p += n;
		len -= n;
	}
	if (__builtin_cpu_supports("avx"))
		upper_halves_clear();
	return crc;
}

uint32_t
sk_crc32c(uint32_t crc, const void *data, size_t len)
{
	return len < FOLD_FROM ? crc_short(crc, data, len) : crc_long(crc, data, len);
}
