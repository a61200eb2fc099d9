/* SPDX-License-Identifier: BSD-3-Clause */
/* The allocator of home regions, compared with a model. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "../../../lib/engine/control/core/heap.h"

#define LEN    (1u << 20)
#define PIECES 200

static uint8_t *memory;
static struct heap heap;

static void
setup(void)
{
	memory = malloc(LEN);
	memset(memory, 0xee, LEN);
	cr_assert_eq(ctl_heap_init(&heap, memory, LEN, PIECES), 0);
}

static void
finish(void)
{
	ctl_heap_fini(&heap);
	free(memory);
}

TestSuite(engine_heap, .init = setup, .fini = finish);

static uint32_t
next(uint32_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 17;
	*x ^= *x << 5;
	return *x;
}

/* Checks that pieces are aligned, within the heap and disjoint, that only the bytes to clear are
 * written, and that all bytes add up. */
Test(engine_heap, random_pieces_never_overlap_and_all_comes_back)
{
	struct {
		uint32_t piece;
		uint64_t off, len;
	} held[PIECES];
	static uint8_t owner[LEN / HEAP_UNIT];
	unsigned n = 0, refused = 0;
	uint64_t used = 0, off;
	uint32_t seed = 12345;

	for (unsigned step = 0; step < 40000; step++) {
		uint32_t r = next(&seed);

		if (n < PIECES && (n == 0 || r % 5 < 3)) {
			uint64_t len = 1 + next(&seed) % (r % 7 ? 2000 : 90000);
			uint64_t round = (len + HEAP_UNIT - 1) / HEAP_UNIT * HEAP_UNIT;
			uint32_t piece = ctl_heap_alloc(&heap, len, len / 2, &off);

			if (piece == HEAP_NONE) {
				refused++;
				continue;
			}
			cr_assert_eq(off % HEAP_UNIT, 0);
			cr_assert_leq(off + round, LEN);
			for (uint64_t u = off / HEAP_UNIT; u < (off + round) / HEAP_UNIT; u++) {
				cr_assert_eq(owner[u], 0, "step %u: unit %lu twice", step,
					(unsigned long)u);
				owner[u] = 1;
			}
			for (uint64_t b = 0; b < round; b++)
				cr_assert_eq(memory[off + b], b < len / 2 ? 0 : 0xee);
			memset(memory + off, 0xee, round);
			held[n].piece = piece;
			held[n].off = off;
			held[n++].len = round;
			used += round;
		} else {
			unsigned i = next(&seed) % n;

			memset(&owner[held[i].off / HEAP_UNIT], 0, held[i].len / HEAP_UNIT);
			used -= held[i].len;
			ctl_heap_free(&heap, held[i].piece);
			held[i] = held[--n];
		}
		cr_assert_eq(heap.used, used);
	}
	cr_assert_gt(refused, 0, "the heap was never full: the test is too tame");
	while (n)
		ctl_heap_free(&heap, held[--n].piece);
	/* The blocks are joined again: one piece can have all bytes. */
	cr_assert_neq(ctl_heap_alloc(&heap, LEN, 0, &off), HEAP_NONE);
	cr_assert_eq(off, 0);
	cr_assert_eq(heap.used, LEN);
}

Test(engine_heap, what_fits_is_found_behind_many_that_do_not)
{
	uint32_t piece[PIECES];
	uint64_t off;

	/* Free blocks of one size class: all but the last are slightly too small. */
	for (unsigned i = 0; i < 60; i++)
		piece[i] = ctl_heap_alloc(&heap,
			i == 0  ? 127 * 64
			: i % 2 ? 64
				: 100 * 64,
			0, &off);
	cr_assert_neq(ctl_heap_alloc(&heap, LEN - heap.used, 0, &off), HEAP_NONE);
	for (unsigned i = 0; i < 60; i += 2)
		ctl_heap_free(&heap, piece[i]);
	cr_assert_neq(ctl_heap_alloc(&heap, 120 * 64, 0, &off), HEAP_NONE);
	cr_assert_eq(off, 0);
	cr_assert_eq(ctl_heap_alloc(&heap, 120 * 64, 0, &off), HEAP_NONE);
}

/* A client decides how many blocks a size class has, so their number must not decide the time of a
 * search. */
Test(engine_heap, a_search_examines_a_bounded_number_of_blocks)
{
	enum { BLOCKS = 400 };
	uint32_t piece[2 * BLOCKS];
	uint64_t off;

	ctl_heap_fini(&heap);
	cr_assert_eq(ctl_heap_init(&heap, memory, LEN, 2 * BLOCKS + 1), 0);
	/* The block that would fit is freed first, so it is the last of its class. */
	for (unsigned i = 0; i < 2 * BLOCKS; i++)
		piece[i] = ctl_heap_alloc(&heap, i % 2 ? 64 : i == 0 ? 31 * 64 : 17 * 64, 0, &off);
	cr_assert_neq(ctl_heap_alloc(&heap, LEN - heap.used, 0, &off), HEAP_NONE);
	for (unsigned i = 0; i < 2 * BLOCKS; i += 2)
		ctl_heap_free(&heap, piece[i]);
	cr_assert_eq(ctl_heap_alloc(&heap, 30 * 64, 0, &off), HEAP_NONE);
	cr_assert_neq(ctl_heap_alloc(&heap, 17 * 64, 0, &off), HEAP_NONE);
}

Test(engine_heap, nothing_and_too_much_are_refused)
{
	uint64_t off;

	cr_assert_eq(ctl_heap_alloc(&heap, 0, 0, &off), HEAP_NONE);
	cr_assert_eq(ctl_heap_alloc(&heap, LEN + 1, 0, &off), HEAP_NONE);
	cr_assert_eq(ctl_heap_alloc(&heap, UINT64_MAX, 0, &off), HEAP_NONE);
	cr_assert_eq(ctl_heap_alloc(&heap, UINT64_MAX - 62, 0, &off), HEAP_NONE);
	cr_assert_eq(heap.used, 0);
}

Test(engine_heap, bookkeeping_is_bounded)
{
	uint32_t i, piece[2 * PIECES + 2];
	uint64_t off;

	for (i = 0; i < 2 * PIECES + 2; i++) {
		piece[i] = ctl_heap_alloc(&heap, 64, 0, &off);
		if (piece[i] == HEAP_NONE)
			break;
	}
	cr_assert_geq(i, PIECES);
	cr_assert_leq(heap.nblocks, 2 * PIECES + 1);
	while (i)
		ctl_heap_free(&heap, piece[--i]);
	cr_assert_eq(heap.used, 0);
	cr_assert_neq(ctl_heap_alloc(&heap, LEN, 0, &off), HEAP_NONE);
}
