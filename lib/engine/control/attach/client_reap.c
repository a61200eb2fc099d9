/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The destruction of a removed client's objects, in phases. Each phase waits until no message about
 * its objects is in a ring. The first phase destroys the QPs, which informs the peers; the next
 * ones destroy the queues, remove the client's rings from the engine stages, and retire the memory
 * regions, which are freed when no loop can be using them. The domains follow, and last, the memory
 * is unmapped. No phase blocks, and the caller sets how many objects a turn destroys.
 */
#include <errno.h>
#include <stdlib.h>

#include "../../../base/log.h"
#include "client.h"
#include "../cm/cm.h"
#include "../../common/sigbus.h"

#define REAP_SLOTS  512 /* places of a table that a turn examines */
#define REAP_EVENTS 32  /* queued events that cost as much as an object */

void
ctl_client_check_sigbus(struct eng_control *c)
{
	struct ctl_client *cl;
	uint32_t seen = eng_sigbus_count();

	if (seen == c->sigbus_seen)
		return;
	c->sigbus_seen = seen;
	TAILQ_FOREACH (cl, &c->all, all) {
		if (!__atomic_load_n(&cl->eng.dead, __ATOMIC_ACQUIRE) || cl->phase > CTL_LIVE)
			continue;
		sk_count(c->counters, ENG_CLIENT_SIGBUS);
		ctl_client_put_out(c, cl,
			"it has removed pages of its shared memory, or no memory is free for them");
	}
}

static bool
may_go_on(const struct eng_control *c, const struct ctl_client *cl, unsigned *budget)
{
	return *budget && ctl_may_command(c, cl) && (*budget)--;
}

/* Begins to destroy an object. Returns false when there is no memory for that now. */
typedef bool reap_end(struct eng_control *c, struct ctl_client *cl, void *object);

/* Begins to destroy each object of the table, from position cl->walk on, as far as REAP_SLOTS
 * places. Returns whether it has reached the end. */
static bool
walk(struct eng_control *c, struct ctl_client *cl, struct ctl_table *t, unsigned *budget,
	reap_end *end)
{
	for (unsigned n = 0; cl->walk < t->fresh; n++) {
		void *object = t->slot[cl->walk];

		if (n == REAP_SLOTS)
			return false;
		if (object != NULL && (!may_go_on(c, cl, budget) || !end(c, cl, object)))
			return false;
		cl->walk++;
	}
	cl->walk = 0;
	return true;
}

/* Returns a quiet operation, or NULL. The phase waits until the table is empty. */
static struct ctl_op *
client_reap_quiet(struct eng_control *c, struct ctl_client *cl)
{
	return ctl_op_new(c, cl, NULL, NULL, NULL);
}

static bool
end_listener(struct eng_control *c, struct ctl_client *cl, void *object)
{
	struct cm_listener *l = object;
	struct ctl_op *op = l->closing ? NULL : client_reap_quiet(c, cl);

	if (l->closed) {
		cm_listener_free(c, l);
		return true;
	}
	if (op != NULL)
		cm_listener_close(c, l, op);
	return op != NULL || l->closing;
}

static bool
end_request(struct eng_control *c, struct ctl_client *cl, void *object)
{
	struct cm_request *r = object;

	if (r->accepting == NULL)
		cm_request_reject(c, r, NULL);
	return true;
}

static bool
end_qp(struct eng_control *c, struct ctl_client *cl, void *object)
{
	struct ctl_qp_ref *ref = object;
	struct ctl_qp *q = object;
	struct ctl_op *op;

	if (ref->opened) {
		ctl_opened_free(object);
		return true;
	}
	op = q->conn.dying ? NULL : client_reap_quiet(c, cl);
	if (op != NULL)
		ctl_qp_delete(c, q, op);
	return op != NULL || q->conn.dying;
}

static bool
end_srq(struct eng_control *c, struct ctl_client *cl, void *object)
{
	struct ctl_srq *s = object;
	struct ctl_op *op = s->dying ? NULL : client_reap_quiet(c, cl);

	if (op != NULL)
		ctl_srq_delete(c, s, op);
	return op != NULL || s->dying;
}

static bool
end_ah(struct eng_control *c, struct ctl_client *cl, void *object)
{
	struct ctl_ah *ah = object;
	struct ctl_op *op = ah->dying ? NULL : client_reap_quiet(c, cl);

	if (op != NULL)
		ctl_ah_delete(c, cl, ah, op);
	return op != NULL || ah->dying;
}

static bool
end_cq(struct eng_control *c, struct ctl_client *cl, void *object)
{
	struct ctl_op *op = client_reap_quiet(c, cl);

	if (op != NULL)
		ctl_cq_delete(c, object, op);
	return op != NULL;
}

static bool
end_mw(struct eng_control *c, struct ctl_client *cl, void *object)
{
	ctl_mw_retire(c, object);
	return true;
}

static bool
end_mr(struct eng_control *c, struct ctl_client *cl, void *object)
{
	ctl_mr_retire(c, object);
	return true;
}

static bool
end_xrcd(struct eng_control *c, struct ctl_client *cl, void *object)
{
	ctl_xrcd_free(c, cl, object);
	return true;
}

static bool
end_pd(struct eng_control *c, struct ctl_client *cl, void *object)
{
	ctl_pd_free(c, cl, object);
	return true;
}

static void
client_deleted(struct eng_control *c, struct ctl_msg *m)
{
	m->client->waiting--;
}

static void
next_phase(struct ctl_client *cl)
{
	cl->phase++;
	cl->step = 0;
	cl->walk = 0;
}

/* Begins to destroy the objects in the tables of a phase, one table after the other. Returns
 * whether it has reached the end of all. */
static bool
walks(struct eng_control *c, struct ctl_client *cl, unsigned *budget)
{
	static const struct {
		size_t table;
		reap_end *end;
	} steps[CTL_GONE][4] = {
		[CTL_REAP_QPS] = {{offsetof(struct ctl_client, listeners), end_listener},
			{offsetof(struct ctl_client, requests), end_request},
			{offsetof(struct ctl_client, qps), end_qp}},
		[CTL_REAP_QUEUES] = {{offsetof(struct ctl_client, srqs), end_srq},
			{offsetof(struct ctl_client, ahs), end_ah},
			{offsetof(struct ctl_client, cqs), end_cq}},
		[CTL_REAP_MRS] = {{offsetof(struct ctl_client, mws), end_mw},
			{offsetof(struct ctl_client, mrs), end_mr}},
		[CTL_REAP_LAST] = {{offsetof(struct ctl_client, xrcds), end_xrcd},
			{offsetof(struct ctl_client, pds), end_pd}},
	};

	for (; steps[cl->phase][cl->step].end != NULL; cl->step++)
		if (!walk(c, cl,
			    (struct ctl_table *)((char *)cl + steps[cl->phase][cl->step].table),
			    budget, steps[cl->phase][cl->step].end))
			return false;
	return true;
}

static void
reap_client(struct eng_control *c, struct ctl_client *cl)
{
	if (cl->step == 0) {
		cl->step = 1;
		for (unsigned i = 0; i < c->cfg->nstages; i++) {
			struct ctl_msg *m = ctl_msg_get(c, ENG_CE_CLIENT_DEL, client_deleted);

			m->m.client = &cl->eng;
			m->client = cl;
			cl->waiting++;
			ctl_send_stage(c, i, m);
		}
	}
	if (cl->waiting == 0)
		next_phase(cl);
}

static void
reap_last(struct eng_control *c, struct ctl_client *cl)
{
	ctl_unring_client(c, cl);
	TAILQ_REMOVE(&c->all, cl, all);
	c->clients[cl->eng.index] = NULL;
	ctl_total(&c->totals.clients, -1);
	ctl_total(&c->totals.regions, -(int)cl->nregions);
	c->reaping--;
	cl->phase = CTL_GONE;
	if (cl->flat)
		ctl_client_free(c, cl);
	else
		ctl_gone_push(c, cl);
}

bool
ctl_client_reap_poll(struct eng_control *c, struct ctl_client *cl, unsigned *budget)
{
	unsigned before = *budget;
	enum ctl_phase phase = cl->phase;

	switch (phase) {
	case CTL_REAP_QPS:
		/* Commands in progress complete first, so that the tables contain the objects that
		 * they create. */
		if (cl->waiting == 0 && cl->commands == 0 && walks(c, cl, budget) &&
			!cl->listeners.used && !cl->requests.used && !cl->qps.used)
			next_phase(cl);
		break;
	case CTL_REAP_QUEUES:
		if (walks(c, cl, budget) && !cl->srqs.used && !cl->ahs.used && !cl->cqs.used)
			next_phase(cl);
		break;
	case CTL_REAP_CLIENT:
		if (ctl_has_reserve(c))
			reap_client(c, cl);
		break;
	case CTL_REAP_MRS:
		if (walks(c, cl, budget) && !cl->mrs.used && !cl->mws.used && !cl->retiring)
			next_phase(cl);
		break;
	case CTL_REAP_LAST:
		for (; cl->nevents > 0 && *budget > 0; (*budget)--)
			ctl_events_drop(c, cl, REAP_EVENTS);
		if (cl->nevents == 0 && walks(c, cl, budget))
			reap_last(c, cl);
		break;
	default:
		return false;
	}
	return *budget < before;
}
