/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Creates hosts, switches and links. A pair has one link in each direction, a star has one switch.
 * In leaf-spine, each leaf has a link to each spine, and the hash of a packet to another leaf
 * selects one of them.
 */
#include "world.h"

static struct sim_link_params
link_params(const struct sim_world *w, double gbps, uint64_t delay_ns, double loss)
{
	struct sim_link_params p = {.bps = (uint64_t)(gbps * 1e9),
		.delay = delay_ns * SIM_NS,
		.loss = loss / 100,
		.burst = w->sc->link_burst};

	return p;
}

/* Initializes a port of a switch: a link with the switch's queue. */
static void
port_init(struct sim_world *w, struct sim_link *l, struct sim_link_params p, struct sim_node *to)
{
	p.queue_bytes = w->sc->queue_kib * 1024;
	p.ecn_bytes = w->sc->ecn_kib * 1024;
	sim_link_init(l, &p, &w->events, &w->memory, to, w->sc->seed, w->nlinks++);
	l->depths = &w->depths;
}

static void
nic_init(struct sim_world *w, struct sim_host *h, struct sim_node *to)
{
	sim_link_init(&h->nic, &w->host_link, &w->events, &w->memory, to, w->sc->seed, w->nlinks++);
}

static void
star(struct sim_world *w)
{
	struct sim_switch *s;

	w->nswitches = 1;
	w->switches = s = sim_calloc(1, sizeof(*s));
	sim_switch_init(s, w->sc->hosts, w->sc->hosts, &w->memory, w->sc->seed);
	for (uint32_t i = 0; i < w->sc->hosts; i++) {
		nic_init(w, &w->hosts[i], &s->node);
		port_init(w, &s->ports[i], w->host_link, &w->hosts[i].node);
		s->routes[i] = (struct sim_route){.first = (uint16_t)i, .count = 1};
	}
}

/* Initializes leaf `l`. Its ports lead to its hosts, then to the spines. */
static void
leaf(struct sim_world *w, uint32_t l, uint32_t per_leaf)
{
	const struct sim_scenario *sc = w->sc;
	struct sim_switch *s = &w->switches[l], *spine;
	struct sim_link_params up;

	sim_switch_init(s, per_leaf + sc->spines, sc->hosts, &w->memory, sc->seed + l);
	for (uint32_t i = 0; i < per_leaf; i++) {
		struct sim_host *h = &w->hosts[l * per_leaf + i];

		nic_init(w, h, &s->node);
		port_init(w, &s->ports[i], w->host_link, &h->node);
	}
	for (uint32_t i = 0; i < sc->spines; i++) {
		spine = &w->switches[sc->leaves + i];
		up = link_params(w, i < sc->slow_spines ? sc->slow_gbps : sc->fabric_gbps,
			sc->fabric_delay_ns, sc->fabric_loss);
		port_init(w, &s->ports[per_leaf + i], up, &spine->node);
	}
	for (uint32_t i = 0; i < sc->hosts; i++)
		s->routes[i] =
			i / per_leaf == l
				? (struct sim_route){.first = (uint16_t)(i % per_leaf), .count = 1}
				: (struct sim_route){.first = (uint16_t)per_leaf,
					  .count = (uint16_t)sc->spines};
}

/* Initializes spine `n`. Its ports lead to the leaves. */
static void
spine(struct sim_world *w, uint32_t n, uint32_t per_leaf)
{
	const struct sim_scenario *sc = w->sc;
	struct sim_switch *s = &w->switches[sc->leaves + n];
	struct sim_link_params down =
		link_params(w, n < sc->slow_spines ? sc->slow_gbps : sc->fabric_gbps,
			sc->fabric_delay_ns, sc->fabric_loss);

	sim_switch_init(s, sc->leaves, sc->hosts, &w->memory, sc->seed + sc->leaves + n);
	for (uint32_t l = 0; l < sc->leaves; l++)
		port_init(w, &s->ports[l], down, &w->switches[l].node);
	for (uint32_t i = 0; i < sc->hosts; i++)
		s->routes[i] = (struct sim_route){.first = (uint16_t)(i / per_leaf), .count = 1};
}

static void
leaf_spine(struct sim_world *w)
{
	const struct sim_scenario *sc = w->sc;
	uint32_t per_leaf = sc->hosts / sc->leaves;

	w->nswitches = sc->leaves + sc->spines;
	w->switches = sim_calloc(w->nswitches, sizeof(*w->switches));
	for (uint32_t l = 0; l < sc->leaves; l++)
		leaf(w, l, per_leaf);
	for (uint32_t n = 0; n < sc->spines; n++)
		spine(w, n, per_leaf);
}

void
sim_topology_create(struct sim_world *w)
{
	const struct sim_scenario *sc = w->sc;

	w->host_link = link_params(w, sc->link_gbps, sc->link_delay_ns, sc->link_loss);
	w->host_link.reorder = sc->link_reorder / 100;
	w->host_link.reorder_span = sc->link_reorder_ns * SIM_NS;
	w->hosts = sim_calloc(sc->hosts, sizeof(*w->hosts));
	for (uint32_t i = 0; i < sc->hosts; i++)
		sim_host_init(&w->hosts[i], w, i);
	if (sc->topology == SIM_PAIR) {
		nic_init(w, &w->hosts[0], &w->hosts[1].node);
		nic_init(w, &w->hosts[1], &w->hosts[0].node);
	} else if (sc->topology == SIM_STAR) {
		star(w);
	} else {
		leaf_spine(w);
	}
}
