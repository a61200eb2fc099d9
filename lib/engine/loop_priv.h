/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops, as the assembly wakes them. */
#ifndef SAKER_ENGINE_LOOP_PRIV_H
#define SAKER_ENGINE_LOOP_PRIV_H

struct eng;

/* Wakes loop `k` if it sleeps. Any thread; costs a fence and a load when it does not. */
void eng_wake(struct eng *e, unsigned k);

#endif
