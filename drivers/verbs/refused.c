/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Verbs that Saker does not support: each fails with EOPNOTSUPP, as <infiniband/verbs.h> does for a
 * verb that is in no table. A few need no action and succeed.
 */
#include "verbs_priv.h"

static void *
no_object(const char *what)
{
	vb_fail(EOPNOTSUPP, "%s is not supported", what);
	return NULL;
}

/* ---- Multicast ---- */

VB_EXPORT int
ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return vb_fail(EOPNOTSUPP, "multicast is not supported");
}

VB_EXPORT int
ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return vb_fail(EOPNOTSUPP, "multicast is not supported");
}

/* ---- Device memory ---- */

VB_EXPORT struct ibv_dm *
ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	return no_object("importing device memory");
}

VB_EXPORT void
ibv_unimport_dm(struct ibv_dm *dm)
{
}

/* ---- Connections of InfiniBand; Ethernet, which the engine handles ---- */

VB_EXPORT int
ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return vb_fail(EOPNOTSUPP, "enhanced connection establishment is not supported");
}

VB_EXPORT int
ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return vb_fail(EOPNOTSUPP, "enhanced connection establishment is not supported");
}

VB_EXPORT int
ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
	uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	return vb_fail(EOPNOTSUPP, "the engine resolves neighbours; programs cannot");
}

VB_EXPORT int
ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	return flags == 0 && vb_kind_of(qp->context)->in_order;
}

/* ---- fork(2): the child always gets a copy of registered memory ---- */

int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

VB_EXPORT int
ibv_fork_init(void)
{
	return 0;
}

VB_EXPORT enum ibv_fork_status
ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

VB_EXPORT int
ibv_dontfork_range(void *base, size_t size)
{
	return 0;
}

VB_EXPORT int
ibv_dofork_range(void *base, size_t size)
{
	return 0;
}
