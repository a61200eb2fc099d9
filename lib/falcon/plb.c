/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protective load balancing (section 10.4): a flow whose packets were late in several consecutive
 * rounds changes its path.
 */
#include "rue.h"

bool
fa_plb_ack(struct fa_cc *cc, const struct fa_swift_params *p, uint32_t window, uint32_t acked,
	bool congested)
{
	bool late;

	if (p->plb_attempts == 0)
		return false;
	cc->plb_acked += acked;
	if (congested)
		cc->plb_congested += acked;
	if ((uint64_t)cc->plb_acked * FA_CWND_ONE < window)
		return false;
	late = (uint64_t)cc->plb_congested * FA_FRACTION_ONE >=
	       (uint64_t)cc->plb_acked * p->plb_fraction;
	cc->plb_acked = 0;
	cc->plb_congested = 0;
	if (!late) {
		cc->plb_attempts = 0;
		return false;
	}
	if (++cc->plb_attempts < p->plb_attempts)
		return false;
	cc->plb_attempts = 0;
	return true;
}
