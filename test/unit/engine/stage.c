/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine stage: what waits costs nothing, and shares hold. */
#include "stage_rig.h"

#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>
#include <errno.h>
#include <rte_mempool.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/engine/common/places.h"
#include "pair.h"

#define PENDING 16000
#define QPS     1000
#define SECOND  1000000000ull

/* ---- Pending events */

struct pending {
	struct hidden cqs, shared;
	uint8_t *cq; /* [PENDING], each of CQ_BYTES */
	struct shm_cq *sq;
	struct shm_cqe *ring;
};

/* A CQ with its part of one stage. */
#define CQ_BYTES (sizeof(struct rd_cq) + sizeof(struct eng_cq_sub))

static struct rd_cq *
pending_cq(const struct pending *o, uint32_t i)
{
	return (struct rd_cq *)(void *)(o->cq + i * CQ_BYTES);
}

static const struct rd_wc done = {.status = RD_SUCCESS};

/* Makes PENDING armed CQs with a completion each. */
static void
pending_make(struct stage_rig *r, struct stage_client *c, struct pending *o)
{
	o->cq = hidden_alloc(&o->cqs, PENDING * CQ_BYTES);
	o->sq = hidden_alloc(&o->shared, PENDING * sizeof(*o->sq));
	o->ring = calloc(PENDING * 2, sizeof(*o->ring));
	cr_assert_not_null(o->ring);
	for (uint32_t i = 0; i < PENDING; i++) {
		struct rd_cq *cq = pending_cq(o, i);
		struct shm_prod *ring = &cq->sub[0].ring;

		cq->client = c->c;
		cq->handle = i;
		cq->shared = &o->sq[i];
		ring->entries = (uint8_t *)&o->ring[2 * i];
		ring->cons = (const struct shm_cons *)&o->sq[i].sub[0];
		ring->count = 2;
		ring->log2_count = 1;
		ring->stride = sizeof(*o->ring);
		shm_arm(&o->sq[i].arm, false);
		cr_assert(eng_cq_put(r->s, cq, &done));
	}
	stage_rig_turn(r, 1000);
}

static void
pending_hide(const struct pending *o, bool hide)
{
	hidden_hide(&o->cqs, hide);
	hidden_hide(&o->shared, hide);
}

static void
pending_free(struct stage_rig *r, struct pending *o)
{
	for (uint32_t i = 0; i < PENDING; i++)
		eng_cq_forget(r->s, pending_cq(o, i));
	hidden_free(&o->cqs);
	hidden_free(&o->shared);
	free(o->ring);
}

Test(engine_stage, a_pending_event_costs_nothing_while_the_event_ring_is_full, .init = pair_eal)
{
	struct stage_rig r;
	struct stage_client c;
	struct pending o;
	unsigned n = RIG_EVENTS;

	stage_rig_start(&r, NULL);
	stage_client_add(&r, &c, 1, NULL);
	pending_make(&r, &c, &o);
	pending_hide(&o, true);
	for (unsigned i = 0; i < 1000; i++)
		stage_rig_turn(&r, 1000); /* a visit of any CQ would fault */
	cr_assert_eq(eng_stage_deadline(r.s), UINT64_MAX, "the loop may sleep");
	pending_hide(&o, false);
	cr_assert_eq(stage_client_events(&c, 10), 10);
	for (unsigned i = 0; i <= ENG_EVENT_REST; i++)
		stage_rig_turn(&r, 1000);
	cr_assert_eq(stage_client_events(&c, PENDING), RIG_EVENTS, "no event is lost or doubled");
	for (unsigned i = 0; i < PENDING; i++) {
		stage_rig_turn(&r, 1000);
		n += stage_client_events(&c, PENDING);
	}
	cr_assert_eq(n + 10, PENDING);
	pending_free(&r, &o);
	cr_assert(TAILQ_EMPTY(&r.s->event_clients));
	stage_client_del(&r, &c);
	stage_rig_end(&r);
}

Test(engine_stage, a_cq_with_a_pending_event_can_be_destroyed, .init = pair_eal)
{
	struct stage_rig r;
	struct stage_client c;
	struct pending o;

	stage_rig_start(&r, NULL);
	stage_client_add(&r, &c, 1, NULL);
	pending_make(&r, &c, &o);
	for (uint32_t i = PENDING / 2; i < PENDING; i += 2)
		stage_rig_command(&r, ENG_CE_CQ_DEL, c.c, pending_cq(&o, i));
	pending_free(&r, &o);
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
	struct pending o;
	unsigned n = 0;

	stage_rig_start(&r, NULL);
	stage_client_add(&r, &c, 1, NULL);
	pending_make(&r, &c, &o);
	shm_arm(&o.sq[PENDING - 1].arm, false);
	cr_assert(eng_cq_put(r.s, pending_cq(&o, PENDING - 1), &done));
	for (unsigned i = 0; i < PENDING; i++) {
		n += stage_client_events(&c, PENDING);
		stage_rig_turn(&r, 1000);
	}
	cr_assert_eq(n, PENDING + 1);
	pending_free(&r, &o);
	stage_client_del(&r, &c);
	stage_rig_end(&r);
}

/* A wake-up is a system call: a client that has armed many queues gets one in a turn. */
Test(engine_stage, a_turn_wakes_a_client_once, .init = pair_eal)
{
	struct stage_rig r;
	struct stage_client c;
	struct pending o;
	struct shm_header header = {.client_sleeps = SHM_SLEEPS};
	uint64_t one;
	int fds[2];

	stage_rig_start(&r, NULL);
	stage_client_add(&r, &c, 1, NULL);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, fds), 0);
	c.c->wake_fd = fds[0];
	c.c->header = &header;
	pending_make(&r, &c, &o);
	cr_assert_eq(read(fds[1], &one, sizeof(one)), sizeof(one));
	cr_assert_eq(read(fds[1], &one, sizeof(one)), -1);
	cr_assert_eq(stage_client_events(&c, RIG_EVENTS), RIG_EVENTS);
	pending_free(&r, &o);
	stage_client_del(&r, &c);
	stage_rig_end(&r);
	close(fds[0]);
	close(fds[1]);
}

/* ---- Notices */

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
	many = make_qps(&h, &a, &stage_qp_quiet, NULL);
	for (unsigned i = 0; i < QPS; i++)
		eng_qp_pend(r.s, &many[i], EQP_P_FATAL);
	stage_rig_turn(&r, 1000);
	out = take_notices(&r, m);
	hidden_hide(&h, true);
	for (unsigned i = 0; i < 100; i++)
		stage_rig_turn(&r, 1000); /* a visit of any QP would fault */
	hidden_hide(&h, false);
	stage_qp_make(&one, &b, &stage_qp_quiet, NULL);
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
	many = make_qps(&h, &a, &stage_qp_quiet, NULL);
	for (unsigned i = 0; i < QPS; i++)
		eng_qp_pend(r.s, &many[i], EQP_P_FATAL);
	stage_rig_turn(&r, 1000);
	cr_assert_lt(take_notices(&r, m), ENG_CTL_NOTICES);
	stage_qp_make(&one, &b, &stage_qp_quiet, NULL);
	eng_qp_pend(r.s, &one, EQP_P_FATAL);
	stage_rig_turn(&r, 1000);
	cr_assert_eq(one.pending, 0);
	cr_assert_eq(take_notices(&r, m), 1);
	for (unsigned i = 0; i < QPS; i++)
		many[i].pending = 0;
	hidden_free(&h);
	stage_rig_end(&r);
}

/* The transport stage may use the index of the connection for another QP. */
Test(engine_stage, a_qp_that_no_connection_was_bound_to_ends_without_a_message, .init = pair_eal)
{
	struct stage_rig r;
	struct stage_client c;
	struct eng_qp qp = {0};
	struct eng_ctl *m;
	struct eng_dmsg out;

	stage_rig_start(&r, NULL);
	stage_client_add(&r, &c, 1, NULL);
	stage_qp_make(&qp, &c, &stage_qp_quiet, NULL);
	eng_qp_unbound(r.s, &qp);
	eng_qp_unbound(r.s, &qp); /* does nothing */
	cr_assert_not(qp.connected);
	stage_rig_turn(&r, 1000);
	m = stage_rig_notice(&r);
	cr_assert(m != NULL && m->type == ENG_EC_DISCONNECTED && m->qp == &qp);
	cr_assert_eq(m->status, -ENOTCONN);
	cr_assert_null(stage_rig_notice(&r));
	cr_assert_not(stage_rig_message(&r, &out));
	stage_rig_return(&r, m);
	stage_client_del(&r, &c);
	stage_rig_end(&r);
}

/* The control stage may have sent them before it received the answer. */
Test(engine_stage, commands_about_a_qp_that_was_not_added_change_no_other_qp, .init = pair_eal)
{
	struct eng_qp lost = {0}, other = {0};
	struct stage_client c;
	struct stage_rig r;
	uint32_t nfree;

	stage_rig_start(&r, NULL);
	stage_client_add(&r, &c, 1, NULL);
	stage_qp_make(&other, &c, &stage_qp_quiet, NULL);
	nfree = r.s->nfree;
	r.s->qps[0] = &other; /* `lost` has no index of its own */
	for (enum eng_ctl_type type = ENG_CE_QP_START; type <= ENG_CE_QP_QUERY; type++) {
		struct eng_ctl m = {.type = (uint16_t)type, .qp = &lost};

		stage_rig_return(&r, &m);
		stage_rig_turn(&r, 1000);
		cr_assert_eq(stage_rig_notice(&r), &m);
		cr_assert_eq(m.status, -ENOTCONN, "%u", type);
		cr_assert_eq(r.s->qps[0], &other);
		cr_assert_eq(r.s->nfree, nfree);
	}
	r.s->qps[0] = NULL;
	stage_client_del(&r, &c);
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
	qp = make_qps(&h, &c, &stage_qp_quiet, NULL);
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
	.run = record_run, .info = stage_qp_info, .opened = stage_qp_opened};

/* Frees `n` records, as the transport stage does. */
static void
acknowledge(unsigned n)
{
	for (; n > 0; n--)
		eng_rec_free(kept[--nkept]);
}

/* Runs a turn, and then others until the loop may sleep. */
static void
until_idle(struct stage_rig *r)
{
	unsigned turns = 0;

	do {
		stage_rig_turn(r, 1000);
		cr_assert_lt(++turns, 1000, "the loop never sleeps");
	} while (eng_stage_deadline(r->s) == 0);
	cr_assert_eq(eng_stage_deadline(r->s), UINT64_MAX);
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
	until_idle(&r);
	before = sent[0];
	cr_assert_gt(before, RIG_STORE / 2, "what nobody else needs is free to take");
	cr_assert_gt(rte_mempool_avail_count(r.s->store), RIG_STORE / 8);
	cr_assert(TAILQ_EMPTY(&r.s->rounds), "no QP tries again and again");

	stage_qp_make(&one, &b, &hoarder, &sent[1]);
	eng_qp_activate(r.s, &one);
	stage_rig_turn(&r, 1000);
	cr_assert_geq(sent[1], r.s->records.minimum, "%lu records", sent[1]);
	cr_assert_geq(r.s->records.minimum, 1);

	acknowledge((unsigned)sent[1]);
	eng_qp_deactivate(r.s, &one);
	until_idle(&r);
	acknowledge(100);
	until_idle(&r);
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
	for (unsigned i = 0; i < r.s->nusers * (ENG_STARVING_REST + 1); i++)
		stage_rig_turn(&r, 1000);
	cr_assert_eq(sent[1], most);
	eng_qp_deactivate(r.s, &qb);
	acknowledge(nkept);
	stage_client_del(&r, &a);
	stage_client_del(&r, &b);
	stage_rig_end(&r);
}

/* ---- Totals */

static void
counting_info(const struct eng_qp *qp, struct eng_work *out)
{
	*out = *(const struct eng_work *)qp->control;
}

static const struct eng_qp_ops counting = {.info = counting_info};

static void
total_is(const struct stage_rig *r, uint64_t msgs_in, uint64_t bytes_out)
{
	struct eng_totals t = {0};

	eng_stage_totals(r->s, &t);
	cr_assert_eq(t.msgs_in, msgs_in, "%lu messages", t.msgs_in);
	cr_assert_eq(t.bytes_out, bytes_out, "%lu bytes", t.bytes_out);
}

/* Another thread may read the totals while the control stage frees the QP. */
Test(engine_stage, the_totals_of_a_stage_are_read_without_its_qps, .init = pair_eal)
{
	struct stage_rig r;
	struct stage_client c;
	struct hidden h;
	struct eng_work work = {.msgs_in = 3, .bytes_out = 1ull << 40};
	struct eng_qp *qp;

	stage_rig_start(&r, NULL);
	stage_client_add(&r, &c, 1, NULL);
	qp = hidden_alloc(&h, sizeof(*qp));
	stage_qp_make(qp, &c, &counting, &work);
	r.s->qps[0] = qp;
	r.s->qps_used = 1;
	stage_rig_turn(&r, SECOND);
	hidden_hide(&h, true);
	total_is(&r, 3, 1ull << 40); /* a look at the QP would fault */
	hidden_hide(&h, false);
	work.msgs_in += 4;
	stage_rig_turn(&r, SECOND);
	total_is(&r, 7, 1ull << 40);
	work.bytes_out++;
	eng_qp_sum(r.s, qp); /* as at its end */
	r.s->qps[0] = NULL;
	hidden_free(&h);
	stage_rig_turn(&r, SECOND);
	total_is(&r, 7, (1ull << 40) + 1);
	stage_client_del(&r, &c);
	stage_rig_end(&r);
}

/* ---- Numbers that peers send */

#define SLOTS 64u

/* Returns the first number from *n on that has the slot, and whose low 10 bits are `low`. */
static uint32_t
number_of(const struct eng_places *p, uint32_t slot, uint32_t low, uint32_t *n)
{
	uint32_t number;

	do
		number = sk_perm24(&p->key, (*n)++ * SLOTS + slot);
	while (number % 1024 != low);
	return number;
}

/* A client creates and destroys QPs until it has those whose numbers suit it. */
Test(engine_stage, a_number_that_a_peer_sends_is_looked_up_in_one_place, .init = pair_eal)
{
	struct stage_rig r;
	struct stage_client c;
	struct hidden h;
	struct eng_qp *other, qp = {.type = SHM_UD};
	struct rd_srq *srq, xrc = {.xrcd = &(struct eng_xrcd){0}, .number = 7};
	uint32_t n = 1, stale;
	struct eng_places *p;

	stage_rig_start(&r, NULL);
	stage_client_add(&r, &c, 1, NULL);
	r.e->places = p = eng_places_create(SLOTS, SLOTS);
	cr_assert(p != NULL && eng_numbers_init(r.s) == 0);
	other = hidden_alloc(&h, sizeof(*other));
	qp.client = xrc.client = c.c;
	qp.rof = (struct rof_qp *)(void *)&qp;
	qp.rd.qpn = number_of(p, 5, 77, &n);
	stale = number_of(p, 5, 77, &n);
	other->rd.qpn = number_of(p, 6, 77, &n);
	eng_datagram_add(r.s, &qp);
	eng_datagram_add(r.s, other);
	hidden_hide(&h, true); /* a look at the other QP would fault */
	cr_assert_eq(eng_datagram_qp(r.s, NULL, qp.rd.qpn), qp.rof);
	cr_assert_null(eng_datagram_qp(r.s, NULL, stale), "the number of an earlier QP");
	hidden_hide(&h, false);
	eng_datagram_del(r.s, &qp);
	cr_assert_null(eng_datagram_qp(r.s, NULL, qp.rd.qpn));
	eng_srq_add(r.s, &xrc);
	srq = r.s->xrc_srqs[eng_place_srq_slot(p, 7)];
	cr_assert_eq(srq, &xrc);
	eng_srq_del(r.s, &xrc);
	cr_assert_null(r.s->xrc_srqs[eng_place_srq_slot(p, 7)]);
	hidden_free(&h);
	stage_client_del(&r, &c);
	stage_rig_end(&r);
	free(p);
}

/* ---- Full queues */

#define DEPTH 4096u

/* A QP without a connection, with its queues and a CQ for all of its completions. */
struct full {
	struct stage_rig r;
	struct stage_client c;
	struct eng_qp *table[1], *qp;
	struct rd_cq *cq;
	uint8_t *home;
	struct shm_prod sq, rq;
	struct eng_ctl m;
};

static void
full_command(struct full *f, enum eng_ctl_type type)
{
	f->m = (struct eng_ctl){.type = (uint16_t)type, .client = f->c.c, .qp = f->qp, .status = 1};
	if (type == ENG_CE_QP_CLOSE)
		f->m.close.how = ENG_CLOSE_ABORT;
	stage_rig_return(&f->r, &f->m);
	stage_rig_turn(&f->r, 1000);
}

static void
full_fill(struct full *f)
{
	for (unsigned i = 0; i < DEPTH; i++) {
		struct shm_rqe *e = shm_prod_entry(&f->rq);

		shm_sqe_push(&f->sq, shm_prod_entry(&f->sq), 1, RD_WRITE, RD_SIGNALED, 0);
		e->nsge = 0;
		shm_prod_push(&f->rq);
	}
}

static void
full_start(struct full *f, uint8_t kind)
{
	struct shm_ring_at sq = {.entries = 4096, .cons = 0, .stride = 64, .log2_count = 12};
	struct shm_ring_at rq = {.cons = 64, .stride = SHM_RQE_UNIT, .log2_count = 12};
	struct shm_ring_at cq = {.cons = 128, .stride = sizeof(struct shm_cqe), .log2_count = 14};

	memset(f, 0, sizeof(*f));
	rq.entries = sq.entries + shm_ring_bytes(&sq);
	cq.entries = rq.entries + shm_ring_bytes(&rq);
	f->home = calloc(1, cq.entries + shm_ring_bytes(&cq));
	f->qp = aligned_alloc(64, (sizeof(*f->qp) + 63) & ~(size_t)63);
	f->cq = aligned_alloc(64, (CQ_BYTES + 63) & ~(size_t)63);
	cr_assert(f->home != NULL && f->qp != NULL && f->cq != NULL);
	memset(f->qp, 0, sizeof(*f->qp));
	memset(f->cq, 0, CQ_BYTES);
	stage_rig_start(&f->r, NULL);
	stage_client_add(&f->r, &f->c, 1, NULL);
	f->c.c->stage[0].qps = f->table;
	f->c.c->stage[0].nqps = 1;
	f->cq->client = f->qp->client = f->c.c;
	f->cq->shared = (struct shm_cq *)(void *)(f->home + 192);
	shm_prod_init(&f->cq->sub[0].ring, f->home, &cq);
	shm_prod_init(&f->sq, f->home, &sq);
	shm_prod_init(&f->rq, f->home, &rq);
	shm_take_init(&f->qp->sq, f->home, &sq);
	shm_take_init(&f->qp->rq, f->home, &rq);
	f->qp->kind = kind;
	f->qp->rd = (struct rd_qp){.qpn = 2,
		.state = RD_QP_INIT,
		.send_cq = f->cq,
		.recv_cq = f->cq,
		.caps = {.sq_depth = DEPTH,
			.rq_depth = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1}};
	full_command(f, ENG_CE_QP_ADD);
	cr_assert(stage_rig_notice(&f->r) == &f->m && f->m.status == 0);
	full_fill(f);
}

static void
full_end(struct full *f)
{
	full_command(f, ENG_CE_QP_DEL);
	for (unsigned i = 0; i < 4; i++)
		stage_rig_turn(&f->r, 1000);
	while (stage_rig_notice(&f->r) != NULL)
		;
	cr_assert_eq(f->m.status, 0);
	stage_client_del(&f->r, &f->c);
	stage_rig_end(&f->r);
	free(f->home);
	free(f->qp);
	free(f->cq);
}

/* Returns the number of completions since the start. */
static uint32_t
full_done(const struct full *f)
{
	return f->cq->sub[0].ring.next;
}

static void
full_queues_of_a_qp_that_fails(uint8_t kind)
{
	struct full f;

	full_start(&f, kind);
	full_command(&f, ENG_CE_QP_CLOSE);
	cr_assert_eq(f.m.status, 0, "the command is done");
	cr_assert_gt(full_done(&f), 0);
	cr_assert_leq(full_done(&f) * 160, ENG_TURN_COST + 64 * 320, "%u", full_done(&f));
	for (unsigned i = 0; i < 20; i++)
		stage_rig_turn(&f.r, 1000);
	cr_assert_eq(full_done(&f), 2 * DEPTH, "%u completions", full_done(&f));
	while (stage_rig_notice(&f.r) != NULL)
		;
	full_end(&f);
}

Test(engine_stage, a_qp_that_fails_is_flushed_in_its_turns, .init = pair_eal)
{
	full_queues_of_a_qp_that_fails(ENG_IWARP);
	full_queues_of_a_qp_that_fails(ENG_FALCON);
}

Test(engine_stage, a_qp_that_is_reset_is_drained_in_its_turns, .init = pair_eal)
{
	struct full f;
	uint32_t first;

	full_start(&f, ENG_FALCON);
	full_command(&f, ENG_CE_QP_RESET);
	stage_rig_turn(&f.r, 1000);
	cr_assert_eq(f.m.status, 1, "not yet");
	first = f.qp->sq.next;
	cr_assert_gt(first, 0);
	cr_assert_lt(first, DEPTH / 2, "%u requests in a turn", first);
	for (unsigned i = 0; i < 20; i++)
		stage_rig_turn(&f.r, 1000);
	cr_assert(stage_rig_notice(&f.r) == &f.m && f.m.status == 0);
	cr_assert(f.qp->sq.next == DEPTH && f.qp->rq.next == DEPTH);
	cr_assert_eq(f.qp->rd.state, RD_QP_INIT);
	cr_assert_eq(full_done(&f), 0);
	full_fill(&f);
	full_command(&f, ENG_CE_QP_RESET);
	f.c.c->dead = true;
	stage_rig_turn(&f.r, 1000);
	stage_rig_turn(&f.r, 1000);
	cr_assert(stage_rig_notice(&f.r) == &f.m && f.m.status == 0, "its client is dead");
	full_end(&f);
}
