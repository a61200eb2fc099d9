/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that programs reach through the tables in a context. Each implements the verb of
 * the same name. */
#ifndef SAKER_VERBS_OPS_PRIV_H
#define SAKER_VERBS_OPS_PRIV_H

#include "verbs_priv.h"

/* ---- ops.c ---- */

/* Fills in both tables of a context. */
void vb_ops_fill(struct verbs_context *v);
/* Replaces the functions of the data path by functions that return an error: the context belongs to
 * the parent process. */
void vb_ops_refuse(struct verbs_context *v);

/* ---- query.c ---- */

int vb_query_port(
	struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr, size_t len);
int vb_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
	struct ibv_device_attr_ex *attr, size_t len);

int vb_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);

/* ---- mw.c ---- */

struct ibv_mw *vb_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int vb_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int vb_dealloc_mw(struct ibv_mw *mw);

/* ---- cq.c, cq_ex.c ---- */

int vb_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int vb_req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct ibv_cq_ex *vb_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);

/* ---- post.c ---- */

int vb_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int vb_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int vb_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* ---- qp.c, srq.c, xrc.c ---- */

struct ibv_qp *vb_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *vb_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);
struct ibv_srq *vb_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int vb_get_srq_num(struct ibv_srq *srq, uint32_t *num);
struct ibv_xrcd *vb_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int vb_close_xrcd(struct ibv_xrcd *xrcd);

/* ---- pd.c ---- */

struct ibv_td *vb_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int vb_dealloc_td(struct ibv_td *td);
struct ibv_pd *vb_alloc_parent_domain(
	struct ibv_context *context, struct ibv_parent_domain_init_attr *attr);

#endif
