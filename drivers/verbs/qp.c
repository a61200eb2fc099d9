/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: creating, querying, destroying. */
#include <stdlib.h>
#include <string.h>

#include "alloc_priv.h"
#include "events_priv.h"
#include "ops_priv.h"
#include "qp_priv.h"
#include "verbs_priv.h"

/* A new QP grants all rights, until ibv_modify_qp() sets them. */
#define ALL_RIGHTS 0

/* Returns the enum saker_qp_type of a type that the device has, or -EOPNOTSUPP. */
static int
type_of(const struct vb_kind *kind, enum ibv_qp_type verbs)
{
	if (!vb_kind_has_qp_type(kind, verbs))
		return -EOPNOTSUPP;
	switch (verbs) {
	case IBV_QPT_RC:
		return SAKER_RC;
	case IBV_QPT_UD:
		return SAKER_UD;
	case IBV_QPT_XRC_SEND:
		return SAKER_XRC_SEND;
	case IBV_QPT_XRC_RECV:
		return SAKER_XRC_RECV;
	default:
		return -EOPNOTSUPP;
	}
}

static struct saker_cq *
cq_of(struct ibv_cq *cq)
{
	return cq != NULL ? vb_cq(cq)->saker : NULL;
}

static uint32_t
at_least_one(uint32_t n)
{
	return n > 0 ? n : 1;
}

/* Creates the engine's QP. Returns the capabilities, which the engine may have rounded up, in
 * qp->init.cap. Returns 0 or errno. */
static int
engine_create(struct vb_qp *qp, struct saker_pd *pd, struct saker_xrcd *xrcd, uint8_t type)
{
	struct ibv_qp_cap *cap = &qp->init.cap;
	struct saker_qp_attr a = {
		.send_cq = cq_of(qp->init.send_cq),
		.recv_cq = cq_of(qp->init.recv_cq),
		.srq = qp->init.srq != NULL ? vb_srq(qp->init.srq)->saker : NULL,
		.sq_depth = at_least_one(cap->max_send_wr),
		.rq_depth = at_least_one(cap->max_recv_wr),
		.max_send_sge = at_least_one(cap->max_send_sge),
		.max_recv_sge = at_least_one(cap->max_recv_sge),
		.max_inline = cap->max_inline_data,
		.sig_all = qp->init.sq_sig_all != 0,
		.transport = vb_kind_transport(vb_kind_of(qp->ex.qp_base.context)),
		.type = type,
		.xrcd = xrcd,
		.access = ALL_RIGHTS,
		.user = qp,
	};
	int rc = vb_rc(saker_qp_create(pd, &a, &qp->saker), "ibv_create_qp");

	if (rc != 0)
		return rc;
	cap->max_send_wr = a.sq_depth;
	cap->max_recv_wr = qp->init.srq != NULL ? 0 : a.rq_depth;
	cap->max_send_sge = a.max_send_sge;
	cap->max_recv_sge = a.max_recv_sge;
	cap->max_inline_data = a.max_inline;
	return 0;
}

/* Counts a reference to each object that the QP uses. Called when the QP has been created. */
static void
hold_all(struct vb_qp *qp)
{
	if (qp->init.send_cq != NULL)
		vb_hold(&vb_cq(qp->init.send_cq)->refs);
	if (qp->init.recv_cq != NULL)
		vb_hold(&vb_cq(qp->init.recv_cq)->refs);
	if (qp->init.srq != NULL)
		vb_hold(&vb_srq(qp->init.srq)->refs);
	if (qp->xrcd != NULL)
		vb_hold(&qp->xrcd->refs);
}

static void
release_all(struct vb_qp *qp)
{
	if (qp->init.send_cq != NULL)
		vb_release(&vb_cq(qp->init.send_cq)->refs);
	if (qp->init.recv_cq != NULL)
		vb_release(&vb_cq(qp->init.recv_cq)->refs);
	if (qp->init.srq != NULL)
		vb_release(&vb_srq(qp->init.srq)->refs);
	if (qp->xrcd != NULL)
		vb_release(&qp->xrcd->refs);
}

struct vb_qp *
vb_qp_new(struct ibv_context *context, struct ibv_pd *pd, enum ibv_qp_type type, void *qp_context)
{
	struct vb_pd *owner;
	struct vb_qp *qp = vb_object_alloc(pd, sizeof(*qp), VB_RESOURCE_QP, &owner);
	struct ibv_qp *b;

	if (qp == NULL)
		return NULL;
	qp->owner = owner;
	b = &qp->ex.qp_base;
	b->context = context;
	b->qp_context = qp_context;
	b->qp_type = type;
	b->state = IBV_QPS_RESET;
	pthread_mutex_init(&b->mutex, NULL);
	pthread_cond_init(&b->cond, NULL);
	return qp;
}

void
vb_qp_free(struct vb_qp *qp)
{
	pthread_mutex_destroy(&qp->ex.qp_base.mutex);
	pthread_cond_destroy(&qp->ex.qp_base.cond);
	vb_wr_fini(qp);
	vb_object_free(qp, VB_RESOURCE_QP, qp->owner);
}

static int
verbs_qp_attr_check(const struct ibv_qp_init_attr_ex *a)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	bool xrc_recv = a->qp_type == IBV_QPT_XRC_RECV;

	if ((a->comp_mask & ~known) != 0)
		return vb_fail(EOPNOTSUPP, "queue pairs have no attributes of mask %#x",
			a->comp_mask & ~known);
	if ((a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && a->create_flags != 0)
		return vb_fail(
			EOPNOTSUPP, "queue pairs have no creation flags %#x", a->create_flags);
	if (xrc_recv ? (a->comp_mask & IBV_QP_INIT_ATTR_XRCD) == 0 || a->xrcd == NULL
		     : (a->comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || a->pd == NULL)
		return vb_fail(
			EINVAL, "the queue pair has no %s domain", xrc_recv ? "XRC" : "protection");
	return 0;
}

static int
qp_make(struct vb_qp *qp, const struct ibv_qp_init_attr_ex *a)
{
	struct ibv_qp *b = &qp->ex.qp_base;
	int type = type_of(vb_kind_of(b->context), a->qp_type), rc;

	if (type < 0)
		return vb_fail(-type, "the device %s has no queue pairs of type %d",
			vb_kind_of(b->context)->name, a->qp_type);
	memcpy(&qp->init, a, sizeof(qp->init));
	if (a->qp_type == IBV_QPT_XRC_RECV) {
		qp->xrcd = (struct vb_xrcd *)a->xrcd;
		qp->init.send_cq = qp->init.recv_cq = NULL;
		qp->init.srq = NULL;
	} else {
		b->pd = a->pd;
		qp->single = vb_pd(a->pd)->single;
	}
	rc = engine_create(qp, b->pd != NULL ? vb_pd(b->pd)->saker : qp->xrcd->pd,
		qp->xrcd != NULL ? qp->xrcd->saker : NULL, (uint8_t)type);
	if (rc != 0)
		return rc;
	b->send_cq = qp->init.send_cq;
	b->recv_cq = qp->init.recv_cq;
	b->srq = qp->init.srq;
	b->qp_num = saker_qp_num(qp->saker);
	b->handle = b->qp_num;
	return 0;
}

static struct ibv_pd *
pd_of(const struct ibv_qp_init_attr_ex *a)
{
	return (a->comp_mask & IBV_QP_INIT_ATTR_PD) != 0 ? a->pd : NULL;
}

struct ibv_qp *
vb_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct vb_qp *qp = NULL;
	int rc = vb_alive(context);

	if (rc == 0)
		rc = verbs_qp_attr_check(attr);
	if (rc == 0 &&
		(qp = vb_qp_new(context, pd_of(attr), attr->qp_type, attr->qp_context)) == NULL)
		rc = ENOMEM;
	if (rc == 0)
		rc = qp_make(qp, attr);
	if (rc == 0 && (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0) {
		rc = vb_wr_init(qp, attr->send_ops_flags);
		if (rc != 0)
			saker_qp_destroy(qp->saker);
	}
	if (rc != 0) {
		if (qp != NULL)
			vb_qp_free(qp);
		errno = rc;
		return NULL;
	}
	hold_all(qp);
	vb_owned_enter(context, &qp->owned, VB_QP);
	attr->cap = qp->init.cap;
	return &qp->ex.qp_base;
}

VB_EXPORT struct ibv_qp *
ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {.pd = pd};
	struct ibv_qp *qp;

	/* Copies the common beginning. The padding of the shorter structure overwrites comp_mask,
	 * which is set below. */
	memcpy(&ex, attr, sizeof(*attr));
	ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	qp = vb_create_qp_ex(pd->context, &ex);
	if (qp != NULL)
		attr->cap = ex.cap;
	return qp;
}

VB_EXPORT struct ibv_qp_ex *
ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return vb_qp(qp)->build != NULL ? &vb_qp(qp)->ex : NULL;
}

/* iWARP has no state RESET: other iWARP devices show a new queue pair in state INIT. */
static enum ibv_qp_state
state_shown(const struct ibv_qp *p)
{
	if (p->state == IBV_QPS_RESET && !vb_kind_of(p->context)->modified_by_program)
		return IBV_QPS_INIT;
	return p->state;
}

VB_EXPORT int
ibv_query_qp(
	struct ibv_qp *p, struct ibv_qp_attr *attr, int attr_mask, struct ibv_qp_init_attr *init)
{
	struct vb_qp *qp = vb_qp(p);
	struct saker_qp_info info;
	int rc = vb_alive(p->context);

	if (rc == 0)
		rc = vb_rc(saker_qp_query(qp->saker, &info), "ibv_query_qp");
	if (rc != 0)
		return rc;
	/* The engine detects errors before the library does. The states before a connection exist
	 * in the library alone. */
	if (info.state == RD_QP_ERR)
		vb_qp_set_state(qp, IBV_QPS_ERR);
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = state_shown(p);
	attr->cap = qp->init.cap;
	attr->path_mig_state = IBV_MIG_MIGRATED;
	attr->port_num = 1;
	if (p->state >= IBV_QPS_RTS && p->qp_type == IBV_QPT_RC) {
		attr->max_dest_rd_atomic = (uint8_t)(info.ird < UINT8_MAX ? info.ird : UINT8_MAX);
		attr->max_rd_atomic = (uint8_t)(info.ord < UINT8_MAX ? info.ord : UINT8_MAX);
	}
	attr->ah_attr.grh.traffic_class = info.traffic.traffic_class;
	attr->ah_attr.grh.flow_label = info.traffic.flow_label;
	attr->ah_attr.sl = info.traffic.priority;
	*init = qp->init;
	init->qp_context = p->qp_context;
	return 0;
}

VB_EXPORT int
ibv_destroy_qp(struct ibv_qp *p)
{
	struct vb_qp *qp = vb_qp(p);
	struct vb_retire r = {.context = p->context,
		.element = qp,
		.mutex = &p->mutex,
		.cond = &p->cond,
		.async_acked = &p->events_completed,
		.async_got = &qp->async_got};
	int rc = 0;

	vb_retire_begin(&r);
	if (vb_owned_live(p->context, &qp->owned))
		rc = vb_rc(saker_qp_destroy(qp->saker), "ibv_destroy_qp");
	vb_retire_end(&r, rc == 0);
	if (rc != 0)
		return rc;
	release_all(qp);
	vb_owned_leave(&qp->owned);
	vb_qp_free(qp);
	return 0;
}
