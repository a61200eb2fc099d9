/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two engines in one process, connected by a net_ring pair with a hostile wire on it, and a flat
 * client at each: the basis of the soak and of the exchange between flat clients. The loops of the
 * engines are assigned to one or two threads (struct rig_hand).
 */
#ifndef TEST_INTEROP_RIG_H
#define TEST_INTEROP_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <saker/saker.h>

#include "../../lib/engine/engine.h"

struct rig_falcon {
	uint8_t ordering, errors, psp; /* enum rof_ordering, rof_errors, psp_version */
};

struct rig_options {
	/* Transport stage on one loop, engine stage on another; else run to completion. */
	bool split;
	/* One engine stage on each of two loops, with the transport stage on one of the loops; QPs
	 * are assigned to the stages alternately. */
	bool two_stages;
	bool one; /* one engine only, which both clients use and connect over its loop port */
	bool v6;
	uint16_t vlan; /* ETH_NO_VLAN or a VLAN id */
	uint32_t mtu;
	const struct rig_falcon *falcon; /* NULL: iWARP only */
	/* Arguments of both hostile wires without port=; NULL: no hostile wires. */
	const char *impair;
	size_t mem_len, ring_len; /* bytes for each client's own use, and for its queues */
};

struct rig_hand { /* the loops that one thread polls */
	struct eng *eng[4];
	unsigned loop[4], n;
	uint64_t ahead; /* ns by which the engines' clock is advanced */
};

struct rig_end {
	struct eng *eng;
	struct rig_hand *hand; /* the thread of this client */
	int client;
	void *home;
	size_t home_len;
	struct saker *s;
	struct sk_addr addr;
};

struct rte_ring;

struct rig {
	struct rig_options o;
	struct rte_ring *way[2]; /* the two directions of the wire */
	uint16_t port[2];        /* the engines' ports */
	struct eng *eng[2];      /* both are the same if there is one engine */
	unsigned neng;
	struct rig_hand hand[2];
	unsigned nhands; /* number of lcores: 1 or 2 */
	struct rig_end end[2];
	bool stop;
};

/* All functions return 0, or -1 after they have printed what failed. EAL has been initialized; its
 * lcores determine the number of threads. */
int rig_open(struct rig *r, const struct rig_options *o);
/* Attaches client `i`. Called on the thread of `hand`. */
int rig_attach(struct rig *r, int i, struct rig_hand *hand);
/* Runs one turn of each loop of `hand`. */
void rig_turn(struct rig_hand *hand);
/* The main function of the second lcore: runs turns of hand 1 until r->stop. Its argument is the
 * rig. */
int rig_serve(void *rig);
/* Closes client `i` and waits until the engine has removed it. */
int rig_detach(struct rig *r, int i);
/* Called after both clients are detached: checks that no object remains and that every mbuf has
 * been freed. */
int rig_all_home(struct rig *r);
/* Called when no thread polls any more. */
void rig_close(struct rig *r);
/* Returns a counter of an engine by its names, or UINT64_MAX if there is none. */
uint64_t rig_count(const struct eng *e, const char *layer, const char *name);

#endif
