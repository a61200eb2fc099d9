/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs lib/tcp behind a simulated port. Records and slices are lengths, or bytes if the ULP needs
 * them. The number of the flow travels with the packet and selects the connection. */
#include "tcp_host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/base/mem.h"

#define LISTEN_PORT 4791
#define FIRST_PORT  1024

struct byte_rec {
	struct tcp_rec rec;
	uint8_t bytes[];
};

static struct sim_end *
tcp_host_end_of(struct sim_host *h, struct sim_flow *f)
{
	return &f->end[h == f->dst];
}

struct tcp_rec *
sim_tcp_rec_new(struct tcp_host *t, struct sim_end *e)
{
	struct byte_rec *r = sim_pool_get(&t->recs);

	r->rec = (struct tcp_rec){.owner = e, .data = t->room ? r->bytes : NULL};
	return &r->rec;
}

/* ---- Segments ---- */

/* Copies the bytes [off, off + len) of a chain of records. */
static void
tcp_host_gather(uint8_t *to, const struct tcp_rec *r, uint32_t off, uint32_t len)
{
	for (; len > 0; r = r->next, off = 0) {
		uint32_t n = SK_MIN(r->len - off, len);

		memcpy(to, r->data + off, n);
		to += n;
		len -= n;
	}
}

static int
tcp_host_output(
	void *ctx, struct tcp_conn *c, const struct tcp_tuple *to, const struct tcp_out *out)
{
	struct tcp_host *t = ctx;
	struct sim_end *e = c != NULL ? tcp_user(c) : NULL;
	uint8_t scratch[TCP_MAX];
	struct sim_flow *f;
	struct sim_packet *p;

	if (e == NULL && t->arriving == NULL) /* a reset without a connection */
		return -EHOSTUNREACH;
	f = e != NULL ? e->flow : t->arriving;
	p = sim_host_packet(t->h, f, wire_tcp_emit(scratch, &out->tcp), out->len,
		(uint32_t)out->tcp.sport << 16 | out->tcp.dport);
	if (p == NULL)
		return -EAGAIN;
	p->tcp = out->tcp;
	p->ecn = out->ecn;
	if (t->room && out->len > 0) {
		p->block = sim_pool_get(&t->h->w->memory.blocks);
		tcp_host_gather(p->block, out->first, out->off, out->len);
	}
	sim_host_send(t->h, p);
	return 0;
}

void
sim_tcp_slices_free(struct tcp_host *t, struct tcp_slice *chain)
{
	struct tcp_slice *next;

	for (; chain != NULL; chain = next) {
		next = chain->next;
		if (chain->owner != NULL)
			sim_pool_put(&t->h->w->memory.blocks, chain->owner);
		sim_pool_put(&t->slices, chain);
	}
}

static void
tcp_host_slice_free(void *ctx, struct tcp_slice *chain)
{
	sim_tcp_slices_free(ctx, chain);
}

static bool
tcp_host_deliver(void *ctx, struct tcp_conn *c, struct tcp_slice *chain)
{
	struct tcp_host *t = ctx;

	t->ulp->deliver(t, tcp_user(c), chain);
	return true;
}

static void
tcp_host_rec_free(void *ctx, struct tcp_rec *chain)
{
	struct tcp_host *t = ctx;
	struct tcp_rec *next;

	for (; chain != NULL; chain = next) {
		next = chain->next;
		t->ulp->acked(t, chain->owner, chain->len);
		sim_pool_put(&t->recs, chain);
	}
}

static struct tcp_rec *
tcp_host_rec_split(void *ctx, struct tcp_conn *conn, struct tcp_rec *rec, uint32_t at)
{
	struct tcp_host *t = ctx;
	struct tcp_rec *rest = sim_tcp_rec_new(t, rec->owner);

	rest->len = rec->len - at;
	if (t->room)
		memcpy(rest->data, rec->data + at, rest->len);
	rec->len = at;
	return rest;
}

/* ---- Events ---- */

static void
connected(struct tcp_host *t, struct sim_end *e)
{
	if (t->ulp->open != NULL)
		t->ulp->open(t, e);
	if (e == &e->flow->end[0])
		sim_flow_ready(e->flow, t->h->w->events.now);
}

static void
tcp_host_event(void *ctx, struct tcp_conn *c, enum tcp_event ev)
{
	struct tcp_host *t = ctx;
	struct sim_end *e;

	if (ev == TCP_EV_CONNECTED && tcp_conn_listener(c) != NULL)
		tcp_claim(c, &t->arriving->end[1]);
	e = tcp_user(c);
	if (ev == TCP_EV_CONNECTED)
		connected(t, e);
	else if (ev == TCP_EV_EMSS && t->ulp->emss != NULL)
		t->ulp->emss(t, e);
	else if (ev == TCP_EV_CLOSED) {
		sim_flow_dead(e->flow);
		if (t->ulp->closed != NULL)
			t->ulp->closed(t, e, tcp_close_reason(c));
	}
}

static void
conn_added(void *ctx, struct tcp_conn *c, struct tcp_listener *l)
{
	struct tcp_host *t = ctx;

	if (l == NULL)
		return;
	t->arriving->end[1].conn = c;
	tcp_set_user(c, &t->arriving->end[1]);
}

static void
conn_removed(void *ctx, struct tcp_conn *c)
{
	struct sim_end *e = tcp_user(c);

	e->conn = NULL;
}

static const struct tcp_ops ops = {
	.output = tcp_host_output,
	.deliver = tcp_host_deliver,
	.slice_free = tcp_host_slice_free,
	.rec_free = tcp_host_rec_free,
	.rec_split = tcp_host_rec_split,
	.event = tcp_host_event,
	.conn_added = conn_added,
	.conn_removed = conn_removed,
};

/* ---- Creation, connections, and turns ---- */

static void
tcp_host_configure(const struct sim_host *h, struct tcp_config *cfg)
{
	static const char *const names[] = {
		[SIM_TCP_CUBIC] = "cubic", [SIM_TCP_DCTCP] = "dctcp", [SIM_TCP_NO_CC] = "none"};
	const struct sim_scenario *sc = h->w->sc;

	tcp_config_default(cfg);
	cfg->max_conns = cfg->max_half_open = h->w->max_conns;
	cfg->snd_buf = cfg->rcv_buf = sc->tcp_buffer_kib * 1024;
	cfg->ooo_slices = sc->tcp_buffer_kib * 1024 / 64;
	cfg->ooo_slices_total = UINT32_MAX / 2;
	cfg->rto_min_ns = sc->tcp_rto_min_us * 1000;
	cfg->cc = names[sc->tcp_cc];
	cfg->ecn = sc->tcp_ecn;
	cfg->rcv_wscale = TCP_WSCALE_MAX;
	/* A constant, so that runs are reproducible. */
	cfg->isn_key = (struct sk_key){{0x5a6b, 0x7c8d}};
}

/* Returns the MTU with which one segment holds a whole payload. */
static uint32_t
tcp_host_mtu(const struct tcp_host *t)
{
	return IP6_LEN + TCP_MAX + t->h->w->sc->payload + t->ulp->headers;
}

int
sim_tcp_create(struct sim_host *h, const struct tcp_ulp *ulp)
{
	struct tcp_host *t = sim_calloc(1, sizeof(*t));
	struct tcp_config cfg;
	int rc = 0;

	h->stack = t;
	t->h = h;
	t->ulp = ulp;
	t->room = ulp->bytes ? tcp_host_mtu(t) : 0;
	t->recs.size = sizeof(struct byte_rec) + t->room;
	t->slices.size = sizeof(struct tcp_slice);
	h->w->memory.blocks.size = tcp_host_mtu(t);
	tcp_host_configure(h, &cfg);
	t->s = tcp_stack_create(&cfg, &ops, t, 0);
	t->listener = t->s != NULL ? tcp_listen(t->s, h->w->max_conns, t) : NULL;
	if (t->listener == NULL)
		return -ENOMEM;
	if (ulp->create != NULL)
		rc = ulp->create(t);
	return rc;
}

void
sim_tcp_destroy(struct sim_host *h)
{
	struct tcp_host *t = h->stack;

	if (t->s != NULL)
		tcp_stack_destroy(t->s);
	if (t->ulp->destroy != NULL)
		t->ulp->destroy(t);
	sim_pool_free(&t->recs);
	sim_pool_free(&t->slices);
	free(t);
}

static struct sk_addr
address(uint32_t host)
{
	struct sk_addr a = {{0xfd}};

	for (int i = 0; i < 4; i++)
		a.b[15 - i] = (uint8_t)(host >> 8 * i);
	return a;
}

static struct tcp_tuple
tuple(const struct sim_flow *f, bool from_src)
{
	uint16_t sport = (uint16_t)(FIRST_PORT + f->id % (UINT16_MAX - FIRST_PORT));
	struct tcp_tuple t = {.laddr = address(from_src ? f->src->id : f->dst->id),
		.raddr = address(from_src ? f->dst->id : f->src->id),
		.lport = from_src ? sport : LISTEN_PORT,
		.rport = from_src ? LISTEN_PORT : sport,
		.vlan = ETH_NO_VLAN};

	return t;
}

int
sim_tcp_open(struct sim_flow *f)
{
	struct tcp_host *t = f->src->stack;
	struct tcp_tuple to = tuple(f, true);
	struct tcp_conn *c;
	int rc = tcp_connect(t->s, 0, &to, tcp_host_mtu(t), &f->end[0], &c);

	if (rc < 0)
		return rc;
	f->end[0].conn = c;
	sim_host_wake(f->src, 0);
	return 0;
}

void
sim_tcp_packet_input(struct sim_host *h, struct sim_packet *p, uint64_t now)
{
	struct tcp_host *t = h->stack;
	struct sim_flow *f = &h->w->flows[p->flow];
	struct sim_end *e = tcp_host_end_of(h, f);
	struct tcp_slice *slice = NULL;
	struct tcp_tuple from;

	if (p->payload > 0) {
		slice = sim_pool_get(&t->slices);
		*slice = (struct tcp_slice){.len = p->payload, .data = p->block, .owner = p->block};
		p->block = NULL;
	}
	t->arriving = f;
	if (e->conn != NULL) {
		tcp_input(e->conn, now, &p->tcp, slice, p->ecn);
	} else {
		from = tuple(f, h == f->src);
		if (h == f->dst)
			tcp_listen_input(
				t->listener, now, &from, tcp_host_mtu(t), &p->tcp, slice, p->ecn);
		else
			tcp_orphan_input(t->s, now, &from, &p->tcp, slice);
	}
	t->arriving = NULL;
	sim_packet_free(&h->w->memory, p);
}

unsigned
sim_tcp_poll(struct sim_host *h, uint64_t now, unsigned budget)
{
	struct tcp_host *t = h->stack;

	return tcp_stack_poll(t->s, now, budget);
}

uint64_t
sim_tcp_deadline(struct sim_host *h)
{
	struct tcp_host *t = h->stack;

	return tcp_stack_deadline(t->s);
}

void
sim_tcp_count(struct sim_host *h, struct sim_counts *c)
{
	struct tcp_host *t = h->stack;
	const uint64_t *n = tcp_stack_counters(t->s);

	c->packets += h->nic.stats.packets;
	c->retransmits += n[TCP_RETRANSMIT];
	c->early += n[TCP_RACK_LOSS];
	c->timeouts += n[TCP_RTO];
	c->probes += n[TCP_TLP];
}
