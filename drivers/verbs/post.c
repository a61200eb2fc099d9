/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting. A request is written straight into its entry of the queue. Several threads of a verbs
 * program may post to one queue; libsaker permits one thread at a time. Each queue therefore has a
 * spin lock, which is not taken where the program guarantees a single thread. A signal handler that
 * interrupted a post to the same queue gets EBUSY (path_priv.h).
 */
#include <arpa/inet.h>

#include "../../lib/client/path.h"
#include "ops_priv.h"
#include "path_priv.h"
#include "qp_priv.h"
#include "wc_priv.h"

#define NO_OP  0xff /* the operation is not supported */
#define MAX_WR IBV_WR_ATOMIC_WRITE

__thread uint32_t vb_path_depth;

static const uint8_t opcode_of[MAX_WR + 1] = {
	[IBV_WR_RDMA_WRITE] = RD_WRITE,
	[IBV_WR_RDMA_WRITE_WITH_IMM] = RD_WRITE_IMM,
	[IBV_WR_SEND] = RD_SEND,
	[IBV_WR_SEND_WITH_IMM] = RD_SEND_IMM,
	[IBV_WR_RDMA_READ] = RD_READ,
	[IBV_WR_ATOMIC_CMP_AND_SWP] = RD_CMP_SWAP,
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = RD_FETCH_ADD,
	[IBV_WR_LOCAL_INV] = RD_LOCAL_INV,
	[IBV_WR_BIND_MW] = RD_BIND_MW,
	[IBV_WR_SEND_WITH_INV] = RD_SEND_INV,
	[IBV_WR_TSO] = NO_OP,
	[IBV_WR_DRIVER1] = NO_OP,
	[12] = NO_OP,
	[13] = NO_OP,
	[14] = NO_OP,
	[IBV_WR_ATOMIC_WRITE] = NO_OP,
};

int
vb_send_check(const struct vb_qp *qp)
{
	enum ibv_qp_state state = __atomic_load_n(&qp->ex.qp_base.state, __ATOMIC_RELAXED);

	return state < IBV_QPS_RTS || qp->ex.qp_base.qp_type == IBV_QPT_XRC_RECV ? EINVAL : 0;
}

static inline const struct rd_sge *
sges_of(const struct ibv_send_wr *wr)
{
	return (const struct rd_sge *)wr->sg_list;
}

/* Write the operands and the tail of a request. They return the length of the tail, or -EINVAL. */

static int
verbs_atomic_write(struct shm_sqe *e, const struct ibv_send_wr *wr)
{
	const bool swap = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

	if (wr->num_sge != 1 || (wr->send_flags & IBV_SEND_INLINE) != 0)
		return -EINVAL;
	e->remote_addr = wr->wr.atomic.remote_addr;
	e->rkey = wr->wr.atomic.rkey;
	e->data = swap ? wr->wr.atomic.swap : wr->wr.atomic.compare_add;
	e->atomic.sink = *sges_of(wr);
	if (swap)
		e->atomic.compare = wr->wr.atomic.compare_add;
	else
		e->atomic.add_mask = 0;
	return offsetof(struct shm_sqe, atomic.data_mask) - SHM_SQE_BASE;
}

static int
verbs_bind_write(struct shm_sqe *e, const struct ibv_send_wr *wr)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;

	if (wr->bind_mw.mw->type != IBV_MW_TYPE_2)
		return -EINVAL;
	e->rkey = wr->bind_mw.rkey;
	e->imm = info->mr != NULL ? info->mr->lkey : 0;
	e->remote_addr = info->addr;
	e->bind.len = info->length;
	e->bind.access = info->mw_access_flags;
	return sizeof(e->bind);
}

static inline int
data_write(const struct cl_sq *sq, struct shm_sqe *e, const struct ibv_send_wr *wr)
{
	if ((unsigned)wr->num_sge > RD_MAX_SGE)
		return -EINVAL;
	if ((wr->send_flags & IBV_SEND_INLINE) != 0)
		return cl_sqe_inline(sq, e, sges_of(wr), (uint32_t)wr->num_sge);
	return cl_sqe_sges(sq, e, sges_of(wr), (uint32_t)wr->num_sge);
}

static int
datagram_write(const struct cl_sq *sq, struct shm_sqe *e, const struct ibv_send_wr *wr)
{
	if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM)
		return -EINVAL;
	e->ah = cl_ah_handle(((const struct vb_ah *)wr->wr.ud.ah)->saker);
	e->remote_qpn = wr->wr.ud.remote_qpn;
	e->remote_qkey = wr->wr.ud.remote_qkey;
	e->imm = wr->opcode == IBV_WR_SEND_WITH_IMM ? ntohl(wr->imm_data) : 0;
	return data_write(sq, e, wr);
}

static inline int
request_write(const struct cl_sq *sq, struct shm_sqe *e, const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		e->imm = ntohl(wr->imm_data);
		/* fall through */
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
		e->remote_addr = wr->wr.rdma.remote_addr;
		e->rkey = wr->wr.rdma.rkey;
		return data_write(sq, e, wr);
	case IBV_WR_SEND_WITH_IMM:
		e->imm = ntohl(wr->imm_data);
		return data_write(sq, e, wr);
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return verbs_atomic_write(e, wr);
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		e->imm = wr->invalidate_rkey;
		return data_write(sq, e, wr);
	case IBV_WR_BIND_MW:
		return verbs_bind_write(e, wr);
	default:
		return data_write(sq, e, wr);
	}
}

/* Posts one request, without the doorbell. Returns 0 or errno. */
static inline int
verbs_send_post(struct cl_sq *sq, const struct ibv_send_wr *wr)
{
	struct shm_sqe *e;
	int len;

	if ((unsigned)wr->opcode > MAX_WR || opcode_of[wr->opcode] == NO_OP)
		return EINVAL;
	e = cl_sq_entry(sq);
	if (e == NULL)
		return ENOMEM;
	e->wr_id = wr->wr_id;
	if (__builtin_expect(sq->type == SAKER_UD, 0)) {
		len = datagram_write(sq, e, wr);
	} else {
		if (__builtin_expect(sq->type == SAKER_XRC_SEND, 0))
			e->remote_srqn = wr->qp_type.xrc.remote_srqn;
		len = request_write(sq, e, wr);
	}
	if (len < 0)
		return -len;
	shm_sqe_push(&sq->ring, e, 1, opcode_of[wr->opcode], vb_send_flags(wr->send_flags),
		(uint32_t)len);
	return 0;
}

int
vb_post_send(struct ibv_qp *p, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct vb_qp *qp = vb_qp(p);
	struct cl_sq *sq = cl_sq_of(qp->saker);
	struct ibv_send_wr *next = wr;
	int rc = vb_send_check(qp);

	if (!qp->single && !vb_path_enter(&qp->sq_lock)) {
		*bad = wr;
		return EBUSY;
	}
	if (rc == 0 && !cl_sq_open(sq))
		rc = -cl_sq_refusal(sq);
	for (; rc == 0 && next != NULL; next = rc == 0 ? next->next : next)
		rc = verbs_send_post(sq, next);
	if (next != wr)
		cl_sq_ring(sq);
	if (!qp->single)
		vb_path_leave(&qp->sq_lock);
	if (rc != 0)
		*bad = next;
	return rc;
}

/* ---- Receives ---- */

/* Posts a list of receives up to the first error, and sets *next to the request that has it.
 * Returns 0 or errno. `refusal`: the queue's (cl_rq_refusal()). */
static inline int
receives_post(struct cl_rq *rq, int refusal, struct ibv_recv_wr **next)
{
	struct ibv_recv_wr *wr;
	int rc = 0;

	for (wr = *next; wr != NULL; wr = wr->next) {
		if (__builtin_expect((unsigned)wr->num_sge > RD_MAX_SGE, 0))
			rc = -EINVAL;
		else if (__builtin_expect(refusal < 0, 0))
			rc = refusal;
		else
			rc = cl_rq_post(rq, wr->wr_id, (const struct rd_sge *)wr->sg_list,
				(uint32_t)wr->num_sge);
		if (rc != 0)
			break;
	}
	*next = wr;
	return -rc;
}

int
vb_post_recv(struct ibv_qp *p, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct vb_qp *qp = vb_qp(p);
	struct ibv_recv_wr *next = wr;
	struct cl_rq *rq;
	int rc;

	if (p->srq != NULL || p->state < vb_kind_of(p->context)->recv_from) {
		*bad = wr;
		return EINVAL;
	}
	if (!qp->single && !vb_path_enter(&qp->rq_lock)) {
		*bad = wr;
		return EBUSY;
	}
	rq = cl_rq_of(qp->saker);
	rc = receives_post(rq, cl_rq_refusal(rq), &next);
	if (next != wr)
		cl_rq_ring(rq, qp->saker);
	if (!qp->single)
		vb_path_leave(&qp->rq_lock);
	if (rc != 0)
		*bad = next;
	return rc;
}

/* The queue has one lock, for this function and for libsaker's. */
int
vb_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct cl_rq *rq = cl_srq_of(vb_srq(srq)->saker);
	struct ibv_recv_wr *next = wr;
	int rc;

	if (!vb_path_enter(&rq->lock)) {
		*bad = wr;
		return EBUSY;
	}
	rc = receives_post(rq, cl_rq_refusal(rq), &next);
	vb_path_leave(&rq->lock);
	if (rc != 0)
		*bad = next;
	return rc;
}
