/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From STag to region in one array access. The upper 24 bits of an STag are a keyed permutation of
 * the slot, so that STags tell a peer nothing about how many regions exist or which comes next;
 * slots are reused in the order in which they came free, so that a stale STag stays invalid for as
 * long as possible.
 *
 * One writer (control); readers on any lcore see an entry appear and vanish whole.
 */
#include "rdma.h"

#include "../base/mem.h"

#include <errno.h>
#include <string.h>

#define SLOT_BITS 24

struct rd_mr_table {
	struct rd_mr **slot; /* [slots] */
	uint32_t slots;
	uint32_t count;
	struct sk_key key;
	/* The writer's: free slots, a ring of `slots` entries. */
	uint32_t *free;
	uint32_t free_head, free_tail;
};

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

struct rd_mr_table *
rd_mr_table_create(uint32_t slots, const struct sk_key *key)
{
	struct rd_mr_table *t;

	if (slots == 0 || slots > 1u << SLOT_BITS || (slots & (slots - 1)))
		return NULL;
	t = sk_mem_alloc(sizeof(*t));
	if (!t)
		return NULL;
	t->slots = slots;
	t->key = *key;
	t->slot = sk_mem_alloc(slot_bytes(slots));
	t->free = sk_mem_alloc(free_bytes(slots));
	if (!t->slot || !t->free) {
		rd_mr_table_destroy(t);
		return NULL;
	}
	for (uint32_t i = 0; i < slots; i++)
		t->free[i] = i;
	t->free_tail = slots;
	return t;
}

void
rd_mr_table_destroy(struct rd_mr_table *t)
{
	if (!t)
		return;
	if (t->slot)
		sk_mem_free(t->slot, slot_bytes(t->slots));
	if (t->free)
		sk_mem_free(t->free, free_bytes(t->slots));
	sk_mem_free(t, sizeof(*t));
}

int
rd_mr_add(struct rd_mr_table *t, struct rd_mr *mr, uint8_t key)
{
	uint32_t slot;

	if (t->free_head == t->free_tail)
		return -ENOSPC;
	slot = t->free[t->free_head++ & (t->slots - 1)];
	mr->stag = sk_perm24_inv(&t->key, slot) << 8 | key;
	t->count++;
	__atomic_store_n(&t->slot[slot], mr, __ATOMIC_RELEASE);
	return 0;
}

void
rd_mr_del(struct rd_mr_table *t, struct rd_mr *mr)
{
	uint32_t slot = sk_perm24(&t->key, mr->stag >> 8);

	if (slot >= t->slots || t->slot[slot] != mr)
		return;
	__atomic_store_n(&t->slot[slot], NULL, __ATOMIC_RELEASE);
	t->count--;
	t->free[t->free_tail++ & (t->slots - 1)] = slot;
}

struct rd_mr *
rd_mr_lookup(const struct rd_mr_table *t, uint32_t stag)
{
	uint32_t slot = sk_perm24(&t->key, stag >> 8);
	struct rd_mr *mr;

	if (slot >= t->slots)
		return NULL;
	mr = __atomic_load_n(&t->slot[slot], __ATOMIC_ACQUIRE);
	return mr && mr->stag == stag ? mr : NULL;
}

uint32_t
rd_mr_count(const struct rd_mr_table *t)
{
	return t->count;
}
