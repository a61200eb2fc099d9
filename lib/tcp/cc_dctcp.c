/* SPDX-License-Identifier: BSD-3-Clause */
/* DCTCP (RFC 8257): the window shrinks in proportion to the fraction of marked bytes. DCTCP reacts
 * to loss, and grows, as Reno does. */
#include "tcp_priv.h"

#define DCTCP_G   (1.0 / 16.0) /* section 4.2 */
#define DCTCP_MIN 2            /* segments */

static void
dctcp_init(struct tcp_conn *c)
{
	c->cc.dctcp = (struct tcp_cc_dctcp){.alpha = 1.0, .window_end = c->snd_nxt};
	c->cwnd = tcp_cc_initial_window(c);
}

static void
dctcp_acked(struct tcp_conn *c, uint64_t now, uint32_t bytes, bool limited)
{
	struct tcp_cc_dctcp *d = &c->cc.dctcp;

	if (!limited)
		return;
	d->grown += tcp_cc_slow_start(c, bytes);
	if (d->grown >= c->cwnd) { /* RFC 5681 3.1, counting bytes */
		d->grown -= c->cwnd;
		c->cwnd = SK_MIN(c->cwnd + c->emss, UINT32_MAX / 4);
	}
}

/* Estimates the fraction of marked bytes once per window of data (section 3.3, steps 1 to 8). */
static void
dctcp_feedback(struct tcp_conn *c, uint32_t bytes, bool ece)
{
	struct tcp_cc_dctcp *d = &c->cc.dctcp;

	d->acked += bytes;
	if (ece)
		d->marked += bytes;
	if (!tcp_seq_lt(d->window_end, c->snd_una) || !d->acked)
		return;
	d->alpha = d->alpha * (1 - DCTCP_G) + DCTCP_G * (double)d->marked / (double)d->acked;
	d->acked = d->marked = 0;
	d->window_end = c->snd_nxt;
}

/* Reduces the window by the estimate (section 3.3, step 9). */
static void
dctcp_echo(struct tcp_conn *c, uint64_t now)
{
	uint32_t w = (uint32_t)(c->cwnd * (1 - c->cc.dctcp.alpha / 2));

	c->cwnd = c->ssthresh = SK_MAX(w, DCTCP_MIN * c->emss);
	c->cc.dctcp.grown = 0;
}

static void
cc_dctcp_reduce(struct tcp_conn *c)
{
	uint32_t flight = c->snd_nxt - c->snd_una; /* RFC 5681's FlightSize */

	c->ssthresh = SK_MAX(SK_MIN(flight, c->cwnd) / 2, DCTCP_MIN * c->emss);
	c->cc.dctcp.grown = 0;
}

static void
dctcp_loss(struct tcp_conn *c, uint64_t now) /* section 3.5 */
{
	cc_dctcp_reduce(c);
	c->cwnd = c->ssthresh;
}

static void
dctcp_timeout(struct tcp_conn *c, uint64_t now)
{
	cc_dctcp_reduce(c);
	tcp_cc_collapse(c);
}

const struct tcp_cc_ops tcp_cc_dctcp = {
	.name = "dctcp",
	.ecn = true,
	.precise_ecn = true,
	.init = dctcp_init,
	.acked = dctcp_acked,
	.ecn_feedback = dctcp_feedback,
	.loss = dctcp_loss,
	.ecn_echo = dctcp_echo,
	.timeout = dctcp_timeout,
	.idle = tcp_cc_idle_restart,
};
