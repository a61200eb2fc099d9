/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two complete stacks over a wire that loses, duplicates and reorders packets (9, 11). Each request
 * is delivered at most once and completes exactly once, in order where promised, with the right
 * bytes; nothing is left over, and all ends soon after the losses end.
 */
#include <criterion/criterion.h>

#include "../../../lib/falcon/rue.h"
#include "duo.h"

#define SECOND 1000000000ull

struct storm {
	const char *name;
	bool ordered, distance, four_paths, small_pools;
	uint32_t loss, twice, late, rnr, cie, busy;
	uint64_t think_ns;
	unsigned requests;
};

static const struct storm storms[] = {
	{"ordered, clean", .ordered = true, .requests = 4000},
	{"ordered, 5 %", true, .loss = 50000, .twice = 20000, .late = 100000, .requests = 4000},
	{"unordered, 5 %", .loss = 50000, .twice = 20000, .late = 100000, .requests = 4000},
	{"by distance, 5 %", true, true, .loss = 50000, .twice = 20000, .late = 100000,
		.requests = 3000},
	{"20 %", true, .loss = 200000, .late = 300000, .requests = 1500},
	{"four paths", true, false, true, .loss = 30000, .late = 500000, .requests = 3000},
	{"four paths, unordered", false, false, true, .loss = 50000, .late = 500000,
		.requests = 3000},
	{"a slow ULP", true, .loss = 20000, .late = 100000, .think_ns = 200000, .requests = 2000},
	{"not ready", true, .loss = 50000, .late = 100000, .rnr = 20000, .think_ns = 5000,
		.requests = 2000},
	{"not ready, unordered", false, .loss = 50000, .late = 100000, .rnr = 20000,
		.requests = 2000},
	{"refusals", true, .loss = 50000, .late = 100000, .cie = 50000, .requests = 2000},
	{"refusals, unordered", false, .loss = 50000, .late = 100000, .cie = 50000, .rnr = 10000,
		.think_ns = 30000, .requests = 2000},
	{"small pools", true, .small_pools = true, .loss = 20000, .late = 100000, .think_ns = 20000,
		.requests = 1000},
	{"small pools, unordered", false, .small_pools = true, .loss = 20000, .late = 100000,
		.think_ns = 20000, .rnr = 10000, .requests = 1000},
	{"the way to the ULP is full", true, .loss = 50000, .busy = 100000, .requests = 2000},
};

static void
post(struct duo *d, unsigned end)
{
	uint32_t len = wire_random(&d->wire) % (d->payload + 1);

	if (wire_chance(&d->wire, 300000))
		duo_pull(d, end, len);
	else
		duo_push(d, end, len);
}

static void
blow(struct duo *d, unsigned requests)
{
	uint64_t limit = d->now + 20 * SECOND;

	while ((d->end[0].posted < requests || d->end[1].posted < requests) && d->now < limit &&
		d->fault == NULL) {
		for (unsigned i = 0; i < 2; i++)
			while (d->end[i].posted < requests && duo_outstanding(d, i) < 200)
				post(d, i);
		duo_step(d, 1000, 100000);
	}
}

static void
verify(const struct duo *d, const struct storm *st)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct duo_end *e = &d->end[i], *peer = &d->end[!i];

		cr_assert_not(e->dead, "%s: end %u died", st->name, i);
		cr_assert_eq(e->posted, st->requests, "%s: %u posted", st->name, e->posted);
		cr_assert_eq(e->finished, e->posted);
		for (uint32_t k = 0; k < e->posted; k++) {
			cr_assert(e->done[k] == 1 + FA_DONE ||
					  (st->cie && e->done[k] == 1 + FA_TARGET_CIE),
				"%s: request %u ended with %u", st->name, k, e->done[k] - 1u);
			cr_assert_eq(peer->taken[k], 1, "%s: request %u", st->name, k);
		}
	}
}

static void
one(const struct storm *st, uint64_t seed)
{
	struct duo d;

	duo_init(&d, seed);
	d.cfg.rack = !st->distance;
	d.cfg.max_retransmits = 0; /* no limit of attempts: each request must succeed */
	for (unsigned i = 0; i < 2; i++) {
		d.params[i].ordered = st->ordered;
		d.params[i].flows = st->four_paths ? FA_FLOWS_MAX : 1;
	}
	d.wire.loss = st->loss;
	d.wire.twice = st->twice;
	d.wire.late = st->late;
	d.rnr = st->rnr;
	d.cie = st->cie;
	d.busy = st->busy;
	d.think_ns = st->think_ns;
	if (st->small_pools)
		duo_small_pools(&d);
	cr_assert(duo_start(&d));
	blow(&d, st->requests);
	d.wire.loss = d.wire.twice = d.wire.late = 0;
	d.rnr = d.busy = 0;
	cr_assert(duo_settle(&d, SECOND), "%s: %s %u", st->name, d.fault ? d.fault : "not quiet",
		d.fault_rsn);
	verify(&d, st);
	cr_assert(!st->loss || d.wire.lost > 10, "%s: the wire lost %lu", st->name, d.wire.lost);
	cr_assert_eq(d.end[0].rnrs + d.end[1].rnrs > 0, st->rnr > 0, "%s", st->name);
	cr_assert_eq(d.end[0].refusals + d.end[1].refusals > 0, st->cie > 0, "%s", st->name);
	cr_assert(duo_end(&d), "%s: %s %u", st->name, d.fault, d.fault_rsn);
}

Test(storm, each_request_once_over_a_hostile_wire, .timeout = 120)
{
	for (unsigned i = 0; i < sizeof(storms) / sizeof(storms[0]); i++)
		for (uint64_t seed = 1; seed <= 3; seed++)
			one(&storms[i], seed);
}
