/* SPDX-License-Identifier: BSD-3-Clause */
/* Patterns: each 8 bytes are a hash of the message's key and their position, so that bytes of
 * another message or position are wrong. */
#include <string.h>

#include "soak.h"

static inline uint64_t
word(uint64_t key, uint32_t i)
{
	uint64_t x = key + i * 0x9e3779b97f4a7c15ull;

	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	return x ^ x >> 32;
}

void
bytes_fill(uint8_t *p, uint32_t len, uint64_t key)
{
	uint64_t w;
	uint32_t i;

	for (i = 0; i < len / 8; i++) {
		w = word(key, i);
		memcpy(p + 8ul * i, &w, 8);
	}
	w = word(key, i);
	memcpy(p + 8ul * i, &w, len % 8);
}

static bool
old(const uint8_t *p, size_t len)
{
	return len == 0 || (p[0] == OLD && memcmp(p, p + 1, len - 1) == 0);
}

bool
bytes_right(const uint8_t *slot, uint32_t len, uint64_t key)
{
	uint64_t bad = 0, w, got;
	uint32_t i;

	for (i = 0; i < len / 8; i++) {
		memcpy(&got, slot + 8ul * i, 8);
		bad |= got ^ word(key, i);
	}
	w = word(key, i);
	return !bad && memcmp(slot + 8ul * i, &w, len % 8) == 0 && old(slot + len, SLOT_LEN - len);
}

bool
bytes_right_or_old(const uint8_t *slot, uint32_t len, uint64_t key)
{
	for (uint32_t i = 0; i < len; i++) {
		uint64_t w = word(key, i / 8);

		if (slot[i] != OLD && slot[i] != ((const uint8_t *)&w)[i % 8])
			return false;
	}
	return old(slot + len, SLOT_LEN - len);
}
