/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Swift (section 10.3): the window follows the delay of the fabric. All computations use integers:
 * the same events give the same windows on every machine.
 */
#include <math.h>

#include "rue.h"

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

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
fa_swift_flow_scaling(struct fa_swift_params *p)
{
	double lo = 1 / sqrt((double)p->flow_from / FA_CWND_ONE);
	double hi = 1 / sqrt((double)p->flow_to / FA_CWND_ONE);
	double a = p->flow_max / (lo - hi);

	p->flow_a = (uint32_t)lrint(a * 1024);
	p->flow_b = (uint32_t)lrint(a * hi * 1024);
}

/* Returns the window after a cut: w * (1 - min(md * over / delay, max_md)). */
static uint32_t
swift_decrease(uint32_t w, const struct fa_swift_params *p, uint32_t over, uint32_t delay)
{
	uint64_t cut = (uint64_t)w * p->md * over / delay / FA_FRACTION_ONE;
	uint64_t most = (uint64_t)w * p->max_md / FA_FRACTION_ONE;

	return w - (uint32_t)MIN(cut, most);
}

/* Returns the window after the largest cut. */
static uint32_t
swift_decrease_most(uint32_t w, const struct fa_swift_params *p)
{
	return w - (uint32_t)((uint64_t)w * p->max_md / FA_FRACTION_ONE);
}

static void
fabric_window(struct fa_cc *cc, const struct fa_swift_params *p, const struct fa_rue_event *ev,
	uint32_t target)
{
	uint32_t before = cc->fcwnd;
	uint64_t w = before, inc = (uint64_t)p->ai * ev->acked;
	bool dropped = ev->eack_drop && p->drop_cuts;

	if (cc->delay <= target && !dropped)
		w += before >= FA_CWND_ONE ? inc * FA_CWND_ONE / before : inc;
	else if (fa_rue_elapsed(cc, cc->fabric_marker, ev->now))
		w = dropped ? swift_decrease_most(before, p)
			    : swift_decrease(before, p, cc->delay - target, cc->delay);
	cc->fcwnd = (uint32_t)MIN(MAX(w, p->min), p->max);
	if (cc->fcwnd < before || cc->fcwnd == p->min)
		cc->fabric_marker = ev->now;
	else
		fa_rue_drag(cc, &cc->fabric_marker, ev->now);
}

static void
on_retransmit(struct fa_cc *cc, const struct fa_swift_params *p, const struct fa_rue_event *ev)
{
	if (ev->retransmit == FA_RUE_EARLY && !p->early_cuts)
		return;
	if (ev->retransmits >= p->retransmit_limit)
		cc->fcwnd = p->min;
	else if (ev->retransmits == 1 && fa_rue_elapsed(cc, cc->fabric_marker, ev->now))
		cc->fcwnd = MAX(swift_decrease_most(cc->fcwnd, p), p->min);
	else
		return;
	cc->fabric_marker = ev->now;
}

static void
on_ack_or_nack(struct fa_cc *cc, struct fa_cc_nic *nic, const struct fa_rue_params *p,
	const struct fa_rue_event *ev, struct fa_rue_result *res)
{
	const struct fa_swift_params *s = &p->swift;
	uint32_t window = MIN(cc->fcwnd, nic->ncwnd);
	uint32_t target = fa_swift_target(s, cc, ev->hops);
	bool late;

	fa_rue_round_trip(cc, ev, p);
	cc->delay = fa_rue_smooth(cc->delay, fa_rue_delay(ev, s->delay_select), s->delay_alpha);
	late = (uint64_t)cc->delay * FA_FRACTION_ONE > (uint64_t)target * s->plb_delay;
	fabric_window(cc, s, ev, target);
	fa_nic_window(cc, nic, &p->nic, ev);
	if (ev->type == FA_RUE_ACK)
		res->randomize_path =
			fa_plb_ack(cc, &p->plb, window, ev->acked, late ? ev->acked : 0);
}

static void
swift_run(struct fa_cc *cc, struct fa_cc_nic *nic, const struct fa_rue_event *ev,
	struct fa_rue_result *res, const void *param)
{
	const struct fa_rue_params *p = param != NULL ? param : &fa_rue_defaults;

	res->randomize_path = false;
	if (ev->type == FA_RUE_RETRANSMIT)
		on_retransmit(cc, &p->swift, ev);
	else
		on_ack_or_nack(cc, nic, p, ev, res);
	fa_rue_times(cc, p);
}

static void
swift_init(struct fa_cc *cc, struct fa_cc_nic *nic, const void *param)
{
	const struct fa_rue_params *p = param != NULL ? param : &fa_rue_defaults;

	cc->fcwnd = p->swift.initial;
	cc->base_delay = p->swift.base_delay;
	cc->rto = cc->rto_min;
	if (nic != NULL)
		nic->ncwnd = p->nic.initial;
}

const struct fa_algorithm fa_swift = {.name = "swift", .init = swift_init, .run = swift_run};
