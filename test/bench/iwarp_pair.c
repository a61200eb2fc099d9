/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures nanoseconds per message through iw_tx() and iw_rx() of two QPs: no rings, no TCP, no
 * port. The rest is DDP, RDMAP, MPA, CRC and placement, with the cheapest callbacks possible:
 * requests are generated, and completions are counted.
 *
 *	iwarp_pair [size [burst [messages [opcode]]]]
 */
#include "../../lib/iwarp/iwarp.h"
#include "../support/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EMSS   8948
#define BUFS   4096
#define REGION (1u << 20)

struct buf {
	struct tcp_rec rec;
	struct tcp_slice slice;
	struct buf *next;
	uint8_t data[EMSS + 64];
};

struct side {
	struct iw_stage st;
	struct rd_pd pd;
	struct rd_qp rd;
	struct iw_qp *q;
	struct rd_mr mr;
	struct rd_extent extent;
	uint64_t to_post, completions;
	struct buf *out[BUFS];
	unsigned nout;
};

static struct side sides[2];
static struct buf *free_bufs;
static uint32_t size = 64;
static uint8_t op = RD_WRITE;

static bool
sq_next(void *ctx, struct rd_qp *qp, struct rd_wr *wr)
{
	struct side *s = ctx;

	if (s->to_post == 0)
		return false;
	s->to_post--;
	wr->wr_id = s->to_post;
	wr->opcode = op;
	wr->flags = RD_SIGNALED;
	wr->nsge = 1;
	wr->rkey = sides[1].mr.stag;
	wr->remote_addr = sides[1].mr.base + (s->to_post * 64) % (REGION / 2);
	wr->sge[0] =
		(struct rd_sge){s->mr.base + (s->to_post * 64) % (REGION / 2), size, s->mr.stag};
	return true;
}

static bool
sq_pending(void *ctx, struct rd_qp *qp)
{
	struct side *s = ctx;

	return s->to_post > 0;
}

static bool
rq_next(void *ctx, struct rd_qp *qp, struct rd_wr *wr)
{
	struct side *s = ctx;

	wr->nsge = 1;
	wr->sge[0] = (struct rd_sge){s->mr.base, size, s->mr.stag};
	return true;
}

static void
complete(void *ctx, struct rd_qp *qp, bool recv, const struct rd_wc *wc)
{
	struct side *s = ctx;

	if (wc->status != RD_SUCCESS)
		abort();
	s->completions++;
}

static void
qp_error(void *ctx, struct rd_qp *qp, int code)
{
	abort();
}

static bool
invalidate(void *ctx, struct rd_mr *mr)
{
	return rd_mr_invalidate(mr);
}

static struct tcp_rec *
rec_get(void *ctx, uint32_t room)
{
	struct buf *b = free_bufs;

	if (b == NULL)
		return NULL;
	free_bufs = b->next;
	b->rec.data = b->data;
	b->rec.len = 0;
	b->rec.owner = b;
	return &b->rec;
}

static void
rec_put(void *ctx, struct tcp_rec *rec)
{
	struct buf *b = rec->owner;

	b->next = free_bufs;
	free_bufs = b;
}

static bool
send_rec(void *ctx, struct iw_qp *q, struct tcp_rec *rec)
{
	struct side *s = ctx;

	if (s->nout == BUFS)
		return false;
	s->out[s->nout++] = rec->owner;
	return true;
}

static void
consumed(void *ctx, struct iw_qp *q, uint32_t bytes)
{
}

static void
slice_free(void *ctx, struct tcp_slice *chain)
{
	while (chain != NULL) {
		struct buf *b = chain->owner;

		chain = chain->next;
		b->next = free_bufs;
		free_bufs = b;
	}
}

static void
close_stream(void *ctx, struct iw_qp *q, enum iw_close how)
{
}

static void
side_init(struct side *s, struct rd_mr_table *mrs, bool initiator)
{
	struct iw_params p = {.initiator = initiator,
		.crc = true,
		.ird = 16,
		.ord = 16,
		.emss = EMSS,
		.send_space = 1 << 20};

	s->st.ctx = s;
	s->st.ops = (struct iw_ops){
		.rd = {.mrs = mrs,
			.sq_next = sq_next,
			.sq_pending = sq_pending,
			.rq_next = rq_next,
			.complete = complete,
			.qp_error = qp_error,
			.invalidate = invalidate},
		.rec_get = rec_get,
		.rec_put = rec_put,
		.send = send_rec,
		.consumed = consumed,
		.slice_free = slice_free,
		.close = close_stream,
	};
	s->extent = (struct rd_extent){0, REGION, calloc(1, REGION)};
	s->mr = (struct rd_mr){
		.access = RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ,
		.pd = &s->pd,
		.base = 0x1000000,
		.len = REGION,
		.valid = true,
		.nextents = 1,
		.extents = &s->extent};
	if (rd_mr_add(mrs, &s->mr, 1) < 0)
		abort();
	s->rd = (struct rd_qp){.qpn = 2u + initiator,
		.pd = &s->pd,
		.caps = {.sq_depth = 128, .rq_depth = 128, .max_send_sge = 1},
		.access = RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ};
	s->q = iw_qp_create(&s->st, &s->rd);
	if (s->q == NULL)
		abort();
	iw_qp_start(s->q, 0, &p);
}

/* Delivers all that one side has sent to the other. */
static void
carry(struct side *from, struct side *to)
{
	uint32_t bytes = 0;

	for (unsigned i = 0; i < from->nout; i++) {
		struct buf *b = from->out[i];

		b->slice = (struct tcp_slice){.data = b->data, .len = b->rec.len, .owner = b};
		bytes += b->rec.len;
		iw_rx(to->q, 0, &b->slice);
	}
	from->nout = 0;
	iw_space(from->q, bytes);
}

static void
run(uint64_t messages, unsigned burst)
{
	uint64_t start = now_ns(), tx = 0, rx = 0, t0, t1;

	for (uint64_t done = 0; done < messages; done += burst) {
		sides[0].to_post += burst;
		while (sides[0].completions < done + burst) {
			t0 = now_ns();
			while (iw_tx(sides[0].q, 0, 256) == IW_TX_MORE)
				;
			t1 = now_ns();
			carry(&sides[0], &sides[1]);
			while (iw_tx(sides[1].q, 0, 256) == IW_TX_MORE)
				;
			carry(&sides[1], &sides[0]);
			tx += t1 - t0;
			rx += now_ns() - t1;
		}
	}
	sides[0].completions = 0;
	printf("op %u size %u burst %u: %.1f ns a message (tx %.1f, rx %.1f)\n", op, size, burst,
		(double)(now_ns() - start) / (double)messages, (double)tx / (double)messages,
		(double)rx / (double)messages);
}

int
main(int argc, char **argv)
{
	static struct buf bufs[BUFS];
	uint64_t messages = 2000000;
	unsigned burst = 64;
	struct sk_key key;
	struct rd_mr_table *mrs;

	if (argc > 1)
		size = (uint32_t)strtoul(argv[1], NULL, 0);
	if (argc > 2)
		burst = (unsigned)strtoul(argv[2], NULL, 0);
	if (argc > 3)
		messages = strtoull(argv[3], NULL, 0);
	if (argc > 4)
		op = (uint8_t)strtoul(argv[4], NULL, 0);
	if (size > REGION / 2 || burst == 0) {
		fprintf(stderr, "iwarp_pair [size [burst [messages [opcode]]]]\n");
		return 2;
	}
	for (unsigned i = 0; i < BUFS; i++)
		slice_free(NULL, &(struct tcp_slice){.owner = &bufs[i]});
	sk_random(&key, sizeof(key));
	mrs = rd_mr_table_create(1024, &key);
	if (mrs == NULL)
		return 1;
	side_init(&sides[0], mrs, true);
	side_init(&sides[1], mrs, false);
	run(messages / 10, burst);
	run(messages, burst);
	return 0;
}
