/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processor of a host that receives: it needs time for each packet, and may stop now and then.
 * Packets that arrive meanwhile wait in the queue of the port. It is off unless the scenario has a
 * key of [receiver]. Its turns, and its reports to a stack, are those of lib/engine/transport.
 */
#ifndef SAKER_SIM_RECEIVER_H
#define SAKER_SIM_RECEIVER_H

#include "net.h"
#include "scenario.h"

struct sim_receiver {
	const struct sim_scenario *sc;
	struct sim_packet *first, **end; /* the queue */
	uint32_t queued;
	bool busy;            /* received packets, and has not sent since */
	sim_time free_at;     /* when it has received them */
	sim_time woken_at;    /* the end of the last stop; 0: the queue was empty since */
	sim_time looked;      /* the last look that left no packet in the queue */
	sim_time stopped;     /* the length of all stops since then */
	sim_time last_look;   /* the last look */
	uint64_t new_stop_ns; /* a stop not reported to the stack yet; sim_receiver_stop() */
	uint64_t dropped;     /* packets that found the queue full */
};

void sim_receiver_init(struct sim_receiver *r, const struct sim_scenario *sc);
/* Returns whether the scenario has a model of the processor. */
bool sim_receiver_is_slow(const struct sim_scenario *sc);
/* Adds a packet to the queue, or counts and frees it. */
void sim_receiver_put(struct sim_receiver *r, struct sim_packet *p, struct sim_memory *m);
/* Returns the time, `now` or later, at which the processor can do its next work. */
sim_time sim_receiver_ready(const struct sim_receiver *r, sim_time now);
/* Begins a turn at a time of sim_receiver_ready(): takes a burst out of the queue, which is then
 * being received until r->free_at. Returns its first packet, linked by `next`, and in *waited the
 * time (ns) that they may have waited. */
struct sim_packet *sim_receiver_look(struct sim_receiver *r, sim_time now, uint64_t *waited);
/* Returns whether timers have to wait, since packets that arrived during a stop may be unread. */
bool sim_receiver_is_behind(const struct sim_receiver *r, sim_time now);
/* Returns the time (ns) for which no look has left the queue empty, without stops. */
uint64_t sim_receiver_backlog(const struct sim_receiver *r, sim_time now);
/* Returns the time (ns) of stops since the last call. */
uint64_t sim_receiver_stop(struct sim_receiver *r);

#endif
