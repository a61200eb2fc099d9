/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair.h"

#include <stdlib.h>
#include <string.h>

#define STEP_MIN 1000 /* ns: the delay of a poll that a stack requires immediately */

struct pair pair;

/* ---- The wire: packets in flight, earliest first ---- */

struct flight {
	uint64_t at, seq;
	unsigned to, conn, hdr_len;
	uint8_t hdr[FALCON_MAX];
	uint32_t stamp, path, len, data_len;
	uint8_t *data;
};

static struct flight *heap;
static unsigned flights, heap_cap;
static uint64_t seq;

static bool
earlier(const struct flight *a, const struct flight *b)
{
	return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void
swap(unsigned i, unsigned j)
{
	struct flight f = heap[i];

	heap[i] = heap[j];
	heap[j] = f;
}

static void
heap_put(const struct flight *f)
{
	unsigned i = flights++;

	if (flights > heap_cap) {
		heap_cap = heap_cap ? 2 * heap_cap : 256;
		heap = realloc(heap, heap_cap * sizeof(*heap));
	}
	heap[i] = *f;
	heap[i].seq = seq++;
	for (; i && earlier(&heap[i], &heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(i, (i - 1) / 2);
}

static struct flight
heap_take(void)
{
	struct flight f = heap[0];
	unsigned i = 0, k;

	heap[0] = heap[--flights];
	while ((k = 2 * i + 1) < flights) {
		if (k + 1 < flights && earlier(&heap[k + 1], &heap[k]))
			k++;
		if (!earlier(&heap[k], &heap[i]))
			break;
		swap(i, k);
		i = k;
	}
	return f;
}

/* ---- Payloads ---- */

struct fa_buf *
pair_buf(uint32_t len)
{
	struct fa_buf *b = calloc(1, sizeof(*b) + len);

	cr_assert_not_null(b);
	b->data = (uint8_t *)(b + 1);
	b->len = b->data_len = len;
	pair.bufs++;
	return b;
}

void
pair_buf_free(struct fa_buf *b)
{
	pair.bufs--;
	free(b);
}

/* ---- The owner of the stacks; ctx is the node ---- */

static unsigned
index_of(const struct pair_node *n, const struct fa_conn *c)
{
	unsigned i;

	for (i = 0; i < pair.conns && n->c[i] != c; i++)
		;
	cr_assert_lt(i, pair.conns);
	return i;
}

static void
launch(const struct flight *f, uint64_t delay)
{
	struct flight g = *f;

	g.at = pair.now + PAIR_DELAY + delay;
	if (f->data != NULL) {
		g.data = malloc(f->data_len);
		memcpy(g.data, f->data, f->data_len);
	}
	heap_put(&g);
}

static void
note(const struct pair_packet *p)
{
	pair.packets++;
	pair.lost += p->lost;
	if (pair.no_trace)
		return;
	if (pair.count == pair.cap) {
		pair.cap = pair.cap ? 2 * pair.cap : 64;
		pair.trace = realloc(pair.trace, pair.cap * sizeof(*pair.trace));
	}
	pair.trace[pair.count++] = *p;
}

static int
output(void *ctx, struct fa_conn *c, const struct fa_out *out)
{
	struct pair_node *n = ctx;
	struct pair_packet p = {.sent_at = pair.now,
		.from = (unsigned)(n - pair.n),
		.conn = index_of(n, c),
		.len = out->payload != NULL ? out->payload->len : 0,
		.again = out->retransmission};
	struct flight f = {.to = !p.from, .conn = p.conn, .stamp = out->stamp, .path = out->path};
	struct pair_fate fate = {0};

	f.hdr_len = wire_falcon_emit(f.hdr, out->hdr);
	cr_assert_eq(wire_falcon_parse(&p.h, f.hdr, f.hdr_len + p.len), (int)f.hdr_len);
	if (out->payload != NULL) {
		f.len = out->payload->len;
		f.data_len = out->payload->data_len;
		f.data = out->payload->data;
	}
	if (pair.wire != NULL)
		fate = pair.wire(&p);
	p.lost = fate.lose;
	note(&p);
	if (!fate.lose)
		launch(&f, fate.extra);
	if (fate.duplicate)
		launch(&f, fate.extra + fate.duplicate);
	return 0;
}

void
pair_halt(unsigned node, uint64_t ns)
{
	pair.n[node].halted_at = pair.now;
	pair.n[node].halted_until = pair.now + ns;
}

/* Returns whether the loop of a node runs. */
static bool
runs(struct pair_node *n)
{
	if (n->halted_until == 0)
		return true;
	if (pair.now < n->halted_until)
		return false;
	fa_stack_stopped(n->s, n->halted_until - n->halted_at);
	n->halted_until = 0;
	return true;
}

static void
land(const struct flight *f)
{
	struct pair_node *n = &pair.n[f->to];
	struct wire_falcon h;
	struct fa_in in = {.hdr = &h, .stamp = f->stamp, .path = f->path, .ttl = n->cfg.ttl - 2};

	cr_assert_eq(wire_falcon_parse(&h, f->hdr, f->hdr_len + f->len), (int)f->hdr_len);
	if (f->len) {
		in.payload = pair_buf(f->len);
		memcpy(in.payload->data, f->data, f->data_len);
	}
	free(f->data);
	fa_input(n->c[f->conn], pair.now, &in);
}

static bool
deliver(void *ctx, struct fa_conn *c, const struct fa_delivery *d)
{
	struct pair_node *n = ctx;

	return pair.deliver((unsigned)(n - pair.n), index_of(n, c), d);
}

static void
buf_free(void *ctx, struct fa_buf *b)
{
	pair_buf_free(b);
}

static void
event(void *ctx, struct fa_conn *c, enum fa_event ev)
{
	struct pair_node *n = ctx;

	if (ev == FA_EV_DEAD)
		n->deaths++;
	else
		n->xoff = ev == FA_EV_XOFF;
}

/* ---- The pair ---- */

void
pair_init(void)
{
	unsigned i;

	memset(&pair, 0, sizeof(pair));
	flights = 0;
	pair.conns = 1;
	pair.now = 1000000000;
	for (i = 0; i < 2; i++) {
		struct pair_node *n = &pair.n[i];

		fa_config_default(&n->cfg);
		n->cfg.max_conns = PAIR_CONNS;
		n->cfg.ar_window = 0;
		n->cfg.ar_percent = 0;
		n->params = (struct fa_params){.protocol = FALCON_RDMA,
			.ordered = true,
			.tx_request_psn = i ? 700 : 100,
			.tx_data_psn = i ? 200 : 300,
			.tx_rsn = 1,
			.mtu = 4096,
			.flows = 1};
	}
}

void
pair_start(void)
{
	static const struct fa_ops ops = {
		.output = output, .deliver = deliver, .buf_free = buf_free, .event = event};
	unsigned i, k;

	for (i = 0; i < 2; i++) {
		struct pair_node *n = &pair.n[i], *peer = &pair.n[!i];

		n->s = fa_stack_create(&n->cfg, &ops, n, pair.now);
		cr_assert_not_null(n->s);
		for (k = 0; k < pair.conns; k++) {
			struct fa_params p = n->params;

			p.cid = 0x1000 + k;
			p.peer_cid = 0x1000 + k;
			p.rx_request_psn = peer->params.tx_request_psn;
			p.rx_data_psn = peer->params.tx_data_psn;
			p.rx_rsn = peer->params.tx_rsn;
			cr_assert_eq(fa_conn_create(n->s, pair.now, &p, &n->c[k]), 0);
			cr_assert_eq(
				fa_conn_share(n->c[k], k % SK_MAX(n->cfg.shares.users, 1u)), 0);
		}
	}
}

void
pair_stop(void)
{
	unsigned i;

	while (flights)
		free(heap[--flights].data);
	for (i = 0; i < 2; i++)
		fa_stack_destroy(pair.n[i].s);
	cr_assert_eq(pair.bufs, 0, "%ld payloads leaked", pair.bufs);
	free(pair.trace);
	free(heap);
	heap = NULL;
	heap_cap = 0;
}

static void
poll_both(void)
{
	unsigned i, sent;

	do {
		sent = 0;
		for (i = 0; i < 2; i++)
			if (runs(&pair.n[i]))
				sent += fa_stack_poll(pair.n[i].s, pair.now, 64);
	} while (sent);
	for (i = 0; pair.tick != NULL && i < 1; i++)
		pair.tick();
}

static uint64_t
node_deadline(struct pair_node *n)
{
	return runs(n) ? fa_stack_deadline(n->s) : n->halted_until;
}

void
pair_run(uint64_t ns)
{
	uint64_t end = pair.now + ns, next;

	for (;;) {
		while (flights && heap[0].at <= pair.now) {
			struct flight f = heap_take();

			if (runs(&pair.n[f.to])) {
				land(&f);
				continue;
			}
			f.at = pair.n[f.to].halted_until;
			heap_put(&f);
		}
		poll_both();
		if (pair.now >= end)
			break;
		next = SK_MIN(node_deadline(&pair.n[0]), node_deadline(&pair.n[1]));
		next = SK_MAX(next, pair.now + STEP_MIN);
		if (flights)
			next = SK_MIN(next, heap[0].at);
		pair.now = SK_MAX(SK_MIN(next, end), pair.now);
	}
}

uint64_t
pair_counted(unsigned node, enum fa_reason r)
{
	return fa_stack_counters(pair.n[node].s)[r];
}

/* ---- Reading the trace ---- */

const struct pair_packet *
pair_expect(unsigned from, uint8_t type, uint32_t psn, uint32_t rsn)
{
	const struct pair_packet *p = pair_expect_ack(from, type);

	cr_assert_eq(p->h.psn, psn, "PSN %u, not %u", p->h.psn, psn);
	cr_assert_eq(p->h.rsn, rsn, "RSN %u, not %u", p->h.rsn, rsn);
	return p;
}

const struct pair_packet *
pair_expect_ack(unsigned from, uint8_t type)
{
	const struct pair_packet *p = &pair.trace[pair.read];

	cr_assert_lt(pair.read, pair.count, "nothing more was sent; wanted type %u", type);
	cr_assert_eq(
		p->from, from, "packet %u of type %u is from %u", pair.read, p->h.type, p->from);
	cr_assert_eq(
		p->h.type, type, "packet %u is of type %u, not %u", pair.read, p->h.type, type);
	pair.read++;
	return p;
}

void
pair_quiet(void)
{
	cr_assert_eq(pair.read, pair.count, "type %u with PSN %u of node %u was not expected",
		pair.trace[pair.read].h.type, pair.trace[pair.read].h.psn,
		pair.trace[pair.read].from);
}
