/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the state of the engine for the prompt. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>

#include "saker.h"

/* Allocates an array for a report of the stages, which can report only while the loops run. Returns
 * NULL after printing the reason. */
static void *
show_alloc(size_t n, size_t size)
{
	void *v;

	if (!run_running()) {
		printf("The loops are stopped: no stage can report. Enter 'start' first.\n");
		return NULL;
	}
	v = calloc(n, size);
	if (v == NULL)
		printf("Out of memory.\n");
	return v;
}

static struct eng_qp_view *
show_get_qps(struct app *a, int *n)
{
	struct eng_qp_view *v;
	struct eng_totals t;

	eng_totals(a->e, &t);
	v = show_alloc(t.qps + 1u, sizeof(*v));
	if (v == NULL)
		return NULL;
	*n = eng_qps(a->e, v, (int)t.qps + 1);
	return v;
}

static void
tuple_text(const struct eng_qp_view *q, char *buf, size_t len)
{
	char l[SK_ADDR_STRLEN], r[SK_ADDR_STRLEN];

	if (q->connected)
		snprintf(buf, len, "%s:%u-%s:%u", sk_addr_str(&q->tuple.laddr, l), q->tuple.lport,
			sk_addr_str(&q->tuple.raddr, r), q->tuple.rport);
	else
		snprintf(buf, len, "-");
}

static void
one_line(const struct eng_qp_view *q)
{
	char tuple[2 * SK_ADDR_STRLEN + 16];

	tuple_text(q, tuple, sizeof(tuple));
	printf("  0x%06x %6u %5u %-5s %-47s %10" PRIu64 " %10" PRIu64 "\n", q->qpn, q->client,
		q->stage, q->state, tuple, q->msgs_in, q->msgs_out);
}

static void
one_whole(const struct eng_qp_view *q)
{
	char tuple[2 * SK_ADDR_STRLEN + 16];

	tuple_text(q, tuple, sizeof(tuple));
	printf("  QP 0x%06x of client %u, stage %u: %s\n", q->qpn, q->client, q->stage, q->state);
	printf("  in:  %" PRIu64 " messages, %" PRIu64 " bytes\n", q->msgs_in, q->bytes_in);
	printf("  out: %" PRIu64 " messages, %" PRIu64 " bytes\n", q->msgs_out, q->bytes_out);
	if (!q->connected)
		return;
	printf("  connection %s, TCP %s\n", tuple, q->tcp.state != NULL ? q->tcp.state : "-");
	printf("  srtt %" PRIu64 " ns, rto %" PRIu64 " ns, emss %u, cwnd %u, ssthresh %u\n",
		q->tcp.srtt_ns, q->tcp.rto_ns, q->tcp.emss, q->tcp.cwnd, q->tcp.ssthresh);
	printf("  windows: send %u, receive %u; in flight %u, queued %u\n", q->tcp.snd_wnd,
		q->tcp.rcv_wnd, q->tcp.in_flight, q->tcp.queued);
	printf("  retransmits %" PRIu64 ", timeouts %" PRIu64 ", tail probes %" PRIu64 "\n",
		q->tcp.retransmits, q->tcp.rtos, q->tcp.tlps);
}

void
show_qps(struct app *a, const char *arg)
{
	bool all = strcmp(arg, "all") == 0, found = all;
	unsigned long qpn = strtoul(arg, NULL, 0);
	int n = 0;
	struct eng_qp_view *v;

	if (!all && !isdigit((unsigned char)arg[0])) {
		printf("'%s' is neither 'all' nor a QPN.\n", arg);
		return;
	}
	v = show_get_qps(a, &n);
	if (v == NULL)
		return;
	if (all)
		printf("  %-8s %6s %5s %-5s %-47s %10s %10s\n", "QPN", "client", "stage", "state",
			"connection", "msgs in", "msgs out");
	for (int i = 0; i < n; i++) {
		if (all) {
			one_line(&v[i]);
		} else if (v[i].qpn == qpn) {
			one_whole(&v[i]);
			found = true;
		}
	}
	if (!found)
		printf("There is no QP '%s'.\n", arg);
	free(v);
}

static int
by_client(const void *x, const void *y)
{
	const struct eng_qp_view *a = x, *b = y;

	return a->client < b->client ? -1 : a->client > b->client;
}

void
show_clients(struct app *a, const char *arg)
{
	struct eng_qp_view *v;
	struct eng_totals t;
	int n = 0;

	eng_totals(a->e, &t);
	printf("  %u clients with %u PDs, %u MRs in %u regions, "
	       "%u MWs, %u CQs, %u SRQs, %u QPs, %u listeners\n",
		t.clients, t.pds, t.mrs, t.regions, t.mws, t.cqs, t.srqs, t.qps, t.listeners);
	v = show_get_qps(a, &n);
	if (v == NULL)
		return;
	qsort(v, (size_t)n, sizeof(*v), by_client);
	for (int i = 0, next; i < n; i = next) {
		uint64_t in = 0, out = 0;
		int connected = 0;

		for (next = i; next < n && v[next].client == v[i].client; next++) {
			in += v[next].bytes_in;
			out += v[next].bytes_out;
			connected += v[next].connected;
		}
		printf("  client %u: %d QPs, %d of them connected, %" PRIu64 " bytes in, %" PRIu64
		       " bytes out\n",
			v[i].client, next - i, connected, in, out);
	}
	free(v);
}

/* ---- Counters: "clear counters" keeps their values, which show_counters() subtracts ---- */

struct walk {
	struct app *a;
	bool all;
	unsigned index;
};

static void
counter_print(void *arg, const char *layer, const char *name, enum sk_severity sev,
	const char *help, uint64_t value)
{
	static const char *const mark[] = {" ", "-", "!", "!!"};
	struct walk *w = arg;
	unsigned i = w->index++;

	if (i < w->a->ncleared)
		value -= w->a->cleared[i];
	if (value != 0 || w->all)
		printf("  %-2s %-6s %-28s %12" PRIu64 "  %s\n", mark[sev], layer, name, value,
			help);
}

void
show_counters(struct app *a, const char *arg)
{
	struct walk w = {.a = a, .all = arg[0] == '\0'};

	if (!w.all && strcmp(arg, "nonzero") != 0)
		printf("'%s' is not 'nonzero', the only argument of 'show counters'.\n", arg);
	else
		eng_counters(a->e, counter_print, &w);
}

static void
counter_count(void *arg, const char *layer, const char *name, enum sk_severity sev,
	const char *help, uint64_t value)
{
	++*(unsigned *)arg;
}

static void
counter_keep(void *arg, const char *layer, const char *name, enum sk_severity sev, const char *help,
	uint64_t value)
{
	struct walk *w = arg;

	if (w->index < w->a->ncleared)
		w->a->cleared[w->index++] = value;
}

void
clear_counters(struct app *a, const char *arg)
{
	struct walk w = {.a = a};
	unsigned n = 0;

	eng_counters(a->e, counter_count, &n);
	free(a->cleared);
	a->cleared = calloc(n + 1u, sizeof(*a->cleared));
	a->ncleared = a->cleared != NULL ? n : 0;
	eng_counters(a->e, counter_keep, &w);
	printf("Counters cleared.\n");
}

/* Prints the neighbours of each transport stage. The stages have separate tables, but all of them
 * learn from the same frames. */
void
show_neighbors(struct app *a, const char *arg)
{
	struct net_neighbor_view *v = show_alloc(NET_MAX_NEIGHBORS, sizeof(*v));

	if (v == NULL)
		return;
	printf("  %-9s %-4s %-4s %-39s %-17s %s\n", "transport", "port", "vlan", "address", "MAC",
		"state");
	for (unsigned t = 0; t < a->s.eng.ntransports; t++) {
		int n = eng_neighbors(a->e, t, v, NET_MAX_NEIGHBORS);

		for (int i = 0; i < n; i++) {
			char addr[SK_ADDR_STRLEN], mac[RTE_ETHER_ADDR_FMT_SIZE], vlan[8] = "-";

			rte_ether_format_addr(
				mac, sizeof(mac), (const struct rte_ether_addr *)v[i].mac);
			if (v[i].vlan != ETH_NO_VLAN)
				snprintf(vlan, sizeof(vlan), "%u", v[i].vlan);
			printf("  %-9u %-4u %-4s %-39s %-17s %s\n", t, v[i].port, vlan,
				sk_addr_str(&v[i].addr, addr), mac, v[i].state);
		}
	}
	free(v);
}

void
show_loops(struct app *a, const char *arg)
{
	const struct eng_config *c = &a->s.eng;

	for (unsigned k = 0; k < c->nloops; k++) {
		struct eng_loop_stats st;

		eng_loop_stats(a->e, k, &st);
		printf("  loop %u:%s", k, k == c->control_loop ? " control" : "");
		for (unsigned i = 0; i < c->ntransports; i++)
			if (c->transport_loop[i] == k)
				printf(" transport%u", i);
		for (unsigned i = 0; i < c->nstages; i++)
			if (c->stage_loop[i] == k)
				printf(" engine%u", i);
		printf("; %" PRIu64 " turns, %" PRIu64
		       " with work (%.1f %% of the cycles), slept %" PRIu64 " times: %" PRIu64
		       " naps, woken %" PRIu64 " times, %" PRIu64 " by a port\n",
			st.turns, st.busy_turns,
			st.total_cycles == 0
				? 0.0
				: 100.0 * (double)st.busy_cycles / (double)st.total_cycles,
			st.sleeps, st.naps, st.wakes, st.port_wakes);
	}
}

void
show_config(struct app *a, const char *arg)
{
	settings_print(&a->s, stdout);
}
