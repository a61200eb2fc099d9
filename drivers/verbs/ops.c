/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables through which inline verbs reach us. An entry that is NULL is a verb that is not
 * supported: <infiniband/verbs.h> answers EOPNOTSUPP itself. */
#include "ops_priv.h"

void
vb_ops_fill(struct verbs_context *v)
{
	v->query_port = vb_query_port;
	v->query_device_ex = vb_query_device_ex;
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
