/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A Falcon connection that fails, or is ended abruptly, on this side. Falcon has no packet for
 * that, and a reset of the control channel is said once, which is not enough on a wire that loses:
 * a peer with nothing to send would wait for its keepalive. So the last word is a REJECT and the
 * end of the stream, which TCP repeats until they are there. Our own side does not wait for that:
 * what TCP still has to do is done for a connection that is nobody's.
 */
#include "falcon_priv.h"

/* The stream's rest gets a connection of its own. NULL: there is none left. */
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

	rofx_give_up(eng_falcon_conn_of(c)->x,
		eng_falcon_conn_of(c)->why); /* unless the peer was the one who said it */
	if (eng_falcon_send(t, c) < 0 || (rest = falcon_end_hand_over(t, c)) == NULL) {
		eng_conn_pend(t, c, ECONN_P_ABORT);
		return;
	}
	t->tcp_work = true;
	tcp_close(rest->tcp, t->now);
	c->pending &= ~ECONN_P_FIN; /* no orderly end */
	eng_conn_lost(t, c);
}
