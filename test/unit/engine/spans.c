/* SPDX-License-Identifier: BSD-3-Clause */
/* The index of guarded mappings: what it finds among many, and while another thread changes it. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "../../../lib/engine/common/spans.h"
#include "../../support/rng.h"

#define PAGE  4096ul
#define FIRST 0x7f0000000000ul
#define STEP  (4 * PAGE) /* from the start of a mapping to that of the next */
#define OWN   (ENG_SPANS / 2)

static uintptr_t
base_of(uint32_t i)
{
	return FIRST + i * STEP;
}

static size_t
len_of(uint32_t i)
{
	return (1 + i % 4) * PAGE; /* the fourth has no gap behind it */
}

static void
check(uint32_t i, bool added)
{
	const int expected = added ? (int)i : -1;

	cr_assert_eq(eng_span_find(base_of(i)), expected, "mapping %u", i);
	cr_assert_eq(eng_span_find(base_of(i) + len_of(i) - 1), expected, "mapping %u", i);
	if (len_of(i) < STEP)
		cr_assert_eq(eng_span_find(base_of(i) + len_of(i)), -1, "mapping %u", i);
}

Test(engine_spans, each_of_many_mappings_is_found_and_nothing_beside_it)
{
	static uint32_t order[ENG_SPANS];
	uint64_t rng = 7;

	for (uint32_t i = 0; i < ENG_SPANS; i++) {
		uint32_t other = (uint32_t)rng_below(&rng, i + 1);

		order[i] = order[other];
		order[other] = i;
	}
	cr_assert_eq(eng_span_find(FIRST), -1);
	/* A part in any order; each insertion moves those behind it. */
	for (uint32_t i = 0; i < ENG_SPANS / 16; i++)
		eng_span_add(base_of(order[i]), len_of(order[i]), order[i]);
	for (uint32_t i = 0; i < ENG_SPANS; i++)
		check(order[i], i < ENG_SPANS / 16);
	for (uint32_t i = 0; i < ENG_SPANS / 32; i++)
		eng_span_remove(base_of(order[i]));
	for (uint32_t i = 0; i < ENG_SPANS; i++)
		check(order[i], i >= ENG_SPANS / 32 && i < ENG_SPANS / 16);
	cr_assert_eq(eng_span_find(0), -1);
	cr_assert_eq(eng_span_find(UINTPTR_MAX), -1);
}

Test(engine_spans, the_index_holds_all_that_the_table_does)
{
	for (uint32_t i = 0; i < ENG_SPANS; i++)
		eng_span_add(base_of(i), len_of(i), i);
	for (uint32_t i = 0; i < ENG_SPANS; i++)
		check(i, true);
	for (uint32_t i = ENG_SPANS; i-- > 0;)
		eng_span_remove(base_of(i));
	cr_assert_eq(eng_span_find(FIRST), -1);
}

static bool stop; /* atomic */

/* Adds and removes mappings on both sides of OWN, until `stop`. */
static void *
neighbours(void *arg)
{
	uint64_t rng = 11, *changes = arg;

	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		uint32_t first = OWN - 20 + (uint32_t)rng_below(&rng, 15);

		for (uint32_t i = 0; i < 40; i++)
			if (first + i != OWN)
				eng_span_add(base_of(first + i), len_of(first + i), first + i);
		for (uint32_t i = 0; i < 40; i++)
			if (first + i != OWN)
				eng_span_remove(base_of(first + i));
		__atomic_fetch_add(changes, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

Test(engine_spans, a_mapping_is_found_while_its_neighbours_come_and_go)
{
	pthread_t thread;
	uint64_t changes = 0;

	eng_span_add(base_of(OWN), len_of(OWN), OWN);
	cr_assert_eq(pthread_create(&thread, NULL, neighbours, &changes), 0);
	while (__atomic_load_n(&changes, __ATOMIC_RELAXED) < 20000)
		check(OWN, true);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	eng_span_remove(base_of(OWN));
	cr_assert_eq(eng_span_find(base_of(OWN)), -1);
}
