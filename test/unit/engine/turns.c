/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools whose mbufs take turns: which mbuf comes next, and that none is lost. */
#include <stdlib.h>

#include <criterion/criterion.h>
#include <rte_eal.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/engine/common/mbuf.h"
#include "../../../lib/engine/common/turns.h"

#define COUNT 1500u
#define ROOM  8960u

static struct rte_mempool *pool;
static void *taken[COUNT];
static uint32_t handlers; /* in DPDK's table, before the pool was created */

static void
eal(void)
{
	char *args[] = {"test", "--no-huge", "--no-shconf", "--no-pci", "-m", "64", "-l", "0",
		"--no-telemetry", "--log-level=error"};

	cr_assert_geq(rte_eal_init(SK_ARRAY_LEN(args), args), 0);
	handlers = rte_mempool_ops_table.num_ops;
	pool = eng_turns_create("turns", 0, 0, COUNT, ROOM, SOCKET_ID_ANY);
	cr_assert_not_null(pool);
}

static void
all_home(void)
{
	cr_assert(rte_mempool_full(pool), "%u mbufs are out", rte_mempool_in_use_count(pool));
	rte_mempool_free(pool);
}

TestSuite(engine_turns, .init = eal, .fini = all_home);

/* Takes an mbuf and frees it. Returns it. */
static struct rte_mbuf *
use_one(void)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	cr_assert_not_null(m);
	rte_pktmbuf_free(m);
	return m;
}

Test(engine_turns, the_handlers_of_dpdk_keep_their_indices)
{
	cr_assert_eq(pool->ops_index, (int32_t)handlers, "%d of %u", pool->ops_index, handlers);
	for (uint32_t i = 0; i < handlers; i++)
		cr_assert_str_neq(rte_mempool_ops_table.ops[i].name, eng_turns_ops());
	cr_assert_eq(rte_mempool_ops_table.num_ops, handlers + 1, "it is registered once");
}

Test(engine_turns, mbufs_of_some_megabytes_take_turns)
{
	unsigned n = ENG_TURNS_BYTES / pool->elt_size;
	const struct rte_mbuf *first = use_one();

	cr_assert(n > 500 && n < COUNT, "%u", n);
	for (unsigned i = 1; i < n; i++)
		cr_assert_neq(use_one(), first, "%u", i);
	cr_assert_eq(use_one(), first, "the oldest one comes first");
}

Test(engine_turns, every_mbuf_can_be_taken_and_no_more)
{
	for (unsigned i = 0; i < COUNT; i++) {
		taken[i] = rte_pktmbuf_alloc(pool);
		cr_assert_not_null(taken[i], "%u", i);
	}
	cr_assert_null(rte_pktmbuf_alloc(pool));
	cr_assert_eq(rte_mempool_avail_count(pool), 0);
	for (unsigned i = 0; i < COUNT; i++)
		rte_pktmbuf_free(taken[i]);
}

Test(engine_turns, a_bulk_is_taken_as_a_whole_or_not_at_all)
{
	cr_assert_eq(rte_mempool_get_bulk(pool, taken, COUNT - 1), 0);
	cr_assert_lt(rte_mempool_get_bulk(pool, taken + COUNT - 1, 2), 0);
	cr_assert_eq(rte_mempool_avail_count(pool), 1);
	rte_mempool_put_bulk(pool, taken, COUNT - 1);
}

/* Frees come in another order than allocations, while others are out. */
Test(engine_turns, no_mbuf_is_lost_or_given_twice_at_random)
{
	unsigned n = 0;

	srand(1);
	for (unsigned i = 0; i < 200000; i++) {
		if (rand() % 2 && n < COUNT) {
			struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

			cr_assert_not_null(m, "%u are out", n);
			cr_assert_eq(m->data_len, 0, "it is out already");
			m->data_len = 1;
			taken[n++] = m;
		} else if (n > 0) {
			unsigned k = (unsigned)rand() % n;

			rte_pktmbuf_free(taken[k]);
			taken[k] = taken[--n];
		}
		cr_assert_eq(rte_mempool_avail_count(pool), COUNT - n);
	}
	while (n > 0)
		rte_pktmbuf_free(taken[--n]);
}
