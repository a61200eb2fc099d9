/* SPDX-License-Identifier: BSD-3-Clause */
/* The declarations that the files about queue pairs share. */
#ifndef SAKER_VERBS_QP_PRIV_H
#define SAKER_VERBS_QP_PRIV_H

#include "verbs_priv.h"

/* ---- qp.c ---- */

/* Allocates a queue pair in state RESET, without its saker_qp. `pd` may be NULL. Returns NULL
 * without memory. */
struct vb_qp *vb_qp_new(
	struct ibv_context *context, struct ibv_pd *pd, enum ibv_qp_type type, void *qp_context);
/* Frees the memory of a queue pair and leaves its saker_qp. */
void vb_qp_free(struct vb_qp *qp);

/* ---- wr.c ---- */

/* Prepares a queue pair for ibv_wr_start(3) with the operations `ops`, a mask of enum
 * ibv_qp_create_send_ops_flags. Returns 0, EOPNOTSUPP for an operation that the type of QP does not
 * have, or ENOMEM. */
int vb_wr_init(struct vb_qp *qp, uint64_t ops);
void vb_wr_fini(struct vb_qp *qp);

/* ---- qp_step.c ---- */

/* Moves the engine's QP to the state `to` with the attributes `now`. Returns 0 or errno. */
int vb_qp_step(struct vb_qp *qp, const struct ibv_qp_attr *now, enum ibv_qp_state to);

/* ---- post.c ---- */

/* Returns 0 when requests may be posted to the send queue in the QP's present state, else
 * EINVAL. */
int vb_send_check(const struct vb_qp *qp);

/* Returns the flags of a request (enum rd_wr_flags) for a mask of enum ibv_send_flags. */
static inline uint8_t
vb_send_flags(unsigned int verbs)
{
	_Static_assert(IBV_SEND_SIGNALED >> 1 == RD_SIGNALED &&
			       IBV_SEND_SOLICITED >> 1 == RD_SOLICITED &&
			       IBV_SEND_FENCE << 2 == RD_FENCE && (int)IBV_SEND_INLINE == RD_INLINE,
		"the shifts");
	return (uint8_t)((verbs >> 1 & (RD_SIGNALED | RD_SOLICITED)) |
			 (verbs & IBV_SEND_FENCE) << 2 | (verbs & IBV_SEND_INLINE));
}

#endif
