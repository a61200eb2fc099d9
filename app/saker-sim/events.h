/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual time and the queue of what is to happen in it. Time is picoseconds, so that a byte at
 * 200 Gb/s has a length (40 ps); 64 bits of them are 213 days. Events of one moment happen in the
 * order in which they were planned: a run depends on nothing but its seed.
 */
#ifndef SAKER_SIM_EVENTS_H
#define SAKER_SIM_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#define SIM_NS    1000ull
#define SIM_US    (1000 * SIM_NS)
#define SIM_MS    (1000 * SIM_US)
#define SIM_S     (1000 * SIM_MS)
#define SIM_NEVER UINT64_MAX

typedef uint64_t sim_time; /* picoseconds since the start of the run */

struct sim_event {
	sim_time at;
	uint64_t order;
	void (*fire)(void *obj, sim_time now);
	void *obj;
};

struct sim_events {
	struct sim_event *heap; /* four children a node: half the levels of a binary heap */
	size_t count, room;
	uint64_t order;
	sim_time now;
	uint64_t fired;
};

void sim_events_init(struct sim_events *q);
/* What is still planned is forgotten, its objects are the caller's. */
void sim_events_free(struct sim_events *q);
/* Plans `fire(obj, at)`; a time that is past counts as now. Ends the program when memory lacks. */
void sim_at(struct sim_events *q, sim_time at, void (*fire)(void *obj, sim_time now), void *obj);
/* Lets the next event happen, if it is due by `until`. Returns 0 when there is none. */
int sim_step(struct sim_events *q, sim_time until);

#endif
