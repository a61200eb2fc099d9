/* SPDX-License-Identifier: BSD-3-Clause */
/* Creates the flows of the scenario's traffic pattern. */
#include <stdlib.h>

#include "world.h"

static void
flow_init(struct sim_world *w, uint32_t id, uint32_t src, uint32_t dst)
{
	struct sim_flow *f = &w->flows[id];

	f->w = w;
	f->id = id;
	f->src = &w->hosts[src];
	f->dst = &w->hosts[dst];
	f->end[0] = (struct sim_end){.flow = f, .host = f->src};
	f->end[1] = (struct sim_end){.flow = f, .host = f->dst};
	f->dst->slow = sim_receiver_is_slow(w->sc);
}

/* Returns the next host of each host in a random cycle through all hosts. */
static uint32_t *
cycle(struct sim_world *w)
{
	uint32_t n = w->sc->hosts, *order = sim_calloc(n, sizeof(*order));
	uint32_t *next = sim_calloc(n, sizeof(*next));

	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	for (uint32_t i = n - 1; i > 0; i--) {
		uint32_t j = (uint32_t)sim_random_below(&w->random, i + 1), t = order[i];

		order[i] = order[j];
		order[j] = t;
	}
	for (uint32_t i = 0; i < n; i++)
		next[order[i]] = order[(i + 1) % n];
	free(order);
	return next;
}

/* Returns the destination of a flow of host `src`. */
static uint32_t
peer(struct sim_world *w, const uint32_t *next, uint32_t src)
{
	uint32_t n = w->sc->hosts, other;

	switch (w->sc->pattern) {
	case SIM_ONE_TO_ONE:
		return src + n / 2;
	case SIM_INCAST:
		return 0;
	case SIM_PERMUTATION:
		return next[src];
	default:
		other = (uint32_t)sim_random_below(&w->random, n - 1);
		return other < src ? other : other + 1;
	}
}

/* Returns the largest number of connections of a host. */
static uint32_t
most_conns(const struct sim_world *w)
{
	uint32_t *n = sim_calloc(w->sc->hosts, sizeof(*n)), most = 0;

	for (uint32_t i = 0; i < w->nflows; i++) {
		n[w->flows[i].src->id]++;
		n[w->flows[i].dst->id]++;
	}
	for (uint32_t i = 0; i < w->sc->hosts; i++)
		most = n[i] > most ? n[i] : most;
	free(n);
	return most;
}

void
sim_traffic_create(struct sim_world *w)
{
	const struct sim_scenario *sc = w->sc;
	uint32_t first = sc->pattern == SIM_INCAST, *next = NULL, id = 0;
	uint32_t last = sc->pattern == SIM_ONE_TO_ONE ? sc->hosts / 2 : sc->hosts;

	if (sc->pattern == SIM_PERMUTATION)
		next = cycle(w);
	w->nflows = (last - first) * sc->connections;
	w->flows = sim_calloc(w->nflows, sizeof(*w->flows));
	for (uint32_t src = first; src < last; src++)
		for (uint32_t k = 0; k < sc->connections; k++)
			flow_init(w, id++, src, peer(w, next, src));
	free(next);
	w->max_conns = most_conns(w);
}
