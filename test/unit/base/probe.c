/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes of memory whose pages are missing. */
#include <criterion/criterion.h>

#include "../../support/absent.h"

#define PAGE 4096u

Test(base_probe, a_missing_page_is_found_and_the_program_continues)
{
	struct absent a;

	absent_init(&a, 4 * PAGE);
	cr_assert_not(sk_probe(a.mem));
	absent_provide(&a, 2 * PAGE);
	cr_assert(sk_probe(a.mem));
	cr_assert(sk_probe(a.mem + 2 * PAGE - 1));
	cr_assert_not(sk_probe(a.mem + 2 * PAGE));
	absent_fini(&a);
}

Test(base_probe, a_range_reports_its_first_missing_byte)
{
	struct absent a;

	absent_init(&a, 4 * PAGE);
	absent_provide(&a, 2 * PAGE);
	cr_assert_null(sk_probe_range(a.mem, 2 * PAGE));
	cr_assert_null(sk_probe_range(a.mem + PAGE - 1, 2));
	cr_assert_eq(sk_probe_range(a.mem + 100, 2 * PAGE), a.mem + 2 * PAGE);
	cr_assert_eq(sk_probe_range(a.mem + 2 * PAGE + 7, 1), a.mem + 2 * PAGE + 7);
	absent_fini(&a);
}

Test(base_probe, other_code_is_no_probe)
{
	cr_assert_eq(sk_probe_landing(0), 0);
	cr_assert_eq(sk_probe_landing((uintptr_t)sk_probe_landing), 0);
}
