/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host: a transport's stack behind a port. It runs a turn when a packet arrives, at the stack's
 * deadline, and when its port has room again. Its port needs time, and its processor needs none
 * unless the scenario has a [receiver].
 */
#include <string.h>

#include "../../lib/base/mem.h"
#include "world.h"

#define BUDGET  32
#define NS(now) ((now) / SIM_NS)

static void host_turn(struct sim_host *h, sim_time now);

static void
host_wake(void *obj, sim_time now)
{
	struct sim_host *h = obj;

	if (h->wake_at != now) /* this turn was replaced by an earlier one */
		return;
	h->wake_at = SIM_NEVER;
	host_turn(h, now);
}

void
sim_host_wake(struct sim_host *h, sim_time at)
{
	if (at < h->w->events.now)
		at = h->w->events.now;
	if (at >= h->wake_at)
		return;
	h->wake_at = at;
	sim_at(&h->w->events, at, host_wake, h);
}

/* Schedules the next turn. */
static void
host_plan(struct sim_host *h, unsigned sent, sim_time now)
{
	uint64_t deadline = h->w->transport->deadline(h);
	sim_time at = deadline >= SIM_NEVER / SIM_NS ? SIM_NEVER : deadline * SIM_NS;

	if (h->blocked) /* the stack cannot continue before the port has room */
		at = sim_link_drained(&h->nic, h->w->sc->nic_queue_bytes / 2);
	else if (at <= now) /* the budget was used up, or the turn had no effect: time must pass */
		at = now + (sent > 0 ? 10 : 200) * SIM_NS;
	if (h->receiver.first != NULL)
		at = SK_MIN(at, sim_receiver_ready(&h->receiver, now));
	if (at != SIM_NEVER)
		sim_host_wake(h, at > now ? at : now + SIM_NS);
}

static void
host_look(struct sim_host *h, sim_time now)
{
	struct sim_packet *p = sim_receiver_look(&h->receiver, now, &h->waited_ns), *next;

	for (; p != NULL; p = next) {
		next = p->next;
		h->w->transport->input(h, p, NS(now));
	}
}

/* Does the half of a turn for which the processor of a slow host is ready: it receives a burst, or
 * sends when that is done. Returns whether it sends. */
static bool
host_may_send(struct sim_host *h, sim_time now)
{
	struct sim_receiver *r = &h->receiver;
	sim_time ready = sim_receiver_ready(r, now);

	if (ready > now) {
		sim_host_wake(h, ready);
		return false;
	}
	if (!r->busy) {
		host_look(h, now);
		if (r->busy) {
			sim_host_wake(h, r->free_at);
			return false;
		}
	}
	r->busy = false;
	return true;
}

static void
host_turn(struct sim_host *h, sim_time now)
{
	const struct sim_transport *t = h->w->transport;
	struct sim_flow *f;
	unsigned sent;

	if (h->slow && !host_may_send(h, now))
		return;
	while ((f = h->offers) != NULL) {
		h->offers = f->next_offer;
		if (h->offers == NULL)
			h->offers_end = &h->offers;
		f->offered = false;
		t->offer(f, NS(now));
	}
	h->blocked = false;
	sent = t->poll(h, NS(now), BUDGET);
	host_plan(h, sent, now);
}

static void
host_receive(struct sim_node *self, struct sim_packet *p, sim_time now)
{
	struct sim_host *h = (struct sim_host *)self;

	if (h->slow) {
		sim_receiver_put(&h->receiver, p, &h->w->memory);
		sim_host_wake(h, sim_receiver_ready(&h->receiver, now));
		return;
	}
	h->w->transport->input(h, p, NS(now));
	host_turn(h, now);
}

struct sim_packet *
sim_host_packet(
	struct sim_host *h, struct sim_flow *f, uint32_t header, uint32_t payload, uint32_t entropy)
{
	struct sim_packet *p;

	if (sim_link_backlog(&h->nic, h->w->events.now) >= h->w->sc->nic_queue_bytes) {
		h->blocked = true;
		return NULL;
	}
	p = sim_pool_get(&h->w->memory.packets);
	p->src = h->id;
	p->dst = h == f->src ? f->dst->id : f->src->id;
	p->flow = f->id;
	p->entropy = entropy;
	p->payload = payload;
	p->bytes = ETH_LEN + IP6_LEN + header + payload + SIM_FRAMING;
	p->ttl = SIM_TTL;
	p->ecn = IP_ECN_NOT;
	p->ulp_len = 0;
	p->tag = NULL;
	p->block = NULL;
	return p;
}

void
sim_host_send(struct sim_host *h, struct sim_packet *p)
{
	sim_link_send(&h->nic, p, h->w->events.now);
}

void
sim_host_init(struct sim_host *h, struct sim_world *w, uint32_t id)
{
	memset(h, 0, sizeof(*h));
	h->node.receive = host_receive;
	h->w = w;
	h->id = id;
	h->wake_at = SIM_NEVER;
	sim_receiver_init(&h->receiver, w->sc);
	h->offers_end = &h->offers;
}
