/* SPDX-License-Identifier: BSD-3-Clause */
#include "client.h"

#include "../../../lib/base/mem.h"

static const char *const names[CLIENTS] = {"left", "other", "right", "left"};

/* ---- Attaching ---- */

void
client_attach(struct client *c, struct world *w, unsigned index)
{
	if (c->home == NULL) {
		c->home = aligned_alloc(4096, CLIENT_HOME);
		CLAIM(c->home != NULL);
	}
	memset(c->home, 0, CLIENT_HOME);
	c->index = index;
	c->w = w;
	c->side = index == 2;
	c->deaf = false;
	memset(c->n, 0, sizeof(c->n));
	c->number = eng_attach_flat(w->e[c->side], names[index], c->home, CLIENT_HOME, CLIENT_MEM);
	CLAIM(c->number >= 0);
	memcpy(&c->h, c->home, sizeof(c->h));
	for (uint32_t i = 0; i < CLIENT_MEM; i++)
		client_mem(c)[i] = (uint8_t)(i * 7 + (i >> 8) + index * 31);
	c->nstages = SK_MIN(c->h.nstages, 2u);
	shm_prod_init(&c->cmd, c->home, &c->h.cmd);
	shm_take_init(&c->evt, c->home, &c->h.evt);
	for (unsigned i = 0; i < c->nstages; i++) {
		shm_prod_init(&c->bell[i], c->home, &c->h.doorbell[i]);
		shm_take_init(&c->cq_event[i], c->home, &c->h.event[i]);
	}
}

void
client_detach(struct client *c)
{
	if (c->number >= 0 && !eng_client_gone(c->w->e[c->side], c->number))
		CLAIM(eng_detach(c->w->e[c->side], c->number) == 0);
}

bool
client_busy(const struct client *c)
{
	return c->number >= 0 && !eng_client_gone(c->w->e[c->side], c->number);
}

/* ---- Objects ---- */

struct thing *
client_thing(struct client *c, enum thing_kind kind, unsigned index)
{
	return c->n[kind] > 0 ? &c->thing[kind][index % c->n[kind]] : NULL;
}

uint32_t
client_handle(struct client *c, enum thing_kind kind, unsigned index)
{
	struct thing *t = client_thing(c, kind, index);

	return t != NULL ? t->handle : index;
}

static struct thing *
remember(struct client *c, enum thing_kind kind, uint32_t handle)
{
	struct thing *t = &c->thing[kind][c->n[kind] < THINGS ? c->n[kind]++ : handle % THINGS];

	memset(t, 0, sizeof(*t));
	t->handle = handle;
	return t;
}

static struct thing *
find(struct client *c, enum thing_kind kind, uint32_t handle)
{
	for (unsigned i = 0; i < c->n[kind]; i++)
		if (c->thing[kind][i].handle == handle)
			return &c->thing[kind][i];
	return NULL;
}

static void
forget(struct client *c, enum thing_kind kind, uint32_t handle)
{
	struct thing *t = find(c, kind, handle);

	if (t != NULL)
		*t = c->thing[kind][--c->n[kind]];
}

/* The reply lies in memory that the client scribbles over, so its offsets may be wrong. */
static void
made_ring(struct client *c, struct shm_prod *p, const struct shm_ring_at *at)
{
	if (at->log2_count < 12 && shm_ring_ok(at, CLIENT_HOME, SHM_RQE_UNIT))
		shm_prod_init(p, c->home, at);
}

static void
made_cq(struct client *c, const struct shm_cq_info *i)
{
	struct thing *t = remember(c, THING_CQ, i->cq);

	t->at = i->at <= CLIENT_HOME - shm_cq_bytes(c->nstages) && i->at % SHM_LINE == 0 ? i->at
											 : 0;
	t->log2_depth = shm_log2(i->depth);
}

/* Takes over the sub-rings that the engine has made, unless their places are overwritten. */
static void
cq_grow(struct client *c, struct thing *t)
{
	const struct shm_cq *cq = (const struct shm_cq *)(c->home + t->at);

	for (uint32_t to = SK_MIN(cq->nsubs, SK_MIN(c->nstages, 2u)); t->nsubs < to;) {
		struct shm_ring_at at = shm_cq_ring(cq->sub[t->nsubs], t->log2_depth);

		if (t->log2_depth >= 12 || !shm_ring_ok(&at, CLIENT_HOME, sizeof(struct shm_cqe)))
			return;
		shm_take_init(&t->sub[t->nsubs++], c->home, &at);
	}
}

/* Follows the sub-rings of a queue to larger ones, and drops what is in them. */
static void
resized_cq(struct client *c, const struct shm_cq_info *i)
{
	struct thing *t = find(c, THING_CQ, i->cq);

	if (t == NULL)
		return;
	if (t->at != 0)
		cq_grow(c, t);
	t->log2_depth = shm_log2(i->depth);
	for (uint32_t k = 0; k < SK_MIN(i->nsubs, t->nsubs) && t->log2_depth < 12; k++) {
		struct shm_ring_at at =
			shm_cq_ring(i->at + k * shm_cq_ring_bytes(t->log2_depth), t->log2_depth);
		uint32_t next;

		while (shm_take_peek(&t->sub[k]) != NULL)
			shm_take_pop(&t->sub[k]);
		if (!shm_ring_ok(&at, CLIENT_HOME, sizeof(struct shm_cqe)))
			return;
		next = shm_ring_moved(t->sub[k].next, 1u << t->log2_depth);
		shm_take_init(&t->sub[k], c->home, &at);
		t->sub[k].next = next;
		shm_take_publish(&t->sub[k]);
	}
}

static void
made_qp(struct client *c, const struct shm_qp_info *i)
{
	struct thing *t = remember(c, THING_QP, i->qp);

	t->number = i->qpn;
	t->type = i->type;
	t->transport = i->transport;
	t->stage = (uint8_t)i->stage;
	t->at = i->at <= CLIENT_HOME - sizeof(struct shm_qp) && i->at % 4 == 0 ? i->at : 0;
	if (i->sq.stride >= SHM_SQE_UNIT)
		made_ring(c, &t->sq, &i->sq);
	if (i->rq.stride != 0)
		made_ring(c, &t->rq, &i->rq);
}

static const enum thing_kind destroyed[SHM_OP_COUNT] = {
	[SHM_MR_DESTROY] = THING_MR,
	[SHM_MW_DESTROY] = THING_MW,
	[SHM_CQ_DESTROY] = THING_CQ,
	[SHM_SRQ_DESTROY] = THING_SRQ,
	[SHM_QP_DESTROY] = THING_QP,
	[SHM_AH_DESTROY] = THING_AH,
	[SHM_XRCD_CLOSE] = THING_XRCD,
	[SHM_UNLISTEN] = THING_LISTENER,
	[SHM_ACCEPT] = THING_REQUEST,
	[SHM_REJECT] = THING_REQUEST,
};

static void
replied(struct client *c, const struct shm_msg *m)
{
	struct thing *t;

	switch (m->op) {
	case SHM_PD_CREATE:
		remember(c, THING_PD, m->body.handle);
		break;
	case SHM_PD_DESTROY:
		forget(c, THING_PD, (uint32_t)m->tag);
		break;
	case SHM_MR_CREATE:
		remember(c, THING_MR, m->body.mr.mr)->number = m->body.mr.stag;
		break;
	case SHM_MW_CREATE:
		remember(c, THING_MW, m->body.mw.mw)->number = m->body.mw.stag;
		break;
	case SHM_CQ_CREATE:
		made_cq(c, &m->body.cq);
		break;
	case SHM_CQ_RESIZE:
		resized_cq(c, &m->body.cq);
		break;
	case SHM_SRQ_CREATE:
		t = remember(c, THING_SRQ, m->body.srq.srq);
		t->number = m->body.srq.srqn;
		made_ring(c, &t->rq, &m->body.srq.rq);
		break;
	case SHM_QP_CREATE:
		made_qp(c, &m->body.qp);
		break;
	case SHM_QP_OPEN:
		remember(c, THING_QP, m->body.qp.qp);
		break;
	case SHM_AH_CREATE:
		remember(c, THING_AH, m->body.ah.ah);
		break;
	case SHM_XRCD_OPEN:
		remember(c, THING_XRCD, m->body.xrcd.xrcd);
		break;
	case SHM_LISTEN:
		remember(c, THING_LISTENER, m->body.cm.listener)->number = m->body.cm.lport;
		break;
	case SHM_EV_CONNECT_REQUEST:
		t = remember(c, THING_REQUEST, m->body.cm.request);
		t->transport = m->body.cm.transport;
		t->type = m->body.cm.type;
		break;
	default:
		if (m->op < SHM_OP_COUNT && destroyed[m->op] != THING_PD)
			forget(c, destroyed[m->op], (uint32_t)m->tag);
		break;
	}
}

void
client_read(struct client *c)
{
	const void *e;
	struct shm_msg m;

	while (!c->deaf && (e = shm_take_peek(&c->evt)) != NULL) {
		memcpy(&m, e, sizeof(m));
		shm_take_pop(&c->evt);
		shm_take_publish(&c->evt);
		world_observed("a message of a client of", c->side, &m, sizeof(m));
		if (m.status == 0)
			replied(c, &m);
	}
}

void
client_poll(struct client *c, unsigned cq, unsigned arm)
{
	struct thing *t = client_thing(c, THING_CQ, cq);

	for (unsigned i = 0; i < c->nstages; i++) {
		while (shm_take_peek(&c->cq_event[i]) != NULL)
			shm_take_pop(&c->cq_event[i]);
		shm_take_publish(&c->cq_event[i]);
	}
	if (t == NULL)
		return;
	if (t->at != 0)
		cq_grow(c, t);
	for (unsigned i = 0; i < t->nsubs; i++) {
		const void *e;

		while ((e = shm_take_peek(&t->sub[i])) != NULL) {
			world_observed(
				"a completion of a client of", c->side, e, sizeof(struct shm_cqe));
			shm_take_pop(&t->sub[i]);
		}
		shm_take_publish(&t->sub[i]);
	}
	if (arm != SHM_ARM_NONE && t->at != 0)
		shm_arm(&((struct shm_cq *)(c->home + t->at))->arm, arm == SHM_ARM_SOLICITED);
}

/* ---- Commands ---- */

void
client_ring(struct client *c, unsigned stage, uint32_t what)
{
	struct shm_prod *p = &c->bell[stage % c->nstages];

	if (shm_prod_room(p) == 0)
		return;
	((struct shm_doorbell *)shm_prod_entry(p))->what = what;
	shm_prod_push(p);
}

void
client_command(struct client *c, struct shm_msg *m)
{
	if (shm_prod_room(&c->cmd) == 0)
		return;
	memcpy((uint8_t *)shm_prod_entry(&c->cmd) + 4, (const uint8_t *)m + 4, sizeof(*m) - 4);
	shm_prod_push(&c->cmd);
	client_ring(c, 0, SHM_RING_MAILBOX);
}

static void
fill_mr(struct client *c, struct fuzz_input *in, struct shm_msg *m)
{
	unsigned how = fuzz_byte(in);
	struct shm_mr *mr = &m->body.mr;

	mr->pd = client_handle(c, THING_PD, how >> 6);
	mr->access = how & 16 ? fuzz_byte(in)
			      : RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ |
					RD_ACC_REMOTE_ATOMIC | RD_ACC_MW_BIND;
	mr->base = CLIENT_BASE;
	mr->nextents = 1 + (how & 3);
	mr->len = CLIENT_MEM >> (how >> 2 & 3);
	for (unsigned i = 0; i < mr->nextents; i++)
		mr->extents[i] = (struct shm_extent){
			.offset = c->h.mem + i * (mr->len / mr->nextents & ~7ull),
			.len = i + 1 < mr->nextents
				       ? (mr->len / mr->nextents & ~7ull)
				       : mr->len - i * (mr->len / mr->nextents & ~7ull)};
}

static void
fill_srq(struct client *c, struct fuzz_input *in, struct shm_msg *m)
{
	unsigned how = fuzz_byte(in);

	m->body.srq = (struct shm_srq_info){.pd = client_handle(c, THING_PD, 0),
		.depth = 1u << (how & 5),
		.max_sge = 1 + (how >> 3 & 3),
		.limit = how >> 5 & 1,
		.xrcd = SHM_NONE,
		.cq = SHM_NONE};
	if (how & 64) {
		m->body.srq.xrcd = client_handle(c, THING_XRCD, how >> 7);
		m->body.srq.cq = client_handle(c, THING_CQ, 0);
	}
}

/* Returns the class of packets that two operands select. All values fit; patch() sets those that do
 * not. */
static struct shm_class
class_of(unsigned how, unsigned more)
{
	return (struct shm_class){.set = (how ^ more >> 4) & 7,
		.traffic_class = (uint8_t)(how << 4 | more >> 4),
		.priority = more & 7,
		.flow_label = (how << 12 | more << 4) & 0xfffff};
}

static void
fill_qp(struct client *c, struct fuzz_input *in, struct shm_msg *m)
{
	unsigned how = fuzz_byte(in), more = fuzz_byte(in);

	m->body.qp = (struct shm_qp_info){.pd = client_handle(c, THING_PD, more >> 6),
		.send_cq = client_handle(c, THING_CQ, more >> 4 & 3),
		.recv_cq = client_handle(c, THING_CQ, more >> 4 & 3),
		.srq = how & 8 ? client_handle(c, THING_SRQ, more & 15) : SHM_NONE,
		.sq_depth = 16,
		.rq_depth = 16,
		.max_send_sge = how & 16 ? RD_MAX_SGE : 2,
		.max_recv_sge = how & 32 ? 7 : 1,
		.max_inline = how & 64 ? 200 : 0,
		.sig_all = how >> 7 & 1,
		.transport = how & 1,
		.type = how >> 1 & 3,
		.class = class_of(how, more),
		.xrcd = (how >> 1 & 3) == SHM_XRC_RECV ? client_handle(c, THING_XRCD, more & 15)
						       : SHM_NONE};
}

static void
fill_move(struct client *c, struct client *other, struct fuzz_input *in, struct shm_msg *m)
{
	unsigned which = fuzz_byte(in), how = fuzz_byte(in);
	const struct thing *peer = client_thing(other, THING_QP, how >> 4);

	m->body.move = (struct shm_qp_move){.qp = client_handle(c, THING_QP, which),
		.state = how & 7,
		.ird = 4,
		.ord = 4,
		.min_rnr_timer = 1,
		.timeout = how & 8 ? 14 : 0,
		.retry = 3,
		.rnr_retry = how & 8 ? 2 : 7,
		.access = 15,
		.qkey = 0x1111,
		.remote_qpn = peer != NULL ? peer->number : 0,
		.remote = other->w->addr[other->side],
		.class = class_of(which, how)};
	if ((how & 15) == 7) { /* a QP that the connection manager connects */
		m->body.move.state = RD_QP_RTS;
		m->body.move.remote_qpn = 0;
		m->body.move.remote = (struct sk_addr){0};
	}
}

static void
fill_cm(struct client *c, struct client *other, struct fuzz_input *in, struct shm_msg *m)
{
	unsigned which = fuzz_byte(in), how = fuzz_byte(in), more = fuzz_byte(in);
	struct shm_cm *cm = &m->body.cm;
	const struct thing *port = client_thing(other, THING_LISTENER, which >> 5);

	cm->qp = client_handle(c, THING_QP, which & 15);
	cm->request = client_handle(c, THING_REQUEST, which >> 4);
	m->tag = cm->request;
	cm->remote = other->w->addr[other->side];
	cm->lport = m->op == SHM_LISTEN ? (uint16_t)(7000 + (which & 7)) : 0;
	cm->rport = (uint16_t)(port != NULL ? port->number : 7000u);
	cm->ird = cm->ord = (uint16_t)(how & 1 ? SHM_DEPTH_AUTO : 4);
	cm->revision = how >> 1 & 3;
	cm->crc = (how >> 3 & 3) % 3;
	cm->markers = (how >> 5 & 3) % 3;
	cm->abort = how >> 7 & 1;
	cm->backlog = 4;
	cm->rtr = more & 15;
	cm->enhanced = (more >> 4 & 3) % 3;
	cm->dialect = (more >> 6 & 3) % 3;
	cm->space = m->op == SHM_LISTEN ? more & 1 : 0;
	cm->private_len = more & 16 ? 100 : 0;
	cm->class = class_of(how, more);
}

static void
fill_handle(struct client *c, struct fuzz_input *in, struct shm_msg *m, enum thing_kind kind)
{
	m->body.handle = client_handle(c, kind, fuzz_byte(in));
	m->tag = m->body.handle;
}

void
client_fill(struct client *c, struct client *other, struct fuzz_input *in, struct shm_msg *m)
{
	memset(m, 0, sizeof(*m));
	m->op = fuzz_byte(in) % (SHM_OP_COUNT + 1);
	switch (m->op) {
	case SHM_PD_DESTROY:
		fill_handle(c, in, m, THING_PD);
		break;
	case SHM_QP_QUERY:
		fill_handle(c, in, m, THING_QP);
		break;
	case SHM_MR_CREATE:
		fill_mr(c, in, m);
		break;
	case SHM_CQ_CREATE:
		m->body.cq.depth = 1 + fuzz_byte(in) % 100u;
		break;
	case SHM_CQ_RESIZE:
		m->body.cq.cq = client_handle(c, THING_CQ, fuzz_byte(in));
		m->body.cq.depth = 1 + fuzz_byte(in) % 250u;
		break;
	case SHM_SRQ_CREATE:
		fill_srq(c, in, m);
		break;
	case SHM_SRQ_MODIFY:
		m->body.srq.srq = client_handle(c, THING_SRQ, 0);
		m->body.srq.limit = fuzz_byte(in) % 20u;
		break;
	case SHM_SRQ_RESIZE:
		m->body.srq.srq = client_handle(c, THING_SRQ, 0);
		m->body.srq.depth = fuzz_byte(in) & 64;
		break;
	case SHM_QP_CREATE:
		fill_qp(c, in, m);
		break;
	case SHM_QP_MODIFY:
		fill_move(c, other, in, m);
		break;
	case SHM_QP_OPEN: {
		const struct thing *t = client_thing(other, THING_QP, fuzz_byte(in));

		m->body.qp.xrcd = client_handle(c, THING_XRCD, 0);
		m->body.qp.qpn = t != NULL ? t->number : 0;
		break;
	}
	case SHM_LISTEN:
	case SHM_CONNECT:
	case SHM_ACCEPT:
	case SHM_REJECT:
	case SHM_DISCONNECT:
	case SHM_RESOLVE:
		fill_cm(c, other, in, m);
		break;
	case SHM_MW_CREATE:
		m->body.mw.pd = client_handle(c, THING_PD, 0);
		m->body.mw.type = 1 + fuzz_byte(in) % 2u;
		break;
	case SHM_AH_CREATE:
		m->body.ah.pd = client_handle(c, THING_PD, 0);
		m->body.ah.remote = other->w->addr[other->side];
		m->body.ah.class = class_of(c->n[THING_AH], 0);
		break;
	case SHM_XRCD_OPEN:
		m->body.xrcd.create = 1;
		m->body.xrcd.ino = fuzz_byte(in) % 4u;
		break;
	case SHM_REGION_DROP:
		m->body.handle = fuzz_byte(in);
		break;
	default:
		if (m->op < SHM_OP_COUNT && destroyed[m->op] != THING_PD)
			fill_handle(c, in, m, destroyed[m->op]);
		break;
	}
}
