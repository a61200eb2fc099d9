/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface of loop.c to the rest of the assembly. */
#ifndef SAKER_ENGINE_LOOP_PRIV_H
#define SAKER_ENGINE_LOOP_PRIV_H

struct eng;

/* Wakes loop `k` if it sleeps; otherwise the call costs a fence and a load. Callable from any
 * thread. */
void eng_wake(struct eng *e, unsigned k);

#endif
