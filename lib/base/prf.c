/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SipHash-2-4 serves values that are drawn rarely. The permutation lies on the path of each tagged
 * segment (it turns an STag into its slot). So its round function is a keyed 64x64-bit
 * multiplication folded on itself, which takes a few nanoseconds for all four rounds.
 */
#include "prf.h"

#include "log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void
sk_random(void *buf, size_t len)
{
	uint8_t *p = buf;

	while (len > 0) {
		ssize_t n = getrandom(p, len, 0);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			sk_log(SK_LOG_ERR, "the kernel gives no random bytes: %s", strerror(errno));
			abort();
		}
		p += n;
		len -= (size_t)n;
	}
}

static inline uint64_t
rotl(uint64_t v, unsigned n)
{
	return v << n | v >> (64 - n);
}

static inline void
sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[0] = rotl(v[0], 32);
	v[2] += v[3];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[2] = rotl(v[2], 32);
}

static inline void
sip_word(uint64_t v[4], uint64_t m)
{
	v[3] ^= m;
	sip_round(v);
	sip_round(v);
	v[0] ^= m;
}

/* SipHash reads words in little-endian order. */
static inline uint64_t
load_le(const uint8_t *p, size_t n)
{
	uint64_t m = 0;

	for (size_t i = 0; i < n; i++)
		m |= (uint64_t)p[i] << (8 * i);
	return m;
}

uint64_t
sk_siphash(const struct sk_key *key, const void *data, size_t len)
{
	const uint8_t *p = data;
	size_t words = len / 8;
	uint64_t v[4] = {
		key->k[0] ^ 0x736f6d6570736575ull,
		key->k[1] ^ 0x646f72616e646f6dull,
		key->k[0] ^ 0x6c7967656e657261ull,
		key->k[1] ^ 0x7465646279746573ull,
	};

	for (size_t i = 0; i < words; i++, p += 8)
		sip_word(v, load_le(p, 8));
	sip_word(v, (uint64_t)len << 56 | load_le(p, len % 8));
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#define HALF_MASK 0xfffu

/* Maps 12 bits to 12 bits, differently in each round. Both factors depend on the key and on the
 * input. */
static inline uint32_t
perm_round(const struct sk_key *key, unsigned round, uint32_t half)
{
	uint64_t x = (uint64_t)(round << 12 | half) * 0x9e3779b97f4a7c15ull;
	unsigned __int128 p = (unsigned __int128)(key->k[0] ^ x) * (key->k[1] ^ rotl(x, 31));
	uint64_t folded = (uint64_t)p ^ (uint64_t)(p >> 64);

	return (uint32_t)(folded >> 26) & HALF_MASK;
}

uint32_t
sk_perm24(const struct sk_key *key, uint32_t v)
{
	uint32_t left = v >> 12 & HALF_MASK;
	uint32_t right = v & HALF_MASK;

	for (unsigned round = 1; round <= 4; round++) {
		uint32_t next = left ^ perm_round(key, round, right);

		left = right;
		right = next;
	}
	return left << 12 | right;
}

uint32_t
sk_perm24_inv(const struct sk_key *key, uint32_t v)
{
	uint32_t left = v >> 12 & HALF_MASK;
	uint32_t right = v & HALF_MASK;

	for (unsigned round = 4; round >= 1; round--) {
		uint32_t before = right ^ perm_round(key, round, left);

		right = left;
		left = before;
	}
	return left << 12 | right;
}
