/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs lib/falcon behind a simulated port. A packet consists of Falcon's parsed header, the ULP's
 * headers and a length. PSP adds bytes on the wire and its timestamp only. */
#include "falcon_host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TICKS(ns) ((uint32_t)((ns)*1000 / FA_TICK_PS))

static struct sim_end *
falcon_host_end_of(struct sim_host *h, struct sim_flow *f)
{
	return &f->end[h == f->dst];
}

struct fa_buf *
sim_falcon_buf_get(struct falcon_host *t, void *owner)
{
	struct falcon_buf *b = sim_pool_get(&t->bufs);

	b->buf = (struct fa_buf){.data = b->headers, .owner = owner};
	return &b->buf;
}

void
sim_falcon_buf_free(void *ctx, struct fa_buf *b)
{
	struct falcon_host *t = ctx;

	sim_pool_put(&t->bufs, b);
}

/* ---- Packets ---- */

static int
falcon_host_output(void *ctx, struct fa_conn *c, const struct fa_out *out)
{
	struct falcon_host *t = ctx;
	struct sim_end *e = fa_conn_user(c);
	const struct fa_buf *b = out->payload;
	struct sim_packet *p = sim_host_packet(t->h, e->flow,
		UDP_LEN + PSP_LEN + wire_falcon_len(out->hdr->type) + PSP_ICV_LEN,
		b != NULL ? b->len : 0, out->path);

	if (p == NULL)
		return -EAGAIN;
	p->falcon = *out->hdr;
	p->stamp = out->stamp;
	p->ecn = IP_ECN_ECT0;
	if (b != NULL) {
		p->tag = b->owner;
		p->ulp_len = (uint8_t)b->data_len;
		memcpy(p->ulp, b->data, b->data_len);
	}
	sim_host_send(t->h, p);
	return 0;
}

void
sim_falcon_input(struct sim_host *h, struct sim_packet *p, uint64_t now)
{
	struct falcon_host *t = h->stack;
	struct sim_end *e = falcon_host_end_of(h, &h->w->flows[p->flow]);
	struct fa_in in = {.hdr = &p->falcon,
		.stamp = p->stamp,
		.path = p->entropy,
		.ttl = p->ttl,
		.ce = p->ecn == IP_ECN_CE,
		.waited = TICKS(h->waited_ns)};

	if (p->payload > 0) {
		in.payload = sim_falcon_buf_get(t, p->tag);
		in.payload->len = p->payload;
		in.payload->data_len = p->ulp_len;
		memcpy(in.payload->data, p->ulp, p->ulp_len);
	}
	t->nacks += p->falcon.type == FALCON_NACK;
	fa_input(e->conn, now, &in);
	sim_packet_free(&h->w->memory, p);
}

/* ---- Events ---- */

void
sim_falcon_offer_all(struct falcon_host *t)
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
falcon_host_event(void *ctx, struct fa_conn *c, enum fa_event ev)
{
	struct falcon_host *t = ctx;

	if (ev == FA_EV_DEAD) {
		t->ulp->dead(t, fa_conn_user(c));
		return;
	}
	t->xoff = ev == FA_EV_XOFF;
	if (!t->xoff && t->ulp->xon != NULL)
		t->ulp->xon(t);
}

/* ---- Creation, connections, and turns ---- */

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
	static const char *const names[] = {
		[SIM_CC_SWIFT] = "swift", [SIM_CC_DCTCP] = "dctcp", [SIM_CC_FIXED] = "fixed"};

	t->rue = fa_rue_defaults;
	t->rue.swift.base_delay = TICKS(sc->target_ns);
	t->rue.swift.plb_delay = (uint32_t)(FA_FRACTION_ONE * sc->plb_delay / 100);
	t->rue.plb.fraction = (uint32_t)(FA_FRACTION_ONE * sc->plb_fraction / 100);
	if (sc->early_cuts != SIM_CUTS_DEFAULT)
		t->rue.swift.early_cuts = t->rue.dctcp.early_cuts = sc->early_cuts == SIM_CUTS_YES;
	if (!sc->plb)
		t->rue.plb.attempts = 0;
	t->algorithm = *fa_algorithm_find(names[sc->falcon_cc]);
	t->algorithm.param = &t->rue;
}

static uint32_t
falcon_host_mtu(const struct falcon_host *t)
{
	return t->h->w->sc->payload + t->ulp->headers;
}

static void
falcon_host_configure(struct falcon_host *t, struct fa_config *cfg)
{
	const struct sim_scenario *sc = t->h->w->sc;

	fa_config_default(cfg);
	cfg->max_conns = t->h->w->max_conns;
	pools(&cfg->pools, sc->packets, falcon_host_mtu(t));
	cfg->rto_min_ns = cfg->rto_initial_ns = sc->rto_min_us * 1000;
	cfg->ack_delay_ns = sc->ack_delay_us * 1000;
	cfg->ooo_threshold = sc->ooo_threshold;
	cfg->rack = sc->rack;
	cfg->ttl = SIM_TTL;
	cfg->seed = sim_mix(sc->seed ^ sim_mix(t->h->id));
	t->pools = cfg->pools;
	congestion(t, sc);
}

int
sim_falcon_create(struct sim_host *h, const struct falcon_ulp *ulp)
{
	struct falcon_host *t = sim_calloc(1, sizeof(*t));
	struct fa_ops ops = {.output = falcon_host_output,
		.deliver = ulp->deliver,
		.buf_free = sim_falcon_buf_free,
		.event = falcon_host_event};
	struct fa_config cfg;
	int rc = 0;

	h->stack = t;
	t->h = h;
	t->ulp = ulp;
	t->bufs.size = sizeof(struct falcon_buf);
	sim_random_seed(&t->random, h->w->sc->seed, (uint64_t)h->id << 32 | 1);
	falcon_host_configure(t, &cfg);
	if (ulp->create != NULL)
		rc = ulp->create(t);
	if (rc < 0)
		return rc;
	t->s = fa_stack_create(&cfg, &ops, t, 0);
	return t->s != NULL ? 0 : -ENOMEM;
}

void
sim_falcon_destroy(struct sim_host *h)
{
	struct falcon_host *t = h->stack;

	if (t->ulp->destroy != NULL)
		t->ulp->destroy(t);
	if (t->s != NULL)
		fa_stack_destroy(t->s);
	sim_pool_free(&t->bufs);
	free(t);
}

static int
falcon_host_open_end(struct sim_flow *f, struct sim_end *e)
{
	struct falcon_host *t = e->host->stack;
	const struct sim_scenario *sc = f->w->sc;
	struct fa_params p = {
		.cid = f->id + 1,
		.peer_cid = f->id + 1,
		.protocol = FALCON_RDMA,
		.ordered = sc->ordered,
		.mtu = falcon_host_mtu(t),
		.flows = (uint8_t)sc->flows,
		.algorithm = &t->algorithm,
		.user = e,
	};
	struct fa_conn *c;
	int rc = fa_conn_create(t->s, 0, &p, &c);

	if (rc < 0)
		return rc;
	e->conn = c;
	return t->ulp->open != NULL ? t->ulp->open(t, e) : 0;
}

int
sim_falcon_connect(struct sim_flow *f)
{
	int rc = falcon_host_open_end(f, &f->end[0]);

	if (rc == 0)
		rc = falcon_host_open_end(f, &f->end[1]);
	if (rc == 0)
		sim_flow_ready(f, 0);
	return rc;
}

unsigned
sim_falcon_poll(struct sim_host *h, uint64_t now, unsigned budget)
{
	struct falcon_host *t = h->stack;
	sim_time at = h->w->events.now;

	if (!h->slow)
		return fa_stack_poll(t->s, now, budget);
	fa_stack_stopped(t->s, sim_receiver_stop(&h->receiver));
	fa_stack_backlog(t->s, sim_receiver_backlog(&h->receiver, at));
	if (!sim_receiver_is_behind(&h->receiver, at))
		fa_stack_timers(t->s, now);
	return fa_stack_send(t->s, now, budget);
}

uint64_t
sim_falcon_deadline(struct sim_host *h)
{
	struct falcon_host *t = h->stack;

	return fa_stack_deadline(t->s);
}

void
sim_falcon_count(struct sim_host *h, struct sim_counts *c)
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
