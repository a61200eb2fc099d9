/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ULPs that do everything at random, at both ends of several connections at once: pushes and
 * pulls of all sizes, refusals, errors, late verdicts, full queues; over a wire that loses, delays
 * and duplicates. They check each delivery: each request once, completions once, in order where
 * promised, with the right verdict and the right bytes.
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
	unsigned big;        /* payloads in 1000 of up to an MTU; the others are below 64 bytes */
	uint64_t verdict_ns; /* largest delay of verdicts */
	uint32_t rsn;        /* the first one */
	uint8_t rnr_code;
	uint8_t flows;       /* 0: 1 */
	bool overrun;        /* ignores Xoff */
	unsigned kills;      /* connections that one end fails in the middle */
	uint64_t abandon_ns; /* nonzero: all is destroyed after this time, in any state */
	void (*tune)(struct fa_config *cfg); /* NULL: default */
	uint64_t limit_ns;                   /* all must be complete by then */
};

/* The sums of the counters of both ends in all storms so far: [fa_reason_count]. */
extern uint64_t storm_counted[];

/* Runs pair_init(), the storm, its checks, and pair_stop(). Returns the virtual time that it
 * took. */
uint64_t storm_run(const struct storm *st);
/* Sets the smallest pools that a stack can have. */
void storm_smallest(struct fa_config *cfg);

#endif
