/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notices to the control stage. A stage has ENG_CTL_NOTICES of them, of which each user has a
 * share. An object that finds no free notice waits in a list of its client; the clients take turns.
 * No list is visited while no notice is free.
 */
#include <string.h>

#include <rte_ring.h>

#include "../../base/mem.h"
#include "stage_priv.h"

#define REFUSED_TURN 16 /* clients in sequence that a turn passes over */

static uint16_t
notice_user_of(const struct eng_client *client)
{
	return client != NULL ? client->user : SK_USER_INSTANCE;
}

struct eng_ctl *
eng_notice_get(struct eng_stage *s, enum eng_ctl_type type, struct eng_client *client)
{
	uint16_t user = notice_user_of(client);
	struct eng_ctl *m;

	if (s->nnotices == 0 || sk_share_take(&s->notice_share, user, 1) != SK_SHARE_OK)
		return NULL;
	m = s->notices_free[--s->nnotices];
	memset(m, 0, sizeof(*m));
	m->type = (uint16_t)type;
	m->from = m->stage = (uint8_t)s->index;
	m->client = client;
	s->notice_of[m - s->notices].user = user;
	s->notice_of[m - s->notices].mailbox = NULL;
	return m;
}

void
eng_notice_send(struct eng_stage *s, struct eng_ctl *m)
{
	/* The ring has an entry for each notice and each command, so it is never full. */
	rte_ring_sp_enqueue(s->to_control, m);
}

/* Puts the client into the list of clients that wait for notices. */
static void
notice_wait(struct eng_stage *s, struct eng_client_stage *cs)
{
	if (cs->noticing)
		return;
	cs->noticing = true;
	s->nnoticing++;
	TAILQ_INSERT_TAIL(&s->noticing, cs, notice_next);
}

void
eng_notice_put(struct eng_stage *s, struct eng_ctl *m)
{
	size_t at = (size_t)(m - s->notices);
	struct eng_client_stage *cs = s->notice_of[at].mailbox;

	sk_share_give(&s->notice_share, s->notice_of[at].user, 1);
	s->notice_of[at].mailbox = NULL;
	s->notices_free[s->nnotices++] = m;
	if (cs == NULL)
		return;
	cs->mailbox_out = false;
	if (cs->mailbox)
		notice_wait(s, cs);
}

void
eng_notice_qp(struct eng_stage *s, struct eng_qp *qp)
{
	qp->queued = EQP_Q_NOTICE;
	TAILQ_INSERT_TAIL(&qp->payer->notice_qps, qp, pend);
	notice_wait(s, qp->payer);
}

void
eng_notice_cq(struct eng_stage *s, struct rd_cq *cq)
{
	struct eng_client_stage *cs = &cq->client->stage[s->index];

	if (cq->sub[s->index].noticing)
		return;
	cq->sub[s->index].noticing = true;
	TAILQ_INSERT_TAIL(&cs->notice_cqs, cq, sub[s->index].notice);
	notice_wait(s, cs);
}

void
eng_notice_srq(struct eng_stage *s, struct rd_srq *srq)
{
	struct eng_client_stage *cs = &srq->client->stage[s->index];

	if (srq->queued)
		return;
	srq->queued = true;
	TAILQ_INSERT_TAIL(&cs->notice_srqs, srq, pend);
	notice_wait(s, cs);
}

/* While the control stage holds an ENG_EC_MAILBOX about the client, it may or may not have polled
 * the mailbox: a further one is sent when that one returns. */
void
eng_notice_mailbox(struct eng_stage *s, struct eng_client_stage *cs)
{
	cs->mailbox = true;
	if (!cs->mailbox_out)
		notice_wait(s, cs);
}

void
eng_notice_bad(struct eng_stage *s, struct eng_client_stage *cs)
{
	if (cs->put_out)
		return;
	cs->put_out = cs->bad = true;
	notice_wait(s, cs);
}

/* Returns whether the client, or an object of it, waits for a notice. */
static bool
waits(const struct eng_client_stage *cs)
{
	return cs->bad || (cs->mailbox && !cs->mailbox_out) || !TAILQ_EMPTY(&cs->notice_qps) ||
	       !TAILQ_EMPTY(&cs->notice_cqs) || !TAILQ_EMPTY(&cs->notice_srqs);
}

void
eng_notice_client_idle(struct eng_stage *s, struct eng_client_stage *cs)
{
	if (!cs->noticing || waits(cs))
		return;
	cs->noticing = false;
	s->nnoticing--;
	TAILQ_REMOVE(&s->noticing, cs, notice_next);
}

void
eng_notice_client_del(struct eng_stage *s, struct eng_client_stage *cs)
{
	cs->bad = cs->mailbox = false;
	eng_notice_client_idle(s, cs);
	/* The control stage returns the notice when the client is freed. */
	for (unsigned i = 0; cs->mailbox_out && i < ENG_CTL_NOTICES; i++)
		if (s->notice_of[i].mailbox == cs)
			s->notice_of[i].mailbox = NULL;
	cs->mailbox_out = false;
}

static bool
send_client(struct eng_stage *s, struct eng_client_stage *cs)
{
	enum eng_ctl_type type = cs->bad ? ENG_EC_CLIENT_BAD : ENG_EC_MAILBOX;
	struct eng_ctl *m = eng_notice_get(s, type, cs->client);

	if (m == NULL)
		return false;
	if (cs->bad) {
		cs->bad = false;
	} else {
		cs->mailbox = false;
		cs->mailbox_out = true;
		s->notice_of[m - s->notices].mailbox = cs;
	}
	eng_notice_send(s, m);
	return true;
}

static bool
send_cq(struct eng_stage *s, struct eng_client_stage *cs, struct rd_cq *cq)
{
	struct eng_ctl *m = eng_notice_get(s, ENG_EC_CQ_OVERFLOW, cq->client);

	if (m == NULL)
		return false;
	m->object.object = cq;
	eng_notice_send(s, m);
	TAILQ_REMOVE(&cs->notice_cqs, cq, sub[s->index].notice);
	cq->sub[s->index].noticing = false;
	return true;
}

static bool
send_srq(struct eng_stage *s, struct eng_client_stage *cs, struct rd_srq *srq)
{
	struct eng_ctl *m = eng_notice_get(s, ENG_EC_SRQ_LIMIT, srq->client);

	if (m == NULL)
		return false;
	m->object.object = srq;
	eng_notice_send(s, m);
	TAILQ_REMOVE(&cs->notice_srqs, srq, pend);
	srq->queued = false;
	return true;
}

static void
send_qp(struct eng_stage *s, struct eng_client_stage *cs, struct eng_qp *qp)
{
	TAILQ_REMOVE(&cs->notice_qps, qp, pend);
	qp->queued = EQP_Q_NONE;
	eng_qp_notices(s, qp);
}

/* Sends a notice of each kind that the client waits for, as far as notices are free. */
static void
notice_client_turn(struct eng_stage *s, struct eng_client_stage *cs)
{
	if (sk_share_room(&s->notice_share, notice_user_of(cs->client)) == 0)
		return; /* no object is visited */
	if ((cs->bad || (cs->mailbox && !cs->mailbox_out)) && !send_client(s, cs))
		return;
	if (!TAILQ_EMPTY(&cs->notice_cqs) && !send_cq(s, cs, TAILQ_FIRST(&cs->notice_cqs)))
		return;
	if (!TAILQ_EMPTY(&cs->notice_srqs) && !send_srq(s, cs, TAILQ_FIRST(&cs->notice_srqs)))
		return;
	if (!TAILQ_EMPTY(&cs->notice_qps))
		send_qp(s, cs, TAILQ_FIRST(&cs->notice_qps));
}

void
eng_notices_poll(struct eng_stage *s)
{
	/* A client whose user may have no more notices is passed over. */
	uint32_t idle = 0;

	while (s->nnotices > 0 && idle < SK_MIN(s->nnoticing, (uint32_t)REFUSED_TURN)) {
		struct eng_client_stage *cs = TAILQ_FIRST(&s->noticing);
		unsigned before = s->nnotices;

		TAILQ_REMOVE(&s->noticing, cs, notice_next);
		TAILQ_INSERT_TAIL(&s->noticing, cs, notice_next);
		notice_client_turn(s, cs);
		eng_notice_client_idle(s, cs);
		idle = s->nnotices < before ? 0 : idle + 1;
	}
}
