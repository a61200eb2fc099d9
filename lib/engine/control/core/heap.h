/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The allocator of pieces of a client's heap. All bookkeeping is private memory of the engine. The
 * allocator reads nothing from the heap itself, so a client that overwrites its heap cannot corrupt
 * the engine.
 */
#ifndef SAKER_ENGINE_HEAP_H
#define SAKER_ENGINE_HEAP_H

#include <stdint.h>

#define HEAP_UNIT 64 /* bytes; offsets are multiples of it, and sizes are rounded up to it */
#define HEAP_BINS 48
#define HEAP_NONE UINT32_MAX

struct heap_block {
	uint64_t off, len;           /* bytes, from the start of the heap */
	uint32_t prev, next;         /* the blocks before and behind it by address */
	uint32_t bin_prev, bin_next; /* free block: its neighbours in the list of its size class */
	uint32_t free;
};

struct heap {
	uint8_t *base;             /* the byte at offset 0 */
	uint64_t len, used;        /* bytes in all, and bytes of the pieces */
	struct heap_block *blocks; /* [nblocks]; grows up to max_blocks */
	/* The first unused entry, linked by `next`; the number of entries that were in use once. */
	uint32_t nblocks, max_blocks, spare, fresh;
	uint32_t bin[HEAP_BINS]; /* list i: free blocks of 2^i units and more */
	uint64_t filled;         /* bit i: list i is not empty */
};

/* Initializes a heap of `len` bytes at `base`, which remains the caller's, for at most `max_pieces`
 * pieces at a time. Returns 0 or -ENOMEM. */
int ctl_heap_init(struct heap *h, void *base, uint64_t len, uint32_t max_pieces);
void ctl_heap_fini(struct heap *h);
/* Allocates `len` bytes and sets *off to their offset from `base`. Sets the first `clear` bytes to
 * 0, and does not access the others. Returns the number of the piece for ctl_heap_free(), or
 * HEAP_NONE when there is no room. */
uint32_t ctl_heap_alloc(struct heap *h, uint64_t len, uint64_t clear, uint64_t *off);
/* Frees the piece with that number. */
void ctl_heap_free(struct heap *h, uint32_t piece);

#endif
