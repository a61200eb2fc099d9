/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link. Its queue is first in, first out, so that the departure of a packet can be computed when
 * the packet arrives. The state of the queue is therefore one point in time, and each packet
 * requires one event, its arrival at the other end.
 */
#include <string.h>

#include "net.h"

void
sim_packet_free(struct sim_memory *m, struct sim_packet *p)
{
	if (p->block != NULL)
		sim_pool_put(&m->blocks, p->block);
	sim_pool_put(&m->packets, p);
}

void
sim_link_init(struct sim_link *l, const struct sim_link_params *p, struct sim_events *events,
	struct sim_memory *memory, struct sim_node *to, uint64_t seed, uint64_t number)
{
	memset(l, 0, sizeof(*l));
	l->p = *p;
	l->events = events;
	l->memory = memory;
	l->to = to;
	l->ps_per_byte = (uint64_t)(8e12 * 65536 / (double)p->bps + 0.5);
	sim_random_seed(&l->random, seed, number);
}

uint32_t
sim_link_backlog(const struct sim_link *l, sim_time now)
{
	if (l->free_at <= now)
		return 0;
	return (uint32_t)(((unsigned __int128)(l->free_at - now) << 16) / l->ps_per_byte);
}

sim_time
sim_link_drained(const struct sim_link *l, uint32_t bytes)
{
	sim_time worth = (sim_time)(((unsigned __int128)bytes * l->ps_per_byte) >> 16);

	return l->free_at > worth ? l->free_at - worth : 0;
}

/* Returns whether the wire loses a packet. This is Gilbert's model, with a loss of 1 in the bad
 * state; the stationary share of the bad state is `loss`. */
static bool
is_lost(struct sim_link *l)
{
	double p = l->p.loss, burst = l->p.burst;

	if (burst <= 1)
		return sim_chance(&l->random, p);
	if (l->losing)
		l->losing = !sim_chance(&l->random, 1 / burst);
	else
		l->losing = p < 1 ? sim_chance(&l->random, p / (1 - p) / burst) : true;
	return l->losing;
}

static void
arrive(void *obj, sim_time now)
{
	struct sim_packet *p = obj;
	struct sim_node *to = p->link->to;

	to->receive(to, p, now);
}

static void
serialise(struct sim_link *l, uint32_t bytes, sim_time now)
{
	uint64_t t = bytes * l->ps_per_byte + l->carry;

	if (l->free_at < now)
		l->free_at = now;
	l->free_at += t >> 16;
	l->carry = t & 0xffff;
}

void
sim_link_send(struct sim_link *l, struct sim_packet *p, sim_time now)
{
	uint32_t waiting = sim_link_backlog(l, now);
	sim_time late = 0;

	if (l->depths != NULL)
		sk_hist_add(l->depths, waiting);
	if (waiting > l->stats.deepest)
		l->stats.deepest = waiting;
	if (l->p.queue_bytes != 0 && waiting + p->bytes > l->p.queue_bytes) {
		l->stats.dropped++;
		sim_packet_free(l->memory, p);
		return;
	}
	if (l->p.ecn_bytes != 0 && waiting > l->p.ecn_bytes && p->ecn != IP_ECN_NOT) {
		p->ecn = IP_ECN_CE;
		l->stats.marked++;
	}
	serialise(l, p->bytes, now);
	l->stats.packets++;
	l->stats.bytes += p->bytes;
	if (is_lost(l)) {
		l->stats.lost++;
		sim_packet_free(l->memory, p);
		return;
	}
	if (sim_chance(&l->random, l->p.reorder)) {
		late = 1 + (sim_time)((double)(sim_random(&l->random) >> 11) * 0x1p-53 *
				      (double)l->p.reorder_span);
		l->stats.reordered++;
	}
	p->link = l;
	sim_at(l->events, l->free_at + l->p.delay + late, arrive, p);
}
