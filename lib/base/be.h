/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Big-endian fields of headers. A field is a struct, so that no code reads network order as a
 * number by accident. It has alignment 1, so that a header may begin at any byte of a frame. Code
 * above lib/wire uses host order; the exceptions are formats that lib/wire does not cover.
 */
#ifndef SAKER_BASE_BE_H
#define SAKER_BASE_BE_H

#include <stdint.h>

typedef struct {
	uint16_t raw;
} __attribute__((packed)) be16;

typedef struct {
	uint32_t raw;
} __attribute__((packed)) be32;

typedef struct {
	uint64_t raw;
} __attribute__((packed)) be64;

_Static_assert(sizeof(be16) == 2 && _Alignof(be16) == 1, "be16");
_Static_assert(sizeof(be32) == 4 && _Alignof(be32) == 1, "be32");
_Static_assert(sizeof(be64) == 8 && _Alignof(be64) == 1, "be64");

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define SK_SWAP(bits, v) __builtin_bswap##bits(v)
#else
#define SK_SWAP(bits, v) (v)
#endif

static inline uint16_t
be16_get(be16 f)
{
	return SK_SWAP(16, f.raw);
}

static inline uint32_t
be32_get(be32 f)
{
	return SK_SWAP(32, f.raw);
}

static inline uint64_t
be64_get(be64 f)
{
	return SK_SWAP(64, f.raw);
}

static inline be16
be16_of(uint16_t v)
{
	return (be16){SK_SWAP(16, v)};
}

static inline be32
be32_of(uint32_t v)
{
	return (be32){SK_SWAP(32, v)};
}

static inline be64
be64_of(uint64_t v)
{
	return (be64){SK_SWAP(64, v)};
}

#endif
