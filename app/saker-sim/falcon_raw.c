/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Falcon with plain messages. A message consists of consecutive pushes or pulls of one packet's
 * payload each. The owner of each buffer is the message; this pointer travels with the packet, so
 * that the receiver can measure the message's time. The target accepts each request immediately, or
 * answers "receiver not ready" with the scenario's probability.
 */
#include "falcon_host.h"

#define RNR_CODE           1  /* 10 us */
#define PULL_REQUEST_BYTES 28 /* as in an RDMA Read Request: RBTH and RETH */

static struct fa_buf *
buf_new(struct falcon_host *t, uint32_t len, struct sim_message *m)
{
	struct fa_buf *b = sim_falcon_buf_get(t, m);

	b->len = len;
	return b;
}

/* Returns the length of transaction `n`. All but the last of a message have a whole payload. */
static uint32_t
nth_len(const struct sim_scenario *sc, uint64_t n)
{
	uint64_t each = (sc->message_bytes + sc->payload - 1) / sc->payload;

	return n % each + 1 < each ? sc->payload
				   : (uint32_t)(sc->message_bytes - (each - 1) * sc->payload);
}

/* Handles the completion of a push or a pull at its initiator. */
static void
completed(struct falcon_host *t, struct sim_end *e)
{
	sim_time now = t->h->w->events.now;

	e->in_flight--;
	sim_flow_acked(e->flow, nth_len(t->h->w->sc, e->completed++), now);
}

/* Returns whether the target is ready for the request. On an ordered connection, it refuses all
 * requests behind a refused one until that one is sent again. */
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

/* Handles a request at the target, and answers a pull. */
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
	sim_falcon_buf_free(t, d->buf);
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
		sim_falcon_buf_free(t, d->buf);
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
	.xon = sim_falcon_offer_all,
};

static int
falcon_raw_create(struct sim_host *h)
{
	return sim_falcon_create(h, &raw);
}

const struct sim_transport sim_falcon = {
	.name = "falcon",
	.create = falcon_raw_create,
	.destroy = sim_falcon_destroy,
	.connect = sim_falcon_connect,
	.input = sim_falcon_input,
	.offer = falcon_raw_offer,
	.poll = sim_falcon_poll,
	.deadline = sim_falcon_deadline,
	.count = sim_falcon_count,
};
