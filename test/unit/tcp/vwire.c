/* SPDX-License-Identifier: BSD-3-Clause */
/* The virtual wire: a heap of packets, ordered by arrival time, between two stacks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../lib/base/mem.h"
#include "../../support/tcp_end.h"
#include "vwire_heap.h"

/* A check that holds in every build type. */
#define MUST(x) must((x), #x, __LINE__)

static void
must(bool ok, const char *what, int line)
{
	if (ok)
		return;
	fprintf(stderr, "vwire.c:%d: %s\n", line, what);
	abort();
}

uint64_t
vw_random(struct vwire *w)
{
	w->rng ^= w->rng << 13;
	w->rng ^= w->rng >> 7;
	w->rng ^= w->rng << 17;
	return w->rng * 0x2545f4914f6cdd1dull;
}

bool
vw_chance(struct vwire *w, double p)
{
	return p > 0 && (double)(vw_random(w) >> 11) < p * (double)(1ull << 53);
}

/* ---- Callbacks of the stacks ---- */

static uint32_t
ip_len(const struct vwire *w)
{
	return w->p.v6 ? IP6_LEN : IP4_LEN;
}

static struct vw_packet *
packet(struct vw_end *e, const struct wire_tcp *t, const uint8_t *data, uint32_t len)
{
	struct vw_packet *p = calloc(1, sizeof(*p));

	p->to = !e->index;
	p->hdr_len = wire_tcp_emit(p->hdr, t);
	p->len = len;
	p->data = malloc(len + 1);
	memcpy(p->data, data, len);
	return p;
}

/* Applies the rate limit with its buffer. Returns false when the buffer is full. */
static bool
queue(struct vw_end *e, struct vw_packet *p, uint8_t ecn)
{
	struct vwire *w = e->w;
	uint64_t size = p->hdr_len + p->len + ip_len(w), waits;

	p->at = w->now;
	p->ecn = ecn;
	if (w->p.rate_bps) {
		if (e->link_free < w->now)
			e->link_free = w->now;
		waits = (uint64_t)((double)(e->link_free - w->now) * 1e-9 * (double)w->p.rate_bps /
				   8);
		if (w->p.buffer && waits + size > w->p.buffer)
			return false;
		if (w->p.ce_above && waits > w->p.ce_above && ecn)
			p->ecn = IP_ECN_CE;
		e->link_free += (uint64_t)((double)size * 8e9 / (double)w->p.rate_bps);
		p->at = e->link_free;
	}
	if (ecn && vw_chance(w, w->p.ce))
		p->ecn = IP_ECN_CE;
	p->at += w->p.delay_ns;
	if (w->p.jitter_ns && vw_chance(w, w->p.reorder))
		p->at += vw_random(w) % w->p.jitter_ns;
	return true;
}

static void
packet_free(struct vw_packet *p)
{
	free(p->data);
	free(p);
}

static void
wire_send(
	struct vw_end *e, const struct wire_tcp *t, const uint8_t *data, uint32_t len, uint8_t ecn)
{
	struct vwire *w = e->w;
	struct vw_packet *p = packet(e, t, data, len), *copy;

	MUST(p->hdr_len + len + ip_len(w) <= (w->p.mtu ? w->p.mtu : 1500));
	if (e->hooks.segment != NULL && !e->hooks.segment(e, t, data, len, ecn)) {
		packet_free(p);
		return;
	}
	if (w->p.path_mtu && p->hdr_len + len + ip_len(w) > w->p.path_mtu) {
		p->to = e->index;
		p->icmp_mtu = w->p.path_mtu;
		p->at = w->now + w->p.delay_ns;
		vw_heap_push(w, p);
		return;
	}
	if (vw_chance(w, w->p.loss) || !queue(e, p, ecn)) {
		packet_free(p);
		return;
	}
	if (vw_chance(w, w->p.dup)) {
		copy = packet(e, t, data, len);
		copy->at = p->at + w->p.delay_ns / 2;
		copy->ecn = p->ecn;
		vw_heap_push(w, copy);
	}
	vw_heap_push(w, p);
}

static uint8_t *
flatten(const struct tcp_out *out)
{
	uint8_t *buf = malloc(out->len + 1);
	const struct tcp_rec *r = out->first;
	uint32_t at = 0, off = out->off, n;

	while (at < out->len) {
		n = SK_MIN(r->len - off, out->len - at);
		memcpy(buf + at, r->data + off, n);
		at += n;
		off = 0;
		r = r->next;
	}
	return buf;
}

static int
on_output(void *ctx, struct tcp_conn *c, const struct tcp_tuple *to, const struct tcp_out *out)
{
	struct vw_end *e = ctx;
	struct wire_tcp t = out->tcp;
	uint32_t at = 0, n;
	uint8_t *buf;

	if (vw_chance(e->w, e->w->p.busy))
		return -EAGAIN;
	buf = flatten(out);
	if (out->gso_size)
		e->gso_out++;
	do {
		n = out->gso_size ? SK_MIN(out->gso_size, out->len - at) : out->len;
		t.seq = out->tcp.seq + at;
		t.flags = out->tcp.flags;
		if (at + n < out->len)
			t.flags &= ~(TCP_PSH | TCP_FIN);
		wire_send(e, &t, buf + at, n, out->ecn);
		at += n;
	} while (at < out->len);
	free(buf);
	return 0;
}

static void
on_slice_free(void *ctx, struct tcp_slice *chain)
{
	struct vw_end *e = ctx;

	tcp_end_slice_free(&e->slices, chain);
}

static bool
on_deliver(void *ctx, struct tcp_conn *c, struct tcp_slice *chain)
{
	struct vw_end *e = ctx;
	uint32_t n = 0;

	if (vw_chance(e->w, e->w->p.refuse))
		return false;
	for (struct tcp_slice *p = chain; p != NULL; p = p->next) {
		n += p->len;
		if (e->hooks.bytes != NULL)
			e->hooks.bytes(e, c, p->data, p->len);
	}
	on_slice_free(ctx, chain);
	tcp_consumed(c, n);
	return true;
}

static void
on_rec_free(void *ctx, struct tcp_rec *chain)
{
	struct vw_end *e = ctx;

	tcp_end_rec_free(&e->recs, chain);
}

static struct tcp_rec *
on_rec_split(void *ctx, struct tcp_conn *c, struct tcp_rec *rec, uint32_t at)
{
	struct vw_end *e = ctx;

	MUST(at > 0 && at < rec->len);
	if (e->w->p.busy > 0 && vw_chance(e->w, e->w->p.busy))
		return NULL;
	return tcp_end_rec_split(&e->recs, rec, at);
}

static void
on_event(void *ctx, struct tcp_conn *c, enum tcp_event ev)
{
	struct vw_end *e = ctx;

	if (ev == TCP_EV_CONNECTED) {
		if (tcp_conn_listener(c) != NULL)
			tcp_claim(c, NULL);
		tcp_set_tso(c, e->w->p.tso);
	}
	if (e->hooks.event != NULL)
		e->hooks.event(e, c, ev);
}

static void
on_added(void *ctx, struct tcp_conn *c, struct tcp_listener *l)
{
	struct vw_end *e = ctx;

	MUST(e->nconns < VW_MAX_CONNS);
	e->conns[e->nconns].t = *tcp_tuple(c);
	e->conns[e->nconns++].c = c;
}

static void
on_removed(void *ctx, struct tcp_conn *c)
{
	struct vw_end *e = ctx;

	for (unsigned i = 0; i < e->nconns; i++) {
		if (e->conns[i].c == c) {
			e->conns[i] = e->conns[--e->nconns];
			return;
		}
	}
	MUST(!"a connection that was never added");
}

/* ---- Arrival of packets ---- */

static struct tcp_tuple
end_tuple(const struct vwire *w, unsigned index, uint16_t lport, uint16_t rport)
{
	struct tcp_tuple t = {.lport = lport, .rport = rport, .vlan = ETH_NO_VLAN};
	char a[] = "10.0.0.1", b[] = "fd00::1";

	a[7] += (char)index;
	b[6] += (char)index;
	sk_addr_parse(w->p.v6 ? b : a, &t.laddr);
	sk_addr_parse(w->p.v6 ? (index ? "fd00::1" : "fd00::2") : (index ? "10.0.0.1" : "10.0.0.2"),
		&t.raddr);
	return t;
}

static struct tcp_conn *
lookup(struct vw_end *e, uint16_t lport, uint16_t rport)
{
	for (unsigned i = 0; i < e->nconns; i++) {
		if (e->conns[i].t.lport == lport && e->conns[i].t.rport == rport)
			return e->conns[i].c;
	}
	return NULL;
}

static void
arrive(struct vwire *w, struct vw_packet *p)
{
	struct vw_end *e = &w->end[p->to];
	struct tcp_slice *payload = NULL;
	uint32_t mtu = w->p.mtu ? w->p.mtu : 1500;
	struct tcp_listener *l;
	struct tcp_tuple tuple;
	struct tcp_conn *c;
	struct wire_tcp t;
	int n = wire_tcp_parse(&t, p->hdr, p->hdr_len);

	MUST(n == (int)p->hdr_len);
	if (p->icmp_mtu) {
		c = lookup(e, t.sport, t.dport);
		if (c != NULL)
			tcp_icmp_mtu(c, w->now, t.seq, p->icmp_mtu);
		return;
	}
	if (p->len)
		payload = tcp_end_slice(&e->slices, p->data, p->len);
	tuple = end_tuple(w, p->to, t.dport, t.sport);
	c = lookup(e, t.dport, t.sport);
	l = t.dport == 4000 ? e->listener : NULL;
	if (c != NULL && (l == NULL || !tcp_reopen(c, w->now, &t)))
		tcp_input(c, w->now, &t, payload, p->ecn);
	else if (l != NULL)
		tcp_listen_input(l, w->now, &tuple, mtu, &t, payload, p->ecn);
	else
		tcp_orphan_input(e->s, w->now, &tuple, &t, payload);
}

/* ---- The harness ---- */

void
vw_config(struct tcp_config *cfg)
{
	tcp_config_default(cfg);
	cfg->max_conns = VW_MAX_CONNS;
	cfg->max_half_open = 16;
	cfg->max_time_wait = cfg->max_left = 16;
	cfg->isn_key = (struct sk_key){{1, 2}};
}

struct vwire *
vw_create(const struct vw_params *p, const struct tcp_config *cfg)
{
	static const struct tcp_ops ops = {
		.output = on_output,
		.deliver = on_deliver,
		.slice_free = on_slice_free,
		.rec_free = on_rec_free,
		.rec_split = on_rec_split,
		.event = on_event,
		.conn_added = on_added,
		.conn_removed = on_removed,
	};
	struct vwire *w = calloc(1, sizeof(*w));
	struct tcp_config def;

	vw_config(&def);
	w->p = *p;
	w->p.poll_ns = p->poll_ns ? p->poll_ns : 1000;
	w->rng = p->seed * 0x9e3779b97f4a7c15ull + 1;
	w->now = 1000000000;
	w->next_port = 10000;
	for (unsigned i = 0; i < 2; i++) {
		w->end[i].w = w;
		w->end[i].index = i;
		w->end[i].s = tcp_stack_create(cfg != NULL ? cfg : &def, &ops, &w->end[i], w->now);
		MUST(w->end[i].s);
	}
	w->end[1].listener = tcp_listen(w->end[1].s, 16, NULL);
	return w;
}

void
vw_destroy(struct vwire *w)
{
	for (unsigned i = 0; i < 2; i++) {
		tcp_stack_destroy(w->end[i].s);
		MUST(w->end[i].recs == 0);
		MUST(w->end[i].slices == 0);
	}
	while (w->nheap)
		packet_free(vw_heap_pop(w));
	free(w->heap);
	free(w);
}

struct tcp_conn *
vw_connect(struct vwire *w, void *user)
{
	struct tcp_tuple t = end_tuple(w, 0, w->next_port++, 4000);
	struct tcp_conn *c = NULL;
	int rc = tcp_connect(w->end[0].s, w->now, &t, w->p.mtu ? w->p.mtu : 1500, user, &c);

	MUST(rc == 0 && c);
	return c;
}

int
vw_send(struct vw_end *e, struct tcp_conn *c, const uint8_t *data, uint32_t len, uint32_t rec)
{
	struct tcp_rec *first = NULL, **tail = &first;
	uint32_t n;

	for (; len; data += n, len -= n) {
		n = rec ? SK_MIN(rec, len) : len;
		*tail = tcp_end_rec(&e->recs, data, n);
		tail = &(*tail)->next;
	}
	return tcp_send(c, first);
}

static uint64_t
next_time(struct vwire *w)
{
	uint64_t t = w->nheap ? w->heap[0]->at : SK_NEVER;

	for (unsigned i = 0; i < 2; i++)
		t = SK_MIN(t, tcp_stack_deadline(w->end[i].s));
	return t;
}

uint64_t
vw_run_until(struct vwire *w, uint64_t ns, const bool *stop)
{
	uint64_t start = w->now, end = w->now + ns, t;

	while (!(stop != NULL && *stop)) {
		t = next_time(w);
		if (t == SK_NEVER || t > end)
			break;
		w->now = SK_MAX(t, w->now + w->p.poll_ns);
		while (w->nheap && w->heap[0]->at <= w->now) {
			struct vw_packet *p = vw_heap_pop(w);

			arrive(w, p);
			packet_free(p);
		}
		for (unsigned i = 0; i < 2; i++) {
			struct vw_end *e = &w->end[i];

			for (unsigned k = 0; w->p.refuse > 0 && k < e->nconns; k++)
				tcp_deliver_resume(e->conns[k].c);
			tcp_stack_poll(e->s, w->now, 64);
		}
	}
	return w->now - start;
}

uint64_t
vw_run(struct vwire *w, uint64_t ns)
{
	return vw_run_until(w, ns, NULL);
}
