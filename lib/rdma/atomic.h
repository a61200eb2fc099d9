/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Atomic Operations of RFC 7306 5.1, and the Swap of draft-ietf-storm-rdmap-ext-00 5.1.2, on
 * 64-bit words of client memory. All values are in host byte order, as the words in memory are ("in
 * the endian format of the target memory"). An operation is atomic among all lcores, hence across
 * all streams of the RNIC (RFC 7306 5.3), and with respect to stores of the client's own
 * processors.
 */
#ifndef SAKER_RDMA_ATOMIC_H
#define SAKER_RDMA_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#include "rdma.h"

/* The number of attempts after which an operation gives up on a word that changes between its load
 * and its store. Each failed attempt means that another operation succeeded, so that well-behaved
 * clients never come near the limit. The limit prevents a client that writes to the word without
 * pause from occupying an lcore for ever. */
#define RD_ATOMIC_TRIES 4096

/* Returns the sum of `value` and `add`, computed field by field. Each set bit of `mask` is the most
 * significant bit of a field; the carry out of a field is dropped. A mask of 0 makes one field of
 * all 64 bits (RFC 7306 5.1.1). */
static inline uint64_t
rd_add_fields(uint64_t value, uint64_t add, uint64_t mask)
{
	/* With the top bits cleared, no addition carries out of its field. The top bit of each sum
	 * then is the carry into it, and XOR adds both operands' top bits to it without a carry. */
	return ((value & ~mask) + (add & ~mask)) ^ ((value ^ add) & mask);
}

/* Returns the word at `addr` of a checked range of 8 bytes. Returns NULL if the word is not aligned
 * to 8 bytes in the engine's memory (RFC 7306 5.1 makes that an error) or lies in two extents. */
uint64_t *rd_atomic_word(const struct rd_mr *mr, uint64_t addr);

/* Adds `add` to *word in the fields that `mask` describes (see rd_add_fields()). Stores the value
 * before the addition in *original. Returns false, with the word unchanged, if the word changed
 * during each of RD_ATOMIC_TRIES attempts. */
bool rd_fetch_add(uint64_t *word, uint64_t add, uint64_t mask, uint64_t *original);
/* Replaces the bits of swap_mask by those of `swap` if the bits of compare_mask agree with
 * `compare`; writes nothing if they differ. Stores the value before the operation in *original in
 * both cases. Returns false as rd_fetch_add() does. */
bool rd_cmp_swap(uint64_t *word, uint64_t swap, uint64_t swap_mask, uint64_t compare,
	uint64_t compare_mask, uint64_t *original);
/* Stores `swap` in *word and returns the value before. Never fails. */
uint64_t rd_swap(uint64_t *word, uint64_t swap);

#endif
