/* SPDX-License-Identifier: BSD-3-Clause */
/* The queries of a device, of its one port and of its GIDs. */
#include <arpa/inet.h>
#include <string.h>

#include "ops_priv.h"
#include "verbs_priv.h"

#define PORTS     1
#define MAX_MSG   0x40000000u /* 1 GiB: the value that programs expect of an InfiniBand device */
#define VENDOR_ID 0x73616b    /* "sak"; Saker has no OUI of the IEEE */
#define HW_VER    1
#define GUID_KIND 4 /* the byte of a GUID in which the devices of one saker differ */
#define LINK_UP   5
#define ACK_DELAY 15     /* 4.096 us << 15: the delay that a peer adds to its timeout */
#define PKEY_ALL  0xffff /* the default partition */
#define GID_FLAGS 0
#define CLOCK_KHZ 1000000 /* the clock of timestamps counts nanoseconds */

/* ---- The device ---- */

static void
limits(struct ibv_context *c, struct ibv_device_attr *a)
{
	const struct saker_device *d = &vb_context(c)->info;

	a->max_mr_size = d->max_mr_size;
	a->max_qp = (int)d->max_qp;
	a->max_qp_wr = (int)(d->max_sq_depth < d->max_rq_depth ? d->max_sq_depth : d->max_rq_depth);
	a->max_sge = (int)(d->max_send_sge < d->max_recv_sge ? d->max_send_sge : d->max_recv_sge);
	a->max_sge_rd = a->max_sge;
	a->max_cq = (int)d->max_cq;
	a->max_cqe = (int)d->max_cq_depth;
	a->max_mr = (int)d->max_mr;
	a->max_mw = (int)d->max_mw;
	a->max_pd = (int)d->max_pd;
	a->max_qp_rd_atom = (int)d->max_ird;
	a->max_qp_init_rd_atom = (int)d->max_ord;
	a->max_res_rd_atom = (int)(d->max_ird * d->max_qp);
	a->max_srq = (int)d->max_srq;
	a->max_srq_wr = (int)d->max_rq_depth;
	a->max_srq_sge = (int)d->max_recv_sge;
	a->max_ah = vb_kind_of(c)->max_ah;
}

VB_EXPORT int
ibv_query_device(struct ibv_context *context, struct ibv_device_attr *a)
{
	memset(a, 0, sizeof(*a));
	strcpy(a->fw_ver, SAKER_VERSION);
	a->node_guid = ibv_get_device_guid(context->device);
	a->sys_image_guid = a->node_guid;
	((uint8_t *)&a->sys_image_guid)[GUID_KIND] = vb_kinds[SAKER_IWARP].guid_byte;
	a->vendor_id = VENDOR_ID;
	a->vendor_part_id = (uint32_t)vb_kind_transport(vb_kind_of(context)) + 1;
	a->hw_ver = HW_VER;
	a->page_size_cap = 0xfffff000; /* every power of two from 4 KiB */
	a->device_cap_flags = vb_kind_of(context)->cap_flags;
	a->atomic_cap = IBV_ATOMIC_HCA;
	a->max_pkeys = 1;
	a->local_ca_ack_delay = ACK_DELAY;
	a->phys_port_cnt = PORTS;
	limits(context, a);
	return 0;
}

int
vb_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
	struct ibv_device_attr_ex *attr, size_t len)
{
	struct ibv_device_attr_ex a;

	if (input != NULL && input->comp_mask != 0)
		return vb_fail(
			EINVAL, "ibv_query_device_ex: unknown attributes %#x", input->comp_mask);
	memset(&a, 0, sizeof(a));
	ibv_query_device(context, &a.orig_attr);
	a.device_cap_flags_ex = a.orig_attr.device_cap_flags;
	a.phys_port_cnt_ex = PORTS;
	a.completion_timestamp_mask = UINT64_MAX;
	a.hca_core_clock = CLOCK_KHZ;
	memset(attr, 0, len);
	memcpy(attr, &a, len < sizeof(a) ? len : sizeof(a));
	return 0;
}

/* The clock is the system's CLOCK_MONOTONIC_RAW, in which every process reads the processor's
 * counter. As other devices, this one reports the count in tv_nsec alone; 64 bits hold it. */
int
vb_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	const uint32_t known = IBV_VALUES_MASK_RAW_CLOCK;
	struct timespec now;

	if ((values->comp_mask & ~known) != 0)
		return vb_fail(EINVAL, "ibv_query_rt_values_ex: unknown values %#x",
			values->comp_mask & ~known);
	if (values->comp_mask == 0)
		return 0;
	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = now.tv_sec * 1000000000L + now.tv_nsec;
	return 0;
}

/* ---- The port ---- */

/* Returns the largest path MTU that is at most `bytes`; IBV_MTU_256 below that. */
static enum ibv_mtu
mtu_below(uint32_t bytes)
{
	enum ibv_mtu m = IBV_MTU_256;

	while (m < IBV_MTU_4096 && (512u << (m - IBV_MTU_256)) <= bytes)
		m++;
	return m;
}

/* The widths and speeds of ports, as enum ib_port_width and ib_port_speed of the kernel have them:
 * the least that carry a link of so many Mb/s. The kernel chooses alike for Ethernet. */
static const struct rate {
	uint32_t mbps;
	uint8_t width, speed;
} rates[] = {
	{1000, 1, 1},         /* 1 lane of 2.5 Gb/s */
	{10000, 1, 4},        /* 1 x 10 */
	{20000, 2, 2},        /* 4 x 5 */
	{25000, 1, 32},       /* 1 x 25 */
	{40000, 2, 4},        /* 4 x 10 */
	{50000, 1, 64},       /* 1 x 50 */
	{100000, 2, 32},      /* 4 x 25 */
	{200000, 2, 64},      /* 4 x 50 */
	{UINT32_MAX, 2, 128}, /* 4 x 100 */
};
#define MBPS_UNKNOWN 10000 /* a port that has no speed, as those of shared memory */

static const struct rate *
rate_of(uint32_t mbps)
{
	const struct rate *r = rates;

	while (r->mbps < (mbps != 0 ? mbps : MBPS_UNKNOWN))
		r++;
	return r;
}

int
vb_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr, size_t len)
{
	const struct saker_device *d = &vb_context(context)->info;
	const struct rate *rate = rate_of(d->speed);
	struct ibv_port_attr a = {
		.state = IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = mtu_below(d->mtu),
		.gid_tbl_len = (int)vb_kind_of(context)->gid_count(d),
		.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
		.max_msg_sz = MAX_MSG,
		.pkey_tbl_len = 1,
		.max_vl_num = 1,
		.active_width = rate->width,
		.active_speed = rate->speed,
		.phys_state = LINK_UP,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
	};

	if (port_num != PORTS)
		return vb_fail(EINVAL, "there is no port %u", port_num);
	memset(attr, 0, len);
	memcpy(attr, &a, len < sizeof(a) ? len : sizeof(a));
	return 0;
}

/* For programs that were built when the structure ended before port_cap_flags2. */
VB_EXPORT int
ibv_query_port(struct ibv_context *context, uint8_t port_num, struct _compat_ibv_port_attr *attr)
{
	return vb_query_port(context, port_num, (struct ibv_port_attr *)attr,
		offsetof(struct ibv_port_attr, port_cap_flags2));
}

/* ---- GIDs ---- */

static int
gid_at(struct ibv_context *context, uint32_t port_num, uint32_t index, union ibv_gid *gid)
{
	const struct saker_device *d = &vb_context(context)->info;
	const struct vb_kind *k = vb_kind_of(context);

	if (port_num != PORTS || index >= k->gid_count(d))
		return vb_fail(EINVAL, "there is no GID %u at port %u", index, port_num);
	k->gid(d, index, gid);
	return 0;
}

VB_EXPORT int
ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	return gid_at(context, port_num, (uint32_t)index, gid) == 0 ? 0 : -1;
}

static int
entry_at(struct ibv_context *context, uint32_t port_num, uint32_t index, void *out, size_t len)
{
	struct ibv_gid_entry e = {.gid_index = index,
		.port_num = port_num,
		.gid_type = vb_kind_of(context)->gid_type};
	int rc = gid_at(context, port_num, index, &e.gid);

	if (rc == 0)
		memcpy(out, &e, len < sizeof(e) ? len : sizeof(e));
	return rc;
}

VB_EXPORT int
_ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
	struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	if (flags != GID_FLAGS)
		return vb_fail(EINVAL, "a GID query has no flags %#x", flags);
	return entry_at(context, port_num, gid_index, entry, entry_size);
}

VB_EXPORT ssize_t
_ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max_entries,
	uint32_t flags, size_t entry_size)
{
	uint8_t *at = (uint8_t *)entries;
	size_t count = vb_kind_of(context)->gid_count(&vb_context(context)->info);

	if (flags != GID_FLAGS)
		return -vb_fail(EINVAL, "a GID query has no flags %#x", flags);
	if (count > max_entries)
		return -vb_fail(EINVAL, "a table of %zu GIDs does not fit into %zu entries", count,
			max_entries);
	for (size_t i = 0; i < count; i++)
		entry_at(context, PORTS, (uint32_t)i, at + i * entry_size, entry_size);
	return (ssize_t)count;
}

VB_EXPORT int
ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	if (port_num != PORTS || index != 0)
		return -1;
	*pkey = htons(PKEY_ALL);
	return 0;
}

VB_EXPORT int
ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	return port_num == PORTS && pkey == htons(PKEY_ALL) ? 0 : -1;
}
