/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which packet goes out next (9.1.2, 9.1.3). Lost packets precede new ones; on an ordered
 * connection, requests go in RSN order across both windows; pull data is separate from requests and
 * never held back by ncwnd, so that answers flow while requests may not. A connection is in the
 * stack's list while it may send, and leaves it when its windows are closed; an acknowledgement or
 * a timer puts it back.
 */
#include <errno.h>

#include "conn_priv.h"

/* Returns whether there is a packet to send, whatever the windows are. */
static inline bool
has_packets(const struct pdl_conn *d)
{
	return d->queued || d->tx[PDL_REQUEST].lost_count || d->tx[PDL_DATA].lost_count;
}

void
pdl_wake(struct fa_conn *c)
{
	struct pdl_conn *d = &c->pdl;

	if (d->on_tx || c->dead || !has_packets(d))
		return;
	TAILQ_INSERT_TAIL(&c->s->pdl.tx, c, pdl.tx_link);
	d->on_tx = true;
}

static struct pdl_fifo *
fifo_of(struct pdl_conn *d, const struct fa_pkt *p)
{
	return p->type == FALCON_PULL_REQUEST ? &d->pulls
	       : p->type == FALCON_PUSH_DATA  ? &d->pushes
					      : &d->pull_data;
}

void
pdl_send(struct fa_conn *c, uint64_t now, struct fa_pkt *p)
{
	struct pdl_fifo *f = fifo_of(&c->pdl, p);

	p->next = NULL;
	p->resync = 0;
	p->flags = 0;
	p->flow = 0;
	p->timeouts = 0;
	*f->tail = p;
	f->tail = &p->next;
	c->pdl.queued++;
	pdl_wake(c);
}

static void
fifo_take(struct pdl_conn *d, struct fa_pkt *p)
{
	struct pdl_fifo *f = fifo_of(d, p);
	struct fa_pkt **at = &f->head;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	if (*at == NULL)
		f->tail = at;
	d->queued--;
}

void
pdl_to_resync(struct fa_pkt *p, uint8_t code, enum fa_completion how, uint8_t ulp_code)
{
	p->resync = code;
	p->completion = (uint8_t)how;
	p->ulp_code = ulp_code;
	p->timeouts = 0;
}

bool
pdl_withdraw(
	struct fa_conn *c, uint64_t now, struct fa_pkt *p, uint8_t code, enum fa_completion how)
{
	if (p->resync)
		return false;
	if (!(p->flags & PKT_SENT) && (!pdl_is_request(p) || !c->params.ordered)) {
		fifo_take(&c->pdl, p);
		return true;
	}
	fa_buf_free(c->s, p->buf);
	p->buf = NULL;
	pdl_to_resync(p, code, how, 0);
	if (p->flags & PKT_SENT)
		pdl_txw_lost(&c->pdl.tx[pdl_window_of(p)], p, PKT_INSIST);
	pdl_wake(c);
	return false;
}

void
pdl_implied_ack(struct fa_conn *c, uint64_t now, struct fa_pkt *p)
{
	if (p->flags & PKT_SENT) {
		c->pdl.flow[p->flow].acked++;
		pdl_txw_remove(&c->pdl.tx[pdl_window_of(p)], p);
	} else {
		fifo_take(&c->pdl, p);
	}
	tl_sent(c, now, p, p->resync ? p->completion : FA_DONE, p->ulp_code);
	pdl_wake(c); /* ncwnd may have opened */
}

/* ---- Which packet ---- */

/* Returns whether the windows admit the packet at offset `at` of `w`; `out`: the requests of `w`
 * that count against ncwnd. */
static inline bool
in_window(
	const struct pdl_conn *d, const struct pdl_txw *w, bool request, uint32_t at, uint32_t out)
{
	return at < SK_MIN(d->fcwnd, w->size) && (!request || out < d->ncwnd);
}

/* Applies the gating functions of 9.1.2. */
static bool
gate(const struct pdl_conn *d, const struct fa_pkt *p, bool again)
{
	const struct pdl_txw *w = &d->tx[pdl_window_of(p)];

	return in_window(d, w, pdl_is_request(p), (again ? p->psn : w->next) - w->base,
		again ? w->orrc : w->orc);
}

struct candidates {
	struct fa_pkt *pull, *push, *data;
};

static struct fa_pkt *
choose(struct fa_conn *c, const struct candidates *k, bool again)
{
	struct pdl_conn *d = &c->pdl;
	bool pull = k->pull != NULL && gate(d, k->pull, again);
	bool push = k->push != NULL && gate(d, k->push, again);
	bool data = k->data != NULL && gate(d, k->data, again);
	struct fa_pkt *req;

	if (k->pull != NULL && k->push != NULL && (c->params.ordered || (pull && push))) {
		bool pull_first = pdl_before(k->pull->rsn, k->push->rsn);

		pull &= pull_first;
		push &= !pull_first;
	}
	req = pull ? k->pull : push ? k->push : NULL;
	if (req == NULL || !data)
		return data ? k->data : req;
	if (again && push)
		return pdl_before(k->push->psn, k->data->psn) ? k->push : k->data;
	d->data_turn = !d->data_turn;
	return d->data_turn ? k->data : req;
}

/* Finds the first lost request and the first lost pull data of the data window. */
static void
lost_data(const struct pdl_txw *w, struct candidates *k)
{
	for (uint32_t psn = w->base; k->push == NULL || k->data == NULL; psn++) {
		struct fa_pkt *p;

		if (!pdl_txw_find(w, &psn, PDL_LOST))
			return;
		p = pdl_txw_get(w, psn);
		if (!pdl_is_request(p))
			k->data = k->data != NULL ? k->data : p;
		else
			k->push = k->push != NULL ? k->push : p;
	}
}

static struct fa_pkt *
choose_lost(struct fa_conn *c)
{
	const struct pdl_txw *r = &c->pdl.tx[PDL_REQUEST], *w = &c->pdl.tx[PDL_DATA];
	struct candidates k = {0};
	uint32_t psn = r->base;

	if (r->lost_count && pdl_txw_find(r, &psn, PDL_LOST))
		k.pull = pdl_txw_get(r, psn);
	if (w->lost_count)
		lost_data(w, &k);
	return choose(c, &k, true);
}

/* ---- Flow and time of departure ---- */

static bool
paced(const struct pdl_flow *f, uint64_t now)
{
	return f->cc.ipg && f->cc.fcwnd < FA_CWND_ONE && now < f->depart;
}

/* Returns the flow with the largest open window (multipath extension of the Falcon transport), or
 * -1 when all flows must wait until *until. */
static int
pick_flow(struct pdl_conn *d, const struct pdl_txw *w, uint64_t now, uint64_t *until)
{
	int64_t most = INT64_MIN;
	int best = -1;

	*until = SK_NEVER;
	for (unsigned i = 0; i < d->flows; i++) {
		unsigned k = (d->next_flow + i) % d->flows;
		int64_t room = (int64_t)d->flow[k].cc.fcwnd - (int64_t)w->flow_out[k] * FA_CWND_ONE;

		if (paced(&d->flow[k], now)) {
			*until = SK_MIN(*until, d->flow[k].depart);
		} else if (room > most) {
			most = room;
			best = (int)k;
		}
	}
	return best;
}

/* Returns the flow for a packet. A retransmission stays on its flow, except after a timeout: the
 * path may be bad then. */
static int
flow_for(struct pdl_conn *d, const struct fa_pkt *p, uint64_t now, bool again, uint64_t *until)
{
	if (d->flows > 1 && (!again || p->flags & PKT_TIMEOUT))
		return pick_flow(d, &d->tx[pdl_window_of(p)], now, until);
	*until = d->flow[p->flow].depart;
	return paced(&d->flow[p->flow], now) ? -1 : p->flow;
}

/* ---- The packet ---- */

/* Returns whether the window closes behind `p`, so that no further packet leaves before an
 * acknowledgement. */
static bool
closes_window(const struct pdl_conn *d, const struct fa_pkt *p)
{
	const struct pdl_txw *w = &d->tx[pdl_window_of(p)];

	return !in_window(d, w, pdl_is_request(p), w->next + 1 - w->base, w->orc + 1u);
}

/* Decides the AR bit by 9.1.3.1. With a small fcwnd, the last packet of a burst has it: that is the
 * one that closes its window, or the last one queued. Its acknowledgement covers the others; one
 * for each of them would only take the time of both hosts. */
static bool
ack_request(struct fa_conn *c, const struct fa_pkt *p, bool again)
{
	const struct fa_config *cfg = &c->s->cfg;
	struct pdl_conn *d = &c->pdl;
	bool small = d->fcwnd <= cfg->ar_window;

	if (!small && !cfg->ar_percent)
		return false;
	if (again || closes_window(d, p))
		return true;
	if (small)
		return d->queued == 1; /* `p` itself */
	if (d->ar_gap > 1) {
		d->ar_gap--;
		return false;
	}
	/* Random gaps of 1 to 2 * mean - 1 packets, so that they do not synchronize with other
	 * periods. */
	d->ar_gap = (uint16_t)(1 + pdl_random(c->s) % (2 * (100 / cfg->ar_percent) - 1));
	return true;
}

static void
pdl_tx_fill(struct fa_conn *c, struct wire_falcon *h, const struct fa_pkt *p, bool again)
{
	const struct pdl_rx *rx = &c->pdl.rx;

	h->type = p->resync ? FALCON_RESYNC : p->type;
	h->ar = ack_request(c, p, again);
	h->proto = c->params.protocol;
	h->cid = c->params.peer_cid;
	h->function = c->params.peer_function;
	h->dbpsn = rx->dbase;
	h->rbpsn = rx->rbase;
	h->psn = again ? p->psn : c->pdl.tx[pdl_window_of(p)].next;
	h->rsn = p->rsn;
	h->request_len = p->resync ? 0 : (uint16_t)p->request_len;
	h->resync_code = p->resync;
	h->resync_type = p->resync ? p->type : 0;
}

static void
count_again(struct fa_conn *c, const struct fa_pkt *p)
{
	struct pdl_counts *n = &c->pdl.n;

	n->retransmits++;
	fa_count(c->s, FA_RETRANSMIT);
	if (p->flags & PKT_EARLY) {
		n->early++;
		fa_trace(c, FA_EARLY);
	} else if (p->flags & PKT_TIMEOUT) {
		n->timeouts++;
		fa_trace(c, FA_TIMEOUT);
	} else if (p->flags & PKT_PROBE) {
		n->probes++;
		fa_trace(c, FA_PROBE);
	}
}

static void
sent_again(struct fa_conn *c, struct fa_pkt *p, unsigned flow)
{
	struct pdl_txw *w = &c->pdl.tx[pdl_window_of(p)];

	count_again(c, p);
	pdl_txw_found(w, p);
	w->flow_out[p->flow]--;
	w->flow_out[flow]++;
	p->flags = (uint8_t)((p->flags & ~PKT_WHY) | PKT_RETX);
	if (pdl_is_request(p)) {
		p->flags |= PKT_ORRC;
		w->orrc++;
	}
}

/* A packet that waits for a narrow window is not given up (11) for that reason: its age counts from
 * the time when it is the next to go, and again from its transmission. */
static void
line_moves(struct pdl_conn *d, uint64_t observed, struct fa_pkt *p)
{
	p->since = observed;
	if (d->pushes.head != NULL)
		d->pushes.head->since = observed;
	if (d->pulls.head != NULL)
		d->pulls.head->since = observed;
}

/* Updates all state after a packet's transmission, and starts its timers. */
static void
sent(struct fa_conn *c, uint64_t now, struct fa_pkt *p, bool again, unsigned flow)
{
	struct pdl_conn *d = &c->pdl;
	struct pdl_flow *f = &d->flow[flow];

	if (again)
		sent_again(c, p, flow);
	p->flow = (uint8_t)flow;
	if (!again) {
		fifo_take(d, p);
		p->counted_at = fa_observed(c->s, now);
		line_moves(d, p->counted_at, p);
		pdl_txw_add(&d->tx[pdl_window_of(p)], p);
		p->flags |= PKT_SENT;
	}
	p->sent_at = now;
	p->deadline = now + pdl_timeout(c, p);
	if (p->deadline < d->rtx_due) {
		d->rtx_due = p->deadline;
		pdl_due(c, d->rtx_due);
	}
	if (f->cc.ipg)
		f->depart = now + f->cc.ipg * (uint64_t)FA_TICK_PS / 1000;
	d->next_flow = (uint8_t)((flow + 1) % d->flows);
	d->n.packets_out++;
	if (p->resync) {
		d->n.resyncs_out++;
		fa_trace(c, FA_RESYNC_OUT);
	}
	pdl_ack_piggybacked(c);
}

static int
send_packet(struct fa_conn *c, uint64_t now, struct fa_pkt *p, bool again, unsigned flow)
{
	struct fa_stack *s = c->s;
	struct fa_out out = {
		.hdr = &s->pdl.hdr,
		.payload = p->resync ? NULL : p->buf,
		.stamp = s->pdl.ticks,
		.path = c->pdl.flow[flow].path,
		.retransmission = again,
	};
	int rc;

	if (!again && !pdl_txw_reserve(s, &c->pdl.tx[pdl_window_of(p)]))
		return -EAGAIN;
	pdl_tx_fill(c, &s->pdl.hdr, p, again);
	rc = s->ops.output(s->ctx, c, &out);
	if (rc == -EAGAIN) {
		fa_count(s, FA_OUTPUT_BUSY);
		return rc;
	}
	sent(c, now, p, again, flow);
	return 0;
}

enum { TX_NOTHING = 1 };

/* Usually only pushes wait, and no packet is lost: that case is short. */
static struct fa_pkt *
next_packet(struct fa_conn *c, bool *again)
{
	struct pdl_conn *d = &c->pdl;
	const struct candidates fresh = {d->pulls.head, d->pushes.head, d->pull_data.head};
	struct fa_pkt *p;

	*again = d->tx[PDL_REQUEST].lost_count || d->tx[PDL_DATA].lost_count;
	if (*again) {
		p = choose_lost(c);
		if (p != NULL)
			return p;
		*again = false;
	}
	if (fresh.push != NULL && fresh.pull == NULL && fresh.data == NULL)
		return gate(d, fresh.push, false) ? fresh.push : NULL;
	return choose(c, &fresh, false);
}

/* Sends one packet. Returns 0, TX_NOTHING or -EAGAIN. */
static int
send_one(struct fa_conn *c, uint64_t now)
{
	struct pdl_conn *d = &c->pdl;
	uint64_t until;
	bool again;
	struct fa_pkt *p = next_packet(c, &again);
	int flow;

	if (p == NULL)
		return TX_NOTHING;
	flow = flow_for(d, p, now, again, &until);
	if (flow < 0) {
		d->pace_due = until;
		pdl_due(c, until);
		return TX_NOTHING;
	}
	return send_packet(c, now, p, again, (unsigned)flow);
}

/* ---- A run of packets of one type ---- */

/* Returns the only fifo with packets, of which the first is none that a Resync replaces, or NULL:
 * then there is nothing to choose. */
static inline struct pdl_fifo *
only_fifo(struct pdl_conn *d)
{
	struct pdl_fifo *f;

	if (d->pushes.head != NULL)
		f = d->pulls.head == NULL && d->pull_data.head == NULL ? &d->pushes : NULL;
	else if (d->pulls.head != NULL)
		f = d->pull_data.head == NULL ? &d->pulls : NULL;
	else
		f = d->pull_data.head != NULL ? &d->pull_data : NULL;
	return f != NULL && !f->head->resync ? f : NULL;
}

/* Returns whether the packets to send are new ones, on one flow that is not paced. Sending changes
 * nothing of this. */
static bool
all_new(const struct fa_conn *c)
{
	const struct pdl_conn *d = &c->pdl;

	return !d->tx[PDL_REQUEST].lost_count && !d->tx[PDL_DATA].lost_count && d->flows == 1 &&
	       !d->flow[0].cc.ipg && !c->s->cfg.general;
}

/* Returns how many packets of `w` in_window() admits. */
static inline uint32_t
window_room(const struct pdl_conn *d, const struct pdl_txw *w, bool request)
{
	uint32_t size = SK_MIN(d->fcwnd, w->size), at = w->next - w->base;
	uint32_t room = size - SK_MIN(at, size);

	return request ? SK_MIN(room, d->ncwnd - SK_MIN(w->orc, d->ncwnd)) : room;
}

/* Does what sent() does for a packet that was at the head of the only fifo with packets, but for
 * the timer. */
static inline void
head_sent(struct fa_conn *c, uint64_t now, struct pdl_fifo *f, struct pdl_txw *w, bool request,
	uint64_t deadline)
{
	uint64_t observed = fa_observed(c->s, now);
	struct pdl_conn *d = &c->pdl;
	struct fa_pkt *p = f->head;

	f->head = p->next;
	if (p->next == NULL)
		f->tail = &f->head;
	else if (request)
		p->next->since = observed;
	d->queued--;
	p->since = p->counted_at = observed;
	p->sent_at = now;
	p->psn = w->next++;
	p->flags |= PKT_SENT;
	p->deadline = deadline;
	w->ring[p->psn & w->ring_mask] = p;
	pdl_bit_set(w->live, PDL_WINDOW_MAX, p->psn);
	w->flow_out[0]++;
	w->orc = (uint16_t)(w->orc + request);
	d->n.packets_out++;
}

/* Does what ack_request() does for a new packet, with a short way for those between two AR bits.
 * `room`: packets that the window admits, this one included. */
static inline bool
run_ack_request(struct fa_conn *c, const struct fa_pkt *p, uint32_t room)
{
	const struct fa_config *cfg = &c->s->cfg;
	struct pdl_conn *d = &c->pdl;

	if (d->ar_gap > 1 && d->fcwnd > cfg->ar_window && cfg->ar_percent && room > 1) {
		d->ar_gap--;
		return false;
	}
	return ack_request(c, p, false);
}

/* Does the work of send_run() for the packets of `f`, which are of the window `w`. */
static inline __attribute__((always_inline)) int
send_fifo(struct fa_conn *c, uint64_t now, struct pdl_fifo *f, struct pdl_txw *w, bool request,
	unsigned budget, unsigned *n)
{
	struct fa_stack *s = c->s;
	struct pdl_conn *d = &c->pdl;
	struct wire_falcon *h = &s->pdl.hdr;
	struct fa_out out = {.hdr = h, .stamp = s->pdl.ticks, .path = d->flow[0].path};
	uint32_t room = window_room(d, w, request), left = d->queued;
	/* A packet that was never sent had no timeout. */
	uint64_t deadline = now + pdl_timeout(c, f->head);
	struct fa_pkt *p;

	/* The fields that all these packets have in common. */
	h->type = f->head->type;
	h->proto = c->params.protocol;
	h->cid = c->params.peer_cid;
	h->function = c->params.peer_function;
	h->dbpsn = d->rx.dbase;
	h->rbpsn = d->rx.rbase;
	h->resync_code = h->resync_type = 0;
	do {
		p = f->head;
		if (room == 0)
			return TX_NOTHING;
		if (!pdl_txw_reserve(s, w))
			return -EAGAIN;
		h->ar = run_ack_request(c, p, room--);
		h->psn = w->next;
		h->rsn = p->rsn;
		h->request_len = (uint16_t)p->request_len;
		out.payload = p->buf;
		if (s->ops.output(s->ctx, c, &out) == -EAGAIN) {
			fa_count(s, FA_OUTPUT_BUSY);
			return -EAGAIN;
		}
		head_sent(c, now, f, w, request, deadline);
		if (deadline < d->rtx_due) {
			d->rtx_due = deadline;
			pdl_due(c, deadline);
		}
		if (d->coalescing)
			pdl_ack_piggybacked(c);
		/* As long as no packet was queued meanwhile, `f` is the only fifo with any. */
	} while (++*n < budget && !c->dead && --left > 0 && d->queued == left && !f->head->resync);
	return 0;
}

/* Sends new packets of the only fifo `f` that has any, up to `budget` packets of the turn; *n
 * counts them. Returns 0 when the next packet is of another kind or the budget is exhausted, else
 * as send_one() does. */
static int
send_run(struct fa_conn *c, uint64_t now, struct pdl_fifo *f, unsigned budget, unsigned *n)
{
	struct pdl_conn *d = &c->pdl;

	if (f == &d->pushes)
		return send_fifo(c, now, &d->pushes, &d->tx[PDL_DATA], true, budget, n);
	if (f == &d->pulls)
		return send_fifo(c, now, &d->pulls, &d->tx[PDL_REQUEST], true, budget, n);
	return send_fifo(c, now, &d->pull_data, &d->tx[PDL_DATA], false, budget, n);
}

/* Sends a connection's packets in its turn. Sets *rc to -EAGAIN when the port is full. */
static unsigned
pdl_tx_turn(struct fa_conn *c, uint64_t now, unsigned budget, int *rc)
{
	struct pdl_fifo *f;
	unsigned n = 0;

	*rc = 0;
	while (n < budget && !c->dead) {
		f = all_new(c) ? only_fifo(&c->pdl) : NULL;
		if (f != NULL) {
			*rc = send_run(c, now, f, budget, &n);
			if (*rc)
				break;
			continue;
		}
		*rc = has_packets(&c->pdl) ? send_one(c, now) : TX_NOTHING;
		if (*rc)
			break;
		n++;
	}
	if (n)
		pdl_tlp_arm(c, now);
	return n;
}

unsigned
pdl_tx_poll(struct fa_stack *s, uint64_t now, unsigned budget)
{
	struct fa_conn *c, *first_full = NULL, *served = NULL;
	unsigned n = 0, full = 0, sent_now;
	int rc;

	while (n + full < budget && (c = TAILQ_FIRST(&s->pdl.tx)) != NULL && c != first_full) {
		sent_now = pdl_tx_turn(c, now, SK_MIN(budget - n, PDL_TURN), &rc);
		n += sent_now;
		TAILQ_REMOVE(&s->pdl.tx, c, pdl.tx_link);
		c->pdl.on_tx = rc != TX_NOTHING && !c->dead;
		if (!c->pdl.on_tx)
			continue;
		TAILQ_INSERT_TAIL(&s->pdl.tx, c, pdl.tx_link);
		/* This connection's port is full, another one's may not be. One pass over the list
		 * is enough. */
		if (rc == -EAGAIN && !full++)
			first_full = c;
		if (rc == -EAGAIN && sent_now)
			served = c;
	}
	/* The connection that filled the port is the last one at the next poll. */
	if (served != NULL && served->pdl.on_tx) {
		TAILQ_REMOVE(&s->pdl.tx, served, pdl.tx_link);
		TAILQ_INSERT_TAIL(&s->pdl.tx, served, pdl.tx_link);
	}
	return n;
}
