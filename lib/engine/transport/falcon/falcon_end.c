/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a Falcon connection. Falcon has no packet for it: the exchange sends END, in order, or
 * REJECT after a failure or an abort. The engine stage does not wait until the frame has been sent:
 * the exchange remains with the host without a connection, until its last frame is on a carrier.
 */
#include <errno.h>

#include "falcon_priv.h"

void
eng_falcon_release(struct eng_transport *t, struct eng_conn *c)
{
	if (c->part != NULL)
		eng_falcon_close(t, eng_falcon_conn_of(c));
	c->part = NULL;
	c->rides = false;
}

void
eng_falcon_fail(struct eng_transport *t, struct eng_conn *c, enum rofx_reason why, int error)
{
	if (!c->rides)
		return;
	if (c->error == 0)
		c->error = error;
	eng_falcon_conn_of(c)->why = (uint8_t)why;
	eng_conn_pend(t, c, ECONN_P_FAIL);
}

void
eng_falcon_failed(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_falcon_conn *fc = eng_falcon_conn_of(c);

	if (fc->why != ROFX_NONE) {
		/* This has no effect when the peer has ended the exchange. */
		rofx_give_up(fc->out.x, fc->why);
		eng_falcon_send(t, fc);
		c->pending &= ~ECONN_P_FIN; /* the end is not orderly */
	}
	eng_flight_keep(t, c);
	eng_falcon_release(t, c);
	eng_conn_lost(t, c);
}

/* A self-connected QP has no peer that would answer. */
static void
finish_self(struct eng_transport *t, struct eng_conn *c)
{
	eng_conn_peer_fin(t, c);
	eng_falcon_fail(t, c, ROFX_NONE, 0);
}

void
eng_falcon_finish(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_falcon_conn *fc = eng_falcon_conn_of(c);

	if (fc == NULL)
		return;
	if (fc->fa != NULL && fc->self)
		finish_self(t, c);
	else if (rofx_finish(fc->out.x, t->now) == 0)
		eng_falcon_advance(t, c);
	else
		eng_falcon_fail(t, c, ROFX_REFUSED, -ECONNABORTED);
}
