/* SPDX-License-Identifier: BSD-3-Clause */
/* A heap of four children per node: an event moves along a path of log4(n) nodes, and the children
 * of a node share one or two cache lines. */
#include "events.h"

#include <stdlib.h>
#include <string.h>

#include "pool.h"

#define CHILDREN 4

void
sim_events_init(struct sim_events *q)
{
	memset(q, 0, sizeof(*q));
}

void
sim_events_free(struct sim_events *q)
{
	free(q->heap);
	sim_events_init(q);
}

static int
before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void
events_grow(struct sim_events *q)
{
	q->room = q->room ? 2 * q->room : 1024;
	q->heap = sim_realloc(q->heap, q->room * sizeof(*q->heap));
}

void
sim_at(struct sim_events *q, sim_time at, void (*fire)(void *obj, sim_time now), void *obj)
{
	struct sim_event e = {.at = at < q->now ? q->now : at, .fire = fire, .obj = obj};
	size_t i = q->count, up;

	e.order = q->order++;
	if (q->count == q->room)
		events_grow(q);
	q->count++;
	for (; i > 0; i = up) {
		up = (i - 1) / CHILDREN;
		if (!before(&e, &q->heap[up]))
			break;
		q->heap[i] = q->heap[up];
	}
	q->heap[i] = e;
}

/* Removes and returns the first event. The last one takes its place and sinks. */
static struct sim_event
pop(struct sim_events *q)
{
	struct sim_event first = q->heap[0], last = q->heap[--q->count];
	size_t i = 0, child, least, end;

	while ((child = CHILDREN * i + 1) < q->count) {
		end = child + CHILDREN < q->count ? child + CHILDREN : q->count;
		for (least = child++; child < end; child++)
			if (before(&q->heap[child], &q->heap[least]))
				least = child;
		if (!before(&q->heap[least], &last))
			break;
		q->heap[i] = q->heap[least];
		i = least;
	}
	q->heap[i] = last;
	return first;
}

int
sim_step(struct sim_events *q, sim_time until)
{
	struct sim_event e;

	if (q->count == 0 || q->heap[0].at > until)
		return 0;
	e = pop(q);
	q->now = e.at;
	q->fired++;
	e.fire(e.obj, e.at);
	return 1;
}
