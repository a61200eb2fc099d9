/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files about queue pairs share. */
#ifndef SAKER_VERBS_QP_PRIV_H
#define SAKER_VERBS_QP_PRIV_H

#include "verbs_priv.h"

/* qp.c. Our memory of a queue pair: without its saker_qp. NULL: no memory. */
struct vb_qp *vb_qp_new(struct ibv_context *context, enum ibv_qp_type type, void *qp_context);
void vb_qp_free(struct vb_qp *qp);

/* wr.c. The ibv_wr_ way of posting, with the operations of enum ibv_qp_create_send_ops_flags; 0 or
 * errno. */
int vb_wr_init(struct vb_qp *qp, uint64_t ops);
void vb_wr_fini(struct vb_qp *qp);

/* qp_step.c. Takes the engine's QP to `to`, with all that the program has set. 0 or errno. */
int vb_qp_step(struct vb_qp *qp, const struct ibv_qp_attr *now, enum ibv_qp_state to);

/* post.c. Whether requests may be posted to the send queue now: 0 or EINVAL. */
int vb_send_check(const struct vb_qp *qp);

#endif
