/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual time and the queue of its events. The unit is the picosecond, so that the transmission
 * time of a byte at 200 Gb/s (40 ps) is a whole number; 64 bits hold 213 days. Events with the same
 * time fire in the order in which they were scheduled, so that a run depends on its seed only.
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
	struct sim_event *heap; /* a node has four children: half the levels of a binary heap */
	size_t count, room;
	uint64_t order;
	sim_time now;
	uint64_t fired;
};

void sim_events_init(struct sim_events *q);
/* Frees the queue without firing its events. The caller keeps their objects. */
void sim_events_free(struct sim_events *q);
/* Schedules the call `fire(obj, at)`, at the present time if `at` is in the past. Exits the program
 * when there is no memory. */
void sim_at(struct sim_events *q, sim_time at, void (*fire)(void *obj, sim_time now), void *obj);
/* Fires the next event if it is due by `until`. Returns 1, or 0 if there is no such event. */
int sim_step(struct sim_events *q, sim_time until);

#endif
