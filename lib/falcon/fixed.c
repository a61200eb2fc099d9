/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows that never change, for dedicated networks, and as a reference for the cost of congestion
 * control.
 */
#include <stddef.h>

#include "rue_priv.h"

#define RTO_SCALAR 2
#define RTT_ALPHA  (FA_FRACTION_ONE * 3 / 4)

static const struct fa_fixed_params defaults = {
	.fcwnd = 128 * FA_CWND_ONE,
	.ncwnd = 128 * FA_CWND_ONE,
};

static void
fixed_init(struct fa_cc *cc, struct fa_cc_nic *nic, const void *param)
{
	const struct fa_fixed_params *p = param != NULL ? param : &defaults;

	cc->fcwnd = p->fcwnd;
	cc->rto = cc->rto_min;
	if (nic != NULL)
		nic->ncwnd = p->ncwnd;
}

static void
fixed_run(struct fa_cc *cc, struct fa_cc_nic *nic, const struct fa_rue_event *ev,
	struct fa_rue_result *res, const void *param)
{
	uint32_t rtt = rue_span(ev->t1, ev->now);

	res->randomize_path = false;
	if (ev->type == FA_RUE_RETRANSMIT)
		return;
	cc->delay = rue_span(ev->t1, ev->t4);
	cc->rtt = rue_smooth(cc->rtt, rtt > 0 ? rtt : 1, RTT_ALPHA);
	rue_set_rto(cc, RTO_SCALAR);
}

const struct fa_algorithm fa_fixed = {.name = "fixed", .init = fixed_init, .run = fixed_run};
