/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The round robin of the QPs with work, in three levels: users take turns, the clients of a user,
 * and the QPs of a client. Users and clients have a credit of bytes and messages (deficit round
 * robin). One that has used its credit up goes to the end of its list, and gets new credit in
 * proportion to its weight when it is first again; if it is in debt then, it passes its turn. One
 * that becomes busy while it has credit left is served first, so that a client with little work
 * waits for one QP of the others at most.
 *
 * Received messages, commands and doorbells use up credit, too, but no more than a turn has: peers
 * decide how much a client receives, and its own requests must not wait for as many bytes of
 * others.
 *
 * A user or client that exceeds its rate leaves its list until a timer fires. An instance may have
 * a rate, too, and a weight beside other instances: its turns have credit in proportion, and a turn
 * that exceeds its credit shortens the next ones.
 */
#include <errno.h>
#include <stdlib.h>

#include "../../base/mem.h"
#include "qp_ops_priv.h"

#define SECOND_NS 1000000000ull

enum { BYTES, MESSAGES }; /* indices of eng_round.price and paid */

/* Returns the price of a unit in 2^-32 ns, for `rate` units per second on all stages together: at
 * most 4.3 s, which a rate below 0.23 units per second and stage exceeds. */
static uint64_t
price_of(const struct eng_stage *s, uint64_t rate)
{
	unsigned __int128 price = ((unsigned __int128)SECOND_NS << 32) * s->e->cfg.nstages;

	if (rate == 0)
		return 0;
	price = SK_MAX(price / rate, (unsigned __int128)1);
	return (uint64_t)SK_MIN(price, (unsigned __int128)UINT64_MAX);
}

static void
round_set(struct eng_stage *s, struct eng_round *r, const struct eng_rates *rates)
{
	uint32_t weight = rates->weight != 0 ? rates->weight : ENG_WEIGHT;

	r->quantum = (int64_t)weight * ENG_ROUND_QUANTUM;
	r->price[BYTES] = price_of(s, (rates->bits + 7) / 8);
	r->price[MESSAGES] = price_of(s, rates->messages);
}

int
eng_rounds_init(struct eng_stage *s)
{
	static const struct eng_rates none;

	s->nusers = s->e->cfg.limits.clients + 1;
	s->users = calloc(s->nusers, sizeof(s->users[0]));
	TAILQ_INIT(&s->rounds);
	if (s->users == NULL)
		return -ENOMEM;
	for (uint32_t u = 0; u < s->nusers; u++) {
		TAILQ_INIT(&s->users[u].clients);
		TAILQ_INIT(&s->users[u].starved);
		round_set(s, &s->users[u].round, &none);
	}
	s->own.user = &s->users[SK_USER_INSTANCE];
	TAILQ_INIT(&s->own.active);
	TAILQ_INIT(&s->own.notice_qps);
	TAILQ_INIT(&s->own.notice_cqs);
	TAILQ_INIT(&s->own.notice_srqs);
	round_set(s, &s->own.round, &none);
	round_set(s, &s->all, &s->e->cfg.all_rates);
	s->visits = ENG_QP_TURN * SK_MAX(s->e->cfg.all_rates.weight / ENG_WEIGHT, 1u);
	s->all.quantum = (int64_t)s->e->cfg.all_rates.weight * ENG_TURN_COST / ENG_WEIGHT;
	return 0;
}

void
eng_rounds_fini(struct eng_stage *s)
{
	free(s->users);
}

void
eng_round_add(struct eng_stage *s, struct eng_client *c)
{
	struct eng_client_stage *cs = &c->stage[s->index];

	TAILQ_INIT(&cs->active);
	TAILQ_INIT(&cs->event_cqs);
	TAILQ_INIT(&cs->notice_qps);
	TAILQ_INIT(&cs->notice_cqs);
	TAILQ_INIT(&cs->notice_srqs);
	cs->user = &s->users[c->user];
	round_set(s, &cs->round, &c->rates);
	round_set(s, &cs->user->round, &c->user_rates);
}

void
eng_round_change(struct eng_stage *s, struct eng_client *c, const struct eng_rates *client,
	const struct eng_rates *user)
{
	struct eng_client_stage *cs = &c->stage[s->index];

	round_set(s, &cs->round, client);
	round_set(s, &cs->user->round, user);
}

/* ---- The lists ---- */

static void
round_enter(struct eng_round_list *list, struct eng_round *r)
{
	if (r->queued || r->over_rate)
		return;
	r->queued = true;
	if (r->credit > 0)
		TAILQ_INSERT_HEAD(list, r, next);
	else
		TAILQ_INSERT_TAIL(list, r, next);
}

static void
round_leave(struct eng_round_list *list, struct eng_round *r)
{
	if (r->queued)
		TAILQ_REMOVE(list, r, next);
	r->queued = false;
}

/* Puts the client and its user into the lists to which they belong, or removes them. */
static void
place(struct eng_stage *s, struct eng_client_stage *cs)
{
	struct eng_stage_user *u = cs->user;

	if (TAILQ_EMPTY(&cs->active) || cs->round.over_rate)
		round_leave(&u->clients, &cs->round);
	else
		round_enter(&u->clients, &cs->round);
	if (TAILQ_EMPTY(&u->clients) || u->round.over_rate)
		round_leave(&s->rounds, &u->round);
	else
		round_enter(&s->rounds, &u->round);
}

void
eng_round_del(struct eng_stage *s, struct eng_client_stage *cs)
{
	sk_timer_stop(&s->wheel, &cs->round.timer);
	cs->round.over_rate = false;
	round_leave(&cs->user->clients, &cs->round);
	place(s, cs);
}

void
eng_qp_deactivate(struct eng_stage *s, struct eng_qp *qp)
{
	struct eng_client_stage *cs = qp->payer;

	if (qp->active == EQP_ACTIVE) {
		TAILQ_REMOVE(&cs->active, qp, next);
		qp->active = EQP_IDLE;
		place(s, cs);
	} else if (qp->active == EQP_STARVED) {
		TAILQ_REMOVE(&cs->user->starved, qp, next);
		qp->active = EQP_IDLE;
	}
}

void
eng_qp_activate(struct eng_stage *s, struct eng_qp *qp)
{
	struct eng_client_stage *cs = qp->payer;

	if (qp->active == EQP_ACTIVE)
		return;
	if (qp->active == EQP_STARVED)
		TAILQ_REMOVE(&cs->user->starved, qp, next);
	qp->active = EQP_ACTIVE;
	TAILQ_INSERT_TAIL(&cs->active, qp, next);
	if (!cs->round.queued || !cs->user->round.queued)
		place(s, cs);
}

/* ---- Rates ---- */

static void
rate_fire(void *ctx, struct sk_timer *t, uint64_t now)
{
	struct eng_stage *s = ctx;
	struct eng_round *r = SK_CONTAINER(t, struct eng_round, timer);
	struct eng_stage_user *u;

	r->over_rate = false;
	if (r == &s->all)
		return;
	u = SK_CONTAINER(r, struct eng_stage_user, round);
	if (u >= s->users && u < s->users + s->nusers) {
		if (!TAILQ_EMPTY(&u->clients))
			round_enter(&s->rounds, r);
	} else {
		place(s, SK_CONTAINER(r, struct eng_client_stage, round));
	}
}

void
eng_rates_poll(struct eng_stage *s)
{
	sk_wheel_poll(&s->wheel, s->now, ENG_QP_TURN, rate_fire, s);
}

/* Adds the time that `n` units cost. Returns the time until which all units are paid for. */
static uint64_t
pay_rate(struct eng_stage *s, struct eng_round *r, unsigned k, uint64_t n)
{
	uint64_t since = s->now - SK_MIN(s->now, (uint64_t)ENG_RATE_BURST_NS);
	unsigned __int128 cost = (unsigned __int128)r->price[k] * n;

	if (r->paid[k] < since)
		r->paid[k] = since;
	cost += r->paid_part[k];
	r->paid_part[k] = (uint32_t)cost;
	r->paid[k] += (uint64_t)(cost >> 32);
	return r->paid[k];
}

/* Counts what was sent against the limits of a user or a client. */
static void
rate_charge(struct eng_stage *s, struct eng_round *r)
{
	uint64_t until = 0, paid;

	if (r->price[BYTES] != 0)
		until = pay_rate(s, r, BYTES, s->spent.bytes);
	if (r->price[MESSAGES] != 0) {
		paid = pay_rate(s, r, MESSAGES, s->spent.messages);
		until = SK_MAX(until, paid);
	}
	if (until <= s->now)
		return;
	r->over_rate = true;
	sk_timer_set(&s->wheel, &r->timer, until);
}

static inline bool
has_rate(const struct eng_round *r)
{
	return (r->price[BYTES] | r->price[MESSAGES]) != 0;
}

/* ---- Turns ---- */

static int64_t
round_cost_of(const struct eng_spent *spent)
{
	return (int64_t)(spent->bytes + (uint64_t)spent->messages * ENG_COST_MESSAGE +
			 spent->other);
}

/* Subtracts `cost`, but leaves as much that the next turn serves a QP. */
static void
round_owe(struct eng_round *r, int64_t cost)
{
	r->credit = SK_MAX(r->credit - cost, SK_MIN(r->credit, 1 - r->quantum));
}

void
eng_round_owe(struct eng_client_stage *cs, int64_t cost)
{
	round_owe(&cs->round, cost);
	round_owe(&cs->user->round, cost);
}

void
eng_round_charge(struct eng_stage *s, struct eng_qp *qp)
{
	eng_round_owe(qp->payer, round_cost_of(&s->spent));
	s->spent = (struct eng_spent){0};
}

/* Returns whether the first of a list may be served. If it has no credit, it gets new credit; if it
 * is still in debt, it passes its turn. The only one in the list gets its full credit, because no
 * other one waits. */
static bool
is_turn(struct eng_round_list *list, struct eng_round *r)
{
	if (r->credit > 0)
		return true;
	if (TAILQ_NEXT(r, next) == NULL) {
		r->credit = r->quantum;
		return true;
	}
	r->credit += r->quantum;
	if (r->credit > 0)
		return true;
	TAILQ_REMOVE(list, r, next);
	TAILQ_INSERT_TAIL(list, r, next);
	return false;
}

/* Moves one that has used up its credit, or `yields`, to the end of its list. */
static void
end_turn(struct eng_round_list *list, struct eng_round *r, bool yields)
{
	if (!r->queued || (r->credit > 0 && !yields))
		return;
	TAILQ_REMOVE(list, r, next);
	TAILQ_INSERT_TAIL(list, r, next);
}

/* Serves one QP. Returns whether it has more work. */
static bool
stage_qp_run(struct eng_stage *s, struct eng_qp *qp)
{
	const struct eng_qp_ops *ops = qp->ops;
	bool more = false;

	if (qp->rd.state == RD_QP_ERR && qp->drains)
		return eng_qp_drain(s, qp);
	if (qp->rd.state == RD_QP_ERR)
		more = ops->flush(qp);
	else if (qp->modified && (qp->chan == NULL || qp->lost))
		eng_modified_posted(s, qp);
	if (qp->connected || (qp->type == SHM_UD && qp->host == NULL))
		more |= ops->run(s, qp);
	eng_sq_show(qp);
	return more;
}

/* Returns whether the client is dead. The payer of host connections has none. */
static bool
is_dead(const struct eng_client_stage *cs)
{
	return cs->client != NULL && cs->client->dead;
}

/* Serves the first QP of a client, and charges the client and its user. Returns the cost. */
static int64_t
serve_first(struct eng_stage *s, struct eng_client_stage *cs)
{
	struct eng_stage_user *u = cs->user;
	struct eng_qp *qp = TAILQ_FIRST(&cs->active);
	bool rated = has_rate(&cs->round) || has_rate(&u->round), yields;
	int64_t cost;

	TAILQ_REMOVE(&cs->active, qp, next);
	qp->active = EQP_IDLE;
	eng_round_begin(s, qp);
	s->spent.other = ENG_COST_VISIT;
	if ((!is_dead(cs) || qp->drains) && stage_qp_run(s, qp) && qp->active == EQP_IDLE) {
		if (s->spent.no_record) {
			eng_record_wait(s, qp);
		} else {
			qp->active = EQP_ACTIVE;
			TAILQ_INSERT_TAIL(&cs->active, qp, next);
		}
	}
	if (s->spent.bytes != 0 || s->spent.messages != 0)
		cs->useless = 0;
	else
		eng_doorbell_useless(cs);
	cost = round_cost_of(&s->spent);
	/* Another client may use the next free place in a ring: each attempt is one turn. */
	yields = s->spent.ring_full;
	if (rated) {
		rate_charge(s, &cs->round);
		rate_charge(s, &u->round);
	}
	if (has_rate(&s->all))
		rate_charge(s, &s->all);
	cs->round.credit -= cost;
	u->round.credit -= cost;
	s->spent = (struct eng_spent){0};
	if (rated || TAILQ_EMPTY(&cs->active))
		place(s, cs);
	end_turn(&u->clients, &cs->round, yields);
	end_turn(&s->rounds, &u->round, yields);
	return cost;
}

/* Returns the cost that QPs may cause in this turn; not positive: none. */
static int64_t
turn_credit(struct eng_stage *s)
{
	if (s->all.over_rate)
		return 0;
	if (s->all.quantum == 0)
		return ENG_TURN_COST;
	s->all.credit = SK_MIN(s->all.credit + s->all.quantum, s->all.quantum);
	return s->all.credit;
}

bool
eng_qps_run(struct eng_stage *s, bool unsent)
{
	unsigned visits = unsent ? ENG_QP_UNSENT : s->visits;
	int64_t left = turn_credit(s);
	unsigned n = 0;

	for (; n < visits && left > 0 && !s->all.over_rate && !TAILQ_EMPTY(&s->rounds); n++) {
		struct eng_round *r = TAILQ_FIRST(&s->rounds);
		struct eng_stage_user *u = SK_CONTAINER(r, struct eng_stage_user, round);

		if (!is_turn(&s->rounds, r))
			continue;
		r = TAILQ_FIRST(&u->clients);
		if (is_turn(&u->clients, r))
			left -= serve_first(s, SK_CONTAINER(r, struct eng_client_stage, round));
	}
	if (s->all.quantum != 0 && !s->all.over_rate)
		s->all.credit = left;
	return n > 0;
}
