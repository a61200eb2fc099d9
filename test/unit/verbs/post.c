/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The posting functions write requests into the queues themselves: the entry of each operation,
 * chains of requests, errors and full queues. The test reads the entries in place of an engine. The
 * entries that libsaker's own functions write for the same receives are the measure for those of
 * verbs.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "../../../drivers/verbs/ops_priv.h"
#include "../../../lib/client/client_priv.h"
#include "../../mini/mini.h"

#define HOME  (4ul << 20)
#define DEPTH 4

static struct mini mini;
static struct saker *s;
static struct saker_cq *cq;
static struct vb_context context;
static struct vb_kind kind;
static struct vb_qp qp;
static const struct ibv_sge sges[5] = {{1, 10, 100}, {2, 20, 200}, {3, 30, 300}};

static void
start(void)
{
	struct saker_qp_attr attr = {.sq_depth = DEPTH,
		.rq_depth = DEPTH,
		.max_send_sge = 3,
		.max_recv_sge = 3,
		.max_inline = 30};
	struct saker_pd *pd;

	cr_assert(mini_init(&mini, HOME));
	cr_assert_eq(saker_open_flat(mini.home, mini.size, mini_idle, &mini, &s), 0);
	cr_assert_eq(saker_cq_create(s, DEPTH, NULL, &cq), 0);
	cr_assert_eq(saker_pd_create(s, &pd), 0);
	attr.send_cq = attr.recv_cq = cq;
	cr_assert_eq(saker_qp_create(pd, &attr, &qp.saker), 0, "%s", saker_error());
	context.kind = &kind;
	qp.ex.qp_base.context = &context.vctx.context;
	qp.ex.qp_base.state = IBV_QPS_RTS;
}

static void
end(void)
{
	saker_close(s);
	mini_free(&mini);
}

TestSuite(verbs_post, .init = start, .fini = end);

/* Posts one request. Returns the result, and checks that a failure names the request. */
static int
post(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int rc = vb_post_send(&qp.ex.qp_base, wr, &bad);

	cr_assert(rc == 0 || bad == wr);
	return rc;
}

/* Takes the next entry, or returns false if there is none. */
static bool
next(struct shm_sqe *e)
{
	struct shm_take *t = &mini.qp[0].sq;
	const void *at = shm_take_peek(t);

	if (at == NULL)
		return false;
	memset(e, 0, sizeof(*e));
	memcpy(e, at, t->stride);
	shm_take_pop(t);
	shm_take_publish(t);
	return true;
}

static struct ibv_send_wr
request(enum ibv_wr_opcode opcode)
{
	struct ibv_send_wr wr = {.wr_id = 77 + opcode,
		.opcode = opcode,
		.sg_list = (struct ibv_sge *)(uintptr_t)sges,
		.num_sge = 1};

	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = 0x1111;
		wr.wr.atomic.rkey = 0x2222;
		wr.wr.atomic.compare_add = 5;
		wr.wr.atomic.swap = 6;
	} else {
		wr.wr.rdma.remote_addr = 0x1111;
		wr.wr.rdma.rkey = 0x2222;
	}
	return wr;
}

static struct shm_sqe
posted(struct ibv_send_wr *wr, uint8_t opcode)
{
	struct shm_sqe e;

	cr_assert_eq(post(wr), 0);
	cr_assert(next(&e));
	cr_assert_eq(e.opcode, opcode);
	cr_assert_eq(e.wr_id, wr->wr_id);
	return e;
}

Test(verbs_post, each_operation_has_its_entry)
{
	struct ibv_mw mw = {.type = IBV_MW_TYPE_2};
	struct ibv_mr mr = {.lkey = 0x3333};
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE);
	struct shm_sqe e = posted(&wr, RD_WRITE);

	cr_assert(e.remote_addr == 0x1111 && e.rkey == 0x2222 && e.len == 16);
	cr_assert_eq(memcmp(e.sge, sges, 16), 0);
	wr = request(IBV_WR_RDMA_READ);
	e = posted(&wr, RD_READ);
	cr_assert(e.remote_addr == 0x1111 && e.rkey == 0x2222 && e.len == 16);
	wr = request(IBV_WR_RDMA_WRITE_WITH_IMM);
	wr.imm_data = htonl(44);
	e = posted(&wr, RD_WRITE_IMM);
	cr_assert(e.remote_addr == 0x1111 && e.rkey == 0x2222 && e.imm == 44);
	wr = request(IBV_WR_SEND);
	wr.num_sge = 3;
	e = posted(&wr, RD_SEND);
	cr_assert(e.len == 48 && memcmp(e.sge, sges, 48) == 0);
	wr = request(IBV_WR_SEND_WITH_IMM);
	wr.imm_data = htonl(45);
	e = posted(&wr, RD_SEND_IMM);
	cr_assert_eq(e.imm, 45);
	wr = request(IBV_WR_SEND_WITH_INV);
	wr.invalidate_rkey = 46;
	e = posted(&wr, RD_SEND_INV);
	cr_assert_eq(e.imm, 46);
	wr = request(IBV_WR_LOCAL_INV);
	wr.invalidate_rkey = 47;
	wr.num_sge = 0;
	e = posted(&wr, RD_LOCAL_INV);
	cr_assert(e.imm == 47 && e.len == 0);
	wr = request(IBV_WR_ATOMIC_CMP_AND_SWP);
	e = posted(&wr, RD_CMP_SWAP);
	cr_assert(e.remote_addr == 0x1111 && e.rkey == 0x2222 && e.len == 24);
	cr_assert(e.data == 6 && e.atomic.compare == 5 && e.atomic.sink.lkey == 100);
	wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD);
	e = posted(&wr, RD_FETCH_ADD);
	cr_assert(e.len == 24 && e.data == 5 && e.atomic.add_mask == 0);
	wr = request(IBV_WR_BIND_MW);
	wr.bind_mw.mw = &mw;
	wr.bind_mw.rkey = 9;
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){&mr, 0x4444, 1ull << 33, 6};
	e = posted(&wr, RD_BIND_MW);
	cr_assert(e.rkey == 9 && e.imm == 0x3333 && e.remote_addr == 0x4444 && e.len == 16);
	cr_assert(e.bind.len == 1ull << 33 && e.bind.access == 6);
	mw.type = IBV_MW_TYPE_1;
	cr_assert_eq(post(&wr), EINVAL);
	cr_assert_not(next(&e));
}

Test(verbs_post, flags_are_converted)
{
	for (unsigned verbs = 0; verbs < 16; verbs++) {
		struct ibv_send_wr wr = request(IBV_WR_SEND);
		uint8_t want = ((verbs & IBV_SEND_SIGNALED) ? RD_SIGNALED : 0) |
			       ((verbs & IBV_SEND_SOLICITED) ? RD_SOLICITED : 0) |
			       ((verbs & IBV_SEND_FENCE) ? RD_FENCE : 0) |
			       ((verbs & IBV_SEND_INLINE) ? RD_INLINE : 0);

		/* IBV_SEND_IP_CSUM has no meaning here. */
		wr.send_flags = verbs | IBV_SEND_IP_CSUM;
		wr.num_sge = 0;
		cr_assert_eq(posted(&wr, RD_SEND).flags, want, "%u", verbs);
	}
}

Test(verbs_post, inline_data_is_copied_up_to_the_limit)
{
	char bytes[32] = "0123456789abcdefghijklmnopqrst";
	struct ibv_sge two[2] = {{(uintptr_t)bytes, 10, 0}, {(uintptr_t)bytes + 10, 20, 0}};
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE);
	struct shm_sqe e;

	wr.send_flags = IBV_SEND_INLINE;
	wr.sg_list = two;
	wr.num_sge = 2;
	e = posted(&wr, RD_WRITE);
	cr_assert(e.len == 30 && memcmp(e.inl, bytes, 30) == 0);
	two[1].length = 21;
	cr_assert_eq(post(&wr), EINVAL);
	two[1].length = UINT32_MAX;
	cr_assert_eq(post(&wr), EINVAL, "a sum that would wrap");
}

Test(verbs_post, datagrams_and_XRC_name_their_receiver)
{
	struct saker_ah handle = {.obj.handle = 5};
	struct vb_ah ah = {.saker = &handle};
	struct ibv_send_wr wr = request(IBV_WR_SEND);
	struct shm_sqe e;

	cl_sq_of(qp.saker)->type = SAKER_UD;
	wr.wr.ud.ah = &ah.ah;
	wr.wr.ud.remote_qpn = 6;
	wr.wr.ud.remote_qkey = 7;
	e = posted(&wr, RD_SEND);
	cr_assert(e.ah == 5 && e.remote_qpn == 6 && e.remote_qkey == 7 && e.len == 16);
	wr.opcode = IBV_WR_RDMA_WRITE;
	cr_assert_eq(post(&wr), EINVAL);
	cl_sq_of(qp.saker)->type = SAKER_XRC_SEND;
	wr = request(IBV_WR_RDMA_WRITE);
	wr.qp_type.xrc.remote_srqn = 8;
	e = posted(&wr, RD_WRITE);
	cr_assert(e.remote_srqn == 8 && e.rkey == 0x2222);
}

Test(verbs_post, what_cannot_be_is_refused)
{
	struct ibv_send_wr wr = request(IBV_WR_SEND);
	struct shm_sqe e;

	wr.num_sge = -1;
	cr_assert_eq(post(&wr), EINVAL);
	wr.send_flags = IBV_SEND_INLINE;
	cr_assert_eq(post(&wr), EINVAL);
	wr.send_flags = 0;
	wr.num_sge = 4;
	cr_assert_eq(post(&wr), EINVAL, "more elements than the QP has");
	wr = request(IBV_WR_TSO);
	cr_assert_eq(post(&wr), EINVAL);
	wr = request((enum ibv_wr_opcode)99);
	cr_assert_eq(post(&wr), EINVAL);
	wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD);
	wr.num_sge = 2;
	cr_assert_eq(post(&wr), EINVAL);
	qp.ex.qp_base.state = IBV_QPS_INIT;
	wr = request(IBV_WR_SEND);
	cr_assert_eq(post(&wr), EINVAL);
	cr_assert_not(next(&e));
	cr_assert_eq(mini.qp[0].shared->pending, 0, "nothing was posted, so nothing rings");
}

/* A chain ends at the first request that fails; those before it are posted, with a doorbell. */
Test(verbs_post, a_chain_is_posted_up_to_the_first_error)
{
	struct ibv_send_wr wr[DEPTH + 2], *bad;
	struct shm_sqe e;

	for (unsigned i = 0; i < DEPTH + 2; i++) {
		wr[i] = request(IBV_WR_RDMA_WRITE);
		wr[i].wr_id = i;
		wr[i].next = i + 1 < DEPTH + 2 ? &wr[i + 1] : NULL;
	}
	wr[2].num_sge = 4;
	cr_assert_eq(vb_post_send(&qp.ex.qp_base, wr, &bad), EINVAL);
	cr_assert_eq(bad, &wr[2]);
	cr_assert_eq(mini.qp[0].shared->pending, 1);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert(next(&e));
		cr_assert_eq(e.wr_id, i);
	}
	cr_assert_not(next(&e));
	wr[2].num_sge = 1;
	cr_assert_eq(vb_post_send(&qp.ex.qp_base, wr, &bad), ENOMEM);
	cr_assert_eq(bad, &wr[DEPTH], "the queue holds DEPTH requests");
	for (unsigned i = 0; i < DEPTH; i++)
		cr_assert(next(&e));
	cr_assert_not(next(&e));
	s->gone = 1;
	cr_assert_eq(vb_post_send(&qp.ex.qp_base, wr, &bad), EPIPE);
	cr_assert_eq(bad, wr);
}

/* ---- Receives ---- */

/* The effects of posting a list: the result, the index of the request that failed (the length of
 * the list if none did), the entries, and whether the doorbell was written. */
struct after {
	int rc, bad;
	uint32_t next, pending;
	uint8_t entries[DEPTH * 512];
};

enum way { VERBS, LIBRARY, SRQ_VERBS, SRQ_LIBRARY, WAYS };

static struct saker_srq srq;
static struct shm_cons srq_cons;
static uint8_t srq_entries[DEPTH * 512];

static struct cl_rq *
rq_of(enum way way)
{
	return way < SRQ_VERBS ? cl_rq_of(qp.saker) : cl_srq_of(&srq);
}

/* Empties both queues: the engine has taken everything, from `taken` entries on in total. */
static void
queues_start(uint32_t taken)
{
	struct cl_rq *rq = cl_rq_of(qp.saker);

	srq.s = s;
	srq.rq = (struct cl_rq){.ring = rq->ring, .gone = rq->gone, .max_sge = rq->max_sge};
	srq.rq.ring.entries = srq_entries;
	srq.rq.ring.cons = &srq_cons;
	for (enum way w = VERBS; w < WAYS; w++) {
		struct shm_prod *p = &rq_of(w)->ring;

		p->next = p->taken = taken;
		__atomic_store_n((uint32_t *)(uintptr_t)&p->cons->taken, taken, __ATOMIC_RELAXED);
		memset(p->entries, 0xee, (size_t)p->count * p->stride);
	}
	mini.qp[0].shared->pending = 0;
}

static int
verbs_recv(enum way way, struct ibv_recv_wr *wr, int n)
{
	struct vb_srq v = {.saker = &srq};
	struct ibv_recv_wr *bad = NULL;
	int rc;

	if (way == VERBS)
		rc = vb_post_recv(&qp.ex.qp_base, wr, &bad);
	else
		rc = vb_post_srq_recv(&v.srq, wr, &bad);
	cr_assert_eq(rc == 0, bad == NULL);
	return rc << 8 | (rc == 0 ? n : (int)(bad - wr));
}

/* Posts the same list through libsaker, which takes what it can, until it takes nothing. */
static int
library_recv(enum way way, const struct ibv_recv_wr *wr, int n)
{
	int done, rc = 0;

	for (done = 0; done < n; done++) {
		struct saker_wr one = {.wr_id = wr[done].wr_id,
			.nsge = (uint8_t)wr[done].num_sge,
			.sge = (const struct rd_sge *)wr[done].sg_list};

		if (wr[done].num_sge < 0 || wr[done].num_sge > RD_MAX_SGE) {
			rc = EINVAL;
			break;
		}
		rc = way == LIBRARY ? saker_post_recv(qp.saker, &one, 1)
				    : saker_post_srq(&srq, &one, 1);
		if (rc != 1) {
			rc = rc < 0 ? -rc : ENOMEM;
			break;
		}
		rc = 0;
	}
	return rc << 8 | done;
}

static void
after_list(enum way way, struct ibv_recv_wr *wr, int n, uint32_t taken, struct after *out)
{
	struct shm_prod *p = &rq_of(way)->ring;
	int rc;

	queues_start(taken);
	memset(out, 0, sizeof(*out));
	rc = way == VERBS || way == SRQ_VERBS ? verbs_recv(way, wr, n) : library_recv(way, wr, n);
	out->rc = rc >> 8;
	out->bad = rc & 255;
	out->next = p->next;
	out->pending = mini.qp[0].shared->pending;
	cr_assert_leq((size_t)p->count * p->stride, sizeof(out->entries));
	memcpy(out->entries, p->entries, (size_t)p->count * p->stride);
}

/* Compares both ways for a list whose requests have these numbers of elements. Returns the result
 * and the index of the request that failed. */
static struct after
recv_same(const int *nsge, int n, uint32_t taken)
{
	static struct after a[WAYS];
	struct ibv_recv_wr wr[DEPTH + 4];

	for (int i = 0; i < n; i++)
		wr[i] = (struct ibv_recv_wr){.wr_id = 500 + (uint64_t)i,
			.next = i + 1 < n ? &wr[i + 1] : NULL,
			.sg_list = (struct ibv_sge *)(uintptr_t)&sges[i % 2],
			.num_sge = nsge[i]};
	for (enum way w = VERBS; w < WAYS; w++)
		after_list(w, n > 0 ? wr : NULL, n, taken, &a[w]);
	for (enum way w = VERBS; w < WAYS; w += 2) {
		cr_assert_eq(a[w].rc, a[w + 1].rc, "way %d: %d, not %d", w, a[w].rc, a[w + 1].rc);
		cr_assert_eq(
			a[w].bad, a[w + 1].bad, "way %d: %d, not %d", w, a[w].bad, a[w + 1].bad);
		cr_assert_eq(a[w].next, a[w + 1].next);
		cr_assert_eq(a[w].pending, a[w + 1].pending);
		cr_assert_arr_eq(a[w].entries, a[w + 1].entries, sizeof(a[w].entries));
	}
	return a[VERBS];
}

#define RECV_SAME(taken, ...)                                                                      \
	recv_same((const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int),    \
		taken)

Test(verbs_post, receives_are_those_that_libsaker_writes)
{
	/* The first lap, a lap whose entries were used, and the numbers that wrap. */
	const uint32_t laps[] = {0, DEPTH, 3, UINT32_MAX - 1};
	struct after a;

	for (unsigned i = 0; i < sizeof(laps) / sizeof(laps[0]); i++) {
		a = RECV_SAME(laps[i], 1);
		cr_assert(a.rc == 0 && a.next == laps[i] + 1 && a.pending == 0);
		a = RECV_SAME(laps[i], 0, 1, 2, 3);
		cr_assert(a.rc == 0 && a.next == laps[i] + 4);
		a = RECV_SAME(laps[i], 1, 1, 1, 1, 1, 1);
		cr_assert(a.rc == ENOMEM && a.bad == DEPTH, "the queue holds DEPTH receives");
		a = RECV_SAME(laps[i], 1, 4, 1);
		cr_assert(a.rc == EINVAL && a.bad == 1, "more elements than the queue has");
		a = RECV_SAME(laps[i], -1, 1);
		cr_assert(a.rc == EINVAL && a.bad == 0);
		a = RECV_SAME(laps[i], 2, 2, RD_MAX_SGE + 1);
		cr_assert(a.rc == EINVAL && a.bad == 2);
		a = RECV_SAME(laps[i], 1, 1, 1, 1, 4);
		cr_assert(a.rc == ENOMEM && a.bad == DEPTH, "a full queue is found first");
		a = RECV_SAME(laps[i], 1, 1, 1, 1, RD_MAX_SGE + 1);
		cr_assert(a.rc == EINVAL && a.bad == DEPTH);
	}
	a = recv_same(NULL, 0, 0);
	cr_assert(a.rc == 0 && a.next == 0, "a list of nothing");
}

Test(verbs_post, receives_of_a_failed_queue_pair_ring)
{
	__atomic_store_n(&cl_rq_of(qp.saker)->failed, 1, __ATOMIC_RELAXED);
	cr_assert_eq(RECV_SAME(0, 1).pending, 1);
	cr_assert_eq(RECV_SAME(0, 1, 1, 4).pending, 1);
}

Test(verbs_post, receives_are_refused_without_an_engine_or_a_queue)
{
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad = NULL;
	struct after a;

	s->gone = 1;
	a = RECV_SAME(0, 1);
	cr_assert(a.rc == EPIPE && a.bad == 0 && a.next == 0);
	a = RECV_SAME(0, -1);
	cr_assert(a.rc == EINVAL && a.bad == 0);
	s->gone = 0;
	kind.recv_from = IBV_QPS_RTS;
	qp.ex.qp_base.state = IBV_QPS_RTR;
	cr_assert_eq(vb_post_recv(&qp.ex.qp_base, &wr, &bad), EINVAL);
	cr_assert_eq(bad, &wr);
	qp.ex.qp_base.state = IBV_QPS_RTS;
	qp.ex.qp_base.srq = (struct ibv_srq *)&srq;
	bad = NULL;
	cr_assert_eq(vb_post_recv(&qp.ex.qp_base, &wr, &bad), EINVAL);
	cr_assert_eq(bad, &wr);
	qp.ex.qp_base.srq = NULL;
	cl_rq_of(qp.saker)->ring.entries = NULL;
	cr_assert_eq(vb_post_recv(&qp.ex.qp_base, &wr, &bad), EINVAL);
	cr_assert_eq(bad, &wr);
}
