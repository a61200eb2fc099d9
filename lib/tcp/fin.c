/* SPDX-License-Identifier: BSD-3-Clause */
/* Orderly close (RFC 9293 3.6): state changes after the peer's FIN and after the acknowledgement of
 * ours. */
#include "tcp_priv.h"

/* Enters the next state once the peer's FIN and all bytes before it have come. The owner gets
 * TCP_EV_PEER_FIN when it has accepted all bytes. */
void
tcp_fin_reached(struct tcp_conn *c)
{
	static const uint8_t next[TCPS_COUNT] = {
		[TCPS_ESTABLISHED] = TCPS_CLOSE_WAIT,
		[TCPS_FIN_WAIT_1] = TCPS_CLOSING,
		[TCPS_FIN_WAIT_2] = TCPS_TIME_WAIT,
	};

	if (c->flags & F_FIN_NOTED && !(c->flags & F_FIN_TAKEN) && c->rcv_nxt == c->rcv_fin &&
		next[c->state]) {
		c->flags |= F_FIN_TAKEN;
		c->fast = false;
		c->rcv_nxt++;
		/* A FIN that arrives at a closed window does not turn it into a negative one. */
		c->rcv_adv = tcp_seq_max(c->rcv_adv, c->rcv_nxt);
		tcp_conn_ack_now(c);
		if (next[c->state] == TCPS_TIME_WAIT)
			tcp_conn_time_wait(c);
		else
			c->state = next[c->state];
	}
	if ((c->flags & (F_FIN_TAKEN | F_FIN_NOTIFIED)) != F_FIN_TAKEN || c->refused != NULL)
		return;
	c->flags |= F_FIN_NOTIFIED;
	tcp_conn_event(c, TCP_EV_PEER_FIN);
	if (c->state == TCPS_TIME_WAIT)
		tcp_conn_over(c, 0);
}

/* Enters the next state after the acknowledgement of our FIN. */
void
tcp_fin_acked(struct tcp_conn *c)
{
	switch (c->state) {
	case TCPS_FIN_WAIT_1:
		c->state = TCPS_FIN_WAIT_2;
		tcp_timers_half_closed(c, c->s->now);
		break;
	case TCPS_CLOSING:
		tcp_conn_time_wait(c);
		break;
	case TCPS_LAST_ACK:
		if (c->refused != NULL) /* the owner has not accepted the last bytes yet */
			tcp_conn_time_wait(c);
		else
			tcp_conn_end(c, 0);
		break;
	default:
		break;
	}
}
