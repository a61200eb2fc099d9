/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of columns, and the functions that compute and print them. */
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/base/mem.h"

enum type { REAL, COUNT, TRUTH };

struct column {
	const char *name;
	enum type type;
	size_t offset;
	bool shown; /* also on the screen */
};

#define AT(field) offsetof(struct sim_result, field)

static const struct column columns[] = {
	{"finished", TRUTH, AT(finished), false},
	{"seconds", REAL, AT(seconds), false},
	{"goodput_gbps", REAL, AT(goodput_gbps), true},
	{"share_percent", REAL, AT(share), true},
	{"jain", REAL, AT(jain), true},
	{"messages", COUNT, AT(messages), true},
	{"fct_p50_us", REAL, AT(fct_us[0]), true},
	{"fct_p90_us", REAL, AT(fct_us[1]), false},
	{"fct_p99_us", REAL, AT(fct_us[2]), true},
	{"fct_p999_us", REAL, AT(fct_us[3]), false},
	{"fct_max_us", REAL, AT(fct_us[4]), true},
	{"fct_mean_us", REAL, AT(fct_us[5]), false},
	{"packets", COUNT, AT(totals.counts.packets), false},
	{"retransmits", COUNT, AT(totals.counts.retransmits), true},
	{"early", COUNT, AT(totals.counts.early), false},
	{"timeouts", COUNT, AT(totals.counts.timeouts), true},
	{"probes", COUNT, AT(totals.counts.probes), false},
	{"nacks", COUNT, AT(totals.counts.nacks), false},
	{"repaths", COUNT, AT(totals.counts.repaths), false},
	{"lost", COUNT, AT(totals.nics.lost), false},
	{"lost_fabric", COUNT, AT(totals.ports.lost), false},
	{"reordered", COUNT, AT(totals.nics.reordered), false},
	{"dropped", COUNT, AT(totals.ports.dropped), true},
	{"receiver_drops", COUNT, AT(totals.receiver_drops), false},
	{"marked", COUNT, AT(totals.ports.marked), false},
	{"depth_p50_bytes", COUNT, AT(depth_p50), false},
	{"depth_p99_bytes", COUNT, AT(depth_p99), false},
	{"depth_max_bytes", COUNT, AT(totals.ports.deepest), true},
	{"dead", COUNT, AT(dead), false},
	{"failed", COUNT, AT(failed), false},
	{"wrong_bytes", COUNT, AT(wrong), false},
	{"delivered_bytes", COUNT, AT(delivered), false},
	{"events", COUNT, AT(events), false},
};

_Static_assert(sizeof(((struct sim_link_stats *)0)->deepest) == 8, "COUNT is 64 bits");

int
sim_column(const char *name)
{
	for (unsigned i = 0; i < SK_ARRAY_LEN(columns); i++)
		if (strcmp(columns[i].name, name) == 0)
			return (int)i;
	return -1;
}

double
sim_value(const struct sim_result *r, unsigned column)
{
	const char *at = (const char *)r + columns[column].offset;

	switch (columns[column].type) {
	case REAL:
		return *(const double *)at;
	case COUNT:
		return (double)*(const uint64_t *)at;
	default:
		return *(const bool *)at;
	}
}

double
sim_jain(const double *value, size_t n)
{
	double sum = 0, squares = 0;

	for (size_t i = 0; i < n; i++) {
		sum += value[i];
		squares += value[i] * value[i];
	}
	return squares > 0 ? sum * sum / ((double)n * squares) : 1;
}

/* Returns the fairness of the flows' rates: over the measurement, or, if the scenario sets a number
 * of messages, each over the flow's own duration. */
static double
fairness(struct sim_world *w)
{
	double *rate = sim_calloc(w->nflows, sizeof(*rate)), jain;

	for (uint32_t i = 0; i < w->nflows; i++) {
		const struct sim_flow *f = &w->flows[i];

		rate[i] = (double)f->measured;
		if (w->sc->messages != 0)
			rate[i] = f->last > f->first
					  ? (double)f->delivered / (double)(f->last - f->first)
					  : 0;
	}
	jain = sim_jain(rate, w->nflows);
	free(rate);
	return jain;
}

static uint32_t
receivers(const struct sim_world *w)
{
	uint8_t *is = sim_calloc(w->sc->hosts, 1);
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->nflows; i++) {
		n += !is[w->flows[i].dst->id];
		is[w->flows[i].dst->id] = 1;
	}
	free(is);
	return n;
}

void
sim_result_of(struct sim_world *w, int rc, struct sim_result *r)
{
	static const double quantile[] = {0.5, 0.9, 0.99, 0.999};
	const struct sk_hist *h = &w->completion;
	sim_time end = w->until < w->events.now ? w->until : w->events.now;
	sim_time from = w->sc->messages ? 0 : w->from;

	memset(r, 0, sizeof(*r));
	r->finished = rc == 0;
	r->seconds = end > from ? (double)(end - from) / (double)SIM_S : 0;
	r->delivered = w->delivered;
	if (r->seconds > 0)
		r->goodput_gbps = (double)w->delivered * 8e-9 / r->seconds;
	r->share = 100 * r->goodput_gbps / (w->sc->link_gbps * receivers(w));
	r->jain = fairness(w);
	r->messages = h->count;
	for (unsigned i = 0; i < SK_ARRAY_LEN(quantile); i++)
		r->fct_us[i] = (double)sk_hist_quantile(h, quantile[i]) / 1000;
	if (h->count > 0) {
		r->fct_us[4] = (double)h->max / 1000;
		r->fct_us[5] = (double)h->sum / (double)h->count / 1000;
	}
	r->events = w->events.fired;
	r->wrong = w->wrong;
	r->dead = w->ndead;
	r->failed = w->failed;
	r->depth_p50 = sk_hist_quantile(&w->depths, 0.5);
	r->depth_p99 = sk_hist_quantile(&w->depths, 0.99);
	sim_world_totals(w, &r->totals);
}

/* ---- CSV ---- */

static void
print_value(FILE *f, const struct sim_result *r, unsigned i, int width, const char *after)
{
	if (columns[i].type == REAL)
		fprintf(f, "%*.*f%s", width, width ? 3 : 6, sim_value(r, i), after);
	else
		fprintf(f, "%*.0f%s", width, sim_value(r, i), after);
}

void
sim_csv_head(FILE *f, const struct sim_file *file)
{
	for (unsigned i = 0; i < file->nsweeps; i++)
		fprintf(f, "%s.%s,", file->sweep[i].section, file->sweep[i].key);
	for (unsigned i = 0; i < SK_ARRAY_LEN(columns); i++)
		fprintf(f, "%s%s", columns[i].name, i + 1 < SK_ARRAY_LEN(columns) ? "," : "\n");
}

void
sim_csv_row(FILE *f, const struct sim_file *file, const char *const values[SIM_SWEEPS],
	const struct sim_result *r)
{
	for (unsigned i = 0; i < file->nsweeps; i++)
		fprintf(f, "%s,", values[i]);
	for (unsigned i = 0; i < SK_ARRAY_LEN(columns); i++)
		print_value(f, r, i, 0, i + 1 < SK_ARRAY_LEN(columns) ? "," : "\n");
}

/* ---- The screen ---- */

#define WIDTH 12

void
sim_table_head(FILE *f, const struct sim_file *file)
{
	for (unsigned i = 0; i < file->nsweeps; i++)
		fprintf(f, "%*s ", WIDTH, file->sweep[i].key);
	for (unsigned i = 0; i < SK_ARRAY_LEN(columns); i++)
		if (columns[i].shown)
			fprintf(f, "%*.*s ", WIDTH, WIDTH, columns[i].name);
	fprintf(f, "\n");
}

void
sim_table_row(FILE *f, const struct sim_file *file, const char *const values[SIM_SWEEPS],
	const struct sim_result *r)
{
	for (unsigned i = 0; i < file->nsweeps; i++)
		fprintf(f, "%*s ", WIDTH, values[i]);
	for (unsigned i = 0; i < SK_ARRAY_LEN(columns); i++)
		if (columns[i].shown)
			print_value(f, r, i, WIDTH, " ");
	fprintf(f, "%s%s\n", r->finished ? "" : " did not finish",
		r->wrong              ? " WRONG BYTES"
		: r->dead + r->failed ? " FAILED"
				      : "");
}
