/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The metrics in the form of OpenMetrics 1.0. All samples of a metric follow its HELP and TYPE, so
 * that each metric is a walk over the machines' engines. The values are those that stages publish;
 * no stage is asked for anything, except the control stages for their clients.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>

#include "../../lib/command/http.h"
#include "saker.h"

#define METRICS_ENGINES (GW_VMS + 1)
#define METRICS_CLIENTS 1024 /* of one engine */
#define LABEL_LEN       256

/* An engine, with copies of what outlives a call of gateway_each(). */
struct metrics_engine {
	char machine[GW_NAME_MAX];
	struct eng_totals totals;
	struct eng_counter *counter; /* [ncounters], in the order of eng_counter_next() */
	unsigned ncounters, at;
	struct eng_latency *latency; /* [nlatencies] */
	unsigned nlatencies;
	struct eng_client_view *clients;
	int nclients;
};

struct metrics {
	struct app *app;
	FILE *to;
	struct metrics_engine engines[METRICS_ENGINES];
	unsigned n;
};

/* ---- Collecting ---- */

static void
collect_counters(struct metrics_engine *m, const struct eng *e)
{
	struct eng_counter c = {.reason = 1};
	unsigned n = 0;

	while (eng_counter_next(e, &c))
		m->ncounters++;
	m->counter = calloc(m->ncounters, sizeof(m->counter[0]));
	c = (struct eng_counter){.reason = 1};
	while (m->counter != NULL && n < m->ncounters && eng_counter_next(e, &c))
		m->counter[n++] = c;
	m->ncounters = n;
}

static void
collect_latencies(struct metrics_engine *m, const struct eng *e)
{
	struct eng_latency l = {.next = 0};
	unsigned n = 0;

	while (eng_latency_next(e, &l))
		m->nlatencies++;
	m->latency = calloc(m->nlatencies, sizeof(m->latency[0]));
	l = (struct eng_latency){.next = 0};
	while (m->latency != NULL && n < m->nlatencies && eng_latency_next(e, &l))
		m->latency[n++] = l;
	m->nlatencies = n;
}

static void
collect_engine(void *arg, const char *machine, struct eng *e)
{
	struct metrics *all = arg;
	struct metrics_engine *m = &all->engines[all->n];

	if (all->n == METRICS_ENGINES)
		return;
	all->n++;
	snprintf(m->machine, sizeof(m->machine), "%s", machine);
	eng_totals(e, &m->totals);
	collect_counters(m, e);
	collect_latencies(m, e);
	m->clients = calloc(METRICS_CLIENTS, sizeof(m->clients[0]));
	if (m->clients != NULL && m->totals.clients > 0 && run_running())
		m->nclients = eng_clients(e, m->clients, METRICS_CLIENTS);
}

/* ---- Writing ---- */

static void
metric(const struct metrics *all, const char *name, const char *type, const char *help)
{
	fprintf(all->to, "# TYPE saker_%s %s\n# HELP saker_%s %s\n", name, type, name, help);
}

/* Escapes a value of a label. Bytes that are not printable ASCII become '?'. */
static const char *
label(const char *text, char buf[LABEL_LEN])
{
	size_t n = 0;

	for (; *text != '\0' && n + 3 < LABEL_LEN; text++) {
		if (*text == '"' || *text == '\\')
			buf[n++] = '\\';
		buf[n++] = isprint((unsigned char)*text) ? *text : '?';
	}
	buf[n] = '\0';
	return buf;
}

/* Writes the name of a counter in small letters. The name of its layer is a part of it. */
static void
counter_name(const char *name, char *out, size_t len)
{
	size_t n = 0;

	for (; name[n] != '\0' && n + 1 < len; n++)
		out[n] = (char)tolower((unsigned char)name[n]);
	out[n] = '\0';
}

static bool
same_counter(const struct eng_counter *a, const struct eng_counter *b)
{
	return a->list == b->list && a->reason == b->reason;
}

/* Writes the samples of a counter of all engines, which have the counters in the same order. */
static void
write_counter(struct metrics *all, const struct eng_counter *which)
{
	char name[64];

	counter_name(which->name, name, sizeof(name));
	metric(all, name, "counter", which->help);
	for (unsigned i = 0; i < all->n; i++) {
		struct metrics_engine *m = &all->engines[i];

		for (; m->at < m->ncounters && same_counter(&m->counter[m->at], which); m->at++)
			fprintf(all->to,
				"saker_%s_total{machine=\"%s\",stage=\"%s\"} %" PRIu64 "\n", name,
				m->machine, m->counter[m->at].stage_name, m->counter[m->at].value);
	}
}

static void
write_counters(struct metrics *all)
{
	struct metrics_engine *host = &all->engines[0];

	while (host->at < host->ncounters)
		write_counter(all, &host->counter[host->at]);
}

/* Writes a histogram. Its count is the sum of the buckets, as the stage may add to them meanwhile.
 */
static void
write_latency(const struct metrics *all, const char *machine, const struct eng_latency *l)
{
	const uint64_t second = 1000000000;
	uint64_t n = 0;
	char labels[LABEL_LEN];

	snprintf(labels, sizeof(labels), "machine=\"%s\",stage=\"%s\",transport=\"%s\"", machine,
		l->stage_name, l->transport);
	for (unsigned i = 0; i < RD_LATENCY_BOUNDS; i++) {
		n += l->bucket[i];
		fprintf(all->to, "saker_request_seconds_bucket{%s,le=\"%.10g\"} %" PRIu64 "\n",
			labels, (double)(1ull << (RD_LATENCY_LOG2 + i)) / (double)second, n);
	}
	n += l->bucket[RD_LATENCY_BOUNDS];
	fprintf(all->to,
		"saker_request_seconds_bucket{%s,le=\"+Inf\"} %" PRIu64 "\n"
		"saker_request_seconds_count{%s} %" PRIu64 "\n"
		"saker_request_seconds_sum{%s} %" PRIu64 ".%09" PRIu64 "\n",
		labels, n, labels, n, labels, l->sum / second, l->sum % second);
}

static void
write_latencies(const struct metrics *all)
{
	char help[256];

	snprintf(help, sizeof(help),
		"time from the turn in which an engine stage took a work request to the turn in "
		"which it completed the request without an error, of a sample: one of each %d "
		"requests of a queue pair",
		RD_SAMPLE);
	metric(all, "request_seconds", "histogram", help);
	fprintf(all->to, "# UNIT saker_request_seconds seconds\n");
	for (unsigned i = 0; i < all->n; i++)
		for (unsigned k = 0; k < all->engines[i].nlatencies; k++)
			write_latency(all, all->engines[i].machine, &all->engines[i].latency[k]);
}

/* A value of an engine, at an offset in struct eng_totals. */
static const struct total {
	const char *name, *type, *help;
	size_t at;
	bool wide; /* uint64_t, not uint32_t */
} totals[] = {
#define TOTAL(f) offsetof(struct eng_totals, f)
	{"clients", "gauge", "attached clients", TOTAL(clients), false},
	{"queue_pairs", "gauge", "queue pairs", TOTAL(qps), false},
	{"completion_queues", "gauge", "completion queues", TOTAL(cqs), false},
	{"memory_regions", "gauge", "memory regions", TOTAL(mrs), false},
	{"memory_windows", "gauge", "memory windows", TOTAL(mws), false},
	{"protection_domains", "gauge", "protection domains", TOTAL(pds), false},
	{"shared_receive_queues", "gauge", "shared receive queues", TOTAL(srqs), false},
	{"listeners", "gauge", "listeners", TOTAL(listeners), false},
	{"connections", "gauge", "connections of the transport stages", TOTAL(conns), false},
	{"receive_mbufs", "gauge", "mbufs for received frames", TOTAL(rx_mbufs), false},
	{"receive_mbufs_free", "gauge", "free mbufs for received frames", TOTAL(rx_mbufs_free),
		false},
	{"send_mbufs", "gauge", "mbufs for sending", TOTAL(tx_mbufs), false},
	{"send_mbufs_free", "gauge", "free mbufs for sending", TOTAL(tx_mbufs_free), false},
	{"messages_received", "counter", "RDMA messages received", TOTAL(msgs_in), true},
	{"messages_sent", "counter", "RDMA messages sent", TOTAL(msgs_out), true},
	{"message_bytes_received", "counter", "payload bytes of RDMA messages received",
		TOTAL(bytes_in), true},
	{"message_bytes_sent", "counter", "payload bytes of RDMA messages sent", TOTAL(bytes_out),
		true},
};

static void
write_totals(const struct metrics *all)
{
	for (size_t k = 0; k < sizeof(totals) / sizeof(totals[0]); k++) {
		const struct total *t = &totals[k];

		metric(all, t->name, t->type, t->help);
		for (unsigned i = 0; i < all->n; i++) {
			const char *at = (const char *)&all->engines[i].totals + t->at;

			fprintf(all->to, "saker_%s%s{machine=\"%s\"} %" PRIu64 "\n", t->name,
				t->type[0] == 'c' ? "_total" : "", all->engines[i].machine,
				t->wide ? *(const uint64_t *)at : *(const uint32_t *)at);
		}
	}
}

static const struct client_value {
	const char *name, *help;
	size_t at;
	bool wide;
} client_values[] = {
#define CLIENT(f) offsetof(struct eng_client_view, f)
	{"client_queue_pairs", "queue pairs of a client", CLIENT(qps), false},
	{"client_completion_queues", "completion queues of a client", CLIENT(cqs), false},
	{"client_memory_regions", "memory regions of a client", CLIENT(mrs), false},
	{"client_listeners", "listeners of a client", CLIENT(listeners), false},
	{"client_memory_bytes", "bytes that a client shares with saker", CLIENT(memory), true},
	{"client_heap_used_bytes", "bytes of a client's queues in its home region",
		CLIENT(heap_used), true},
};

static void
write_clients(const struct metrics *all)
{
	char name[LABEL_LEN];

	for (size_t k = 0; k < sizeof(client_values) / sizeof(client_values[0]); k++) {
		const struct client_value *v = &client_values[k];

		metric(all, v->name, "gauge", v->help);
		for (unsigned i = 0; i < all->n; i++)
			for (int c = 0; c < all->engines[i].nclients; c++) {
				const struct eng_client_view *cl = &all->engines[i].clients[c];
				const char *at = (const char *)cl + v->at;

				fprintf(all->to,
					"saker_%s{machine=\"%s\",client=\"%u\",name=\"%s\","
					"pid=\"%u\",uid=\"%u\"} %" PRIu64 "\n",
					v->name, all->engines[i].machine, cl->client,
					label(cl->name, name), cl->pid, cl->uid,
					v->wide ? *(const uint64_t *)at : *(const uint32_t *)at);
			}
	}
}

/* ---- Ports and loops ---- */

static const struct port_value {
	const char *name, *help;
	size_t at;
} port_values[] = {
	{"port_received_packets", "packets that a port received",
		offsetof(struct rte_eth_stats, ipackets)},
	{"port_sent_packets", "packets that a port sent", offsetof(struct rte_eth_stats, opackets)},
	{"port_received_bytes", "bytes that a port received",
		offsetof(struct rte_eth_stats, ibytes)},
	{"port_sent_bytes", "bytes that a port sent", offsetof(struct rte_eth_stats, obytes)},
	{"port_missed_packets", "packets that a port dropped because its receive queue was full",
		offsetof(struct rte_eth_stats, imissed)},
	{"port_receive_errors", "received packets with errors",
		offsetof(struct rte_eth_stats, ierrors)},
	{"port_send_errors", "packets that a port could not send",
		offsetof(struct rte_eth_stats, oerrors)},
	{"port_no_mbuf", "packets that a port dropped because no mbuf was free",
		offsetof(struct rte_eth_stats, rx_nombuf)},
};

static void
write_ports(const struct metrics *all)
{
	const struct eng_config *cfg = &all->app->s.eng;
	char device[ENG_MAX_PORTS][RTE_ETH_NAME_MAX_LEN] = {{0}}, text[LABEL_LEN];
	struct rte_eth_stats stats[ENG_MAX_PORTS] = {0};

	for (unsigned i = 0; i < cfg->nports; i++) {
		rte_eth_stats_get(cfg->ports[i].port_id, &stats[i]);
		rte_eth_dev_get_name_by_port(cfg->ports[i].port_id, device[i]);
	}
	for (size_t k = 0; k < sizeof(port_values) / sizeof(port_values[0]); k++) {
		const struct port_value *v = &port_values[k];

		metric(all, v->name, "counter", v->help);
		for (unsigned i = 0; i < cfg->nports; i++)
			fprintf(all->to, "saker_%s_total{port=\"%u\",device=\"%s\"} %" PRIu64 "\n",
				v->name, ports_label(i), label(device[i], text),
				*(const uint64_t *)((const char *)&stats[i] + v->at));
	}
	metric(all, "port_link_up", "gauge", "1 if the port has a link");
	for (unsigned i = 0; i < cfg->nports; i++) {
		struct rte_eth_link link = {0};

		rte_eth_link_get_nowait(cfg->ports[i].port_id, &link);
		fprintf(all->to, "saker_port_link_up{port=\"%u\",device=\"%s\"} %u\n",
			ports_label(i), label(device[i], text), link.link_status);
	}
}

static const struct loop_value {
	const char *name, *help;
	size_t at;
} loop_values[] = {
	{"loop_turns", "turns of a loop", offsetof(struct eng_loop_stats, turns)},
	{"loop_busy_turns", "turns of a loop that found work",
		offsetof(struct eng_loop_stats, busy_turns)},
	{"loop_cycles", "TSC cycles of a loop", offsetof(struct eng_loop_stats, total_cycles)},
	{"loop_busy_cycles", "TSC cycles of the turns that found work",
		offsetof(struct eng_loop_stats, busy_cycles)},
	{"loop_sleeps", "sleeps of a loop", offsetof(struct eng_loop_stats, sleeps)},
};

static void
write_loops(const struct metrics *all)
{
	for (size_t k = 0; k < sizeof(loop_values) / sizeof(loop_values[0]); k++) {
		const struct loop_value *v = &loop_values[k];

		metric(all, v->name, "counter", v->help);
		for (unsigned i = 0; i < all->app->s.eng.nloops; i++) {
			struct eng_loop_stats s;

			eng_loop_stats(all->app->e, i, &s);
			fprintf(all->to, "saker_%s_total{loop=\"%u\"} %" PRIu64 "\n", v->name, i,
				*(const uint64_t *)((const char *)&s + v->at));
		}
	}
	metric(all, "running", "gauge", "1 while the loops run");
	fprintf(all->to, "saker_running %d\n", run_running());
}

/* ---- The page ---- */

static void
metrics_page(void *arg, FILE *to)
{
	struct metrics *all = calloc(1, sizeof(*all));
	char name[LABEL_LEN];

	if (all == NULL)
		return;
	all->app = arg;
	all->to = to;
	gateway_each(arg, collect_engine, all);
	metric(all, "build", "info", "version and name of this saker");
	fprintf(to, "saker_build_info{version=\"%s\",name=\"%s\"} 1\n", SAKER_VERSION,
		label(all->app->s.eng.name, name));
	write_loops(all);
	write_ports(all);
	write_totals(all);
	write_clients(all);
	write_latencies(all);
	write_counters(all);
	fprintf(to, "# EOF\n");
	for (unsigned i = 0; i < all->n; i++) {
		free(all->engines[i].counter);
		free(all->engines[i].latency);
		free(all->engines[i].clients);
	}
	free(all);
}

int
metrics_check(const struct settings *s, char why[WHY_LEN])
{
	char reason[WHY_LEN / 2];

	if (s->metrics.listen[0] == '\0' ||
		cmd_http_check(s->metrics.listen, reason, sizeof(reason)) == 0)
		return 0;
	return settings_refuse_key(s, "metrics", "listen", why, "%s", reason);
}

int
metrics_open(struct app *a, char why[WHY_LEN])
{
	const struct metrics_setting *m = &a->s.metrics;

	if (m->listen[0] == '\0')
		return 0;
	if (m->listen[0] == '/')
		folder_make(m->listen);
	a->metrics = cmd_http_open(m->listen, m->group, m->mode, metrics_page, a, why, WHY_LEN);
	return a->metrics != NULL ? 0 : -EINVAL;
}
