/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting with ibv_wr_start(3): the program builds requests, one call at a time, between
 * ibv_wr_start() and ibv_wr_complete(), which posts all of them or none. A request is written into
 * its entry of the send queue at once, and ibv_wr_complete() makes it valid by the turn number of
 * the entry, so that an aborted posting leaves nothing behind. Requests that find no free entry go
 * to a buffer outside the queue, because the engine may take others until ibv_wr_complete(). The
 * library holds the queue's lock from start to end.
 *
 * ibv_wr_start() refuses a build where it cannot get that lock: in a signal handler (path_priv.h).
 * The calls of a refused build must leave the queue as it is, also while another thread builds
 * requests there, which may end at any time. So the thread counts its refused builds, and only
 * while there are some, each call finds out whether its build is one of them.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/client/path.h"
#include "path_priv.h"
#include "qp_priv.h"
#include "wc_priv.h"

#define FIRST      8 /* requests for which the first allocation has space */
#define ATOMIC_LEN (offsetof(struct shm_sqe, atomic.data_mask) - SHM_SQE_BASE)

struct vb_wr_build {
	/* The request that the program builds, in the queue or in rest[]. NULL: none, or an error
	 * has occurred. */
	struct shm_sqe *entry;
	uint32_t direct;   /* requests in entries of the queue, behind those that are posted */
	uint32_t from;     /* the index of the first of them */
	uint32_t sinkless; /* Atomics that have no element yet */
	int err;           /* the first error since ibv_wr_start(), or 0 */
	uint32_t n, room;  /* requests in rest[], and the number for which it has space */
	struct shm_sqe *rest;
	/* Builds that were refused to the thread that holds the queue's lock and that have not
	 * ended. Only that thread reads and changes it. */
	uint32_t refused;
};

/* The builds, of any queue, that were refused to the thread and that have not ended. */
static __thread uint32_t refused_builds __attribute__((tls_model("initial-exec")));

static struct vb_qp *
wr_of(struct ibv_qp_ex *ex)
{
	return (struct vb_qp *)ex;
}

/* Returns whether the thread has the queue's lock. */
static bool
is_mine(const struct vb_qp *qp)
{
	return __atomic_load_n(&qp->sq_lock, __ATOMIC_RELAXED) == sk_self();
}

/* Returns the error with which the thread's last build of this queue that has not ended was
 * refused, or 0. A thread without the lock has no build that was not refused; in a thread that has
 * the lock, handlers may have interrupted such a build. A child of fork(2) has none. */
static __attribute__((noinline)) int
refusal_find(const struct vb_qp *qp)
{
	if (vb_is_dead(qp->ex.qp_base.context))
		return EIO;
	if (qp->single)
		return 0;
	return is_mine(qp) && qp->build->refused == 0 ? 0 : EBUSY;
}

static inline int
refusal(const struct vb_qp *qp)
{
	return __builtin_expect(refused_builds == 0, 1) ? 0 : refusal_find(qp);
}

/* Notes the first error of a build that was not refused. */
static void
wrong(struct vb_wr_build *b, int err)
{
	if (b->err == 0) {
		b->err = err;
		b->entry = NULL;
	}
}

/* Returns the request that the program builds, or NULL after an error, after a refusal or before
 * the first request. */
static inline struct shm_sqe *
last(const struct vb_qp *qp)
{
	return refusal(qp) == 0 ? qp->build->entry : NULL;
}

/* Returns space for a request behind the queue's free entries, or NULL without memory. */
static __attribute__((noinline)) struct shm_sqe *
rest_entry(struct vb_wr_build *b)
{
	if (b->n == b->room) {
		uint32_t room = b->room != 0 ? b->room * 2 : FIRST;
		struct shm_sqe *rest = realloc(b->rest, room * sizeof(*rest));

		if (rest == NULL) {
			wrong(b, ENOMEM);
			return NULL;
		}
		b->rest = rest;
		b->room = room;
	}
	/* An operation writes the fields that it has, and wr_rest_post() copies all of them. */
	memset(&b->rest[b->n], 0, SHM_SQE_BASE);
	return &b->rest[b->n++];
}

/* Writes "no receiver", for QPs whose connection does not define it. */
static __attribute__((noinline)) void
address_clear(const struct cl_sq *sq, struct shm_sqe *e)
{
	e->remote_srqn = 0;
	if (sq->type != SAKER_UD)
		return;
	e->ah = SHM_NONE;
	e->remote_qpn = e->remote_qkey = 0;
}

/* Begins a request. Returns its entry, or NULL after an error. */
static inline struct shm_sqe *
wr_begin(struct ibv_qp_ex *ex, uint8_t opcode)
{
	struct vb_wr_build *b = wr_of(ex)->build;
	struct cl_sq *sq = cl_sq_of(wr_of(ex)->saker);
	struct shm_sqe *e;

	if (__builtin_expect(refusal(wr_of(ex)) != 0 || b->err != 0, 0))
		return NULL;
	if (__builtin_expect(
		    b->n == 0 && cl_sq_open(sq) && shm_prod_fits(&sq->ring, b->direct + 1), 1)) {
		e = shm_prod_ahead(&sq->ring, b->direct++);
	} else {
		e = rest_entry(b);
		if (e == NULL)
			return NULL;
	}
	/* The turn number beside these fields is that of an earlier lap. */
	e->opcode = opcode;
	e->flags = vb_send_flags(ex->wr_flags & ~(unsigned)IBV_SEND_INLINE);
	e->len = 0;
	e->wr_id = ex->wr_id;
	if (__builtin_expect(sq->type != SAKER_RC, 0))
		address_clear(sq, e);
	b->entry = e;
	return e;
}

static inline void
begin_remote(
	struct ibv_qp_ex *ex, uint8_t opcode, uint32_t rkey, uint64_t remote_addr, uint64_t imm)
{
	struct shm_sqe *e = wr_begin(ex, opcode);

	if (e == NULL)
		return;
	e->rkey = rkey;
	e->remote_addr = remote_addr;
	e->imm = imm;
}

static void
begin_imm(struct ibv_qp_ex *ex, uint8_t opcode, uint64_t imm)
{
	struct shm_sqe *e = wr_begin(ex, opcode);

	if (e != NULL)
		e->imm = imm;
}

static void
begin_atomic(struct ibv_qp_ex *ex, uint8_t opcode, uint32_t rkey, uint64_t remote_addr,
	uint64_t data, uint64_t compare)
{
	struct shm_sqe *e = wr_begin(ex, opcode);

	if (e == NULL)
		return;
	e->rkey = rkey;
	e->remote_addr = remote_addr;
	e->data = data;
	e->atomic.compare = compare;
	wr_of(ex)->build->sinkless++;
}

static void
wr_atomic_cmp_swp(
	struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t compare, uint64_t swap)
{
	begin_atomic(ex, RD_CMP_SWAP, rkey, remote_addr, swap, compare);
}

static void
wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t add)
{
	begin_atomic(ex, RD_FETCH_ADD, rkey, remote_addr, add, 0);
}

static void
wr_bind_mw(
	struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	struct shm_sqe *e = wr_begin(ex, RD_BIND_MW);

	if (e == NULL)
		return;
	if (mw->type != IBV_MW_TYPE_2) {
		wrong(wr_of(ex)->build, EINVAL);
		return;
	}
	e->rkey = rkey;
	e->imm = info->mr != NULL ? info->mr->lkey : 0;
	e->remote_addr = info->addr;
	e->bind.len = info->length;
	e->bind.access = info->mw_access_flags;
	e->len = sizeof(e->bind);
}

static void
wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	begin_imm(ex, RD_LOCAL_INV, invalidate_rkey);
}

static void
wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin_remote(ex, RD_READ, rkey, remote_addr, 0);
}

static void
wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin_remote(ex, RD_WRITE, rkey, remote_addr, 0);
}

static void
wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, __be32 imm_data)
{
	begin_remote(ex, RD_WRITE_IMM, rkey, remote_addr, ntohl(imm_data));
}

static void
wr_send(struct ibv_qp_ex *ex)
{
	begin_imm(ex, RD_SEND, 0);
}

static void
wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	begin_imm(ex, RD_SEND_IMM, ntohl(imm_data));
}

static void
wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	begin_imm(ex, RD_SEND_INV, invalidate_rkey);
}

/* ---- The operands and the data of a request ---- */

static void
wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct shm_sqe *e = last(wr_of(ex));

	/* The fields are other ones in the entry of a QP of another type. */
	if (e == NULL || cl_sq_of(wr_of(ex)->saker)->type != SAKER_UD)
		return;
	e->ah = cl_ah_handle(((struct vb_ah *)ah)->saker);
	e->remote_qpn = remote_qpn;
	e->remote_qkey = remote_qkey;
}

static void
wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	struct shm_sqe *e = last(wr_of(ex));

	if (e != NULL)
		e->remote_srqn = remote_srqn;
}

/* Returns whether the data of a request is its tail. A bound window has no data, and the data of an
 * Atomic is a part of the tail. */
static inline bool
has_plain_data(const struct shm_sqe *e)
{
	return __builtin_expect(e->opcode <= RD_READ_INV || e->opcode == RD_LOCAL_INV, 1);
}

static void
wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf, const struct ibv_data_buf *list)
{
	struct vb_wr_build *b = wr_of(ex)->build;
	const size_t most = cl_sq_of(wr_of(ex)->saker)->max_inline;
	struct shm_sqe *e = last(wr_of(ex));
	size_t at = 0;

	if (e == NULL || e->opcode == RD_BIND_MW)
		return;
	if (!has_plain_data(e)) {
		wrong(b, EINVAL);
		return;
	}
	for (size_t i = 0; i < num_buf; i++) {
		if (list[i].length > most - at) {
			wrong(b, EINVAL);
			return;
		}
		memcpy(e->inl + at, list[i].addr, list[i].length);
		at += list[i].length;
	}
	e->len = (uint16_t)at;
	e->flags |= RD_INLINE;
}

static void
wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	const struct ibv_data_buf buf = {.addr = addr, .length = length};

	wr_set_inline_data_list(ex, 1, &buf);
}

/* Sets the element of an Atomic; there is exactly one. */
static __attribute__((noinline)) void
sink_set(struct vb_wr_build *b, struct shm_sqe *e, size_t num_sge, const struct rd_sge *list)
{
	if (e->opcode == RD_BIND_MW)
		return;
	if (num_sge != 1) {
		wrong(b, EINVAL);
		return;
	}
	b->sinkless -= e->len == 0;
	e->atomic.sink = list[0];
	e->len = ATOMIC_LEN;
}

static inline void
sges_set(struct ibv_qp_ex *ex, size_t num_sge, const struct rd_sge *list)
{
	struct vb_wr_build *b = wr_of(ex)->build;
	struct shm_sqe *e = last(wr_of(ex));

	if (e == NULL)
		return;
	if (num_sge > cl_sq_of(wr_of(ex)->saker)->max_send_sge) {
		wrong(b, EINVAL);
	} else if (!has_plain_data(e)) {
		sink_set(b, e, num_sge, list);
	} else {
		for (size_t i = 0; i < num_sge; i++)
			e->sge[i] = list[i];
		e->len = (uint16_t)(num_sge * sizeof(*list));
		e->flags &= (uint8_t)~RD_INLINE;
	}
}

static void
wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *list)
{
	sges_set(ex, num_sge, (const struct rd_sge *)list);
}

static void
wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	const struct rd_sge sge = {.addr = addr, .len = length, .lkey = lkey};

	sges_set(ex, 1, &sge);
}

/* ---- From start to end ---- */

static void
wr_start(struct ibv_qp_ex *ex)
{
	struct vb_qp *qp = wr_of(ex);
	struct vb_wr_build *b = qp->build;

	if (vb_is_dead(ex->qp_base.context) || (!qp->single && !vb_path_enter(&qp->sq_lock))) {
		refused_builds++;
		b->refused += is_mine(qp);
		return;
	}
	if (!qp->single)
		vb_path_keep();
	b->entry = NULL;
	b->direct = b->n = b->sinkless = 0;
	b->from = cl_sq_of(qp->saker)->ring.next;
	b->err = 0;
}

static void
wr_abort(struct ibv_qp_ex *ex)
{
	struct vb_qp *qp = wr_of(ex);

	if (refusal(qp) != 0) {
		refused_builds--;
		qp->build->refused -= is_mine(qp);
	} else if (!qp->single) {
		vb_path_again();
		vb_path_leave(&qp->sq_lock);
	}
}

/* Posts the requests of rest[], for which the queue has space by now. */
static __attribute__((noinline)) void
wr_rest_post(struct cl_sq *sq, const struct vb_wr_build *b)
{
	for (uint32_t i = 0; i < b->n; i++) {
		const struct shm_sqe *from = &b->rest[i];
		struct shm_sqe *e = shm_prod_entry(&sq->ring);
		const size_t head = sizeof(e->head);

		memcpy((uint8_t *)e + head, (const uint8_t *)from + head,
			SHM_SQE_BASE - head + from->len);
		shm_sqe_push(&sq->ring, e, 1, from->opcode, from->flags, from->len);
	}
}

/* Posts all requests, or none. Returns 0 or errno. */
static inline int
wr_post_all(struct vb_qp *qp, const struct vb_wr_build *b)
{
	struct cl_sq *sq = cl_sq_of(qp->saker);

	if (b->direct + b->n == 0)
		return 0;
	if (!cl_sq_open(sq))
		return -cl_sq_refusal(sq);
	/* A program without a lock has posted something else meanwhile, over these requests. */
	if (__builtin_expect(sq->ring.next != b->from, 0))
		return EBUSY;
	if (__builtin_expect(b->n != 0 && !shm_prod_fits(&sq->ring, b->direct + b->n), 0))
		return ENOMEM;
	if (b->sinkless != 0)
		return EINVAL;
	for (uint32_t i = 0; i < b->direct; i++) {
		struct shm_sqe *e = shm_prod_entry(&sq->ring);

		shm_sqe_push(&sq->ring, e, 1, e->opcode, e->flags, e->len);
	}
	if (__builtin_expect(b->n != 0, 0))
		wr_rest_post(sq, b);
	cl_sq_ring(sq);
	return 0;
}

static int
wr_complete(struct ibv_qp_ex *ex)
{
	struct vb_qp *qp = wr_of(ex);
	struct vb_wr_build *b = qp->build;
	int rc = refusal(qp);

	if (rc == 0)
		rc = b->err;
	if (rc == 0)
		rc = vb_send_check(qp);
	if (rc == 0)
		rc = wr_post_all(qp, b);
	wr_abort(ex);
	return rc;
}

/* Returns the operations of a type of QP: a mask of enum ibv_qp_create_send_ops_flags. */
static uint64_t
ops_of(enum ibv_qp_type type)
{
	const uint64_t sends = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

	if (type == IBV_QPT_UD)
		return sends;
	if (type == IBV_QPT_XRC_RECV)
		return 0;
	return sends | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
	       IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
	       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV |
	       IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV;
}

int
vb_wr_init(struct vb_qp *qp, uint64_t ops)
{
	struct ibv_qp_ex *ex = &qp->ex;

	if ((ops & ~ops_of(ex->qp_base.qp_type)) != 0)
		return vb_fail(EOPNOTSUPP, "a queue pair of type %d has no operations %#llx",
			ex->qp_base.qp_type,
			(unsigned long long)(ops & ~ops_of(ex->qp_base.qp_type)));
	qp->build = calloc(1, sizeof(*qp->build));
	if (qp->build == NULL)
		return ENOMEM;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	return 0;
}

void
vb_wr_fini(struct vb_qp *qp)
{
	if (qp->build != NULL)
		free(qp->build->rest);
	free(qp->build);
}
