/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring format: turns, wrap-around of entries and of the 32-bit index, and a consumer that
 * publishes wrong numbers. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/shm/shm_ring.h"

#define LOG2  2
#define COUNT (1u << LOG2)

struct entry {
	uint32_t turn, value;
};

static struct {
	struct shm_cons cons;
	_Alignas(SHM_LINE) struct entry entries[COUNT];
} mem;
static struct shm_prod prod;
static struct shm_take take;

static void
setup(void)
{
	const struct shm_ring_at at = {.entries = offsetof(__typeof__(mem), entries),
		.cons = offsetof(__typeof__(mem), cons),
		.stride = sizeof(struct entry),
		.log2_count = LOG2};

	memset(&mem, 0, sizeof(mem));
	shm_prod_init(&prod, &mem, &at);
	shm_take_init(&take, &mem, &at);
}

TestSuite(shm_ring, .init = setup);

static void
put(uint32_t value)
{
	struct entry *e = shm_prod_entry(&prod);

	cr_assert_gt(shm_prod_room(&prod), 0);
	e->value = value;
	shm_prod_push(&prod);
}

static uint32_t
get(void)
{
	const struct entry *e = shm_take_peek(&take);
	uint32_t value;

	cr_assert_not_null(e);
	value = e->value;
	shm_take_pop(&take);
	return value;
}

Test(shm_ring, fresh_memory_is_an_empty_ring)
{
	cr_assert_null(shm_take_peek(&take));
	cr_assert_eq(shm_prod_room(&prod), COUNT);
}

Test(shm_ring, a_full_ring_has_no_room_until_the_consumer_publishes)
{
	for (uint32_t i = 0; i < COUNT; i++) {
		cr_assert_eq(shm_prod_room(&prod), COUNT - i);
		put(i);
	}
	cr_assert_eq(shm_prod_room(&prod), 0);
	cr_assert_eq(get(), 0);
	cr_assert_eq(shm_prod_room(&prod), 0, "taken, not yet published");
	shm_take_publish(&take);
	cr_assert_eq(shm_prod_room(&prod), 1);
}

Test(shm_ring, order_is_kept_over_many_laps)
{
	uint32_t in = 0, out = 0;

	for (uint32_t round = 0; round < 1000; round++) {
		uint32_t room = shm_prod_room(&prod), bring = SK_MIN(room, 1 + round % COUNT);

		for (uint32_t i = 0; i < bring; i++)
			put(in++);
		for (uint32_t i = 0; i < 1 + round % 3 && out < in; i++)
			cr_assert_eq(get(), out++);
		shm_take_publish(&take);
	}
	cr_assert_gt(out, 100 * COUNT);
	cr_assert_leq(in - out, COUNT);
}

Test(shm_ring, the_index_wraps_at_32_bits)
{
	/* Places both sides shortly before the wrap, as after four billion entries. */
	prod.next = prod.taken = take.next = 0u - 6;
	mem.cons.taken = prod.next;
	for (uint32_t i = 0; i < 12; i++) {
		cr_assert_null(shm_take_peek(&take), "entry %u is not there yet", i);
		cr_assert_eq(shm_prod_room(&prod), COUNT);
		put(i);
		cr_assert_eq(get(), i);
		shm_take_publish(&take);
		prod.taken = mem.cons.taken;
	}
	cr_assert_eq(prod.next, 6);
}

Test(shm_ring, a_turn_is_never_that_of_fresh_memory_and_differs_from_the_lap_before)
{
	const uint32_t at[] = {0, 1, COUNT, 0x7fffffffu, 0xfffffffcu, 0xffffffffu};

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		cr_assert_neq(shm_turn(at[i], LOG2), 0);
		cr_assert_neq(shm_turn(at[i], LOG2), shm_turn(at[i] - COUNT, LOG2));
		cr_assert_neq(shm_turn(at[i], 1), 0);
	}
}

Test(shm_ring, a_consumer_that_lies_gives_no_more_room_than_there_is)
{
	static const uint32_t lies[] = {0x80000000u, 0xffffffffu, COUNT + 1, 5000, 0u - COUNT};

	for (uint32_t i = 0; i < COUNT; i++)
		put(i);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		mem.cons.taken = lies[i];
		cr_assert_eq(shm_prod_room(&prod), 0, "lie %zu", i);
	}
	mem.cons.taken = COUNT;
	cr_assert_eq(shm_prod_room(&prod), COUNT, "the truth still counts");
	mem.cons.taken = 0;
	for (uint32_t i = 0; i < COUNT; i++)
		put(i);
	cr_assert_eq(shm_prod_room(&prod), 0, "what was taken cannot be untaken");
}

Test(shm_ring, an_entry_of_another_lap_is_not_there)
{
	put(7);
	cr_assert_eq(get(), 7);
	mem.entries[1].turn = 2; /* a turn of the next lap */
	cr_assert_null(shm_take_peek(&take));
	mem.entries[1].turn = 0xffffffffu;
	cr_assert_null(shm_take_peek(&take));
	mem.entries[1].turn = 1;
	cr_assert_not_null(shm_take_peek(&take));
}

/* ---- A larger ring ---- */

static struct {
	struct shm_cons cons;
	_Alignas(SHM_LINE) struct entry entries[8 * COUNT];
} larger;

/* Moves both sides to a ring of 2^log2 entries in memory that looks like any lap's. The consumer
 * copies what it has not taken. */
static void
grow(uint8_t log2, uint32_t stale)
{
	const struct shm_ring_at at = {.entries = offsetof(__typeof__(larger), entries),
		.cons = offsetof(__typeof__(larger), cons),
		.stride = sizeof(struct entry),
		.log2_count = log2};
	uint32_t end = take.next, first = take.next, shift;

	while (end - first < take.count &&
		((const struct entry *)shm_take_at(&take, end))->turn == shm_turn(end, LOG2))
		end++;
	shift = shm_ring_moved(end, 1u << log2) - end;
	for (uint32_t i = 0; i < 1u << log2; i++)
		larger.entries[i].turn = shm_turn(end + shift + stale, log2);
	larger.cons.taken = 0x5a5a5a5a;
	shm_prod_move(&prod, &larger, &at);
	for (uint32_t i = first; i != end; i++) {
		struct entry *e = &larger.entries[(i + shift) & ((1u << log2) - 1)];

		e->value = ((const struct entry *)shm_take_at(&take, i))->value;
		e->turn = shm_turn(i + shift, log2);
	}
	shm_take_init(&take, &larger, &at);
	take.next = first + shift;
	shm_take_publish(&take);
}

/* Puts `done` entries through the ring of COUNT, and leaves `left`. */
static void
begin_at(uint32_t base, uint32_t done, uint32_t left)
{
	setup();
	prod.next = prod.taken = take.next = mem.cons.taken = base;
	for (uint32_t i = 0; i < done; i++) {
		put(i);
		cr_assert_eq(get(), i);
		shm_take_publish(&take);
	}
	for (uint32_t i = 0; i < left; i++)
		put(done + i);
}

Test(shm_ring, a_larger_ring_keeps_what_was_left_and_has_the_rest_of_its_room)
{
	for (uint32_t done = 0; done < 40; done++)
		for (uint32_t left = 0; left <= COUNT; left++)
			for (uint8_t log2 = LOG2 + 1; log2 <= LOG2 + 3; log2++) {
				uint32_t n = left;

				begin_at(done % 2 != 0 ? 0u - 16 : 0, done, left);
				grow(log2, done % 3);
				while (shm_prod_room(&prod) > 0)
					put(done + n++);
				cr_assert_eq(n, 1u << log2, "%u of them", n);
				for (uint32_t i = 0; i < n; i++)
					cr_assert_eq(get(), done + i);
				cr_assert_null(shm_take_peek(&take));
			}
}

Test(shm_ring, order_is_kept_over_many_laps_of_a_larger_ring)
{
	for (uint32_t left = 0; left <= COUNT; left++)
		for (uint32_t step = 1; step <= 2 * COUNT; step++) {
			uint32_t in = 3 + left, out = 3;

			begin_at(0, 3, left);
			grow(LOG2 + 1, 0);
			for (uint32_t round = 0; round < 100; round++) {
				uint32_t bring = SK_MIN(shm_prod_room(&prod), step);

				for (uint32_t i = 0; i < bring; i++)
					put(in++);
				for (uint32_t i = 0; i < 1 + round % step && out < in; i++)
					cr_assert_eq(get(), out++);
				shm_take_publish(&take);
			}
			while (out < in)
				cr_assert_eq(get(), out++);
			cr_assert_null(shm_take_peek(&take));
		}
}

Test(shm_ring, a_consumer_that_lies_gets_no_more_room_in_a_larger_ring)
{
	begin_at(0, 1, COUNT);
	mem.cons.taken = 5000;
	grow(LOG2 + 1, 0);
	for (uint32_t i = 0; i < COUNT; i++)
		put(i);
	larger.cons.taken = prod.next + 1;
	cr_assert_eq(shm_prod_room(&prod), 0);
}
