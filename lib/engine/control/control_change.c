/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eng_change(): a query that changes the configuration. The control stage owns the members that can
 * change; transport stages get old and new configurations with the messages. The steps: one
 * transport stage checks; the control stage takes the new values over, so that nobody can use a
 * removed address any more, closes the listeners there, and gives the clients their rates; the
 * transport stages end connections while their addresses can still send; then they replace
 * addresses and routes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/log.h"
#include "attach/client.h"
#include "cm/cm.h"
#include "control.h"
#include "query_priv.h"

#define CHANGE_WAIT_NS 10000000000ll

struct ctl_change {
	struct eng_config was, next; /* the transport stages read both */
	enum { STEP_BEGIN, STEP_CHECK, STEP_LISTENERS, STEP_CLIENTS, STEP_END, STEP_APPLY } step;
	int status;
	struct eng_changed result;
};

static void
change_answered(struct eng_control *c, struct ctl_msg *m)
{
	struct ctl_change *ch = m->query->change;

	m->query->waiting--;
	ch->result.conns += m->m.change.ended;
	if (m->m.status < 0)
		ch->status = m->m.status;
}

static void
rates_answered(struct eng_control *c, struct ctl_msg *m)
{
	m->query->waiting--;
}

static void
change_send(struct eng_control *c, struct ctl_query *q, unsigned transport, uint8_t step)
{
	struct ctl_msg *m = ctl_query_message(c, q, ENG_CT_CHANGE, change_answered);

	m->m.change.step = step;
	m->m.change.was = &q->change->was;
	m->m.change.next = &q->change->next;
	ctl_send_transport(c, transport, m);
}

static void
change_send_all(struct eng_control *c, struct ctl_query *q, uint8_t step)
{
	for (unsigned i = 0; i < c->cfg->ntransports; i++)
		change_send(c, q, i, step);
}

/* Takes over the members that change, of which other threads read the limits of clients. */
static void
change_take(struct eng_control *c, const struct eng_config *next)
{
	struct eng_config *cfg = c->a.cfg;

	memcpy(cfg->ifs, next->ifs, sizeof(cfg->ifs));
	memcpy(cfg->routes, next->routes, sizeof(cfg->routes));
	memcpy(cfg->rates, next->rates, sizeof(cfg->rates));
	memcpy(cfg->falcon.modes, next->falcon.modes, sizeof(cfg->falcon.modes));
	cfg->nifs = next->nifs;
	cfg->nroutes = next->nroutes;
	ctl_limits_set(c, &next->limits);
}

static void
change_close(struct eng_control *c, struct ctl_query *q, struct cm_listener *l)
{
	struct ctl_op *op = ctl_op_new(c, l->client, NULL, l, NULL);
	char text[SK_ADDR_STRLEN];

	if (op == NULL)
		return;
	sk_log(SK_LOG_INFO,
		"client %u (%s): its listener at %s port %u is closed: the address "
		"was removed",
		l->client->eng.index, l->client->eng.name, sk_addr_str(&l->addr, text), l->port);
	q->change->result.listeners++;
	cm_listener_close(c, l, op);
}

/* Closes listeners whose address disappeared. Returns whether all were examined. A listener that
 * the transport stages are opening is examined when they have answered. */
static bool
change_listeners(struct eng_control *c, struct ctl_query *q)
{
	for (; q->walk < c->listeners.fresh; q->walk++) {
		struct cm_listener *l = ctl_table_get(&c->listeners, q->walk);

		if (l == NULL || l->closing || sk_addr_is_any(&l->addr) ||
			cm_addr_is_ours(c, &l->addr))
			continue;
		if (!l->ready || !ctl_has_reserve(c))
			return false;
		change_close(c, q, l);
	}
	q->walk = 0;
	return true;
}

/* Sends all clients their rates. Returns whether all messages are sent. */
static bool
change_clients(struct eng_control *c, struct ctl_query *q)
{
	for (; q->walk < c->cfg->limits.clients; q->walk++) {
		struct ctl_client *cl = c->clients[q->walk];

		if (cl == NULL || cl->phase > CTL_LIVE)
			continue;
		if (!ctl_has_reserve(c))
			return false;
		ctl_client_class(c, cl);
		for (unsigned i = 0; i < c->cfg->nstages; i++) {
			struct ctl_msg *m =
				ctl_query_message(c, q, ENG_CE_CLIENT_RATES, rates_answered);

			m->m.client = &cl->eng;
			ctl_client_rates(c, cl, &m->m.rates.client, &m->m.rates.user);
			ctl_send_stage(c, i, m);
		}
	}
	return true;
}

/* Performs the step, all of whose messages were answered. Returns whether it is complete. */
static bool
change_perform(struct eng_control *c, struct ctl_query *q)
{
	struct ctl_change *ch = q->change;

	switch (ch->step) {
	case STEP_BEGIN:
		ch->was = *c->cfg;
		ch->status = 0;
		change_send(c, q, 0, ENG_CHANGE_CHECK);
		return true;
	case STEP_CHECK:
		if (ch->status == 0)
			change_take(c, &ch->next);
		return true;
	case STEP_LISTENERS:
		return change_listeners(c, q);
	case STEP_CLIENTS:
		return change_clients(c, q);
	case STEP_END:
		change_send_all(c, q, ENG_CHANGE_END);
		return true;
	case STEP_APPLY:
		change_send_all(c, q, ENG_CHANGE_APPLY);
		return true;
	}
	return true;
}

void
ctl_change_step(struct eng_control *c, struct ctl_query *q)
{
	struct ctl_change *ch = q->change;

	if (q->waiting > 0 || !ctl_has_reserve(c))
		return;
	if (ch->step > STEP_APPLY || (ch->step > STEP_BEGIN && ch->status < 0))
		ctl_query_finish(c, q);
	else if (change_perform(c, q))
		ch->step++;
}

static int
change_result(const struct ctl_query *q, bool done, struct eng_changed *out, char *err, size_t len)
{
	int rc = done ? q->change->status : -ETIMEDOUT;

	if (!done)
		snprintf(err, len, "the stages do not answer");
	else if (rc < 0)
		snprintf(err, len,
			"the addresses do not fit: an interface has at most %d, and there are at "
			"most %d interfaces, with those that were removed since the start",
			NET_MAX_ADDRS - 1, NET_MAX_IFS - 1);
	if (rc == 0)
		*out = q->change->result;
	return rc;
}

static int
change_limits_check(const struct eng_config *next, char *err, size_t errlen)
{
	const struct eng_limits *l = &next->limits;
	const char *wrong = ctl_limits_wrong(next);
	struct shm_header h;

	if (wrong != NULL)
		snprintf(err, errlen, "%s", wrong);
	else if (ctl_client_layout(next->nstages, l, l->client_home_bytes, 0, &h) < 0)
		snprintf(err, errlen, "a home region of %llu bytes is too small for the limits",
			(unsigned long long)l->client_home_bytes);
	else
		return 0;
	return -EINVAL;
}

int
eng_control_change(struct eng_control *c, const struct eng_config *next, struct eng_changed *out,
	char *err, size_t errlen)
{
	struct ctl_query *q = calloc(1, sizeof(*q));
	struct ctl_change *ch = calloc(1, sizeof(*ch));
	int rc = change_limits_check(next, err, errlen);

	if (rc < 0) {
		free(q);
		free(ch);
		return rc;
	}
	if (q == NULL || ch == NULL) {
		free(q);
		free(ch);
		snprintf(err, errlen, "memory is exhausted");
		return -ENOMEM;
	}
	ch->next = *next;
	ch->status = -ECANCELED; /* of a control stage that ends */
	q->kind = VIEW_CHANGE;
	q->change = ch;
	rc = change_result(q, ctl_query_pass(c, q, CHANGE_WAIT_NS), out, err, errlen);
	ctl_query_put(q);
	return rc;
}
