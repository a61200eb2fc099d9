/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the figures as a table, with perftest's columns, or as one JSON object. */
#include <stdarg.h>
#include <unistd.h>

#include "perf.h"

const struct perf_figures *
perf_better(enum perf_test test, const struct perf_figures *a, const struct perf_figures *b)
{
	if (b->ns == 0)
		return a;
	if (test == PERF_LAT)
		return sk_hist_quantile(b->lat, 0.5) < sk_hist_quantile(a->lat, 0.5) ? b : a;
	return perf_mops(b) > perf_mops(a) ? b : a;
}

/* Returns the ratio of the measured operation to `other`, the floor or another operation. */
static double
ratio(const struct perf_report *r, const struct perf_figures *other)
{
	if (other->ns == 0)
		return 0;
	switch (r->o->test) {
	case PERF_LAT: {
		double p50 = (double)sk_hist_quantile(other->lat, 0.5);

		return p50 > 0 ? (double)sk_hist_quantile(r->real.lat, 0.5) / p50 : 0;
	}
	case PERF_BW:
		return perf_gbps(&r->real) / perf_gbps(other);
	case PERF_RATE:
		return perf_mops(&r->real) / perf_mops(other);
	}
	return 0;
}

static uint64_t
quantile(const struct perf_figures *f, double q)
{
	return f->lat != NULL ? sk_hist_quantile(f->lat, q) : 0;
}

/* Prints the buckets of a histogram: pairs of a latency in ns and a count. */
static void
print_histogram(const char *name, const struct perf_figures *f)
{
	const char *comma = "";

	if (f->ns == 0 || f->lat == NULL)
		return;
	printf("\"%s\": [", name);
	for (unsigned b = 0; b < SK_HIST_BUCKETS; b++) {
		if (f->lat->bucket[b] == 0)
			continue;
		printf("%s[%lu, %lu]", comma, (unsigned long)sk_hist_bucket_middle(b),
			(unsigned long)f->lat->bucket[b]);
		comma = ", ";
	}
	printf("], ");
}

/* Returns how many connections per second the connecting end made. */
static double
connect_rate(const struct perf_report *r)
{
	return r->connect_ns ? 1e9 * (double)(r->o->qps + r->o->idle_qps) / (double)r->connect_ns
			     : 0;
}

static void
print_json(const struct perf_report *r)
{
	const struct perf_options *o = r->o;

	printf("{\"transport\": \"%s\", \"op\": \"%s\", \"test\": \"%s\", \"size\": %u, "
	       "\"mtu\": %u, \"qps\": %u, \"idle_qps\": %u, \"depth\": %u, \"iters\": %lu, ",
		perf_transport_name(o->transport), perf_op_name(o->op), perf_test_name(o->test),
		o->size, o->mtu, o->qps, o->idle_qps, o->depth, (unsigned long)r->real.msgs);
	printf("\"p50_ns\": %lu, \"p99_ns\": %lu, \"p999_ns\": %lu, \"gbps\": %.3f, "
	       "\"mops\": %.4f, ",
		(unsigned long)quantile(&r->real, 0.5), (unsigned long)quantile(&r->real, 0.99),
		(unsigned long)quantile(&r->real, 0.999), perf_gbps(&r->real), perf_mops(&r->real));
	if (r->floor.ns)
		printf("\"floor_p50_ns\": %lu, \"floor_p99_ns\": %lu, \"floor_gbps\": %.3f, "
		       "\"floor_mops\": %.4f, \"floor_stores\": \"%s\", \"frame_floor_ns\": %lu, "
		       "\"ratio\": %.3f, ",
			(unsigned long)quantile(&r->floor, 0.5),
			(unsigned long)quantile(&r->floor, 0.99), perf_gbps(&r->floor),
			perf_mops(&r->floor), r->stream ? "streaming" : "plain",
			(unsigned long)r->placement, ratio(r, &r->floor));
	else
		printf("\"floor_p50_ns\": null, \"floor_p99_ns\": null, \"floor_gbps\": null, "
		       "\"floor_mops\": null, \"floor_stores\": null, "
		       "\"frame_floor_ns\": null, \"ratio\": null, ");
	printf("\"connects\": %u, \"connects_per_s\": %.0f, ", o->qps + o->idle_qps,
		connect_rate(r));
	if (r->versus.ns)
		printf("\"versus\": \"%s\", \"versus_p50_ns\": %lu, \"versus_gbps\": %.3f, "
		       "\"versus_mops\": %.4f, \"versus_ratio\": %.3f, ",
			perf_op_name(o->versus), (unsigned long)quantile(&r->versus, 0.5),
			perf_gbps(&r->versus), perf_mops(&r->versus), ratio(r, &r->versus));
	if (o->histogram) {
		print_histogram("histogram", &r->real);
		print_histogram("floor_histogram", &r->floor);
	}
	printf("\"verified\": %u, \"errors\": %lu}\n", r->verified, (unsigned long)r->errors);
}

static void
report_print_row(const struct perf_report *r, const char *name, const struct perf_figures *f)
{
	if (f->ns == 0)
		return;
	if (r->o->test == PERF_LAT)
		printf("%-10s %12.2f %12.2f %12.2f %12.2f\n", name, (double)f->lat->min / 1e3,
			(double)quantile(f, 0.5) / 1e3, (double)quantile(f, 0.99) / 1e3,
			(double)quantile(f, 0.999) / 1e3);
	else
		printf("%-10s %12.2f %12.3f\n", name, perf_gbps(f), perf_mops(f));
}

static void
print_table(const struct perf_report *r)
{
	const struct perf_options *o = r->o;

	printf("RDMA_%s %s over %s: %u bytes, MTU %u, %u QPs (and %u idle), depth %u, "
	       "%lu iterations\n",
		perf_op_name(o->op), perf_test_name(o->test), perf_transport_name(o->transport),
		o->size, o->mtu, o->qps, o->idle_qps, o->depth, (unsigned long)r->real.msgs);
	if (o->test == PERF_LAT)
		printf("%-10s %12s %12s %12s %12s\n", "", "t_min[us]", "p50[us]", "p99[us]",
			"p99.9[us]");
	else
		printf("%-10s %12s %12s\n", "", "BW[Gb/s]", "Rate[Mop/s]");
	report_print_row(r, "saker", &r->real);
	report_print_row(r, "floor", &r->floor);
	if (r->versus.ns)
		report_print_row(r, perf_op_name(o->versus), &r->versus);
	if (r->floor.ns)
		printf("ratio      %12.3f   to the floor, with %s stores\n", ratio(r, &r->floor),
			r->stream ? "streaming" : "plain");
	if (r->versus.ns)
		printf("ratio      %12.3f   to %s\n", ratio(r, &r->versus),
			perf_op_name(o->versus));
	printf("connected  %12u   at %.0f per second\n", o->qps + o->idle_qps, connect_rate(r));
	printf("errors     %12lu   (%u operations compared byte by byte)\n",
		(unsigned long)r->errors, r->verified);
}

void
perf_report_print(const struct perf_report *r)
{
	if (r->o->json)
		print_json(r);
	else
		print_table(r);
	fflush(stdout);
}

void
perf_progress(const struct perf_options *o, const char *fmt, ...)
{
	va_list ap;

	if (o->quiet || (o->json && !isatty(2)))
		return;
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}
