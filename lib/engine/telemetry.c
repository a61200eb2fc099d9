/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands /saker/... of dpdk-telemetry. They run on threads of DPDK. They request the state of
 * stages through the control stage, and read counters relaxed.
 */
#include <errno.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_telemetry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/mem.h"
#include "common/instance.h"
#include "control/control.h"
#include "telemetry_priv.h"

#define MAX_LISTED 256    /* entries of a telemetry dictionary or array */
#define MAX_QPS    131072 /* QPs among which /saker/qp searches */

/* Adds an empty dictionary to `d`. Returns it, or NULL when `d` is full or memory is exhausted. */
static struct rte_tel_data *
sub_dict(struct rte_tel_data *d, const char *name)
{
	struct rte_tel_data *sub = rte_tel_data_alloc();

	if (sub == NULL)
		return NULL;
	rte_tel_data_start_dict(sub);
	if (rte_tel_data_add_dict_container(d, name, sub, 0) == 0)
		return sub;
	rte_tel_data_free(sub);
	return NULL;
}

/* ---- /saker/info ---- */

static int
info(struct eng *e, const char *params, struct rte_tel_data *d)
{
	struct eng_totals t = {0};

	eng_totals(e, &t);
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "name", e->cfg.name);
	rte_tel_data_add_dict_u64(d, "ports", e->cfg.nports);
	rte_tel_data_add_dict_u64(d, "loops", e->cfg.nloops);
	rte_tel_data_add_dict_u64(d, "transport_stages", e->cfg.ntransports);
	rte_tel_data_add_dict_u64(d, "engine_stages", e->cfg.nstages);
	rte_tel_data_add_dict_u64(d, "clients", t.clients);
	rte_tel_data_add_dict_u64(d, "qps", t.qps);
	rte_tel_data_add_dict_u64(d, "cqs", t.cqs);
	rte_tel_data_add_dict_u64(d, "mrs", t.mrs);
	rte_tel_data_add_dict_u64(d, "mws", t.mws);
	rte_tel_data_add_dict_u64(d, "pds", t.pds);
	rte_tel_data_add_dict_u64(d, "srqs", t.srqs);
	rte_tel_data_add_dict_u64(d, "listeners", t.listeners);
	rte_tel_data_add_dict_u64(d, "connections", t.conns);
	rte_tel_data_add_dict_u64(d, "regions", t.regions);
	rte_tel_data_add_dict_u64(d, "rx_mbufs_free", t.rx_mbufs_free);
	rte_tel_data_add_dict_u64(d, "tx_mbufs_free", t.tx_mbufs_free);
	rte_tel_data_add_dict_u64(d, "messages_in", t.msgs_in);
	rte_tel_data_add_dict_u64(d, "messages_out", t.msgs_out);
	rte_tel_data_add_dict_u64(d, "bytes_in", t.bytes_in);
	rte_tel_data_add_dict_u64(d, "bytes_out", t.bytes_out);
	return 0;
}

/* ---- /saker/counters ---- */

struct layers {
	struct rte_tel_data *top, *sub;
	const char *layer;
};

static void
one_counter(void *arg, const char *layer, const char *name, enum sk_severity sev, const char *help,
	uint64_t value)
{
	struct layers *l = arg;

	if (l->layer == NULL || strcmp(l->layer, layer) != 0) {
		l->layer = layer;
		l->sub = sub_dict(l->top, layer);
	}
	if (l->sub != NULL)
		rte_tel_data_add_dict_u64(l->sub, name, value);
}

static int
counters(struct eng *e, const char *params, struct rte_tel_data *d)
{
	struct layers l = {.top = d};

	rte_tel_data_start_dict(d);
	eng_counters(e, one_counter, &l);
	return 0;
}

/* ---- /saker/clients ---- */

static int
clients(struct eng *e, const char *params, struct rte_tel_data *d)
{
	struct eng_client_view *v = calloc(MAX_LISTED, sizeof(*v));
	int n = v != NULL ? eng_control_clients(e->control, v, MAX_LISTED) : 0;

	rte_tel_data_start_dict(d);
	for (int i = 0; i < n; i++) {
		char name[16];
		struct rte_tel_data *sub;

		snprintf(name, sizeof(name), "%u", v[i].client);
		sub = sub_dict(d, name);
		if (sub == NULL)
			break;
		rte_tel_data_add_dict_string(sub, "name", v[i].name);
		rte_tel_data_add_dict_string(sub, "attached", v[i].flat ? "flat" : "socket");
		rte_tel_data_add_dict_int(sub, "leaving", v[i].leaving);
		rte_tel_data_add_dict_u64(sub, "qps", v[i].qps);
		rte_tel_data_add_dict_u64(sub, "cqs", v[i].cqs);
		rte_tel_data_add_dict_u64(sub, "mrs", v[i].mrs);
		rte_tel_data_add_dict_u64(sub, "mws", v[i].mws);
		rte_tel_data_add_dict_u64(sub, "pds", v[i].pds);
		rte_tel_data_add_dict_u64(sub, "srqs", v[i].srqs);
		rte_tel_data_add_dict_u64(sub, "listeners", v[i].listeners);
		rte_tel_data_add_dict_u64(sub, "requests", v[i].requests);
		rte_tel_data_add_dict_u64(sub, "regions", v[i].regions);
		rte_tel_data_add_dict_u64(sub, "queued_events", v[i].events);
		rte_tel_data_add_dict_u64(sub, "heap_used", v[i].heap_used);
		rte_tel_data_add_dict_u64(sub, "heap_size", v[i].heap_size);
	}
	free(v);
	return 0;
}

/* ---- /saker/qps, /saker/qp,<qpn> ---- */

static int
qps(struct eng *e, const char *params, struct rte_tel_data *d)
{
	struct eng_qp_view *v = calloc(MAX_LISTED, sizeof(*v));
	int n = v != NULL ? eng_control_qps(e->control, v, MAX_LISTED) : 0;

	rte_tel_data_start_array(d, RTE_TEL_INT_VAL);
	for (int i = 0; i < n; i++)
		rte_tel_data_add_array_int(d, (int)v[i].qpn);
	free(v);
	return 0;
}

static void
add_addr(struct rte_tel_data *d, const char *name, const struct sk_addr *a, uint16_t port)
{
	char addr[SK_ADDR_STRLEN], text[SK_ADDR_STRLEN + 8];

	snprintf(text, sizeof(text), sk_addr_is_v4(a) ? "%s:%u" : "[%s]:%u", sk_addr_str(a, addr),
		port);
	rte_tel_data_add_dict_string(d, name, text);
}

static void
tell_qp(struct rte_tel_data *d, const struct eng_qp_view *v)
{
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_u64(d, "qpn", v->qpn);
	rte_tel_data_add_dict_u64(d, "client", v->client);
	rte_tel_data_add_dict_u64(d, "engine_stage", v->stage);
	rte_tel_data_add_dict_string(d, "state", v->state);
	rte_tel_data_add_dict_u64(d, "messages_out", v->msgs_out);
	rte_tel_data_add_dict_u64(d, "messages_in", v->msgs_in);
	rte_tel_data_add_dict_u64(d, "bytes_out", v->bytes_out);
	rte_tel_data_add_dict_u64(d, "bytes_in", v->bytes_in);
	if (!v->connected)
		return;
	rte_tel_data_add_dict_u64(d, "transport_stage", v->transport);
	add_addr(d, "local", &v->tuple.laddr, v->tuple.lport);
	add_addr(d, "remote", &v->tuple.raddr, v->tuple.rport);
	rte_tel_data_add_dict_string(d, "tcp_state", v->tcp.state);
	rte_tel_data_add_dict_u64(d, "srtt_ns", v->tcp.srtt_ns);
	rte_tel_data_add_dict_u64(d, "rto_ns", v->tcp.rto_ns);
	rte_tel_data_add_dict_u64(d, "cwnd", v->tcp.cwnd);
	rte_tel_data_add_dict_u64(d, "emss", v->tcp.emss);
	rte_tel_data_add_dict_u64(d, "in_flight", v->tcp.in_flight);
	rte_tel_data_add_dict_u64(d, "retransmits", v->tcp.retransmits);
}

static int
qp(struct eng *e, const char *params, struct rte_tel_data *d)
{
	char *end = NULL;
	unsigned long qpn = params != NULL ? strtoul(params, &end, 0) : 0;
	struct eng_qp_view *v;
	int n, i;

	if (params == NULL || end == params || *end != '\0')
		return -EINVAL;
	v = calloc(MAX_QPS, sizeof(*v));
	n = v != NULL ? eng_control_qps(e->control, v, MAX_QPS) : 0;
	for (i = 0; i < n && v[i].qpn != qpn; i++)
		;
	if (i < n)
		tell_qp(d, &v[i]);
	free(v);
	return i < n ? 0 : -ENOENT;
}

/* ---- /saker/neighbors,<transport> ---- */

static int
neighbors(struct eng *e, const char *params, struct rte_tel_data *d)
{
	unsigned long transport = params != NULL ? strtoul(params, NULL, 0) : 0;
	struct net_neighbor_view *v;
	int n;

	if (transport >= e->cfg.ntransports)
		return -EINVAL;
	v = calloc(MAX_LISTED, sizeof(*v));
	n = v != NULL ? eng_control_neighbors(e->control, (unsigned)transport, v, MAX_LISTED) : 0;
	rte_tel_data_start_dict(d);
	for (int i = 0; i < n; i++) {
		char text[SK_ADDR_STRLEN];
		struct rte_tel_data *sub;

		snprintf(text, sizeof(text), "%d", i);
		sub = sub_dict(d, text);
		if (sub == NULL)
			break;
		rte_tel_data_add_dict_string(sub, "address", sk_addr_str(&v[i].addr, text));
		rte_ether_format_addr(text, sizeof(text), (const struct rte_ether_addr *)v[i].mac);
		rte_tel_data_add_dict_string(sub, "mac", text);
		rte_tel_data_add_dict_string(sub, "state", v[i].state);
		/* DPDK's number, as in /saker/ports and in telemetry of ethdev */
		rte_tel_data_add_dict_u64(sub, "port", e->ports[v[i].port].dev.id);
		if (v[i].vlan != ETH_NO_VLAN)
			rte_tel_data_add_dict_u64(sub, "vlan", v[i].vlan);
	}
	free(v);
	return 0;
}

/* ---- /saker/ports, /saker/loops ---- */

static int
ports(struct eng *e, const char *params, struct rte_tel_data *d)
{
	rte_tel_data_start_dict(d);
	for (unsigned i = 0; i < e->cfg.nports; i++) {
		struct rte_eth_stats st = {0};
		struct rte_tel_data *sub;
		char name[16];

		snprintf(name, sizeof(name), "%u", e->ports[i].dev.id);
		sub = sub_dict(d, name);
		if (sub == NULL || rte_eth_stats_get(e->ports[i].dev.id, &st) != 0)
			break;
		rte_tel_data_add_dict_u64(sub, "mtu", e->ports[i].mtu);
		rte_tel_data_add_dict_u64(sub, "rx_packets", st.ipackets);
		rte_tel_data_add_dict_u64(sub, "tx_packets", st.opackets);
		rte_tel_data_add_dict_u64(sub, "rx_bytes", st.ibytes);
		rte_tel_data_add_dict_u64(sub, "tx_bytes", st.obytes);
		rte_tel_data_add_dict_u64(sub, "rx_missed", st.imissed);
		rte_tel_data_add_dict_u64(sub, "rx_errors", st.ierrors);
		rte_tel_data_add_dict_u64(sub, "tx_errors", st.oerrors);
		rte_tel_data_add_dict_u64(sub, "rx_no_mbuf", st.rx_nombuf);
	}
	return 0;
}

static int
loops(struct eng *e, const char *params, struct rte_tel_data *d)
{
	rte_tel_data_start_dict(d);
	for (unsigned i = 0; i < e->cfg.nloops; i++) {
		struct eng_loop_stats st;
		struct rte_tel_data *sub;
		char name[16];

		snprintf(name, sizeof(name), "%u", i);
		sub = sub_dict(d, name);
		if (sub == NULL)
			break;
		eng_loop_stats(e, i, &st);
		rte_tel_data_add_dict_u64(sub, "turns", st.turns);
		rte_tel_data_add_dict_u64(sub, "busy_turns", st.busy_turns);
		rte_tel_data_add_dict_u64(sub, "busy_cycles", st.busy_cycles);
		rte_tel_data_add_dict_u64(sub, "total_cycles", st.total_cycles);
		rte_tel_data_add_dict_u64(sub, "sleeps", st.sleeps);
		rte_tel_data_add_dict_u64(sub, "naps", st.naps);
		rte_tel_data_add_dict_u64(sub, "wakes", st.wakes);
		rte_tel_data_add_dict_u64(sub, "port_wakes", st.port_wakes);
	}
	return 0;
}

/* ---- Registration ---- */

static const struct {
	const char *cmd;
	int (*answer)(struct eng *e, const char *params, struct rte_tel_data *d); /* e is locked */
	const char *help;
} commands[] = {
	{"/saker/info", info, "Name, stages and objects of this saker."},
	{"/saker/counters", counters, "All counters, by layer."},
	{"/saker/clients", clients, "The clients (the first 256) and the objects of each."},
	{"/saker/qps", qps, "The numbers of the QPs (the first 256)."},
	{"/saker/qp", qp, "One QP. Parameter: its number."},
	{"/saker/neighbors", neighbors,
		"The neighbour table of a transport stage. Parameter: its number; default 0."},
	{"/saker/ports", ports, "The statistics of the ports."},
	{"/saker/loops", loops, "Turns, cycles and sleeps of the loops."},
};

static int
on_command(const char *cmd, const char *params, struct rte_tel_data *d)
{
	struct eng *e = eng_telemetry_hold();
	int rc = -ENOENT;

	if (e == NULL)
		return -ENODEV;
	for (unsigned i = 0; i < SK_ARRAY_LEN(commands); i++)
		if (strcmp(commands[i].cmd, cmd) == 0)
			rc = commands[i].answer(e, params, d);
	eng_telemetry_release();
	return rc;
}

int
eng_telemetry_register(struct eng *e)
{
	static bool registered;
	int rc = 0;

	eng_telemetry_remember(e);
	for (unsigned i = 0; !registered && rc == 0 && i < SK_ARRAY_LEN(commands); i++)
		rc = rte_telemetry_register_cmd(commands[i].cmd, on_command, commands[i].help);
	registered = rc == 0;
	return rc;
}
