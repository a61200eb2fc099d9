/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loss recovery around RACK: the calls of the congestion controller (RFC 5681, RFC 8985 6.3 and
 * 7.4, RFC 3168 6.1.2), the retransmission timeout (RFC 6298 5), and the undoing of a reduction
 * when DSACK proves that nothing was lost (RFC 3708).
 */
#include "tcp_priv.h"

void
tcp_loss_mark(struct tcp_conn *c, struct tcp_rec *seg)
{
	if (seg->flags & (R_LOST | R_SACKED))
		return;
	seg->flags |= R_LOST;
	c->prr.loss = true;
	c->lost_out += seg->seg_len;
	c->fast = false;
	if (c->lost_hint == NULL || tcp_seq_lt(seg->seq, c->lost_hint->seq))
		c->lost_hint = seg;
}

static void
remember_for_undo(struct tcp_conn *c)
{
	c->prior_cwnd = c->cwnd;
	c->prior_ssthresh = c->ssthresh;
	c->undo_retrans = 0;
	c->flags |= F_UNDO;
}

static void
enter_recovery(struct tcp_conn *c, const struct tcp_acked *a)
{
	if (c->ca == CA_OPEN) {
		remember_for_undo(c);
		c->s->cc->loss(c, a->now);
	}
	tcp_prr_begin(c, a);
	c->ca = CA_RECOVERY;
	c->recover = c->snd_nxt;
	c->todo |= DO_RTX_FIRST;
}

static void
leave_recovery(struct tcp_conn *c)
{
	tcp_prr_end(c);
	if (c->ca == CA_RECOVERY && c->rack.reo_wnd_persist && --c->rack.reo_wnd_persist == 0)
		c->rack.reo_wnd_mult = 1;
	c->ca = CA_OPEN;
}

static void
ecn_echo(struct tcp_conn *c, const struct tcp_acked *a)
{
	const struct tcp_cc_ops *cc = c->s->cc;

	if (cc->ecn_feedback != NULL)
		cc->ecn_feedback(c, a->bytes, a->ece);
	if (!a->ece)
		return;
	tcp_trace(c, TCP_ECN_ECHO);
	if (c->ca != CA_OPEN)
		return; /* once per window of data */
	cc->ecn_echo(c, a->now);
	c->ca = CA_CWR;
	c->recover = c->snd_nxt;
	c->flags |= F_SEND_CWR;
	c->flags &= ~F_UNDO;
}

/* Processes a DSACK, which reports an unnecessary retransmission. When all retransmissions were
 * unnecessary, nothing was lost: the reduction is undone. */
static void
spurious(struct tcp_conn *c)
{
	tcp_trace(c, TCP_SPURIOUS);
	tcp_rack_dsack(c);
	if (!(c->flags & F_UNDO) || !c->undo_retrans || --c->undo_retrans)
		return;
	tcp_prr_end(c);
	c->cwnd = SK_MAX(c->cwnd, c->prior_cwnd);
	c->ssthresh = SK_MAX(c->ssthresh, c->prior_ssthresh);
	c->flags &= ~F_UNDO;
}

void
tcp_loss_after_ack(struct tcp_conn *c, const struct tcp_acked *a)
{
	bool grow = a->bytes && (c->ca == CA_OPEN || c->ca == CA_LOSS);
	/* After a timeout, the window is smaller than what must be sent again, so that it limits
	 * even a sender without new data. */
	bool limited = c->flags & F_CWND_LIMITED || c->ca == CA_LOSS;

	if (a->dsack)
		spurious(c);
	if (c->ca != CA_OPEN && tcp_seq_le(c->recover, c->snd_una))
		leave_recovery(c);
	if (c->flags & F_ECN)
		ecn_echo(c, a);
	if (c->lost_out && (c->ca == CA_OPEN || c->ca == CA_CWR))
		enter_recovery(c, a);
	if (c->ca == CA_RECOVERY)
		tcp_prr_ack(c, a);
	if (grow && (c->ca == CA_OPEN || c->ca == CA_LOSS))
		c->s->cc->acked(c, a->now, a->bytes, limited);
}

void
tcp_loss_detect(struct tcp_conn *c, uint64_t now)
{
	tcp_rack_detect(c, now);
	tcp_loss_after_ack(
		c, &(struct tcp_acked){.now = now, .reported = c->snd_una + c->sacked_out});
}

/* Counts a duplicate acknowledgement of a peer without SACK: it stands for a segment that has left
 * the network (RFC 5681 3.2, RFC 6582). */
void
tcp_loss_dupack(struct tcp_conn *c, const struct tcp_acked *a)
{
	uint32_t most = c->snd_nxt - c->snd_una;

	if (c->seg_head == NULL)
		return;
	most -= SK_MIN(most, c->seg_head->seg_len);
	c->sacked_out = SK_MIN(c->sacked_out + c->emss, most);
	if (c->dupacks < UINT8_MAX)
		c->dupacks++;
	if (c->dupacks == TCP_DUP_THRESH && (c->ca == CA_OPEN || c->ca == CA_CWR)) {
		tcp_loss_mark(c, c->seg_head);
		enter_recovery(c, a);
	}
}

/* Detects that the segment of the probe was lost and that the probe repaired it (RFC 8985 7.4). */
void
tcp_loss_tlp_ack(struct tcp_conn *c, uint32_t ack, const struct tcp_acked *a)
{
	if (!(c->flags & F_TLP_OUT) || tcp_seq_lt(ack, c->tlp_end))
		return;
	if (c->flags & F_TLP_RETRANS) {
		if (a->dsack) {
			c->flags &= ~F_TLP_OUT; /* both copies arrived */
		} else if (tcp_seq_lt(c->tlp_end, ack)) {
			c->flags &= ~F_TLP_OUT;
			if (c->ca == CA_OPEN)
				c->s->cc->loss(c, a->now);
		} else if (!a->bytes && !a->sacked) {
			/* A duplicate acknowledgement for the probe alone. */
			c->flags &= ~F_TLP_OUT;
		}
	} else {
		c->flags &= ~F_TLP_OUT;
	}
}

/* Marks the first segment, and all that were sent more than a round trip ago (RFC 8985 6.3). */
static void
mark_on_rto(struct tcp_conn *c, uint64_t now)
{
	uint64_t age = c->rack.rtt + c->srtt / 4;

	if (c->seg_head != NULL && c->seg_head->flags & R_SACKED)
		tcp_sack_forget(c);
	for (struct tcp_rec *r = c->seg_head; r != NULL; r = r->seg_next) {
		if (r == c->seg_head || r->sent_at + age <= now)
			tcp_loss_mark(c, r);
	}
}

/*
 * RFC 3522 3.2: the first acknowledgement after a timeout echoes a timestamp older than that of the
 * retransmission. So the original had arrived, and one of the two sides had paused. RFC 4015 3: the
 * window becomes what it was, and no segment in flight counts as lost.
 */
void
tcp_loss_judge_rto(struct tcp_conn *c, const struct tcp_acked *a)
{
	if (!a->bytes || !(c->flags & F_EIFEL))
		return;
	c->flags &= ~F_EIFEL;
	if (c->ca != CA_LOSS || !(c->flags & F_UNDO) || !a->ts ||
		(int32_t)(a->ts_ecr - c->eifel_ts) >= 0)
		return;
	tcp_trace(c, TCP_SPURIOUS);
	for (struct tcp_rec *r = c->seg_head; r != NULL; r = r->seg_next)
		r->flags &= ~R_LOST;
	c->lost_out = 0;
	c->lost_hint = NULL;
	c->cwnd = SK_MAX(c->cwnd, c->prior_cwnd);
	c->ssthresh = SK_MAX(c->ssthresh, c->prior_ssthresh);
	c->flags &= ~F_UNDO;
	c->ca = CA_OPEN;
}

/* Reduces the window at the first of several timeouts. A timeout during recovery is plausible, so
 * its reduction is not undone. */
static void
enter_loss(struct tcp_conn *c, uint64_t now)
{
	c->flags &= ~(F_UNDO | F_EIFEL);
	tcp_prr_end(c);
	if (c->ca == CA_OPEN) {
		remember_for_undo(c);
		c->flags |= F_EIFEL;
		c->eifel_ts = tcp_ticks(c, now);
	}
	c->s->cc->timeout(c, now);
}

/* Ends the connection when it was sent too often, and returns whether it did. A peer may shrink its
 * window to 0 behind segments in flight (RFC 9293 3.8.6). The retransmissions then are probes: a
 * peer that answers them is alive, and the time of a closed window counts instead. */
static bool
give_up(struct tcp_conn *c, uint64_t now, bool opening)
{
	const struct tcp_config *cfg = &c->s->cfg;

	if (!opening && !c->snd_wnd) {
		if (tcp_timers_window_shrunk(c, now))
			return true;
		if (c->answered)
			c->retries = 0;
	}
	c->answered = false;
	if (c->retries < (opening ? cfg->syn_retries : cfg->data_retries))
		return false;
	tcp_trace(c, TCP_TIMED_OUT);
	tcp_conn_end(c, c->soft_error ? -c->soft_error : -ETIMEDOUT);
	return true;
}

void
tcp_loss_rto(struct tcp_conn *c, uint64_t now)
{
	bool opening = c->state == TCPS_SYN_SENT || c->state == TCPS_SYN_RCVD;

	tcp_trace(c, TCP_RTO);
	c->n_rtos++;
	if (give_up(c, now, opening))
		return;
	c->retries++;
	if (c->backoff < 16)
		c->backoff++; /* RFC 6298 5.5 */
	c->flags &= ~F_TLP_OUT;
	tcp_conn_wake(c);
	if (opening) {
		c->todo |= DO_SYN;
		return;
	}
	if (c->seg_head == NULL) {
		c->todo |= DO_FIN_AGAIN;
		return;
	}
	tcp_pmtu_timeout(c, now);
	if (c->state == TCPS_CLOSED)
		return;
	mark_on_rto(c, now);
	if (c->ca != CA_LOSS)
		enter_loss(c, now);
	c->ca = CA_LOSS;
	c->recover = c->snd_nxt;
	c->todo |= DO_RTX_FIRST;
}
