/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions that Saker does not support: multicast, which neither transport has, and enhanced
 * connection establishment (ECE), by which two adapters of one vendor exchange vendor options. A
 * device without such options reports an ECE of vendor 0.
 */
#include <string.h>

#include "cm_priv.h"

VB_EXPORT int
rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	return vb_cm_end(vb_fail(EOPNOTSUPP, "multicast is not supported"));
}

VB_EXPORT int
rdma_join_multicast_ex(
	struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *mc_join_attr, void *context)
{
	return vb_cm_end(vb_fail(EOPNOTSUPP, "multicast is not supported"));
}

VB_EXPORT int
rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	return vb_cm_end(vb_fail(EOPNOTSUPP, "multicast is not supported"));
}

VB_EXPORT int
rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	return vb_cm_end(id->qp == NULL && ece != NULL && ece->vendor_id == 0 ? 0 : EOPNOTSUPP);
}

VB_EXPORT int
rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (ece == NULL)
		return vb_cm_end(EINVAL);
	memset(ece, 0, sizeof(*ece));
	return 0;
}

/* Rejects as rdma_reject() does: the reason ECE is not transmitted. */
VB_EXPORT int
rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return rdma_reject(id, private_data, private_data_len);
}
