/* SPDX-License-Identifier: BSD-3-Clause */
/* The congestion algorithms by name, the defaults of their parameters (10.5), and the delay. */
#include "rue.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../base/mem.h"
#include "falcon.h"

#define TICKS(ns)   ((uint32_t)(((ns)*1000ull + FA_TICK_PS / 2) / FA_TICK_PS))
#define FLOW_MAX    TICKS(5000000)
#define REFUSE(...) (snprintf(err, errlen, __VA_ARGS__), -EINVAL)

/* Swift's values are those of the public models: flow_a = 763 / (1 / sqrt(0.1) - 1 / sqrt(256)),
 * flow_b = flow_a / sqrt(256). DCTCP's are those of RFC 8257, with Swift's initial window. */
const struct fa_rue_params fa_rue_defaults = {
	.rtt_alpha = FA_FRACTION_ONE * 3 / 4,
	.rto_scalar = 2,
	.nic = {.initial = 64 * FA_CWND_ONE,
		.min = FA_CWND_ONE,
		.max = 256 * FA_CWND_ONE,
		.ai = FA_CWND_ONE,
		.md = FA_FRACTION_ONE * 8 / 10,
		.max_md = FA_FRACTION_ONE / 2,
		.level = 15},
	.plb = {.fraction = FA_FRACTION_ONE / 2, .attempts = 5},
	.swift = {.initial = 32 * FA_CWND_ONE,
		.min = FA_CWND_ONE / 100,
		.max = 256 * FA_CWND_ONE,
		.ai = FA_CWND_ONE,
		.md = FA_FRACTION_ONE * 8 / 10,
		.max_md = FA_FRACTION_ONE / 2,
		.delay_alpha = 0,
		.base_delay = TICKS(25000),
		.per_hop = TICKS(1000),
		.flow_max = TICKS(100000),
		.flow_from = FA_CWND_ONE / 10,
		.flow_to = 256 * FA_CWND_ONE,
		.flow_a = 252054,
		.flow_b = 15753,
		.delay_select = FA_DELAY_FABRIC,
		.retransmit_limit = 3,
		.early_cuts = false,
		.drop_cuts = false,
		.plb_delay = FA_FRACTION_ONE * 101 / 100},
	.dctcp = {.initial = 32 * FA_CWND_ONE,
		.min = FA_CWND_ONE,
		.max = 256 * FA_CWND_ONE,
		.ai = FA_CWND_ONE,
		.gain = FA_FRACTION_ONE / 16,
		.early_cuts = true},
	.fixed = {.fcwnd = 128 * FA_CWND_ONE, .ncwnd = 128 * FA_CWND_ONE},
};

const struct fa_algorithm *
fa_algorithm_find(const char *name)
{
	static const struct fa_algorithm *const all[] = {&fa_swift, &fa_dctcp, &fa_fixed};

	for (unsigned i = 0; i < SK_ARRAY_LEN(all); i++)
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	return NULL;
}

uint32_t
fa_rue_delay(const struct fa_rue_event *ev, enum fa_delay_select select)
{
	uint32_t full = fa_rue_span(ev->t1, ev->t4), there = fa_rue_span(ev->t2, ev->t3);

	switch (select) {
	case FA_DELAY_FULL:
		return full;
	case FA_DELAY_FORWARD:
		return fa_rue_span(ev->t1, ev->t2);
	case FA_DELAY_REVERSE:
		return fa_rue_span(ev->t3, ev->t4);
	default:
		return full > there ? full - there : 0;
	}
}

static int
rue_check_windows(
	const char *whose, uint32_t min, uint32_t initial, uint32_t max, char *err, size_t errlen)
{
	if (min > 0 && min <= initial && initial <= max && max <= FA_CWND_MAX)
		return 0;
	return REFUSE("Falcon: the least window of %s (%.4g packets), the initial one "
		      "(%.4g) and the largest one (%.4g) are not in this order within 0..%u",
		whose, (double)min / FA_CWND_ONE, (double)initial / FA_CWND_ONE,
		(double)max / FA_CWND_ONE, FA_CWND_MAX / FA_CWND_ONE);
}

static int
rue_check_factors(const struct fa_rue_params *p, char *err, size_t errlen)
{
	const struct {
		const char *name;
		uint32_t value;
	} rows[] = {{"smoothing of the round trip", p->rtt_alpha},
		{"Swift's smoothing of the delay", p->swift.delay_alpha},
		{"Swift's largest cut", p->swift.max_md}, {"the NIC's largest cut", p->nic.max_md},
		{"DCTCP's gain", p->dctcp.gain}, {"PLB's fraction", p->plb.fraction}};

	for (unsigned i = 0; i < SK_ARRAY_LEN(rows); i++)
		if (rows[i].value > FA_FRACTION_ONE)
			return REFUSE("Falcon: %s of %.4g exceeds 1", rows[i].name,
				(double)rows[i].value / FA_FRACTION_ONE);
	return 0;
}

int
fa_rue_check(const struct fa_rue_params *p, char *err, size_t errlen)
{
	const struct fa_swift_params *s = &p->swift;
	const struct fa_dctcp_params *d = &p->dctcp;

	if (rue_check_windows("Swift", s->min, s->initial, s->max, err, errlen) != 0 ||
		rue_check_windows("DCTCP", d->min, d->initial, d->max, err, errlen) != 0 ||
		rue_check_windows("the NIC", p->nic.min, p->nic.initial, p->nic.max, err, errlen) !=
			0 ||
		rue_check_factors(p, err, errlen) != 0)
		return -EINVAL;
	if (p->fixed.fcwnd < FA_CWND_ONE || p->fixed.ncwnd < FA_CWND_ONE)
		return REFUSE("Falcon: fixed windows of %.4g and %.4g packets: at least "
			      "1",
			(double)p->fixed.fcwnd / FA_CWND_ONE, (double)p->fixed.ncwnd / FA_CWND_ONE);
	/* Otherwise flow_a would not fit into 32 bits. */
	if (s->flow_from == 0 || s->flow_from > s->flow_to / 2 || s->flow_to > FA_CWND_MAX ||
		s->flow_max > FLOW_MAX)
		return REFUSE("Falcon: Swift's flow scaling by %u ticks from %.4g to "
			      "%.4g packets: at most %u ticks, and from half of the latter at most",
			s->flow_max, (double)s->flow_from / FA_CWND_ONE,
			(double)s->flow_to / FA_CWND_ONE, FLOW_MAX);
	return 0;
}
