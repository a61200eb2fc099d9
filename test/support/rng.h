/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers that a seed repeats, for tests: splitmix64 (Steele, Lea, Flood). */
#ifndef TEST_RNG_H
#define TEST_RNG_H

#include <stdint.h>

/* Returns the next 64 bits. `state` is the seed at first; every value is valid. */
static inline uint64_t
rng_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* Returns a number below `n`, which is not 0. */
static inline uint32_t
rng_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)(rng_next(state) % n);
}

#endif
