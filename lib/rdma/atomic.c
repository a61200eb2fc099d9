/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic Operations (RFC 7306 5.1) without a lock. The processor's atomic instructions serialize
 * the lcores, and a client that dies in the middle of an operation of its own cannot block the
 * engine.
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

/* Stores `value` in *word if the word still equals *seen. Otherwise returns false and sets *seen to
 * the word's current value. */
static bool
atomic_replace(uint64_t *word, uint64_t *seen, uint64_t value)
{
	return __atomic_compare_exchange_n(
		word, seen, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

bool
rd_fetch_add(uint64_t *word, uint64_t add, uint64_t mask, uint64_t *original)
{
	/* The carry out of bit 63 is lost in any case, so a plain addition serves. */
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
