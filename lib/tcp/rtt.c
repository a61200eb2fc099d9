/* SPDX-License-Identifier: BSD-3-Clause */
/* Round-trip time and RTO (RFC 6298), and the windowed minimum that RACK uses (RFC 8985 6.1). */
#include "tcp_priv.h"

void
tcp_rtt_init(struct tcp_conn *c)
{
	c->srtt = c->rttvar = 0;
	c->rto = c->s->cfg.rto_initial_ns;
}

/*
 * RFC 6298 2.2, 2.3. The caller takes one sample per round trip (RFC 7323 appendix G warns against
 * more samples with these weights).
 */
void
tcp_rtt_sample(struct tcp_conn *c, uint64_t now, uint64_t rtt)
{
	const struct tcp_config *cfg = &c->s->cfg;
	uint64_t off;

	if (!c->srtt) {
		c->srtt = SK_MAX(rtt, 1u);
		c->rttvar = rtt / 2;
	} else {
		off = rtt > c->srtt ? rtt - c->srtt : c->srtt - rtt;
		c->rttvar = (3 * c->rttvar + off) / 4;
		c->srtt = SK_MAX((7 * c->srtt + rtt) / 8, 1u);
	}
	c->rto = c->srtt + SK_MAX(4 * c->rttvar, (uint64_t)SK_WHEEL_TICK_NS);
	c->rto = SK_MIN(SK_MAX(c->rto, cfg->rto_min_ns), cfg->rto_max_ns);
}

void
tcp_rtt_min(struct tcp_conn *c, uint64_t now, uint64_t rtt)
{
	struct tcp_rack *r = &c->rack;

	if (!r->min_rtt || rtt <= r->min_rtt || now - r->min_rtt_at > TCP_MIN_RTT_WINDOW) {
		r->min_rtt = SK_MAX(rtt, 1u);
		r->min_rtt_at = now;
	}
}

void
tcp_rtt_wait(struct tcp_stack *s, uint64_t wait)
{
	int64_t off;

	if ((wait | s->wait_ns) < SK_WHEEL_TICK_NS)
		return; /* too short for timers to see */
	off = (int64_t)SK_MIN(wait, TCP_WAIT_MAX_NS) - (int64_t)s->wait_ns;
	s->wait_ns += (uint64_t)(off / 8);
}

void
tcp_rtt_first(struct tcp_conn *c, uint64_t now)
{
	tcp_rtt_sample(c, now, now - c->last_tx);
	tcp_rtt_min(c, now, now - c->last_tx);
}

uint64_t
tcp_rtt_rto(const struct tcp_conn *c)
{
	uint64_t rto = SK_MAX(c->rto, 3 * c->s->wait_ns) << c->backoff;

	return SK_MIN(rto, c->s->cfg.rto_max_ns);
}
