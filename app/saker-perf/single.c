/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs one end, on a port of its own or as a client of a running saker. It does not measure the
 * floor, which requires both ends in one process. */
#include <rte_ethdev.h>
#include <string.h>

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

static int
single_work(struct perf_end *e, struct perf_report *report)
{
	const struct perf_options *o = e->o;
	uint32_t each = SK_MAX(1u, o->iters / o->rounds);

	if (perf_verify(e))
		return -1;
	for (uint32_t r = 0; r < o->rounds; r++)
		if (perf_round(e, r, each, &report->real, &report->versus))
			return -1;
	return 0;
}

int
perf_single(const struct perf_options *o)
{
	static struct sk_hist lat, versus_lat;
	struct perf_end e = {.o = o, .active = o->connect != NULL};
	struct perf_report report = {.o = o, .real.lat = &lat, .versus.lat = &versus_lat};
	struct sk_addr to;
	int rc;

	sk_hist_init(&lat);
	sk_hist_init(&versus_lat);
	if (o->connect != NULL && sk_addr_parse(o->connect, &to) < 0) {
		fprintf(stderr, "saker-perf: --connect %s is not an IPv4 or IPv6 address\n",
			o->connect);
		return 1;
	}
	rc = single_attach(&e, o);
	if (rc == 0)
		rc = e.active              ? perf_end_connect(&e, &to)
		     : perf_end_listen(&e) ? -1
					   : perf_end_accept(&e);
	if (rc == 0)
		rc = single_work(&e, &report);
	if (rc == 0 && e.active) {
		report.errors = perf_mistakes(&e);
		report.verified = perf_verified(o);
		report.connect_ns = e.connect_ns;
		if (o->test != PERF_LAT)
			report.real.lat = report.versus.lat = NULL;
		perf_report_print(&report);
	}
	perf_settle(&e);
	if (o->counters && e.engine != NULL)
		perf_counters_print(e.engine, 0, e.active ? "active" : "passive");
	perf_end_close(&e);
	perf_pcap_close();
	return rc || (e.active ? report.errors : e.errors);
}
