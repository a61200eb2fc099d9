/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that show the state of the engines. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>

#include "../../lib/rof/exchange.h"
#include "saker.h"
#include "values.h"

#define SECOND UINT64_C(1000000000)

/* Checks that the loops run, without which no stage can report. */
static int
show_check(struct cmd_out *out)
{
	return run_running() ? 0
			     : cmd_refuse(out, "the loops are stopped: no stage can report; "
					       "enter 'start' first");
}

/* Allocates an array for a report of the stages. Returns NULL after a refusal. */
static void *
show_alloc(size_t n, size_t size, struct cmd_out *out)
{
	void *v = show_check(out) == 0 ? calloc(n, size) : NULL;

	if (v == NULL && cmd_refusal(out) == NULL)
		cmd_refuse(out, "memory is exhausted");
	return v;
}

/* ---- Queue pairs ---- */

struct show_qps {
	struct cmd_out *out;
	bool all, found;
	uint32_t qpn;
};

void
show_end(struct cmd_out *out, const char *key, const struct sk_addr *addr, uint16_t port)
{
	char text[SK_ADDR_STRLEN];

	cmd_text(
		out, key, sk_addr_is_v4(addr) ? "%s:%u" : "[%s]:%u", sk_addr_str(addr, text), port);
}

static void
show_qp_line(struct cmd_out *out, const char *machine, const struct eng_qp_view *q)
{
	cmd_record(out, NULL);
	cmd_text(out, "machine", "%s", machine);
	cmd_text(out, "qpn", "0x%06x", q->qpn);
	cmd_number(out, "client", q->client);
	cmd_text(out, "kind", "%s", q->kind == SHM_FALCON ? "falcon" : "iwarp");
	cmd_text(out, "state", "%s", q->state);
	if (q->connected) {
		show_end(out, "local", &q->tuple.laddr, q->tuple.lport);
		show_end(out, "remote", &q->tuple.raddr, q->tuple.rport);
	}
	cmd_end(out);
}

static void
show_qp_tcp(struct cmd_out *out, const char *key, const struct tcp_info *t)
{
	cmd_record(out, key);
	cmd_text(out, "state", "%s", t->state != NULL ? t->state : "-");
	cmd_number(out, "srtt_ns", t->srtt_ns);
	cmd_number(out, "rto_ns", t->rto_ns);
	cmd_number(out, "emss", t->emss);
	cmd_number(out, "cwnd", t->cwnd);
	cmd_number(out, "ssthresh", t->ssthresh);
	cmd_number(out, "send_window", t->snd_wnd);
	cmd_number(out, "receive_window", t->rcv_wnd);
	cmd_number(out, "in_flight", t->in_flight);
	cmd_number(out, "queued", t->queued);
	cmd_number(out, "retransmits", t->retransmits);
	cmd_number(out, "timeouts", t->rtos);
	cmd_number(out, "tail_probes", t->tlps);
	cmd_end(out);
}

static void
show_qp_mpa(struct cmd_out *out, const struct eng_qp_view *q)
{
	static const char *const rtrs[] = {[SHM_RTR_NONE] = "none",
		[SHM_RTR_SEND] = "send",
		[SHM_RTR_WRITE] = "write",
		[SHM_RTR_READ] = "read"};

	cmd_record(out, "mpa");
	cmd_number(out, "revision", q->mpa.revision);
	cmd_flag(out, "crc", q->mpa.crc);
	cmd_flag(out, "markers_out", q->mpa.tx_markers);
	cmd_flag(out, "markers_in", q->mpa.rx_markers);
	cmd_number(out, "ird", q->ird);
	cmd_number(out, "ord", q->ord);
	cmd_text(out, "ready_to_receive", "%s", rtrs[q->mpa.rtr]);
	cmd_end(out);
}

static void
show_qp_falcon(struct cmd_out *out, const struct eng_falcon_qp_view *v)
{
	const struct fa_info *f = &v->info;
	uint16_t psp = (uint16_t)ROFX_PSP(v->psp);
	char text[NAME_LEN];

	value_format(KIND_PSP, &psp, text, sizeof(text));
	cmd_record(out, "falcon");
	cmd_text(out, "cid", "0x%06x", f->cid);
	cmd_text(out, "peer_cid", "0x%06x", f->peer_cid);
	cmd_number(out, "flows", f->flows);
	cmd_text(out, "psp", "%s", text);
	cmd_text(out, "mode", "%s", v->tunnel ? "tunnel" : "transport");
	cmd_text(out, "spi", "0x%08x", v->spi);
	cmd_number(out, "key_age_s", v->key_age_ns / SECOND);
	cmd_number(out, "rtt_ns", f->rtt_ns);
	cmd_number(out, "rto_ns", f->rto_ns);
	cmd_number(out, "fabric_delay_ns", f->delay_ns);
	cmd_text(out, "fcwnd_packets", "%u.%03u", f->fcwnd_milli / 1000, f->fcwnd_milli % 1000);
	cmd_text(out, "ncwnd_packets", "%u.%03u", f->ncwnd_milli / 1000, f->ncwnd_milli % 1000);
	cmd_number(out, "requests_in_flight", f->request_outstanding);
	cmd_number(out, "data_in_flight", f->data_outstanding);
	cmd_number(out, "queued", f->queued);
	cmd_number(out, "packets_in", f->packets_in);
	cmd_number(out, "packets_out", f->packets_out);
	cmd_number(out, "acks_in", f->acks_in);
	cmd_number(out, "acks_out", f->acks_out);
	cmd_number(out, "nacks_in", f->nacks_in);
	cmd_number(out, "nacks_out", f->nacks_out);
	cmd_number(out, "retransmits", f->retransmits);
	cmd_number(out, "early_retransmits", f->early_retransmits);
	cmd_number(out, "timeouts", f->timeouts);
	cmd_number(out, "tail_probes", f->probes);
	cmd_number(out, "resyncs", f->resyncs_out);
	cmd_number(out, "path_changes", f->repaths);
	cmd_end(out);
}

/* The class of the packets that this side sends. */
static void
show_qp_class(struct cmd_out *out, const struct eng_qp_view *q)
{
	cmd_number(out, "dscp", q->class.dscp);
	if (q->tuple.vlan != ETH_NO_VLAN)
		cmd_number(out, "vlan_priority", q->class.pcp);
	if (!sk_addr_is_v4(&q->tuple.raddr) && q->kind == SHM_IWARP)
		cmd_text(out, "flow_label", "0x%05x", q->class.flow);
}

static void
show_qp_whole(struct cmd_out *out, const char *machine, const struct eng_qp_view *q)
{
	cmd_record(out, NULL);
	cmd_text(out, "machine", "%s", machine);
	cmd_text(out, "qpn", "0x%06x", q->qpn);
	cmd_number(out, "client", q->client);
	cmd_text(out, "kind", "%s", q->kind == SHM_FALCON ? "falcon" : "iwarp");
	cmd_text(out, "state", "%s", q->state);
	cmd_number(out, "engine_stage", q->stage);
	cmd_number(out, "messages_in", q->msgs_in);
	cmd_number(out, "bytes_in", q->bytes_in);
	cmd_number(out, "messages_out", q->msgs_out);
	cmd_number(out, "bytes_out", q->bytes_out);
	if (q->connected) {
		cmd_number(out, "transport_stage", q->transport);
		show_end(out, "local", &q->tuple.laddr, q->tuple.lport);
		show_end(out, "remote", &q->tuple.raddr, q->tuple.rport);
		show_qp_class(out, q);
		if (q->falcon.open)
			show_qp_falcon(out, &q->falcon);
		if (q->mpa.revision != 0)
			show_qp_mpa(out, q);
		show_qp_tcp(out, q->kind == SHM_FALCON ? "control_channel" : "tcp", &q->tcp);
	}
	cmd_end(out);
}

/* Implements gateway_each(). */
static void
show_engine_qps(void *arg, const char *machine, struct eng *e)
{
	struct show_qps *s = arg;
	struct eng_qp_view *v;
	struct eng_totals t;
	int n;

	eng_totals(e, &t);
	v = show_alloc(t.qps + 1u, sizeof(*v), s->out);
	n = v != NULL ? eng_qps(e, v, (int)t.qps + 1) : 0;
	for (int i = 0; i < n; i++) {
		if (s->all)
			show_qp_line(s->out, machine, &v[i]);
		else if (v[i].qpn == s->qpn)
			show_qp_whole(s->out, machine, &v[i]);
		s->found |= v[i].qpn == s->qpn;
	}
	free(v);
}

int
show_qps(void *app, const char *arg, struct cmd_out *out)
{
	struct show_qps s = {.out = out, .all = strcmp(arg, "all") == 0};

	if (!s.all && !value_number(arg, &s.qpn))
		return cmd_refuse(out, "'%s' is neither 'all' nor a QPN", arg);
	cmd_list(out, "qps");
	gateway_each(app, show_engine_qps, &s);
	cmd_end(out);
	if (!s.all && !s.found && cmd_refusal(out) == NULL)
		return cmd_refuse(out, "there is no QP '%s'", arg);
	return 0;
}

/* ---- Clients ---- */

struct show_clients {
	struct cmd_out *out;
	bool all, found;
	uint32_t client;
};

static void
show_client_whole(struct cmd_out *out, const struct eng_client_view *v)
{
	cmd_flag(out, "leaving", v->leaving);
	cmd_number(out, "cqs", v->cqs);
	cmd_number(out, "srqs", v->srqs);
	cmd_number(out, "pds", v->pds);
	cmd_number(out, "mws", v->mws);
	cmd_number(out, "listeners", v->listeners);
	cmd_number(out, "requests", v->requests);
	cmd_number(out, "queued_events", v->events);
	cmd_number(out, "regions", v->regions);
	cmd_number(out, "heap_used", v->heap_used);
	cmd_number(out, "heap_size", v->heap_size);
}

static void
show_client(struct cmd_out *out, const char *machine, const struct eng_client_view *v, bool whole)
{
	cmd_record(out, NULL);
	cmd_text(out, "machine", "%s", machine);
	cmd_number(out, "client", v->client);
	cmd_text(out, "name", "%s", v->name);
	if (!v->flat) {
		cmd_number(out, "pid", v->pid);
		cmd_number(out, "uid", v->uid);
	}
	cmd_number(out, "qps", v->qps);
	cmd_number(out, "mrs", v->mrs);
	cmd_number(out, "memory", v->memory);
	if (whole)
		show_client_whole(out, v);
	cmd_end(out);
}

static void
show_engine_clients(void *arg, const char *machine, struct eng *e)
{
	struct show_clients *s = arg;
	struct eng_client_view *v;
	struct eng_totals t;
	int n;

	eng_totals(e, &t);
	v = show_alloc(t.clients + 1u, sizeof(*v), s->out);
	n = v != NULL ? eng_clients(e, v, (int)t.clients + 1) : 0;
	for (int i = 0; i < n; i++) {
		if (s->all || v[i].client == s->client)
			show_client(s->out, machine, &v[i], !s->all);
		s->found |= v[i].client == s->client;
	}
	free(v);
}

int
show_clients(void *app, const char *arg, struct cmd_out *out)
{
	struct show_clients s = {.out = out, .all = strcmp(arg, "all") == 0};

	if (!s.all && !value_number(arg, &s.client))
		return cmd_refuse(out, "'%s' is neither 'all' nor the number of a client", arg);
	cmd_list(out, "clients");
	gateway_each(app, show_engine_clients, &s);
	cmd_end(out);
	if (!s.all && !s.found && cmd_refusal(out) == NULL)
		return cmd_refuse(out, "there is no client '%s'", arg);
	return 0;
}

/* ---- Counters: "clear counters" keeps their values, which show_counters() subtracts ---- */

struct walk {
	struct app *a;
	struct cmd_out *out;
	const char *machine;
	struct cleared *cleared; /* of the machine; NULL: none */
	bool all;
	unsigned index;
};

/* Returns the values that "clear counters" kept for the machine, or NULL. */
static struct cleared *
cleared_of(struct app *a, const char *machine)
{
	for (unsigned i = 0; i < CLEARED_MAX; i++)
		if (a->cleared[i].value != NULL && strcmp(a->cleared[i].machine, machine) == 0)
			return &a->cleared[i];
	return NULL;
}

/* A machine that was removed and added again begins with 0. */
static uint64_t
cleared_rest(const struct cleared *c, unsigned i, uint64_t value)
{
	return c != NULL && i < c->n && c->value[i] <= value ? value - c->value[i] : value;
}

static void
counter_show(void *arg, const char *layer, const char *name, enum sk_severity sev, const char *help,
	uint64_t value)
{
	static const char *const severity[] = {"", "notice", "warning", "fatal"};
	struct walk *w = arg;

	value = cleared_rest(w->cleared, w->index++, value);
	if (value == 0 && !w->all)
		return;
	cmd_record(w->out, NULL);
	cmd_text(w->out, "machine", "%s", w->machine);
	cmd_text(w->out, "layer", "%s", layer);
	cmd_text(w->out, "name", "%s", name);
	cmd_text(w->out, "severity", "%s", severity[sev]);
	cmd_number(w->out, "value", value);
	cmd_text(w->out, "meaning", "%s", help);
	cmd_end(w->out);
}

static void
show_engine_counters(void *arg, const char *machine, struct eng *e)
{
	struct walk *w = arg;

	w->machine = machine;
	w->cleared = cleared_of(w->a, machine);
	w->index = 0;
	eng_counters(e, counter_show, w);
}

int
show_counters(void *app, const char *arg, struct cmd_out *out)
{
	struct walk w = {.a = app, .out = out, .all = arg[0] == '\0'};

	cmd_list(out, "counters");
	gateway_each(app, show_engine_counters, &w);
	cmd_end(out);
	return 0;
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
	struct cleared *c = arg;

	c->value[c->n++] = value;
}

static void
clear_engine_counters(void *arg, const char *machine, struct eng *e)
{
	struct app *a = arg;
	struct cleared *c = a->cleared;
	unsigned n = 0;

	while (c < &a->cleared[CLEARED_MAX - 1] && c->value != NULL)
		c++;
	eng_counters(e, counter_count, &n);
	c->value = calloc(n + 1u, sizeof(*c->value));
	c->n = 0;
	snprintf(c->machine, sizeof(c->machine), "%s", machine);
	if (c->value != NULL)
		eng_counters(e, counter_keep, c);
}

void
clear_free(struct app *a)
{
	for (unsigned i = 0; i < CLEARED_MAX; i++) {
		free(a->cleared[i].value);
		a->cleared[i].value = NULL;
	}
}

int
clear_counters(void *app, const char *arg, struct cmd_out *out)
{
	clear_free(app);
	gateway_each(app, clear_engine_counters, app);
	return cmd_say(out, "Counters cleared.");
}

/* ---- Neighbours, loops, configuration ---- */

static void
show_neighbor(struct cmd_out *out, unsigned transport, const struct net_neighbor_view *v)
{
	char text[SK_ADDR_STRLEN];

	cmd_record(out, NULL);
	cmd_text(out, "address", "%s", sk_addr_str(&v->addr, text));
	rte_ether_format_addr(text, sizeof(text), (const struct rte_ether_addr *)v->mac);
	cmd_text(out, "mac", "%s", text);
	cmd_text(out, "state", "%s", v->state);
	cmd_number(out, "port", ports_label(v->port));
	if (v->vlan != ETH_NO_VLAN)
		cmd_number(out, "vlan", v->vlan);
	cmd_number(out, "transport", transport);
	cmd_end(out);
}

/* Shows the neighbours of each transport stage. The stages have separate tables, but all of them
 * learn from the same frames. */
int
show_neighbors(void *app, const char *arg, struct cmd_out *out)
{
	const struct app *a = app;
	struct net_neighbor_view *v = show_alloc(NET_MAX_NEIGHBORS, sizeof(*v), out);

	if (v == NULL)
		return -ENOMEM;
	cmd_list(out, "neighbors");
	for (unsigned t = 0; t < a->s.eng.ntransports; t++) {
		int n = eng_neighbors(a->e, t, v, NET_MAX_NEIGHBORS);

		for (int i = 0; i < n; i++)
			show_neighbor(out, t, &v[i]);
	}
	cmd_end(out);
	free(v);
	return 0;
}

/* Writes the stages of a loop to `text`. */
static void
loop_stages(const struct eng_config *c, unsigned loop, char *text, size_t len)
{
	size_t n = (size_t)snprintf(text, len, "%s", loop == c->control_loop ? " control" : "");

	for (unsigned i = 0; i < c->ntransports && n < len; i++)
		if (c->transport_loop[i] == loop)
			n += (size_t)snprintf(text + n, len - n, " transport%u", i);
	for (unsigned i = 0; i < c->nstages && n < len; i++)
		if (c->stage_loop[i] == loop)
			n += (size_t)snprintf(text + n, len - n, " engine%u", i);
}

int
show_loops(void *app, const char *arg, struct cmd_out *out)
{
	const struct app *a = app;
	const struct eng_config *c = &a->s.eng;

	cmd_list(out, "loops");
	for (unsigned k = 0; k < c->nloops; k++) {
		char stages[256] = "";
		struct eng_loop_stats st;

		eng_loop_stats(a->e, k, &st);
		loop_stages(c, k, stages, sizeof(stages));
		cmd_record(out, NULL);
		cmd_number(out, "loop", k);
		cmd_text(out, "stages", "%s", stages[0] == ' ' ? stages + 1 : stages);
		cmd_number(out, "turns", st.turns);
		cmd_number(out, "busy_turns", st.busy_turns);
		cmd_text(out, "busy_percent", "%.1f",
			st.total_cycles == 0
				? 0.0
				: 100.0 * (double)st.busy_cycles / (double)st.total_cycles);
		cmd_number(out, "sleeps", st.sleeps);
		cmd_number(out, "naps", st.naps);
		cmd_number(out, "wakes", st.wakes);
		cmd_number(out, "port_wakes", st.port_wakes);
		cmd_end(out);
	}
	cmd_end(out);
	return 0;
}

/* Implements settings_visit. */
static void
show_setting(void *arg, const char *section, const char *key, const char *value, const char *source)
{
	struct cmd_out *out = arg;

	if (key == NULL)
		return;
	cmd_record(out, NULL);
	cmd_text(out, "section", "%s", section);
	cmd_text(out, "key", "%s", key);
	cmd_text(out, "value", "%s", value);
	if (source != NULL)
		cmd_text(out, "source", "%s", source);
	cmd_end(out);
}

int
show_config(void *app, const char *arg, struct cmd_out *out)
{
	const struct app *a = app;

	cmd_list(out, "config");
	settings_each(&a->s, show_setting, out);
	cmd_end(out);
	return 0;
}
