/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine stage: what waits costs nothing, clients take turns, and shares hold. */
#include "stage_rig.h"

#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>
#include <rte_mempool.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "../../../lib/base/mem.h"
#include "pair.h"

#define OWED     16000
#define QPS      1000
#define SECOND   1000000000ull
#define MESSAGES 64 /* that a QP of the tests sends when it is served */

/* ---- Pending events */

struct owed {
	struct hidden cqs, shared;
	struct rd_cq *cq;
	struct shm_cq *sq;
	struct shm_cqe *ring;
};

static const struct rd_wc done = {.status = RD_SUCCESS};

/* Makes OWED armed CQs with a completion each. */
static void
owed_make(struct stage_rig *r, struct stage_client *c, struct owed *o)
{
	o->cq = hidden_alloc(&o->cqs, OWED * sizeof(*o->cq));
	o->sq = hidden_alloc(&o->shared, OWED * sizeof(*o->sq));
	o->ring = calloc(OWED * 2, sizeof(*o->ring));
	cr_assert_not_null(o->ring);
	for (uint32_t i = 0; i < OWED; i++) {
		struct shm_prod *ring = &o->cq[i].sub[0].ring;

		o->cq[i].client = c->c;
		o->cq[i].handle = i;
		o->cq[i].shared = &o->sq[i];
		ring->entries = (uint8_t *)&o->ring[2 * i];
		ring->cons = &o->sq[i].sub[0];
		ring->count = 2;
		ring->log2_count = 1;
		ring->stride = sizeof(*o->ring);
		shm_arm(&o->sq[i].arm, false);
		cr_assert(eng_cq_put(r->s, &o->cq[i], &done));
	}
	stage_rig_turn(r, 1000);
}

static void
owed_hide(const struct owed *o, bool hide)
{
	hidden_hide(&o->cqs, hide);
	hidden_hide(&o->shared, hide);
}

static void
owed_free(struct stage_rig *r, struct owed *o)
{
	for (uint32_t i = 0; i < OWED; i++)
		eng_cq_forget(r->s, &o->cq[i]);
	hidden_free(&o->cqs);
	hidden_free(&o->shared);
	free(o->ring);
}

Test(engine_stage, a_pending_event_costs_nothing_while_the_event_ring_is_full, .init = pair_eal)
{
	struct stage_rig r;
	struct stage_client c;
	struct owed o;
	unsigned n = RIG_EVENTS;

	stage_rig_start(&r, NULL);
	stage_client_add(&r, &c, 1, NULL);
	owed_make(&r, &c, &o);
	owed_hide(&o, true);
	for (unsigned i = 0; i < 1000; i++)
		stage_rig_turn(&r, 1000); /* a visit of any CQ would fault */
	cr_assert_eq(eng_stage_deadline(r.s), UINT64_MAX, "the loop may sleep");
	owed_hide(&o, false);
	cr_assert_eq(stage_client_events(&c, 10), 10);
	stage_rig_turn(&r, 1000);
	cr_assert_eq(stage_client_events(&c, OWED), RIG_EVENTS, "no event is lost or doubled");
	for (unsigned i = 0; i < OWED; i++) {
		stage_rig_turn(&r, 1000);
		n += stage_client_events(&c, OWED);
	}
	cr_assert_eq(n + 10, OWED);
	owed_free(&r, &o);
	cr_assert(TAILQ_EMPTY(&r.s->owing));
	stage_client_del(&r, &c);
	stage_rig_end(&r);
}

Test(engine_stage, a_cq_with_a_pending_event_can_be_destroyed, .init = pair_eal)
{
	struct stage_rig r;
	struct stage_client c;
	struct owed o;

	stage_rig_start(&r, NULL);
	stage_client_add(&r, &c, 1, NULL);
	owed_make(&r, &c, &o);
	for (uint32_t i = OWED / 2; i < OWED; i += 2)
		stage_rig_command(&r, ENG_CE_CQ_DEL, c.c, &o.cq[i]);
	owed_free(&r, &o);
	stage_client_events(&c, RIG_EVENTS);
	stage_rig_turn(&r, 1000);
	cr_assert_eq(stage_client_events(&c, RIG_EVENTS), 0);
	stage_client_del(&r, &c);
	stage_rig_end(&r);
}

Test(engine_stage, a_completion_behind_a_pending_event_gets_its_own_event, .init = pair_eal)
{
	struct stage_rig r;
	struct stage_client c;
	struct owed o;
	unsigned n = 0;

	stage_rig_start(&r, NULL);
	stage_client_add(&r, &c, 1, NULL);
	owed_make(&r, &c, &o);
	shm_arm(&o.sq[OWED - 1].arm, false);
	cr_assert(eng_cq_put(r.s, &o.cq[OWED - 1], &done));
	for (unsigned i = 0; i < OWED; i++) {
		n += stage_client_events(&c, OWED);
		stage_rig_turn(&r, 1000);
	}
	cr_assert_eq(n, OWED + 1);
	owed_free(&r, &o);
	stage_client_del(&r, &c);
	stage_rig_end(&r);
}

/* ---- Notices */

static void
quiet_info(const struct eng_qp *qp, struct eng_work *out)
{
	*out = (struct eng_work){0};
}

static bool
quiet_run(struct eng_stage *s, struct eng_qp *qp)
{
	return false;
}

static bool
quiet_opened(const struct eng_qp *qp)
{
	return true;
}

static const struct eng_qp_ops quiet = {
	.run = quiet_run, .info = quiet_info, .opened = quiet_opened};

/* Takes all notices that are out, and returns their number. */
static unsigned
take_notices(struct stage_rig *r, struct eng_ctl **m)
{
	unsigned n = 0;

	while ((m[n] = stage_rig_notice(r)) != NULL)
		n++;
	return n;
}

static struct eng_qp *
make_qps(struct hidden *h, struct stage_client *c, const struct eng_qp_ops *ops, void *control)
{
	struct eng_qp *qp = hidden_alloc(h, QPS * sizeof(*qp));

	for (unsigned i = 0; i < QPS; i++)
		stage_qp_make(&qp[i], c, ops, control);
	return qp;
}

Test(engine_stage, qps_that_wait_for_a_notice_cost_nothing_and_clients_take_turns, .init = pair_eal)
{
	static struct eng_ctl *m[ENG_CTL_NOTICES + 1];
	struct stage_rig r;
	struct stage_client a, b;
	struct hidden h;
	struct eng_qp *many, one = {0};
	unsigned out;

	stage_rig_start(&r, NULL);
	stage_client_add(&r, &a, 0, NULL);
	stage_client_add(&r, &b, 0, NULL);
	many = make_qps(&h, &a, &quiet, NULL);
	for (unsigned i = 0; i < QPS; i++)
		eng_qp_pend(r.s, &many[i], EQP_P_FATAL);
	stage_rig_turn(&r, 1000);
	out = take_notices(&r, m);
	hidden_hide(&h, true);
	for (unsigned i = 0; i < 100; i++)
		stage_rig_turn(&r, 1000); /* a visit of any QP would fault */
	hidden_hide(&h, false);
	stage_qp_make(&one, &b, &quiet, NULL);
	eng_qp_pend(r.s, &one, EQP_P_FATAL);
	stage_rig_turn(&r, 1000);
	cr_assert_null(stage_rig_notice(&r));
	stage_rig_return(&r, m[--out]);
	stage_rig_return(&r, m[--out]);
	stage_rig_turn(&r, 1000);
	cr_assert_eq(one.pending, 0, "the second free notice is the other client's");
	cr_assert_eq(take_notices(&r, m + out), 2);
	out += 2;
	for (unsigned turns = 0; many[QPS - 1].pending != 0; turns++) {
		cr_assert_lt(turns, QPS);
		while (out > 0)
			stage_rig_return(&r, m[--out]);
		stage_rig_turn(&r, 1000);
		out = take_notices(&r, m);
	}
	hidden_free(&h);
	stage_client_del(&r, &a);
	stage_client_del(&r, &b);
	stage_rig_end(&r);
}

Test(engine_stage, each_user_has_notices_that_no_other_can_take, .init = pair_eal)
{
	static struct eng_ctl *m[ENG_CTL_NOTICES + 1];
	struct stage_rig r;
	struct stage_client a, b;
	struct hidden h;
	struct eng_qp *many, one = {0};

	stage_rig_start(&r, NULL);
	stage_client_add(&r, &a, 1, NULL);
	stage_client_add(&r, &b, 2, NULL);
	many = make_qps(&h, &a, &quiet, NULL);
	for (unsigned i = 0; i < QPS; i++)
		eng_qp_pend(r.s, &many[i], EQP_P_FATAL);
	stage_rig_turn(&r, 1000);
	cr_assert_lt(take_notices(&r, m), ENG_CTL_NOTICES);
	stage_qp_make(&one, &b, &quiet, NULL);
	eng_qp_pend(r.s, &one, EQP_P_FATAL);
	stage_rig_turn(&r, 1000);
	cr_assert_eq(one.pending, 0);
	cr_assert_eq(take_notices(&r, m), 1);
	for (unsigned i = 0; i < QPS; i++)
		many[i].pending = 0;
	hidden_free(&h);
	stage_rig_end(&r);
}

Test(engine_stage, a_flood_of_mailbox_doorbells_holds_one_notice, .init = pair_eal)
{
	struct stage_rig r;
	struct stage_client c;
	struct eng_ctl *m;

	stage_rig_start(&r, NULL);
	stage_client_add(&r, &c, 1, NULL);
	for (unsigned i = 0; i < RIG_DOORBELLS; i++)
		stage_client_ring(&c, SHM_RING_MAILBOX);
	for (unsigned i = 0; i < RIG_DOORBELLS; i++)
		stage_rig_turn(&r, 1000);
	m = stage_rig_notice(&r);
	cr_assert(m != NULL && m->type == ENG_EC_MAILBOX && m->client == c.c);
	cr_assert_null(stage_rig_notice(&r));
	stage_rig_return(&r, m);
	stage_rig_turn(&r, 1000);
	m = stage_rig_notice(&r);
	cr_assert(m != NULL && m->type == ENG_EC_MAILBOX, "a doorbell came since the first one");
	cr_assert_null(stage_rig_notice(&r));
	stage_client_del(&r, &c);
	stage_rig_return(&r, m); /* the client is gone */
	stage_rig_turn(&r, 1000);
	stage_rig_end(&r);
}

/* ---- Rings to the transport stage */

Test(engine_stage, qps_that_wait_for_a_full_ring_cost_nothing, .init = pair_eal)
{
	struct eng_dmsg filler = {.id_type = ENG_DMSG(ENG_T_CONSUMED, 0)};
	struct rte_ring *ring;
	struct stage_rig r;
	struct stage_client c;
	struct hidden h;
	struct eng_qp *qp;
	struct eng_dmsg m;
	unsigned n = 0;

	stage_rig_start(&r, NULL);
	ring = r.e->rings.to_transport[0][0];
	stage_client_add(&r, &c, 1, NULL);
	qp = make_qps(&h, &c, &quiet, NULL);
	while (rte_ring_sp_enqueue_elem(ring, &filler, sizeof(filler)) == 0)
		;
	for (unsigned i = 0; i < QPS; i++) {
		qp[i].conn = i;
		eng_qp_pend(r.s, &qp[i], EQP_P_ABORT);
	}
	stage_rig_turn(&r, 1000);
	hidden_hide(&h, true);
	for (unsigned i = 0; i < 100; i++)
		stage_rig_turn(&r, 1000); /* a visit of any QP would fault */
	hidden_hide(&h, false);
	while (stage_rig_message(&r, &m))
		;
	stage_rig_turn(&r, 1000);
	for (; stage_rig_message(&r, &m); n++)
		cr_assert_eq(m.id_type, ENG_DMSG(ENG_T_ABORT, n));
	cr_assert_eq(n, QPS);
	hidden_free(&h);
	stage_client_del(&r, &c);
	stage_rig_end(&r);
}

/* ---- Doorbells */

Test(engine_stage, a_turn_takes_256_doorbells_and_clients_take_turns, .init = pair_eal)
{
	struct stage_client c[32];
	struct stage_rig r;

	stage_rig_start(&r, NULL);
	for (unsigned i = 0; i < 32; i++)
		stage_client_add(&r, &c[i], (uint16_t)(i / 2), NULL);
	for (unsigned i = 0; i < 32; i++)
		for (unsigned k = 0; k < RIG_DOORBELLS; k++)
			stage_client_ring(&c[i], 7);
	for (unsigned turn = 1; turn <= 8; turn++) {
		unsigned all = 0;

		stage_rig_turn(&r, 1000);
		for (unsigned i = 0; i < 32; i++)
			all += c[i].c->stage[0].doorbell.next;
		cr_assert_eq(all, turn * ENG_DOORBELLS_TURN, "turn %u: %u", turn, all);
	}
	for (unsigned i = 0; i < 32; i++)
		cr_assert_eq(c[i].c->stage[0].doorbell.next, 8 * ENG_DOORBELLS_TURN / 32);
	for (unsigned i = 0; i < 32; i++)
		stage_client_del(&r, &c[i]);
	stage_rig_end(&r);
}

static bool
useful_run(struct eng_stage *s, struct eng_qp *qp)
{
	s->spent.messages++;
	return false;
}

static const struct eng_qp_ops useful = {
	.run = useful_run, .info = quiet_info, .opened = quiet_opened};

/* Rings the doorbell of the client's QP `n` times, runs a turn, and returns how many doorbells the
 * turn took. */
static uint32_t
bells_taken(struct stage_rig *r, struct stage_client *c, unsigned n)
{
	uint32_t before = c->c->stage[0].doorbell.next;

	while (n-- > 0)
		stage_client_ring(c, 0);
	stage_rig_turn(r, 1000);
	return c->c->stage[0].doorbell.next - before;
}

Test(engine_stage, doorbells_without_work_are_taken_slowly_until_one_has_work, .init = pair_eal)
{
	struct shm_qp shared = {0};
	struct eng_qp qp = {.shared = &shared}, *table[] = {&qp};
	struct stage_rig r;
	struct stage_client c;

	stage_rig_start(&r, NULL);
	stage_client_add(&r, &c, 1, NULL);
	stage_qp_make(&qp, &c, &quiet, NULL);
	c.c->stage[0].qps = table;
	c.c->stage[0].nqps = 1;
	cr_assert_eq(bells_taken(&r, &c, 500), ENG_DOORBELLS);
	for (unsigned i = 0; i < 100; i++)
		bells_taken(&r, &c, 0);
	cr_assert_eq(bells_taken(&r, &c, 10), 2);
	qp.ops = &useful;
	bells_taken(&r, &c, 100); /* takes 2 as well, and the QP has work */
	cr_assert_eq(bells_taken(&r, &c, 0), ENG_DOORBELLS);
	c.c->stage[0].qps = NULL;
	c.c->stage[0].nqps = 0;
	stage_client_del(&r, &c);
	stage_rig_end(&r);
}

/* Rings invalid doorbells, `each` in a turn, until a notice or `all` of them. */
static struct eng_ctl *
ring_garbage(struct stage_rig *r, struct stage_client *c, unsigned all, unsigned each, uint64_t ns)
{
	for (unsigned n = 0; n < all; n += each) {
		struct eng_ctl *m;

		for (unsigned i = 0; i < each; i++)
			stage_client_ring(c, 12345);
		stage_rig_turn(r, ns);
		m = stage_rig_notice(r);
		if (m != NULL)
			return m;
	}
	return NULL;
}

Test(engine_stage, a_client_that_rings_garbage_is_put_out, .init = pair_eal)
{
	struct stage_rig r;
	struct stage_client c;
	struct eng_ctl *m;

	stage_rig_start(&r, NULL);
	stage_client_add(&r, &c, 1, NULL);
	/* 1000 in each second may be late doorbells of QPs that are destroyed. */
	cr_assert_null(ring_garbage(&r, &c, 20000, 50, SECOND / 20));
	m = ring_garbage(&r, &c, 2 * ENG_BAD_DOORBELLS, 50, 1000);
	cr_assert(m != NULL && m->type == ENG_EC_CLIENT_BAD && m->client == c.c);
	cr_assert_null(ring_garbage(&r, &c, 900, 50, 1000), "once");
	cr_assert(shm_take_peek(&c.c->stage[0].doorbell) != NULL, "the stage polls it no more");
	stage_rig_return(&r, m);
	stage_client_del(&r, &c);
	stage_rig_end(&r);
}

/* ---- Turns of users, clients and QPs */

static uint32_t message_len;

/* Sends MESSAGES messages of message_len bytes, and counts them where qp->control points to. */
static bool
busy_run(struct eng_stage *s, struct eng_qp *qp)
{
	*(uint64_t *)qp->control += MESSAGES;
	s->spent.messages += MESSAGES;
	s->spent.bytes += MESSAGES * message_len;
	return true;
}

static const struct eng_qp_ops busy = {.run = busy_run, .info = quiet_info, .opened = quiet_opened};

/* A client whose QPs always have messages. */
struct flood {
	struct stage_client c;
	struct eng_qp *qp;
	unsigned nqps;
	uint64_t sent;
};

static void
flood_start(struct stage_rig *r, struct flood *f, unsigned nqps, uint16_t user,
	const struct eng_rates *rates)
{
	f->sent = 0;
	f->nqps = nqps;
	f->qp = calloc(nqps, sizeof(*f->qp));
	cr_assert_not_null(f->qp);
	stage_client_add(r, &f->c, user, rates);
	for (unsigned i = 0; i < nqps; i++) {
		stage_qp_make(&f->qp[i], &f->c, &busy, &f->sent);
		eng_qp_activate(r->s, &f->qp[i]);
	}
}

static void
flood_stop(struct stage_rig *r, struct flood *f)
{
	for (unsigned i = 0; i < f->nqps; i++)
		eng_qp_deactivate(r->s, &f->qp[i]);
	stage_client_del(r, &f->c);
	free(f->qp);
}

/* Runs `turns` turns, and returns the share of `a` in the messages of both. */
static double
share_of(struct stage_rig *r, struct flood *a, struct flood *b, unsigned turns)
{
	a->sent = b->sent = 0;
	for (unsigned i = 0; i < turns; i++)
		stage_rig_turn(r, 1000);
	return (double)a->sent / (double)(a->sent + b->sent);
}

/* Checks the share of one QP beside QPS of another client. `weight` is that of the client, or of
 * its user when the users differ. */
static void
check_share(uint16_t user_a, uint16_t user_b, uint32_t weight, double low, double high)
{
	struct eng_rates rates = {.weight = weight};
	struct flood a, b;
	struct stage_rig r;

	for (message_len = 8; message_len <= 8192; message_len *= 32) {
		double share;

		stage_rig_start(&r, NULL);
		if (user_a != user_b)
			r.user_rates = rates;
		flood_start(&r, &a, 1, user_a, &rates);
		r.user_rates.weight = 0;
		flood_start(&r, &b, QPS, user_b, NULL);
		share = share_of(&r, &a, &b, 20000);
		cr_assert(share >= low && share <= high, "%u bytes: %f", message_len, share);
		flood_stop(&r, &a);
		flood_stop(&r, &b);
		stage_rig_end(&r);
	}
}

Test(engine_stage, one_qp_gets_half_beside_1000_qps_of_another_client, .init = pair_eal)
{
	check_share(1, 1, 0, 0.45, 0.55);
}

Test(engine_stage, one_qp_gets_half_beside_1000_qps_of_another_user, .init = pair_eal)
{
	check_share(1, 2, 0, 0.45, 0.55);
}

Test(engine_stage, a_weight_of_30_against_10_gets_three_quarters, .init = pair_eal)
{
	check_share(1, 1, 30, 0.74, 0.76);
	check_share(1, 2, 30, 0.74, 0.76);
}

Test(engine_stage, twenty_clients_of_a_user_are_one_share, .init = pair_eal)
{
	struct flood one, many[20];
	struct stage_rig r;
	uint64_t sum = 0;

	message_len = 64;
	stage_rig_start(&r, NULL);
	flood_start(&r, &one, 1, 1, NULL);
	for (unsigned i = 0; i < 20; i++)
		flood_start(&r, &many[i], 10, 2, NULL);
	share_of(&r, &one, &many[0], 20000);
	for (unsigned i = 0; i < 20; i++)
		sum += many[i].sent;
	cr_assert_float_eq((double)one.sent / (double)(one.sent + sum), 0.5, 0.02);
	for (unsigned i = 1; i < 20; i++)
		cr_assert_float_eq((double)many[i].sent / (double)sum, 0.05, 0.01);
	flood_stop(&r, &one);
	for (unsigned i = 0; i < 20; i++)
		flood_stop(&r, &many[i]);
	stage_rig_end(&r);
}

Test(engine_stage, a_small_message_and_a_large_one_are_not_the_same_share, .init = pair_eal)
{
	struct flood a, b;
	struct stage_rig r;

	/* The clients send messages of the same size, in different numbers: the credit counts
	 * bytes, so a QP that sends less each time is served more often. */
	message_len = 4096;
	stage_rig_start(&r, NULL);
	flood_start(&r, &a, 1, 1, NULL);
	flood_start(&r, &b, 1, 2, NULL);
	b.c.c->stage[0].user->round.credit = -10 * MESSAGES * 4096; /* a debt is paid back */
	cr_assert_gt(share_of(&r, &a, &b, 30), 0.6);
	cr_assert_float_eq(share_of(&r, &a, &b, 20000), 0.5, 0.01);
	flood_stop(&r, &a);
	flood_stop(&r, &b);
	stage_rig_end(&r);
}

static bool
once_run(struct eng_stage *s, struct eng_qp *qp)
{
	(*(uint64_t *)qp->control)++;
	s->spent.messages++;
	return false;
}

Test(engine_stage, a_client_with_little_work_is_served_in_the_turn_of_its_doorbell,
	.init = pair_eal)
{
	static const struct eng_qp_ops once = {
		.run = once_run, .info = quiet_info, .opened = quiet_opened};
	struct stage_client c;
	struct eng_qp qp = {0};
	struct flood f[8];
	struct stage_rig r;
	uint64_t sent = 0;
	unsigned late = 0;

	message_len = 8;
	stage_rig_start(&r, NULL);
	for (unsigned i = 0; i < 8; i++)
		flood_start(&r, &f[i], 50, (uint16_t)(3 + i), NULL);
	stage_client_add(&r, &c, 2, NULL);
	stage_qp_make(&qp, &c, &once, &sent);
	for (unsigned i = 1; i <= 1000; i++) {
		eng_qp_activate(r.s, &qp);
		stage_rig_turn(&r, 1000);
		late += sent < i;
		for (unsigned k = 0; k < 10 && sent < i; k++)
			stage_rig_turn(&r, 1000);
		cr_assert_eq(sent, i);
	}
	/* When its credit is used up, it waits for a turn of each of the others. */
	cr_assert_leq(late,
		1000 * (ENG_COST_MESSAGE + ENG_COST_VISIT) / (ENG_WEIGHT * ENG_ROUND_QUANTUM) + 1,
		"%u times late", late);
	for (unsigned i = 0; i < 8; i++)
		flood_stop(&r, &f[i]);
	stage_client_del(&r, &c);
	stage_rig_end(&r);
}

static bool
refused_run(struct eng_stage *s, struct eng_qp *qp)
{
	(*(uint64_t *)qp->control)++;
	s->spent.ring_full = true;
	return true;
}

Test(engine_stage, clients_take_turns_for_the_places_of_a_full_ring, .init = pair_eal)
{
	static const struct eng_qp_ops refused = {
		.run = refused_run, .info = quiet_info, .opened = quiet_opened};
	struct stage_client a, b;
	struct stage_rig r;
	struct eng_qp qp[9] = {0};
	uint64_t tries[2] = {0};

	stage_rig_start(&r, NULL);
	stage_client_add(&r, &a, 1, NULL);
	stage_client_add(&r, &b, 2, NULL);
	for (unsigned i = 0; i < 9; i++) {
		stage_qp_make(&qp[i], i < 8 ? &a : &b, &refused, &tries[i / 8]);
		eng_qp_activate(r.s, &qp[i]);
	}
	for (unsigned i = 0; i < 100; i++)
		stage_rig_turn(&r, 1000);
	cr_assert_float_eq((double)tries[1] / (double)(tries[0] + tries[1]), 0.5, 0.01);
	for (unsigned i = 0; i < 9; i++)
		eng_qp_deactivate(r.s, &qp[i]);
	stage_client_del(&r, &a);
	stage_client_del(&r, &b);
	stage_rig_end(&r);
}

/* ---- Rates */

/* Runs the stage for `ns` nanoseconds, as a loop that sleeps until the stage's deadline. */
static unsigned
run_for(struct stage_rig *r, uint64_t ns)
{
	uint64_t end = r->now + ns;
	unsigned turns = 0;

	for (; r->now < end; turns++) {
		uint64_t due = eng_stage_deadline(r->s);

		stage_rig_turn(r, due > r->now + 1000 ? SK_MIN(due, end) - r->now : 1000);
	}
	return turns;
}

Test(engine_stage, a_limit_of_messages_is_exact_and_the_loop_may_sleep, .init = pair_eal)
{
	const struct eng_rates rates = {.messages = 2000000};
	struct stage_rig r;
	struct flood f;
	unsigned turns;

	message_len = 64;
	stage_rig_start(&r, NULL);
	flood_start(&r, &f, 10, 1, &rates);
	turns = run_for(&r, SECOND);
	cr_assert_float_eq((double)f.sent, 2e6, 2e3, "%lu messages", f.sent);
	/* 64 messages are one visit: each of them is at most one turn and one wake-up. */
	cr_assert_leq(turns, 2 * 2000000 / MESSAGES + 100, "%u turns", turns);
	flood_stop(&r, &f);
	stage_rig_end(&r);
}

Test(engine_stage, a_limit_of_bits_is_exact, .init = pair_eal)
{
	const struct eng_rates rates = {.bits = 8000000000ull};
	struct stage_rig r;
	struct flood f;

	message_len = 1000;
	stage_rig_start(&r, NULL);
	flood_start(&r, &f, 10, 1, &rates);
	run_for(&r, SECOND);
	cr_assert_float_eq((double)f.sent * 1000, 1e9, 1e6, "%lu messages", f.sent);
	flood_stop(&r, &f);
	stage_rig_end(&r);
}

Test(engine_stage, a_limit_of_a_user_holds_for_all_its_clients_together, .init = pair_eal)
{
	struct stage_rig r;
	struct flood f[3], other;
	uint64_t sum = 0;

	message_len = 64;
	stage_rig_start(&r, NULL);
	r.user_rates.messages = 1000000;
	for (unsigned i = 0; i < 3; i++)
		flood_start(&r, &f[i], 1 + i * 10, 1, NULL);
	r.user_rates.messages = 0;
	flood_start(&r, &other, 1, 2, NULL);
	run_for(&r, SECOND / 10);
	for (unsigned i = 0; i < 3; i++)
		sum += f[i].sent;
	cr_assert_float_eq((double)sum, 1e5, 300, "%lu messages", sum);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_float_eq((double)f[i].sent, 1e5 / 3, 2000);
	cr_assert_gt(other.sent, 10 * sum, "a user without a limit gets the rest");
	for (unsigned i = 0; i < 3; i++)
		flood_stop(&r, &f[i]);
	flood_stop(&r, &other);
	stage_rig_end(&r);
}

/* ---- Shares of the records */

#define KEPT RIG_STORE

/* Records that the test's QPs have passed to the transport stage, which does not free them. */
static struct tcp_rec *kept[KEPT];
static unsigned nkept;

/* Takes one record after the other. A QP whose `control` is not NULL counts its records there. */
static bool
record_run(struct eng_stage *s, struct eng_qp *qp)
{
	for (unsigned i = 0; i < 8; i++) {
		struct tcp_rec *rec = eng_record_get(s);

		if (rec == NULL)
			return true;
		*eng_rec_returned(rec) = eng_record_sent(*eng_rec_returned(rec), qp);
		cr_assert_lt(nkept, KEPT);
		kept[nkept++] = rec;
		++*(uint64_t *)qp->control;
	}
	return true;
}

static const struct eng_qp_ops hoarder = {
	.run = record_run, .info = quiet_info, .opened = quiet_opened};

/* Frees `n` records, as the transport stage does. */
static void
acknowledge(unsigned n)
{
	for (; n > 0; n--)
		eng_rec_free(kept[--nkept]);
}

Test(engine_stage, a_user_whose_peers_do_not_read_holds_its_own_share_only, .init = pair_eal)
{
	struct stage_rig r;
	struct stage_client a, b;
	struct hidden h;
	struct eng_qp *many, one = {0};
	uint64_t sent[2] = {0}, before;

	stage_rig_start(&r, NULL);
	stage_client_add(&r, &a, 1, NULL);
	stage_client_add(&r, &b, 2, NULL);
	many = make_qps(&h, &a, &hoarder, &sent[0]);
	for (unsigned i = 0; i < QPS; i++)
		eng_qp_activate(r.s, &many[i]);
	for (unsigned i = 0; i < 100; i++)
		stage_rig_turn(&r, 1000);
	before = sent[0];
	cr_assert_gt(before, RIG_STORE / 2, "what nobody else needs is free to take");
	cr_assert_gt(rte_mempool_avail_count(r.s->store), RIG_STORE / 8);
	cr_assert(TAILQ_EMPTY(&r.s->rounds), "no QP tries again and again");
	cr_assert_eq(eng_stage_deadline(r.s), UINT64_MAX);

	stage_qp_make(&one, &b, &hoarder, &sent[1]);
	eng_qp_activate(r.s, &one);
	stage_rig_turn(&r, 1000);
	cr_assert_geq(sent[1], r.s->records.minimum, "%lu records", sent[1]);
	cr_assert_geq(r.s->records.minimum, 1);

	acknowledge((unsigned)sent[1]);
	eng_qp_deactivate(r.s, &one);
	acknowledge(100);
	stage_rig_turn(&r, 1000);
	stage_rig_turn(&r, 1000);
	cr_assert_eq(sent[0], before + 100, "QPs that wait continue, by %lu", sent[0] - before);

	for (unsigned i = 0; i < QPS; i++)
		eng_qp_deactivate(r.s, &many[i]);
	acknowledge(nkept);
	hidden_free(&h);
	stage_client_del(&r, &a);
	stage_client_del(&r, &b);
	stage_rig_end(&r);
}

Test(engine_stage, a_user_that_is_idle_returns_its_records_to_the_others, .init = pair_eal)
{
	struct stage_rig r;
	struct stage_client a, b;
	struct eng_qp qa = {0}, qb = {0};
	uint64_t sent[2] = {0}, most;

	stage_rig_start(&r, NULL);
	stage_client_add(&r, &a, 1, NULL);
	stage_client_add(&r, &b, 2, NULL);
	stage_qp_make(&qa, &a, &hoarder, &sent[0]);
	stage_qp_make(&qb, &b, &hoarder, &sent[1]);
	eng_qp_activate(r.s, &qa);
	for (unsigned i = 0; i < 100; i++)
		stage_rig_turn(&r, 1000);
	most = sent[0];
	eng_qp_deactivate(r.s, &qa);
	acknowledge(nkept);
	eng_qp_activate(r.s, &qb);
	for (unsigned i = 0; i < 100; i++)
		stage_rig_turn(&r, 1000);
	cr_assert_eq(sent[1], most);
	eng_qp_deactivate(r.s, &qb);
	acknowledge(nkept);
	stage_client_del(&r, &a);
	stage_client_del(&r, &b);
	stage_rig_end(&r);
}
