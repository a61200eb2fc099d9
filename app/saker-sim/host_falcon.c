/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/falcon behind a simulated port, without a ULP above it: a message is a run of pushes, or of
 * pulls, of a packet's payload each. Payloads are lengths whose owner is the message; the packet
 * carries that pointer across, so that the receiver can time it.
 */
#include <errno.h>
#include <stdlib.h>

#include "../../lib/falcon/falcon.h"
#include "../../lib/falcon/rue.h"
#include "world.h"

#define RNR_CODE           1  /* 10 us */
#define PULL_REQUEST_BYTES 28 /* what an RDMA read request has: RBTH and RETH */
#define TICKS(ns)          ((uint32_t)((ns)*1000 / FA_TICK_PS))

struct falcon_host {
	struct sim_host *h;
	struct fa_stack *s;
	struct sim_pool bufs;
	struct sim_random random;
	bool xoff;
	uint32_t last; /* flow that pushed or pulled when it came */
	struct fa_algorithm algorithm;
	struct fa_swift_params swift;
	uint64_t nacks; /* received */
	unsigned turn;  /* pushes and pulls take turns */
};

static struct sim_end *
end_of(struct sim_host *h, struct sim_flow *f)
{
	return &f->end[h == f->dst];
}

static struct fa_buf *
buf_new(struct falcon_host *t, uint32_t len, struct sim_message *m)
{
	struct fa_buf *b = sim_pool_get(&t->bufs);

	*b = (struct fa_buf){.len = len, .owner = m};
	return b;
}

static void
buf_free(void *ctx, struct fa_buf *b)
{
	struct falcon_host *t = ctx;

	sim_pool_put(&t->bufs, b);
}

static int
output(void *ctx, struct fa_conn *c, const struct fa_out *out)
{
	struct falcon_host *t = ctx;
	struct sim_end *e = fa_conn_user(c);
	uint32_t payload = out->payload != NULL ? out->payload->len : 0;
	struct sim_packet *p = sim_host_packet(t->h, e->flow,
		UDP_LEN + PSP_LEN + wire_falcon_len(out->hdr->type) + PSP_ICV_LEN, payload,
		out->path);

	if (p == NULL)
		return -EAGAIN;
	p->falcon = *out->hdr;
	p->stamp = out->stamp;
	p->ecn = IP_ECN_ECT0;
	p->tag = out->payload != NULL ? out->payload->owner : NULL;
	sim_host_send(t->h, p);
	return 0;
}

/* ---- The ULP's part ---- */

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
ready(struct falcon_host *t, struct sim_end *e, const struct fa_delivery *d)
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

	if (!ready(t, fa_conn_user(c), d)) {
		o.verdict = FA_RNR;
		o.rnr = RNR_CODE;
		o.buf = d->buf;
		fa_outcome(c, now / SIM_NS, &o);
		return;
	}
	if (d->type == FA_PUSH)
		sim_flow_delivered(m, d->buf->len, now);
	buf_free(t, d->buf);
	fa_outcome(c, now / SIM_NS, &o);
	if (d->type == FA_PULL)
		fa_pull_data(c, now / SIM_NS, d->rsn, buf_new(t, d->request_len, m));
}

static bool
deliver(void *ctx, struct fa_conn *c, const struct fa_delivery *d)
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
		buf_free(t, d->buf);
		completed(t, e);
		break;
	default:
		if (d->completion != FA_DONE)
			sim_flow_failed(e->flow);
		completed(t, e);
	}
	return true;
}

/* Behind the one that was stopped: all get their turn. */
static void
offer_all(struct falcon_host *t)
{
	struct sim_world *w = t->h->w;
	struct sim_flow *f;

	for (uint32_t i = 1; i <= w->nflows; i++) {
		f = &w->flows[(t->last + i) % w->nflows];
		if (f->src == t->h)
			sim_flow_offer(f, w->events.now);
	}
}

static void
event(void *ctx, struct fa_conn *c, enum fa_event ev)
{
	struct falcon_host *t = ctx;
	struct sim_end *e;

	if (ev == FA_EV_DEAD) {
		e = fa_conn_user(c);
		sim_flow_dead(e->flow);
		return;
	}
	t->xoff = ev == FA_EV_XOFF;
	if (!t->xoff)
		offer_all(t);
}

static const struct fa_ops ops = {
	.output = output,
	.deliver = deliver,
	.buf_free = buf_free,
	.event = event,
};

/* ---- Life ---- */

static void
pools(struct fa_pools *p, uint32_t packets, uint32_t payload)
{
	uint32_t tx = (payload + p->tx_cell - 1) / p->tx_cell;
	uint32_t rx = (payload + p->rx_cell - 1) / p->rx_cell;

	p->tx_pkt_req = p->tx_pkt_data = p->rx_pkt_ulp = p->rx_pkt_net = packets;
	p->rx_pkt_red = (packets + 3) / 4;
	p->tx_buf_req = p->tx_buf_data = packets * tx;
	p->rx_buf_ulp = p->rx_buf_net = packets * rx;
	p->rx_buf_red = (packets + 3) / 4 * rx;
}

static void
congestion(struct falcon_host *t, const struct sim_scenario *sc)
{
	fa_swift_defaults(&t->swift);
	t->swift.base_delay = TICKS(sc->target_ns);
	t->swift.early_cuts = sc->early_cuts;
	t->swift.plb_delay = (uint32_t)(FA_FRACTION_ONE * sc->plb_delay / 100);
	if (!sc->plb)
		t->swift.plb_attempts = 0;
	t->algorithm = sc->falcon_cc == SIM_CC_SWIFT ? fa_swift : fa_fixed;
	t->algorithm.param = sc->falcon_cc == SIM_CC_SWIFT ? &t->swift : NULL;
}

static int
create(struct sim_host *h)
{
	const struct sim_scenario *sc = h->w->sc;
	struct falcon_host *t = sim_calloc(1, sizeof(*t));
	struct fa_config cfg;

	fa_config_default(&cfg);
	cfg.max_conns = h->w->max_conns;
	pools(&cfg.pools, sc->packets, sc->payload);
	cfg.rto_min_ns = cfg.rto_initial_ns = sc->rto_min_us * 1000;
	cfg.ack_delay_ns = sc->ack_delay_us * 1000;
	cfg.ooo_threshold = sc->ooo_threshold;
	cfg.rack = sc->rack;
	cfg.ttl = SIM_TTL;
	cfg.seed = sim_mix(sc->seed ^ sim_mix(h->id));
	congestion(t, sc);
	sim_random_seed(&t->random, sc->seed, (uint64_t)h->id << 32 | 1);
	t->h = h;
	t->bufs.size = sizeof(struct fa_buf);
	t->s = fa_stack_create(&cfg, &ops, t, 0);
	h->stack = t;
	return t->s != NULL ? 0 : -ENOMEM;
}

static void
destroy(struct sim_host *h)
{
	struct falcon_host *t = h->stack;

	if (t->s != NULL)
		fa_stack_destroy(t->s);
	sim_pool_free(&t->bufs);
	free(t);
}

static int
open_end(struct sim_flow *f, struct sim_end *e)
{
	struct falcon_host *t = e->host->stack;
	const struct sim_scenario *sc = f->w->sc;
	struct fa_params p = {
		.cid = f->id + 1,
		.peer_cid = f->id + 1,
		.protocol = FALCON_RDMA,
		.ordered = sc->ordered,
		.mtu = sc->payload > PULL_REQUEST_BYTES ? sc->payload : PULL_REQUEST_BYTES,
		.flows = (uint8_t)sc->flows,
		.algorithm = &t->algorithm,
		.user = e,
	};
	struct fa_conn *c;
	int rc = fa_conn_create(t->s, 0, &p, &c);

	if (rc == 0)
		e->conn = c;
	return rc;
}

static int
connect(struct sim_flow *f)
{
	int rc = open_end(f, &f->end[0]);

	if (rc == 0)
		rc = open_end(f, &f->end[1]);
	if (rc == 0)
		sim_flow_ready(f, 0);
	return rc;
}

static void
input(struct sim_host *h, struct sim_packet *p, uint64_t now)
{
	struct falcon_host *t = h->stack;
	struct sim_end *e = end_of(h, &h->w->flows[p->flow]);
	struct fa_in in = {.hdr = &p->falcon,
		.stamp = p->stamp,
		.path = p->entropy,
		.ttl = p->ttl,
		.ce = p->ecn == IP_ECN_CE};

	if (p->payload > 0)
		in.payload = buf_new(t, p->payload, p->tag);
	t->nacks += p->falcon.type == FALCON_NACK;
	fa_input(e->conn, now, &in);
	sim_pool_put(&h->w->packets, p);
}

static void
offer(struct sim_flow *f, uint64_t now)
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

static unsigned
poll(struct sim_host *h, uint64_t now, unsigned budget)
{
	struct falcon_host *t = h->stack;

	return fa_stack_poll(t->s, now, budget);
}

static uint64_t
deadline(struct sim_host *h)
{
	struct falcon_host *t = h->stack;

	return fa_stack_deadline(t->s);
}

static void
count(struct sim_host *h, struct sim_counts *c)
{
	struct falcon_host *t = h->stack;
	const uint64_t *n = fa_stack_counters(t->s);

	c->packets += h->nic.stats.packets;
	c->retransmits += n[FA_RETRANSMIT];
	c->early += n[FA_EARLY];
	c->timeouts += n[FA_TIMEOUT];
	c->probes += n[FA_PROBE];
	c->nacks += t->nacks;
	c->repaths += n[FA_REPATH];
}

const struct sim_transport sim_falcon = {
	.name = "falcon",
	.create = create,
	.destroy = destroy,
	.connect = connect,
	.input = input,
	.offer = offer,
	.poll = poll,
	.deadline = deadline,
	.count = count,
};
