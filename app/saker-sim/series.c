/* SPDX-License-Identifier: BSD-3-Clause */
/* The time series of a run: at each interval, a line with the bytes delivered in it and the longest
 * queue. */
#include "report.h"

struct series {
	struct sim_world *w;
	FILE *f;
	unsigned run;
	uint64_t delivered; /* bytes until the last line */
};

static uint64_t
all_delivered(const struct sim_world *w)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < w->nflows; i++)
		sum += w->flows[i].delivered;
	return sum;
}

static uint32_t
deepest_now(const struct sim_world *w, sim_time now)
{
	uint32_t most = 0, depth;

	for (unsigned i = 0; i < w->nswitches; i++)
		for (unsigned p = 0; p < w->switches[i].nports; p++) {
			depth = sim_link_backlog(&w->switches[i].ports[p], now);
			most = depth > most ? depth : most;
		}
	return most;
}

static void
sample(void *obj, sim_time now)
{
	struct series *s = obj;
	sim_time every = s->w->sc->sample_us * SIM_US;
	uint64_t delivered = all_delivered(s->w);

	fprintf(s->f, "%u,%.3f,%.3f,%u\n", s->run, (double)now / (double)SIM_US,
		(double)(delivered - s->delivered) * 8000 / (double)every, deepest_now(s->w, now));
	s->delivered = delivered;
	sim_at(&s->w->events, now + every, sample, s);
}

void
sim_series_start(struct sim_world *w, FILE *f, unsigned run)
{
	struct series *s = sim_pool_get(&w->series);

	*s = (struct series){.w = w, .f = f, .run = run};
	if (run == 0)
		fprintf(f, "run,time_us,goodput_gbps,deepest_bytes\n");
	sim_at(&w->events, w->sc->sample_us * SIM_US, sample, s);
}
