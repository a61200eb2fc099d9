/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ULPs that do everything at random, on both ends of several connections at once: pushes and
 * pulls of all sizes, refusals, errors, late verdicts, ways that are full; over a wire that loses,
 * delays and repeats. They check what they get: each request once, completions once, in order where
 * that was promised, with the right verdict and the right bytes.
 */
#ifndef TEST_FALCON_TL_STORM_H
#define TEST_FALCON_TL_STORM_H

#include "pair.h"

struct storm {
	uint64_t seed;
	unsigned conns, requests; /* of each end of each connection */
	bool ordered;
	unsigned loss, late, twice; /* packets in 1000 */
	unsigned rnr, cie, full;    /* deliveries in 1000 */
	unsigned pulls;             /* requests in 1000 */
	unsigned big;               /* of these, in 1000 are of up to an MTU */
	uint64_t verdict_ns;        /* verdicts come up to so late */
	uint32_t rsn;               /* the first one */
	uint8_t rnr_code;
	uint8_t flows;       /* 0: 1 */
	bool overrun;        /* ignores Xoff */
	unsigned kills;      /* connections that one end gives up in the middle */
	uint64_t abandon_ns; /* != 0: all is destroyed after so long, whatever its state */
	void (*tune)(struct fa_config *cfg); /* NULL: default */
	uint64_t limit_ns;                   /* all must be done by then */
};

/* What both ends of all storms so far have counted: [fa_reason_count]. */
extern uint64_t storm_counted[];

/* pair_init(), the storm, its checks, and pair_stop(). Returns how long it took, virtually. */
uint64_t storm_run(const struct storm *st);
/* The smallest pools that a stack can have. */
void storm_smallest(struct fa_config *cfg);

#endif
