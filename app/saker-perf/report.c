/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the figures as a table, with perftest's columns, or as one JSON object. */
#include <math.h>
#include <stdarg.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "perf.h"

bool
perf_is_better(enum perf_test test, const struct perf_figures *a, const struct perf_figures *b)
{
	if (a->ns == 0)
		return false;
	if (test == PERF_LAT)
		return sk_hist_quantile(a->lat, 0.5) < sk_hist_quantile(b->lat, 0.5);
	return perf_mops(a) > perf_mops(b);
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

/* Prints a text with the characters that JSON quotes. */
static void
print_text(const char *name, const char *text)
{
	printf("\"%s\": \"", name);
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar((unsigned char)*text < ' ' ? '?' : *text);
	}
	printf("\", ");
}

/* Prints what distinguishes one run from another: host, version, time and processors. */
static void
print_json_place(const struct perf_report *r)
{
	time_t now = time(NULL);
	struct utsname host;
	struct tm utc;
	char date[32];

	uname(&host);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
	print_text("host", host.nodename);
	print_text("version", SAKER_VERSION);
	print_text("date", date);
	printf("\"cpu\": %d, \"peer_cpu\": ", r->cpu[0]);
	printf(r->cpu[1] >= 0 ? "%d, " : "null, ", r->cpu[1]);
	printf("\"cpu_percent\": ");
	printf(r->cpu_use > 0 ? "%.1f, " : "null, ", 100 * r->cpu_use);
}

static void
print_json_floor(const struct perf_report *r)
{
	if (r->floor.ns == 0) {
		printf("\"floor_p50_ns\": null, \"floor_p99_ns\": null, \"floor_gbps\": null, "
		       "\"floor_mops\": null, \"floor_stores\": null, "
		       "\"frame_floor_ns\": null, \"ratio\": null, ");
		return;
	}
	printf("\"floor_p50_ns\": %lu, \"floor_p99_ns\": %lu, \"floor_gbps\": %.3f, "
	       "\"floor_mops\": %.4f, \"floor_stores\": \"%s\", \"frame_floor_ns\": %lu, "
	       "\"ratio\": %.3f, ",
		(unsigned long)quantile(&r->floor, 0.5), (unsigned long)quantile(&r->floor, 0.99),
		perf_gbps(&r->floor), perf_mops(&r->floor), perf_floor_kind_name(r->floor_kind),
		(unsigned long)r->placement, ratio(r, &r->floor));
}

static void
print_json_latency(const struct sk_hist *h)
{
	if (h == NULL)
		return;
	printf("\"min_ns\": %lu, \"max_ns\": %lu, \"avg_ns\": %.1f, \"stdev_ns\": %.1f, ",
		(unsigned long)h->min, (unsigned long)h->max, sk_hist_mean(h),
		sqrt(sk_hist_variance(h)));
}

static void
print_json(const struct perf_report *r)
{
	const struct perf_options *o = r->o;

	printf("{\"transport\": \"%s\", \"op\": \"%s\", \"test\": \"%s\", \"size\": %u, "
	       "\"mtu\": %u, \"qps\": %u, \"idle_qps\": %u, \"depth\": %u, \"iters\": %lu, "
	       "\"bidirectional\": %s, ",
		perf_transport_name(o->transport), perf_op_name(o->op), perf_test_name(o->test),
		o->size, o->mtu, o->qps, o->idle_qps, o->depth, (unsigned long)r->real.msgs,
		o->bidirectional ? "true" : "false");
	print_json_place(r);
	print_json_latency(r->real.lat);
	printf("\"p50_ns\": %lu, \"p99_ns\": %lu, \"p999_ns\": %lu, \"gbps\": %.3f, "
	       "\"peak_gbps\": %.3f, \"mops\": %.4f, ",
		(unsigned long)quantile(&r->real, 0.5), (unsigned long)quantile(&r->real, 0.99),
		(unsigned long)quantile(&r->real, 0.999), perf_gbps(&r->real), r->real.peak,
		perf_mops(&r->real));
	print_json_floor(r);
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
	printf("\"verified\": %u, \"errors\": %lu}", r->verified, (unsigned long)r->errors);
}

/* Prints a time in us, with as many decimals as its column has room for. */
static void
print_us(double ns)
{
	double us = ns / 1e3;

	printf(" %7.*f", us < 1000 ? 2 : us < 10000 ? 1 : 0, us);
}

static void
print_latency(const struct perf_figures *f)
{
	print_us((double)f->lat->min);
	print_us((double)f->lat->max);
	print_us((double)quantile(f, 0.5));
	print_us(sk_hist_mean(f->lat));
	print_us(sqrt(sk_hist_variance(f->lat)));
	print_us((double)quantile(f, 0.99));
	print_us((double)quantile(f, 0.999));
}

#define LATENCY_HEAD "   t_min   t_max     p50   t_avg t_stdev     p99   p99.9"
#define STREAM_HEAD  "    peak[Gb/s] average[Gb/s]   rate[Mop/s]"

static void
report_print_row(const struct perf_report *r, const char *name, const struct perf_figures *f)
{
	if (f->ns == 0)
		return;
	printf("%-14s", name);
	if (r->o->test == PERF_LAT)
		print_latency(f);
	else
		printf(" %13.2f %13.2f %13.3f", f->peak, perf_gbps(f), perf_mops(f));
	putchar('\n');
}

/* Prints the pairs of a latency and a count. */
static void
print_counts(const struct perf_figures *f)
{
	puts("latency[us]        messages");
	for (unsigned b = 0; b < SK_HIST_BUCKETS; b++)
		if (f->lat->bucket[b])
			printf("%11.3f %15lu\n", (double)sk_hist_bucket_middle(b) / 1e3,
				(unsigned long)f->lat->bucket[b]);
}

static void
print_end(const struct perf_report *r)
{
	const struct perf_options *o = r->o;

	printf("connected  %12u   at %.0f per second\n", o->qps + o->idle_qps, connect_rate(r));
	if (r->cpu_use > 0)
		printf("processor  %11.0f %%   of the time of this process\n", 100 * r->cpu_use);
	printf("errors     %12lu   (%u operations compared byte by byte)\n",
		(unsigned long)r->errors, r->verified);
}

/* Prints the heading of the test, without sizes. */
static void
print_title(const struct perf_report *r, const char *what)
{
	const struct perf_options *o = r->o;

	printf("RDMA_%s %s over %s: %s, MTU %u\n%u QPs (and %u idle), depth %u%s\n",
		perf_op_name(o->op), perf_test_name(o->test), perf_transport_name(o->transport),
		what, o->mtu, o->qps, o->idle_qps, o->depth,
		o->bidirectional ? ", both directions" : "");
}

static void
print_table(const struct perf_report *r)
{
	const struct perf_options *o = r->o;
	char what[64];

	snprintf(what, sizeof(what), "%u bytes, %lu iterations", o->size,
		(unsigned long)r->real.msgs);
	print_title(r, what);
	printf("%-14s%s\n", o->test == PERF_LAT ? "[us]" : "",
		o->test == PERF_LAT ? LATENCY_HEAD : STREAM_HEAD);
	report_print_row(r, "saker", &r->real);
	report_print_row(r, "floor", &r->floor);
	if (r->versus.ns)
		report_print_row(r, perf_op_name(o->versus), &r->versus);
	if (r->floor.ns)
		printf("ratio      %12.3f   to the floor, with %s stores\n", ratio(r, &r->floor),
			perf_floor_kind_name(r->floor_kind));
	if (r->versus.ns)
		printf("ratio      %12.3f   to %s\n", ratio(r, &r->versus),
			perf_op_name(o->versus));
	if (o->histogram)
		print_counts(&r->real);
	print_end(r);
}

/* Prints the row of a size, below the heading of the first one. */
static void
print_sizes(const struct perf_report *r)
{
	const struct perf_options *o = r->o;
	char ratios[16] = "-";

	if (r->step == 0) {
		print_title(r, o->test == PERF_LAT ? "all sizes, times in us" : "all sizes");
		puts(o->test == PERF_LAT ? "#bytes  #iters" LATENCY_HEAD "   ratio"
					 : "#bytes  #iters" STREAM_HEAD "   ratio");
	}
	if (r->floor.ns)
		snprintf(ratios, sizeof(ratios), "%.3f", ratio(r, &r->floor));
	printf("%-7u %6lu", o->size, (unsigned long)r->real.msgs);
	if (o->test == PERF_LAT)
		print_latency(&r->real);
	else
		printf(" %13.2f %13.2f %13.3f", r->real.peak, perf_gbps(&r->real),
			perf_mops(&r->real));
	printf(" %7s\n", ratios);
	if (o->histogram)
		print_counts(&r->real);
	if (r->step + 1 == r->steps)
		print_end(r);
}

void
perf_report_print(const struct perf_report *r)
{
	bool first = r->step == 0, last = r->step + 1 == r->steps;

	if (r->o->json) {
		fputs(first && !last ? "[" : "", stdout);
		print_json(r);
		puts(!last ? "," : !first ? "]" : "");
	} else if (r->steps > 1) {
		print_sizes(r);
	} else {
		print_table(r);
	}
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
