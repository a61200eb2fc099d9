/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC32C (Castagnoli; RFC 3720 appendix B.4). `crc` is a running value: begin with SK_CRC32C_INIT,
 * end with sk_crc32c_final(). The bytes "123456789" give 0xE3069283.
 */
#ifndef SAKER_BASE_CRC32C_H
#define SAKER_BASE_CRC32C_H

#include <stddef.h>
#include <nmmintrin.h>
#include <stdint.h>

#define SK_CRC32C_INIT 0xffffffffu

/* Returns the running value after `len` bytes at `data`. */
uint32_t sk_crc32c(uint32_t crc, const void *data, size_t len);

/* Returns the running value after 8 bytes, given as they lie in memory: for headers that are
 * composed in registers. */
static inline uint32_t
sk_crc32c_word(uint32_t crc, uint64_t word)
{
	return (uint32_t)_mm_crc32_u64(crc, word);
}

/* Returns the CRC of a running value. */
static inline uint32_t
sk_crc32c_final(uint32_t crc)
{
	return ~crc;
}

#endif
