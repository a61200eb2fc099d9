/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Falcon without a ULP to speak of: a message is a run of pushes, or of pulls, of a packet's
 * payload each, whose owner is the message. That pointer travels with the packet, so that the
 * receiver can time it. The target takes every request at once, or lets it wait when the scenario
 * says so.
 */
#include "falcon_host.h"

#define RNR_CODE           1  /* 10 us */
#define PULL_REQUEST_BYTES 28 /* what an RDMA read request has: RBTH and RETH */

static struct fa_buf *
buf_new(struct falcon_host *t, uint32_t len, struct sim_message *m)
{
	struct fa_buf *b = falcon_buf_get(t, m);

	b->len = len;
	return b;
}

/* Transactions of one message, but for the last, are a payload long. */
static uint32_t
nth_len(const struct sim_scenario *sc, uint64_t n)
{
	uint64_t each = (sc->message_bytes + sc->payload - 1) / sc->payload;

	return n % each + 1 < each ? sc->payload
				   : (uint32_t)(sc->message_bytes - (each - 1) * sc->payload);
}

/* A push or a pull of ours is over. */
static void
completed(struct falcon_host *t, struct sim_end *e)
{
	sim_time now = t->h->w->events.now;

	e->in_flight--;
	sim_flow_acked(e->flow, nth_len(t->h->w->sc, e->completed++), now);
}

/* Is the ULP ready for the request? On an ordered connection a refusal holds for what is behind it.
 */
static bool
falcon_raw_ready(struct falcon_host *t, struct sim_end *e, const struct fa_delivery *d)
{
	const struct sim_scenario *sc = t->h->w->sc;

	if (e->refusing && !d->restart)
		return false;
	e->refusing = false;
	if (!sim_chance(&t->random, sc->rnr / 100))
		return true;
	e->refusing = sc->ordered;
	return false;
}

/* At the target: takes the request, and answers it if it is a pull. */
static void
serve(struct falcon_host *t, struct fa_conn *c, const struct fa_delivery *d)
{
	struct sim_message *m = d->buf->owner;
	struct fa_outcome o = {.rsn = d->rsn, .verdict = FA_TAKEN};
	sim_time now = t->h->w->events.now;

	if (!falcon_raw_ready(t, fa_conn_user(c), d)) {
		o.verdict = FA_RNR;
		o.rnr = RNR_CODE;
		o.buf = d->buf;
		fa_outcome(c, now / SIM_NS, &o);
		return;
	}
	if (d->type == FA_PUSH)
		sim_flow_delivered(m, d->buf->len, now);
	falcon_buf_free(t, d->buf);
	fa_outcome(c, now / SIM_NS, &o);
	if (d->type == FA_PULL)
		fa_pull_data(c, now / SIM_NS, d->rsn, buf_new(t, d->request_len, m));
}

static bool
falcon_raw_deliver(void *ctx, struct fa_conn *c, const struct fa_delivery *d)
{
	struct falcon_host *t = ctx;
	struct sim_end *e = fa_conn_user(c);

	switch (d->type) {
	case FA_PUSH:
	case FA_PULL:
		serve(t, c, d);
		break;
	case FA_PULL_DATA:
		sim_flow_delivered(d->buf->owner, d->buf->len, t->h->w->events.now);
		falcon_buf_free(t, d->buf);
		completed(t, e);
		break;
	default:
		if (d->completion != FA_DONE)
			sim_flow_failed(e->flow);
		completed(t, e);
	}
	return true;
}

static void
falcon_raw_dead(struct falcon_host *t, struct sim_end *e)
{
	sim_flow_dead(e->flow);
}

static void
falcon_raw_offer(struct sim_flow *f, uint64_t now)
{
	struct falcon_host *t = f->src->stack;
	const struct sim_scenario *sc = f->w->sc;
	struct sim_end *e = &f->end[0];
	struct sim_message *m;
	uint32_t n;

	while (!t->xoff && e->in_flight < sc->window &&
		(n = sim_flow_take(f, sc->payload, &m)) > 0) {
		e->in_flight++;
		t->last = f->id;
		if (sc->operation == SIM_PUSH || (sc->operation == SIM_BOTH && t->turn++ % 2))
			fa_push(e->conn, now, buf_new(t, n, m));
		else
			fa_pull(e->conn, now, buf_new(t, PULL_REQUEST_BYTES, m), n);
	}
}

static const struct falcon_ulp raw = {
	.headers = PULL_REQUEST_BYTES,
	.deliver = falcon_raw_deliver,
	.dead = falcon_raw_dead,
	.xon = falcon_offer_all,
};

static int
falcon_raw_create(struct sim_host *h)
{
	return falcon_create(h, &raw);
}

const struct sim_transport sim_falcon = {
	.name = "falcon",
	.create = falcon_raw_create,
	.destroy = falcon_destroy,
	.connect = falcon_connect,
	.input = falcon_input,
	.offer = falcon_raw_offer,
	.poll = falcon_poll,
	.deadline = falcon_deadline,
	.count = falcon_count,
};
