/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables through which the inline functions of <infiniband/verbs.h> call the library. For an
 * entry that is NULL those functions return EOPNOTSUPP. */
#include "ops_priv.h"

void
vb_ops_fill(struct verbs_context *v)
{
	v->query_port = vb_query_port;
	v->query_device_ex = vb_query_device_ex;
	v->query_rt_values = vb_query_rt_values;
	v->create_cq_ex = vb_create_cq_ex;
	v->create_qp_ex = vb_create_qp_ex;
	v->open_qp = vb_open_qp;
	v->create_srq_ex = vb_create_srq_ex;
	v->get_srq_num = vb_get_srq_num;
	v->open_xrcd = vb_open_xrcd;
	v->close_xrcd = vb_close_xrcd;
	v->alloc_td = vb_alloc_td;
	v->dealloc_td = vb_dealloc_td;
	v->alloc_parent_domain = vb_alloc_parent_domain;
	v->context.ops.alloc_mw = vb_alloc_mw;
	v->context.ops.bind_mw = vb_bind_mw;
	v->context.ops.dealloc_mw = vb_dealloc_mw;
	v->context.ops.poll_cq = vb_poll_cq;
	v->context.ops.req_notify_cq = vb_req_notify_cq;
	v->context.ops.post_send = vb_post_send;
	v->context.ops.post_recv = vb_post_recv;
	v->context.ops.post_srq_recv = vb_post_srq_recv;
}

static int
no_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	return -vb_alive(cq->context);
}

static int
no_notify(struct ibv_cq *cq, int solicited_only)
{
	return vb_alive(cq->context);
}

static int
no_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	*bad = wr;
	return vb_alive(qp->context);
}

static int
no_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	*bad = wr;
	return vb_alive(qp->context);
}

static int
no_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	*bad = wr;
	return vb_alive(srq->context);
}

void
vb_ops_refuse(struct verbs_context *v)
{
	struct ibv_context_ops *o = &v->context.ops;

	o->poll_cq = no_poll;
	o->req_notify_cq = no_notify;
	o->post_send = no_post_send;
	o->post_recv = no_post_recv;
	o->post_srq_recv = no_post_srq_recv;
}
