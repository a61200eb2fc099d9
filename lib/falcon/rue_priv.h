/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Computations that all algorithms share: the timestamps of an event (10.1) and the timeout
 * (10.3.2).
 */
#ifndef SAKER_FALCON_RUE_PRIV_H
#define SAKER_FALCON_RUE_PRIV_H

#include "rue.h"

/* Returns the difference of two wrapping times in ticks. A negative one (different clocks, or
 * forged times) counts as 0, one beyond FA_DELAY_MAX as FA_DELAY_MAX. */
static inline uint32_t
rue_span(uint32_t from, uint32_t to)
{
	int32_t d = (int32_t)(to - from);

	if (d < 0)
		return 0;
	return d > (int32_t)FA_DELAY_MAX ? FA_DELAY_MAX : (uint32_t)d;
}

/* Returns the exponential average. `alpha` is the weight of the old value (as in the pseudo code of
 * 10.3.4, and not as in the prose of 10.1); the first sample is taken as it is. */
static inline uint32_t
rue_smooth(uint32_t old, uint32_t sample, uint32_t alpha)
{
	if (old == 0)
		return sample;
	return (uint32_t)(((uint64_t)old * alpha + (uint64_t)sample * (FA_FRACTION_ONE - alpha) +
				  FA_FRACTION_ONE / 2) /
			  FA_FRACTION_ONE);
}

static inline void
rue_set_rto(struct fa_cc *cc, uint32_t scalar)
{
	uint32_t rto = cc->rtt * scalar;

	cc->rto = rto > cc->rto_min ? rto : cc->rto_min;
}

#endif
