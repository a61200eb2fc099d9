/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/tcp behind a simulated port. Records and slices are lengths; a flow's connection is found by
 * the flow's number, which travels with the packet. */
#include <errno.h>
#include <stdlib.h>

#include "../../lib/tcp/tcp.h"
#include "world.h"

#define LISTEN_PORT 4791
#define FIRST_PORT  1024

struct tcp_host {
	struct sim_host *h;
	struct tcp_stack *s;
	struct tcp_listener *listener;
	struct sim_flow *arriving; /* whose SYN is being taken */
	struct sim_pool recs, slices;
};

static struct sim_end *
end_of(struct sim_host *h, struct sim_flow *f)
{
	return &f->end[h == f->dst];
}

static int
output(void *ctx, struct tcp_conn *c, const struct tcp_tuple *to, const struct tcp_out *out)
{
	struct tcp_host *t = ctx;
	struct sim_end *e = c != NULL ? tcp_user(c) : NULL;
	uint8_t scratch[TCP_MAX];
	struct sim_flow *f;
	struct sim_packet *p;

	if (e == NULL && t->arriving == NULL) /* a reset for nobody's segment */
		return -EHOSTUNREACH;
	f = e != NULL ? e->flow : t->arriving;
	p = sim_host_packet(t->h, f, wire_tcp_emit(scratch, &out->tcp), out->len,
		(uint32_t)out->tcp.sport << 16 | out->tcp.dport);
	if (p == NULL)
		return -EAGAIN;
	p->tcp = out->tcp;
	p->ecn = out->ecn;
	sim_host_send(t->h, p);
	return 0;
}

static void
slice_free(void *ctx, struct tcp_slice *chain)
{
	struct tcp_host *t = ctx;
	struct tcp_slice *next;

	for (; chain != NULL; chain = next) {
		next = chain->next;
		sim_pool_put(&t->slices, chain);
	}
}

static bool
deliver(void *ctx, struct tcp_conn *c, struct tcp_slice *chain)
{
	struct tcp_host *t = ctx;
	struct sim_end *e = tcp_user(c);
	uint32_t bytes = 0;

	for (struct tcp_slice *s = chain; s != NULL; s = s->next)
		bytes += s->len;
	slice_free(ctx, chain);
	tcp_consumed(c, bytes);
	sim_flow_delivered_in_order(e->flow, bytes, t->h->w->events.now);
	return true;
}

static void
rec_free(void *ctx, struct tcp_rec *chain)
{
	struct tcp_host *t = ctx;
	struct tcp_rec *next;
	struct sim_flow *f;

	for (; chain != NULL; chain = next) {
		next = chain->next;
		f = chain->owner;
		sim_flow_acked(f, chain->len, t->h->w->events.now);
		sim_pool_put(&t->recs, chain);
	}
}

static struct tcp_rec *
rec_split(void *ctx, struct tcp_rec *rec, uint32_t at)
{
	struct tcp_host *t = ctx;
	struct tcp_rec *rest = sim_pool_get(&t->recs);

	*rest = (struct tcp_rec){.owner = rec->owner, .len = rec->len - at};
	rec->len = at;
	return rest;
}

static void
event(void *ctx, struct tcp_conn *c, enum tcp_event ev)
{
	struct tcp_host *t = ctx;
	struct sim_end *e;

	if (ev == TCP_EV_CONNECTED && tcp_conn_listener(c) != NULL)
		tcp_claim(c, &t->arriving->end[1]);
	e = tcp_user(c);
	if (ev == TCP_EV_CONNECTED && e == &e->flow->end[0])
		sim_flow_ready(e->flow, t->h->w->events.now);
	else if (ev == TCP_EV_CLOSED)
		sim_flow_dead(e->flow);
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
	.output = output,
	.deliver = deliver,
	.slice_free = slice_free,
	.rec_free = rec_free,
	.rec_split = rec_split,
	.event = event,
	.conn_added = conn_added,
	.conn_removed = conn_removed,
};

static int
create(struct sim_host *h)
{
	static const char *const names[] = {
		[SIM_TCP_CUBIC] = "cubic", [SIM_TCP_DCTCP] = "dctcp", [SIM_TCP_NO_CC] = "none"};
	const struct sim_scenario *sc = h->w->sc;
	struct tcp_host *t = sim_calloc(1, sizeof(*t));
	struct tcp_config cfg;

	tcp_config_default(&cfg);
	cfg.max_conns = cfg.max_half_open = h->w->max_conns;
	cfg.snd_buf = cfg.rcv_buf = sc->tcp_buffer_kib * 1024;
	cfg.ooo_slices = sc->tcp_buffer_kib * 1024 / 64;
	cfg.ooo_slices_total = UINT32_MAX / 2;
	cfg.rto_min_ns = sc->tcp_rto_min_us * 1000;
	cfg.cc = names[sc->tcp_cc];
	cfg.ecn = sc->tcp_ecn;
	cfg.rcv_wscale = TCP_WSCALE_MAX;
	cfg.isn_key = (struct sk_key){{0x5a6b, 0x7c8d}}; /* not random: runs repeat */
	t->h = h;
	t->recs.size = sizeof(struct tcp_rec);
	t->slices.size = sizeof(struct tcp_slice);
	t->s = tcp_stack_create(&cfg, &ops, t, 0);
	t->listener = t->s != NULL ? tcp_listen(t->s, h->w->max_conns, t) : NULL;
	h->stack = t;
	return t->listener != NULL ? 0 : -ENOMEM;
}

static void
destroy(struct sim_host *h)
{
	struct tcp_host *t = h->stack;

	if (t->s != NULL)
		tcp_stack_destroy(t->s);
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

/* So that a whole payload is one segment. */
static uint32_t
mtu(const struct sim_scenario *sc)
{
	return IP6_LEN + TCP_MAX + sc->payload;
}

static int
connect(struct sim_flow *f)
{
	struct tcp_host *t = f->src->stack;
	struct tcp_tuple to = tuple(f, true);
	struct tcp_conn *c;
	int rc = tcp_connect(t->s, 0, &to, mtu(f->w->sc), &f->end[0], &c);

	if (rc < 0)
		return rc;
	f->end[0].conn = c;
	sim_host_wake(f->src, 0);
	return 0;
}

static void
input(struct sim_host *h, struct sim_packet *p, uint64_t now)
{
	struct tcp_host *t = h->stack;
	struct sim_flow *f = &h->w->flows[p->flow];
	struct sim_end *e = end_of(h, f);
	struct tcp_slice *slice = NULL;
	struct tcp_tuple from;

	if (p->payload > 0) {
		slice = sim_pool_get(&t->slices);
		*slice = (struct tcp_slice){.len = p->payload};
	}
	t->arriving = f;
	if (e->conn != NULL) {
		tcp_input(e->conn, now, &p->tcp, slice, p->ecn);
	} else {
		from = tuple(f, h == f->src);
		if (h == f->dst)
			tcp_listen_input(
				t->listener, now, &from, mtu(h->w->sc), &p->tcp, slice, p->ecn);
		else
			tcp_orphan_input(t->s, now, &from, &p->tcp, slice);
	}
	t->arriving = NULL;
	sim_pool_put(&h->w->packets, p);
}

static void
offer(struct sim_flow *f, uint64_t now)
{
	struct tcp_host *t = f->src->stack;
	struct sim_message *m;
	struct tcp_rec *rec;
	uint32_t n;

	if (f->end[0].conn == NULL)
		return;
	while (tcp_send_space(f->end[0].conn) > 0 &&
		(n = sim_flow_take(f, f->w->sc->payload, &m)) > 0) {
		rec = sim_pool_get(&t->recs);
		*rec = (struct tcp_rec){.len = n, .owner = f};
		tcp_send(f->end[0].conn, rec);
	}
}

static unsigned
poll(struct sim_host *h, uint64_t now, unsigned budget)
{
	struct tcp_host *t = h->stack;

	return tcp_stack_poll(t->s, now, budget);
}

static uint64_t
deadline(struct sim_host *h)
{
	struct tcp_host *t = h->stack;

	return tcp_stack_deadline(t->s);
}

static void
count(struct sim_host *h, struct sim_counts *c)
{
	struct tcp_host *t = h->stack;
	const uint64_t *n = tcp_stack_counters(t->s);

	c->packets += h->nic.stats.packets;
	c->retransmits += n[TCP_RETRANSMIT];
	c->early += n[TCP_RACK_LOSS];
	c->timeouts += n[TCP_RTO];
	c->probes += n[TCP_TLP];
}

const struct sim_transport sim_tcp = {
	.name = "tcp",
	.create = create,
	.destroy = destroy,
	.connect = connect,
	.input = input,
	.offer = offer,
	.poll = poll,
	.deadline = deadline,
	.count = count,
};
