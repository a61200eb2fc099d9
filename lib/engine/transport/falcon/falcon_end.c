/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The abrupt end of a Falcon connection by this side, after a failure or an abort. Falcon has no
 * packet for it. A reset of the control channel would be sent only once, and if it were lost, a
 * peer with nothing to send would wait for its keepalive. Therefore this side sends a REJECT and a
 * FIN, which TCP retransmits until they are acknowledged. The engine stage does not wait for the
 * acknowledgement: the TCP connection passes to an eng_conn that no QP owns.
 */
#include "falcon_priv.h"

/* Moves the TCP connection of `c`, and its place in the share of its user, to a new eng_conn and
 * returns that, or NULL when all are in use. */
static struct eng_conn *
falcon_end_hand_over(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_conn *rest = eng_conn_alloc(t, ECONN_DRAIN);

	if (rest == NULL)
		return NULL;
	rest->tcp = c->tcp;
	rest->link = c->link;
	rest->path = c->path;
	rest->addr_sum = c->addr_sum;
	rest->user = c->user;
	rest->counted = c->counted;
	c->counted = false;
	tcp_set_user(rest->tcp, rest);
	c->tcp = NULL;
	return rest;
}

void
eng_falcon_fail(struct eng_transport *t, struct eng_conn *c, enum rofx_reason why, int error)
{
	if (c->error == 0)
		c->error = error;
	eng_falcon_conn_of(c)->why = (uint8_t)why;
	eng_conn_pend(t, c, ECONN_P_FAIL);
}

void
eng_falcon_failed(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_conn *rest;

	/* This has no effect when the peer has ended the exchange. */
	rofx_give_up(eng_falcon_conn_of(c)->x, eng_falcon_conn_of(c)->why);
	if (eng_falcon_send(t, c) < 0 || (rest = falcon_end_hand_over(t, c)) == NULL) {
		eng_conn_pend(t, c, ECONN_P_ABORT);
		return;
	}
	tcp_close(rest->tcp, t->now);
	c->pending &= ~ECONN_P_FIN; /* the end is not orderly */
	eng_conn_lost(t, c);
}
