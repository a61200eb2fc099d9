/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order in which the control stage serves clients, and what a turn may cost. Users take turns,
 * so that the clients of one user have one share together, and so do the clients of a user (deficit
 * round robin). A costly command puts its user into debt: the user's clients wait until the other
 * users have had as much. The cost of a whole turn is bounded in the same way, because the loop may
 * have other stages to poll.
 */
#include <errno.h>
#include <stdlib.h>

#include "core.h"

int
ctl_turn_init(struct eng_control *c)
{
	uint32_t n = c->cfg->limits.clients + 1;

	TAILQ_INIT(&c->all);
	TAILQ_INIT(&c->rung);
	TAILQ_INIT(&c->backlogged);
	c->users = calloc(n, sizeof(*c->users));
	for (uint32_t i = 0; c->users != NULL && i < n; i++)
		TAILQ_INIT(&c->users[i].clients);
	return c->users != NULL ? 0 : -ENOMEM;
}

void
ctl_ring_client(struct eng_control *c, struct ctl_client *cl)
{
	struct ctl_user *u = &c->users[cl->eng.user];

	if (cl->has_rung || cl->phase != CTL_LIVE)
		return;
	cl->has_rung = true;
	if (TAILQ_EMPTY(&u->clients))
		TAILQ_INSERT_TAIL(&c->rung, u, next);
	TAILQ_INSERT_TAIL(&u->clients, cl, rung);
}

void
ctl_unring_client(struct eng_control *c, struct ctl_client *cl)
{
	struct ctl_user *u = &c->users[cl->eng.user];

	if (!cl->has_rung)
		return;
	cl->has_rung = false;
	TAILQ_REMOVE(&u->clients, cl, rung);
	if (!TAILQ_EMPTY(&u->clients))
		return;
	TAILQ_REMOVE(&c->rung, u, next);
	/* A user cannot save credit for later, but a debt remains. */
	u->credit = SK_MIN(u->credit, 0);
}

/* Executes one command of the user's next client. */
static void
serve_user(struct eng_control *c, struct ctl_user *u)
{
	struct ctl_client *cl = TAILQ_FIRST(&u->clients);
	int cost;

	TAILQ_REMOVE(&u->clients, cl, rung);
	TAILQ_INSERT_TAIL(&u->clients, cl, rung);
	if (!ctl_mailbox_poll(c, cl, &cost))
		ctl_unring_client(c, cl);
	u->credit -= cost;
	c->credit -= cost;
}

bool
ctl_rung_poll(struct eng_control *c)
{
	bool work = !TAILQ_EMPTY(&c->rung);
	struct ctl_user *u;

	c->credit = SK_MIN(c->credit + CTL_TURN_COST, CTL_TURN_COST);
	while (c->credit > 0 && (u = TAILQ_FIRST(&c->rung)) != NULL) {
		if (u->credit > 0) {
			serve_user(c, u);
			continue;
		}
		u->credit += CTL_USER_COST;
		TAILQ_REMOVE(&c->rung, u, next);
		TAILQ_INSERT_TAIL(&c->rung, u, next);
	}
	return work;
}

void
ctl_peek_poll(struct eng_control *c)
{
	struct ctl_client *cl;

	if (c->now >= c->next_peek) {
		c->next_peek = c->now + CTL_PEEK_NS;
		c->unseen = c->totals.clients;
	}
	for (unsigned i = 0; i < CTL_TURN_PEEKS && c->unseen > 0; i++) {
		c->unseen--;
		cl = TAILQ_FIRST(&c->all);
		if (cl == NULL)
			return;
		TAILQ_REMOVE(&c->all, cl, all);
		TAILQ_INSERT_TAIL(&c->all, cl, all);
		if (cl->phase == CTL_LIVE && shm_take_peek(&cl->cmd) != NULL)
			ctl_ring_client(c, cl);
	}
}

bool
ctl_backlog_poll(struct eng_control *c)
{
	struct ctl_client *cl, *last = TAILQ_LAST(&c->backlogged, ctl_clients);
	bool work = false;

	for (unsigned i = 0; i < CTL_TURN_BACKLOGGED && last != NULL; i++) {
		cl = TAILQ_FIRST(&c->backlogged);
		TAILQ_REMOVE(&c->backlogged, cl, backlogged);
		TAILQ_INSERT_TAIL(&c->backlogged, cl, backlogged);
		if (cl->phase <= CTL_LIVE)
			work |= ctl_events_flush(c, cl);
		if (cl == last)
			break;
	}
	return work;
}
