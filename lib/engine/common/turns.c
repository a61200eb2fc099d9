/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A handler of mempools: mbufs of ENG_TURNS_BYTES take turns, the oldest one first; the others are
 * given out only when none of these is free.
 *
 * The receiver of a ring port reads the sender's mbuf, and the cache of its processor keeps the
 * lines. When the sender fills the same mbuf again soon, it has to take back each line. After some
 * megabytes of other mbufs the lines have left that cache, but are still in one that both share.
 * This matters to long payloads only: those of a standard MTU are faster in the mbuf that was
 * freed last.
 */
#include "turns.h"

#include <errno.h>
#include <pthread.h>

#include <rte_malloc.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#include "../../base/mem.h"

struct turns {
	struct rte_ring *turn, *rest;
};

static struct rte_ring *
ring_new(const struct rte_mempool *mp, uint32_t count)
{
	ssize_t size = rte_ring_get_memsize(rte_align32pow2(count + 1));
	struct rte_ring *r = size < 0 ? NULL
				      : rte_zmalloc_socket(NULL, (size_t)size, RTE_CACHE_LINE_SIZE,
						mp->socket_id);

	if (r != NULL && rte_ring_init(r, mp->name, count, RING_F_EXACT_SZ) < 0) {
		rte_free(r);
		return NULL;
	}
	return r;
}

static void
turns_free(struct rte_mempool *mp)
{
	struct turns *t = mp->pool_data;

	rte_free(t->turn);
	rte_free(t->rest);
	rte_free(t);
	mp->pool_data = NULL;
}

static int
turns_alloc(struct rte_mempool *mp)
{
	struct turns *t = rte_zmalloc_socket(NULL, sizeof(*t), 0, mp->socket_id);

	if (t == NULL)
		return -ENOMEM;
	mp->pool_data = t;
	t->turn = ring_new(mp, SK_MIN(mp->size, SK_MAX(1u, ENG_TURNS_BYTES / mp->elt_size)));
	t->rest = ring_new(mp, mp->size);
	if (t->turn != NULL && t->rest != NULL)
		return 0;
	turns_free(mp);
	return -ENOMEM;
}

static int
turns_enqueue(struct rte_mempool *mp, void *const *objs, unsigned n)
{
	struct turns *t = mp->pool_data;
	unsigned k = rte_ring_enqueue_burst(t->turn, objs, n, NULL);

	if (k < n)
		rte_ring_enqueue_bulk(t->rest, objs + k, n - k, NULL);
	return 0;
}

static int
turns_dequeue(struct rte_mempool *mp, void **objs, unsigned n)
{
	struct turns *t = mp->pool_data;
	unsigned k = rte_ring_dequeue_burst(t->turn, objs, n, NULL);

	if (k == n || rte_ring_dequeue_bulk(t->rest, objs + k, n - k, NULL) > 0)
		return 0;
	turns_enqueue(mp, objs, k);
	return -ENOBUFS;
}

static unsigned
turns_count(const struct rte_mempool *mp)
{
	const struct turns *t = mp->pool_data;

	return rte_ring_count(t->turn) + rte_ring_count(t->rest);
}

static const struct rte_mempool_ops turns_ops = {
	.name = "saker_turns",
	.alloc = turns_alloc,
	.free = turns_free,
	.enqueue = turns_enqueue,
	.dequeue = turns_dequeue,
	.get_count = turns_count,
};

static void
turns_register(void)
{
	rte_mempool_register_ops(&turns_ops);
}

const char *
eng_turns_ops(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, turns_register);
	return turns_ops.name;
}
