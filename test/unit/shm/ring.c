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
