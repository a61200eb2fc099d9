/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs one end, on a port of its own or as a client of a running saker. It does not measure the
 * floor, which requires both ends in one process. */
#include <rte_ethdev.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "../../lib/base/mem.h"
#include "perf.h"

static int
single_attach(struct perf_end *e, const struct perf_options *o)
{
	struct saker *s;
	uint16_t port = 0;
	int rc;

	if (o->client != NULL) {
		rc = saker_open(o->client, "saker-perf", &s);
		return rc < 0 ? perf_fail(o->client, rc) : perf_end_open(e, s);
	}
	if (rte_eth_dev_count_avail() == 0) {
		fprintf(stderr,
			"saker-perf: EAL found no Ethernet port; add one with -a or --vdev\n");
		return -1;
	}
	e->engine = perf_engine(o, port, &o->address, 1);
	if (e->engine == NULL || (o->pcap != NULL && perf_pcap_open(port, o->pcap)))
		return -1;
	return perf_attach(e);
}

/* Returns the processor time of this process in ns. */
static uint64_t
processor_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int
single_rounds(struct perf_end *e, struct perf_report *report)
{
	uint32_t each = SK_MAX(1u, e->o->iters / e->o->rounds);
	uint64_t start = eng_clock(), used = processor_time();

	for (uint32_t r = 0; r < e->o->rounds; r++)
		if (perf_round(e, r, each, &report->real, &report->versus))
			return -1;
	report->cpu_use = (double)(processor_time() - used) / (double)(eng_clock() - start);
	return 0;
}

/* Measures one size. */
static int
single_step(struct perf_end *e, const struct perf_options *all, unsigned step)
{
	static struct sk_hist lat, versus_lat;
	struct perf_options o = perf_step(all, step);
	struct perf_report report = {.o = &o,
		.step = step,
		.steps = perf_steps(all),
		.real.lat = &lat,
		.versus.lat = &versus_lat,
		.cpu = {sched_getcpu(), -1}};
	int rc;

	sk_hist_init(&lat);
	sk_hist_init(&versus_lat);
	e->o = &o;
	rc = perf_verify(e) || single_rounds(e, &report) ? -1 : 0;
	e->o = all;
	if (rc || !e->active)
		return rc;
	report.errors = perf_mistakes(e);
	report.verified = perf_verified(&o);
	report.connect_ns = e->connect_ns;
	if (o.test != PERF_LAT)
		report.real.lat = report.versus.lat = NULL;
	perf_report_print(&report);
	return 0;
}

static int
single_work(struct perf_end *e, const struct perf_options *o)
{
	struct sk_addr to;

	if (e->active && sk_addr_parse(o->connect, &to) < 0) {
		fprintf(stderr, "saker-perf: --connect %s is not an IPv4 or IPv6 address\n",
			o->connect);
		return -1;
	}
	if (single_attach(e, o))
		return -1;
	if (e->active ? perf_end_connect(e, &to) : perf_end_listen(e) || perf_end_accept(e))
		return -1;
	for (unsigned step = 0; step < perf_steps(o); step++)
		if (single_step(e, o, step))
			return -1;
	return 0;
}

int
perf_single(const struct perf_options *o)
{
	struct perf_end e = {.o = o, .active = o->connect != NULL};
	uint64_t errors;
	int rc = single_work(&e, o);

	errors = rc == 0 && e.active ? perf_mistakes(&e) : e.errors;
	if (rc == 0 && !e.active)
		perf_linger(&e);
	else if (e.s != NULL)
		perf_settle(&e);
	if (o->counters && e.engine != NULL)
		perf_counters_print(e.engine, 0, e.active ? "active" : "passive");
	perf_end_close(&e);
	perf_pcap_close();
	return rc || errors;
}
