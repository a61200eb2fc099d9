/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of the data path of the verbs driver, for callgrind, which counts the instructions
 * inside verbs_turn(): ibv_post_send() of a signalled Write with one element, of which 16 ring the
 * doorbell once, and ibv_poll_cq() of an empty queue. The engine is test/mini, outside of the
 * count.
 *
 *   bench_verbs [ARGS --] post|poll
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../drivers/verbs/events_priv.h"
#include "../../drivers/verbs/ops_priv.h"
#include "../../drivers/verbs/qp_priv.h"
#include "../mini/mini.h"

#define BATCH 16
#define TURNS 2000

static struct mini mini;
static struct vb_context context;
static struct vb_kind kind;
static struct vb_cq cq;
static struct vb_qp qp;

/* ---- What the driver's files need of others ---- */

int
vb_alive(struct ibv_context *c)
{
	return 0;
}

int
vb_fail(int err, const char *fmt, ...)
{
	return err;
}

int
vb_rc(int rc, const char *what)
{
	return rc < 0 ? -rc : 0;
}

void
vb_owned_enter(struct ibv_context *c, struct vb_owned *o, enum vb_owned_kind k)
{
}

void
vb_owned_leave(struct vb_owned *o)
{
}

void
vb_retire_begin(struct vb_retire *r)
{
}

void
vb_retire_end(struct vb_retire *r, bool destroyed)
{
}

void
vb_channel_ring(struct vb_cq *q)
{
}

/* ---- The calls ---- */

static void
need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "bench_verbs: %s\n", what);
	exit(1);
}

static void
start(void)
{
	struct saker_qp_attr attr = {
		.sq_depth = 2 * BATCH, .rq_depth = BATCH, .max_send_sge = 1, .max_recv_sge = 1};
	struct saker_pd *pd;

	need(mini_init(&mini, 8u << 20), "no memory");
	need(saker_open_flat(mini.home, mini.size, mini_idle, &mini, &context.saker) == 0,
		"no attachment");
	context.kind = &kind;
	context.vctx.context.ops.post_send = vb_post_send;
	context.vctx.context.ops.poll_cq = vb_poll_cq;
	cq.cq.context = qp.ex.qp_base.context = &context.vctx.context;
	need(saker_cq_create(context.saker, 4 * BATCH, &cq, &cq.saker) == 0, "no CQ");
	need(saker_pd_create(context.saker, &pd) == 0, "no PD");
	attr.send_cq = attr.recv_cq = cq.saker;
	need(saker_qp_create(pd, &attr, &qp.saker) == 0, "no QP");
	qp.ex.qp_base.state = IBV_QPS_RTS;
	qp.init.cap.max_send_sge = 1;
}

static __attribute__((noinline)) void
post_turn(void)
{
	struct ibv_sge sge = {.addr = 4096, .length = 8, .lkey = 1};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1};
	struct ibv_send_wr *bad;

	for (unsigned i = 0; i < BATCH; i++)
		need(ibv_post_send(&qp.ex.qp_base, &wr, &bad) == 0, "a request is refused");
}

static __attribute__((noinline)) void
poll_turn(void)
{
	struct ibv_wc wc[BATCH];

	for (unsigned i = 0; i < BATCH; i++)
		need(ibv_poll_cq(&cq.cq, BATCH, wc) == 0, "a completion from nowhere");
}

static __attribute__((noinline)) void
verbs_turn(bool post)
{
	if (post)
		post_turn();
	else
		poll_turn();
}

static void
drain(unsigned n)
{
	struct ibv_wc wc[BATCH];

	mini_poll(&mini);
	need(ibv_poll_cq(&cq.cq, BATCH, wc) == (int)n, "completions are missing");
}

int
main(int argc, char **argv)
{
	const char *what = argv[argc - 1];
	bool post = strcmp(what, "post") == 0;

	if (!post && strcmp(what, "poll") != 0) {
		fprintf(stderr, "bench_verbs: the call is post or poll, not '%s'\n", what);
		return 2;
	}
	start();
	/* The first completion makes the poll take the sub-ring over. */
	post_turn();
	drain(BATCH);
	for (unsigned i = 0; i < TURNS; i++) {
		verbs_turn(post);
		if (post)
			drain(BATCH);
	}
	printf("%s, %u done\n", what, BATCH * TURNS);
	saker_close(context.saker);
	mini_free(&mini);
	return 0;
}
