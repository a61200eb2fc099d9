/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting with ibv_wr_start(3): the program builds requests, one call at a time, between
 * ibv_wr_start() and ibv_wr_complete(), which posts all of them or none. The library stores them in
 * a buffer outside the queue, because the program may abort the posting. It holds the queue's lock
 * from start to end.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "path_priv.h"
#include "qp_priv.h"
#include "wc_priv.h"

#define BATCH 16
#define FIRST 8 /* requests for which the first allocation has space */

struct wr_one {
	struct saker_wr wr;
	uint32_t inline_len;
	union {
		struct rd_sge sge[RD_MAX_SGE];
		uint8_t inl[RD_MAX_INLINE];
	};
};

struct vb_wr_build {
	struct wr_one *one;
	uint32_t n, room; /* requests, and the number for which `one` has space */
	int err;          /* the first error since ibv_wr_start(), or 0 */
	/* Builds that ibv_wr_start() refused and that have not ended, and the error of the last. A
	 * signal handler gets EBUSY while the code that it interrupted builds requests; these stay
	 * as they are. A child of fork(2) gets EIO. */
	uint32_t refused;
	int refusal;
};

static struct vb_qp *
wr_of(struct ibv_qp_ex *ex)
{
	return (struct vb_qp *)ex;
}

static void
wrong(struct vb_wr_build *b, int err)
{
	if (b->err == 0 && b->refused == 0)
		b->err = err;
}

/* Returns the request that the program builds, or NULL after an error or before the first
 * request. */
static struct wr_one *
last(struct vb_wr_build *b)
{
	return b->refused == 0 && b->err == 0 && b->n > 0 ? &b->one[b->n - 1] : NULL;
}

/* Appends a request. Returns it, or NULL after an error. */
static struct saker_wr *
wr_begin(struct ibv_qp_ex *ex, uint8_t opcode)
{
	struct vb_wr_build *b = wr_of(ex)->build;
	struct wr_one *one;

	if (b->refused != 0)
		return NULL;
	if (b->n == b->room) {
		uint32_t room = b->room != 0 ? b->room * 2 : FIRST;

		one = realloc(b->one, room * sizeof(*one));
		if (one == NULL) {
			wrong(b, ENOMEM);
			return NULL;
		}
		b->one = one;
		b->room = room;
	}
	if (b->err != 0)
		return NULL;
	one = &b->one[b->n++];
	one->inline_len = 0;
	one->wr = (struct saker_wr){.wr_id = ex->wr_id, .opcode = opcode};
	one->wr.flags = ((ex->wr_flags & IBV_SEND_SIGNALED) ? RD_SIGNALED : 0) |
			((ex->wr_flags & IBV_SEND_SOLICITED) ? RD_SOLICITED : 0) |
			((ex->wr_flags & IBV_SEND_FENCE) ? RD_FENCE : 0);
	return &one->wr;
}

static void
begin_remote(
	struct ibv_qp_ex *ex, uint8_t opcode, uint32_t rkey, uint64_t remote_addr, uint64_t imm)
{
	struct saker_wr *wr = wr_begin(ex, opcode);

	if (wr == NULL)
		return;
	wr->rkey = rkey;
	wr->remote_addr = remote_addr;
	wr->imm = imm;
}

static void
wr_atomic_cmp_swp(
	struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t compare, uint64_t swap)
{
	struct saker_wr *wr = wr_begin(ex, RD_CMP_SWAP);

	if (wr == NULL)
		return;
	wr->rkey = rkey;
	wr->remote_addr = remote_addr;
	wr->compare = compare;
	wr->data = swap;
	wr->data_mask = wr->compare_mask = UINT64_MAX;
}

static void
wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t add)
{
	struct saker_wr *wr = wr_begin(ex, RD_FETCH_ADD);

	if (wr == NULL)
		return;
	wr->rkey = rkey;
	wr->remote_addr = remote_addr;
	wr->data = add;
}

static void
wr_bind_mw(
	struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	struct saker_wr *wr = wr_begin(ex, RD_BIND_MW);

	if (wr == NULL)
		return;
	if (mw->type != IBV_MW_TYPE_2) {
		wrong(wr_of(ex)->build, EINVAL);
		return;
	}
	wr->rkey = rkey;
	wr->imm = info->mr != NULL ? info->mr->lkey : 0;
	wr->remote_addr = info->addr;
	wr->data = info->length;
	wr->compare = info->mw_access_flags;
}

static void
wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	begin_remote(ex, RD_LOCAL_INV, 0, 0, invalidate_rkey);
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
	wr_begin(ex, RD_SEND);
}

static void
wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	begin_remote(ex, RD_SEND_IMM, 0, 0, ntohl(imm_data));
}

static void
wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	begin_remote(ex, RD_SEND_INV, 0, 0, invalidate_rkey);
}

/* ---- The operands and the data of a request ---- */

static void
wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct wr_one *one = last(wr_of(ex)->build);

	if (one == NULL)
		return;
	one->wr.ah = ((struct vb_ah *)ah)->saker;
	one->wr.remote_qpn = remote_qpn;
	one->wr.remote_qkey = remote_qkey;
}

static void
wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	struct wr_one *one = last(wr_of(ex)->build);

	if (one != NULL)
		one->wr.remote_srqn = remote_srqn;
}

static void
wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf, const struct ibv_data_buf *list)
{
	struct wr_one *one = last(wr_of(ex)->build);
	uint32_t at = 0;

	if (one == NULL)
		return;
	for (size_t i = 0; i < num_buf; i++) {
		if (list[i].length > wr_of(ex)->init.cap.max_inline_data - at) {
			wrong(wr_of(ex)->build, EINVAL);
			return;
		}
		memcpy(one->inl + at, list[i].addr, list[i].length);
		at += (uint32_t)list[i].length;
	}
	one->inline_len = at;
	one->wr.flags |= RD_INLINE;
}

static void
wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	const struct ibv_data_buf buf = {.addr = addr, .length = length};

	wr_set_inline_data_list(ex, 1, &buf);
}

static void
wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *list)
{
	struct wr_one *one = last(wr_of(ex)->build);

	if (one == NULL)
		return;
	if (num_sge > wr_of(ex)->init.cap.max_send_sge) {
		wrong(wr_of(ex)->build, EINVAL);
		return;
	}
	memcpy(one->sge, list, num_sge * sizeof(*list));
	one->wr.nsge = (uint8_t)num_sge;
}

static void
wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	const struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};

	wr_set_sge_list(ex, 1, &sge);
}

/* ---- From start to end ---- */

static void
wr_start(struct ibv_qp_ex *ex)
{
	struct vb_qp *qp = wr_of(ex);
	int refusal = vb_is_dead(ex->qp_base.context) ? EIO : 0;

	if (refusal == 0 && !qp->single && !vb_path_enter(&qp->sq_lock))
		refusal = EBUSY;
	if (refusal != 0) {
		qp->build->refused++;
		qp->build->refusal = refusal;
		return;
	}
	if (!qp->single)
		vb_path_keep();
	qp->build->n = 0;
	qp->build->err = 0;
}

static void
wr_abort(struct ibv_qp_ex *ex)
{
	struct vb_qp *qp = wr_of(ex);

	if (qp->build->refused != 0) {
		qp->build->refused--;
	} else if (!qp->single) {
		vb_path_again();
		vb_path_leave(&qp->sq_lock);
	}
}

/* Posts all requests. The caller has checked that the queue has space for them. Returns 0 or
 * errno. */
static int
wr_post_all(struct vb_qp *qp, struct vb_wr_build *b)
{
	struct saker_wr batch[BATCH];
	struct rd_sge inl[BATCH];

	for (uint32_t at = 0; at < b->n;) {
		int n, took;

		for (n = 0; n < BATCH && at + (uint32_t)n < b->n; n++) {
			struct wr_one *one = &b->one[at + (uint32_t)n];

			batch[n] = one->wr;
			batch[n].sge = one->sge;
			if ((one->wr.flags & RD_INLINE) == 0)
				continue;
			inl[n] = (struct rd_sge){(uintptr_t)one->inl, one->inline_len, 0};
			batch[n].sge = &inl[n];
			batch[n].nsge = 1;
		}
		took = saker_post_send(qp->saker, batch, n);
		if (took <= 0)
			return took < 0 ? -took : ENOMEM;
		at += (uint32_t)took;
	}
	return 0;
}

static int
wr_complete(struct ibv_qp_ex *ex)
{
	struct vb_qp *qp = wr_of(ex);
	struct vb_wr_build *b = qp->build;
	int rc = b->refused != 0 ? b->refusal : b->err;

	if (rc == 0)
		rc = vb_send_check(qp);
	if (rc == 0 && !saker_send_fits(qp->saker, b->n))
		rc = ENOMEM;
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
		free(qp->build->one);
	free(qp->build);
}
