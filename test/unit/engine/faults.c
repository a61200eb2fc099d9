/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data path causes no page fault: the engine's tables and rings are populated at its start.
 * After the operations that fill the rings of the ports, which belong to the test, no page is
 * accessed for the first time.
 */
#include <criterion/criterion.h>
#include <sys/resource.h>

#include "falcon_rig.h"

#define WARM       512  /* operations before: their frames fill the rings of the rig's ports */
#define OPERATIONS 6000 /* more than a ring has entries */

TestSuite(engine_faults, .init = pair_eal);

static uint64_t
page_faults(void)
{
	struct rusage u;

	cr_assert_eq(getrusage(RUSAGE_THREAD, &u), 0);
	return (uint64_t)u.ru_minflt + (uint64_t)u.ru_majflt;
}

static void
operations(unsigned n)
{
	static const uint8_t ops[] = {RD_WRITE, RD_READ, RD_FETCH_ADD};

	for (unsigned i = 0; i < n; i++) {
		frig_post(i % 2, ops[i % 3], 8, 1);
		cr_assert_eq(frig_wc(i % 2).status, RD_SUCCESS);
	}
}

static void
none_over(enum saker_transport transport)
{
	uint64_t before, after;

	frig_start(NULL);
	frig_connect_over(transport);
	operations(WARM);
	page_faults(); /* the first call may cause one itself */
	before = page_faults();
	operations(OPERATIONS);
	after = page_faults();
	cr_assert_eq(after - before, 0, "%lu page faults", after - before);
	frig_stop();
}

Test(engine_faults, none_over_iwarp)
{
	none_over(SAKER_IWARP);
}

Test(engine_faults, none_over_falcon)
{
	none_over(SAKER_FALCON);
}
