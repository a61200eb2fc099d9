/* SPDX-License-Identifier: BSD-3-Clause */
/* In which state a QP is, as far as the program may be told: moved by the program, by the
 * connection manager, by an error. */
#include "verbs_priv.h"

void
vb_qp_moved(struct vb_qp *qp, enum ibv_qp_state state)
{
	__atomic_store_n(&qp->ex.qp_base.state, state, __ATOMIC_RELEASE);
}
