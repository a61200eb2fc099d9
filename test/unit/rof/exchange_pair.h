/* SPDX-License-Identifier: BSD-3-Clause */
/* Two sides of an exchange with a stream between them. */
#ifndef TEST_ROF_EXCHANGE_PAIR_H
#define TEST_ROF_EXCHANGE_PAIR_H

#include "../../support/lone.h"

#define MS 1000000u

struct xpair {
	struct rofx_config cfg_a, cfg_b;
	struct lone *a, *b; /* initiator, responder */
	size_t chunk;       /* bytes per call of lone_input(); 0: all */
};

/* Returns a valid side without crypto, different for each `n`. */
struct rofx_side xp_side(unsigned n);
/* Starts `b` as a listener, and `a` as an initiator with `ours` and private data "hello" (6 bytes).
 * No bytes have moved yet. */
void xp_start(struct xpair *p, const struct rofx_side *ours);
/* Moves bytes in both directions until none are left. */
void xp_run(struct xpair *p);
/* Moves the output of `from` once. Returns the number of bytes, or the last -reason of
 * lone_input(). */
int xp_move(struct lone *from, struct lone *to, size_t chunk);
/* Establishes a connection: `b` accepts with `theirs` and private data "welcome" (8 bytes). Asserts
 * each step. */
void xp_establish(struct xpair *p, const struct rofx_side *ours, const struct rofx_side *theirs);
/* Starts an exchange that fails before its request gets through. Asserts the reason of each side.
 */
void xp_refuse(
	struct xpair *p, const struct rofx_side *ours, enum rofx_reason a, enum rofx_reason b);
void xp_end(struct xpair *p);
/* Checks that an exchange fails at a time, and not before, because its time is over. */
void xp_times_out(struct lone *x, uint64_t at);

#endif
