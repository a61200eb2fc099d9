/* SPDX-License-Identifier: BSD-3-Clause */
/* A path MTU that becomes smaller (RFC 1191, RFC 8201), and the checks of the report (RFC 5927
 * 7). */
#include "tcp_priv.h"

/* Retransmits the segments that exceed the new MTU, in smaller segments. The path lost them, but
 * not by congestion, so the congestion window stays. */
static void
resend_too_long(struct tcp_conn *c)
{
	for (struct tcp_rec *r = c->seg_head; r != NULL; r = r->seg_next) {
		if (r->seg_len > c->emss)
			tcp_loss_mark(c, r);
	}
	if (!c->lost_out)
		return;
	if (c->ca == CA_OPEN || c->ca == CA_CWR)
		c->ca = CA_RECOVERY;
	c->flags &= ~F_UNDO;
	c->recover = c->snd_nxt;
	c->todo |= DO_RTX_FIRST;
	tcp_conn_wake(c);
}

void
tcp_icmp_mtu(struct tcp_conn *c, uint64_t now, uint32_t seq, uint32_t mtu)
{
	uint32_t least = sk_addr_is_v4(&c->tuple.raddr) ? TCP_MTU_MIN_V4 : TCP_MTU_MIN_V6;

	c->s->now = now;
	if (c->state == TCPS_CLOSED || c->state == TCPS_TIME_WAIT ||
		!(tcp_seq_le(c->snd_una, seq) && tcp_seq_lt(seq, c->snd_nxt)))
		return;
	mtu = SK_MAX(mtu, least);
	if (mtu >= c->mtu)
		return;
	c->mtu = mtu;
	tcp_count(c->s, TCP_PMTU);
	if (!tcp_conn_set_emss(c))
		return;
	resend_too_long(c);
	tcp_conn_event(c, TCP_EV_EMSS);
}
