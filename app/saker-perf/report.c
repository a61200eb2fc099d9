/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures for people (columns as perftest has them) and for programs (one JSON object). */
#include <stdarg.h>
#include <unistd.h>

#include "perf.h"

static double
ratio(const struct perf_report *r)
{
	if (r->floor.ns == 0)
		return 0;
	switch (r->o->test) {
	case PERF_LAT: {
		double floor = (double)sk_hist_quantile(r->floor.lat, 0.5);

		return floor > 0 ? (double)sk_hist_quantile(r->real.lat, 0.5) / floor : 0;
	}
	case PERF_BW:
		return perf_gbps(&r->real) / perf_gbps(&r->floor);
	case PERF_RATE:
		return perf_mops(&r->real) / perf_mops(&r->floor);
	}
	return 0;
}

static uint64_t
quantile(const struct perf_figures *f, double q)
{
	return f->lat ? sk_hist_quantile(f->lat, q) : 0;
}

static void
print_json(const struct perf_report *r)
{
	const struct perf_options *o = r->o;

	printf("{\"transport\": \"iwarp\", \"op\": \"%s\", \"test\": \"%s\", \"size\": %u, \"mtu\": %u, "
	       "\"qps\": %u, \"idle_qps\": %u, \"depth\": %u, \"iters\": %lu, ",
		perf_op_name(o->op), perf_test_name(o->test), o->size, o->mtu, o->qps, o->idle_qps,
		o->depth, (unsigned long)r->real.msgs);
	printf("\"p50_ns\": %lu, \"p99_ns\": %lu, \"p999_ns\": %lu, \"gbps\": %.3f, \"mops\": %.4f, ",
		(unsigned long)quantile(&r->real, 0.5), (unsigned long)quantile(&r->real, 0.99),
		(unsigned long)quantile(&r->real, 0.999), perf_gbps(&r->real), perf_mops(&r->real));
	if (r->floor.ns)
		printf("\"floor_p50_ns\": %lu, \"floor_gbps\": %.3f, \"floor_mops\": %.4f, "
		       "\"ratio\": %.3f, ",
			(unsigned long)quantile(&r->floor, 0.5), perf_gbps(&r->floor),
			perf_mops(&r->floor), ratio(r));
	else
		printf("\"floor_p50_ns\": null, \"floor_gbps\": null, \"floor_mops\": null, "
		       "\"ratio\": null, ");
	printf("\"verified\": %u, \"errors\": %lu}\n", r->verified, (unsigned long)r->errors);
}

static void
print_lat(const char *name, const struct perf_figures *f)
{
	printf("%-6s %12.2f %12.2f %12.2f %12.2f\n", name, (double)f->lat->min / 1e3,
		(double)quantile(f, 0.5) / 1e3, (double)quantile(f, 0.99) / 1e3,
		(double)quantile(f, 0.999) / 1e3);
}

static void
print_table(const struct perf_report *r)
{
	const struct perf_options *o = r->o;

	printf("RDMA_%s %s over iwarp: %u bytes, MTU %u, %u QPs (and %u idle), depth %u, %lu iterations\n",
		perf_op_name(o->op), perf_test_name(o->test), o->size, o->mtu, o->qps, o->idle_qps,
		o->depth, (unsigned long)r->real.msgs);
	if (o->test == PERF_LAT) {
		printf("%-6s %12s %12s %12s %12s\n", "", "t_min[us]", "p50[us]", "p99[us]",
			"p99.9[us]");
		print_lat("saker", &r->real);
		if (r->floor.ns)
			print_lat("floor", &r->floor);
	} else {
		printf("%-6s %12s %12s\n", "", "BW[Gb/s]", "Rate[Mop/s]");
		printf("%-6s %12.2f %12.3f\n", "saker", perf_gbps(&r->real), perf_mops(&r->real));
		if (r->floor.ns)
			printf("%-6s %12.2f %12.3f\n", "floor", perf_gbps(&r->floor),
				perf_mops(&r->floor));
	}
	if (r->floor.ns)
		printf("ratio  %12.3f\n", ratio(r));
	printf("errors %12lu   (%u operations compared byte by byte)\n", (unsigned long)r->errors,
		r->verified);
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
