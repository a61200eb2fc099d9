/* SPDX-License-Identifier: BSD-3-Clause */
/* Creates a run, advances its time until the scenario ends, and counts. */
#include "world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct sim_transport *const transports[] = {
	[SIM_TCP] = &sim_tcp,
	[SIM_IWARP] = &sim_iwarp,
	[SIM_FALCON] = &sim_falcon,
	[SIM_ROF] = &sim_rof,
};

static void
init(struct sim_world *w, const struct sim_scenario *sc)
{
	w->sc = sc;
	sim_events_init(&w->events);
	w->memory.packets.size = sizeof(struct sim_packet);
	w->messages.size = sizeof(struct sim_message);
	w->series.size = 64;
	sim_random_seed(&w->random, sc->seed, UINT32_MAX);
	w->measuring = sc->messages != 0;
	w->transport = transports[sc->transport];
	sk_hist_init(&w->completion);
	sk_hist_init(&w->depths);
}

struct sim_world *
sim_world_create(const struct sim_scenario *sc, char why[SIM_WHY])
{
	struct sim_world *w = sim_calloc(1, sizeof(*w));
	int rc = 0;

	init(w, sc);
	sim_topology_create(w);
	sim_traffic_create(w);
	for (uint32_t i = 0; i < sc->hosts && rc == 0; i++)
		rc = w->transport->create(&w->hosts[i]);
	for (uint32_t i = 0; i < w->nflows && rc == 0; i++)
		rc = w->transport->connect(&w->flows[i]);
	if (rc == 0)
		return w;
	sim_refuse(why, rc, "%s: %s", w->transport->name, strerror(-rc));
	sim_world_destroy(w);
	return NULL;
}

void
sim_world_destroy(struct sim_world *w)
{
	for (uint32_t i = 0; i < w->sc->hosts; i++)
		if (w->hosts[i].stack != NULL)
			w->transport->destroy(&w->hosts[i]);
	for (unsigned i = 0; i < w->nswitches; i++)
		sim_switch_free(&w->switches[i]);
	sim_events_free(&w->events);
	sim_pool_free(&w->memory.packets);
	sim_pool_free(&w->memory.blocks);
	sim_pool_free(&w->messages);
	sim_pool_free(&w->series);
	free(w->switches);
	free(w->flows);
	free(w->hosts);
	free(w);
}

static void
add_link(struct sim_link_stats *to, const struct sim_link_stats *s)
{
	to->packets += s->packets;
	to->bytes += s->bytes;
	to->dropped += s->dropped;
	to->lost += s->lost;
	to->reordered += s->reordered;
	to->marked += s->marked;
	if (s->deepest > to->deepest)
		to->deepest = s->deepest;
}

static void
totals(struct sim_world *w, struct sim_totals *t)
{
	memset(t, 0, sizeof(*t));
	for (uint32_t i = 0; i < w->sc->hosts; i++) {
		w->transport->count(&w->hosts[i], &t->counts);
		add_link(&t->nics, &w->hosts[i].nic.stats);
		t->receiver_drops += w->hosts[i].receiver.dropped;
	}
	for (unsigned i = 0; i < w->nswitches; i++)
		for (unsigned p = 0; p < w->switches[i].nports; p++)
			add_link(&t->ports, &w->switches[i].ports[p].stats);
}

/* All members of struct sim_totals are 64 bits wide; all but the maxima are sums. */
#define NTOTALS (sizeof(struct sim_totals) / sizeof(uint64_t))

void
sim_world_totals(struct sim_world *w, struct sim_totals *t)
{
	uint64_t now[NTOTALS], before[NTOTALS];
	uint64_t nic_deepest, port_deepest;

	totals(w, t);
	nic_deepest = t->nics.deepest;
	port_deepest = t->ports.deepest;
	memcpy(now, t, sizeof(now));
	memcpy(before, &w->before, sizeof(before));
	for (unsigned i = 0; i < NTOTALS; i++)
		now[i] -= before[i];
	memcpy(t, now, sizeof(now));
	t->nics.deepest = nic_deepest;
	t->ports.deepest = port_deepest;
}

/* Begins the measurement: resets the maxima, and stores the sums so far. */
static void
world_measure(struct sim_world *w)
{
	w->measuring = true;
	totals(w, &w->before);
	sk_hist_init(&w->depths);
	for (uint32_t i = 0; i < w->sc->hosts; i++)
		w->hosts[i].nic.stats.deepest = 0;
	for (unsigned i = 0; i < w->nswitches; i++)
		for (unsigned p = 0; p < w->switches[i].nports; p++)
			w->switches[i].ports[p].stats.deepest = 0;
}

/* Begins the measurement when all flows are connected and the warm-up is over. With a number of
 * messages, it begins immediately. */
static void
maybe_measure(struct sim_world *w)
{
	const struct sim_scenario *sc = w->sc;

	if (w->from == 0 && w->nready == w->nflows) {
		w->from = w->events.now + (sc->messages ? 0 : sc->warmup_us * SIM_US);
		w->until = sc->messages ? SIM_NEVER : w->from + sc->duration_us * SIM_US;
	}
	if (!w->measuring && w->from != 0 && w->events.now >= w->from)
		world_measure(w);
}

static bool
world_over(const struct sim_world *w)
{
	if (w->sc->messages != 0)
		return w->ndone + w->ndead >= w->nflows;
	return w->from != 0 && w->events.now >= w->until;
}

int
sim_world_run(struct sim_world *w)
{
	sim_time limit = w->sc->limit_ms * SIM_MS;

	while (!world_over(w)) {
		if (!sim_step(&w->events, limit))
			return -ETIME;
		maybe_measure(w);
	}
	if (w->sc->messages != 0)
		w->until = w->last_delivery;
	return 0;
}
