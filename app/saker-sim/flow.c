/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages of a flow: starts them, hands their bytes to the transport packet by packet, and
 * measures them when they arrive. */
#include "world.h"

void
sim_flow_offer(struct sim_flow *f, sim_time now)
{
	if (f->offered)
		return;
	f->offered = true;
	f->next_offer = NULL;
	*f->src->offers_end = f;
	f->src->offers_end = &f->next_offer;
	sim_host_wake(f->src, now);
}

/* Starts messages up to the number that may be outstanding. */
static void
start_messages(struct sim_flow *f, sim_time now)
{
	const struct sim_scenario *sc = f->w->sc;
	uint64_t known = f->acked / sc->message_bytes;
	struct sim_message *m;

	if (!f->started)
		return;
	while (f->begun - known < sc->outstanding &&
		(sc->messages == 0 || f->begun < sc->messages)) {
		m = sim_pool_get(&f->w->messages);
		*m = (struct sim_message){.flow = f, .start = now};
		if (f->newest != NULL)
			f->newest->next = m;
		f->newest = m;
		if (f->oldest == NULL)
			f->oldest = m;
		if (f->filling == NULL)
			f->filling = m;
		if (f->begun++ == 0)
			f->first = now;
		sim_flow_offer(f, now);
	}
}

static void
flow_begin(void *obj, sim_time now)
{
	struct sim_flow *f = obj;

	f->started = true;
	start_messages(f, now);
}

void
sim_flow_ready(struct sim_flow *f, sim_time now)
{
	struct sim_world *w = f->w;

	if (f->ready)
		return;
	f->ready = true;
	w->nready++;
	if (w->sc->spread_us > 0)
		now += sim_random_below(&w->random, w->sc->spread_us * 1000) * SIM_NS;
	sim_at(&w->events, now, flow_begin, f);
}

uint32_t
sim_flow_take(struct sim_flow *f, uint32_t max, struct sim_message **out)
{
	struct sim_message *m = f->filling;
	uint64_t left;
	uint32_t n;

	if (m == NULL)
		return 0;
	left = f->w->sc->message_bytes - m->taken;
	n = left < max ? (uint32_t)left : max;
	m->taken += n;
	*out = m;
	if (n == left)
		f->filling = m->next;
	return n;
}

void
sim_flow_acked(struct sim_flow *f, uint64_t bytes, sim_time now)
{
	f->acked += bytes;
	start_messages(f, now);
	if (f->filling != NULL)
		sim_flow_offer(f, now);
}

/* Frees the oldest messages that are complete. On an unordered connection, a message may complete
 * before older ones. */
static void
flow_retire(struct sim_flow *f)
{
	struct sim_message *m;

	while ((m = f->oldest) != NULL && m->delivered == f->w->sc->message_bytes) {
		f->oldest = m->next;
		if (f->newest == m)
			f->newest = NULL;
		sim_pool_put(&f->w->messages, m);
	}
}

static void
message_done(struct sim_message *m, sim_time now)
{
	struct sim_flow *f = m->flow;
	struct sim_world *w = f->w;

	f->done++;
	if (w->measuring && (w->sc->messages != 0 || m->start >= w->from))
		sk_hist_add(&w->completion, (now - m->start) / SIM_NS);
	if (w->sc->messages != 0 && f->done == w->sc->messages)
		w->ndone++;
}

void
sim_flow_delivered(struct sim_message *m, uint64_t bytes, sim_time now)
{
	struct sim_flow *f = m->flow;
	struct sim_world *w = f->w;

	m->delivered += bytes;
	f->delivered += bytes;
	f->last = now;
	if (m->delivered > m->taken)
		w->wrong += bytes;
	if (w->measuring) {
		f->measured += bytes;
		w->delivered += bytes;
		w->last_delivery = now;
	}
	if (m->delivered == w->sc->message_bytes) {
		message_done(m, now);
		flow_retire(f);
	}
}

void
sim_flow_delivered_in_order(struct sim_flow *f, uint64_t bytes, sim_time now)
{
	uint64_t n, left;

	for (; bytes > 0; bytes -= n) {
		if (f->oldest == NULL) {
			f->w->wrong += bytes;
			return;
		}
		left = f->w->sc->message_bytes - f->oldest->delivered;
		n = bytes < left ? bytes : left;
		sim_flow_delivered(f->oldest, n, now);
	}
}

void
sim_flow_dead(struct sim_flow *f)
{
	f->w->ndead++;
}

void
sim_flow_failed(struct sim_flow *f)
{
	f->w->failed++;
}
