/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One end of RDMA over Falcon and a scripted peer: see script.h. Errors of the harness itself
 * abort.
 */
#include "script.h"

#include "../../support/fa_payload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int
xrc_next(void *ctx, struct rof_qp *q, uint32_t srqn, struct rd_wr *wr)
{
	return srqn == SCRIPT_SRQ ? rd_end_rq_next(ctx, NULL, wr) : -ENOENT;
}

static const struct rd_pd *
xrc_pd(void *ctx, struct rof_qp *q, uint32_t srqn)
{
	return srqn == SCRIPT_SRQ ? &((struct script *)ctx)->pd : NULL;
}

static void
xrc_complete(void *ctx, struct rof_qp *q, uint32_t srqn, const struct rd_wc *wc)
{
	need(srqn == SCRIPT_SRQ);
	rd_end_complete(ctx, rof_qp_rd(q), true, wc);
}

static struct fa_buf *
buf_new(struct script *s, uint32_t room)
{
	s->live++;
	return fa_payload_new(s, room);
}

static struct fa_buf *
buf_get(void *ctx, uint32_t room)
{
	struct script *s = ctx;

	if (s->no_buffers > 0) {
		s->no_buffers--;
		return NULL;
	}
	return buf_new(s, room);
}

static void
buf_put(void *ctx, struct fa_buf *b)
{
	((struct script *)ctx)->live--;
	fa_payload_free(b);
}

static void
note_outcome(struct script *s, const struct rof_msg *m)
{
	struct script_refused *r;

	s->verdicts++;
	need((m->outcome.buf != NULL) == (m->outcome.verdict == FA_RNR));
	if (m->outcome.verdict != FA_RNR)
		return;
	need(s->nrefused < SCRIPT_MAX);
	r = &s->refused[s->nrefused++];
	/* The RSN of a request determines its type here: pulls are odd. */
	*r = (struct script_refused){
		m->outcome.rsn & 1 ? FA_PULL : FA_PUSH, m->outcome.rsn, m->outcome.buf};
}

static bool
pass(void *ctx, struct rof_chan *c, const struct rof_msg *m)
{
	struct script *s = ctx;
	struct script_msg *t = &s->msgs[s->nmsgs % SCRIPT_MAX];

	if (s->room == 0)
		return false;
	s->room--;
	s->nmsgs++;
	*t = (struct script_msg){.kind = m->kind,
		.verdict = m->outcome.verdict,
		.rnr = m->outcome.rnr,
		.ulp_code = m->outcome.ulp_code,
		.rsn = m->outcome.rsn,
		.response_len = m->response_len};
	if (m->buf != NULL) {
		t->len = m->buf->len;
		need(wire_rof_parse(&t->h, m->buf->data, m->buf->len) > 0);
		buf_put(s, m->buf);
	}
	if (m->kind == ROF_MSG_OUTCOME || m->kind == ROF_MSG_ANSWER)
		note_outcome(s, m);
	else if (m->kind != ROF_MSG_DATA)
		s->requests++;
	if (m->kind == ROF_MSG_ANSWER || m->kind == ROF_MSG_DATA)
		s->answers++;
	if ((m->kind == ROF_MSG_OUTCOME || m->kind == ROF_MSG_ANSWER) &&
		m->outcome.verdict == FA_TAKEN && (m->outcome.rsn & 1))
		s->pulls_taken++;
	return true;
}

static void
close_qp(void *ctx, struct rof_qp *q)
{
	((struct script *)ctx)->closed = true;
}

static struct rof_qp *
ud_qp(void *ctx, struct rof_chan *c, uint32_t qpn)
{
	return qpn == SCRIPT_QPN ? ((struct script *)ctx)->q : NULL;
}

static struct rof_chan *
ud_chan(void *ctx, struct rof_qp *q, uint32_t ah)
{
	return ah == 1 ? ((struct script *)ctx)->c : NULL;
}

static void
ud_grh(void *ctx, struct rof_chan *c, uint32_t payload_len, uint8_t grh[ROF_GRH_LEN])
{
	memset(grh, 0x6a, ROF_GRH_LEN);
}

static void
region(struct script *s, struct rd_mr *mr, struct rd_extent *x, uint32_t off, uint32_t access)
{
	*x = (struct rd_extent){.len = SCRIPT_REGION, .host = s->mem + off};
	*mr = (struct rd_mr){.access = access,
		.pd = &s->pd,
		.base = SCRIPT_BASE + off,
		.len = SCRIPT_REGION,
		.valid = true,
		.nextents = 1,
		.extents = x};
	need(rd_mr_add(s->mrs, mr, 5) == 0);
}

static void
stage_init(struct script *s)
{
	static const struct sk_key key = {{1, 2}};

	rd_end_init(&s->rd_end, SCRIPT_MAX, SCRIPT_MAX, 16, &key);
	s->mem = malloc(SCRIPT_LEN);
	need(s->mem != NULL);
	memset(s->mem, 0x77, SCRIPT_LEN);
	region(s, &s->granted, &s->extents[0], SCRIPT_GRANTED, 15);
	region(s, &s->local, &s->extents[1], SCRIPT_LOCAL, RD_ACC_LOCAL_WRITE);
	s->st.ctx = s;
	s->st.ops = (struct rof_ops){.rd = rd_end_ops(&s->rd_end),
		.buf_get = buf_get,
		.buf_put = buf_put,
		.pass = pass,
		.close = close_qp,
		.xrc_next = xrc_next,
		.xrc_pd = xrc_pd,
		.xrc_complete = xrc_complete,
		.ud_qp = ud_qp,
		.ud_chan = ud_chan,
		.ud_grh = ud_grh};
}

void
script_init(struct script *s, uint8_t transport, uint8_t ordering, uint8_t errors)
{
	struct rof_chan_params cp = {.transport = transport,
		.ordering = ordering,
		.errors = errors,
		.mtu = 1024,
		.tx_rsn = SCRIPT_RSN,
		.pools = {.tx_cell = 64, .rx_cell = 512},
		.credits = {64, 1u << 20, 64, 1u << 20, 64, 1u << 20},
		.rnr_code = 3,
		.rnr_retry = 2};

	memset(s, 0, sizeof(*s));
	stage_init(s);
	s->rd = (struct rd_qp){.qpn = SCRIPT_QPN,
		.pd = &s->pd,
		.caps = {64, 64, 4, 4, 64},
		.access = 15,
		.ird = 16,
		.ord = 16,
		.sig_all = true};
	s->room = UINT32_MAX;
	s->sn = 1;
	s->rsn = 5000;
	s->c = rof_chan_create(&s->st, &cp, s);
	s->q = rof_qp_create(&s->st, &s->rd, SCRIPT_QKEY);
	need(s->c != NULL && s->q != NULL);
	if (transport == ROF_UD)
		rof_qp_start_ud(s->q, ordering, errors, 1024);
	else
		rof_qp_start(s->q, s->c, SCRIPT_PEER);
}

bool
script_fini(struct script *s)
{
	unsigned parked = 0;
	bool said;

	s->room = UINT32_MAX;
	rof_chan_tx(s->c);
	for (; s->c->parked != NULL; parked++)
		rof_parked_remove(s->c);
	/* Pulls that still wait for those before them end with their connection. */
	said = s->verdicts == s->deliveries && s->answers + parked == s->pulls_taken &&
	       (parked == 0 || s->q->close_called);
	while (s->nrefused > 0)
		buf_put(s, s->refused[--s->nrefused].buf);
	rof_qp_destroy(s->q);
	rof_chan_destroy(s->c);
	rd_mr_del(s->mrs, &s->granted);
	rd_mr_del(s->mrs, &s->local);
	rd_end_fini(&s->rd_end);
	free(s->mem);
	return said && s->live == 0;
}

static void
deliver(struct script *s, struct fa_delivery *d)
{
	if (d->type == FA_PUSH || d->type == FA_PULL)
		s->deliveries++;
	rof_rx(s->c, 0, d);
}

void
script_raw(struct script *s, uint8_t type, uint32_t rsn, const void *bytes, uint32_t len)
{
	struct fa_delivery d = {.type = type, .rsn = rsn, .buf = buf_new(s, len)};

	if (len > 0)
		memcpy(d.buf->data, bytes, len);
	d.buf->len = d.buf->data_len = len;
	d.restart = s->restart;
	if (type == FA_PUSH || type == FA_PULL) {
		s->rsn += 2;
		d.rsn = (s->rsn & ~1u) | (type == FA_PULL);
	}
	deliver(s, &d);
}

void
script_request(struct script *s, uint8_t type, const struct wire_rof *h, uint32_t len)
{
	uint8_t bytes[ROF_MAX + 2048];
	struct wire_rof full = *h;
	unsigned head;

	if (full.sn == 0)
		full.sn = s->sn;
	if (full.dest_qp == 0)
		full.dest_qp = SCRIPT_QPN;
	if (type == FA_PUSH || type == FA_PULL)
		s->sn = full.sn + 1;
	head = wire_rof_emit(bytes, &full);
	need(head > 0 && len <= 1500);
	memset(bytes + head, 0x5a, len + full.pad);
	script_raw(s, type, 0, bytes, head + len + full.pad);
}

void
script_completion(struct script *s, uint32_t rsn, uint8_t completion, uint8_t ulp_code)
{
	struct fa_delivery d = {
		.type = FA_COMPLETION, .completion = completion, .ulp_code = ulp_code, .rsn = rsn};

	deliver(s, &d);
}

bool
script_again(struct script *s)
{
	struct fa_delivery d = {.restart = !s->silent};

	if (s->nrefused == 0)
		return false;
	d.type = s->refused[0].type;
	d.rsn = s->refused[0].rsn;
	d.buf = s->refused[0].buf;
	memmove(s->refused, s->refused + 1, --s->nrefused * sizeof(s->refused[0]));
	deliver(s, &d);
	return true;
}

void
script_recv(struct script *s, uint64_t wr_id, uint32_t off, uint32_t len)
{
	struct rd_wr *wr = rd_end_recv(&s->rd_end, wr_id);

	wr->nsge = 1;
	wr->sge[0] = (struct rd_sge){SCRIPT_BASE + SCRIPT_LOCAL + off, len, s->local.stag};
}

struct rd_wr *
script_post(struct script *s, uint8_t opcode, uint64_t wr_id, uint32_t off, uint32_t len)
{
	struct rd_wr *wr = rd_end_post(&s->rd_end, opcode, wr_id);

	wr->nsge = 1;
	wr->rkey = 0x1234;
	wr->ah = 1;
	wr->data_mask = opcode == RD_CMP_SWAP ? UINT64_MAX : 0;
	wr->compare_mask = UINT64_MAX;
	wr->remote_srqn = SCRIPT_SRQ;
	wr->sge[0] = (struct rd_sge){SCRIPT_BASE + SCRIPT_LOCAL + off, len, s->local.stag};
	return wr;
}

const struct script_msg *
script_last(const struct script *s)
{
	return &s->msgs[(s->nmsgs - 1) % SCRIPT_MAX];
}

bool
script_untouched(const struct script *s, uint32_t off, uint32_t len)
{
	for (uint32_t i = 0; i < SCRIPT_LEN; i++)
		if ((i < off || i >= off + len) && s->mem[i] != 0x77)
			return false;
	return true;
}
