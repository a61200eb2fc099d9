/* SPDX-License-Identifier: BSD-3-Clause */
/* Words of 16, 32 and 64 bits at any address of a frame. */
#ifndef SAKER_WIRE_WORD_H
#define SAKER_WIRE_WORD_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

/* Return the word at `p` in memory order. */
static inline uint16_t
wire_word16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t
wire_word32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t
wire_word64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Return the value of the word at `p`, which is in network byte order. */
static inline uint16_t
wire_be16(const uint8_t *p)
{
	return be16toh(wire_word16(p));
}

static inline uint32_t
wire_be32(const uint8_t *p)
{
	return be32toh(wire_word32(p));
}

static inline uint64_t
wire_be64(const uint8_t *p)
{
	return be64toh(wire_word64(p));
}

#endif
