/* SPDX-License-Identifier: BSD-3-Clause */
/* The control stage: creation, turn and destruction. */
#include <errno.h>
#include <rte_ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../base/wheel.h"
#include "attach/client.h"
#include "attach/place.h"
#include "attach/socket.h"
#include "control.h"
#include "cm/cm.h"
#include "../common/places.h"
#include "query_priv.h"
#include "tables_priv.h"

static int
engine_control_tables_init(struct eng_control *c, const struct eng_limits *l)
{
	c->places = ctl_places_new(l);
	c->clients = calloc(l->clients, sizeof(*c->clients));
	c->requests = calloc(CTL_REQUEST_HASH, sizeof(*c->requests));
	c->xrcds = calloc(CTL_XRCD_HASH, sizeof(*c->xrcds));
	c->ports = calloc(CTL_PORT_HASH, sizeof(*c->ports));
	c->host_hash = calloc(CTL_HOST_HASH, sizeof(*c->host_hash));
	c->host_prefix = calloc(CTL_HOST_HASH, sizeof(*c->host_prefix));
	c->conn_generation = calloc(l->qps, sizeof(*c->conn_generation));
	c->listener_generation = calloc(l->listeners, sizeof(*c->listener_generation));
	c->srq_generation = calloc(l->srqs, sizeof(*c->srq_generation));
	c->pool = calloc(CTL_POOL, sizeof(*c->pool));
	if (c->places == NULL || c->clients == NULL || c->requests == NULL ||
		c->conn_generation == NULL || c->listener_generation == NULL ||
		c->srq_generation == NULL || c->pool == NULL || c->xrcds == NULL ||
		c->ports == NULL || c->host_hash == NULL || c->host_prefix == NULL ||
		ctl_table_init(&c->conns, l->qps) < 0 ||
		ctl_table_init(&c->xrc_srqs, l->srqs) < 0 ||
		ctl_table_init(&c->listeners, l->listeners) < 0)
		return -ENOMEM;
	for (c->nspare = 0; c->nspare < CTL_POOL; c->nspare++) {
		c->pool[c->nspare].next = c->spare;
		c->spare = &c->pool[c->nspare];
	}
	return 0;
}

static int
target_init(struct ctl_target *t, struct rte_ring *to, struct rte_ring *from)
{
	t->to = to;
	t->from = from;
	t->backlog = calloc(CTL_BACKLOG, sizeof(*t->backlog));
	return t->backlog != NULL ? 0 : -ENOMEM;
}

static int
targets_init(struct eng_control *c)
{
	const struct eng_control_args *a = &c->a;
	int rc = 0;

	c->transport = calloc(c->cfg->ntransports, sizeof(*c->transport));
	c->stage = calloc(c->cfg->nstages, sizeof(*c->stage));
	if (c->transport == NULL || c->stage == NULL)
		return -ENOMEM;
	for (unsigned i = 0; rc == 0 && i < c->cfg->ntransports; i++)
		rc = target_init(&c->transport[i], a->to_transport[i], a->from_transport[i]);
	for (unsigned i = 0; rc == 0 && i < c->cfg->nstages; i++)
		rc = target_init(&c->stage[i], a->to_stage[i], a->from_stage[i]);
	return rc;
}

const char *
ctl_limits_wrong(const struct eng_config *cfg)
{
	const struct eng_limits *l = &cfg->limits;

	if (!l->clients || !l->qps || !l->cqs || !l->mrs || !l->pds || !l->srqs || !l->listeners ||
		!l->client_qps || !l->client_cqs || !l->client_mrs)
		return "a limit is 0";
	if (l->qps > 1u << 22 || l->client_qps > 1u << 20 || l->client_cqs > 1u << 20 ||
		l->listeners > 1u << 16 || l->srqs > 1u << 22 || l->clients > 1u << CTL_ID_BITS)
		return "a limit exceeds the range of object numbers";
	if (!l->sq_depth || !l->rq_depth || !l->cq_depth || l->sq_depth > 1u << 16 ||
		l->rq_depth > 1u << 16 || l->cq_depth > 1u << 22)
		return "a queue depth is 0 or beyond 65536 (CQs: 4194304)";
	if (cfg->port_min == 0 || cfg->port_max < cfg->port_min)
		return "the range of local ports is empty";
	return NULL;
}

struct eng_control *
eng_control_create(const struct eng_control_args *args, char *err, size_t errlen)
{
	const char *wrong = ctl_limits_wrong(args->cfg);
	struct eng_control *c = wrong != NULL ? NULL : calloc(1, sizeof(*c));

	if (c == NULL) {
		snprintf(err, errlen, "%s",
			wrong != NULL ? wrong : "no memory for the control stage");
		return NULL;
	}
	c->a = *args;
	c->cfg = args->cfg;
	pthread_mutex_init(&c->limits_lock, NULL);
	c->commands = ctl_commands;
	c->notices = ctl_notices;
	c->inbox_handlers = ctl_inbox_handlers;
	c->conn_ops = &cm_conn_ops;
	cm_configure(c);
	c->sock_fd = -1;
	c->taken_end = &c->taken;
	TAILQ_INIT(&c->ops);
	TAILQ_INIT(&c->retiring);
	TAILQ_INIT(&c->waiting);
	TAILQ_INIT(&c->hosts);
	TAILQ_INIT(&c->queries);
	sk_random(&c->qpn_key, sizeof(c->qpn_key));
	sk_random(&c->srqn_key, sizeof(c->srqn_key));
	if (c->a.places != NULL) {
		c->a.places->key = c->qpn_key;
		c->a.places->srq_key = c->srqn_key;
	}
	if (ctl_turn_init(c) < 0 || ctl_shares_init(c) < 0 ||
		engine_control_tables_init(c, &c->cfg->limits) < 0 || targets_init(c) < 0) {
		snprintf(err, errlen, "no memory for the control stage's tables");
		eng_control_destroy(c);
		return NULL;
	}
	return c;
}

/* ---- The turn ---- */

#define REAP_BUDGET 8 /* objects of removed clients that a turn destroys */

static bool
reap_poll(struct eng_control *c)
{
	struct ctl_client *cl, *next;
	unsigned budget = REAP_BUDGET;
	bool work = false;

	for (cl = TAILQ_FIRST(&c->all); c->reaping && cl != NULL; cl = next) {
		next = TAILQ_NEXT(cl, all);
		work |= ctl_client_reap_poll(c, cl, &budget);
	}
	return work;
}

bool
eng_control_poll(struct eng_control *c, uint64_t now)
{
	bool work;

	c->now = now;
	if (!c->turning)
		sk_wheel_init(&c->wheel, now);
	c->turning = true;
	c->deferred = false;
	c->turn++;
	c->requests_left = CTL_TURN_REQUESTS;
	work = ctl_rings_poll(c);
	work |= ctl_inbox_poll(c);
	ctl_client_check_sigbus(c);
	work |= ctl_rung_poll(c);
	work |= ctl_backlog_poll(c);
	work |= reap_poll(c);
	work |= ctl_retire_poll(c);
	work |= cm_request_poll(c);
	work |= cm_modified_poll(c);
	work |= cm_host_poll(c);
	work |= ctl_query_poll(c);
	ctl_peek_poll(c);
	return work;
}

uint64_t
eng_control_deadline(const struct eng_control *c)
{
	uint64_t at = SK_MIN(cm_request_deadline(c), sk_wheel_next(&c->wheel));

	if (!TAILQ_EMPTY(&c->rung) || !TAILQ_EMPTY(&c->retiring) || !TAILQ_EMPTY(&c->queries) ||
		c->reaping || c->taken != NULL || c->unseen > 0 || c->hosts_unseen > 0 ||
		c->deferred)
		return c->now;
	if (!TAILQ_EMPTY(&c->all))
		at = SK_MIN(at, c->next_peek);
	if (!TAILQ_EMPTY(&c->backlogged))
		at = SK_MIN(at, c->now + CTL_BACKLOGGED_NS);
	if (!TAILQ_EMPTY(&c->hosts))
		at = SK_MIN(at, c->hosts_look);
	return at;
}

const uint64_t *
eng_control_counters(const struct eng_control *c)
{
	return c->counters;
}

void
eng_control_totals(const struct eng_control *c, struct eng_totals *out)
{
	const struct eng_totals *t = &c->totals;

	out->clients = __atomic_load_n(&t->clients, __ATOMIC_RELAXED);
	out->qps = __atomic_load_n(&t->qps, __ATOMIC_RELAXED);
	out->cqs = __atomic_load_n(&t->cqs, __ATOMIC_RELAXED);
	out->mrs = __atomic_load_n(&t->mrs, __ATOMIC_RELAXED);
	out->mws = __atomic_load_n(&t->mws, __ATOMIC_RELAXED);
	out->pds = __atomic_load_n(&t->pds, __ATOMIC_RELAXED);
	out->srqs = __atomic_load_n(&t->srqs, __ATOMIC_RELAXED);
	out->listeners = __atomic_load_n(&t->listeners, __ATOMIC_RELAXED);
	out->regions = __atomic_load_n(&t->regions, __ATOMIC_RELAXED);
}

/* ---- Clients come and go ---- */

int
eng_control_attach_flat(struct eng_control *c, const char *name, void *base, size_t size,
	size_t mem_len, int wake_fd)
{
	return ctl_client_attach_flat(c, name, base, size, mem_len, wake_fd);
}

int
eng_control_detach(struct eng_control *c, int client)
{
	return ctl_client_detach(c, client);
}

bool
eng_control_client_gone(struct eng_control *c, int client)
{
	return ctl_client_gone(c, client);
}

int
eng_control_socket_start(struct eng_control *c, const char *path, char *err, size_t errlen)
{
	return ctl_socket_start(c, path, err, errlen);
}

void
eng_control_socket_stop(struct eng_control *c)
{
	ctl_socket_stop(c);
}

size_t
eng_control_qp_size(void)
{
	return sizeof(struct ctl_qp);
}

/* ---- The end ---- */

static void
drop_client(struct eng_control *c, struct ctl_client *cl)
{
	uint32_t i;

	for (i = 0; i < cl->listeners.fresh; i++)
		if (ctl_table_get(&cl->listeners, i) != NULL)
			cm_listener_free(c, ctl_table_get(&cl->listeners, i));
	for (i = 0; i < cl->qps.fresh; i++) {
		struct ctl_qp_ref *ref = ctl_table_get(&cl->qps, i);

		if (ref != NULL && ref->opened) {
			ctl_opened_free((struct ctl_opened *)ref);
		} else if (ref != NULL) {
			cm_accept_forget(c, &((struct ctl_qp *)ref)->conn);
			ctl_qp_free(c, (struct ctl_qp *)ref);
		}
	}
	for (i = 0; i < cl->requests.fresh; i++)
		if (ctl_table_get(&cl->requests, i) != NULL)
			cm_request_free(c, ctl_table_get(&cl->requests, i));
	for (i = 0; i < cl->srqs.fresh; i++)
		free(ctl_table_get(&cl->srqs, i));
	for (i = 0; i < cl->ahs.fresh; i++)
		if (ctl_table_get(&cl->ahs, i) != NULL)
			ctl_ah_free(c, cl, ctl_table_get(&cl->ahs, i));
	for (i = 0; i < cl->xrcds.fresh; i++)
		if (ctl_table_get(&cl->xrcds, i) != NULL)
			ctl_xrcd_free(c, cl, ctl_table_get(&cl->xrcds, i));
	for (i = 0; i < cl->cqs.fresh; i++)
		free(ctl_table_get(&cl->cqs, i));
	for (i = 0; i < cl->mws.fresh; i++)
		if (ctl_table_get(&cl->mws, i) != NULL)
			ctl_mw_retire(c, ctl_table_get(&cl->mws, i));
	for (i = 0; i < cl->mrs.fresh; i++)
		if (ctl_table_get(&cl->mrs, i) != NULL)
			ctl_mr_retire(c, ctl_table_get(&cl->mrs, i));
	ctl_retire_all(c);
	for (i = 0; i < cl->pds.fresh; i++)
		free(ctl_table_get(&cl->pds, i));
	ctl_events_drop(c, cl, cl->nevents);
}

/* Frees the messages of the inbox. */
static void
inbox_drop(struct eng_control *c)
{
	struct ctl_inbox *in;

	while ((in = ctl_inbox_pop(c)) != NULL) {
		/* The client of a CTL_IN_ADD has a number, so eng_control_destroy() frees it. */
		if (in->kind == CTL_IN_QUERY)
			ctl_query_start(c, in->query);
		free(in);
	}
}

void
eng_control_destroy(struct eng_control *c)
{
	struct ctl_client *cl;
	struct ctl_op *op;

	if (c == NULL)
		return;
	ctl_socket_stop(c);
	inbox_drop(c);
	ctl_queries_drop(c);
	TAILQ_FOREACH (cl, &c->all, all) {
		cl->phase = CTL_GONE; /* no event is sent to it any more */
		drop_client(c, cl);
	}
	cm_hosts_free(c);
	while ((op = TAILQ_FIRST(&c->ops)) != NULL)
		ctl_op_free(c, op);
	for (uint32_t i = 0; c->places != NULL && i < c->cfg->limits.clients; i++) {
		cl = ctl_place_client(c->places, i);
		if (cl == NULL)
			continue;
		__atomic_store_n(&cl->eng.header->engine_alive, 0, __ATOMIC_RELEASE);
		ctl_client_free(c, cl);
	}
	for (unsigned i = 0; c->transport != NULL && i < c->cfg->ntransports; i++)
		free(c->transport[i].backlog);
	for (unsigned i = 0; c->stage != NULL && i < c->cfg->nstages; i++)
		free(c->stage[i].backlog);
	free(c->transport);
	free(c->stage);
	ctl_table_fini(&c->conns);
	ctl_table_fini(&c->listeners);
	free(c->conn_generation);
	free(c->listener_generation);
	ctl_table_fini(&c->xrc_srqs);
	free(c->srq_generation);
	free(c->requests);
	free(c->xrcds);
	free(c->ports);
	free(c->host_hash);
	free(c->host_prefix);
	free(c->clients);
	ctl_places_free(c->places);
	ctl_shares_fini(c);
	free(c->users);
	free(c->pool);
	pthread_mutex_destroy(&c->limits_lock);
	free(c);
}
