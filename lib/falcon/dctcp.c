/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DCTCP (RFC 8257) over Falcon: the window shrinks in proportion to the share of packets that
 * switches have marked, and otherwise grows as Reno's. The peer counts marked packets, so that no
 * echo of single marks is necessary (RFC 8257 3.2). All computations use integers.
 */
#include <string.h>

#include "../wire/falcon.h"
#include "rue.h"

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#define DCTCP_ONE      (1u << 15)        /* 1.0 in the estimate of the marked share */
#define DCTCP_SSTHRESH (2 * FA_CWND_ONE) /* the least that a loss leaves (RFC 5681 3.1) */

/* fa_cc.opaque */
struct dctcp {
	uint32_t ssthresh;
	uint32_t since;         /* ticks: start of the observation window */
	uint16_t acked, marked; /* packets in it; of these, marked ones */
	uint16_t alpha;         /* the estimate of the marked share (3.3) */
	uint16_t ecn;           /* the peer's count at the last event */
};
_Static_assert(sizeof(struct dctcp) <= sizeof(((struct fa_cc *)0)->opaque), "fa_cc.opaque");

/* Returns how many packets the peer has counted since the last event. An acknowledgement that
 * another one has overtaken has an older count. */
static uint32_t
dctcp_marks(struct dctcp *d, const struct fa_rue_event *ev)
{
	uint32_t n = (ev->ecn - d->ecn) & FALCON_ECN_MASK;

	if (n > FALCON_ECN_MASK / 2)
		return 0;
	d->ecn = ev->ecn;
	return n;
}

/* Updates the estimate once in a round trip (3.3, steps 1 to 8). */
static void
dctcp_observe(struct fa_cc *cc, struct dctcp *d, const struct fa_dctcp_params *p,
	const struct fa_rue_event *ev, uint32_t marks)
{
	uint32_t share;

	d->acked = (uint16_t)MIN(d->acked + ev->acked, UINT16_MAX);
	d->marked = (uint16_t)MIN(d->marked + marks, UINT16_MAX);
	if (d->acked == 0 || !fa_rue_elapsed(cc, d->since, ev->now))
		return;
	/* A packet that its receiver still holds is counted before it is acknowledged. */
	share = MIN(d->marked, d->acked) * DCTCP_ONE / d->acked;
	d->alpha = (uint16_t)((d->alpha * (FA_FRACTION_ONE - p->gain) + share * p->gain) /
			      FA_FRACTION_ONE);
	d->since = ev->now;
	d->acked = d->marked = 0;
}

/* Grows by slow start, then by `ai` for each window of packets (RFC 5681 3.1). */
static uint64_t
dctcp_grow(uint64_t w, const struct dctcp *d, const struct fa_dctcp_params *p, uint32_t acked)
{
	uint64_t packets = (uint64_t)acked * FA_CWND_ONE, step;

	if (w < d->ssthresh) {
		step = MIN(packets, d->ssthresh - w);
		w += step;
		packets -= step;
	}
	return w + p->ai * packets / MAX(w, FA_CWND_ONE);
}

static void
dctcp_window(struct fa_cc *cc, struct dctcp *d, const struct fa_dctcp_params *p,
	const struct fa_rue_event *ev, uint32_t marks)
{
	uint64_t w = cc->fcwnd;

	if (marks == 0) {
		w = dctcp_grow(w, d, p, ev->acked);
	} else if (fa_rue_elapsed(cc, cc->fabric_marker, ev->now)) {
		w -= w * d->alpha / (2 * DCTCP_ONE); /* 3.3, step 9: once in a window of data */
		d->ssthresh = (uint32_t)MAX(w, p->min);
		cc->fabric_marker = ev->now;
	}
	fa_rue_drag(cc, &cc->fabric_marker, ev->now);
	cc->fcwnd = (uint32_t)MIN(MAX(w, p->min), p->max);
}

/* Reacts to a loss as Reno does (RFC 8257 3.5): it halves the window once in a round trip. After a
 * timeout, slow start begins with one packet. A repeated timeout of a packet changes nothing. */
static void
dctcp_retransmit(struct fa_cc *cc, struct dctcp *d, const struct fa_dctcp_params *p,
	const struct fa_rue_event *ev)
{
	bool early = ev->retransmit == FA_RUE_EARLY;

	if (early ? !p->early_cuts : ev->retransmits != 1)
		return;
	if (!fa_rue_elapsed(cc, cc->fabric_marker, ev->now))
		return;
	d->ssthresh = MAX(cc->fcwnd / 2, DCTCP_SSTHRESH);
	cc->fcwnd = MIN(cc->fcwnd, early ? d->ssthresh : MAX(p->min, FA_CWND_ONE));
	cc->fabric_marker = ev->now;
}

static void
dctcp_acknowledged(struct fa_cc *cc, struct fa_cc_nic *nic, struct dctcp *d,
	const struct fa_rue_params *p, const struct fa_rue_event *ev, struct fa_rue_result *res)
{
	uint32_t window = MIN(cc->fcwnd, nic->ncwnd), marks = dctcp_marks(d, ev);

	fa_rue_round_trip(cc, ev, p);
	cc->delay = fa_rue_delay(ev, FA_DELAY_FABRIC);
	dctcp_observe(cc, d, &p->dctcp, ev, marks);
	dctcp_window(cc, d, &p->dctcp, ev, marks);
	fa_nic_window(cc, nic, &p->nic, ev);
	if (ev->type == FA_RUE_ACK)
		res->randomize_path =
			fa_plb_ack(cc, &p->plb, window, ev->acked, MIN(marks, ev->acked));
}

static void
dctcp_run(struct fa_cc *cc, struct fa_cc_nic *nic, const struct fa_rue_event *ev,
	struct fa_rue_result *res, const void *param)
{
	const struct fa_rue_params *p = param != NULL ? param : &fa_rue_defaults;
	struct dctcp d;

	memcpy(&d, cc->opaque, sizeof(d));
	res->randomize_path = false;
	if (ev->type == FA_RUE_RETRANSMIT)
		dctcp_retransmit(cc, &d, &p->dctcp, ev);
	else
		dctcp_acknowledged(cc, nic, &d, p, ev, res);
	fa_rue_times(cc, p);
	memcpy(cc->opaque, &d, sizeof(d));
}

static void
dctcp_start(struct fa_cc *cc, struct fa_cc_nic *nic, const void *param)
{
	const struct fa_rue_params *p = param != NULL ? param : &fa_rue_defaults;
	struct dctcp d = {.alpha = DCTCP_ONE, .ssthresh = p->dctcp.max};

	memcpy(cc->opaque, &d, sizeof(d));
	cc->fcwnd = p->dctcp.initial;
	cc->rto = cc->rto_min;
	if (nic != NULL)
		nic->ncwnd = p->nic.initial;
}

const struct fa_algorithm fa_dctcp = {.name = "dctcp", .init = dctcp_start, .run = dctcp_run};
