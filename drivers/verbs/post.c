/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting. The functions convert work requests of verbs into those of libsaker, a batch at a time
 * on the stack. Several threads of a verbs program may post to one queue; libsaker permits one
 * thread at a time. Each queue therefore has a spin lock, which is not taken where the program
 * guarantees a single thread. A signal handler that interrupted a post to the same queue gets EBUSY
 * (path_priv.h).
 */
#include <arpa/inet.h>

#include "ops_priv.h"
#include "path_priv.h"
#include "qp_priv.h"
#include "wc_priv.h"

#define BATCH  16
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

static inline uint8_t
flags_of(unsigned int verbs)
{
	return ((verbs & IBV_SEND_SIGNALED) ? RD_SIGNALED : 0) |
	       ((verbs & IBV_SEND_SOLICITED) ? RD_SOLICITED : 0) |
	       ((verbs & IBV_SEND_FENCE) ? RD_FENCE : 0) |
	       ((verbs & IBV_SEND_INLINE) ? RD_INLINE : 0);
}

/* Converts the operands of an operation other than its scatter/gather list. Returns 0 or EINVAL. */
static int
verbs_post_operands(struct saker_wr *to, const struct ibv_send_wr *from)
{
	switch (from->opcode) {
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		to->imm = ntohl(from->imm_data);
		/* fall through */
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
		to->remote_addr = from->wr.rdma.remote_addr;
		to->rkey = from->wr.rdma.rkey;
		return 0;
	case IBV_WR_SEND_WITH_IMM:
		to->imm = ntohl(from->imm_data);
		return 0;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		to->remote_addr = from->wr.atomic.remote_addr;
		to->rkey = from->wr.atomic.rkey;
		to->compare = from->wr.atomic.compare_add;
		to->data = from->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? from->wr.atomic.swap
								     : from->wr.atomic.compare_add;
		to->data_mask = from->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? UINT64_MAX : 0;
		to->compare_mask = UINT64_MAX;
		return 0;
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		to->imm = from->invalidate_rkey;
		return 0;
	case IBV_WR_BIND_MW:
		if (from->bind_mw.mw->type != IBV_MW_TYPE_2)
			return EINVAL;
		to->rkey = from->bind_mw.rkey;
		to->imm = from->bind_mw.bind_info.mr != NULL ? from->bind_mw.bind_info.mr->lkey : 0;
		to->remote_addr = from->bind_mw.bind_info.addr;
		to->data = from->bind_mw.bind_info.length;
		to->compare = from->bind_mw.bind_info.mw_access_flags;
		return 0;
	default:
		return 0;
	}
}

static inline int
convert(const struct vb_qp *qp, struct saker_wr *to, const struct ibv_send_wr *from)
{
	if ((unsigned)from->opcode > MAX_WR || opcode_of[from->opcode] == NO_OP ||
		from->num_sge < 0 || from->num_sge > RD_MAX_SGE)
		return EINVAL;
	*to = (struct saker_wr){
		.wr_id = from->wr_id,
		.opcode = opcode_of[from->opcode],
		.flags = flags_of(from->send_flags),
		.nsge = (uint8_t)from->num_sge,
		.sge = (const struct rd_sge *)from->sg_list,
	};
	if (qp->ex.qp_base.qp_type == IBV_QPT_UD) {
		to->ah = ((const struct vb_ah *)from->wr.ud.ah)->saker;
		to->remote_qpn = from->wr.ud.remote_qpn;
		to->remote_qkey = from->wr.ud.remote_qkey;
		to->imm = from->opcode == IBV_WR_SEND_WITH_IMM ? ntohl(from->imm_data) : 0;
		return from->opcode == IBV_WR_SEND || from->opcode == IBV_WR_SEND_WITH_IMM ? 0
											   : EINVAL;
	}
	if (qp->ex.qp_base.qp_type == IBV_QPT_XRC_SEND)
		to->remote_srqn = from->qp_type.xrc.remote_srqn;
	return verbs_post_operands(to, from);
}

/* Returns the result of posting a batch. libsaker accepted `took` of `n` requests, or failed with
 * -errno; `wrong` is the error of the request behind them, or 0. When libsaker accepts a part of
 * the batch, the result is 0 and the next attempt returns the error. */
static inline int
verbs_post_answer(int took, int n, int wrong)
{
	if (took < 0)
		return -took;
	if (took == n)
		return wrong;
	return took == 0 ? ENOMEM : 0;
}

int
vb_post_send(struct ibv_qp *p, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct vb_qp *qp = vb_qp(p);
	struct saker_wr batch[BATCH];
	int rc = vb_send_check(qp);

	if (!qp->single && !vb_path_enter(&qp->sq_lock)) {
		*bad = wr;
		return EBUSY;
	}
	while (rc == 0 && wr != NULL) {
		struct ibv_send_wr *next = wr;
		int n = 0, took = 0, wrong = 0;

		for (; next != NULL && n < BATCH; next = next->next, n++) {
			wrong = convert(qp, &batch[n], next);
			if (wrong != 0)
				break;
		}
		if (n > 0)
			took = saker_post_send(qp->saker, batch, n);
		rc = verbs_post_answer(took, n, wrong);
		for (int i = 0; i < took; i++)
			wr = wr->next;
	}
	if (!qp->single)
		vb_path_leave(&qp->sq_lock);
	if (rc != 0)
		*bad = wr;
	return rc;
}

/* ---- Receives ---- */

typedef int post_fn(void *queue, const struct saker_wr *wr, int n);

static int
post_to_qp(void *queue, const struct saker_wr *wr, int n)
{
	return saker_post_recv(queue, wr, n);
}

static int
post_to_srq(void *queue, const struct saker_wr *wr, int n)
{
	return saker_post_srq(queue, wr, n);
}

static inline int
receives(post_fn *post, void *queue, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct saker_wr batch[BATCH];
	int rc = 0;

	while (rc == 0 && wr != NULL) {
		struct ibv_recv_wr *next = wr;
		int n = 0, took = 0, wrong = 0;

		for (; next != NULL && n < BATCH; next = next->next, n++) {
			if (next->num_sge < 0 || next->num_sge > RD_MAX_SGE) {
				wrong = EINVAL;
				break;
			}
			batch[n].wr_id = next->wr_id;
			batch[n].nsge = (uint8_t)next->num_sge;
			batch[n].sge = (const struct rd_sge *)next->sg_list;
		}
		if (n > 0)
			took = post(queue, batch, n);
		rc = verbs_post_answer(took, n, wrong);
		for (int i = 0; i < took; i++)
			wr = wr->next;
	}
	*bad = wr;
	return rc;
}

int
vb_post_recv(struct ibv_qp *p, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct vb_qp *qp = vb_qp(p);
	struct ibv_recv_wr *first = NULL;
	int rc;

	if (p->srq != NULL || p->state < vb_kind_of(p->context)->recv_from) {
		*bad = wr;
		return EINVAL;
	}
	if (!qp->single && !vb_path_enter(&qp->rq_lock)) {
		*bad = wr;
		return EBUSY;
	}
	rc = receives(post_to_qp, qp->saker, wr, &first);
	if (!qp->single)
		vb_path_leave(&qp->rq_lock);
	if (rc != 0)
		*bad = first;
	return rc;
}

/* Takes no lock: libsaker locks a shared queue itself. */
int
vb_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct ibv_recv_wr *first = NULL;
	int rc = receives(post_to_srq, vb_srq(srq)->saker, wr, &first);

	if (rc != 0)
		*bad = first;
	return rc;
}
