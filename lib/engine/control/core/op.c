/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients' commands. The control stage copies a command out of shared memory once; the handler
 * checks and executes the copy. Some commands need other stages: an operation then keeps the reply
 * until all of them have answered.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

static int
op_refuse(struct shm_msg *m, int status, const char *fmt, va_list ap)
{
	char text[sizeof(m->body.text)];

	/* The arguments may be strings in the body, which the sentence overwrites. */
	vsnprintf(text, sizeof(text), fmt, ap);
	memcpy(m->body.text, text, sizeof(text));
	m->status = status;
	return status;
}

int
ctl_refuse(struct eng_control *c, struct shm_msg *m, int status, const char *fmt, ...)
{
	va_list ap;

	if (m == NULL)
		return status;
	va_start(ap, fmt);
	op_refuse(m, status, fmt, ap);
	va_end(ap);
	sk_count(c->counters, ENG_BAD_COMMAND);
	return status;
}

int
ctl_refuse_quota(struct eng_control *c, struct shm_msg *m, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	op_refuse(m, status, fmt, ap);
	va_end(ap);
	sk_count(c->counters, ENG_QUOTA);
	return status;
}

/* Returns the bytes of the reply's body. The body of a refusal ends with its sentence, so that no
 * bytes of the engine's stack reach the client. */
static uint32_t
reply_len(const struct eng_control *c, const struct shm_msg *m)
{
	if (m->status < 0)
		return (uint32_t)strnlen(m->body.text, sizeof(m->body.text) - 1) + 1;
	return c->commands[m->op].body;
}

/* Executes one command of a client. `m` is a copy of it. */
static void
ctl_command(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	int rc;

	m->status = 0;
	if (m->op >= SHM_OP_COUNT || c->commands[m->op].handler == NULL)
		rc = ctl_refuse(c, m, -EOPNOTSUPP, "there is no command %u", m->op);
	else
		rc = c->commands[m->op].handler(c, cl, m);
	if (rc < 0)
		cl->resume_turn = c->turn + CTL_REFUSED_TURNS;
	if (rc != CTL_LATER)
		ctl_client_send(c, cl, m, reply_len(c, m));
}

/* Returns the cost of a command. */
static int
cost_of(const struct eng_control *c, const struct shm_msg *m)
{
	return m->op < SHM_OP_COUNT ? 1 + c->commands[m->op].cost : 1;
}

/* Copies a command out of shared memory. Of one about a connection, the bytes behind its private
 * data stay unset: no handler reads them, and no reply contains them. */
static void
command_copy(struct shm_msg *m, const struct shm_msg *shared)
{
	const uint8_t *from = (const uint8_t *)shared;
	uint8_t *to = (uint8_t *)m;

	memcpy(to, from, SHM_CM_BYTES);
	memcpy(to + SHM_CM_BYTES, from + SHM_CM_BYTES,
		(shm_has_cm(m->op) ? shm_cm_bytes(m) : sizeof(*m)) - SHM_CM_BYTES);
}

bool
ctl_mailbox_poll(struct eng_control *c, struct ctl_client *cl, int *cost)
{
	struct shm_msg m;
	const void *e;

	*cost = 1;
	/* A client with queued events waits until it has received them, one with too many
	 * unanswered commands until one is answered: ctl_events_flush() and ctl_op_free() ring
	 * again. */
	if (cl->phase != CTL_LIVE || cl->nevents || cl->commands >= CTL_CLIENT_COMMANDS)
		return false;
	e = shm_take_peek(&cl->cmd);
	if (e == NULL || c->turn < cl->resume_turn || !ctl_may_command(c, cl))
		return e != NULL;
	command_copy(&m, e);
	/* The socket's thread announces a region before the client learns its number. So the
	 * region that this command names is known, or its announcement is in the inbox. */
	if (m.op == SHM_MR_CREATE && ctl_inbox_waits(c))
		return true;
	shm_take_pop(&cl->cmd);
	shm_take_publish(&cl->cmd);
	*cost = cost_of(c, &m);
	ctl_command(c, cl, &m);
	return cl->phase == CTL_LIVE && !cl->nevents && shm_take_peek(&cl->cmd) != NULL;
}

/* ---- Commands that wait for other stages ---- */

struct ctl_op *
ctl_op_new(struct eng_control *c, struct ctl_client *cl, const struct shm_msg *m, void *object,
	ctl_finish *finish)
{
	struct ctl_op *op = calloc(1, sizeof(*op));

	if (op == NULL)
		return NULL;
	op->client = cl;
	op->object = object;
	op->finish = finish;
	op->quiet = m == NULL;
	if (m != NULL) {
		op->reply = *m;
		cl->commands++;
	}
	TAILQ_INSERT_TAIL(&c->ops, op, all);
	return op;
}

void
ctl_op_free(struct eng_control *c, struct ctl_op *op)
{
	TAILQ_REMOVE(&c->ops, op, all);
	if (!op->quiet && op->client->commands-- == CTL_CLIENT_COMMANDS)
		ctl_ring_client(c, op->client);
	free(op);
}

static void
op_answered(struct eng_control *c, struct ctl_msg *m)
{
	struct ctl_op *op = m->op;

	if (m->m.status < 0 && op->status == 0)
		op->status = m->m.status;
	if (--op->waiting == 0)
		op->finish(c, op, &m->m);
}

void
ctl_op_send_transport(
	struct eng_control *c, struct ctl_op *op, unsigned transport, struct ctl_msg *m)
{
	m->op = op;
	m->done = op_answered;
	op->waiting++;
	ctl_msg_charge(c, m, op->client);
	ctl_send_transport(c, transport, m);
}

void
ctl_op_send_stage(struct eng_control *c, struct ctl_op *op, unsigned stage, struct ctl_msg *m)
{
	m->op = op;
	m->done = op_answered;
	op->waiting++;
	ctl_msg_charge(c, m, op->client);
	ctl_send_stage(c, stage, m);
}

void
ctl_op_reply(struct eng_control *c, struct ctl_op *op)
{
	if (!op->quiet)
		ctl_client_send(c, op->client, &op->reply, reply_len(c, &op->reply));
	ctl_op_free(c, op);
}

void
ctl_op_finish(struct eng_control *c, struct ctl_op *op, const struct eng_ctl *last)
{
	ctl_op_reply(c, op);
}

void
ctl_op_finish_qp(struct eng_control *c, struct ctl_op *op, const struct eng_ctl *last)
{
	if (op->status < 0)
		ctl_refuse(c, &op->reply, op->status, "the QP was destroyed meanwhile");
	ctl_op_reply(c, op);
}
