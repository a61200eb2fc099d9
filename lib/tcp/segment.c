/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Builds and sends one segment, or one run of equal segments for TSO. Each function either sends
 * and notes that in the connection, or changes nothing: therefore -EAGAIN needs no undoing.
 */
#include "tcp_priv.h"

#define TSO_LEAST 256 /* bytes of a segment: some NICs cut none that are smaller */

/* Returns the window to advertise. Its right edge moves by full segments (or half the buffer), and
 * never back (RFC 9293 3.8.6.2.2). */
static uint16_t
window_field(struct tcp_conn *c)
{
	uint32_t buf = c->s->cfg.rcv_buf, free = buf > c->rcv_unread ? buf - c->rcv_unread : 0;
	uint32_t edge = c->rcv_nxt + free, field;

	if (!tcp_seq_lt(edge, c->rcv_adv + SK_MIN(buf / 2, (uint32_t)c->rcv_mss)))
		c->rcv_adv = edge;
	field = (c->rcv_adv - c->rcv_nxt) >> c->rcv_wscale;
	if (field > 0xffff) {
		field = 0xffff;
		c->rcv_adv = c->rcv_nxt + (field << c->rcv_wscale);
	}
	return (uint16_t)field;
}

void
tcp_seg_header(struct tcp_conn *c, uint64_t now, struct tcp_out *out, uint8_t flags, uint32_t seq)
{
	struct wire_tcp *t = &out->tcp;

	t->sport = c->tuple.lport;
	t->dport = c->tuple.rport;
	t->seq = seq;
	t->ack = c->rcv_nxt;
	t->flags = flags;
	if (c->flags & F_ECHO_CE && !(flags & (TCP_SYN | TCP_RST)))
		t->flags |= TCP_ECE;
	t->hdr_len = 0;
	t->window = window_field(c);
	t->mss = 0;
	t->wscale = 0xff;
	t->sack_ok = false;
	t->ts = c->flags & F_TS;
	t->ts_val = tcp_ticks(c, now);
	t->ts_ecr = c->ts_recent;
	t->nsack = 0;
	out->first = NULL;
	out->off = out->len = out->gso_size = 0;
	out->ecn = IP_ECN_NOT;
}

/* Adds as many SACK blocks as fit into `room` bytes of options. */
static void
tcp_seg_sack(struct tcp_conn *c, struct tcp_out *out, uint32_t room)
{
	struct wire_tcp *t = &out->tcp;
	unsigned most = room < 12 ? 0 : (room - 4) / 8;

	if (c->flags & F_DSACK && most)
		t->sack[t->nsack++] = c->dsack;
	for (unsigned i = 0; i < c->nsack && t->nsack < SK_MIN(most, TCP_MAX_SACK); i++)
		t->sack[t->nsack++] = c->sack[i];
}

/* Passes the segment to the owner. Returns 0, or -EAGAIN: the connection is unchanged. */
static int
tcp_seg_emit(struct tcp_conn *c, struct tcp_out *out)
{
	int rc = c->s->ops.output(c->s->ctx, c, &c->tuple, out);

	if (rc == -EAGAIN) {
		tcp_count(c->s, TCP_OUTPUT_BUSY);
		return rc;
	}
	if (rc < 0) {
		/* The segment is as good as lost on the wire. A connection that times out reports
		 * this error. */
		c->soft_error = (uint16_t)-rc;
	}
	c->todo &= ~(DO_ACK | DO_ACK_NOW);
	c->due[T_DELACK] = SK_NEVER;
	c->rcv_acked = c->rcv_nxt;
	if (out->tcp.nsack)
		c->flags &= ~F_DSACK;
	return 0;
}

static uint32_t
option_room(const struct tcp_conn *c)
{
	return TCP_MAX - TCP_LEN - (c->flags & F_TS ? TCP_TS_LEN : 0);
}

int
tcp_seg_pure_ack(struct tcp_conn *c, uint64_t now)
{
	struct tcp_out out;

	tcp_seg_header(c, now, &out, TCP_ACK, c->snd_nxt);
	if (c->nsack || c->flags & F_DSACK)
		tcp_seg_sack(c, &out, option_room(c));
	return tcp_seg_emit(c, &out);
}

/* Sends a keepalive or a window probe: no data, at a sequence number that the peer has to answer
 * (RFC 9293 3.8.4). TCP cuts no record for it. */
int
tcp_seg_probe(struct tcp_conn *c, uint64_t now)
{
	struct tcp_out out;

	tcp_seg_header(c, now, &out, TCP_ACK, c->snd_una - 1);
	return tcp_seg_emit(c, &out);
}

int
tcp_seg_syn(struct tcp_conn *c, uint64_t now)
{
	const struct tcp_config *cfg = &c->s->cfg;
	bool passive = c->state == TCPS_SYN_RCVD;
	struct tcp_out out;
	int rc;

	if (!passive)
		c->rcv_adv = c->rcv_nxt; /* rcv_nxt is not valid before the peer's SYN */
	tcp_seg_header(c, now, &out, passive ? TCP_SYN | TCP_ACK : TCP_SYN, c->iss);
	out.tcp.window = SK_MIN(cfg->rcv_buf, 0xffffu);
	if (passive)
		c->rcv_adv = c->rcv_nxt + out.tcp.window;
	else
		out.tcp.ack = out.tcp.ts_ecr = 0;
	out.tcp.mss = c->pmtu.link - TCP_LEN - (sk_addr_is_v4(&c->tuple.raddr) ? IP4_LEN : IP6_LEN);
	out.tcp.sack_ok = passive ? c->flags & F_SACK : cfg->sack;
	if (!passive || c->flags & F_WSCALE)
		out.tcp.wscale = cfg->rcv_wscale;
	/* RFC 3168 6.1.1. After a SYN without an answer, a middlebox may have dropped it for these
	 * bits. */
	if (passive && c->flags & F_ECN)
		out.tcp.flags |= TCP_ECE;
	else if (!passive && cfg->ecn && !c->retries)
		out.tcp.flags |= TCP_ECE | TCP_CWR;
	rc = tcp_seg_emit(c, &out);
	if (rc)
		return rc;
	c->todo &= ~DO_SYN;
	c->snd_nxt = c->iss + 1;
	c->last_tx = now;
	tcp_timers_sent(c, now);
	return 0;
}

/* ---- Data ---- */

/* Returns the bytes of the whole records from `r` on that fit into `limit`; sets *end to the first
 * record that does not. */
static uint32_t
segment_gather(struct tcp_rec *r, uint32_t limit, struct tcp_rec **end)
{
	uint32_t n = 0;

	while (r != NULL && r->len <= limit - n) {
		n += r->len;
		r = r->next;
	}
	*end = r;
	return n;
}

/* Returns whether the peer has not acknowledged the last cut, so that others may be live, too. An
 * old cut_end is far from the sequence numbers in flight. */
static bool
cuts_live(const struct tcp_conn *c)
{
	return c->cut_end - c->snd_una - 1 < c->snd_nxt - c->snd_una + c->emss;
}

/* Each cut costs the owner a buffer until the rest of the record is acknowledged, and the peer
 * causes it by a small MSS or path MTU. Two numbers are upper bounds of the live ones: that of the
 * cuts since none was live, and that of the segments in flight, as each rest begins a segment. So
 * neither a large flight that has just begun to be cut waits, nor one that is cut all the time. */
bool
tcp_seg_cuts_full(const struct tcp_conn *c)
{
	return c->ncuts >= TCP_MAX_CUTS && c->nsegs >= TCP_MAX_CUTS && cuts_live(c);
}

/* Cuts a record, which begins at sequence number `seq`, to `at` bytes. */
static bool
split_record(struct tcp_conn *c, struct tcp_rec *r, uint32_t seq, uint32_t at)
{
	struct tcp_rec *next = r->next, *rest = c->s->ops.rec_split(c->s->ctx, c, r, at);

	if (rest == NULL)
		return false;
	if (!cuts_live(c)) {
		c->ncuts = 0;
		c->cut_end = c->snd_una;
	}
	c->ncuts++;
	c->cut_end = tcp_seq_max(c->cut_end, seq + at);
	rest->next = next;
	r->next = rest;
	if (c->q_tail == r)
		c->q_tail = rest;
	return true;
}

/* Cuts a segment in flight to at most `at` bytes; the rest becomes the next segment. Returns false
 * without memory. */
static bool
tcp_seg_cut(struct tcp_conn *c, struct tcp_rec *seg, uint32_t at)
{
	struct tcp_rec *rest;
	uint32_t n = segment_gather(seg, at, &rest);

	if (n >= seg->seg_len)
		return true;
	if (!n) {
		if (!split_record(c, seg, seg->seq, at))
			return false;
		n = at;
		rest = seg->next;
	}
	rest->seq = seg->seq + n;
	rest->seg_len = seg->seg_len - n;
	rest->flags = seg->flags;
	if (rest->flags & R_SACKED)
		c->nsacked++;
	rest->xmits = seg->xmits;
	rest->sent_at = seg->sent_at;
	rest->seg_next = seg->seg_next;
	seg->seg_len = n;
	seg->seg_next = rest;
	if (c->seg_tail == seg)
		c->seg_tail = rest;
	c->nsegs++;
	return true;
}

/* Returns the bytes of a run of segments of `first` bytes each. Segments hold whole records; the
 * last segment may be shorter. */
static uint32_t
tso_run(const struct tcp_conn *c, struct tcp_rec *next, uint32_t first, uint32_t room)
{
	uint32_t most = SK_MIN(room, c->tso_max), total = first, n;

	while (next != NULL && (n = segment_gather(next, c->emss, &next)) && n <= first &&
		total + n <= most) {
		total += n;
		if (n < first)
			break;
	}
	return total;
}

/* Adds the segment that was sent to those in flight. */
static void
commit(struct tcp_conn *c, uint64_t now, struct tcp_rec *head, uint32_t len)
{
	head->seq = c->snd_nxt;
	head->seg_len = len;
	head->flags = 0;
	head->xmits = 1;
	head->sent_at = now;
	head->seg_next = NULL;
	if (c->seg_tail != NULL)
		c->seg_tail->seg_next = head;
	else
		c->seg_head = head;
	c->seg_tail = head;
	c->nsegs++;
	c->snd_nxt += len;
}

static void
commit_run(struct tcp_conn *c, uint64_t now, uint32_t total, uint32_t limit)
{
	while (total) {
		struct tcp_rec *head = c->unsent;
		uint32_t n = segment_gather(head, SK_MIN(total, limit), &c->unsent);

		commit(c, now, head, n);
		total -= n;
	}
}

/* Determines the next segment: the whole records that fit into `room`, if there are any. Otherwise
 * cuts the first record when it exceeds a segment, or when the window will not become larger (RFC
 * 9293 3.8.6.2.1), unless too many cut ones are in flight. Returns its bytes, 0 when it does not
 * fit now, or -EAGAIN. */
static int
first_segment(struct tcp_conn *c, uint32_t room, struct tcp_rec **end)
{
	struct tcp_rec *r = c->unsent;
	uint32_t limit = SK_MIN(room, c->emss), n;

	if (r->next == NULL && r->len <= limit) {
		*end = NULL;
		return (int)r->len;
	}
	n = segment_gather(r, limit, end);
	if (n)
		return (int)n;
	if (limit < c->emss && limit < r->len &&
		!(limit && (c->todo & DO_WND_FORCE || limit >= c->max_wnd / 2)))
		return 0;
	if (tcp_seg_cuts_full(c))
		return 0;
	if (!split_record(c, r, c->snd_nxt, limit))
		return -EAGAIN;
	return (int)segment_gather(r, limit, end);
}

int
tcp_seg_new(struct tcp_conn *c, uint64_t now, uint32_t room)
{
	struct tcp_rec *end;
	struct tcp_out out;
	uint32_t total;
	int n = first_segment(c, room, &end), rc;
	bool fin;

	if (n <= 0)
		return n;
	total = (uint32_t)n;
	if (c->tso_max > total && total >= TSO_LEAST && end != NULL && room >= c->emss &&
		!(c->flags & F_SEND_CWR))
		total = tso_run(c, end, total, room);
	tcp_seg_header(c, now, &out, TCP_ACK, c->snd_nxt);
	out.first = c->unsent;
	out.len = total;
	out.gso_size = total > (uint32_t)n ? (uint32_t)n : 0;
	if (c->flags & F_ECN)
		out.ecn = IP_ECN_ECT0;
	if (c->flags & F_SEND_CWR)
		out.tcp.flags |= TCP_CWR;
	if (total >= c->queued - (c->snd_nxt - c->snd_una))
		out.tcp.flags |= TCP_PSH;
	if ((c->nsack || c->flags & F_DSACK) && (uint32_t)n < c->emss)
		tcp_seg_sack(c, &out, SK_MIN(option_room(c), c->emss - (uint32_t)n));
	fin = c->flags & F_FIN_QUEUED && !out.gso_size && end == NULL && !(c->flags & F_FIN_SENT);
	if (fin)
		out.tcp.flags |= TCP_FIN;
	rc = tcp_seg_emit(c, &out);
	if (rc)
		return rc;
	if (out.gso_size == 0) {
		commit(c, now, c->unsent, total);
		c->unsent = end;
	} else {
		commit_run(c, now, total, c->emss);
	}
	c->flags &= ~F_SEND_CWR;
	if (now - c->last_rx < c->s->cfg.delack_ns)
		c->flags &= ~F_LONE;
	c->todo &= ~(DO_WND_FORCE | DO_WND_PROBE);
	if (fin) {
		c->flags |= F_FIN_SENT;
		c->snd_nxt++;
	}
	c->last_tx = now;
	tcp_timers_sent(c, now);
	return (int)((total + (uint32_t)n - 1) / (uint32_t)n);
}

int
tcp_seg_fin(struct tcp_conn *c, uint64_t now, bool again)
{
	struct tcp_out out;
	int rc;

	tcp_seg_header(c, now, &out, TCP_ACK | TCP_FIN, again ? c->snd_nxt - 1 : c->snd_nxt);
	rc = tcp_seg_emit(c, &out);
	if (rc)
		return rc;
	c->todo &= ~DO_FIN_AGAIN;
	if (!again) {
		c->flags |= F_FIN_SENT;
		c->snd_nxt++;
	}
	c->last_tx = now;
	tcp_timers_sent(c, now);
	return 0;
}

/* Retransmits a segment: the same records, or fewer after the path MTU became smaller. */
int
tcp_seg_retransmit(struct tcp_conn *c, uint64_t now, struct tcp_rec *seg)
{
	uint32_t end, skip;
	struct tcp_out out;
	int rc;

	skip = tcp_seq_lt(seg->seq, c->snd_una) ? c->snd_una - seg->seq : 0;
	if (seg->seg_len - skip > c->emss && !tcp_seg_cut(c, seg, skip + c->emss))
		return -EAGAIN;
	end = seg->seq + seg->seg_len;
	tcp_seg_header(c, now, &out, TCP_ACK, seg->seq + skip);
	out.first = seg;
	out.off = skip;
	out.len = seg->seg_len - skip;
	if (c->flags & F_FIN_SENT && end == c->snd_nxt - 1)
		out.tcp.flags |= TCP_FIN;
	if (end == c->snd_nxt - !!(c->flags & F_FIN_SENT))
		out.tcp.flags |= TCP_PSH;
	rc = tcp_seg_emit(c, &out);
	if (rc)
		return rc;
	tcp_trace(c, TCP_RETRANSMIT);
	c->n_retransmits++;
	if (seg->flags & R_LOST)
		c->lost_out -= seg->seg_len;
	seg->flags = (seg->flags & ~R_LOST) | R_RETRANS;
	seg->xmits += seg->xmits < UINT8_MAX;
	seg->sent_at = now;
	c->rtx_high = tcp_seq_max(c->rtx_high, end);
	c->undo_retrans++;
	c->prr.retransmitted += out.len;
	c->last_tx = now;
	tcp_timers_sent(c, now);
	return 0;
}
