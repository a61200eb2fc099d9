/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers from a seed. Each link and each source has its own sequence, so that a change at
 * one does not affect another. */
#ifndef SAKER_SIM_RANDOM_H
#define SAKER_SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct sim_random {
	uint64_t state;
};

/* Returns a hash of `x`: the finaliser of SplitMix64. */
static inline uint64_t
sim_mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* Starts the sequence `number` of a seed; each user has a number of its own. */
static inline void
sim_random_seed(struct sim_random *r, uint64_t seed, uint64_t number)
{
	r->state = sim_mix(seed * 0x9e3779b97f4a7c15ull + sim_mix(number + 1));
}

static inline uint64_t
sim_random(struct sim_random *r)
{
	return sim_mix(r->state += 0x9e3779b97f4a7c15ull);
}

/* Returns a number in [0, n). n is below 2^32, so that the bias is below 2^-32. */
static inline uint64_t
sim_random_below(struct sim_random *r, uint64_t n)
{
	return (sim_random(r) >> 32) * n >> 32;
}

/* Returns true with probability `p`. */
static inline bool
sim_chance(struct sim_random *r, double p)
{
	return p > 0 && (double)(sim_random(r) >> 11) < p * 0x1p53;
}

#endif
