/* SPDX-License-Identifier: BSD-3-Clause */
/* A pair of QPs over lib/falcon: see pair.h. Errors of the harness itself abort. */
#include "pair.h"

#include "../../../lib/base/check.h"
#include "../../../lib/base/mem.h"
#include "../../../lib/base/wheel.h"
#include "../../support/fa_payload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- Client and engine stage ---- */

static int
xrc_next(void *ctx, struct rof_qp *q, uint32_t srqn, struct rd_wr *wr)
{
	struct end *e = ctx;
	uint32_t i = srqn - END_SRQ;

	if (i >= END_SRQS)
		return -ENOENT;
	if (e->srq_head[i] == e->srq_tail[i])
		return 0;
	*wr = e->srq[i][e->srq_head[i]++ % 16];
	return 1;
}

static const struct rd_pd *
xrc_pd(void *ctx, struct rof_qp *q, uint32_t srqn)
{
	struct end *e = ctx;

	return srqn - END_SRQ < END_SRQS ? &e->pd : NULL;
}

static void
xrc_complete(void *ctx, struct rof_qp *q, uint32_t srqn, const struct rd_wc *wc)
{
	need(srqn - END_SRQ < END_SRQS);
	rd_end_complete(ctx, rof_qp_rd(q), true, wc);
}

static struct fa_buf *
buf_new(struct end *e, uint32_t room)
{
	e->live++;
	return fa_payload_new(e, room);
}

static struct fa_buf *
buf_get(void *ctx, uint32_t room)
{
	struct end *e = ctx;

	if (e->no_buffers > 0) {
		e->no_buffers--;
		return NULL;
	}
	return buf_new(e, room);
}

static void
buf_put(void *ctx, struct fa_buf *b)
{
	struct end *e = b->owner;

	e->live--;
	fa_payload_free(b);
}

static bool
pass(void *ctx, struct rof_chan *c, const struct rof_msg *m)
{
	struct end *e = ctx;

	if (e->down_tail - e->down_head >= e->room)
		return false;
	e->down[e->down_tail++ % END_QUEUE] = *m;
	return true;
}

static void
close_qp(void *ctx, struct rof_qp *q)
{
	((struct end *)ctx)->closed = true;
}

/* ---- Transport stage ---- */

static void
wire_add(struct pair *p, struct packet *k)
{
	struct packet **at = &p->wire;

	while (*at != NULL && (*at)->due <= k->due)
		at = &(*at)->next;
	k->next = *at;
	*at = k;
}

static void
send_copy(struct end *e, const struct fa_out *out)
{
	struct pair *p = e->pair;
	struct packet *k = calloc(1, sizeof(*k));

	need(k != NULL);
	k->h = *out->hdr;
	k->stamp = out->stamp;
	k->path = out->path;
	k->due = p->now + p->delay;
	if (rng_below(&p->rng, 10000) < p->reorder)
		k->due += rng_below(&p->rng, (uint32_t)(4 * p->delay));
	if (out->payload != NULL) {
		k->buf = buf_new(&p->e[!e->index], out->payload->len);
		memcpy(k->buf->data, out->payload->data, out->payload->data_len);
		k->buf->len = out->payload->len;
		k->buf->data_len = out->payload->data_len;
		e->payload += out->payload->data_len;
	}
	k->h.vendor = e->index; /* the sender, in a field that the pair does not use otherwise */
	wire_add(p, k);
}

static void
digest(struct pair *p, const void *bytes, size_t n)
{
	for (const uint8_t *at = bytes; n > 0; n--) /* FNV-1a */
		p->digest = (p->digest ^ *at++) * 0x100000001b3ull;
}

static void
digest_packet(struct pair *p, const struct end *e, const struct fa_out *out)
{
	const uint64_t head[] = {p->now, e->index, out->stamp, out->path, out->retransmission};
	uint8_t bytes[FALCON_MAX];

	digest(p, head, sizeof(head));
	digest(p, bytes, wire_falcon_emit(bytes, out->hdr));
	if (out->payload != NULL)
		digest(p, out->payload->data, out->payload->data_len);
}

/* Compares the sum that a payload carries with its bytes. */
static void
check_sum(struct end *e, const struct fa_buf *b)
{
	if (b == NULL || b->sum == 0)
		return;
	need(b->sum == sk_sum_fold(sk_sum(0, b->data, b->data_len)));
	e->sums++;
}

static int
output(void *ctx, struct fa_conn *c, const struct fa_out *out)
{
	struct end *e = ctx;
	struct pair *p = e->pair;

	check_sum(e, out->payload);
	p->packets++;
	digest_packet(p, e, out);
	if ((p->hook != NULL && !p->hook(p->hook_arg, e->index, out->hdr)) ||
		rng_below(&p->rng, 10000) < p->loss) {
		p->lost++;
		return 0;
	}
	send_copy(e, out);
	if (rng_below(&p->rng, 10000) < p->dup)
		send_copy(e, out);
	return 0;
}

static bool
deliver(void *ctx, struct fa_conn *c, const struct fa_delivery *d)
{
	struct end *e = ctx;

	if (e->up_tail - e->up_head >= e->room) {
		e->up_refused = true;
		return false;
	}
	e->up[e->up_tail++ % END_QUEUE] = *d;
	if (d->type == FA_PUSH || d->type == FA_PULL)
		e->came[e->ncame++ % SK_ARRAY_LEN(e->came)] = d->rsn;
	return true;
}

static void
event(void *ctx, struct fa_conn *c, enum fa_event ev)
{
	if (ev == FA_EV_DEAD)
		((struct end *)ctx)->dead = true;
}

/* Executes the messages of the engine stage. */
static void
transport_take(struct end *e)
{
	uint64_t now = e->pair->now;

	while (e->down_head != e->down_tail) {
		struct rof_msg m = e->down[e->down_head++ % END_QUEUE];

		switch (m.kind) {
		case ROF_MSG_PUSH:
			fa_push(e->conn, now, m.buf);
			break;
		case ROF_MSG_PULL:
			fa_pull(e->conn, now, m.buf, m.response_len);
			break;
		case ROF_MSG_ANSWER:
			fa_answer(e->conn, now, m.outcome.rsn, m.buf);
			break;
		case ROF_MSG_DATA:
			fa_pull_data(e->conn, now, m.outcome.rsn, m.buf);
			break;
		case ROF_MSG_OUTCOME:
			fa_outcome(e->conn, now, &m.outcome);
			break;
		}
	}
}

static void
arrive(struct pair *p)
{
	while (p->wire != NULL && p->wire->due <= p->now) {
		struct packet *k = p->wire;
		struct end *e = &p->e[!k->h.vendor];
		struct fa_in in = {
			.hdr = &k->h,
			.payload = k->buf,
			.stamp = k->stamp,
			.path = k->path,
			.ttl = 64,
		};

		p->wire = k->next;
		k->h.vendor = 0;
		fa_input(e->conn, p->now, &in);
		free(k);
	}
}

static void
turn(struct end *e)
{
	uint64_t now = e->pair->now;
	enum rof_tx_result r;

	e->st.latency.now = now;
	while (e->up_head != e->up_tail) {
		struct fa_delivery d = e->up[e->up_head++ % END_QUEUE];

		rof_rx(e->c, now, &d);
	}
	if (e->up_refused) {
		e->up_refused = false;
		fa_deliver_resume(e->conn, now);
	}
	r = rof_tx(e->q, now, 64);
	e->more = r == ROF_TX_MORE || r == ROF_TX_NOBUF;
	transport_take(e);
	fa_stack_poll(e->fa, now, 64);
}

/* ---- The pair ---- */

static void
stage_init(struct end *e, struct pair *p, unsigned index)
{
	struct sk_key key = {{0x0123456789abcdefull, index}};

	e->pair = p;
	e->index = index;
	e->room = END_QUEUE;
	rd_end_init(&e->rd_end, END_WRS, END_WCS, 64, &key);
	e->mem = calloc(1, END_MEM);
	need(e->mem != NULL);
	e->extent = (struct rd_extent){.len = END_MEM, .host = e->mem};
	e->mr = (struct rd_mr){.access = 31,
		.pd = &e->pd,
		.base = END_BASE,
		.len = END_MEM,
		.valid = true,
		.nextents = 1,
		.extents = &e->extent};
	need(rd_mr_add(e->mrs, &e->mr, 7) == 0);
	e->st.ctx = e;
	e->st.ops = (struct rof_ops){.rd = rd_end_ops(&e->rd_end),
		.buf_get = buf_get,
		.buf_put = buf_put,
		.pass = pass,
		.close = close_qp,
		.xrc_next = xrc_next,
		.xrc_pd = xrc_pd,
		.xrc_complete = xrc_complete};
	e->rd = (struct rd_qp){.qpn = 100 + index,
		.pd = &e->pd,
		.caps = {64, 64, 4, 4, 64},
		.access = 31,
		.ird = 16,
		.ord = 16,
		.sig_all = true};
}

static void
end_init(struct end *e, struct pair *p, unsigned index, const struct pair_options *o)
{
	const struct rof_chan_params *params = &o->chan;
	struct fa_ops fops = {
		.output = output, .deliver = deliver, .buf_free = buf_put, .event = event};
	struct fa_config cfg;

	stage_init(e, p, index);
	e->st.lengths_only = o->lengths_only;
	e->st.general = o->general;
	fa_config_default(&cfg);
	cfg.max_conns = 4;
	cfg.seed = p->rng;
	if (o->tune != NULL)
		o->tune(&cfg);
	e->fa = fa_stack_create(&cfg, &fops, e, p->now);
	need(e->fa != NULL);
	if (o->ird != 0)
		e->rd.ird = o->ird;
	struct fa_params fp = {.cid = 0x100 + index,
		.peer_cid = 0x100 + !index,
		.protocol = 2,
		.ordered = params->ordering == ROF_ORDER_STRONG,
		.tx_request_psn = 50 + index,
		.rx_request_psn = 50 + !index,
		.tx_data_psn = 0xfffffff0u + index,
		.rx_data_psn = 0xfffffff0u + !index,
		.tx_rsn = 0xffffff00u,
		.rx_rsn = 0xffffff00u,
		.mtu = params->mtu + ROF_MAX + 4,
		.flows = 1,
		.pulls = e->rd.ird,
		.user = e};
	if (o->numbers) {
		fp.tx_rsn = fp.rx_rsn = o->tx_rsn;
		fp.tx_request_psn = fp.rx_request_psn = o->request_psn;
		fp.tx_data_psn = fp.rx_data_psn = o->data_psn;
	}
	need(fa_conn_create(e->fa, p->now, &fp, &e->conn) == 0);

	struct rof_chan_params cp = *params;

	cp.tx_rsn = fp.tx_rsn;
	cp.pools = cfg.pools;
	e->c = rof_chan_create(&e->st, &cp, e);
	e->q = rof_qp_create(&e->st, &e->rd, 0);
	need(e->c != NULL && e->q != NULL);
	rof_qp_start(e->q, e->c, 100 + !index);
}

void
pair_init_with(struct pair *p, const struct pair_options *options, uint64_t seed)
{
	struct pair_options o = *options;
	struct rof_chan_params *cp = &o.chan;

	memset(p, 0, sizeof(*p));
	if (cp->mtu == 0)
		cp->mtu = 1024;
	cp->rnr_retry = cp->rnr_retry ? cp->rnr_retry - 1 : ROF_RNR_FOREVER;
	cp->rnr_code = 1;
	if (cp->credits.req_pkt_tx == 0)
		cp->credits = (struct fa_credits){128, 1u << 20, 128, 1u << 20, 128, 1u << 20};
	p->rng = seed;
	p->now = 1000000;
	p->delay = 5000;
	end_init(&p->e[0], p, 0, &o);
	end_init(&p->e[1], p, 1, &o);
}

void
pair_init(struct pair *p, const struct rof_chan_params *params, uint64_t seed)
{
	struct pair_options o = {.chan = {.ordering = ROF_ORDER_STRONG}};

	if (params != NULL)
		o.chan = *params;
	pair_init_with(p, &o, seed);
}

static void
queues_clear(struct end *e)
{
	for (; e->down_head != e->down_tail; e->down_head++) {
		struct rof_msg *m = &e->down[e->down_head % END_QUEUE];

		if (m->buf != NULL)
			buf_put(e, m->buf);
		if (m->outcome.buf != NULL)
			buf_put(e, m->outcome.buf);
	}
	for (; e->up_head != e->up_tail; e->up_head++)
		if (e->up[e->up_head % END_QUEUE].buf != NULL)
			buf_put(e, e->up[e->up_head % END_QUEUE].buf);
}

bool
pair_fini(struct pair *p)
{
	int live = 0;

	while (p->wire != NULL) {
		struct packet *k = p->wire;

		p->wire = k->next;
		if (k->buf != NULL)
			buf_put(NULL, k->buf);
		free(k);
	}
	for (struct end *e = p->e; e < p->e + 2; e++) {
		queues_clear(e);
		rof_qp_destroy(e->q);
		rof_chan_destroy(e->c);
		fa_stack_destroy(e->fa);
		rd_mr_del(e->mrs, &e->mr);
		rd_end_fini(&e->rd_end);
		free(e->mem);
	}
	for (struct end *e = p->e; e < p->e + 2; e++)
		live += abs(e->live);
	return live == 0;
}

static bool
busy(const struct end *e)
{
	return e->down_head != e->down_tail || e->up_head != e->up_tail || e->up_refused || e->more;
}

void
pair_run(struct pair *p, uint64_t until, bool (*done)(struct pair *p))
{
	uint64_t end = p->now + until;

	for (;;) {
		uint64_t next;

		arrive(p);
		turn(&p->e[0]);
		turn(&p->e[1]);
		if (p->now >= end || (done != NULL && done(p)))
			return;
		next = SK_MIN(fa_stack_deadline(p->e[0].fa), fa_stack_deadline(p->e[1].fa));
		if (p->wire != NULL && p->wire->due < next)
			next = p->wire->due;
		if (busy(&p->e[0]) || busy(&p->e[1]))
			next = p->now;
		p->now = SK_MAX(SK_MIN(next, end), p->now + 100);
	}
}

struct rd_wr *
end_post(struct end *e, uint8_t opcode, uint64_t wr_id)
{
	struct rd_wr *wr = rd_end_post(&e->rd_end, opcode, wr_id);

	wr->data_mask = opcode == RD_CMP_SWAP ? UINT64_MAX : 0;
	wr->compare_mask = UINT64_MAX;
	return wr;
}

struct rd_wr *
end_recv(struct end *e, uint64_t wr_id)
{
	return rd_end_recv(&e->rd_end, wr_id);
}

void
wr_sge(struct end *e, struct rd_wr *wr, uint64_t off, uint32_t len)
{
	wr->sge[wr->nsge++] =
		(struct rd_sge){.addr = END_BASE + off, .len = len, .lkey = e->mr.stag};
}

struct rd_wr *
end_msg(struct end *e, uint8_t opcode, uint64_t wr_id, uint64_t off, uint32_t len)
{
	struct rd_wr *wr = end_post(e, opcode, wr_id);

	wr->rkey = e->pair->e[!e->index].mr.stag;
	wr->remote_addr = END_BASE + off;
	wr->imm = wr_id;
	wr_sge(e, wr, off, len);
	return wr;
}

struct rd_wr *
end_recv_at(struct end *e, uint64_t wr_id, uint64_t off, uint32_t len)
{
	struct rd_wr *wr = end_recv(e, wr_id);

	wr_sge(e, wr, off, len);
	return wr;
}

bool
pair_sent(struct pair *p)
{
	return p->e[0].nsend == p->e[0].sq_tail && p->e[1].nsend == p->e[1].sq_tail;
}

const struct rd_wc *
wc_find(const struct rd_wc *wc, unsigned n, uint64_t wr_id)
{
	for (unsigned i = 0; i < n; i++)
		if (wc[i].wr_id == wr_id)
			return &wc[i];
	return NULL;
}

void
end_region(struct end *e, struct rd_mr *mr, struct rd_extent *x, uint64_t off, uint64_t len,
	uint32_t access)
{
	*x = (struct rd_extent){.len = len, .host = e->mem + off};
	*mr = (struct rd_mr){.access = access,
		.pd = &e->pd,
		.base = END_BASE + off,
		.len = len,
		.valid = true,
		.nextents = 1,
		.extents = x};
	need(rd_mr_add(e->mrs, mr, 9) == 0);
}
