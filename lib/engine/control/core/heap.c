/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The allocator of a client's heap. All blocks form a list by address. Each free block is also in
 * the list of its size class, so that allocating and freeing examine only a few blocks. Adjacent
 * free blocks are joined immediately.
 */
#include "heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Blocks of the same size class that heap_find() examines before it uses a larger class. */
#define HEAP_WALK 16
/* Blocks that it examines in all, when no larger class has a block. */
#define HEAP_SEARCH 128
#define HEAP_START  64 /* entries of a new heap */

static unsigned
bin_of(uint64_t len)
{
	unsigned b = 63 - (unsigned)__builtin_clzll(len / HEAP_UNIT);

	return b < HEAP_BINS ? b : HEAP_BINS - 1;
}

static void
bin_insert(struct heap *h, uint32_t i)
{
	struct heap_block *b = &h->blocks[i];
	unsigned n = bin_of(b->len);

	b->free = 1;
	b->bin_prev = HEAP_NONE;
	b->bin_next = h->bin[n];
	if (b->bin_next != HEAP_NONE)
		h->blocks[b->bin_next].bin_prev = i;
	h->bin[n] = i;
	h->filled |= 1ull << n;
}

static void
bin_remove(struct heap *h, uint32_t i)
{
	struct heap_block *b = &h->blocks[i];
	unsigned n = bin_of(b->len);

	if (b->bin_prev != HEAP_NONE)
		h->blocks[b->bin_prev].bin_next = b->bin_next;
	else
		h->bin[n] = b->bin_next;
	if (b->bin_next != HEAP_NONE)
		h->blocks[b->bin_next].bin_prev = b->bin_prev;
	if (h->bin[n] == HEAP_NONE)
		h->filled &= ~(1ull << n);
	b->free = 0;
}

/* Returns the index of an unused entry, or HEAP_NONE. The array h->blocks may move. */
static uint32_t
entry_get(struct heap *h)
{
	uint32_t i = h->spare, n = h->nblocks;
	struct heap_block *grown;

	if (i != HEAP_NONE) {
		h->spare = h->blocks[i].next;
		return i;
	}
	if (h->fresh == n) {
		uint32_t more = n > h->max_blocks / 2 ? h->max_blocks : n * 2;

		if (more == n)
			return HEAP_NONE;
		grown = realloc(h->blocks, more * sizeof(*grown));
		if (grown == NULL)
			return HEAP_NONE;
		h->blocks = grown;
		h->nblocks = more;
	}
	return h->fresh++;
}

static void
entry_put(struct heap *h, uint32_t i)
{
	h->blocks[i].next = h->spare;
	h->spare = i;
}

int
ctl_heap_init(struct heap *h, void *base, uint64_t len, uint32_t max_pieces)
{
	uint32_t i;

	memset(h, 0, sizeof(*h));
	h->base = base;
	h->len = len & ~(uint64_t)(HEAP_UNIT - 1);
	/* At most one free block stands between two pieces. */
	h->max_blocks = max_pieces < UINT32_MAX / 4 ? 2 * max_pieces + 1 : UINT32_MAX / 2;
	h->nblocks = HEAP_START < h->max_blocks ? HEAP_START : h->max_blocks;
	h->blocks = malloc(h->nblocks * sizeof(*h->blocks));
	if (h->blocks == NULL)
		return -ENOMEM;
	for (i = 0; i < HEAP_BINS; i++)
		h->bin[i] = HEAP_NONE;
	h->spare = HEAP_NONE;
	h->fresh = 1;
	h->blocks[0] = (struct heap_block){.len = h->len, .prev = HEAP_NONE, .next = HEAP_NONE};
	if (h->len)
		bin_insert(h, 0);
	return 0;
}

void
ctl_heap_fini(struct heap *h)
{
	free(h->blocks);
	memset(h, 0, sizeof(*h));
}

static uint32_t
heap_find(const struct heap *h, uint64_t len)
{
	unsigned n = bin_of(len), walk = HEAP_SEARCH;
	uint64_t larger;
	uint32_t i;

	for (i = h->bin[n]; i != HEAP_NONE && walk > HEAP_SEARCH - HEAP_WALK; walk--) {
		if (h->blocks[i].len >= len)
			return i;
		i = h->blocks[i].bin_next;
	}
	larger = n + 1 < HEAP_BINS ? h->filled >> (n + 1) : 0;
	if (larger)
		return h->bin[n + 1 + (unsigned)__builtin_ctzll(larger)];
	/* No larger class has a block. The search is bounded, because a client decides how many
	 * blocks a class has. */
	for (; i != HEAP_NONE && walk > 0; walk--) {
		if (h->blocks[i].len >= len)
			return i;
		i = h->blocks[i].bin_next;
	}
	return HEAP_NONE;
}

/* Leaves `len` bytes in block i and makes the rest a free block behind it. */
static int
cut(struct heap *h, uint32_t i, uint64_t len)
{
	uint32_t rest = entry_get(h);
	struct heap_block *b = &h->blocks[i];

	if (rest == HEAP_NONE)
		return -ENOMEM;
	h->blocks[rest] = (struct heap_block){
		.off = b->off + len, .len = b->len - len, .prev = i, .next = b->next};
	if (b->next != HEAP_NONE)
		h->blocks[b->next].prev = rest;
	b->next = rest;
	b->len = len;
	bin_insert(h, rest);
	return 0;
}

uint32_t
ctl_heap_alloc(struct heap *h, uint64_t len, uint64_t clear, uint64_t *off)
{
	uint32_t i;

	if (len == 0 || len > h->len)
		return HEAP_NONE;
	len = (len + HEAP_UNIT - 1) & ~(uint64_t)(HEAP_UNIT - 1);
	if (len > h->len)
		return HEAP_NONE;
	i = heap_find(h, len);
	if (i == HEAP_NONE)
		return HEAP_NONE;
	bin_remove(h, i);
	if (h->blocks[i].len > len && cut(h, i, len) < 0) {
		bin_insert(h, i);
		return HEAP_NONE;
	}
	h->used += len;
	*off = h->blocks[i].off;
	memset(h->base + *off, 0, clear);
	return i;
}

/* Joins block i with the free block behind it. Both are in no list of a size class. */
static void
join(struct heap *h, uint32_t i)
{
	struct heap_block *b = &h->blocks[i];
	uint32_t gone = b->next;

	b->len += h->blocks[gone].len;
	b->next = h->blocks[gone].next;
	if (b->next != HEAP_NONE)
		h->blocks[b->next].prev = i;
	entry_put(h, gone);
}

void
ctl_heap_free(struct heap *h, uint32_t piece)
{
	struct heap_block *b = &h->blocks[piece];
	uint32_t before = b->prev, behind = b->next;

	h->used -= b->len;
	if (behind != HEAP_NONE && h->blocks[behind].free) {
		bin_remove(h, behind);
		join(h, piece);
	}
	if (before != HEAP_NONE && h->blocks[before].free) {
		bin_remove(h, before);
		join(h, before);
		piece = before;
	}
	bin_insert(h, piece);
}
