/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between the control stage and the others. What is sent to one stage leaves in order:
 * first what waits for the ring, then what is new. Unasked messages whose treatment needs a free
 * command wait in order too, while answers are always taken: so answers can free what the others
 * wait for.
 */
#include <rte_ring.h>

#include "../cm/cm_priv.h"
#include "../attach/client_priv.h"

_Static_assert(CTL_BACKLOG >= CTL_POOL + ENG_CTL_UNASKED, "every message fits in");
_Static_assert((CTL_BACKLOG & (CTL_BACKLOG - 1)) == 0, "indices wrap");
_Static_assert(ENG_CTL_RING > ENG_CTL_COMMANDS + ENG_CTL_UNASKED, "no ring can be full");

struct ctl_msg *
ctl_msg_get(struct eng_control *c, enum eng_ctl_type type, ctl_done done)
{
	struct ctl_msg *m = c->spare;

	if (m == NULL)
		return NULL;
	c->spare = m->next;
	c->nspare--;
	memset(m, 0, offsetof(struct eng_ctl, private_data));
	m->m.type = type;
	m->done = done;
	m->op = NULL;
	m->client = NULL;
	return m;
}

static void
msg_put(struct eng_control *c, struct ctl_msg *m)
{
	m->next = c->spare;
	c->spare = m;
	c->nspare++;
}

static bool
is_command(const struct eng_ctl *m)
{
	return m->type < ENG_TC_REQUEST;
}

/* Moves what waits into the ring as far as its bounds allow. */
static void
control_ring_flush(struct ctl_target *t)
{
	while (t->head != t->tail) {
		struct eng_ctl *m = t->backlog[t->head & (CTL_BACKLOG - 1)];

		if (is_command(m) && t->under_way == ENG_CTL_COMMANDS)
			return;
		if (rte_ring_enqueue(t->to, m) != 0)
			return;
		t->under_way += is_command(m);
		t->head++;
	}
}

static void
target_send(struct ctl_target *t, struct eng_ctl *m)
{
	t->backlog[t->tail++ & (CTL_BACKLOG - 1)] = m;
	control_ring_flush(t);
}

void
ctl_send_transport(struct eng_control *c, unsigned transport, struct ctl_msg *m)
{
	m->m.transport = (uint8_t)transport;
	target_send(&c->transport[transport], &m->m);
	if (c->a.wake != NULL)
		c->a.wake(c->a.wake_arg, c->cfg->transport_loop[transport]);
}

void
ctl_send_stage(struct eng_control *c, unsigned stage, struct ctl_msg *m)
{
	m->m.stage = (uint8_t)stage;
	target_send(&c->stage[stage], &m->m);
	if (c->a.wake != NULL)
		c->a.wake(c->a.wake_arg, c->cfg->stage_loop[stage]);
}

void
ctl_return(struct eng_control *c, struct ctl_target *t, struct eng_ctl *m)
{
	target_send(t, m);
}

/* What an engine stage has to say needs no answer: it is never held up. */
static void
stage_unasked(struct eng_control *c, struct eng_ctl *m)
{
	struct ctl_client *cl = (struct ctl_client *)m->client;
	struct ctl_qp *q = (struct ctl_qp *)m->qp;

	switch (m->type) {
	case ENG_EC_MAILBOX:
		ctl_ring_client(c, cl);
		break;
	case ENG_EC_DISCONNECTED:
		cm_input(c, q, CM_EV_ENDED, m);
		break;
	case ENG_EC_QP_WAITS:
		cm_hand_waits(c, q);
		break;
	case ENG_EC_QP_FATAL:
		ctl_tell_async(c, cl, SHM_EV_QP_FATAL, q->eng.handle, m->code);
		ctl_qp_tell_openers(c, q, m->code);
		break;
	case ENG_EC_SRQ_LIMIT:
		ctl_tell_async(c, cl, SHM_EV_SRQ_LIMIT, ((struct rd_srq *)m->object)->handle, 0);
		break;
	case ENG_EC_CQ_OVERFLOW:
		ctl_tell_async(
			c, cl, SHM_EV_CQ_OVERFLOW, ((struct rd_cq *)m->object)->handle, m->code);
		break;
	case ENG_EC_CLIENT_BAD:
		client_put_out(c, cl, "it harmed its own rings or memory");
		break;
	default:
		sk_count(c->counters, ENG_STALE);
	}
}

static void
answered(struct eng_control *c, struct ctl_target *t, struct eng_ctl *m)
{
	struct ctl_msg *msg = SK_CONTAINER(m, struct ctl_msg, m);

	t->under_way--;
	if (msg->done != NULL)
		msg->done(c, msg);
	msg_put(c, msg);
	control_ring_flush(t);
}

/* Unasked messages of a transport stage, oldest first, while there are free commands to answer them
 * with. */
static void
unasked_work(struct eng_control *c, struct ctl_target *t)
{
	while (t->unasked_head != t->unasked_tail) {
		struct eng_ctl *m = t->unasked[t->unasked_head % ENG_CTL_UNASKED];

		if (!cm_unasked(c, t, m))
			return;
		t->unasked_head++;
	}
}

static void
transport_messages(struct eng_control *c, struct ctl_target *t, void **msgs, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct eng_ctl *m = msgs[i];

		if (is_command(m))
			answered(c, t, m);
		else
			t->unasked[t->unasked_tail++ % ENG_CTL_UNASKED] = m;
	}
	unasked_work(c, t);
}

static void
stage_messages(struct eng_control *c, struct ctl_target *t, void **msgs, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct eng_ctl *m = msgs[i];

		if (is_command(m)) {
			answered(c, t, m);
		} else {
			stage_unasked(c, m);
			ctl_return(c, t, m);
		}
	}
}

bool
ctl_rings_poll(struct eng_control *c)
{
	void *said[ENG_MAX_STAGES][CTL_BATCH], *msgs[CTL_BATCH];
	unsigned n[ENG_MAX_STAGES], i, got, work = 0;

	/* What a stage says about a connection is younger than what the transport had said before.
	 * So the stages' messages are taken out first, and treated last. */
	for (i = 0; i < c->cfg->nstages; i++)
		n[i] = rte_ring_dequeue_burst(c->stage[i].from, said[i], CTL_BATCH, NULL);
	for (i = 0; i < c->cfg->ntransports; i++) {
		struct ctl_target *t = &c->transport[i];

		do {
			got = rte_ring_dequeue_burst(t->from, msgs, CTL_BATCH, NULL);
			transport_messages(c, t, msgs, got);
			work += got;
		} while (got == CTL_BATCH);
		control_ring_flush(t);
	}
	for (i = 0; i < c->cfg->nstages; i++) {
		stage_messages(c, &c->stage[i], said[i], n[i]);
		control_ring_flush(&c->stage[i]);
		work += n[i];
	}
	return work != 0;
}
