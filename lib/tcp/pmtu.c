/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICMP errors: a path MTU that becomes smaller (RFC 1191, RFC 8201), and unreachable destinations
 * (RFC 9293 3.9.2.2). Anybody can forge them, so each must quote a sequence number in flight
 * (RFC 5927 4.1), and a report of a small MTU must agree with what TCP observes:
 *
 * - A report that contradicts nothing is used at once: the peer has acknowledged no larger segment,
 *   and the MTU is one that hosts must accept (576 bytes).
 * - Any other report waits for evidence (RFC 5927 7.2): it quotes the first segment in flight, and
 *   that one was retransmitted, or its timeout expires. An acknowledgement of the segment refutes
 *   the report.
 * - A smaller MTU lasts for TCP_PMTU_NS (RFC 1191 6.3, RFC 8201 5.2), so that a forged
 *   report that was used does not last for ever.
 * - Below 576 bytes, the congestion window shrinks with the segment size: the sender does not send
 *   more packets than before.
 */
#include "tcp_priv.h"

/* Returns the payload that a segment of a connection can carry in a packet of `mtu` bytes. */
static uint32_t
pmtu_payload(const struct tcp_conn *c, uint32_t mtu)
{
	return mtu - (sk_addr_is_v4(&c->tuple.raddr) ? IP4_LEN : IP6_LEN) - TCP_LEN -
	       (c->flags & F_TS ? TCP_TS_LEN : 0);
}

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

static uint32_t
pmtu_scale(uint32_t window, uint32_t now, uint32_t before)
{
	return SK_MAX((uint32_t)((uint64_t)window * now / before), TCP_IW_SEGS * now);
}

/* Uses a smaller path MTU. */
static void
pmtu_shrink(struct tcp_conn *c, uint64_t now, uint32_t mtu)
{
	uint32_t before = c->emss;

	c->pmtu.claim = 0;
	c->mtu = mtu;
	c->pmtu.until = now + TCP_PMTU_NS;
	tcp_trace(c, TCP_PMTU);
	if (c->state >= TCPS_ESTABLISHED)
		tcp_timers_alive(c, now);
	if (!tcp_conn_set_emss(c))
		return;
	c->rack.largest = (uint16_t)SK_MIN((uint32_t)c->rack.largest, c->emss);
	if (mtu < TCP_MTU_HOSTS_V4) {
		tcp_prr_end(c);
		c->cwnd = pmtu_scale(c->cwnd, c->emss, before);
		c->ssthresh = pmtu_scale(c->ssthresh, c->emss, before);
	}
	resend_too_long(c);
	tcp_conn_event(c, TCP_EV_EMSS);
}

/* Returns whether a report that quotes `seq` concerns the first segment in flight. */
static bool
quotes_head(const struct tcp_conn *c, uint32_t seq, uint32_t mtu)
{
	const struct tcp_rec *head = c->seg_head;

	return head != NULL && seq - head->seq < head->seg_len &&
	       head->seg_len > pmtu_payload(c, mtu);
}

/* Returns whether a report may be used before a timeout. */
static bool
pmtu_plausible(const struct tcp_conn *c, uint32_t seq, uint32_t mtu)
{
	if (mtu >= TCP_MTU_HOSTS_V4 && pmtu_payload(c, mtu) >= c->rack.largest)
		return true;
	return quotes_head(c, seq, mtu) && c->seg_head->flags & R_RETRANS;
}

/* Returns whether an ICMP error quotes a segment in flight. */
static bool
in_flight(const struct tcp_conn *c, uint32_t seq)
{
	return c->state != TCPS_CLOSED && c->state != TCPS_TIME_WAIT &&
	       tcp_seq_le(c->snd_una, seq) && tcp_seq_lt(seq, c->snd_nxt);
}

void
tcp_icmp_mtu(struct tcp_conn *c, uint64_t now, uint32_t seq, uint32_t mtu)
{
	bool v4 = sk_addr_is_v4(&c->tuple.raddr);

	c->s->now = now;
	if (v4 && mtu == 0) /* of a router older than RFC 1191 */
		mtu = TCP_MTU_HOSTS_V4;
	/* RFC 8201 4: a report of less than each link must carry is void. */
	if (!in_flight(c, seq) || mtu < (v4 ? TCP_MTU_MIN_V4 : TCP_MTU_MIN_V6) || mtu >= c->mtu)
		return;
	if (pmtu_plausible(c, seq, mtu)) {
		pmtu_shrink(c, now, mtu);
	} else if (!c->pmtu.claim || tcp_seq_lt(c->pmtu.seq, c->snd_una) ||
		   tcp_seq_le(seq, c->pmtu.seq)) {
		c->pmtu.claim = (uint16_t)SK_MIN(mtu, (uint32_t)UINT16_MAX);
		c->pmtu.seq = seq;
	}
}

void
tcp_pmtu_timeout(struct tcp_conn *c, uint64_t now)
{
	if (c->pmtu.claim && quotes_head(c, c->pmtu.seq, c->pmtu.claim))
		pmtu_shrink(c, now, c->pmtu.claim);
	c->pmtu.claim = 0;
}

void
tcp_pmtu_expire(struct tcp_conn *c)
{
	c->pmtu.until = 0;
	c->mtu = c->pmtu.link;
	if (tcp_conn_set_emss(c))
		tcp_conn_event(c, TCP_EV_EMSS);
}

void
tcp_set_link_mtu(struct tcp_conn *c, uint64_t now, uint32_t mtu)
{
	c->s->now = now;
	if (c->pmtu.link == mtu || c->state == TCPS_CLOSED || c->state == TCPS_TIME_WAIT)
		return;
	c->pmtu.link = mtu;
	if (mtu < c->mtu)
		pmtu_shrink(c, now, mtu);
	else if (!c->pmtu.until)
		tcp_pmtu_expire(c);
}

void
tcp_icmp_unreachable(struct tcp_conn *c, uint64_t now, uint32_t seq, bool hard)
{
	c->s->now = now;
	if (!in_flight(c, seq))
		return;
	tcp_trace(c, TCP_UNREACHABLE);
	/* RFC 5927 5.2: a connection that both sides have opened lives on. */
	if (hard && c->state < TCPS_ESTABLISHED)
		tcp_conn_end(c, -ECONNREFUSED);
	else
		c->soft_error = hard ? ECONNREFUSED : EHOSTUNREACH;
}
