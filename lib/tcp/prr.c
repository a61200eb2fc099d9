/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proportional Rate Reduction (RFC 9937, which replaces RFC 6937): during fast recovery, each
 * acknowledgement determines what may be sent, so that the window shrinks gradually to the target
 * of the congestion controller, and never by a burst or a silence. The caller sends while
 * tcp_in_flight() is below cwnd.
 */
#include "tcp_priv.h"

/* Returns the bytes that the peer has, as far as it reported them, from a fixed point on. */
static uint32_t
reported(const struct tcp_conn *c)
{
	return c->snd_una + c->sacked_out;
}

/* Returns the bytes that this acknowledgement reports as delivered (DeliveredData). */
static uint32_t
newly_delivered(const struct tcp_conn *c, const struct tcp_acked *a)
{
	uint32_t before = a->reported;

	return tcp_seq_lt(before, reported(c)) ? reported(c) - before : 0;
}

/* Returns the bytes sent since recovery began (prr_out). */
static uint32_t
sent_in_recovery(const struct tcp_conn *c)
{
	return c->snd_nxt - c->prr.snd_nxt + c->prr.retransmitted;
}

/* The estimate of RFC 9937 needs SACK. Without it, and when the target is not below the bytes in
 * flight, the target is the window. */
void
tcp_prr_begin(struct tcp_conn *c, const struct tcp_acked *a)
{
	uint32_t flight = c->snd_nxt - c->snd_una - c->sacked_out + newly_delivered(c, a);

	c->prr = (struct tcp_prr){
		.on = c->flags & F_SACK && c->cwnd < flight,
		.target = c->cwnd,
		.flight = flight,
		.snd_nxt = c->snd_nxt,
	};
	if (c->prr.on)
		c->cwnd = tcp_in_flight(c);
}

void
tcp_prr_end(struct tcp_conn *c)
{
	if (c->prr.on)
		c->cwnd = c->prr.target;
	c->prr.on = false;
}

/* RFC 9937 6. While more than the target is in flight, the bytes sent keep the proportion of target
 * and flight; below it, slow start, by no more than was delivered unless the acknowledgement made
 * progress without a new loss (SafeACK). */
void
tcp_prr_ack(struct tcp_conn *c, const struct tcp_acked *a)
{
	struct tcp_prr *p = &c->prr;
	uint32_t pipe = tcp_in_flight(c), news = newly_delivered(c, a), out, most;
	bool safe = a->bytes && !p->loss;

	p->loss = false;
	if (!p->on || !news)
		return;
	p->delivered += news;
	out = sent_in_recovery(c);
	if (pipe > p->target) {
		most = (uint32_t)(((uint64_t)p->delivered * p->target + p->flight - 1) / p->flight);
		most = most > out ? most - out : 0;
	} else {
		most = p->delivered > out ? SK_MAX(p->delivered - out, news) : news;
		most = SK_MIN(most + (safe ? c->emss : 0), p->target - pipe);
	}
	c->cwnd = SK_MAX(pipe + most, c->emss);
}
