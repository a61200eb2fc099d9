/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools of large mbufs that take turns. */
#ifndef SAKER_ENGINE_TURNS_H
#define SAKER_ENGINE_TURNS_H

#include <rte_mempool.h>

/* The handler, for rte_pktmbuf_pool_create_by_ops(). A pool with it needs no cache of its lcores:
 * they would give out the mbuf that was freed last. */
extern const struct rte_mempool_ops eng_turns_ops;

/* The mbufs of a pool that take turns have so many bytes together. */
#define ENG_TURNS_BYTES (8u << 20)

#endif
