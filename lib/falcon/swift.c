/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Swift (section 10.3): two windows, one from the delay of the fabric, one from the fill level of
 * the peer's receive buffers. All computations use integers: the same events give the same windows
 * on every machine.
 */
#include <math.h>
#include <stddef.h>

#include "falcon.h"
#include "rue_priv.h"

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#define NACK_RESOURCES 1 /* 7.8 */
#define TICKS(ns)      ((uint32_t)(((ns)*1000ull + FA_TICK_PS / 2) / FA_TICK_PS))

/* The values of the public models; a = 763 / (1 / sqrt(0.1) - 1 / sqrt(256)), b = a / sqrt(256). */
static const struct fa_swift_params defaults = {
	.fcwnd_initial = 32 * FA_CWND_ONE,
	.fcwnd_min = FA_CWND_ONE / 100,
	.fcwnd_max = 256 * FA_CWND_ONE,
	.ncwnd_initial = 64 * FA_CWND_ONE,
	.ncwnd_min = FA_CWND_ONE,
	.ncwnd_max = 256 * FA_CWND_ONE,
	.fabric_ai = FA_CWND_ONE,
	.nic_ai = FA_CWND_ONE,
	.fabric_md = FA_FRACTION_ONE * 8 / 10,
	.nic_md = FA_FRACTION_ONE * 8 / 10,
	.fabric_max_md = FA_FRACTION_ONE / 2,
	.nic_max_md = FA_FRACTION_ONE / 2,
	.rtt_alpha = FA_FRACTION_ONE * 3 / 4,
	.delay_alpha = 0,
	.base_delay = TICKS(25000),
	.per_hop = TICKS(1000),
	.flow_a = 252054,
	.flow_b = 15753,
	.flow_max = TICKS(100000),
	.delay_select = FA_DELAY_FABRIC,
	.rx_level_target = 15,
	.rto_scalar = 2,
	.retransmit_limit = 3,
	.early_cuts = false,
	.plb_delay = FA_FRACTION_ONE * 101 / 100,
	.plb_fraction = FA_FRACTION_ONE / 2,
	.plb_attempts = 5,
};

/* 65536 / sqrt(1 + i / 32) */
static const uint32_t rsqrt[97] = {65536, 64535, 63579, 62664, 61788, 60947, 60140, 59364, 58617,
	57898, 57205, 56535, 55889, 55265, 54661, 54076, 53510, 52961, 52429, 51912, 51411, 50923,
	50450, 49989, 49541, 49104, 48679, 48265, 47861, 47467, 47082, 46707, 46341, 45983, 45633,
	45292, 44957, 44630, 44310, 43997, 43691, 43390, 43096, 42808, 42525, 42248, 41977, 41710,
	41449, 41192, 40940, 40693, 40450, 40211, 39977, 39746, 39520, 39297, 39078, 38863, 38651,
	38443, 38238, 38036, 37837, 37642, 37449, 37260, 37073, 36889, 36708, 36529, 36353, 36179,
	36008, 35840, 35673, 35509, 35347, 35188, 35030, 34875, 34722, 34571, 34421, 34274, 34128,
	33985, 33843, 33703, 33564, 33427, 33292, 33159, 33027, 32897, 32768};

/* Returns flow_a / sqrt(fcwnd): fcwnd = m * 4^e with m in [1, 4), whose root comes from the
 * table. */
static uint64_t
scale_by_rsqrt(uint32_t flow_a, uint32_t fcwnd)
{
	unsigned e, step, rest;
	uint32_t m, r;

	fcwnd = MAX(fcwnd, 1);
	e = (31 - (unsigned)__builtin_clz(fcwnd)) / 2;
	m = (uint32_t)(((uint64_t)fcwnd << 14) >> (2 * e)); /* [1, 4) in 2^-14 */
	step = (m - (1u << 14)) >> 9;
	rest = (m - (1u << 14)) & 511;
	r = rsqrt[step] - ((rsqrt[step] - rsqrt[step + 1]) * rest >> 9);
	/* FA_CWND_ONE is 4^5 */
	return ((uint64_t)flow_a * r << 5) >> (16 + e);
}

uint32_t
fa_swift_target(const struct fa_swift_params *p, const struct fa_cc *cc, uint8_t hops)
{
	uint64_t a = scale_by_rsqrt(p->flow_a, cc->fcwnd);
	uint64_t adder = a > p->flow_b ? (a - p->flow_b + 512) >> 10 : 0;

	return cc->base_delay + (uint32_t)MIN(adder, p->flow_max) + p->per_hop * hops;
}

void
fa_swift_flow_scaling(struct fa_swift_params *p, uint32_t max, uint32_t w_min, uint32_t w_max)
{
	double lo = 1 / sqrt((double)w_min / FA_CWND_ONE);
	double hi = 1 / sqrt((double)w_max / FA_CWND_ONE);
	double a = max / (lo - hi);

	p->flow_max = max;
	p->flow_a = (uint32_t)lrint(a * 1024);
	p->flow_b = (uint32_t)lrint(a * hi * 1024);
}

void
fa_swift_defaults(struct fa_swift_params *p)
{
	*p = defaults;
}

static bool
rtt_elapsed(const struct fa_cc *cc, uint32_t marker, uint32_t now)
{
	return now - marker >= cc->rtt;
}

/* Keeps a marker within a round trip of now, so that the comparison does not wrap (10.3.6). */
static void
update_marker(const struct fa_cc *cc, uint32_t *marker, uint32_t now)
{
	if (now - *marker > cc->rtt)
		*marker = now - cc->rtt;
}

/* w * (1 - min(beta * over / signal, max_md)) */
static uint32_t
decrease(uint32_t w, uint32_t beta, uint32_t over, uint32_t signal, uint32_t max_md)
{
	uint64_t cut = (uint64_t)w * beta * over / signal / FA_FRACTION_ONE;
	uint64_t most = (uint64_t)w * max_md / FA_FRACTION_ONE;

	return w - (uint32_t)MIN(cut, most);
}

static uint32_t
clamp(uint64_t v, uint32_t lo, uint32_t hi)
{
	return (uint32_t)MIN(MAX(v, lo), hi);
}

static void
fabric_window(struct fa_cc *cc, const struct fa_swift_params *p, const struct fa_rue_event *ev,
	uint32_t target)
{
	uint32_t before = cc->fcwnd;
	uint64_t w = before, inc = (uint64_t)p->fabric_ai * ev->acked;

	if (cc->delay <= target)
		w += before >= FA_CWND_ONE ? inc * FA_CWND_ONE / before : inc;
	else if (rtt_elapsed(cc, cc->fabric_marker, ev->now))
		w = decrease(before, p->fabric_md, cc->delay - target, cc->delay, p->fabric_max_md);
	cc->fcwnd = clamp(w, p->fcwnd_min, p->fcwnd_max);
	if (cc->fcwnd < before || cc->fcwnd == p->fcwnd_min)
		cc->fabric_marker = ev->now;
	else
		update_marker(cc, &cc->fabric_marker, ev->now);
}

static void
nic_window(const struct fa_cc *cc, struct fa_cc_nic *nic, const struct fa_swift_params *p,
	const struct fa_rue_event *ev)
{
	uint32_t before = nic->ncwnd, w = before;
	bool elapsed = rtt_elapsed(cc, nic->marker, ev->now);

	if (ev->rx_level < p->rx_level_target) {
		if (!nic->up || elapsed) {
			w += p->nic_ai;
			nic->up = true;
		}
	} else if (elapsed) {
		uint32_t over = ev->rx_level - p->rx_level_target;

		w = decrease(before, p->nic_md, over, MAX(ev->rx_level, 1), p->nic_max_md);
		nic->up = false;
	}
	nic->ncwnd = clamp(w, p->ncwnd_min, p->ncwnd_max);
	if (nic->ncwnd != before || nic->ncwnd == p->ncwnd_min || nic->ncwnd == p->ncwnd_max)
		nic->marker = ev->now;
	else
		update_marker(cc, &nic->marker, ev->now);
}

/* Cuts ncwnd when the peer had no resources for a request (10.3.3). */
static void
nic_exhausted(const struct fa_cc *cc, struct fa_cc_nic *nic, const struct fa_swift_params *p,
	const struct fa_rue_event *ev)
{
	if (!nic->up && !rtt_elapsed(cc, nic->marker, ev->now))
		return;
	nic->ncwnd = clamp(nic->ncwnd - (uint64_t)nic->ncwnd * p->nic_max_md / FA_FRACTION_ONE,
		p->ncwnd_min, p->ncwnd_max);
	nic->up = false;
	nic->marker = ev->now;
}

static void
on_retransmit(struct fa_cc *cc, const struct fa_swift_params *p, const struct fa_rue_event *ev)
{
	uint32_t half =
		cc->fcwnd - (uint32_t)((uint64_t)cc->fcwnd * p->fabric_max_md / FA_FRACTION_ONE);

	if (ev->retransmit == FA_RUE_EARLY && !p->early_cuts)
		return;
	if (ev->retransmits >= p->retransmit_limit)
		cc->fcwnd = p->fcwnd_min;
	else if (ev->retransmits == 1 && rtt_elapsed(cc, cc->fabric_marker, ev->now))
		cc->fcwnd = MAX(half, p->fcwnd_min);
	else
		return;
	cc->fabric_marker = ev->now;
}

static uint32_t
measured_delay(const struct fa_swift_params *p, const struct fa_rue_event *ev)
{
	uint32_t full = rue_span(ev->t1, ev->t4), there = rue_span(ev->t2, ev->t3);

	switch (p->delay_select) {
	case FA_DELAY_FULL:
		return full;
	case FA_DELAY_FORWARD:
		return rue_span(ev->t1, ev->t2);
	case FA_DELAY_REVERSE:
		return rue_span(ev->t3, ev->t4);
	default:
		return full > there ? full - there : 0;
	}
}

static void
on_ack_or_nack(struct fa_cc *cc, struct fa_cc_nic *nic, const struct fa_swift_params *p,
	const struct fa_rue_event *ev, struct fa_rue_result *res)
{
	uint32_t window = MIN(cc->fcwnd, nic->ncwnd);
	uint32_t target = fa_swift_target(p, cc, ev->hops);
	bool congested;

	cc->rtt = rue_smooth(cc->rtt, MAX(rue_span(ev->t1, ev->now), 1), p->rtt_alpha);
	cc->delay = rue_smooth(cc->delay, measured_delay(p, ev), p->delay_alpha);
	congested = (uint64_t)cc->delay * FA_FRACTION_ONE > (uint64_t)target * p->plb_delay;
	fabric_window(cc, p, ev, target);
	if (ev->type == FA_RUE_NACK && ev->nack_code == NACK_RESOURCES)
		nic_exhausted(cc, nic, p, ev);
	else
		nic_window(cc, nic, p, ev);
	if (ev->type == FA_RUE_ACK)
		res->randomize_path = fa_plb_ack(cc, p, window, ev->acked, congested);
}

static void
swift_run(struct fa_cc *cc, struct fa_cc_nic *nic, const struct fa_rue_event *ev,
	struct fa_rue_result *res, const void *param)
{
	const struct fa_swift_params *p = param != NULL ? param : &defaults;

	res->randomize_path = false;
	if (ev->type == FA_RUE_RETRANSMIT)
		on_retransmit(cc, p, ev);
	else
		on_ack_or_nack(cc, nic, p, ev, res);
	rue_set_rto(cc, p->rto_scalar);
	cc->ipg = cc->fcwnd >= FA_CWND_ONE
			  ? 0
			  : (uint32_t)MIN((uint64_t)cc->rtt * FA_CWND_ONE / cc->fcwnd, FA_IPG_MAX);
}

static void
swift_init(struct fa_cc *cc, struct fa_cc_nic *nic, const void *param)
{
	const struct fa_swift_params *p = param != NULL ? param : &defaults;

	cc->fcwnd = p->fcwnd_initial;
	cc->base_delay = p->base_delay;
	cc->rto = cc->rto_min;
	if (nic != NULL)
		nic->ncwnd = p->ncwnd_initial;
}

const struct fa_algorithm fa_swift = {.name = "swift", .init = swift_init, .run = swift_run};
