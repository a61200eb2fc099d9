/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds a region by its STag in one array access. The upper 24 bits of an STag are a keyed
 * permutation of the slot number.
 *
 * The permutation is computed for each segment (twice for a Write that this host sends), so it
 * consists of three multiplications by secret odd numbers modulo 2^24 with half-word folds between
 * them (5 ns), instead of sk_perm24() (17 ns). It does not have to resist an attacker who sees slot
 * numbers beside STags: slots are drawn at random and never leave the engine.
 */
#ifndef SAKER_RDMA_PRIV_H
#define SAKER_RDMA_PRIV_H

#include "rdma.h"

#define STAG_SLOT_MASK 0xffffffu

struct rd_mr_table {
	struct rd_mr **slot; /* [slots]; NULL: free */
	uint32_t slots;
	uint32_t factor[3];  /* odd */
	uint32_t inverse[3]; /* factor * inverse == 1 modulo 2^24 */
	uint32_t add;
	uint32_t count;
	/* Used by the writer (the control stage) only. */
	struct sk_key key;
	uint64_t drawn; /* the number of random slots drawn so far */
	uint32_t *free; /* [nfree]: numbers of the free slots */
	uint32_t nfree;
};

static inline uint32_t
stag_slot(const struct rd_mr_table *t, uint32_t stag)
{
	uint32_t v = (stag >> 8) + t->add;

	v = v * t->factor[0] & STAG_SLOT_MASK;
	v ^= v >> 12;
	v = v * t->factor[1] & STAG_SLOT_MASK;
	v ^= v >> 12;
	return v * t->factor[2] & STAG_SLOT_MASK;
}

/* Returns the region or window in the slot of `stag`, whatever the low 8 bits (the key) of its own
 * STag are. Returns NULL if the slot is empty. */
static inline struct rd_mr *
mr_in_slot(const struct rd_mr_table *t, uint32_t stag)
{
	uint32_t slot = stag_slot(t, stag);

	return slot < t->slots ? __atomic_load_n(&t->slot[slot], __ATOMIC_ACQUIRE) : NULL;
}

static inline struct rd_mr *
/* Returns the region or window whose STag is exactly `stag`, or NULL. */
mr_lookup(const struct rd_mr_table *t, uint32_t stag)
{
	struct rd_mr *mr = mr_in_slot(t, stag);

	/* A bind changes a window's key, so the STag is read atomically. */
	return mr != NULL && __atomic_load_n(&mr->stag, __ATOMIC_RELAXED) == stag ? mr : NULL;
}

/* Checks that the `len` bytes at `addr` (len > 0) lie within the `size` bytes at `base`. The
 * address of the last byte must be representable: base + size may be 2^64, not more. */
static inline enum rd_fault
range_check(uint64_t base, uint64_t size, uint64_t addr, uint64_t len)
{
	if (addr + (len - 1) < addr)
		return RD_FAULT_WRAP;
	if (addr < base || addr - base > size || len > size - (addr - base))
		return RD_FAULT_BOUNDS;
	return RD_OK;
}

/* Does the work of rd_remote_check() for a window (mw.c); len > 0. */
enum rd_fault rd_mw_check(const struct rd_mw *mw, const struct rd_qp *qp, uint32_t stag,
	uint64_t *addr, uint64_t len, uint32_t need, struct rd_mr **region);

#endif
