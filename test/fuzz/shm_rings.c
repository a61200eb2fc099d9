/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared memory whose other side writes arbitrary values. The first input byte chooses between a
 * ring that is consumed and produced while its memory is overwritten, and a whole region that a
 * client attaches to and uses while its engine overwrites it.
 */
#include <saker/saker.h>

#include "../../lib/shm/shm_msg.h"
#include "../../lib/shm/shm_ring.h"
#include "fuzz.h"

#define REGION   65536
#define CQ_DEPTH 4

static uint32_t
next(struct fuzz_input *in, unsigned bytes)
{
	return (uint32_t)fuzz_take_rest(in, bytes);
}

/* Overwrites a few bytes at a position that the input chooses. */
static void
scribble(struct fuzz_input *in, uint8_t *base, size_t size)
{
	uint32_t at = next(in, 2) % size, v = next(in, 4);

	memcpy(base + at, &v, size - at < sizeof(v) ? size - at : sizeof(v));
}

static void
rings(struct fuzz_input *in)
{
	const size_t size = 4096;
	struct shm_ring_at at = {.entries = next(in, 2),
		.cons = next(in, 2),
		.stride = (uint16_t)next(in, 2),
		.log2_count = (uint8_t)next(in, 1)};
	uint8_t *base = aligned_alloc(SHM_LINE, size);
	struct shm_prod prod;
	struct shm_take take;

	CLAIM(base != NULL);
	memset(base, 0, size);
	if (!shm_ring_ok(&at, size, sizeof(uint32_t))) {
		free(base);
		return;
	}
	shm_prod_init(&prod, base, &at);
	shm_take_init(&take, base, &at);
	while (in->at < in->len) {
		uint32_t op = next(in, 1), room = shm_prod_room(&prod);
		const void *e = shm_take_peek(&take);

		CLAIM(room <= prod.count);
		if (e != NULL && (op & 1) != 0) {
			uint8_t copy[4096];

			memcpy(copy, e, at.stride);
			shm_take_pop(&take);
		}
		if (room > 0 && (op & 2) != 0) {
			memset((uint8_t *)shm_prod_entry(&prod) + 4, 0xaa, at.stride - 4u);
			shm_prod_push(&prod);
		}
		if ((op & 4) != 0)
			shm_take_publish(&take);
		if ((op & 8) != 0)
			scribble(in, base, size);
	}
	free(base);
}

static struct {
	struct fuzz_input *in;
	uint8_t *base;
	struct shm_prod
		evt; /* replies now and then as an engine would, with a body from the input */
	struct shm_take cmd;
	uint64_t heap; /* offset */
	uint32_t completions;
	bool sane;
} engine;

/* Returns a ring in the heap of the region, with its consumer's line before it. */
static struct shm_ring_at
ring_at(uint64_t *heap, uint16_t stride, uint64_t cons)
{
	struct shm_ring_at at = {.entries = *heap, .cons = cons, .stride = stride, .log2_count = 2};

	*heap += shm_ring_bytes(&at);
	return at;
}

/* Completes the reply to a command that creates an object with queues, as an engine does. */
static void
lay_queues(struct shm_msg *m)
{
	/* The queues of two objects of one kind may be the same: the engine is hostile. */
	uint64_t heap = engine.heap;

	if (m->op == SHM_CQ_CREATE) {
		m->body.cq.at = heap;
		m->body.cq.depth = CQ_DEPTH;
		heap += shm_cq_bytes(2);
		for (unsigned i = 0; i < 2; i++) {
			((struct shm_cq *)(engine.base + engine.heap))->sub[i] = heap;
			heap += SHM_LINE + CQ_DEPTH * sizeof(struct shm_cqe);
		}
		((struct shm_cq *)(engine.base + engine.heap))->nsubs = 1;
	} else if (m->op == SHM_QP_CREATE) {
		heap += 2048;
		m->body.qp.at = heap;
		heap += sizeof(struct shm_qp);
		m->body.qp.sq = ring_at(&heap, 64, m->body.qp.at + offsetof(struct shm_qp, sq));
		m->body.qp.rq = ring_at(&heap, 64, m->body.qp.at + offsetof(struct shm_qp, rq));
		m->body.qp.sq_depth = m->body.qp.rq_depth = 4;
		m->body.qp.max_send_sge = 1;
		m->body.qp.max_recv_sge = 3;
		m->body.qp.max_inline = 24;
	} else if (m->op == SHM_SRQ_CREATE) {
		heap += 8192;
		m->body.srq.depth = 4;
		m->body.srq.max_sge = 3;
		m->body.srq.rq = ring_at(&heap, 64, heap);
		m->body.srq.rq.entries += SHM_LINE;
	}
}

/* Produces a completion, with a body from the input, in the first sub-ring of the CQ. */
static void
complete(struct fuzz_input *in)
{
	uint8_t *first = engine.base + engine.heap + shm_cq_bytes(2) + SHM_LINE;
	struct shm_cqe *e = (struct shm_cqe *)first + engine.completions % CQ_DEPTH;

	((struct shm_cq *)(engine.base + engine.heap))->nsubs = 1 + engine.completions / 2 % 2;
	e->opcode = (uint8_t)next(in, 1);
	e->status = (uint8_t)next(in, 1);
	e->flags = (uint8_t)next(in, 1);
	e->qpn = next(in, 1);
	e->byte_len = next(in, 2);
	e->detail = next(in, 1);
	e->turn = shm_turn(engine.completions++, 2);
}

static void
idle(void *arg)
{
	struct fuzz_input *in = engine.in;
	struct shm_header *h = (struct shm_header *)engine.base;
	const struct shm_msg *m = engine.sane ? shm_take_peek(&engine.cmd) : NULL;

	if (in->at == in->len) {
		h->engine_alive = 0;
		return;
	}
	if (m != NULL && (next(in, 1) & 7) != 0 && shm_prod_room(&engine.evt) > 0) {
		struct shm_msg *reply = shm_prod_entry(&engine.evt);

		memcpy((uint8_t *)reply + 4, (const uint8_t *)m + 4, sizeof(*m) - 4);
		lay_queues(reply);
		for (uint32_t n = next(in, 1) % 8; n > 0; n--)
			scribble(in, (uint8_t *)&reply->body, 256);
		if ((next(in, 1) & 3) == 0)
			reply->op = (uint16_t)(SHM_EV_CONNECT_REQUEST + next(in, 1) % 16);
		shm_prod_push(&engine.evt);
		shm_take_pop(&engine.cmd);
		shm_take_publish(&engine.cmd);
		return;
	}
	scribble(in, engine.base, REGION);
}

/* Posts a request that the input chooses. */
static void
post(struct fuzz_input *in, struct saker_qp *qp, struct saker_srq *srq, uint8_t *mem)
{
	uint32_t how = next(in, 1), opcode = next(in, 1);
	struct rd_sge sge[8];
	const struct saker_wr wr = {.wr_id = how,
		.opcode = (uint8_t)(opcode % 14),
		.data_mask = how & 1, /* of a Compare and Swap: it takes two entries */
		.flags = (uint8_t)(opcode >> 4),
		.nsge = how & 7,
		.sge = sge,
		.rkey = how,
		.imm = opcode};

	for (unsigned i = 0; i < 8; i++)
		sge[i] = (struct rd_sge){(uintptr_t)mem, opcode * (i + 1), i};
	if ((how & 8) != 0)
		CLAIM(saker_post_recv(qp, &wr, 1) <= 1);
	else if ((how & 16) != 0 && srq != NULL)
		CLAIM(saker_post_srq(srq, &wr, 1) <= 1);
	else
		CLAIM(saker_post_send(qp, &wr, 1) <= 1);
}

static void
use(struct saker *s, struct fuzz_input *in)
{
	struct saker_qp_attr attr = {
		.sq_depth = 4, .rq_depth = 4, .max_send_sge = 2, .max_inline = 16};
	struct saker_qp_move move = {.state = RD_QP_INIT};
	const struct sk_addr peer = {{[10] = 0xff, 0xff, 10, 0, 0, 2}};
	struct saker_srq *srq = NULL;
	struct saker_listener *l;
	struct saker_qp_info info;
	struct saker_event ev;
	struct saker_pd *pd;
	struct saker_qp *qp;
	struct rd_wc wc[4];
	static uint8_t mem[4096]; /* inline data lies in any memory of the program */

	if (saker_pd_create(s, &pd) < 0 || saker_cq_create(s, 4, NULL, &attr.send_cq) < 0)
		return;
	attr.recv_cq = attr.send_cq;
	if (saker_qp_create(pd, &attr, &qp) < 0)
		return;
	(void)saker_alloc(s, 4096);
	while (in->at < in->len) {
		struct saker_cq *cq;

		switch (next(in, 1) % 10) {
		case 0:
			(void)saker_qp_query(qp, &info);
			break;
		case 1:
			(void)saker_qp_move(qp, &move);
			move.state = (enum rd_qp_state)(move.state % RD_QP_ERR + 1);
			break;
		case 2:
			(void)saker_connect(qp, NULL, &peer, 7000, NULL);
			break;
		case 3:
			(void)saker_listen(s, NULL, 7000, 4, NULL, &l);
			break;
		case 4:
			(void)saker_accept(s, next(in, 1), qp, NULL);
			break;
		case 5:
			if (srq == NULL && saker_srq_create(pd, 4, 2, &srq) < 0)
				srq = NULL;
			break;
		case 6:
			complete(in);
			break;
		default:
			post(in, qp, srq, mem);
		}
		CLAIM(saker_cq_poll(attr.send_cq, wc, 4) <= 4);
		saker_cq_arm(attr.send_cq, false);
		if (saker_event(s, &ev) == 1)
			CLAIM(ev.cm.private_len <= SHM_PRIVATE_MAX);
		(void)saker_cq_event(s, &cq);
		if (next(in, 1) % 4 == 0)
			idle(NULL);
	}
}

static void
region(struct fuzz_input *in)
{
	const struct shm_home home = {.nstages = 2,
		.commands = 4,
		.events = 8,
		.doorbells = 8,
		.cq_events = 8,
		.mem_len = 8192};
	uint8_t *base = aligned_alloc(4096, REGION);
	struct shm_header *h = (struct shm_header *)base;
	struct saker *s;

	CLAIM(base != NULL);
	memset(base, 0, REGION);
	CLAIM(shm_header_lay(h, REGION, &home) == 0);
	h->magic = SHM_MAGIC;
	h->engine_alive = 1;
	engine.in = in;
	engine.base = base;
	engine.heap = h->heap;
	engine.completions = 0;
	engine.sane = true;
	shm_prod_init(&engine.evt, base, &h->evt);
	shm_take_init(&engine.cmd, base, &h->cmd);
	for (uint32_t n = next(in, 1) % 4; n > 0; n--)
		scribble(in, base, sizeof(*h));
	if (saker_open_flat(base, REGION, idle, NULL, &s) == 0) {
		use(s, in);
		saker_close(s);
	}
	free(base);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {.p = data, .len = size};

	if ((next(&in, 1) & 1) != 0)
		rings(&in);
	else
		region(&in);
	return 0;
}
