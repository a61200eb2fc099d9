/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From STag to region in one array access. The upper 24 bits of an STag are a keyed permutation of
 * the slot. It stands in the path of each segment, twice for a Write that leaves from here, so it
 * is three multiplications by secret odd numbers modulo 2^24 with half-word folds between (5 ns)
 * instead of sk_perm24() (17 ns). It need not resist one who sees slots beside STags: slots are
 * drawn at random and shown to nobody.
 */
#ifndef SAKER_RDMA_PRIV_H
#define SAKER_RDMA_PRIV_H

#include "rdma.h"

#define STAG_SLOT_MASK 0xffffffu

struct rd_mr_table {
	struct rd_mr **slot; /* [slots] */
	uint32_t slots;
	uint32_t factor[3];  /* odd */
	uint32_t inverse[3]; /* factor * inverse == 1 modulo 2^24 */
	uint32_t add;
	uint32_t count;
	/* The writer's: */
	struct sk_key key;
	uint64_t drawn; /* random slots so far */
	uint32_t *free; /* [nfree] */
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

static inline struct rd_mr *
mr_lookup(const struct rd_mr_table *t, uint32_t stag)
{
	uint32_t slot = stag_slot(t, stag);
	struct rd_mr *mr;

	if (slot >= t->slots)
		return NULL;
	mr = __atomic_load_n(&t->slot[slot], __ATOMIC_ACQUIRE);
	return mr && mr->stag == stag ? mr : NULL;
}

#endif
