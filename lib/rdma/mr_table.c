/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of memory regions and windows. The control stage is the only writer. Readers on any
 * lcore see an entry appear and vanish as a whole. A slot is drawn at random from the free ones, so
 * that a peer cannot derive the number of regions or the next STag from the STags that it has seen.
 */
#include "rdma_priv.h"

#include "../base/mem.h"

#include <errno.h>

#define SLOT_BITS 24

static size_t
slot_bytes(uint32_t slots)
{
	return slots * sizeof(struct rd_mr *);
}

static size_t
free_bytes(uint32_t slots)
{
	return slots * sizeof(uint32_t);
}

/* Returns the inverse of an odd number modulo 2^32. An odd number is its own inverse modulo 8, and
 * each step of Newton's iteration doubles the number of correct bits. */
static uint32_t
inverse_of(uint32_t odd)
{
	uint32_t x = odd;

	for (int bits = 3; bits < 32; bits *= 2)
		x *= 2 - odd * x;
	return x;
}

static void
permutation_init(struct rd_mr_table *t)
{
	for (uint8_t i = 0; i < 3; i++) {
		t->factor[i] = (uint32_t)sk_siphash(&t->key, &i, sizeof(i)) | 1;
		t->inverse[i] = inverse_of(t->factor[i]);
	}
	t->add = (uint32_t)sk_siphash(&t->key, "add", 3);
}

/* Returns the STag of a slot, with key 0: the inverse of stag_slot(). The fold by half a word is
 * its own inverse. */
static uint32_t
slot_stag(const struct rd_mr_table *t, uint32_t slot)
{
	uint32_t v = slot * t->inverse[2] & STAG_SLOT_MASK;

	v ^= v >> 12;
	v = v * t->inverse[1] & STAG_SLOT_MASK;
	v ^= v >> 12;
	v = v * t->inverse[0];
	return (v - t->add) << 8;
}

struct rd_mr_table *
rd_mr_table_create(uint32_t slots, const struct sk_key *key)
{
	struct rd_mr_table *t;

	if (slots == 0 || slots > 1u << SLOT_BITS || (slots & (slots - 1)))
		return NULL;
	t = sk_mem_alloc(sizeof(*t));
	if (t == NULL)
		return NULL;
	t->slots = slots;
	t->key = *key;
	permutation_init(t);
	t->slot = sk_mem_alloc(slot_bytes(slots));
	t->free = sk_mem_alloc(free_bytes(slots));
	if (t->slot == NULL || t->free == NULL) {
		rd_mr_table_destroy(t);
		return NULL;
	}
	for (uint32_t i = 0; i < slots; i++)
		t->free[i] = i;
	t->nfree = slots;
	return t;
}

void
rd_mr_table_destroy(struct rd_mr_table *t)
{
	if (t == NULL)
		return;
	if (t->slot != NULL)
		sk_mem_free(t->slot, slot_bytes(t->slots));
	if (t->free != NULL)
		sk_mem_free(t->free, free_bytes(t->slots));
	sk_mem_free(t, sizeof(*t));
}

static uint32_t
slot_draw(struct rd_mr_table *t)
{
	uint64_t n = t->drawn++;
	uint32_t i = (uint32_t)(sk_siphash(&t->key, &n, sizeof(n)) % t->nfree);
	uint32_t slot = t->free[i];

	t->free[i] = t->free[--t->nfree];
	return slot;
}

int
rd_mr_add(struct rd_mr_table *t, struct rd_mr *mr, uint8_t key)
{
	uint32_t slot;

	if (t->nfree == 0)
		return -ENOSPC;
	slot = slot_draw(t);
	mr->stag = slot_stag(t, slot) | key;
	__atomic_store_n(&t->count, t->count + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&t->slot[slot], mr, __ATOMIC_RELEASE);
	return 0;
}

void
rd_mr_replace(struct rd_mr_table *t, const struct rd_mr *old, struct rd_mr *mr)
{
	mr->stag = old->stag;
	__atomic_store_n(&t->slot[stag_slot(t, old->stag)], mr, __ATOMIC_RELEASE);
}

void
rd_mr_del(struct rd_mr_table *t, struct rd_mr *mr)
{
	uint32_t slot = stag_slot(t, mr->stag);

	if (slot >= t->slots || t->slot[slot] != mr)
		return;
	__atomic_store_n(&t->slot[slot], NULL, __ATOMIC_RELEASE);
	__atomic_store_n(&t->count, t->count - 1, __ATOMIC_RELAXED);
	t->free[t->nfree++] = slot;
}

struct rd_mr *
rd_mr_lookup(const struct rd_mr_table *t, uint32_t stag)
{
	return mr_lookup(t, stag);
}

uint32_t
rd_mr_count(const struct rd_mr_table *t)
{
	return __atomic_load_n(&t->count, __ATOMIC_RELAXED);
}
