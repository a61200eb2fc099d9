/* SPDX-License-Identifier: BSD-3-Clause */
/* A step that a program takes with a QP of the Falcon device, told to the engine. */
#include <string.h>

#include "qp_priv.h"

int
vb_qp_step(struct vb_qp *qp, const struct ibv_qp_attr *now, enum ibv_qp_state to)
{
	if (to == IBV_QPS_ERR)
		return vb_rc(saker_qp_modify(qp->saker, RD_QP_ERR), "ibv_modify_qp");
	if (to <= IBV_QPS_INIT)
		return 0;
	return vb_fail(EOPNOTSUPP, "this saker moves queue pairs by connections only");
}
