/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands, replies and events. Any thread may send commands, and any thread may take their replies
 * out of the ring: the tag identifies the command. Events between the replies go to a queue in
 * private memory, so that a program that is slow to take them does not delay replies. So does the
 * refusal of a command for whose reply nobody waits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client_priv.h"

void
cl_mail_init(struct saker *s, const struct shm_header *h)
{
	shm_prod_init(&s->mail.cmd, s->home, &h->cmd);
	shm_take_init(&s->mail.evt, s->home, &h->evt);
	s->mail.next_tag = 1;
}

void
cl_mail_close(struct saker *s)
{
	struct cl_event *ev;

	pthread_mutex_lock(&s->mail.lock);
	s->mail.closing = true;
	while ((ev = STAILQ_FIRST(&s->mail.events)) != NULL) {
		STAILQ_REMOVE_HEAD(&s->mail.events, next);
		free(ev);
	}
	pthread_mutex_unlock(&s->mail.lock);
}

void
cl_mail_free(struct saker *s)
{
	cl_mail_close(s);
	pthread_mutex_destroy(&s->mail.lock);
}

static struct cl_call *
call_of(struct saker *s, const struct shm_msg *m)
{
	struct cl_call *c;

	TAILQ_FOREACH (c, &s->mail.calls, next)
		if (c->msg->tag == m->tag && c->msg->op == m->op)
			return c;
	return NULL;
}

static void
mail_reply(struct saker *s, const struct shm_msg *m)
{
	struct cl_call *c = call_of(s, m);

	if (c == NULL) /* its caller has returned with -EPIPE */
		return;
	*c->msg = *m;
	TAILQ_REMOVE(&s->mail.calls, c, next);
	__atomic_store_n(&c->done, true, __ATOMIC_RELEASE);
}

/* Takes one message, which is in the ring. Returns false when memory is exhausted: the message
 * stays there. */
static bool
mail_take(struct saker *s, const struct shm_msg *m)
{
	bool waited = m->op < SHM_OP_COUNT && (m->tag & CL_TAG_NO_WAIT) == 0;
	struct cl_event *ev;

	if (waited)
		mail_reply(s, m);
	if (waited || s->mail.closing || (m->op < SHM_OP_COUNT && m->status >= 0))
		return true;
	ev = malloc(sizeof(*ev));
	if (ev == NULL)
		return false;
	/* A refusal has a sentence instead of body.cm. */
	memcpy(&ev->msg, m,
		m->op >= SHM_OP_COUNT && shm_has_cm(m->op) ? shm_cm_bytes(m) : sizeof(*m));
	STAILQ_INSERT_TAIL(&s->mail.events, ev, next);
	return true;
}

void
cl_mail_drain(struct saker *s)
{
	const struct shm_msg *m;
	bool any = false, replies = false;

	while ((m = shm_take_peek(&s->mail.evt)) != NULL) {
		if (!mail_take(s, m))
			break;
		replies |= m->op < SHM_OP_COUNT && (m->tag & CL_TAG_NO_WAIT) == 0;
		any = true;
		shm_take_pop(&s->mail.evt);
	}
	if (any)
		shm_take_publish(&s->mail.evt);
	if (replies)
		cl_kick(s);
}

/* Writes the command to the ring, which has room. The first word of the entry, `turn`, belongs to
 * the ring. */
static void
mail_put(struct saker *s, struct shm_msg *m, enum shm_op op, uint64_t tag)
{
	m->op = (uint16_t)op;
	m->tag = tag;
	m->status = 0;
	memcpy((uint8_t *)shm_prod_entry(&s->mail.cmd) + sizeof(uint32_t),
		(const uint8_t *)m + sizeof(uint32_t),
		(shm_has_cm(m->op) ? shm_cm_bytes(m) : sizeof(*m)) - sizeof(uint32_t));
	shm_prod_push(&s->mail.cmd);
}

/* Waits until the ring has room, and takes mail.lock then. The engine takes no command while it has
 * events for which there is no room: they are taken here. Returns false when the engine went
 * away. */
static bool
mail_lock_room(struct saker *s)
{
	static const bool never;

	for (unsigned tries = 0;; tries++) {
		pthread_mutex_lock(&s->mail.lock);
		if (shm_prod_room(&s->mail.cmd) > 0)
			return true;
		cl_mail_drain(s);
		pthread_mutex_unlock(&s->mail.lock);
		if (cl_gone(s))
			return false;
		cl_sleep(s, &never, 1, tries);
	}
}

/* Each command has one doorbell. The doorbell ring has room for one of each QP and command, but may
 * be full until the engine publishes what it has taken. */
static void
mail_ring(struct saker *s)
{
	static const bool never;

	for (unsigned tries = 0; !cl_ring(s, 0, SHM_RING_MAILBOX) && !cl_gone(s); tries++)
		cl_sleep(s, &never, 1, tries);
}

/* Sends a command. `c`: the call that waits for the reply; NULL: none, and `tag` is the command's.
 * Returns 0, or -EPIPE with the sentence. */
static int
mail_send(struct saker *s, struct shm_msg *m, enum shm_op op, uint64_t tag, struct cl_call *c)
{
	bool room;
	int state;

	/* The reply goes to the stack of this thread, and callers hold locks: pthread_cancel(3)
	 * takes effect after the command. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	room = !cl_gone(s) && mail_lock_room(s);
	if (room) {
		mail_put(s, m, op, c != NULL ? s->mail.next_tag++ : tag);
		if (c != NULL)
			TAILQ_INSERT_TAIL(&s->mail.calls, c, next);
		pthread_mutex_unlock(&s->mail.lock);
		mail_ring(s);
	}
	pthread_setcancelstate(state, NULL);
	return room ? 0 : cl_fail(-EPIPE, "the saker has gone away");
}

static int
mail_wait(struct saker *s, struct cl_call *c)
{
	for (unsigned tries = 0;; tries++) {
		bool gone = cl_gone(s);

		pthread_mutex_lock(&s->mail.lock);
		cl_mail_drain(s);
		if (gone && !c->done)
			TAILQ_REMOVE(&s->mail.calls, c, next);
		pthread_mutex_unlock(&s->mail.lock);
		if (__atomic_load_n(&c->done, __ATOMIC_ACQUIRE))
			return 0;
		if (gone)
			return -EPIPE;
		cl_sleep(s, &c->done, -1, tries);
	}
}

int
cl_refusal(struct shm_msg *m)
{
	int reason = cl_reason(m->status);

	m->body.text[sizeof(m->body.text) - 1] = '\0';
	return cl_fail(reason, "%s", m->body.text[0] != '\0' ? m->body.text : strerror(-reason));
}

int
cl_call_send(struct saker *s, struct cl_call *c, enum shm_op op)
{
	c->done = false;
	return mail_send(s, c->msg, op, 0, c);
}

int
cl_call_wait(struct saker *s, struct cl_call *c)
{
	int state, rc;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	rc = mail_wait(s, c);
	pthread_setcancelstate(state, NULL);
	if (rc < 0)
		return cl_fail(rc, "the saker has gone away");
	return c->msg->status < 0 ? cl_refusal(c->msg) : 0;
}

int
cl_command(struct saker *s, struct shm_msg *m, enum shm_op op)
{
	struct cl_call c = {.msg = m};
	int rc = cl_call_send(s, &c, op);

	return rc == 0 ? cl_call_wait(s, &c) : rc;
}

int
cl_command_no_wait(struct saker *s, struct shm_msg *m, enum shm_op op, uint32_t qp)
{
	return mail_send(s, m, op, CL_TAG_NO_WAIT | qp, NULL);
}

int
cl_command_handle(struct saker *s, enum shm_op op, uint32_t handle)
{
	struct shm_msg m;

	memset(&m, 0, sizeof(m));
	m.body.handle = handle;
	return cl_command(s, &m, op);
}

struct cl_event *
cl_mail_event(struct saker *s)
{
	struct cl_event *ev;

	pthread_mutex_lock(&s->mail.lock);
	cl_mail_drain(s);
	ev = STAILQ_FIRST(&s->mail.events);
	if (ev != NULL)
		STAILQ_REMOVE_HEAD(&s->mail.events, next);
	pthread_mutex_unlock(&s->mail.lock);
	return ev;
}

void
cl_mail_purge(struct saker *s, enum cl_kind kind, uint32_t handle)
{
	struct cl_event *ev, *next;

	pthread_mutex_lock(&s->mail.lock);
	for (ev = STAILQ_FIRST(&s->mail.events); ev != NULL; ev = next) {
		next = STAILQ_NEXT(ev, next);
		if (!cl_event_about(&ev->msg, kind, handle))
			continue;
		STAILQ_REMOVE(&s->mail.events, ev, cl_event, next);
		free(ev);
	}
	pthread_mutex_unlock(&s->mail.lock);
}
