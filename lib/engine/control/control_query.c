/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Views of QPs, clients and neighbours for the prompt and telemetry. A thread of the prompt or of
 * telemetry passes a query to the control stage. The control stage fills in the values that it
 * owns, requests the others from the stages while messages are free, and marks the query as done
 * when all stages have answered. The thread may have stopped waiting by then: the last of the two
 * that releases the query frees it.
 */
#include <stdlib.h>
#include <time.h>

#include "control.h"
#include "query_priv.h"

#define QUERY_WAIT_NS 2000000000ll
#define QUERY_NAP_NS  200000ll

void
ctl_query_put(struct ctl_query *q)
{
	if (__atomic_sub_fetch(&q->refs, 1, __ATOMIC_ACQ_REL) == 0) {
		free(q->view);
		free(q);
	}
}

static void
stage_answered(struct eng_control *c, struct ctl_msg *m)
{
	struct eng_qp_view *v = &m->query->view[m->m.cookie];

	m->query->waiting--;
	if (m->m.status < 0)
		return;
	v->state = rd_qp_state_name((enum rd_qp_state)m->m.qp_info.state);
	v->msgs_out = m->m.qp_info.work.msgs_out;
	v->msgs_in = m->m.qp_info.work.msgs_in;
	v->bytes_out = m->m.qp_info.work.bytes_out;
	v->bytes_in = m->m.qp_info.work.bytes_in;
}

static void
transport_answered(struct eng_control *c, struct ctl_msg *m)
{
	struct eng_qp_view *v = &m->query->view[m->m.cookie];

	m->query->waiting--;
	if (m->m.status < 0)
		return;
	v->connected = true;
}

struct ctl_msg *
ctl_query_message(struct eng_control *c, struct ctl_query *q, enum eng_ctl_type type, ctl_done done)
{
	struct ctl_msg *m = ctl_msg_get(c, type, done);

	m->query = q;
	m->m.cookie = (uint64_t)q->n;
	q->waiting++;
	return m;
}

/* The transport stage writes into the query, which the control stage keeps until the answer. */
static void
query_qp(struct eng_control *c, struct ctl_query *query, const struct cm_conn *q)
{
	struct eng_qp_view *v = &query->view[query->n];
	struct ctl_msg *m = ctl_query_message(c, query, ENG_CE_QP_QUERY, stage_answered);

	v->qpn = q->qp->rd.qpn;
	v->client = q->client->eng.index;
	v->stage = q->qp->stage;
	v->transport = q->transport;
	v->state = "?";
	v->kind = q->qp->kind;
	v->mpa = q->mpa;
	v->ird = q->ird;
	v->ord = q->ord;
	m->m.qp = q->qp;
	m->m.client = &q->client->eng;
	ctl_send_stage(c, q->qp->stage, m);
	if (q->state == CM_ESTABLISHED) {
		m = ctl_query_message(c, query, ENG_CT_QUERY, transport_answered);
		m->m.conn = q->conn;
		m->m.conn_info.view = v;
		ctl_send_transport(c, q->transport, m);
	}
	query->n++;
}

void
ctl_query_start(struct eng_control *c, struct ctl_query *query)
{
	TAILQ_INSERT_TAIL(&c->queries, query, next);
}

void
ctl_query_finish(struct eng_control *c, struct ctl_query *query)
{
	TAILQ_REMOVE(&c->queries, query, next);
	__atomic_store_n(&query->done, true, __ATOMIC_RELEASE);
	ctl_query_put(query);
}

/* Returns the bytes that a client shares with the engine. */
static uint64_t
view_memory(const struct ctl_client *cl)
{
	uint64_t sum = __atomic_load_n(&cl->sparse_bytes, __ATOMIC_RELAXED);

	for (unsigned i = 0; i < SHM_MAX_REGIONS; i++)
		if (cl->region[i].base != NULL && !cl->region[i].sparse)
			sum += cl->region[i].size;
	return sum;
}

static void
view_clients(struct eng_control *c, struct ctl_query *query)
{
	struct ctl_client *cl;

	TAILQ_FOREACH (cl, &c->all, all) {
		if (query->n == query->max)
			break;
		query->clients_view[query->n] = (struct eng_client_view){
			.client = cl->eng.index,
			.flat = cl->flat,
			.leaving = cl->phase > CTL_LIVE,
			.pid = (uint32_t)cl->pid,
			.uid = cl->uid,
			.memory = view_memory(cl),
			.qps = cl->qps.used,
			.cqs = cl->cqs.used,
			.mrs = cl->mrs.used,
			.mws = cl->mws.used,
			.pds = cl->pds.used,
			.srqs = cl->srqs.used,
			.listeners = cl->listeners.used,
			.requests = cl->requests.used,
			.regions = cl->nregions,
			.events = cl->nevents,
			.heap_used = cl->heap.used,
			.heap_size = cl->heap.len,
		};
		memcpy(query->clients_view[query->n++].name, cl->eng.name, SHM_NAME_MAX);
	}
	ctl_query_finish(c, query);
}

static void
neighbors_answered(struct eng_control *c, struct ctl_msg *m)
{
	m->query->n = (int)m->m.neighbors.n;
	m->query->waiting--;
}

/* The transport stage writes into the query, as for QPs. */
static void
view_neighbors(struct eng_control *c, struct ctl_query *query)
{
	struct ctl_msg *m;

	if (query->walk == 0 && ctl_has_reserve(c)) {
		query->walk = 1;
		m = ctl_query_message(c, query, ENG_CT_NEIGHBORS, neighbors_answered);
		m->m.neighbors.view = query->neighbors;
		m->m.neighbors.n = (uint32_t)query->max;
		ctl_send_transport(c, query->transport, m);
	} else if (query->walk == 1 && query->waiting == 0) {
		ctl_query_finish(c, query);
	}
}

static void
flights_answered(struct eng_control *c, struct ctl_msg *m)
{
	m->query->n = m->m.status < 0 ? 0 : (int)m->m.flight.n;
	m->query->waiting--;
}

static void
flights_ask(struct eng_control *c, struct ctl_query *query, enum eng_ctl_type type,
	unsigned transport, uint32_t conn)
{
	struct ctl_msg *m = ctl_query_message(c, query, type, flights_answered);

	m->m.conn = conn;
	m->m.flight.view = query->flights;
	m->m.flight.n = (uint32_t)query->max;
	ctl_send_transport(c, transport, m);
}

/* The transport stage writes into the query, as for QPs. */
static void
view_failed(struct eng_control *c, struct ctl_query *query)
{
	if (query->walk == 0 && ctl_has_reserve(c)) {
		query->walk = 1;
		flights_ask(c, query, ENG_CT_FAILED, query->transport, 0);
	} else if (query->walk == 1 && query->waiting == 0) {
		ctl_query_finish(c, query);
	}
}

static void
view_events(struct eng_control *c, struct ctl_query *query)
{
	if (query->walk == 0 && !ctl_has_reserve(c))
		return;
	for (uint32_t i = 0; query->walk == 0 && i < c->conns.fresh; i++) {
		const struct cm_conn *q = ctl_table_get(&c->conns, i);

		if (q == NULL || q->state != CM_ESTABLISHED || q->qp->rd.qpn != query->qpn)
			continue;
		flights_ask(c, query, ENG_CT_EVENTS, q->transport, q->conn);
		break;
	}
	query->walk = 1;
	if (query->waiting == 0)
		ctl_query_finish(c, query);
}

static void
view_qps(struct eng_control *c, struct ctl_query *query)
{
	unsigned budget = CTL_BATCH;

	while (query->walk < c->conns.fresh && query->n < query->max && ctl_has_reserve(c) &&
		budget--) {
		const struct cm_conn *q = ctl_table_get(&c->conns, query->walk++);

		if (q != NULL && q->client != NULL && ctl_qp_of(q)->added && !q->dying)
			query_qp(c, query, q);
	}
	if (query->waiting == 0 && (query->walk >= c->conns.fresh || query->n == query->max))
		ctl_query_finish(c, query);
}

/* Handles the oldest query only, so that there is one query at a time. */
bool
ctl_query_poll(struct eng_control *c)
{
	static void (*const views[])(struct eng_control *, struct ctl_query *) = {
		[VIEW_QPS] = view_qps,
		[VIEW_CLIENTS] = view_clients,
		[VIEW_NEIGHBORS] = view_neighbors,
		[VIEW_CHANGE] = ctl_change_step,
		[VIEW_EVENTS] = view_events,
		[VIEW_FAILED] = view_failed,
	};
	struct ctl_query *query = TAILQ_FIRST(&c->queries);

	if (query == NULL)
		return false;
	views[query->kind](c, query);
	return true;
}

void
ctl_queries_drop(struct eng_control *c)
{
	struct ctl_query *query;

	while ((query = TAILQ_FIRST(&c->queries)) != NULL) {
		query->n = 0;
		ctl_query_finish(c, query);
	}
}

bool
ctl_query_pass(struct eng_control *c, struct ctl_query *q, int64_t wait_ns)
{
	const struct timespec nap = {.tv_nsec = QUERY_NAP_NS};
	struct ctl_inbox *in = calloc(1, sizeof(*in));

	q->refs = 1;
	if (in == NULL)
		return false;
	q->refs = 2;
	in->kind = CTL_IN_QUERY;
	in->query = q;
	ctl_inbox_push(c, in);
	for (int64_t waited = 0; waited < wait_ns; waited += QUERY_NAP_NS) {
		if (__atomic_load_n(&q->done, __ATOMIC_ACQUIRE))
			break;
		nanosleep(&nap, NULL);
	}
	return __atomic_load_n(&q->done, __ATOMIC_ACQUIRE);
}

/* Passes a query to the control stage and waits for it. Returns how many elements of `size` bytes
 * it has written to `out`. */
static int
control_query_run(
	struct eng_control *c, void *out, int max, size_t size, const struct ctl_query *what)
{
	struct ctl_query *q = calloc(1, sizeof(*q));
	void *view = max > 0 ? calloc((size_t)max, size) : NULL;
	int n = 0;

	if (q == NULL || view == NULL) {
		free(q);
		free(view);
		return 0;
	}
	*q = *what;
	q->max = max;
	q->view = view;
	if (ctl_query_pass(c, q, QUERY_WAIT_NS)) {
		n = q->n;
		memcpy(out, view, (size_t)n * size);
	}
	ctl_query_put(q);
	return n;
}

int
eng_control_qps(struct eng_control *c, struct eng_qp_view *out, int max)
{
	const struct ctl_query what = {.kind = VIEW_QPS};

	return control_query_run(c, out, max, sizeof(*out), &what);
}

int
eng_control_clients(struct eng_control *c, struct eng_client_view *out, int max)
{
	const struct ctl_query what = {.kind = VIEW_CLIENTS};

	return control_query_run(c, out, max, sizeof(*out), &what);
}

int
eng_control_neighbors(
	struct eng_control *c, unsigned transport, struct net_neighbor_view *out, int max)
{
	const struct ctl_query what = {.kind = VIEW_NEIGHBORS, .transport = transport};

	return transport < c->cfg->ntransports ? control_query_run(c, out, max, sizeof(*out), &what)
					       : 0;
}

int
eng_control_events(struct eng_control *c, uint32_t qpn, struct eng_flight *out)
{
	const struct ctl_query what = {.kind = VIEW_EVENTS, .qpn = qpn};

	return control_query_run(c, out, 1, sizeof(*out), &what);
}

int
eng_control_failed(struct eng_control *c, unsigned transport, struct eng_flight *out, int max)
{
	const struct ctl_query what = {.kind = VIEW_FAILED, .transport = transport};

	return transport < c->cfg->ntransports ? control_query_run(c, out, max, sizeof(*out), &what)
					       : 0;
}
