/* SPDX-License-Identifier: BSD-3-Clause */
/* Two sides of an exchange with a stream between them, for tests. */
#ifndef TEST_ROF_EXCHANGE_PAIR_H
#define TEST_ROF_EXCHANGE_PAIR_H

#include "../../../lib/rof/exchange.h"

#define MS 1000000u

struct xpair {
	struct rofx_config cfg_a, cfg_b;
	struct rofx *a, *b; /* initiator, responder */
	size_t chunk;       /* bytes that rofx_input() gets at a time; 0: all */
};

/* A side that is valid, different for each `n`; without crypto. */
struct rofx_side xp_side(unsigned n);
/* `b` listens, `a` asks with `ours` and private data "hello" (6 bytes). Nothing has moved yet. */
void xp_start(struct xpair *p, const struct rofx_side *ours);
/* Moves what there is both ways until nothing moves any more. */
void xp_run(struct xpair *p);
/* Moves what `from` has to say now. Returns the bytes, or the last -reason of rofx_input(). */
int xp_move(struct rofx *from, struct rofx *to, size_t chunk);
/* Until established: `b` accepts with `theirs` and private data "welcome" (8 bytes); all on the way
 * is asserted. */
void xp_establish(struct xpair *p, const struct rofx_side *ours, const struct rofx_side *theirs);
void xp_end(struct xpair *p);

#endif
