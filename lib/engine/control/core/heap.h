/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Allocates pieces of a client's heap by offset. All bookkeeping is private: nothing in the heap
 * itself is read or trusted, so a client that scribbles over it cannot lead the engine astray.
 */
#ifndef SAKER_ENGINE_HEAP_H
#define SAKER_ENGINE_HEAP_H

#include <stdint.h>

#define HEAP_UNIT 64 /* bytes: sizes are rounded up to it, offsets are multiples of it */
#define HEAP_BINS 48
#define HEAP_NONE UINT32_MAX

struct heap_block {
	uint64_t off, len;           /* bytes, from the start of the heap */
	uint32_t prev, next;         /* neighbours by address */
	uint32_t bin_prev, bin_next; /* other free blocks of its size class */
	uint32_t free;
};

struct heap {
	uint8_t *base; /* offset 0 */
	uint64_t len, used;
	struct heap_block *blocks;           /* [nblocks], grown up to max_blocks */
	uint32_t nblocks, max_blocks, spare; /* spare: list of unused entries, by next */
	uint32_t bin[HEAP_BINS];             /* free blocks of 2^i units and more */
	uint64_t filled;                     /* bit i: bin[i] has one */
};

/* `max_pieces`: how many may be allocated at a time. 0 or -ENOMEM. */
int ctl_heap_init(struct heap *h, void *base, uint64_t len, uint32_t max_pieces);
void ctl_heap_fini(struct heap *h);
/* Zeroed bytes. *off: from `base`; returned is the piece's number for ctl_heap_free(), or HEAP_NONE
 * when there is no room. */
uint32_t ctl_heap_alloc(struct heap *h, uint64_t len, uint64_t *off);
void ctl_heap_free(struct heap *h, uint32_t piece);

#endif
