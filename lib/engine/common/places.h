/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slots of numbers that peers send: of QPs and of XRC SRQs. A number is a permutation, under a
 * key, of a number whose low bits are the slot, so that a look-up visits one place, however a
 * client chooses its numbers.
 *
 * The table has the engine stages of datagram QPs. A datagram arrives at the stage of the host
 * connection that carries it, and its QP may be on another one. The control stage sets the keys,
 * and enters and removes QPs; the engine stages only read, without a lock.
 */
#ifndef SAKER_ENGINE_PLACES_H
#define SAKER_ENGINE_PLACES_H

#include <stdint.h>

#include "../../base/prf.h"

struct eng_places {
	struct sk_key key, srq_key;
	uint32_t mask, srq_mask; /* slots less one, which are 2^n */
	/* Atomic, by slot: the QP number, and from bit 24 on the stage plus 1; or 0. */
	uint32_t place[];
};

/* Returns an empty table for `slots` QPs, and slots for `srqs` XRC SRQs; or NULL without memory.
 * free() frees it. */
struct eng_places *eng_places_create(uint32_t slots, uint32_t srqs);
/* Return the slot that a number has if it names a QP or an XRC SRQ. The caller compares the
 * number. */
static inline uint32_t
eng_place_slot(const struct eng_places *p, uint32_t qpn)
{
	return sk_perm24_inv(&p->key, qpn) & p->mask;
}
static inline uint32_t
eng_place_srq_slot(const struct eng_places *p, uint32_t srqn)
{
	return sk_perm24_inv(&p->srq_key, srqn) & p->srq_mask;
}
/* Enters a QP number whose slot is `slot`. */
static inline void
eng_place_set(struct eng_places *p, uint32_t slot, uint32_t qpn, unsigned stage)
{
	__atomic_store_n(&p->place[slot], qpn | (stage + 1) << 24, __ATOMIC_RELAXED);
}
static inline void
eng_place_clear(struct eng_places *p, uint32_t slot)
{
	__atomic_store_n(&p->place[slot], 0, __ATOMIC_RELAXED);
}
/* Returns the stage of the QP with that number, or -1. */
int eng_place_find(const struct eng_places *p, uint32_t qpn);

#endif
