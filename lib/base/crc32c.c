/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC32C by the faster of two ways. The processor's crc32 instruction takes 8 bytes in 3 cycles,
 * without start-up cost. ISA-L folds with carry-less multiplication, which is faster as soon as its
 * start-up cost is spread over about 256 bytes. So short pieces use the instruction, and long
 * pieces use ISA-L.
 */
#include "crc32c.h"
#include "crc32c_priv.h"

#include <isa-l/crc.h>
#include <nmmintrin.h>
#include <string.h>

#define FOLD_FROM  256        /* bytes from which ISA-L is faster */
#define COPY_BLOCK 4096       /* bytes that stay in the first-level cache between two passes */
#define FOLD_MAX   (1u << 30) /* ISA-L takes its length as an int */

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
	return crc;
}

uint32_t
sk_crc32c(uint32_t crc, const void *data, size_t len)
{
	return len < FOLD_FROM ? crc_short(crc, data, len) : crc_long(crc, data, len);
}

/* One load serves the store and the CRC, so the source is read once. */
static uint32_t
copy_short(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t len)
{
	uint64_t wide = crc;

	for (; len >= 8; dst += 8, src += 8, len -= 8) {
		uint64_t v = LOAD(uint64_t, src);

		memcpy(dst, &v, 8);
		wide = _mm_crc32_u64(wide, v);
	}
	crc = (uint32_t)wide;
	if (len > 0) {
		memcpy(dst, src, len);
		crc = crc_short(crc, dst, len);
	}
	return crc;
}

uint32_t
sk_crc32c_copy(uint32_t crc, void *dst, const void *src, size_t len)
{
	uint8_t *d = dst;
	const uint8_t *s = src;

	if (len >= CRC32C_FOLD_MIN && sk_crc32c_can_fold()) {
		size_t n = len & ~(size_t)63;

		crc = sk_crc32c_fold_copy(crc, d, s, n);
		return copy_short(crc, d + n, s + n, len - n);
	}
	while (len >= FOLD_FROM) {
		size_t n = len < COPY_BLOCK ? len : COPY_BLOCK;

		memcpy(d, s, n);
		crc = crc_long(crc, d, n);
		d += n;
		s += n;
		len -= n;
	}
	return copy_short(crc, d, s, len);
}
