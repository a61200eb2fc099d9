/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protective load balancing (section 10.4): a flow whose packets met congestion in several
 * consecutive rounds changes its path.
 */
#include "rue.h"

bool
fa_plb_ack(struct fa_cc *cc, const struct fa_plb_params *p, uint32_t window, uint32_t acked,
	uint32_t congested)
{
	bool late;

	if (p->attempts == 0)
		return false;
	acked += cc->plb_acked;
	congested += cc->plb_congested;
	if ((uint64_t)acked * FA_CWND_ONE < window) {
		cc->plb_acked = (uint16_t)acked;
		cc->plb_congested = (uint16_t)congested;
		return false;
	}
	late = (uint64_t)congested * FA_FRACTION_ONE >= (uint64_t)acked * p->fraction;
	cc->plb_acked = 0;
	cc->plb_congested = 0;
	if (!late) {
		cc->plb_attempts = 0;
		return false;
	}
	if (++cc->plb_attempts < p->attempts)
		return false;
	cc->plb_attempts = 0;
	return true;
}
