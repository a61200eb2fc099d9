/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completions and their events. The stage writes a completion into its sub-ring of the CQ
 * immediately. At the end of the turn it checks once per CQ whether the client has armed it, and
 * sends one event for all completions of the turn. A CQ whose event finds the event ring full waits
 * in a list of its client, and costs nothing until the ring has room.
 */
#include "../../base/mem.h"
#include "../common/waker.h"
#include "stage_priv.h"

#define EVENT_BURST 64 /* pending events that a client gets in a turn */

static void
touch(struct eng_stage *s, struct rd_cq *cq)
{
	/* A CQ with a pending event is checked again when that event is sent. */
	if (cq->sub[s->index].touched || cq->sub[s->index].event_pending)
		return;
	cq->sub[s->index].touched = true;
	TAILQ_INSERT_TAIL(&s->touched, cq, sub[s->index].next);
}

static void
stage_cq_fill(struct shm_cqe *e, const struct rd_wc *wc)
{
	e->opcode = wc->opcode;
	e->status = wc->status;
	e->flags = wc->flags;
	e->wr_id = wc->wr_id;
	e->qpn = wc->qpn;
	e->byte_len = wc->byte_len;
	e->detail = wc->imm;
	if (wc->status != RD_SUCCESS) {
		e->detail = wc->vendor_err;
	} else if (wc->flags & RD_WC_INV) {
		e->detail = wc->inv_stag;
	} else if (wc->flags & RD_WC_GRH) {
		e->datagram.src_qpn = wc->src_qp;
		e->datagram.imm = (uint32_t)wc->imm;
	}
}

bool
eng_cq_put(struct eng_stage *s, struct rd_cq *cq, const struct rd_wc *wc)
{
	struct shm_prod *ring = &cq->sub[s->index].ring;

	touch(s, cq);
	if (shm_prod_room(ring) == 0) {
		sk_count(s->counters, ENG_CQ_OVERFLOW);
		if (!cq->sub[s->index].overflow)
			eng_notice_cq(s, cq);
		cq->sub[s->index].overflow = true;
		return false;
	}
	stage_cq_fill(shm_prod_entry(ring), wc);
	shm_prod_push(ring);
	if ((wc->flags & RD_WC_SOLICITED) || wc->status != RD_SUCCESS)
		cq->sub[s->index].solicited = true;
	return true;
}

void
eng_complete(void *ctx, struct rd_qp *rd, bool recv, const struct rd_wc *wc)
{
	struct eng_qp *qp = eng_qp_of(rd);

	if (qp->deleting != NULL)
		return; /* the client has destroyed the QP */
	if (!recv)
		eng_sq_show(qp);
	if (!eng_cq_put(ctx, recv ? rd->recv_cq : rd->send_cq, wc))
		eng_qp_pend(ctx, qp, EQP_P_DOOM);
}

/* Sends a completion event. Returns false while the event ring of the client is full. The caller
 * calls clients_wake() after the last event. */
static bool
send_event(struct eng_stage *s, struct rd_cq *cq)
{
	struct eng_client_stage *cs = &cq->client->stage[s->index];
	struct shm_cq_event *e;

	if (shm_prod_room(&cs->event) == 0)
		return false;
	e = shm_prod_entry(&cs->event);
	e->cq = cq->handle;
	e->sub = cq->sub[s->index].number;
	e->until = cq->sub[s->index].ring.next;
	shm_prod_push(&cs->event);
	if (!cs->wake)
		STAILQ_INSERT_TAIL(&s->wakes, cs, wake_next);
	cs->wake = true;
	return true;
}

/* Wakes each client that has received events, once. */
static void
clients_wake(struct eng_stage *s)
{
	struct eng_client_stage *cs;

	while ((cs = STAILQ_FIRST(&s->wakes)) != NULL) {
		STAILQ_REMOVE_HEAD(&s->wakes, wake_next);
		cs->wake = false;
		if (eng_client_wake(cs->client, true))
			sk_count(s->counters, ENG_WAKE_SLOW);
	}
}

/* Makes the CQ wait until the event ring of its client has room. */
static void
event_defer(struct eng_stage *s, struct rd_cq *cq)
{
	struct eng_client_stage *cs = &cq->client->stage[s->index];

	cq->sub[s->index].event_pending = true;
	TAILQ_INSERT_TAIL(&cs->event_cqs, cq, sub[s->index].next);
	if (cs->events_pending)
		return;
	cs->events_pending = true;
	s->nevent_clients++;
	TAILQ_INSERT_TAIL(&s->event_clients, cs, event_next);
}

static void
events_done(struct eng_stage *s, struct eng_client_stage *cs)
{
	cs->events_pending = false;
	s->nevent_clients--;
	TAILQ_REMOVE(&s->event_clients, cs, event_next);
}

void
eng_cqs_touched(struct eng_stage *s)
{
	struct rd_cq *cq;

	while ((cq = TAILQ_FIRST(&s->touched)) != NULL) {
		TAILQ_REMOVE(&s->touched, cq, sub[s->index].next);
		cq->sub[s->index].touched = false;
		if (!cq->client->dead &&
			shm_arm_fire(&cq->shared->arm, cq->sub[s->index].solicited) &&
			!send_event(s, cq))
			event_defer(s, cq);
		cq->sub[s->index].solicited = false;
	}
	clients_wake(s);
}

/* Sends pending events of a client while its event ring has room. Each CQ is then checked once
 * more, since completions may have arrived while its event was pending. Returns whether there was
 * room. */
static bool
events_send(struct eng_stage *s, struct eng_client_stage *cs)
{
	struct rd_cq *cq;

	if (cs->client->dead || shm_prod_room(&cs->event) == 0)
		return false; /* none of its CQs is visited */
	for (unsigned n = 0; n < EVENT_BURST && (cq = TAILQ_FIRST(&cs->event_cqs)) != NULL; n++) {
		if (!send_event(s, cq))
			break;
		TAILQ_REMOVE(&cs->event_cqs, cq, sub[s->index].next);
		cq->sub[s->index].event_pending = false;
		touch(s, cq);
	}
	return true;
}

void
eng_cqs_pending(struct eng_stage *s)
{
	if (s->event_rest > 0) {
		s->event_rest--;
		return;
	}
	for (uint32_t n = SK_MIN(s->nevent_clients, (uint32_t)ENG_EVENT_CLIENTS_TURN); n > 0; n--) {
		struct eng_client_stage *cs = TAILQ_FIRST(&s->event_clients);

		TAILQ_REMOVE(&s->event_clients, cs, event_next);
		TAILQ_INSERT_TAIL(&s->event_clients, cs, event_next);
		s->event_rings_full = events_send(s, cs) ? 0 : s->event_rings_full + 1;
		if (TAILQ_EMPTY(&cs->event_cqs))
			events_done(s, cs);
	}
	clients_wake(s);
	if (s->event_rings_full >= s->nevent_clients) {
		s->event_rings_full = 0;
		s->event_rest = s->nevent_clients > 0 ? ENG_EVENT_REST : 0;
	}
}

void
eng_cq_move(struct eng_stage *s, struct rd_cq *cq, const struct shm_ring_at *to)
{
	shm_prod_move(&cq->sub[s->index].ring, cq->client->home, to);
}

void
eng_cq_forget(struct eng_stage *s, struct rd_cq *cq)
{
	struct eng_client_stage *cs = &cq->client->stage[s->index];

	if (cq->sub[s->index].touched)
		TAILQ_REMOVE(&s->touched, cq, sub[s->index].next);
	if (cq->sub[s->index].event_pending)
		TAILQ_REMOVE(&cs->event_cqs, cq, sub[s->index].next);
	if (cq->sub[s->index].noticing)
		TAILQ_REMOVE(&cs->notice_cqs, cq, sub[s->index].notice);
	cq->sub[s->index].touched = cq->sub[s->index].event_pending = cq->sub[s->index].noticing =
		false;
	if (cs->events_pending && TAILQ_EMPTY(&cs->event_cqs))
		events_done(s, cs);
	eng_notice_client_idle(s, cs);
}
