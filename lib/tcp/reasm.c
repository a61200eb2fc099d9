/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reassembly of received payload (RFC 9293 3.10.7.4, "seventh"), and the reports about it (RFC
 * 2018, RFC 2883).
 *
 * Slices that come early wait in runs. A run is a chain of adjacent slices; the runs are linked by
 * their first slices, in the order of sequence numbers. A hostile peer can make many tiny slices,
 * so their number is limited, per connection and in total. TCP drops slices beyond the limit, and
 * the peer sends them again.
 *
 * A connection keeps no more slices than are left over: one gets at most half of the total, two a
 * third each, and so on, so that no few connections hold them all. When many connections hold them
 * all, each of the others still keeps TCP_OOO_FEW: the connection that holds slices and made no
 * progress for the longest time discards its own, although it reported them by SACK. RFC 2018 8
 * permits that; the peer keeps the bytes until they are acknowledged, and sends them again after a
 * timeout.
 */
#include "tcp_priv.h"

static uint32_t
reasm_run_end(const struct tcp_slice *run)
{
	return run->run_tail->seq + run->run_tail->len;
}

void
tcp_reasm_dsack(struct tcp_conn *c, uint32_t left, uint32_t right)
{
	if (!(c->flags & F_SACK))
		return;
	c->dsack = (struct wire_sack){left, right};
	c->flags |= F_DSACK;
}

/* Puts the run that changed last before the blocks that were reported earlier (RFC 2018 4). */
static void
report_run(struct tcp_conn *c, const struct tcp_slice *run)
{
	struct wire_sack b = {run->seq, reasm_run_end(run)}, kept[TCP_MAX_SACK];
	unsigned n = 0;

	if (!(c->flags & F_SACK))
		return;
	for (unsigned i = 0; i < c->nsack && n < TCP_MAX_SACK - 1; i++) {
		if (tcp_seq_lt(c->sack[i].right, b.left) || tcp_seq_lt(b.right, c->sack[i].left))
			kept[n++] = c->sack[i];
	}
	c->sack[0] = b;
	for (unsigned i = 0; i < n; i++)
		c->sack[i + 1] = kept[i];
	c->nsack = n + 1;
}

static void
report_trim(struct tcp_conn *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < c->nsack; i++) {
		if (tcp_seq_lt(c->rcv_nxt, c->sack[i].left))
			c->sack[n++] = c->sack[i];
	}
	c->nsack = n;
}

static void
count_kept(struct tcp_conn *c, int slices)
{
	c->ooo_count += slices;
	c->s->ooo_total += slices;
}

/* Cuts `n` bytes off the start of the chain, and frees whole slices. Returns the rest. */
static struct tcp_slice *
trim_front(struct tcp_conn *c, struct tcp_slice *chain, uint32_t n)
{
	while (chain != NULL && n >= chain->len) {
		struct tcp_slice *next = chain->next;

		n -= chain->len;
		chain->next = NULL;
		tcp_slice_drop(c->s, chain);
		chain = next;
	}
	if (chain != NULL && n) {
		if (chain->data != NULL)
			chain->data += n;
		chain->len -= n;
		chain->seq += n;
	}
	return chain;
}

/* Keeps the first `keep` bytes (not 0) of the chain, and frees the other slices. */
static void
trim_back(struct tcp_conn *c, struct tcp_slice *chain, uint32_t keep)
{
	while (keep > chain->len) {
		keep -= chain->len;
		chain = chain->next;
	}
	chain->len = keep;
	tcp_slice_drop(c->s, chain->next);
	chain->next = NULL;
}

static int
count_chain(const struct tcp_slice *chain)
{
	int n = 0;

	for (; chain != NULL; chain = chain->next)
		n++;
	return n;
}

/* Merges the runs behind `run` that it touches, without the bytes that both have. */
static void
merge_next(struct tcp_conn *c, struct tcp_slice *run)
{
	struct tcp_slice *next;

	while ((next = run->run_next) != NULL && tcp_seq_le(next->seq, reasm_run_end(run))) {
		struct tcp_slice *tail = next->run_tail, *rest = next;
		uint32_t over = reasm_run_end(run) - next->seq,
			 whole = reasm_run_end(next) - next->seq;

		run->run_next = next->run_next;
		if (run->run_next == NULL)
			c->ooo_tail = run;
		if (over) {
			count_kept(c, -count_chain(next));
			rest = trim_front(c, next, SK_MIN(over, whole));
			count_kept(c, count_chain(rest));
		}
		if (rest != NULL) {
			run->run_tail->next = rest;
			run->run_tail = tail;
		}
	}
}

/* Notes the first bytes of [seq, end) that wait already, as the duplicate to report (RFC 2883 4.2,
 * 4.3). Returns false when there are none. */
static bool
report_repeated(struct tcp_conn *c, uint32_t seq, uint32_t end)
{
	const struct tcp_slice *run = c->ooo;
	uint32_t run_end;

	if (run != NULL && tcp_seq_le(c->ooo_tail->seq, seq))
		run = c->ooo_tail; /* the usual case: behind all waiting slices */
	while (run != NULL && tcp_seq_le(reasm_run_end(run), seq))
		run = run->run_next;
	if (run == NULL || tcp_seq_le(end, run->seq))
		return false;
	run_end = reasm_run_end(run);
	tcp_reasm_dsack(c, tcp_seq_max(seq, run->seq), tcp_seq_lt(end, run_end) ? end : run_end);
	return true;
}

/* Inserts a single slice between the runs. Bytes that came twice are cut off the new or the old
 * slice; either copy is valid. */
static void
insert_slice(struct tcp_conn *c, struct tcp_slice *s)
{
	struct tcp_slice *prev = NULL, *next = c->ooo;

	if (c->ooo_tail != NULL && tcp_seq_le(c->ooo_tail->seq, s->seq)) {
		prev = c->ooo_tail; /* the usual case: behind all waiting slices */
		next = NULL;
	}
	while (next != NULL && tcp_seq_le(next->seq, s->seq)) {
		prev = next;
		next = next->run_next;
	}
	if (prev != NULL && tcp_seq_le(s->seq, reasm_run_end(prev))) {
		uint32_t over = reasm_run_end(prev) - s->seq;

		if (over >= s->len) {
			tcp_slice_drop(c->s, s);
			report_run(c, prev);
			return;
		}
		s = trim_front(c, s, over);
		prev->run_tail->next = s;
		prev->run_tail = s;
		count_kept(c, 1);
		merge_next(c, prev);
		report_run(c, prev);
		return;
	}
	s->run_next = next;
	s->run_tail = s;
	if (prev != NULL)
		prev->run_next = s;
	else
		c->ooo = s;
	if (next == NULL)
		c->ooo_tail = s;
	count_kept(c, 1);
	merge_next(c, s);
	report_run(c, s);
}

/* Updates the place of the connection among those that hold slices out of order. */
static void
reasm_holds(struct tcp_conn *c, bool progress)
{
	struct tcp_conn_list *holders = &c->s->holders;

	if (c->flags & F_HOLDS && (progress || c->ooo == NULL)) {
		TAILQ_REMOVE(holders, c, holder);
		c->flags &= ~F_HOLDS;
	}
	if (c->ooo != NULL && !(c->flags & F_HOLDS)) {
		TAILQ_INSERT_TAIL(holders, c, holder);
		c->flags |= F_HOLDS;
	}
}

static void
free_runs(struct tcp_conn *c)
{
	struct tcp_slice *run = c->ooo, *next;

	c->ooo = c->ooo_tail = NULL;
	c->nsack = 0;
	reasm_holds(c, false);
	for (; run != NULL; run = next) {
		next = run->run_next;
		count_kept(c, -count_chain(run));
		tcp_slice_drop(c->s, run);
	}
}

/* Discards the slices of the connection without progress for the longest time. Returns false when
 * no connection other than `c` has any. */
static bool
discard_oldest(const struct tcp_conn *c)
{
	struct tcp_conn *oldest = TAILQ_FIRST(&c->s->holders);

	if (oldest == c)
		oldest = TAILQ_NEXT(oldest, holder);
	if (oldest == NULL)
		return false;
	tcp_count(c->s, TCP_OOO_DISCARDED);
	free_runs(oldest);
	return true;
}

/* Makes sure that the connection may keep one more slice. Returns false when it may not. */
static bool
reasm_room(const struct tcp_conn *c)
{
	const struct tcp_config *cfg = &c->s->cfg;
	uint32_t total = c->s->ooo_total;
	uint32_t left = total < cfg->ooo_slices_total ? cfg->ooo_slices_total - total : 0;

	if (c->ooo_count >= cfg->ooo_slices)
		return false;
	if (c->ooo_count < left)
		return true;
	return c->ooo_count < TCP_OOO_FEW && (left > 0 || discard_oldest(c));
}

static void
keep_out_of_order(struct tcp_conn *c, struct tcp_slice *chain)
{
	while (chain != NULL) {
		struct tcp_slice *next = chain->next;

		if (!reasm_room(c)) {
			tcp_count(c->s, TCP_OOO_FULL);
			tcp_slice_drop(c->s, chain);
			break;
		}
		chain->next = NULL;
		insert_slice(c, chain);
		chain = next;
	}
	reasm_holds(c, false);
}

/* Takes the runs that rcv_nxt has reached off the list, and appends them to `tail`. Advances
 * rcv_nxt; returns the number of its new bytes. */
static uint32_t
take_reached(struct tcp_conn *c, struct tcp_slice **tail)
{
	uint32_t from = c->rcv_nxt;

	while (c->ooo != NULL && tcp_seq_le(c->ooo->seq, c->rcv_nxt)) {
		struct tcp_slice *run = c->ooo, *last = run->run_tail;
		uint32_t end = reasm_run_end(run), over = c->rcv_nxt - run->seq;

		c->ooo = run->run_next;
		count_kept(c, -count_chain(run));
		run = trim_front(c, run, SK_MIN(over, end - run->seq));
		if (run == NULL)
			continue;
		*tail = run;
		tail = &last->next;
		c->rcv_nxt = end;
	}
	if (c->ooo == NULL)
		c->ooo_tail = NULL;
	reasm_holds(c, true);
	return c->rcv_nxt - from;
}

static void
reasm_refuse(struct tcp_conn *c, struct tcp_slice *chain)
{
	if (c->state == TCPS_CLOSED) { /* the owner ended the connection inside deliver() */
		tcp_slice_drop(c->s, chain);
		return;
	}
	if (c->refused != NULL)
		c->refused_tail->next = chain;
	else
		c->refused = chain;
	count_kept(c, count_chain(chain));
	while (chain->next != NULL)
		chain = chain->next;
	c->refused_tail = chain;
	c->fast = false;
}

void
tcp_reasm_deliver(struct tcp_conn *c, struct tcp_slice *chain, uint32_t len)
{
	c->rcv_unread += len;
	c->n_bytes_in += len;
	if (!c->s->ops.deliver(c->s->ctx, c, chain))
		reasm_refuse(c, chain);
}

static void
in_order(struct tcp_conn *c, struct tcp_slice *chain, uint32_t len)
{
	struct tcp_slice *last = chain;

	/* The slices that the owner refused may be many and tiny: their number is limited as
	 * well. */
	if (c->refused != NULL && !reasm_room(c)) {
		tcp_count(c->s, TCP_OOO_FULL);
		tcp_slice_drop(c->s, chain);
		return;
	}
	c->rcv_nxt += len;
	if (c->ooo != NULL) {
		while (last->next != NULL)
			last = last->next;
		len += take_reached(c, &last->next);
		report_trim(c);
		tcp_conn_ack_now(c); /* RFC 5681 4.2: a gap was filled, in whole or in part */
	}
	if (c->refused == NULL) {
		tcp_reasm_deliver(c, chain, len);
		return;
	}
	c->rcv_unread += len;
	c->n_bytes_in += len;
	reasm_refuse(c, chain);
}

void
tcp_reasm_input(struct tcp_conn *c, uint32_t seq, struct tcp_slice *chain, uint32_t len)
{
	uint32_t old, room, at = seq;
	bool repeated = false;

	for (struct tcp_slice *p = chain; p != NULL; p = p->next) {
		p->seq = at;
		at += p->len;
	}
	if (tcp_seq_lt(seq, c->rcv_nxt)) {
		old = SK_MIN(c->rcv_nxt - seq, len);
		repeated = true;
		tcp_count(c->s, TCP_DUP_PAYLOAD);
		tcp_reasm_dsack(c, seq, seq + old);
		tcp_conn_ack_now(c);
		chain = trim_front(c, chain, old);
		seq += old;
		len -= old;
	}
	if (!len)
		return;
	room = tcp_seq_lt(seq, c->rcv_adv) ? c->rcv_adv - seq : 0;
	if (len > room) {
		tcp_count(c->s, TCP_RCV_FULL);
		tcp_conn_ack_now(c);
		if (!room) {
			tcp_slice_drop(c->s, chain);
			return;
		}
		trim_back(c, chain, room);
		len = room;
	}
	if (!repeated && report_repeated(c, seq, seq + len))
		tcp_count(c->s, TCP_DUP_PAYLOAD);
	if (seq == c->rcv_nxt) {
		in_order(c, chain, len);
	} else {
		tcp_conn_ack_now(c); /* RFC 5681 4.2 */
		c->fast = false;
		keep_out_of_order(c, chain);
	}
}

void
tcp_reasm_free_all(struct tcp_conn *c)
{
	struct tcp_slice *refused = c->refused;

	free_runs(c);
	c->refused = c->refused_tail = NULL;
	count_kept(c, -count_chain(refused));
	tcp_slice_drop(c->s, refused);
}

/* ---- Functions for the owner ---- */

void
tcp_deliver_resume(struct tcp_conn *c)
{
	struct tcp_slice *chain = c->refused;

	if (chain == NULL || c->state == TCPS_CLOSED)
		return;
	tcp_conn_hold(c);
	c->refused = c->refused_tail = NULL;
	count_kept(c, -count_chain(chain));
	if (!c->s->ops.deliver(c->s->ctx, c, chain))
		reasm_refuse(c, chain);
	else if (c->state != TCPS_CLOSED)
		tcp_fin_reached(c);
	tcp_conn_release(c);
}

void
tcp_consumed(struct tcp_conn *c, uint32_t bytes)
{
	uint32_t buf = c->s->cfg.rcv_buf, open = c->rcv_adv - c->rcv_nxt, most, room;

	c->rcv_unread -= SK_MIN(bytes, c->rcv_unread);
	if (c->state < TCPS_ESTABLISHED || c->rcv_unread >= buf)
		return;
	/* RFC 9293 3.8.6.2.2: advertises the window when that is worth a segment: the window was
	 * small, or a quarter of the largest one became free. The largest one is what the field can
	 * express. A segment with the number and the field of the one before it would count as a
	 * duplicate acknowledgement (RFC 5681 2). */
	most = SK_MIN(buf, 0xffffu << c->rcv_wscale);
	room = SK_MIN(buf - c->rcv_unread, most);
	if (room >> c->rcv_wscale <= open >> c->rcv_wscale)
		return;
	if (room - open >= most / 4 ||
		(open < 2u * c->rcv_mss && room - open >= SK_MIN(buf / 2, (uint32_t)c->rcv_mss)))
		tcp_conn_ack_now(c);
}
