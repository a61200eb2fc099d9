/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows that never change, for dedicated networks, and as a reference for the cost of congestion
 * control.
 */
#include "rue.h"

static void
fixed_init(struct fa_cc *cc, struct fa_cc_nic *nic, const void *param)
{
	const struct fa_rue_params *p = param != NULL ? param : &fa_rue_defaults;

	cc->fcwnd = p->fixed.fcwnd;
	cc->rto = cc->rto_min;
	if (nic != NULL)
		nic->ncwnd = p->fixed.ncwnd;
}

static void
fixed_run(struct fa_cc *cc, struct fa_cc_nic *nic, const struct fa_rue_event *ev,
	struct fa_rue_result *res, const void *param)
{
	const struct fa_rue_params *p = param != NULL ? param : &fa_rue_defaults;

	res->randomize_path = false;
	if (ev->type == FA_RUE_RETRANSMIT)
		return;
	cc->delay = fa_rue_delay(ev, FA_DELAY_FULL);
	fa_rue_round_trip(cc, ev, p);
	fa_rue_times(cc, p);
}

const struct fa_algorithm fa_fixed = {.name = "fixed", .init = fixed_init, .run = fixed_run};
