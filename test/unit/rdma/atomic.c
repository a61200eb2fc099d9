/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic Operations against RFC 7306 5.1. The oracle is the RFC's pseudocode, implemented bit by
 * bit with the RFC's variable names; it shares no code with the functions under test.
 */
#include <criterion/criterion.h>

#include "../../../lib/rdma/atomic.h"

#define CASES 1000000

/* RFC 7306 5.1.1 */
static uint64_t
oracle_fetch_add(uint64_t original_remote_data_value, uint64_t add_data, uint64_t add_mask)
{
	uint64_t bit_location = 1, carry = 0, remote_data_value = 0;

	for (int bit = 0; bit <= 63; bit++) {
		uint64_t val1, val2, sum;

		if (bit != 0)
			bit_location = bit_location << 1;
		val1 = (original_remote_data_value & bit_location) >> bit;
		val2 = (add_data & bit_location) >> bit;
		sum = carry + val1 + val2;
		carry = (sum & 2) >> 1;
		sum = sum & 1;
		if (sum)
			remote_data_value |= bit_location;
		carry = ((carry) && (!(add_mask & bit_location)));
	}
	return remote_data_value;
}

/* RFC 7306 5.1.2, one bit at a time */
static uint64_t
oracle_cmp_swap(uint64_t original, uint64_t swap, uint64_t swap_mask, uint64_t compare,
	uint64_t compare_mask)
{
	uint64_t value = 0;

	for (int bit = 0; bit <= 63; bit++)
		if ((compare_mask >> bit & 1) && (compare >> bit & 1) != (original >> bit & 1))
			return original;
	for (int bit = 0; bit <= 63; bit++) {
		uint64_t from = swap_mask >> bit & 1 ? swap : original;

		value |= (from >> bit & 1) << bit;
	}
	return value;
}

/* splitmix64 */
static uint64_t
rnd(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* Masks with few, half and most of their bits set, and both ends. */
static uint64_t
rnd_mask(uint64_t *state)
{
	uint64_t a = rnd(state), b = rnd(state), c = rnd(state);

	switch (rnd(state) % 6) {
	case 0:
		return a & b & c;
	case 1:
		return a | b | c;
	case 2:
		return 1ull << a % 64;
	case 3:
		return ~(1ull << a % 64);
	case 4:
		return (1ull << a % 64) - 1;
	default:
		return a;
	}
}

static const uint64_t edges[] = {0, 1, 2, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
	0x7fffffffffffffff, 0x8000000000000000, 0x8000000000000001, 0x8080808080808080,
	0x8000000080000000, 0x5555555555555555, 0xaaaaaaaaaaaaaaaa, 0xfffffffffffffffe,
	0xffffffffffffffff};
#define EDGES ((int)(sizeof(edges) / sizeof(edges[0])))

static void
one_fetch_add(uint64_t value, uint64_t add, uint64_t mask)
{
	uint64_t want = oracle_fetch_add(value, add, mask), word = value, original = ~value;

	cr_assert_eq(rd_add_fields(value, add, mask), want, "%lx + %lx / %lx", value, add, mask);
	cr_assert(rd_fetch_add(&word, add, mask, &original));
	cr_assert_eq(original, value);
	cr_assert_eq(word, want, "%lx + %lx / %lx: %lx, not %lx", value, add, mask, word, want);
}

static void
one_cmp_swap(
	uint64_t value, uint64_t swap, uint64_t swap_mask, uint64_t compare, uint64_t compare_mask)
{
	uint64_t want = oracle_cmp_swap(value, swap, swap_mask, compare, compare_mask);
	uint64_t word = value, original = ~value;

	cr_assert(rd_cmp_swap(&word, swap, swap_mask, compare, compare_mask, &original));
	cr_assert_eq(original, value);
	cr_assert_eq(word, want, "%lx: %lx/%lx if %lx/%lx", value, swap, swap_mask, compare,
		compare_mask);
}

Test(rdma_atomic, fetch_add_a_million_random_cases_7306_5_1_1)
{
	uint64_t state = 7306;

	for (int i = 0; i < CASES; i++) {
		uint64_t value = rnd(&state), add = rnd(&state);

		one_fetch_add(value, add, rnd_mask(&state));
	}
}

Test(rdma_atomic, fetch_add_edge_masks_7306_5_1_1)
{
	for (int v = 0; v < EDGES; v++)
		for (int a = 0; a < EDGES; a++)
			for (int m = 0; m < EDGES; m++)
				one_fetch_add(edges[v], edges[a], edges[m]);
}

/* Checks the oracle, too, against values computed by hand. */
Test(rdma_atomic, fetch_add_known_answers_7306_5_1_1)
{
	/* No mask: one sum of 64 bits. */
	cr_assert_eq(oracle_fetch_add(0x00000000ffffffff, 1, 0), 0x0000000100000000);
	/* Two fields of 32 bits: the carry out of bit 31 is dropped, and out of bit 63. */
	cr_assert_eq(oracle_fetch_add(0x00000000ffffffff, 1, 0x80000000), 0);
	cr_assert_eq(
		oracle_fetch_add(0xffffffffffffffff, 0x0000000100000001, 0x8000000080000000), 0);
	/* Eight fields of one byte. */
	cr_assert_eq(oracle_fetch_add(0xff01ff01ff01ff01, 0x0101010101010101, 0x8080808080808080),
		0x0002000200020002);
	/* 64 fields of one bit: exclusive or */
	cr_assert_eq(oracle_fetch_add(0xff00ff00ff00ff00, 0xf0f0f0f0f0f0f0f0, ~0ull),
		0x0ff00ff00ff00ff0);
	one_fetch_add(0x00000000ffffffff, 1, 0x80000000);
	one_fetch_add(0xff01ff01ff01ff01, 0x0101010101010101, 0x8080808080808080);
	one_fetch_add(0xff00ff00ff00ff00, 0xf0f0f0f0f0f0f0f0, ~0ull);
}

/* RFC 7306 1.1: a program adds 0 to detect Atomics, which changes nothing. */
Test(rdma_atomic, adding_0_changes_nothing_7306_1_1)
{
	for (int v = 0; v < EDGES; v++)
		for (int m = 0; m < EDGES; m++) {
			uint64_t word = edges[v], original = 0;

			cr_assert(rd_fetch_add(&word, 0, edges[m], &original));
			cr_assert_eq(word, edges[v]);
			cr_assert_eq(original, edges[v]);
		}
}

Test(rdma_atomic, cmp_swap_a_million_random_cases_7306_5_1_2)
{
	uint64_t state = 7306512, swapped = 0;

	for (int i = 0; i < CASES; i++) {
		uint64_t value = rnd(&state), swap = rnd(&state), swap_mask = rnd_mask(&state);
		uint64_t compare_mask = rnd_mask(&state), compare = rnd(&state);

		/* Mostly equal in the compared bits, sometimes different in one bit. */
		if (rnd(&state) % 4 != 0)
			compare = (value & compare_mask) | (compare & ~compare_mask);
		if (rnd(&state) % 4 == 0)
			compare ^= 1ull << rnd(&state) % 64;
		swapped += oracle_cmp_swap(value, swap, swap_mask, compare, compare_mask) != value;
		one_cmp_swap(value, swap, swap_mask, compare, compare_mask);
	}
	cr_assert(swapped > CASES / 4 && swapped < CASES * 3ull / 4, "both outcomes were tried");
}

Test(rdma_atomic, cmp_swap_edge_masks_7306_5_1_2)
{
	for (int v = 0; v < EDGES; v++)
		for (int s = 0; s < EDGES; s++)
			for (int c = 0; c < EDGES; c++)
				for (int m = 0; m < EDGES * EDGES; m++)
					one_cmp_swap(edges[v], edges[s], edges[m % EDGES], edges[c],
						edges[m / EDGES]);
}

Test(rdma_atomic, cmp_swap_known_answers_7306_5_1_2)
{
	uint64_t word = 0x1122334455667788, original;

	/* Equal in the low byte: the high half is swapped. */
	cr_assert(rd_cmp_swap(&word, ~0ull, 0xffffffff00000000, 0xabcd88, 0xff, &original));
	cr_assert_eq(word, 0xffffffff55667788);
	cr_assert_eq(original, 0x1122334455667788);
	/* Unequal: the word does not change, and the original value is returned all the same. */
	cr_assert(rd_cmp_swap(&word, 0, ~0ull, 0, ~0ull, &original));
	cr_assert_eq(word, 0xffffffff55667788);
	cr_assert_eq(original, 0xffffffff55667788);
	/* An empty compare mask always agrees. */
	cr_assert(rd_cmp_swap(&word, 42, ~0ull, 0, 0, &original));
	cr_assert_eq(word, 42);
}

Test(rdma_atomic, swap_draft_5_1_2)
{
	uint64_t word = 7;

	cr_assert_eq(rd_swap(&word, 0x8000000000000001), 7);
	cr_assert_eq(word, 0x8000000000000001);
	cr_assert_eq(rd_swap(&word, 0), 0x8000000000000001);
	cr_assert_eq(word, 0);
}

/* ---- The address of the word ---- */

static uint64_t memory[4];

Test(rdma_atomic, the_buffer_address_must_be_aligned_7306_5_1)
{
	struct rd_extent extent = {.len = 32, .host = (uint8_t *)memory};
	struct rd_mr mr = {.base = 0x1000, .len = 32, .nextents = 1, .extents = &extent};

	for (uint64_t off = 0; off <= 24; off++) {
		uint64_t *want = off % 8 == 0 ? &memory[off / 8] : NULL;

		cr_assert_eq(rd_atomic_word(&mr, 0x1000 + off), want, "offset %lu", off);
	}
}

/* The Tagged Offset may have any value; the address that it refers to must be aligned (RFC 7306
 * 5.2.1). */
Test(rdma_atomic, an_odd_tagged_offset_may_be_an_aligned_address_7306_5_2_1)
{
	struct rd_extent extent = {.len = 29, .host = (uint8_t *)memory + 3};
	struct rd_mr mr = {.base = 0, .len = 29, .nextents = 1, .extents = &extent};

	cr_assert_eq(rd_atomic_word(&mr, 5), &memory[1]);
	cr_assert_eq(rd_atomic_word(&mr, 21), &memory[3]);
	cr_assert_null(rd_atomic_word(&mr, 0));
	cr_assert_null(rd_atomic_word(&mr, 8));
}

Test(rdma_atomic, a_word_across_two_extents_is_none)
{
	struct rd_extent extents[2] = {{.off = 0, .len = 12, .host = (uint8_t *)memory},
		{.off = 12, .len = 8, .host = (uint8_t *)memory + 16}};
	struct rd_mr mr = {.base = 0, .len = 20, .nextents = 2, .extents = extents};

	cr_assert_eq(rd_atomic_word(&mr, 0), &memory[0]);
	cr_assert_null(rd_atomic_word(&mr, 8));
	cr_assert_eq(rd_atomic_word(&mr, 12), &memory[2]);
}
