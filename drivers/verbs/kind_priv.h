/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kinds of device: one row of data for each transport. Every other file of libsaker-verbs reads
 * the row of its device and contains no branch on the transport. A new transport adds one row to
 * vb_kinds[] in kind.c.
 */
#ifndef SAKER_VERBS_KIND_PRIV_H
#define SAKER_VERBS_KIND_PRIV_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include <saker/saker.h>

/* The kinds that exist. The index of a kind is its enum saker_transport. */
enum { VB_NKINDS = 2 };

/* The attributes that rdma_init_qp_attr(3) sets for a connected QP: a mask of enum ibv_qp_attr_mask
 * for each of the three states. */
struct vb_kind_attrs {
	int init, rtr, rts;
};

struct vb_kind {
	/* The transport's name in $SAKER_DEVICES and $SAKER_DEVICE. */
	const char *transport;

	/* ---- The device, as ibv_get_device_list(3) and ibv_query_device(3) describe it ---- */

	/* The device's name, at most 48 bytes. */
	const char *name;
	enum ibv_node_type node_type;
	enum ibv_transport_type transport_type;
	/* The fifth byte of the device's GUID, an EUI-64 that is made from the MAC address of 6
	 * bytes. The value distinguishes the devices of one MAC address. */
	uint8_t guid_byte;
	/* Returns whether the saker offers a device of this kind. */
	bool (*offered)(const struct saker_device *info);
	/* enum ibv_device_cap_flags. XRC domains can be opened only where IBV_DEVICE_XRC is set. */
	unsigned int cap_flags;
	/* The number of address handles; 0: the device has none. */
	int max_ah;

	/* ---- The GID table of the device's port ---- */

	enum ibv_gid_type gid_type;
	/* Returns the number of GIDs. */
	uint32_t (*gid_count)(const struct saker_device *info);
	/* Writes the GID at `index`, which is below gid_count(info). */
	void (*gid)(const struct saker_device *info, uint32_t index, union ibv_gid *gid);

	/* ---- Queue pairs ---- */

	/* The types of QP that the device has: bits 1 << enum ibv_qp_type. */
	uint32_t qp_types;
	/* The first state in which a QP accepts receive requests. */
	enum ibv_qp_state recv_from;
	/* A program may connect a QP with ibv_modify_qp(3), without rdma_cm. Otherwise the
	 * connection manager alone changes a QP's state. */
	bool modified_by_program;
	/* A QP has access rights of its own, which a program sets (IBV_QP_ACCESS_FLAGS). Otherwise
	 * it grants what the memory regions grant. */
	bool qp_access;
	bool has_modes; /* its connections have the modes of struct saker_modes */
	/* The bytes of a message are placed in ascending order (ibv_query_qp_data_in_order(3)). */
	bool in_order;

	/* ---- The connection manager ---- */

	struct vb_kind_attrs init_attr;
	/* The access rights that rdma_init_qp_attr(3) proposes: enum ibv_access_flags. */
	unsigned int init_access;
	/* A resolved route has a path record (struct ibv_sa_path_rec). */
	bool path_record;
	/* RDMA_CM_EVENT_TIMEWAIT_EXIT follows RDMA_CM_EVENT_DISCONNECTED. */
	bool timewait;
	/* The status of RDMA_CM_EVENT_REJECTED: when the peer's program rejected, and when no
	 * listener accepted the request. 0: the status is the error that ended the attempt. */
	int rejected_status, no_listener_status;
};

extern const struct vb_kind vb_kinds[VB_NKINDS];

/* Returns the transport of the device at place n (0 to VB_NKINDS - 1) of the lists of devices. The
 * one that $SAKER_DEVICE names comes first: a program that chooses no device opens the first one,
 * and adapts to it what it does with the QPs of rdma_cm. */
enum saker_transport vb_kind_listed(int n);

static inline enum saker_transport
vb_kind_transport(const struct vb_kind *k)
{
	return (enum saker_transport)(k - vb_kinds);
}

static inline bool
vb_kind_has_qp_type(const struct vb_kind *k, enum ibv_qp_type type)
{
	return (unsigned int)type < 32 && (k->qp_types >> type & 1) != 0;
}

#endif
