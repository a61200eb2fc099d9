/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The window for the peer's NIC: it follows the fill level of the peer's receive buffers (10.3.1)
 * and its NACKs for lack of them (10.3.3).
 */
#include "../wire/falcon.h"
#include "rue.h"

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

static void
nic_set(struct fa_cc_nic *nic, uint64_t w, const struct fa_nic_params *p)
{
	nic->ncwnd = (uint32_t)MIN(MAX(w, p->min), p->max);
}

/* Cuts ncwnd when the peer had no resources for a request (10.3.3). */
static void
nic_exhausted(const struct fa_cc *cc, struct fa_cc_nic *nic, const struct fa_nic_params *p,
	const struct fa_rue_event *ev)
{
	if (!nic->up && !fa_rue_elapsed(cc, nic->marker, ev->now))
		return;
	nic_set(nic, nic->ncwnd - (uint64_t)nic->ncwnd * p->max_md / FA_FRACTION_ONE, p);
	nic->up = false;
	nic->marker = ev->now;
}

/* Returns ncwnd after a cut by the distance of the level from its target. */
static uint32_t
nic_decrease(uint32_t w, const struct fa_nic_params *p, uint32_t level)
{
	uint64_t cut = (uint64_t)w * p->md * (level - p->level) / MAX(level, 1) / FA_FRACTION_ONE;
	uint64_t most = (uint64_t)w * p->max_md / FA_FRACTION_ONE;

	return w - (uint32_t)MIN(cut, most);
}

void
fa_nic_window(const struct fa_cc *cc, struct fa_cc_nic *nic, const struct fa_nic_params *p,
	const struct fa_rue_event *ev)
{
	uint32_t before = nic->ncwnd, w = before;
	bool elapsed = fa_rue_elapsed(cc, nic->marker, ev->now);

	if (ev->type == FA_RUE_NACK && ev->nack_code == FALCON_NACK_RESOURCES) {
		nic_exhausted(cc, nic, p, ev);
		return;
	}
	if (ev->rx_level < p->level) {
		if (!nic->up || elapsed) {
			w += p->ai;
			nic->up = true;
		}
	} else if (elapsed) {
		w = nic_decrease(before, p, ev->rx_level);
		nic->up = false;
	}
	nic_set(nic, w, p);
	if (nic->ncwnd != before || nic->ncwnd == p->min || nic->ncwnd == p->max)
		nic->marker = ev->now;
	else
		fa_rue_drag(cc, &nic->marker, ev->now);
}
