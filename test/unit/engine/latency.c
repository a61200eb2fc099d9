/* SPDX-License-Identifier: BSD-3-Clause */
/* The latencies that engine stages publish, of both transports, on a virtual clock. */
#include <criterion/criterion.h>
#include <string.h>

#include "../../../lib/base/mem.h"
#include "falcon_rig.h"

TestSuite(engine_latency, .init = pair_eal);

/* Returns the number of requests of a node and a transport that count, and sets *l to them. */
static uint64_t
counted(int node, const char *transport, struct eng_latency *l)
{
	unsigned found = 0;
	uint64_t n = 0;

	for (struct eng_latency one = {.next = 0}; eng_latency_next(frig.n[node].e, &one);) {
		cr_assert_str_eq(one.stage_name, "engine0");
		if (strcmp(one.transport, transport) != 0)
			continue;
		*l = one;
		found++;
	}
	cr_assert_eq(found, 1);
	for (unsigned i = 0; i <= RD_LATENCY_BOUNDS; i++)
		n += l->bucket[i];
	return n;
}

static void
reads(enum saker_transport transport, const char *name, const char *other)
{
	uint64_t shortest = UINT64_MAX, longest = 0;
	struct eng_latency l;

	frig_start(NULL);
	frig_connect_over(transport);
	for (unsigned i = 0; i < RD_SAMPLE; i++) {
		uint64_t took = frig.now;

		frig_post(0, RD_READ, 8, 0);
		cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
		took = frig.now - took;
		shortest = SK_MIN(shortest, took);
		longest = SK_MAX(longest, took);
	}
	cr_assert_eq(counted(0, name, &l), 1);
	/* The client posts before the turn that takes the request, and polls after the last one. */
	cr_assert(l.sum + 2 * frig.step >= shortest && l.sum <= longest, "%lu of %lu to %lu ns",
		l.sum, shortest, longest);
	cr_assert_eq(counted(0, other, &l), 0);
	cr_assert_eq(counted(1, name, &l), 0);
	frig_stop();
}

Test(engine_latency, a_stage_publishes_the_time_of_one_iwarp_request_in_64)
{
	reads(SAKER_IWARP, "iwarp", "falcon");
}

Test(engine_latency, a_stage_publishes_the_time_of_one_falcon_request_in_64)
{
	reads(SAKER_FALCON, "falcon", "iwarp");
}
