/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The states of a QP and ibv_modify_qp(3). The program, the connection manager or an error changes
 * the state.
 *
 * Where the device permits it (vb_kind.modified_by_program), a program connects a QP by itself,
 * with the peer's QP number and GID. The connection changes the state of a QP of an rdma_cm_id, and
 * of every QP of another device; for these, the library stores the attributes that the program
 * sets, and the step changes nothing at the engine.
 */
#include "qp_priv.h"

#define FROM_ANY IBV_QPS_UNKNOWN
#define ALWAYS                                                                                     \
	(IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE |               \
		IBV_QP_RATE_LIMIT | IBV_QP_EN_SQD_ASYNC_NOTIFY)
#define RC   (1u << IBV_QPT_RC)
#define UD   (1u << IBV_QPT_UD)
#define XS   (1u << IBV_QPT_XRC_SEND)
#define XR   (1u << IBV_QPT_XRC_RECV)
#define ALL  (RC | UD | XS | XR)
#define CONN (RC | XS | XR)

#define PLACE     (IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define PATH      (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RESPONDER (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define REQUESTER (IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)
#define TIMES     (IBV_QP_TIMEOUT | IBV_QP_SQ_PSN)

/* The steps from state to state: the types of QP that each is for, the attributes that it needs,
 * and the attributes that it may set in addition. */
static const struct step {
	enum ibv_qp_state from, to;
	uint32_t types;
	int needs, may;
} steps[] = {
	{FROM_ANY, IBV_QPS_RESET, ALL, 0, 0},
	{FROM_ANY, IBV_QPS_ERR, ALL, 0, 0},
	{IBV_QPS_RESET, IBV_QPS_INIT, CONN, PLACE | IBV_QP_ACCESS_FLAGS, 0},
	{IBV_QPS_RESET, IBV_QPS_INIT, UD, PLACE | IBV_QP_QKEY, 0},
	{IBV_QPS_INIT, IBV_QPS_INIT, CONN, 0, PLACE | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_INIT, IBV_QPS_INIT, UD, 0, PLACE | IBV_QP_QKEY},
	{IBV_QPS_INIT, IBV_QPS_RTR, RC | XR, PATH | RESPONDER,
		IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_INIT, IBV_QPS_RTR, XS, PATH, IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_INIT, IBV_QPS_RTR, UD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
	{IBV_QPS_RTR, IBV_QPS_RTS, RC | XS, TIMES | REQUESTER,
		IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPS_RTR, IBV_QPS_RTS, XR, TIMES, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPS_RTR, IBV_QPS_RTS, UD, IBV_QP_SQ_PSN, IBV_QP_QKEY},
	{IBV_QPS_RTS, IBV_QPS_RTS, CONN, 0, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPS_RTS, IBV_QPS_RTS, UD, 0, IBV_QP_QKEY},
};

/* The engine has completed the receives that the QP had taken from its SRQ before it reports the
 * error or replies to the command. */
void
vb_qp_failed(struct vb_qp *qp)
{
	if (__atomic_exchange_n(&qp->failed, 1, __ATOMIC_ACQ_REL) == 0 && qp->init.srq != NULL)
		vb_async_raise(qp->ex.qp_base.context, IBV_EVENT_QP_LAST_WQE_REACHED, qp);
}

void
vb_qp_set_state(struct vb_qp *qp, enum ibv_qp_state state)
{
	__atomic_store_n(&qp->ex.qp_base.state, state, __ATOMIC_RELEASE);
	if (state == IBV_QPS_ERR)
		vb_qp_failed(qp);
	else
		__atomic_store_n(&qp->failed, 0, __ATOMIC_RELEASE);
}

static const struct step *
step_of(const struct vb_qp *qp, enum ibv_qp_state to)
{
	const struct ibv_qp *b = &qp->ex.qp_base;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (steps[i].to == to && (steps[i].types & 1u << b->qp_type) != 0 &&
			(steps[i].from == b->state || steps[i].from == FROM_ANY))
			return &steps[i];
	return NULL;
}

/* Copies the attributes that the mask names. */
static void
copy_attrs(struct ibv_qp_attr *to, const struct ibv_qp_attr *from, int mask)
{
	if (mask & IBV_QP_ACCESS_FLAGS)
		to->qp_access_flags = from->qp_access_flags;
	if (mask & IBV_QP_PKEY_INDEX)
		to->pkey_index = from->pkey_index;
	if (mask & IBV_QP_QKEY)
		to->qkey = from->qkey;
	if (mask & IBV_QP_AV)
		to->ah_attr = from->ah_attr;
	if (mask & IBV_QP_PATH_MTU)
		to->path_mtu = from->path_mtu;
	if (mask & IBV_QP_TIMEOUT)
		to->timeout = from->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		to->retry_cnt = from->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		to->rnr_retry = from->rnr_retry;
	if (mask & IBV_QP_RQ_PSN)
		to->rq_psn = from->rq_psn;
	if (mask & IBV_QP_SQ_PSN)
		to->sq_psn = from->sq_psn;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		to->max_rd_atomic = from->max_rd_atomic;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		to->max_dest_rd_atomic = from->max_dest_rd_atomic;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		to->min_rnr_timer = from->min_rnr_timer;
	if (mask & IBV_QP_DEST_QPN)
		to->dest_qp_num = from->dest_qp_num;
}

static int
values_check(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	const struct saker_device *d = &vb_context(qp->ex.qp_base.context)->info;

	if ((mask & IBV_QP_PORT) != 0 && attr->port_num != 1)
		return vb_fail(EINVAL, "there is no port %u", attr->port_num);
	if ((mask & IBV_QP_PKEY_INDEX) != 0 && attr->pkey_index != 0)
		return vb_fail(EINVAL, "there is no P_Key %u", attr->pkey_index);
	if ((mask & IBV_QP_AV) != 0 && !attr->ah_attr.is_global)
		return vb_fail(EINVAL, "the path names no GID (ah_attr.is_global is 0)");
	if ((mask & IBV_QP_PATH_MTU) != 0 &&
		(attr->path_mtu < IBV_MTU_256 || attr->path_mtu > IBV_MTU_4096))
		return vb_fail(EINVAL, "there is no path MTU %d", attr->path_mtu);
	if (((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0 && attr->max_rd_atomic > d->max_ord) ||
		((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0 && attr->max_dest_rd_atomic > d->max_ird))
		return vb_fail(EINVAL,
			"Reads and Atomics exceed the device's limits %u (out) and %u (in)",
			d->max_ord, d->max_ird);
	return 0;
}

/* Passes the rights that the QP grants its peer to the engine, where QPs have rights of their own.
 * This works after the connection exists, too: programs of librdmacm that change the states of
 * their QPs themselves set the rights then. Returns 0 or errno. */
static int
grant(struct vb_qp *qp, int mask)
{
	if ((mask & IBV_QP_ACCESS_FLAGS) == 0 || !vb_kind_of(qp->ex.qp_base.context)->qp_access)
		return 0;
	return vb_qp_step(qp, &qp->attr, IBV_QPS_INIT);
}

/* Modifies a QP whose state follows its connection. */
static int
connected_modify(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state state = qp->ex.qp_base.state;
	int rc = 0;

	copy_attrs(&qp->attr, attr, mask);
	if ((mask & IBV_QP_STATE) == 0 || attr->qp_state == state)
		return 0;
	switch (attr->qp_state) {
	case IBV_QPS_ERR:
		rc = vb_rc(saker_qp_modify(qp->saker, RD_QP_ERR), "ibv_modify_qp");
		if (rc == 0)
			vb_qp_set_state(qp, IBV_QPS_ERR);
		return rc;
	case IBV_QPS_INIT:
		rc = grant(qp, mask);
		if (rc == 0 && state == IBV_QPS_RESET)
			vb_qp_set_state(qp, IBV_QPS_INIT);
		return rc;
	case IBV_QPS_RTR:
	case IBV_QPS_RTS:
		if (state == IBV_QPS_ERR)
			return vb_fail(EINVAL,
				"the queue pair is in state ERR and cannot go to state %d",
				attr->qp_state);
		if (state < attr->qp_state &&
			vb_kind_of(qp->ex.qp_base.context)->modified_by_program)
			vb_qp_set_state(qp, attr->qp_state);
		return 0;
	default:
		return vb_fail(
			EINVAL, "a connected queue pair does not go to state %d", attr->qp_state);
	}
}

/* Modifies a QP that the program connects. */
static int
program_modify(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp *b = &qp->ex.qp_base;
	enum ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attr->qp_state : b->state;
	const struct step *s = step_of(qp, to);
	struct ibv_qp_attr now = qp->attr;
	int rc;

	if (s == NULL || ((mask & IBV_QP_CUR_STATE) != 0 && attr->cur_qp_state != b->state))
		return vb_fail(EINVAL, "a queue pair of this type does not go from state %d to %d",
			b->state, to);
	if ((mask & s->needs) != s->needs)
		return vb_fail(
			EINVAL, "the step to state %d needs attributes %#x", to, s->needs & ~mask);
	if ((mask & ~(s->needs | s->may | ALWAYS)) != 0)
		return vb_fail(EINVAL, "the step to state %d cannot set attributes %#x", to,
			mask & ~(s->needs | s->may | ALWAYS));
	rc = values_check(qp, attr, mask);
	if (rc != 0)
		return rc;
	copy_attrs(&now, attr, mask);
	rc = vb_qp_step(qp, &now, to);
	if (rc != 0)
		return rc;
	if (to == IBV_QPS_RESET) {
		vb_cq_clean(b->send_cq, b->qp_num);
		if (b->recv_cq != b->send_cq)
			vb_cq_clean(b->recv_cq, b->qp_num);
	}
	qp->attr = now;
	vb_qp_set_state(qp, to);
	return 0;
}

/* Returns whether the connection manager connects the QP, now or later. rdma_init_qp_attr() gives 0
 * as the peer's QP number, which no QP has; a QP with that number will belong to an rdma_cm_id, and
 * its connection determines its state. */
static bool
connected_by_cm(const struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	const struct ibv_qp *b = &qp->ex.qp_base;

	if (!vb_kind_of(b->context)->modified_by_program || qp->cm != NULL)
		return true;
	if (b->qp_type != IBV_QPT_RC)
		return false;
	if (b->state == IBV_QPS_INIT)
		return (mask & IBV_QP_DEST_QPN) != 0 && attr->dest_qp_num == 0;
	return (b->state == IBV_QPS_RTR || b->state == IBV_QPS_RTS) && qp->attr.dest_qp_num == 0;
}

VB_EXPORT int
ibv_modify_qp(struct ibv_qp *p, struct ibv_qp_attr *attr, int attr_mask)
{
	struct vb_qp *qp = vb_qp(p);
	int rc = vb_alive(p->context);

	if (rc != 0)
		return rc;
	if (connected_by_cm(qp, attr, attr_mask))
		return connected_modify(qp, attr, attr_mask);
	return program_modify(qp, attr, attr_mask);
}
