/* SPDX-License-Identifier: BSD-3-Clause */
/* CUBIC (RFC 9438). As in the RFC, windows are in segments (of emss bytes) and times in seconds. */
#include <math.h>

#include "tcp_priv.h"

#define CUBIC_C     0.4
#define CUBIC_BETA  0.7
#define CUBIC_ALPHA (3.0 * (1.0 - CUBIC_BETA) / (1.0 + CUBIC_BETA)) /* section 4.3 */
#define CUBIC_MIN   2                                               /* segments */

static double
segments(const struct tcp_conn *c, uint32_t bytes)
{
	return (double)bytes / c->emss;
}

static void
cubic_init(struct tcp_conn *c)
{
	c->cc.cubic = (struct tcp_cc_cubic){0};
	c->cwnd = tcp_cc_initial_window(c);
}

/* Section 4.2: figure 1, W_cubic(t) = C (t - K)^3 + W_max. */
static double
w_cubic(const struct tcp_cc_cubic *q, double t)
{
	double d = t - q->k;

	return CUBIC_C * d * d * d + q->w_max;
}

static void
start_epoch(struct tcp_conn *c, uint64_t now)
{
	struct tcp_cc_cubic *q = &c->cc.cubic;
	double w = segments(c, c->cwnd);

	q->epoch = now;
	q->w_est = w;
	if (q->w_max < w) { /* no congestion yet, or slow start exceeded it (section 4.8) */
		q->w_max = w;
		q->k = 0;
	} else {
		q->k = cbrt((q->w_max - w) / CUBIC_C); /* figure 2 */
	}
}

static void
avoid(struct tcp_conn *c, uint64_t now, uint32_t bytes)
{
	struct tcp_cc_cubic *q = &c->cc.cubic;
	double w = segments(c, c->cwnd), acked = segments(c, bytes), t, target, grow;

	if (!q->epoch)
		start_epoch(c, now);
	t = (double)(now - q->epoch) * 1e-9;
	/* Section 4.3, the Reno-friendly region: beyond the window before the reduction, w_est
	 * grows as Reno's window does. */
	q->w_est += (q->w_est < q->prior ? CUBIC_ALPHA : 1.0) * acked / w;
	if (w_cubic(q, t) < q->w_est) {
		grow = q->w_est > w ? q->w_est - w : 0;
	} else { /* sections 4.4 and 4.5 */
		target = w_cubic(q, t + (double)c->srtt * 1e-9);
		target = SK_MIN(SK_MAX(target, w), 1.5 * w);
		grow = (target - w) / w * acked;
	}
	grow = grow * c->emss + q->frac;
	q->frac = grow - (uint32_t)grow;
	c->cwnd = SK_MIN(c->cwnd + (uint32_t)grow, UINT32_MAX / 4);
}

static void
cubic_acked(struct tcp_conn *c, uint64_t now, uint32_t bytes, bool limited)
{
	if (!limited) /* section 5.8: an unused window is no evidence */
		return;
	bytes = tcp_cc_slow_start(c, bytes);
	if (bytes)
		avoid(c, now, bytes);
}

/* Reduces the window (section 4.6), with fast convergence (section 4.7). */
static void
cc_cubic_reduce(struct tcp_conn *c)
{
	struct tcp_cc_cubic *q = &c->cc.cubic;
	double w = segments(c, c->cwnd);
	uint32_t flight = c->snd_nxt - c->snd_una;

	q->w_max = w < q->w_max ? w * (1.0 + CUBIC_BETA) / 2 : w;
	q->prior = w;
	q->epoch = 0;
	q->frac = 0;
	c->ssthresh = (uint32_t)(SK_MIN(flight, c->cwnd) * CUBIC_BETA);
	c->ssthresh = SK_MAX(c->ssthresh, CUBIC_MIN * c->emss);
}

static void
cubic_congestion(struct tcp_conn *c, uint64_t now)
{
	cc_cubic_reduce(c);
	c->cwnd = c->ssthresh;
}

static void
cubic_timeout(struct tcp_conn *c, uint64_t now)
{
	cc_cubic_reduce(c);
	tcp_cc_collapse(c);
}

/* Restarts the epoch: time without data does not count as time since the reduction (section
 * 4.2.1). */
static void
cubic_idle(struct tcp_conn *c, uint64_t now)
{
	c->cc.cubic.epoch = 0;
	tcp_cc_idle_restart(c, now);
}

const struct tcp_cc_ops tcp_cc_cubic = {
	.name = "cubic",
	.init = cubic_init,
	.acked = cubic_acked,
	.loss = cubic_congestion,
	.ecn_echo = cubic_congestion,
	.timeout = cubic_timeout,
	.idle = cubic_idle,
};
