/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Atomic Operations of RFC 7306 5.1, and the Swap of draft-ietf-storm-rdmap-ext-00 5.1.2, on
 * 64-bit words of client memory. All values are in host byte order, as the words are: "in the
 * endian format of the target memory". Atomic among all lcores, hence across all streams of the
 * RNIC (RFC 7306 5.3); and with respect to what the client's own processors do to the word.
 */
#ifndef SAKER_RDMA_ATOMIC_H
#define SAKER_RDMA_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#include "rdma.h"

/* Attempts that an operation makes at a word which changes under its hands. Each attempt that fails
 * means that another one got through, so that honest neighbours never come near this; a client that
 * writes to the word without pause shall not hold an lcore for ever. */
#define RD_ATOMIC_TRIES 4096

/* The sum of `value` and `add`, field by field: a set bit of `mask` is the most significant one of
 * its field, and what carries out of it is dropped. A mask of 0 makes one field of all 64 bits. */
static inline uint64_t
rd_add_fields(uint64_t value, uint64_t add, uint64_t mask)
{
	/* Without the top bits nothing can carry out of a field; each top bit is then the carry
	 * into it, to which both top bits are added without a carry. */
	return ((value & ~mask) + (add & ~mask)) ^ ((value ^ add) & mask);
}

/* The word at `addr` of a checked range of 8 bytes. NULL: it is not aligned to 64 bits where it
 * stands in memory, which RFC 7306 5.1 makes an error, or not in one piece. */
uint64_t *rd_atomic_word(const struct rd_mr *mr, uint64_t addr);

/* Each stores the word's value before the operation in *original. False: the word did not stand
 * still for RD_ATOMIC_TRIES attempts; it was not changed. */
bool rd_fetch_add(uint64_t *word, uint64_t add, uint64_t mask, uint64_t *original);
/* Where the bits of compare_mask agree with `compare`, the bits of swap_mask become those of
 * `swap`; else nothing is written. */
bool rd_cmp_swap(uint64_t *word, uint64_t swap, uint64_t swap_mask, uint64_t compare,
	uint64_t compare_mask, uint64_t *original);
/* Cannot fail. */
uint64_t rd_swap(uint64_t *word, uint64_t swap);

#endif
