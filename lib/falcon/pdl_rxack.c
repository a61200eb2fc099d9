/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Outgoing acknowledgements and NACKs (9.1.6, 9.1.7). Acknowledgements are coalesced per flow, by a
 * timer and a count, and return on the path on which the packets arrived, so that each path is
 * measured. An EACK goes out whenever a bitmap has a bit set: it reports which packets wait for the
 * ULP, so that the sender does not treat them as lost.
 */
#include <errno.h>

#include "conn_priv.h"

static void
ack_now(struct fa_conn *c, struct pdl_flow *f)
{
	f->ack_now = true;
	if (c->pdl.on_acks || c->dead)
		return;
	TAILQ_INSERT_TAIL(&c->s->pdl.acks, c, pdl.ack_link);
	c->pdl.on_acks = true;
}

/* The timer is set whether the packets reach the count or not, so that it does not depend on how
 * they are divided into runs. */
static void
note(struct fa_conn *c, uint64_t now, struct pdl_flow *f, unsigned halves, uint64_t delay)
{
	if (f->ack_due > now + delay && !f->ack_now) {
		f->ack_due = now + delay;
		c->pdl.coalescing = true;
		pdl_due(c, f->ack_due);
	}
	f->ack_half = (uint16_t)(f->ack_half + halves);
	if (f->ack_half >= 2 * c->s->cfg.ack_count)
		ack_now(c, f);
}

void
pdl_ack_note(struct fa_conn *c, uint64_t now, unsigned flow, unsigned halves, bool now_please)
{
	struct pdl_flow *f = &c->pdl.flow[flow];

	note(c, now, f, halves, c->s->cfg.ack_delay_ns);
	if (now_please)
		ack_now(c, f);
}

/* Returns whether the pushes that wait for the ULP are behind a packet that is missing. */
static bool
has_hole(const uint64_t map[2])
{
	if (~map[0] == 0)
		return map[1] & (map[1] + 1);
	return map[1] | (map[0] & (map[0] + 1));
}

void
pdl_ack_received(struct fa_conn *c, uint64_t now, unsigned flow, unsigned pushes)
{
	uint64_t delay = c->s->cfg.ack_delay_ns;

	if (!has_hole(c->pdl.rx.rx))
		delay *= PDL_RECEIVED_DELAYS;
	note(c, now, &c->pdl.flow[flow], pushes, delay);
}

static bool
pdl_rxack_plain(const struct pdl_conn *d)
{
	const struct pdl_rx *rx = &d->rx;

	return !(rx->req | rx->ack[0] | rx->ack[1] | rx->rx[0] | rx->rx[1]) && !d->own_request &&
	       !d->own_data;
}

void
pdl_ack_piggybacked(struct fa_conn *c)
{
	struct pdl_conn *d = &c->pdl;

	if (!d->coalescing || !pdl_rxack_plain(d))
		return;
	for (unsigned i = 0; i < d->flows; i++) {
		d->flow[i].ack_due = SK_NEVER;
		d->flow[i].ack_half = 0;
	}
	d->coalescing = false;
}

uint64_t
pdl_ack_timer(struct fa_conn *c, uint64_t now)
{
	struct pdl_conn *d = &c->pdl;
	uint64_t next = SK_NEVER;

	if (!d->coalescing)
		return next;
	for (unsigned i = 0; i < d->flows; i++) {
		struct pdl_flow *f = &d->flow[i];

		if (f->ack_due <= now) {
			f->ack_due = SK_NEVER;
			ack_now(c, f);
		}
		next = SK_MIN(next, f->ack_due);
	}
	d->coalescing = next != SK_NEVER;
	return next;
}

/* ---- The packet ---- */

static struct wire_falcon *
pdl_rxack_header(struct fa_conn *c, const struct pdl_flow *f, uint8_t type)
{
	struct wire_falcon *h = &c->s->pdl.ack_hdr;
	const struct pdl_rx *rx = &c->pdl.rx;

	h->type = type;
	h->cid = c->params.peer_cid;
	h->dbpsn = rx->dbase;
	h->rbpsn = rx->rbase;
	h->t1 = f->t1;
	h->t2 = f->t2;
	h->hops = f->hops;
	h->rx_level = SK_MAX(tl_rx_level(c->s), c->s->pdl.backlog);
	h->ecn = f->ecn;
	h->rue = f->cc.metadata;
	h->own_request = type == FALCON_EACK && c->pdl.own_request;
	h->own_data = type == FALCON_EACK && c->pdl.own_data;
	return h;
}

static int
pdl_rxack_emit(struct fa_conn *c, const struct wire_falcon *h, const struct pdl_flow *f)
{
	uint32_t path = c->params.paths == NULL ? f->rx_path : pdl_path_back(c, f->rx_path);
	struct fa_out out = {.hdr = h, .stamp = c->s->pdl.ticks, .path = path};
	int rc = c->s->ops.output(c->s->ctx, c, &out);

	if (rc == -EAGAIN)
		fa_count(c->s, FA_OUTPUT_BUSY);
	return rc;
}

/* Returns whether a packet before one that has arrived has not. */
static bool
is_missing_packets(const struct pdl_rx *rx)
{
	return has_hole(rx->rx) || (rx->req & (rx->req + 1)) != 0;
}

static int
pdl_rxack_send_ack(struct fa_conn *c, struct pdl_flow *f)
{
	struct pdl_rx *rx = &c->pdl.rx;
	bool is_plain = pdl_rxack_plain(&c->pdl);
	struct wire_falcon *h = pdl_rxack_header(c, f, is_plain ? FALCON_BACK : FALCON_EACK);

	if (!is_plain) {
		h->req_map = rx->req;
		for (unsigned i = 0; i < 2; i++) {
			h->data_ack[i] = rx->ack[i];
			h->data_rx[i] = rx->rx[i];
		}
	}
	if (pdl_rxack_emit(c, h, f) == -EAGAIN)
		return -EAGAIN;
	if (!is_plain && is_missing_packets(rx))
		fa_stack_missing(c->s);
	c->pdl.own_request = c->pdl.own_data = false;
	f->ack_now = false;
	f->ack_due = SK_NEVER;
	f->ack_half = 0;
	c->pdl.n.acks_out++;
	return 0;
}

/* Sends the acknowledgements of all flows of a connection that are due, until *n, their number, is
 * `budget`. Returns -EAGAIN when one of them is left. */
static int
send_acks(struct fa_conn *c, unsigned budget, unsigned *n)
{
	for (unsigned i = 0; i < c->pdl.flows; i++) {
		struct pdl_flow *f = &c->pdl.flow[i];

		if (!f->ack_now)
			continue;
		if (*n >= budget || pdl_rxack_send_ack(c, f))
			return -EAGAIN;
		++*n;
	}
	return 0;
}

/* ---- NACKs ---- */

/* Removes the first NACK from the queue. */
static void
nack_drop(struct pdl_stack *ps)
{
	const struct pdl_nack *n = &ps->nack[ps->nack_head];

	if (n->c != NULL)
		n->c->pdl.nacks--;
	ps->nack_head = (ps->nack_head + 1) % PDL_NACKS;
	ps->nack_count--;
}

/* Makes the first NACK of the queue the last one. */
static void
nack_rotate(struct pdl_stack *ps)
{
	struct pdl_nack n = ps->nack[ps->nack_head];

	ps->nack[(ps->nack_head + ps->nack_count) % PDL_NACKS] = n;
	ps->nack_head = (ps->nack_head + 1) % PDL_NACKS;
}

/* A full queue loses its oldest NACK, which may be one that no port accepts. The peer repeats the
 * packet, and then PDL repeats the NACK. */
void
pdl_nack_queue(struct fa_conn *c, bool request, uint32_t psn, uint8_t code, uint8_t rnr,
	uint8_t ulp_code, unsigned flow)
{
	struct pdl_stack *ps = &c->s->pdl;

	if (ps->nack_count == PDL_NACKS)
		nack_drop(ps);
	ps->nack[(ps->nack_head + ps->nack_count++) % PDL_NACKS] =
		(struct pdl_nack){c, psn, request, code, rnr, ulp_code, (uint8_t)flow};
	c->pdl.nacks++;
}

static int
send_nack(const struct pdl_nack *n)
{
	struct fa_conn *c = n->c;
	const struct pdl_flow *f = &c->pdl.flow[n->flow];
	struct wire_falcon *h = pdl_rxack_header(c, f, FALCON_NACK);

	h->psn = n->psn;
	h->nack_request = n->request;
	h->nack_code = n->code;
	h->rnr_timeout = n->rnr;
	h->ulp_code = n->ulp_code;
	if (pdl_rxack_emit(c, h, f) == -EAGAIN)
		return -EAGAIN;
	c->pdl.n.nacks_out++;
	return 0;
}

/* Sends the NACKs of all connections in one pass over the queue. Those of a connection whose port
 * is full wait behind the others, and cost one attempt. */
static unsigned
nacks(struct fa_stack *s, unsigned budget)
{
	struct pdl_stack *ps = &s->pdl;
	const struct fa_conn *full = NULL;
	unsigned sent = 0, failed = 0;

	for (unsigned left = ps->nack_count; left > 0 && sent + failed < budget; left--) {
		const struct pdl_nack *n = &ps->nack[ps->nack_head];
		const struct fa_conn *c = n->c;
		bool alive = c != NULL && !c->dead;

		if (alive && (c == full || send_nack(n))) {
			failed += c != full;
			full = c;
			nack_rotate(ps);
			continue;
		}
		sent += alive;
		nack_drop(ps);
	}
	return sent;
}

unsigned
pdl_rxack_poll(struct fa_stack *s, unsigned budget)
{
	unsigned n = nacks(s, budget), full = 0;
	struct fa_conn *c;

	while (n + full < budget && (c = TAILQ_FIRST(&s->pdl.acks)) != NULL) {
		bool again = send_acks(c, budget, &n) == -EAGAIN;

		if (again && n >= budget)
			/* The next poll begins with this connection. */
			break;
		TAILQ_REMOVE(&s->pdl.acks, c, pdl.ack_link);
		c->pdl.on_acks = again;
		if (!again)
			continue;
		TAILQ_INSERT_TAIL(&s->pdl.acks, c, pdl.ack_link);
		if (full++)
			/* The port is full for more than one connection: the rest waits for the
			 * next poll. */
			break;
	}
	return n;
}

void
pdl_rxack_forget(struct fa_conn *c)
{
	struct pdl_stack *ps = &c->s->pdl;

	if (c->pdl.on_acks)
		TAILQ_REMOVE(&ps->acks, c, pdl.ack_link);
	c->pdl.on_acks = false;
	for (unsigned i = 0; c->pdl.nacks && i < ps->nack_count; i++) {
		struct pdl_nack *n = &ps->nack[(ps->nack_head + i) % PDL_NACKS];

		if (n->c != c)
			continue;
		n->c = NULL;
		c->pdl.nacks--;
	}
}
