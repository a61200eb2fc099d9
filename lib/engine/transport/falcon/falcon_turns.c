/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exchanges before their first request. Such an exchange takes no place among the connections, so
 * that hosts that never authenticate a frame cannot occupy all places.
 *
 * A message of TLS's handshake costs as much time as hundreds of packets, and any host can send
 * one. So the exchanges that have such work take turns: one in a turn of the stage, first come,
 * first served, and after each one TLS pauses for PAUSE times the time that it took. TLS has at
 * most the share 1 / (PAUSE + 1) of the lcore, however many exchanges begin. The time that it took
 * is the time from the turn to the stage's next turn: an upper bound.
 */
#include <errno.h>
#include <stdlib.h>

#include "../../../base/mem.h"
#include "falcon_priv.h"

#define PAUSE   3
#define MOST_NS 2000000u /* a longer turn was interrupted: its time is not that of TLS */

static struct eng_falcon_half *
half_of(const struct eng_conn *c)
{
	return c->su != NULL ? c->su->part : NULL;
}

int
eng_falcon_half_create(struct eng_transport *t, struct eng_conn *c, struct rofx *x)
{
	struct eng_falcon_half *half = calloc(1, sizeof(*half));

	if (half == NULL)
		return -ENOMEM;
	half->c = c;
	half->x = x;
	c->su->part = half;
	if (x != NULL)
		eng_falcon_add(&eng_falcon_of(t)->nstarting, 1);
	return 0;
}

int
eng_falcon_half_promote(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_falcon_half *half = half_of(c);
	struct eng_falcon_conn *fc = eng_falcon_reserve(t, c);

	if (fc == NULL)
		return -ENOBUFS;
	fc->x = half->x;
	half->x = NULL;
	c->part = fc;
	eng_falcon_add(&eng_falcon_of(t)->nstarting, -1);
	return 0;
}

static void
leave_queue(struct eng_falcon *f, struct eng_falcon_half *half)
{
	if (!half->waits)
		return;
	TAILQ_REMOVE(&f->waiting, half, next);
	half->waits = false;
	eng_falcon_add(&f->nwaiting, -1);
}

void
eng_falcon_half_forget(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_falcon_half *half = half_of(c);

	if (half != NULL)
		leave_queue(eng_falcon_of(t), half);
}

/* The Falcon part of the stage may be gone: it is freed before the connections are. */
void
eng_falcon_half_free(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_falcon *f = eng_falcon_of(t);
	struct eng_falcon_half *half = half_of(c);

	if (half == NULL)
		return;
	if (f != NULL)
		leave_queue(f, half);
	if (f != NULL && half->x != NULL)
		eng_falcon_add(&f->nstarting, -1);
	rofx_destroy(half->x);
	free(half);
	c->su->part = NULL;
}

bool
eng_falcon_may(struct eng_transport *t, struct eng_conn *c, bool begins)
{
	struct eng_falcon *f = eng_falcon_of(t);
	struct eng_falcon_half *half = half_of(c);

	if (half == NULL || f->turn == c || !rofx_handshakes(eng_falcon_exchange(c)))
		return true;
	half->begins |= begins;
	if (!half->waits) {
		TAILQ_INSERT_TAIL(&f->waiting, half, next);
		half->waits = true;
		eng_falcon_add(&f->nwaiting, 1);
	}
	return false;
}

void
eng_falcon_turn_over(struct eng_falcon *f, uint64_t now)
{
	uint64_t took = SK_MIN(now - f->tls_from, MOST_NS);

	f->tls_at = now + PAUSE * took;
	f->tls_from = SK_NEVER;
}

bool
eng_falcon_turn(struct eng_transport *t, uint64_t now)
{
	struct eng_falcon *f = eng_falcon_of(t);
	struct eng_falcon_half *half = TAILQ_FIRST(&f->waiting);
	bool begins;

	if (half == NULL || f->tls_from != SK_NEVER || now < f->tls_at)
		return false;
	leave_queue(f, half);
	begins = half->begins;
	half->begins = false;
	f->tls_from = now;
	f->turn = half->c;
	if (begins)
		eng_falcon_begin(t, half->c);
	else
		tcp_deliver_resume(half->c->tcp);
	f->turn = NULL;
	return true;
}
