/* SPDX-License-Identifier: BSD-3-Clause */
/* Chance, from a seed. Each link and each source has its own, so that one does not disturb another.
 */
#ifndef SAKER_SIM_RANDOM_H
#define SAKER_SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct sim_random {
	uint64_t state;
};

static inline uint64_t
sim_mix(uint64_t x) /* the finaliser of SplitMix64 */
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* `who`: a number that no other has. */
static inline void
sim_random_seed(struct sim_random *r, uint64_t seed, uint64_t who)
{
	r->state = sim_mix(seed * 0x9e3779b97f4a7c15ull + sim_mix(who + 1));
}

static inline uint64_t
sim_random(struct sim_random *r)
{
	return sim_mix(r->state += 0x9e3779b97f4a7c15ull);
}

/* 0 <= result < n; n < 2^32, so that the bias is below 2^-32. */
static inline uint64_t
sim_random_below(struct sim_random *r, uint64_t n)
{
	return (sim_random(r) >> 32) * n >> 32;
}

/* True with probability p. */
static inline bool
sim_chance(struct sim_random *r, double p)
{
	return p > 0 && (double)(sim_random(r) >> 11) < p * 0x1p53;
}

#endif
