/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that can be registered, from the memory part of a flat region. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "fake.h"

#define PAGE  4096
#define PAGES 32

static struct fake f;
static struct saker *s;

static void
setup(void)
{
	s = fake_flat(&f, 1 << 20, PAGES * PAGE);
}

static void
teardown(void)
{
	saker_close(s);
	free(f.home);
}

TestSuite(client_mem, .init = setup, .fini = teardown);

static void
zero(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		cr_assert_eq(p[i], 0, "byte %zu", i);
}

Test(client_mem, memory_is_aligned_zeroed_and_inside_the_clients_part)
{
	uint8_t *a = saker_alloc(s, 1), *b = saker_alloc(s, PAGE + 1);

	cr_assert_eq((uintptr_t)a % PAGE, 0);
	cr_assert_eq((uintptr_t)b % PAGE, 0);
	cr_assert(a >= f.home + f.h->mem && b + 2 * PAGE <= f.home + f.h->size);
	cr_assert(b >= a + PAGE || a >= b + 2 * PAGE);
	zero(a, PAGE);
	zero(b, 2 * PAGE);
}

Test(client_mem, what_was_used_before_is_zeroed_again)
{
	uint8_t *a = saker_alloc(s, 2 * PAGE), *b;

	memset(a, 0xee, 2 * PAGE);
	saker_free(s, a, 2 * PAGE);
	b = saker_alloc(s, 4 * PAGE);
	cr_assert_eq(a, b);
	zero(b, 4 * PAGE);
}

Test(client_mem, all_of_it_can_be_had_and_not_a_page_more)
{
	cr_assert_null(saker_alloc(s, PAGES * PAGE + 1));
	cr_assert_not_null(strstr(saker_error(), "flat region"));
	cr_assert_not_null(saker_alloc(s, PAGES * PAGE));
	cr_assert_null(saker_alloc(s, 1));
	cr_assert_null(saker_alloc(s, 0));
	cr_assert_null(saker_alloc(s, SIZE_MAX));
}

Test(client_mem, neighbours_that_are_free_are_one_run)
{
	uint8_t *p[PAGES];

	for (int i = 0; i < PAGES; i++)
		cr_assert_not_null(p[i] = saker_alloc(s, PAGE));
	/* Frees every other page, then the pages between: no holes stay. */
	for (int i = 0; i < PAGES; i += 2)
		saker_free(s, p[i], PAGE);
	cr_assert_null(saker_alloc(s, 2 * PAGE));
	for (int i = PAGES - 1; i > 0; i -= 2)
		saker_free(s, p[i], PAGE);
	cr_assert_not_null(saker_alloc(s, PAGES * PAGE));
}

Test(client_mem, a_hole_is_used_before_what_lies_behind)
{
	uint8_t *a = saker_alloc(s, 2 * PAGE), *b = saker_alloc(s, PAGE);

	saker_free(s, a, 2 * PAGE);
	cr_assert_eq(saker_alloc(s, PAGE), a);
	cr_assert_eq(saker_alloc(s, PAGE), a + PAGE);
	cr_assert_eq(saker_alloc(s, PAGE), b + PAGE);
}

Test(client_mem, freeing_twice_or_elsewhere_harms_nothing)
{
	uint8_t own[8], *a = saker_alloc(s, 4 * PAGE);

	saker_free(s, a, 4 * PAGE);
	saker_free(s, a, 4 * PAGE);
	saker_free(s, own, sizeof(own));
	saker_free(s, NULL, 5);
	saker_free(s, a, SIZE_MAX);
	cr_assert_not_null(saker_alloc(s, PAGES * PAGE));
	cr_assert_null(saker_alloc(s, 1));
}

Test(client_mem, random_allocations_never_overlap)
{
	struct {
		uint8_t *p;
		size_t len;
	} have[16] = {{0}};
	uint32_t seed = 12345;

	for (int round = 0; round < 5000; round++) {
		unsigned i = (seed = seed * 1664525 + 1013904223) >> 28;

		if (have[i].p != NULL) {
			for (size_t b = 0; b < have[i].len; b += PAGE / 2)
				cr_assert_eq(have[i].p[b], 0x10 + i, "somebody else wrote here");
			saker_free(s, have[i].p, have[i].len);
			have[i].p = NULL;
			continue;
		}
		have[i].len = 1 + (seed >> 8) % (5 * PAGE);
		have[i].p = saker_alloc(s, have[i].len);
		if (have[i].p != NULL)
			memset(have[i].p, 0x10 + (int)i, have[i].len);
	}
	for (unsigned i = 0; i < 16; i++)
		if (have[i].p != NULL)
			saker_free(s, have[i].p, have[i].len);
	cr_assert_not_null(saker_alloc(s, PAGES * PAGE), "everything came home");
}
