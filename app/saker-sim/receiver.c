/* SPDX-License-Identifier: BSD-3-Clause */
#include "receiver.h"

#include <string.h>

#define BURST       32 /* packets that a turn receives */
#define STOPPED_US  2000
#define SEEN_NS     250000
#define CATCH_UP_US 1000

void
sim_receiver_init(struct sim_receiver *r, const struct sim_scenario *sc)
{
	memset(r, 0, sizeof(*r));
	r->sc = sc;
	r->end = &r->first;
}

bool
sim_receiver_is_slow(const struct sim_scenario *sc)
{
	return sc->packet_ns != 0 || sc->stop_us != 0;
}

void
sim_receiver_put(struct sim_receiver *r, struct sim_packet *p, struct sim_memory *m)
{
	if (r->queued >= r->sc->rx_queue) {
		r->dropped++;
		sim_packet_free(m, p);
		return;
	}
	p->next = NULL;
	*r->end = p;
	r->end = &p->next;
	r->queued++;
}

/* Returns the number of stops that have begun by `now`. Each is at the end of its interval. */
static uint64_t
stops_by(const struct sim_scenario *sc, sim_time now)
{
	return (now + sc->stop_us * SIM_US) / ((sc->stop_us + sc->run_us) * SIM_US);
}

/* Returns the end of the last of them. */
static sim_time
stop_end(const struct sim_scenario *sc, sim_time now)
{
	return stops_by(sc, now) * (sc->stop_us + sc->run_us) * SIM_US;
}

sim_time
sim_receiver_ready(const struct sim_receiver *r, sim_time now)
{
	sim_time at = now > r->free_at ? now : r->free_at, end;

	/* A turn that has received packets sends before the stop. */
	if (r->sc->stop_us == 0 || r->busy)
		return at;
	end = stop_end(r->sc, at);
	return at < end ? end : at;
}

/* Takes note of what happened since the last look. A processor without work looks all the time. */
static void
note_stops(struct sim_receiver *r, sim_time now)
{
	sim_time stop = r->sc->stop_us * SIM_US, since = now;
	uint64_t n = stop == 0 ? 0 : stops_by(r->sc, now) - stops_by(r->sc, r->last_look);
	bool stops = n > 0 && r->sc->stop_us >= STOPPED_US;

	if (n > 0 && now == stop_end(r->sc, now)) {
		since = now - stop;
		r->stopped += stops ? stop : 0;
		r->woken_at = stops ? now : 0;
	}
	if (r->looked == r->last_look && since > r->free_at)
		r->looked = since;
	if (stops)
		r->new_stop_ns += n * r->sc->stop_us * 1000 - SEEN_NS;
}

struct sim_packet *
sim_receiver_look(struct sim_receiver *r, sim_time now, uint64_t *waited)
{
	struct sim_packet *first = r->first, **end = &first;
	unsigned n = 0;

	note_stops(r, now);
	*waited = (now - r->looked) / SIM_NS;
	for (; n < BURST && *end != NULL; n++)
		end = &(*end)->next;
	r->first = *end;
	*end = NULL;
	if (r->first == NULL)
		r->end = &r->first;
	r->queued -= n;
	r->last_look = now;
	if (n < BURST) {
		r->looked = now;
		r->stopped = 0;
		r->woken_at = 0;
	}
	r->busy = n > 0;
	r->free_at = now + n * r->sc->packet_ns * SIM_NS;
	return first;
}

bool
sim_receiver_is_behind(const struct sim_receiver *r, sim_time now)
{
	return r->woken_at != 0 && now - r->woken_at < CATCH_UP_US * SIM_US;
}

uint64_t
sim_receiver_backlog(const struct sim_receiver *r, sim_time now)
{
	sim_time since = r->looked + r->stopped;

	return now > since ? (now - since) / SIM_NS : 0;
}

uint64_t
sim_receiver_stop(struct sim_receiver *r)
{
	uint64_t ns = r->new_stop_ns;

	r->new_stop_ns = 0;
	return ns;
}
