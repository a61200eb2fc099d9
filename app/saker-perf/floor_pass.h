/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The floor's own passes over bytes: copy, CRC32C and Internet checksum at once. They share no code
 * with the product, so that a slow copy there does not lower the floor.
 */
#ifndef SAKER_PERF_FLOOR_PASS_H
#define SAKER_PERF_FLOOR_PASS_H

#include <nmmintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PERF_LONG       256u  /* bytes of a piece that is worth the wide registers */
#define PERF_STREAM_MIN 512u  /* bytes of a copy that may use streaming stores */
#define PERF_STRING_MIN 4096u /* bytes of a copy that may use the string instruction */

enum perf_pass {
	PERF_PASS_CRC = 1,    /* computes the CRC */
	PERF_PASS_SUM = 2,    /* computes the checksum */
	PERF_PASS_STREAM = 4, /* writes past the caches; perf_pass_fence() publishes the bytes */
	PERF_PASS_STRING = 8, /* computes the sums first, and then copies by `rep movsb` */
};

/* The state of both sums. They begin with PERF_SUMS, and continue from piece to piece. */
struct perf_sums {
	uint32_t crc; /* without the final inversion */
	uint64_t sum; /* of 32-bit words as they lie in memory */
};
#define PERF_SUMS ((struct perf_sums){.crc = UINT32_MAX})

/* Must be called once before the first pass. */
void perf_pass_init(void);
/* Orders streaming stores before the stores behind it. */
void perf_pass_fence(void);
/* Do the work of perf_pass_copy() and perf_pass_sum() for at least PERF_LONG bytes. */
void perf_pass_copy_long(
	struct perf_sums *s, uint8_t *dst, const uint8_t *src, size_t len, unsigned how);
void perf_pass_sum_long(struct perf_sums *s, const uint8_t *src, size_t len);

#define PERF_PASS_LOAD(type, p)                                                                    \
	({                                                                                         \
		type v_;                                                                           \
		memcpy(&v_, (p), sizeof(v_));                                                      \
		v_;                                                                                \
	})
#define PERF_PASS_STORE(p, v) memcpy((p), &(v), sizeof(v))

static inline void
perf_pass_add(struct perf_sums *s, uint64_t v)
{
	s->sum += (v & UINT32_MAX) + (v >> 32);
}

/* Takes one word into the sums. */
#define PERF_PASS_TAKE(s, v, crc_step, how)                                                        \
	do {                                                                                       \
		if ((how)&PERF_PASS_CRC)                                                           \
			(s)->crc = (uint32_t)crc_step((s)->crc, (v));                              \
		if ((how)&PERF_PASS_SUM)                                                           \
			perf_pass_add((s), (v));                                                   \
	} while (0)

/* Copies fewer than PERF_LONG bytes. */
static inline __attribute__((always_inline)) void
perf_pass_copy_short(
	struct perf_sums *s, uint8_t *dst, const uint8_t *src, size_t len, unsigned how)
{
	size_t at = 0;

	for (; at + 8 <= len; at += 8) {
		uint64_t v = PERF_PASS_LOAD(uint64_t, src + at);

		PERF_PASS_STORE(dst + at, v);
		PERF_PASS_TAKE(s, v, _mm_crc32_u64, how);
	}
	if (len & 4) {
		uint32_t v = PERF_PASS_LOAD(uint32_t, src + at);

		PERF_PASS_STORE(dst + at, v);
		PERF_PASS_TAKE(s, v, _mm_crc32_u32, how);
		at += 4;
	}
	if (len & 2) {
		uint16_t v = PERF_PASS_LOAD(uint16_t, src + at);

		PERF_PASS_STORE(dst + at, v);
		PERF_PASS_TAKE(s, v, _mm_crc32_u16, how);
		at += 2;
	}
	if (len & 1) {
		uint8_t v = src[at];

		dst[at] = v;
		PERF_PASS_TAKE(s, v, _mm_crc32_u8, how);
	}
}

/* Takes a short piece into the sums, such as a header. */
static inline __attribute__((always_inline)) void
perf_pass_take(struct perf_sums *s, const uint8_t *src, size_t len, unsigned how)
{
	size_t at = 0;

	for (; at + 8 <= len; at += 8)
		PERF_PASS_TAKE(s, PERF_PASS_LOAD(uint64_t, src + at), _mm_crc32_u64, how);
	if (len & 4) {
		PERF_PASS_TAKE(s, PERF_PASS_LOAD(uint32_t, src + at), _mm_crc32_u32, how);
		at += 4;
	}
	if (len & 2) {
		PERF_PASS_TAKE(s, PERF_PASS_LOAD(uint16_t, src + at), _mm_crc32_u16, how);
		at += 2;
	}
	if (len & 1)
		PERF_PASS_TAKE(s, src[at], _mm_crc32_u8, how);
}

/* Copies `len` bytes. `how` consists of enum perf_pass. A piece of an odd length must be the last
 * one of a checksum. */
static inline void
perf_pass_copy(struct perf_sums *s, uint8_t *dst, const uint8_t *src, size_t len, unsigned how)
{
	if (len >= PERF_LONG)
		perf_pass_copy_long(s, dst, src, len, how);
	else
		perf_pass_copy_short(s, dst, src, len, how);
}

/* Adds `len` bytes to the checksum. */
static inline void
perf_pass_sum(struct perf_sums *s, const uint8_t *src, size_t len)
{
	if (len >= PERF_LONG)
		perf_pass_sum_long(s, src, len);
	else
		perf_pass_take(s, src, len, PERF_PASS_SUM);
}

/* Returns the checksum that is carried in a header, or 0 for bytes that include a correct one. */
static inline uint16_t
perf_pass_fold(const struct perf_sums *s)
{
	uint64_t sum = (s->sum & UINT32_MAX) + (s->sum >> 32);

	sum = (sum & UINT16_MAX) + (sum >> 16);
	sum = (sum & UINT16_MAX) + (sum >> 16);
	sum = (sum & UINT16_MAX) + (sum >> 16);
	return (uint16_t)~sum;
}

#endif
