/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_wr_start(3) to ibv_wr_complete(3): the same requests leave the same entries as with
 * ibv_post_send(), in the queue's own entries and in the buffer behind them; all of them are posted
 * or none; and an engine sees none before the end. The test reads the ring in place of an engine.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <string.h>

#include "../../../drivers/verbs/ops_priv.h"
#include "../../../drivers/verbs/qp_priv.h"
#include "../../../lib/base/mem.h"
#include "../../../lib/client/client_priv.h"
#include "../../mini/mini.h"

#define HOME   (4ul << 20)
#define DEPTH  4
#define STRIDE 128
#define INLINE 30

static struct mini mini;
static struct saker *s;
static struct vb_context context;
static struct vb_qp qp;
static struct cl_sq *sq;
static const struct ibv_sge sges[4] = {{1, 10, 100}, {2, 20, 200}, {3, 30, 300}, {4, 40, 400}};

/* ---- What the tested file needs of others ---- */

int
vb_fail(int err, const char *fmt, ...)
{
	return err;
}

static void
start(void)
{
	struct saker_qp_attr attr = {
		.sq_depth = DEPTH, .rq_depth = DEPTH, .max_send_sge = 3, .max_inline = INLINE};
	struct saker_cq *cq;
	struct saker_pd *pd;

	cr_assert(mini_init(&mini, HOME));
	cr_assert_eq(saker_open_flat(mini.home, mini.size, mini_idle, &mini, &s), 0);
	cr_assert_eq(saker_cq_create(s, DEPTH, NULL, &cq), 0);
	cr_assert_eq(saker_pd_create(s, &pd), 0);
	attr.send_cq = attr.recv_cq = cq;
	cr_assert_eq(saker_qp_create(pd, &attr, &qp.saker), 0, "%s", saker_error());
	sq = cl_sq_of(qp.saker);
	cr_assert(sq->ring.count == DEPTH && sq->ring.stride == STRIDE);
	qp.ex.qp_base.context = &context.vctx.context;
	qp.ex.qp_base.state = IBV_QPS_RTS;
	cr_assert_eq(vb_wr_init(&qp, 0), 0);
}

static void
end(void)
{
	vb_wr_fini(&qp);
	saker_close(s);
	mini_free(&mini);
}

TestSuite(verbs_wr, .init = start, .fini = end);

/* ---- The same request both ways ---- */

enum data { NONE, ONE_SGE, LIST, ZERO_SGES, INLINED, INLINED_LIST, DATA_KINDS };

/* The effects of posting. */
struct left {
	int rc;
	uint32_t next, pending;
	uint8_t entries[DEPTH * STRIDE];
};

static char bytes[INLINE] = "0123456789abcdefghijklmnopqrs";
static struct saker_ah handle = {.obj.handle = 5};
static struct vb_ah ah = {.saker = &handle};
static struct ibv_mw window = {.type = IBV_MW_TYPE_2};
static struct ibv_mr region = {.lkey = 0x3333};
static const struct ibv_mw_bind_info info = {&region, 0x4444, 1ull << 33, 6};

/* Posted requests: the engine has taken `next` of them, and the ring has the contents of old laps,
 * or of another queue if `fresh`. */
static void
queue_start(uint32_t next, uint32_t taken, bool fresh)
{
	struct shm_prod *p = &sq->ring;

	memset(p->entries, 0, sizeof(((struct left *)NULL)->entries));
	if (fresh)
		for (uint32_t i = 1; i < DEPTH; i++)
			*(uint32_t *)(void *)(p->entries + (size_t)i * STRIDE) =
				shm_turn(next + i, p->log2_count);
	p->next = next;
	p->taken = taken;
	p->fresh = fresh;
	__atomic_store_n((uint32_t *)(uintptr_t)&p->cons->taken, taken, __ATOMIC_RELAXED);
	mini.qp[0].shared->pending = 0;
}

static void
leave(struct left *out, int rc)
{
	*out = (struct left){
		.rc = rc, .next = sq->ring.next, .pending = mini.qp[0].shared->pending};
	memcpy(out->entries, sq->ring.entries, sizeof(out->entries));
}

static void
build_operation(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
	switch ((int)opcode) {
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(ex, 0x2222, 0x1111);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(ex, 0x2222, 0x1111, htonl(44));
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(ex, 0x2222, 0x1111);
		break;
	case IBV_WR_SEND:
		ibv_wr_send(ex);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(ex, htonl(44));
		break;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(ex, 46);
		break;
	case IBV_WR_LOCAL_INV:
		ibv_wr_local_inv(ex, 46);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(ex, 0x2222, 0x1111, 7, 8);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(ex, 0x2222, 0x1111, 7);
		break;
	case IBV_WR_BIND_MW:
		ibv_wr_bind_mw(ex, &window, 9, &info);
		break;
	}
}

static void
build_data(struct ibv_qp_ex *ex, enum data data)
{
	const struct ibv_data_buf two[] = {{bytes, 10}, {bytes + 10, INLINE - 10}};

	switch (data) {
	case ONE_SGE:
		ibv_wr_set_sge(ex, sges[0].lkey, sges[0].addr, sges[0].length);
		break;
	case LIST:
		ibv_wr_set_sge_list(ex, 3, sges);
		break;
	case ZERO_SGES:
		ibv_wr_set_sge_list(ex, 0, sges);
		break;
	case INLINED:
		ibv_wr_set_inline_data(ex, bytes, INLINE);
		break;
	case INLINED_LIST:
		ibv_wr_set_inline_data_list(ex, 2, two);
		break;
	default:
		break;
	}
}

static void
build(enum ibv_wr_opcode opcode, enum data data, unsigned flags, unsigned i)
{
	struct ibv_qp_ex *ex = &qp.ex;

	ex->wr_id = 100 + i;
	ex->wr_flags = flags;
	build_operation(ex, opcode);
	if (sq->type == SAKER_UD)
		ibv_wr_set_ud_addr(ex, &ah.ah, 6, 7);
	if (sq->type == SAKER_XRC_SEND)
		ibv_wr_set_xrc_srqn(ex, 8);
	build_data(ex, data);
}

/* Builds and posts `n` equal requests. Returns the result. */
static int
extended(enum ibv_wr_opcode opcode, enum data data, unsigned flags, unsigned n)
{
	ibv_wr_start(&qp.ex);
	for (unsigned i = 0; i < n; i++)
		build(opcode, data, flags, i);
	return ibv_wr_complete(&qp.ex);
}

static struct ibv_send_wr
classic_request(enum ibv_wr_opcode opcode, enum data data, unsigned flags, struct ibv_sge *room)
{
	struct ibv_send_wr wr = {.opcode = opcode, .send_flags = flags, .sg_list = room};

	memcpy(room, sges, sizeof(sges));
	wr.num_sge = data == ONE_SGE ? 1 : data == LIST ? 3 : 0;
	if (data == INLINED || data == INLINED_LIST) {
		room[0] = (struct ibv_sge){.addr = (uintptr_t)bytes, .length = INLINE};
		wr.num_sge = 1;
		wr.send_flags |= IBV_SEND_INLINE;
	}
	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = 0x1111;
		wr.wr.atomic.rkey = 0x2222;
		wr.wr.atomic.compare_add = 7;
		wr.wr.atomic.swap = 8;
	} else if (sq->type == SAKER_UD) {
		wr.wr.ud.ah = &ah.ah;
		wr.wr.ud.remote_qpn = 6;
		wr.wr.ud.remote_qkey = 7;
	} else {
		wr.wr.rdma.remote_addr = 0x1111;
		wr.wr.rdma.rkey = 0x2222;
	}
	wr.qp_type.xrc.remote_srqn = 8;
	if (opcode == IBV_WR_BIND_MW) {
		wr.bind_mw.mw = &window;
		wr.bind_mw.rkey = 9;
		wr.bind_mw.bind_info = info;
	} else if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM || opcode == IBV_WR_SEND_WITH_IMM) {
		wr.imm_data = htonl(44);
	} else {
		wr.invalidate_rkey = 46;
	}
	return wr;
}

static int
classic(enum ibv_wr_opcode opcode, enum data data, unsigned flags, unsigned n)
{
	struct ibv_send_wr wr[DEPTH], *bad;
	struct ibv_sge room[4];

	for (unsigned i = 0; i < n; i++) {
		wr[i] = classic_request(opcode, data, flags, room);
		wr[i].wr_id = 100 + i;
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
	}
	return vb_post_send(&qp.ex.qp_base, wr, &bad);
}

static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_RDMA_READ, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_INV, IBV_WR_LOCAL_INV,
	IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_BIND_MW};

/* ibv_post_send() refuses what a datagram cannot be, and the engine what ibv_wr_*() let through. */
static bool
exists(enum ibv_wr_opcode opcode)
{
	return sq->type != SAKER_UD || opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;
}

static void
compare(uint32_t next, bool fresh, unsigned n)
{
	for (unsigned k = 0; k < SK_ARRAY_LEN(opcodes); k++)
		for (enum data d = NONE; exists(opcodes[k]) && d < DATA_KINDS; d++) {
			unsigned flags = (k * 6 + d) & 7;
			struct left a, b;

			queue_start(next, next, fresh);
			leave(&a, classic(opcodes[k], d, flags, n));
			queue_start(next, next, fresh);
			leave(&b, extended(opcodes[k], d, flags, n));
			if (opcodes[k] == IBV_WR_BIND_MW && d >= INLINED)
				continue; /* the flag means nothing in a request without data */
			cr_assert_eq(
				a.rc, b.rc, "%d, data %d: %d, not %d", opcodes[k], d, b.rc, a.rc);
			cr_assert_eq(a.next, b.next);
			cr_assert_eq(a.pending, b.pending);
			if (a.rc == 0)
				cr_assert_arr_eq(a.entries, b.entries, sizeof(a.entries),
					"%d, data %d", opcodes[k], d);
		}
}

Test(verbs_wr, requests_are_those_of_ibv_post_send)
{
	const uint32_t laps[] = {0, 3, DEPTH, UINT32_MAX - 1};

	for (unsigned i = 0; i < SK_ARRAY_LEN(laps); i++)
		for (unsigned n = 1; n <= DEPTH; n++)
			compare(laps[i], false, n);
	/* A new queue in the memory of an older one, whose turn numbers are still there. */
	for (unsigned n = 1; n <= DEPTH; n++)
		compare(0, true, n);
}

Test(verbs_wr, datagrams_and_XRC_name_their_receiver)
{
	for (unsigned n = 1; n <= DEPTH; n++) {
		sq->type = SAKER_UD;
		compare(0, false, n);
		sq->type = SAKER_XRC_SEND;
		compare(0, false, n);
	}
}

/* The engine frees entries while the program builds. */
Test(verbs_wr, requests_without_a_free_entry_are_posted_at_the_end)
{
	for (unsigned k = 0; k < SK_ARRAY_LEN(opcodes); k++)
		for (unsigned used = 0; used <= DEPTH; used++) {
			const enum data d = k % 2 == 0 ? ONE_SGE : LIST;
			const enum data fit = k >= 7 ? ONE_SGE : d;
			struct left a, b;

			queue_start(DEPTH, DEPTH, false);
			leave(&a, classic(opcodes[k], fit, 0, DEPTH));
			queue_start(DEPTH, DEPTH - used, false);
			ibv_wr_start(&qp.ex);
			for (unsigned i = 0; i < DEPTH; i++)
				build(opcodes[k], fit, 0, i);
			__atomic_store_n((uint32_t *)(uintptr_t)&sq->ring.cons->taken, DEPTH,
				__ATOMIC_RELAXED);
			leave(&b, ibv_wr_complete(&qp.ex));
			cr_assert_eq(b.rc, 0);
			cr_assert_eq(a.next, b.next);
			cr_assert_arr_eq(a.entries, b.entries, sizeof(a.entries), "%d, %u used",
				opcodes[k], used);
		}
}

/* Returns whether the engine would find a request. */
static bool
visible(void)
{
	struct shm_take t = {.entries = sq->ring.entries,
		.next = sq->ring.next,
		.count = DEPTH,
		.stride = STRIDE,
		.log2_count = sq->ring.log2_count};

	return shm_take_peek(&t) != NULL;
}

Test(verbs_wr, the_engine_sees_nothing_before_the_end)
{
	for (int fresh = 0; fresh < 2; fresh++) {
		queue_start(0, 0, fresh);
		ibv_wr_start(&qp.ex);
		for (unsigned i = 0; i < DEPTH; i++) {
			build(IBV_WR_RDMA_WRITE, ONE_SGE, 0, i);
			cr_assert_not(visible());
		}
		ibv_wr_abort(&qp.ex);
		cr_assert_not(visible());
		cr_assert(sq->ring.next == 0 && mini.qp[0].shared->pending == 0);
		cr_assert_eq(extended(IBV_WR_SEND, NONE, 0, 0), 0, "no request");
		cr_assert(sq->ring.next == 0 && mini.qp[0].shared->pending == 0);
		cr_assert_eq(extended(IBV_WR_SEND, ONE_SGE, 0, 2), 0);
		cr_assert(sq->ring.next == 2 && mini.qp[0].shared->pending == 1);
		cr_assert_not(visible(), "the aborted request behind them");
	}
}

/* Builds two good requests, then a wrong one by `step`, then a good one. */
static void
refuse(void (*step)(struct ibv_qp_ex *ex), int want)
{
	queue_start(0, 0, true);
	ibv_wr_start(&qp.ex);
	build(IBV_WR_SEND, ONE_SGE, 0, 0);
	build(IBV_WR_SEND, ONE_SGE, 0, 1);
	step(&qp.ex);
	build(IBV_WR_SEND, ONE_SGE, 0, 2);
	cr_assert_eq(ibv_wr_complete(&qp.ex), want);
	cr_assert_eq(sq->ring.next, 0, "all or none");
	cr_assert_eq(mini.qp[0].shared->pending, 0);
	cr_assert_not(visible());
	cr_assert_eq(qp.sq_lock, 0);
}

static void
too_many_elements(struct ibv_qp_ex *ex)
{
	ibv_wr_set_sge_list(ex, 4, sges);
}

static void
elements_beyond_any_number(struct ibv_qp_ex *ex)
{
	ibv_wr_set_sge_list(ex, SIZE_MAX, sges);
}

static void
too_long(struct ibv_qp_ex *ex)
{
	char more[INLINE + 1] = {0};

	ibv_wr_set_inline_data(ex, more, sizeof(more));
}

static void
sum_that_would_wrap(struct ibv_qp_ex *ex)
{
	const struct ibv_data_buf two[] = {{bytes, 10}, {bytes, SIZE_MAX - 5}};

	ibv_wr_set_inline_data_list(ex, 2, two);
}

static void
atomic_without_element(struct ibv_qp_ex *ex)
{
	ibv_wr_atomic_fetch_add(ex, 1, 2, 3);
}

static void
atomic_with_two(struct ibv_qp_ex *ex)
{
	ibv_wr_atomic_fetch_add(ex, 1, 2, 3);
	ibv_wr_set_sge_list(ex, 2, sges);
}

static void
atomic_inline(struct ibv_qp_ex *ex)
{
	ibv_wr_atomic_cmp_swp(ex, 1, 2, 3, 4);
	ibv_wr_set_inline_data(ex, bytes, 8);
}

static void
window_of_type_1(struct ibv_qp_ex *ex)
{
	struct ibv_mw mw = {.type = IBV_MW_TYPE_1};

	ibv_wr_bind_mw(ex, &mw, 1, &info);
}

static void
one_too_many(struct ibv_qp_ex *ex)
{
	for (unsigned i = 0; i < DEPTH; i++)
		build(IBV_WR_SEND, ONE_SGE, 0, i);
}

static void
posts_between(struct ibv_qp_ex *ex)
{
	sq->ring.next++;
}

Test(verbs_wr, a_wrong_request_refuses_all)
{
	refuse(too_many_elements, EINVAL);
	refuse(elements_beyond_any_number, EINVAL);
	refuse(too_long, EINVAL);
	refuse(sum_that_would_wrap, EINVAL);
	refuse(atomic_without_element, EINVAL);
	refuse(atomic_with_two, EINVAL);
	refuse(atomic_inline, EINVAL);
	refuse(window_of_type_1, EINVAL);
	refuse(one_too_many, ENOMEM);
	qp.ex.qp_base.state = IBV_QPS_INIT;
	cr_assert_eq(extended(IBV_WR_SEND, ONE_SGE, 0, 1), EINVAL);
	qp.ex.qp_base.state = IBV_QPS_RTS;
	s->gone = 1;
	cr_assert_eq(extended(IBV_WR_SEND, ONE_SGE, 0, 1), EPIPE);
	s->gone = 0;
	queue_start(0, 0, false);
	ibv_wr_start(&qp.ex);
	build(IBV_WR_SEND, ONE_SGE, 0, 0);
	posts_between(&qp.ex);
	cr_assert_eq(ibv_wr_complete(&qp.ex), EBUSY, "something else was posted between");
	cr_assert_eq(sq->ring.next, 1);
}

/* The last call that sets data applies. */
Test(verbs_wr, data_may_be_set_again)
{
	struct left a, b;

	queue_start(0, 0, false);
	leave(&a, classic(IBV_WR_SEND, ONE_SGE, 0, 1));
	queue_start(0, 0, false);
	ibv_wr_start(&qp.ex);
	build(IBV_WR_SEND, INLINED, 0, 0);
	build_data(&qp.ex, ONE_SGE);
	leave(&b, ibv_wr_complete(&qp.ex));
	cr_assert_eq(b.rc, 0);
	cr_assert_eq(memcmp(a.entries, b.entries, SHM_SQE_BASE + 16), 0);
	queue_start(0, 0, false);
	ibv_wr_start(&qp.ex);
	build(IBV_WR_ATOMIC_FETCH_AND_ADD, ONE_SGE, 0, 0);
	build_data(&qp.ex, ONE_SGE);
	cr_assert_eq(ibv_wr_complete(&qp.ex), 0);
	ibv_wr_start(&qp.ex);
	build(IBV_WR_ATOMIC_FETCH_AND_ADD, ONE_SGE, 0, 0);
	build_data(&qp.ex, ONE_SGE);
	build(IBV_WR_ATOMIC_FETCH_AND_ADD, NONE, 0, 1);
	cr_assert_eq(ibv_wr_complete(&qp.ex), EINVAL, "the second one has none");
}
