/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reassembly of received payload (RFC 9293 3.10.7.4, "seventh"), and the reports about it (RFC
 * 2018, RFC 2883).
 *
 * Slices that come early wait in runs. A run is a chain of adjacent slices; the first slices of the
 * runs form a treap, ordered by sequence numbers: a search tree whose root has the highest rank, as
 * has the root of each subtree. The ranks are pseudorandom, so the paths of the tree have a length
 * of O(log runs), whatever the order in which the slices come. A list would be long: in a path that
 * reorders much, and of a hostile peer, each segment would walk over hundreds of runs.
 *
 * A hostile peer can make many tiny slices, so their number is limited, per connection and in
 * total. TCP drops slices beyond the limit, and the peer sends them again.
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

/* Cuts `n` bytes off the start of the chain, and frees whole slices; `kept`: they are counted.
 * Returns the rest. */
static struct tcp_slice *
trim_front(struct tcp_conn *c, struct tcp_slice *chain, uint32_t n, bool kept)
{
	while (chain != NULL && n >= chain->len) {
		struct tcp_slice *next = chain->next;

		n -= chain->len;
		if (kept)
			count_kept(c, -1);
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

/* ---- The tree of runs ---- */

/* Returns the rank of a run. It depends on the address of the slice and a secret: a peer can
 * neither know it nor choose it. */
static uint64_t
run_rank(const struct tcp_conn *c, const struct tcp_slice *run)
{
	uint64_t x = (uintptr_t)run ^ c->s->cfg.isn_key.k[0];

	x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
	return x ^ x >> 32;
}

/* Sets *prev to the last run that does not begin behind `seq`, and *next to the run behind it;
 * NULL: there is none. */
static void
find_runs(const struct tcp_conn *c, uint32_t seq, struct tcp_slice **prev, struct tcp_slice **next)
{
	struct tcp_slice *run = c->ooo;

	*prev = *next = NULL;
	if (run != NULL && tcp_seq_le(c->ooo_tail->seq, seq)) {
		*prev = c->ooo_tail; /* the usual case: behind all waiting slices */
		return;
	}
	while (run != NULL) {
		if (tcp_seq_le(run->seq, seq)) {
			*prev = run;
			run = run->run_right;
		} else {
			*next = run;
			run = run->run_left;
		}
	}
}

/* Returns the place in the tree that points to its first run. */
static struct tcp_slice **
first_run(struct tcp_slice **root)
{
	while (*root != NULL && (*root)->run_left != NULL)
		root = &(*root)->run_left;
	return root;
}

/* The new run takes the place of the first run on its path that has a lower rank, and cuts the
 * subtree there into the runs before and behind it. */
static void
add_run(struct tcp_conn *c, struct tcp_slice *run)
{
	struct tcp_slice **at = &c->ooo, **left = &run->run_left, **right = &run->run_right, *t;
	uint64_t rank = run_rank(c, run);

	while (*at != NULL && run_rank(c, *at) >= rank)
		at = tcp_seq_lt(run->seq, (*at)->seq) ? &(*at)->run_left : &(*at)->run_right;
	t = *at;
	*at = run;
	while (t != NULL) {
		if (tcp_seq_lt(t->seq, run->seq)) {
			*left = t;
			left = &t->run_right;
			t = *left;
		} else {
			*right = t;
			right = &t->run_left;
			t = *right;
		}
	}
	*left = *right = NULL;
}

/* Takes a run out of the tree; its two subtrees become one. */
static void
remove_run(struct tcp_conn *c, const struct tcp_slice *run)
{
	struct tcp_slice **at = &c->ooo, *left = run->run_left, *right = run->run_right;

	while (*at != run)
		at = tcp_seq_lt(run->seq, (*at)->seq) ? &(*at)->run_left : &(*at)->run_right;
	while (left != NULL && right != NULL) {
		if (run_rank(c, left) >= run_rank(c, right)) {
			*at = left;
			at = &left->run_right;
			left = *at;
		} else {
			*at = right;
			at = &right->run_left;
			right = *at;
		}
	}
	*at = left != NULL ? left : right;
}

/* Merges the runs behind `run` that it touches, `next` and others, without the bytes that both
 * have. */
static void
merge_next(struct tcp_conn *c, struct tcp_slice *run, struct tcp_slice *next)
{
	struct tcp_slice *none;

	while (next != NULL && tcp_seq_le(next->seq, reasm_run_end(run))) {
		struct tcp_slice *tail = next->run_tail, *rest = next;
		uint32_t over = reasm_run_end(run) - next->seq,
			 whole = reasm_run_end(next) - next->seq;

		remove_run(c, next);
		if (c->ooo_tail == next)
			c->ooo_tail = run;
		if (over)
			rest = trim_front(c, next, SK_MIN(over, whole), true);
		if (rest != NULL) {
			run->run_tail->next = rest;
			run->run_tail = tail;
		}
		find_runs(c, run->seq, &none, &next);
	}
}

/* Notes the first bytes of [seq, end) that wait already, as the duplicate to report (RFC 2883 4.2,
 * 4.3). Returns false when there are none. */
static bool
report_repeated(struct tcp_conn *c, uint32_t seq, uint32_t end)
{
	struct tcp_slice *run, *next;
	uint32_t run_end;

	find_runs(c, seq, &run, &next);
	if (run == NULL || tcp_seq_le(reasm_run_end(run), seq))
		run = next;
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
	struct tcp_slice *prev, *next;

	find_runs(c, s->seq, &prev, &next);
	if (prev != NULL && tcp_seq_le(s->seq, reasm_run_end(prev))) {
		uint32_t over = reasm_run_end(prev) - s->seq;

		if (over >= s->len) {
			tcp_slice_drop(c->s, s);
			report_run(c, prev);
			return;
		}
		s = trim_front(c, s, over, false);
		prev->run_tail->next = s;
		prev->run_tail = s;
		count_kept(c, 1);
		merge_next(c, prev, next);
		report_run(c, prev);
		return;
	}
	s->run_tail = s;
	add_run(c, s);
	if (next == NULL)
		c->ooo_tail = s;
	count_kept(c, 1);
	merge_next(c, s, next);
	report_run(c, s);
}

/* ---- Limits ---- */

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
	struct tcp_slice *runs = c->ooo, *run, **first;

	c->ooo = c->ooo_tail = NULL;
	c->nsack = 0;
	reasm_holds(c, false);
	while ((run = *(first = first_run(&runs))) != NULL) {
		*first = run->run_right;
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

/* ---- Segments ---- */

/* Takes the runs that rcv_nxt has reached out of the tree, and appends them to `tail`. Advances
 * rcv_nxt; returns the number of its new bytes. */
static uint32_t
take_reached(struct tcp_conn *c, struct tcp_slice **tail)
{
	struct tcp_slice *run, **first;
	uint32_t from = c->rcv_nxt;

	while ((run = *(first = first_run(&c->ooo))) != NULL && tcp_seq_le(run->seq, c->rcv_nxt)) {
		struct tcp_slice *last = run->run_tail;
		uint32_t end = reasm_run_end(run), over = c->rcv_nxt - run->seq;

		*first = run->run_right;
		count_kept(c, -count_chain(run));
		run = trim_front(c, run, SK_MIN(over, end - run->seq), false);
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
		chain = trim_front(c, chain, old, false);
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
