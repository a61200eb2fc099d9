/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Internet checksum. The width and the order of the words make no difference to a one's
 * complement sum (RFC 1071 section 2). Short pieces are added in 64-bit words with their carries.
 * Of long pieces, 32-bit words as they lie in memory are added into 64-bit lanes, which cannot
 * overflow over less than 16 GiB. In the end, the sum is folded.
 */
#include "wire_priv.h"

static inline uint64_t
load32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return v;
}

static inline uint64_t
load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return v;
}

/* Folds to 32 bits; the carries are added at the low end. */
static inline uint32_t
fold32(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	return (uint32_t)sum + (uint32_t)(sum >> 32);
}

/* A vector of the compiler: 64-bit lanes, each of which takes two words. On a target without such
 * registers, the compiler uses several narrower ones. */
typedef uint64_t lanes __attribute__((vector_size(64)));
#define BLOCK sizeof(lanes)
#define LONG  (4 * BLOCK) /* bytes from which adding up the lanes in the end pays */

static inline __attribute__((always_inline)) uint64_t
sum_blocks(const uint8_t *p, size_t len)
{
	lanes low = {0}, high = {0};
	uint64_t sum = 0;

	for (; len >= BLOCK; p += BLOCK, len -= BLOCK) {
		lanes v;

		memcpy(&v, p, BLOCK);
		low += v & 0xffffffff;
		high += v >> 32;
	}
	low += high;
	for (unsigned i = 0; i < BLOCK / sizeof(uint64_t); i++)
		sum += low[i];
	return sum;
}

static __attribute__((target("avx2"))) uint64_t
sum_avx2(const uint8_t *p, size_t len)
{
	return sum_blocks(p, len);
}

static __attribute__((target("avx512f"))) uint64_t
sum_avx512(const uint8_t *p, size_t len)
{
	return sum_blocks(p, len);
}

/* Long pieces use the widest registers; for short pieces the width makes no difference. */
static uint64_t
sum_long(const uint8_t *p, size_t len)
{
	if (__builtin_cpu_supports("avx512f"))
		return sum_avx512(p, len);
	return __builtin_cpu_supports("avx2") ? sum_avx2(p, len) : sum_blocks(p, len);
}

uint32_t
wire_sum(uint32_t sum, const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t wide = sum;
	uint16_t last = 0;

	if (len >= LONG) {
		wide += sum_long(p, len);
		p += len / BLOCK * BLOCK;
		len %= BLOCK;
	}
	for (; len >= 8; p += 8, len -= 8) {
		uint64_t word = load64(p);

		wide += word;
		wide += wide < word; /* adds the carry at the low end */
	}
	wide = fold32(wide);
	if (len & 4) {
		wide += load32(p);
		p += 4;
	}
	if (len & 2) {
		memcpy(&last, p, 2);
		wide += last;
		p += 2;
	}
	if (len & 1) {
		/* RFC 1071 section 1: pads the last byte with a zero byte behind it. */
		last = 0;
		memcpy(&last, p, 1);
		wide += last;
	}
	return fold32(wide);
}

uint32_t
wire_pseudo_sum(const struct sk_addr *src, const struct sk_addr *dst, uint8_t proto, uint32_t len)
{
	/* RFC 9293 section 3.1 for IPv4, RFC 8200 section 8.1 for IPv6: the sums differ only in the
	 * addresses. */
	struct {
		be32 len;
		uint8_t zero[3];
		uint8_t proto;
	} __attribute__((packed)) tail = {be32_of(len), {0}, proto};
	unsigned from = sk_addr_is_v4(dst) ? 12 : 0;
	uint32_t sum = wire_sum(0, &tail, sizeof(tail));

	sum = wire_sum(sum, src->b + from, 16 - from);
	return wire_sum(sum, dst->b + from, 16 - from);
}

uint16_t
wire_sum_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}
