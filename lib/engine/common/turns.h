/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools of large mbufs that take turns. */
#ifndef SAKER_ENGINE_TURNS_H
#define SAKER_ENGINE_TURNS_H

/*
 * Returns the name of the handler, for rte_pktmbuf_pool_create_by_ops(). A pool with it needs no
 * cache of its lcores: they would give out the mbuf that was freed last.
 *
 * The first call registers the handler. It must follow rte_eal_init(): a mempool names its handler
 * by the index in a table, which a secondary process (dpdk-dumpcap) fills for itself. A handler
 * that saker registered before those of DPDK's plugins would change their indices.
 */
const char *eng_turns_ops(void);

/* The mbufs of a pool that take turns have so many bytes together. */
#define ENG_TURNS_BYTES (8u << 20)

#endif
