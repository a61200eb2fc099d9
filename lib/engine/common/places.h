/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine stages of datagram QPs, by QP number. A datagram arrives at the stage of the host
 * connection that carries it, and its QP may be on another one. The control stage enters and
 * removes QPs; the engine stages only read, without a lock.
 */
#ifndef SAKER_ENGINE_PLACES_H
#define SAKER_ENGINE_PLACES_H

#include <stdint.h>

#include "../../base/prf.h"

struct eng_places {
	/* A QP number is a permutation, under this key, of a number whose low bits are the slot. */
	struct sk_key key;
	uint32_t mask; /* slots less one, which are 2^n */
	/* Atomic, by slot: the QP number, and from bit 24 on the stage plus 1; or 0. */
	uint32_t place[];
};

/* Returns an empty table for `slots` QPs, or NULL without memory. free() frees it. */
struct eng_places *eng_places_create(uint32_t slots);
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
