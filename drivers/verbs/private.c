/* SPDX-License-Identifier: BSD-3-Clause */
/* A function that the genuine library exports for the libraries of rdma-core alone, and that
 * programs of Debian call nevertheless. */
#include "verbs_priv.h"

/* The GID types that sysfs distinguishes. */
enum gid_type_sysfs { GID_TYPE_SYSFS_IB_ROCE_V1, GID_TYPE_SYSFS_ROCE_V2 };
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
	enum gid_type_sysfs *type);

VB_EXPORT int
ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
	enum gid_type_sysfs *type)
{
	struct ibv_gid_entry e;

	if (ibv_query_gid_ex(context, port_num, index, &e, 0) != 0)
		return -1;
	*type = e.gid_type == IBV_GID_TYPE_ROCE_V2 ? GID_TYPE_SYSFS_ROCE_V2
						   : GID_TYPE_SYSFS_IB_ROCE_V1;
	return 0;
}
