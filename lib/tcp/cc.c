/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that the congestion controllers share (RFC 5681, 6928), and the controller "none": a
 * large fixed window for networks without loss. */
#include <string.h>

#include "tcp_priv.h"

static void
none_init(struct tcp_conn *c)
{
	c->cwnd = UINT32_MAX / 4;
}

static void
none_acked(struct tcp_conn *c, uint64_t now, uint32_t bytes, bool limited)
{
}

static void
none_event(struct tcp_conn *c, uint64_t now)
{
}

static const struct tcp_cc_ops none_ops = {
	.name = "none",
	.init = none_init,
	.acked = none_acked,
	.loss = none_event,
	.ecn_echo = none_event,
	.timeout = none_event,
	.idle = none_event,
};

const struct tcp_cc_ops *
tcp_cc_find(const char *name)
{
	static const struct tcp_cc_ops *const all[] = {&tcp_cc_cubic, &tcp_cc_dctcp, &none_ops};

	for (unsigned i = 0; i < SK_ARRAY_LEN(all); i++) {
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	}
	return NULL;
}

uint32_t
tcp_cc_initial_window(const struct tcp_conn *c)
{
	return TCP_IW_SEGS * c->emss;
}

void
tcp_cc_idle_restart(struct tcp_conn *c, uint64_t now)
{
	c->cwnd = SK_MIN(c->cwnd, tcp_cc_initial_window(c));
}

void
tcp_cc_collapse(struct tcp_conn *c)
{
	c->cwnd = tcp_in_flight(c) + c->emss;
}

uint32_t
tcp_cc_slow_start(struct tcp_conn *c, uint32_t bytes)
{
	uint32_t step;

	if (c->cwnd >= c->ssthresh)
		return bytes;
	step = SK_MIN(bytes, c->ssthresh - c->cwnd);
	c->cwnd += step;
	return bytes - step;
}
