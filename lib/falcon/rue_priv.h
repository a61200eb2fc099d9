/* SPDX-License-Identifier: BSD-3-Clause */
/* What every algorithm does with the timestamps of an event (10.1) and with the timeout (10.3.2).
 */
#ifndef SAKER_FALCON_RUE_PRIV_H
#define SAKER_FALCON_RUE_PRIV_H

#include "rue.h"

/* A difference of two wrapping times; what is negative (clocks apart, a peer that lies) counts as
 * 0, what is out of reason as the largest delay. */
static inline uint32_t
rue_span(uint32_t from, uint32_t to)
{
	int32_t d = (int32_t)(to - from);

	if (d < 0)
		return 0;
	return d > (int32_t)FA_DELAY_MAX ? FA_DELAY_MAX : (uint32_t)d;
}

/* `alpha` is the weight of the old value (the pseudo code of 10.3.4, not the prose of 10.1); the
 * first sample stands for itself. */
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
