/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of the local ULP that exceed the resources (section 8.2.3). Where the sum of all credits
 * is more than the pools have, a short peak must not end connections. The requests wait, linked by
 * their payloads, in order, a bounded number for each connection; users, and the connections of a
 * user, take turns when resources become free.
 */
#include "conn_priv.h"

bool
tl_wait(struct fa_conn *c, bool pull, uint32_t rsn, struct fa_buf *buf, uint32_t response_len)
{
	struct tl_conn *tl = &c->tl;

	if (buf == NULL || tl->wait_count >= c->s->cfg.conn_waiting)
		return false;
	buf->next = NULL;
	buf->wait_rsn = rsn;
	buf->response_len = response_len;
	buf->pull = pull;
	if (tl->wait_head == NULL) {
		tl->wait_tail = &tl->wait_head;
		tl_list(c, TL_REQUESTS);
	}
	*tl->wait_tail = buf;
	tl->wait_tail = &buf->next;
	tl->wait_count++;
	return true;
}

static struct fa_buf *
take_first(struct fa_conn *c)
{
	struct tl_conn *tl = &c->tl;
	struct fa_buf *b = tl->wait_head;

	tl->wait_head = b->next;
	tl->wait_count--;
	b->next = NULL;
	if (tl->wait_head == NULL)
		tl_unlist(c, TL_REQUESTS);
	return b;
}

/* Starts the first request of a connection that waits. */
static bool
wait_step(struct fa_conn *c, uint64_t now)
{
	struct fa_buf *b = c->tl.wait_head;

	if (c->dead) { /* tl_wait_complete() completes its requests */
		tl_unlist(c, TL_REQUESTS);
		return true;
	}
	if (!tl_begin(c, now, b->pull, b->wait_rsn, b, b->response_len))
		return false;
	take_first(c);
	return true;
}

void
tl_wait_resume(struct fa_stack *s, uint64_t now)
{
	tl_turns(s, TL_REQUESTS, now, wait_step);
}

void
tl_wait_complete(struct fa_conn *c, enum fa_completion code)
{
	struct fa_delivery d = {.type = FA_COMPLETION, .completion = code};

	while (c->tl.wait_head != NULL && !c->tl.busy) {
		d.rsn = c->tl.wait_head->wait_rsn;
		if (tl_deliver(c, &d))
			fa_buf_free(c->s, take_first(c));
	}
}

void
tl_wait_drop(struct fa_conn *c)
{
	while (c->tl.wait_head != NULL)
		fa_buf_free(c->s, take_first(c));
}
