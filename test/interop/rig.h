/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two engines in one process, joined by a net_ring pair with a hostile wire on it, and a flat
 * client at each: what the soak and the exchange between flat clients stand on. The loops of the
 * engines are dealt out to one or two threads ("hands").
 */
#ifndef TEST_INTEROP_RIG_H
#define TEST_INTEROP_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../lib/client/saker.h"
#include "../../lib/engine/engine.h"

struct rig_falcon {
	uint8_t ordering, errors, psp; /* enum rof_ordering, rof_errors, psp_version */
};

struct rig_options {
	bool split; /* transport on one loop, engine stage on another; else run to completion */
	/* An engine stage on each of two loops, the transport beside one of them; QPs are dealt out
	 * to the stages in turn. */
	bool two_stages;
	bool one; /* one engine only: both clients are its own and meet over its loop port */
	bool v6;
	uint16_t vlan; /* ETH_NO_VLAN or id */
	uint32_t mtu;
	const struct rig_falcon *falcon; /* NULL: iWARP alone */
	const char *impair;       /* arguments of both hostile wires but for port=; NULL: none */
	size_t mem_len, ring_len; /* of each client: for its own use; for its queues */
};

struct rig_hand { /* what one thread polls */
	struct eng *eng[4];
	unsigned loop[4], n;
	uint64_t ahead; /* ns that the engines' clock is put forward by */
};

struct rig_end {
	struct eng *eng;
	struct rig_hand *hand; /* of the thread that this client lives in */
	int client;
	void *home;
	size_t home_len;
	struct saker *s;
	struct sk_addr addr;
};

struct rte_ring;

struct rig {
	struct rig_options o;
	struct rte_ring *way[2]; /* the wire's two directions */
	uint16_t port[2];        /* the engines' */
	struct eng *eng[2];      /* the same twice when there is one */
	unsigned neng;
	struct rig_hand hand[2];
	unsigned nhands; /* lcores: 1 or 2 */
	struct rig_end end[2];
	bool stop;
};

/* All return 0, or -1 after having said what failed. EAL is up; its lcores decide about the number
 * of hands. */
int rig_open(struct rig *r, const struct rig_options *o);
/* Attaches client `i`, from the thread that will drive `hand`. */
int rig_attach(struct rig *r, int i, struct rig_hand *hand);
/* One turn of each loop of a hand. */
void rig_turn(struct rig_hand *hand);
/* For the second lcore: turns of hand 1 until r->stop. Takes the rig. */
int rig_serve(void *rig);
/* Closes client `i` and waits until the engine has forgotten it. */
int rig_detach(struct rig *r, int i);
/* After both are detached: nothing may be left and every mbuf must be home. */
int rig_all_home(struct rig *r);
/* Once nobody polls any more. */
void rig_close(struct rig *r);
/* A counter of an engine by its names; UINT64_MAX when there is none. */
uint64_t rig_count(const struct eng *e, const char *layer, const char *name);

#endif
