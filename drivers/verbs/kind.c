/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the kinds of device, and the functions in which the kinds differ. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kind_priv.h"

#define MAX_AH 65536

#define QP_RC  (1u << IBV_QPT_RC)
#define QP_UD  (1u << IBV_QPT_UD)
#define QP_XRC (1u << IBV_QPT_XRC_SEND | 1u << IBV_QPT_XRC_RECV)

#define CAP_FLAGS                                                                                  \
	(IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_MEM_WINDOW |        \
		IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS |                    \
		IBV_DEVICE_SRQ_RESIZE)
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* The reasons of the InfiniBand connection manager for a rejection. */
#define IB_REJ_INVALID_SERVICE_ID 8
#define IB_REJ_CONSUMER           28

/* ---- iWARP ---- */

static bool
iwarp_offered(const struct saker_device *info)
{
	return true;
}

static uint32_t
iwarp_gid_count(const struct saker_device *info)
{
	return 1;
}

/* Writes the MAC address and 10 zero bytes. */
static void
iwarp_gid(const struct saker_device *info, uint32_t index, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	memcpy(gid->raw, info->mac, sizeof(info->mac));
}

/* ---- Falcon ---- */

static bool
falcon_offered(const struct saker_device *info)
{
	return info->falcon != 0;
}

static uint32_t
falcon_gid_count(const struct saker_device *info)
{
	return info->naddrs;
}

/* Copies an address. Both representations map IPv4 into IPv6 (RFC 4291 2.5.5.2). */
static void
falcon_gid(const struct saker_device *info, uint32_t index, union ibv_gid *gid)
{
	memcpy(gid->raw, info->addrs[index].b, sizeof(gid->raw));
}

/* ---- The table ---- */

const struct vb_kind vb_kinds[VB_NKINDS] = {
	[SAKER_IWARP] =
		{
			.transport = "iwarp",
			.name = "saker0",
			.node_type = IBV_NODE_RNIC,
			.transport_type = IBV_TRANSPORT_IWARP,
			.guid_byte = 0xfe,
			.offered = iwarp_offered,
			.cap_flags = CAP_FLAGS,
			.gid_type = IBV_GID_TYPE_IB,
			.gid_count = iwarp_gid_count,
			.gid = iwarp_gid,
			.qp_types = QP_RC,
			.recv_from = IBV_QPS_RESET,
			/* TCP delivers bytes in order, and the engine places them in that order.
			 * Falcon's packets are placed as they arrive. */
			.in_order = true,
			/* The connection determines the QP's state; a program sets rights alone. */
			.init_attr =
				{
					.init = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS,
					.rtr = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS,
					.rts = IBV_QP_STATE,
				},
			.init_access = ACCESS,
			.rejected_status = -ECONNREFUSED,
		},
	[SAKER_FALCON] =
		{
			.transport = "falcon",
			.name = "sakerf0",
			.node_type = IBV_NODE_CA,
			.transport_type = IBV_TRANSPORT_IB,
			.guid_byte = 0xfa,
			.offered = falcon_offered,
			.cap_flags = CAP_FLAGS | IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_XRC,
			.max_ah = MAX_AH,
			.gid_type = IBV_GID_TYPE_ROCE_V2,
			.gid_count = falcon_gid_count,
			.gid = falcon_gid,
			.qp_types = QP_RC | QP_UD | QP_XRC,
			.recv_from = IBV_QPS_INIT,
			.modified_by_program = true,
			.qp_access = true,
			.has_modes = true,
			.init_attr =
				{
					.init = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS |
						IBV_QP_PKEY_INDEX | IBV_QP_PORT,
					.rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
					.rts = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
					       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					       IBV_QP_MAX_QP_RD_ATOMIC,
				},
			.init_access = ACCESS | IBV_ACCESS_REMOTE_ATOMIC,
			.path_record = true,
			.timewait = true,
			.rejected_status = IB_REJ_CONSUMER,
			.no_listener_status = IB_REJ_INVALID_SERVICE_ID,
		},
};

enum saker_transport
vb_kind_listed(int n)
{
	const char *name = getenv("SAKER_DEVICE");
	int first = 0;

	for (int i = 0; name != NULL && i < VB_NKINDS; i++)
		if (strcmp(name, vb_kinds[i].transport) == 0)
			first = i;
	if (n == 0)
		return (enum saker_transport)first;
	return (enum saker_transport)(n <= first ? n - 1 : n);
}
