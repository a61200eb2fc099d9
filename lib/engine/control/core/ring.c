/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between the control stage and the other stages. Messages to one stage leave in order: a
 * new message is enqueued behind those that wait for room in the ring. A notice whose answer needs
 * a free message waits in order, too. Answers to commands are always handled immediately, because
 * they free the messages that the notices wait for.
 */
#include <rte_ring.h>

#include "core.h"

_Static_assert(CTL_BACKLOG >= CTL_POOL + ENG_CTL_NOTICES, "every message fits in");
_Static_assert((CTL_BACKLOG & (CTL_BACKLOG - 1)) == 0, "indices wrap");
_Static_assert(ENG_CTL_RING > ENG_CTL_COMMANDS + ENG_CTL_NOTICES, "no ring can be full");

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
	m->charged = false;
	return m;
}

void
ctl_msg_charge(struct eng_control *c, struct ctl_msg *m, const struct ctl_client *cl)
{
	m->user = cl != NULL ? cl->eng.user : SK_USER_INSTANCE;
	m->charged = ctl_share_take(c, CTL_POOL_MESSAGE, m->user);
}

static void
msg_put(struct eng_control *c, struct ctl_msg *m)
{
	if (m->charged)
		ctl_share_give(c, CTL_POOL_MESSAGE, m->user);
	m->next = c->spare;
	c->spare = m;
	c->nspare++;
}

static bool
is_command(const struct eng_ctl *m)
{
	return m->type < ENG_CTL_NOTICE;
}

/* Moves waiting messages into the ring while there is room and the limit of commands allows. */
static void
control_ring_flush(struct ctl_target *t)
{
	while (t->head != t->tail) {
		struct eng_ctl *m = t->backlog[t->head & (CTL_BACKLOG - 1)];

		if (is_command(m) && t->unanswered == ENG_CTL_COMMANDS)
			return;
		if (rte_ring_enqueue(t->to, m) != 0)
			return;
		t->unanswered += is_command(m);
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

static void
answered(struct eng_control *c, struct ctl_target *t, struct eng_ctl *m)
{
	struct ctl_msg *msg = SK_CONTAINER(m, struct ctl_msg, m);

	t->unanswered--;
	if (msg->done != NULL)
		msg->done(c, msg);
	msg_put(c, msg);
	control_ring_flush(t);
}

static bool
handle_notice(struct eng_control *c, struct ctl_target *t, struct eng_ctl *m)
{
	ctl_notice *handler = m->type < ENG_CTL_TYPES ? c->notices[m->type] : NULL;

	if (handler != NULL)
		return handler(c, t, m);
	sk_count(c->counters, ENG_STALE);
	return true;
}

/* Handles notices of a transport stage, oldest first, while messages for the answers are free. */
static void
notices_work(struct eng_control *c, struct ctl_target *t)
{
	while (t->notice_head != t->notice_tail) {
		struct eng_ctl *m = t->notices[t->notice_head % ENG_CTL_NOTICES];

		if (!handle_notice(c, t, m)) {
			c->deferred = true;
			return;
		}
		t->notice_head++;
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
			t->notices[t->notice_tail++ % ENG_CTL_NOTICES] = m;
	}
	notices_work(c, t);
}

static void
stage_messages(struct eng_control *c, struct ctl_target *t, void **msgs, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct eng_ctl *m = msgs[i];

		if (is_command(m)) {
			answered(c, t, m);
		} else {
			handle_notice(c, t, m);
			ctl_return(c, t, m);
		}
	}
}

bool
ctl_notice_waits(
	const struct eng_control *c, unsigned transport, enum eng_ctl_type type, uint64_t cookie)
{
	const struct ctl_target *t = &c->transport[transport];

	for (uint32_t i = t->notice_head; i != t->notice_tail; i++) {
		const struct eng_ctl *m = t->notices[i % ENG_CTL_NOTICES];

		if (m->type == type && m->cookie == cookie)
			return true;
	}
	return false;
}

bool
ctl_rings_poll(struct eng_control *c)
{
	void *msgs_of[ENG_MAX_STAGES][CTL_BATCH], *msgs[CTL_BATCH];
	unsigned n[ENG_MAX_STAGES], i, got, work = 0;

	/* An engine stage's message about a connection is sent after the transport stage's messages
	 * that caused it. Therefore the engine stages' rings are read first and handled last. */
	for (i = 0; i < c->cfg->nstages; i++)
		n[i] = rte_ring_dequeue_burst(c->stage[i].from, msgs_of[i], CTL_BATCH, NULL);
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
		stage_messages(c, &c->stage[i], msgs_of[i], n[i]);
		control_ring_flush(&c->stage[i]);
		work += n[i];
	}
	return work != 0;
}
