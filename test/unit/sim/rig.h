/* SPDX-License-Identifier: BSD-3-Clause */
/* A node that records the packets that arrive, and packets to send to it. */
#ifndef TEST_SIM_RIG_H
#define TEST_SIM_RIG_H

#include <string.h>

#include "../../../app/saker-sim/net.h"

#define RIG_MAX 100000

struct rig {
	struct sim_node node;
	struct sim_events events;
	struct sim_memory memory;
	unsigned count;
	sim_time at[RIG_MAX];
	uint32_t tag[RIG_MAX];
	uint8_t ecn[RIG_MAX];
};

static inline void
rig_receive(struct sim_node *self, struct sim_packet *p, sim_time now)
{
	struct rig *r = (struct rig *)self;

	r->at[r->count] = now;
	r->ecn[r->count] = p->ecn;
	r->tag[r->count++] = p->flow;
	sim_packet_free(&r->memory, p);
}

static inline void
rig_init(struct rig *r)
{
	memset(r, 0, sizeof(*r));
	r->node.receive = rig_receive;
	r->memory.packets.size = sizeof(struct sim_packet);
	sim_events_init(&r->events);
}

/* Creates a packet. `tag` is its number in the records. */
static inline struct sim_packet *
rig_packet(struct rig *r, uint32_t tag, uint32_t bytes)
{
	struct sim_packet *p = sim_pool_get(&r->memory.packets);

	memset(p, 0, sizeof(*p));
	p->flow = tag;
	p->bytes = bytes;
	p->ttl = 64;
	p->ecn = IP_ECN_ECT0;
	return p;
}

static inline void
rig_run(struct rig *r)
{
	while (sim_step(&r->events, SIM_NEVER))
		;
}

static inline void
rig_fini(struct rig *r)
{
	cr_assert_eq(r->memory.packets.alive, 0, "packets lost from sight");
	sim_pool_free(&r->memory.packets);
	sim_events_free(&r->events);
}

#endif
