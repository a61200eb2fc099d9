/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic Operations (RFC 7306 5.1). No lock: the processor's own atomic instructions hold among
 * lcores, and a client that dies in the middle of something cannot block anybody.
 */
#include "atomic.h"

uint64_t *
rd_atomic_word(const struct rd_mr *mr, uint64_t addr)
{
	uint64_t run;
	uint8_t *p = rd_mr_at(mr, addr, &run);

	if ((uintptr_t)p % sizeof(uint64_t) != 0 || run < sizeof(uint64_t))
		return NULL;
	return (uint64_t *)p;
}

/* Replaces `*seen` by `value` if the word still is that; else *seen is what it has become. */
static bool
atomic_replace(uint64_t *word, uint64_t *seen, uint64_t value)
{
	return __atomic_compare_exchange_n(
		word, seen, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

bool
rd_fetch_add(uint64_t *word, uint64_t add, uint64_t mask, uint64_t *original)
{
	/* What carries out of the highest bit is lost anyway. */
	if ((mask & ~(1ull << 63)) == 0) {
		*original = __atomic_fetch_add(word, add, __ATOMIC_SEQ_CST);
		return true;
	}
	*original = __atomic_load_n(word, __ATOMIC_SEQ_CST);
	for (int i = 0; i < RD_ATOMIC_TRIES; i++)
		if (atomic_replace(word, original, rd_add_fields(*original, add, mask)))
			return true;
	return false;
}

bool
rd_cmp_swap(uint64_t *word, uint64_t swap, uint64_t swap_mask, uint64_t compare,
	uint64_t compare_mask, uint64_t *original)
{
	*original = __atomic_load_n(word, __ATOMIC_SEQ_CST);
	for (int i = 0; i < RD_ATOMIC_TRIES; i++) {
		if (((compare ^ *original) & compare_mask) != 0)
			return true;
		if (atomic_replace(word, original, (*original & ~swap_mask) | (swap & swap_mask)))
			return true;
	}
	return false;
}

uint64_t
rd_swap(uint64_t *word, uint64_t swap)
{
	return __atomic_exchange_n(word, swap, __ATOMIC_SEQ_CST);
}
