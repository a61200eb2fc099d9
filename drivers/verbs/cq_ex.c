/* SPDX-License-Identifier: BSD-3-Clause */
/* Extended completion queues: a program reads one completion at a time, field by field. The library
 * holds the queue's lock from start_poll() to end_poll(). */
#include <arpa/inet.h>

#include "ops_priv.h"
#include "path_priv.h"
#include "verbs_priv.h"
#include "wc_priv.h"

#define NS_PER_S 1000000000u
#define STAMPS                                                                                     \
	((uint64_t)(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |                                          \
		    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK))

static struct vb_cq *
cq_ex_of(struct ibv_cq_ex *ex)
{
	return (struct vb_cq *)ex;
}

static int
next_poll(struct ibv_cq_ex *ex)
{
	struct vb_cq *cq = cq_ex_of(ex);

	if (vb_cq_take(cq, &cq->wc, 1) == 0)
		return ENOENT;
	if (cq->stamped)
		clock_gettime(CLOCK_MONOTONIC_RAW, &cq->when);
	ex->status = (enum ibv_wc_status)cq->wc.status;
	ex->wr_id = cq->wc.wr_id;
	return 0;
}

static void
end_poll(struct ibv_cq_ex *ex)
{
	if (cq_ex_of(ex)->single)
		return;
	vb_path_again();
	vb_path_leave(&cq_ex_of(ex)->lock);
}

static int
start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	int rc;

	if (attr->comp_mask != 0)
		return EINVAL;
	if (vb_is_dead(ex->context))
		return vb_alive(ex->context);
	if (!vb_cq_any(cq_ex_of(ex))) {
		vb_poll_found(cq_ex_of(ex), 0);
		return ENOENT;
	}
	if (!cq_ex_of(ex)->single && !vb_path_enter(&cq_ex_of(ex)->lock))
		return ENOENT;
	rc = next_poll(ex);
	if (!cq_ex_of(ex)->single)
		vb_path_keep();
	if (rc != 0)
		end_poll(ex);
	vb_poll_found(cq_ex_of(ex), rc == 0);
	return rc;
}

static enum ibv_wc_opcode
read_opcode(struct ibv_cq_ex *ex)
{
	return vb_wc_opcode(cq_ex_of(ex)->wc.opcode);
}

static uint32_t
read_vendor_err(struct ibv_cq_ex *ex)
{
	return cq_ex_of(ex)->wc.vendor_err;
}

static uint32_t
read_byte_len(struct ibv_cq_ex *ex)
{
	return cq_ex_of(ex)->wc.byte_len;
}

/* Returns the immediate data in network byte order, or the key that the peer invalidated:
 * <infiniband/verbs.h> reads both by this function. */
static __be32
read_imm_data(struct ibv_cq_ex *ex)
{
	const struct rd_wc *wc = &cq_ex_of(ex)->wc;

	return (wc->flags & RD_WC_INV) != 0 ? wc->inv_stag : htonl((uint32_t)wc->imm);
}

static uint32_t
read_qp_num(struct ibv_cq_ex *ex)
{
	return cq_ex_of(ex)->wc.qpn;
}

static uint32_t
read_src_qp(struct ibv_cq_ex *ex)
{
	return cq_ex_of(ex)->wc.src_qp;
}

static unsigned int
read_wc_flags(struct ibv_cq_ex *ex)
{
	return vb_wc_flags(cq_ex_of(ex)->wc.flags);
}

/* Neither transport has LIDs. */
static uint32_t
read_slid(struct ibv_cq_ex *ex)
{
	return 0;
}

static uint8_t
read_sl(struct ibv_cq_ex *ex)
{
	return vb_wc_sl(cq_ex_of(ex)->wc.flags);
}

static uint8_t
read_none(struct ibv_cq_ex *ex)
{
	return 0;
}

/* The device's clock counts nanoseconds (vb_query_device_ex()). The library reads it when it takes
 * a completion out of the queue. */
static uint64_t
read_completion_ts(struct ibv_cq_ex *ex)
{
	const struct timespec *t = &cq_ex_of(ex)->when;

	return (uint64_t)t->tv_sec * NS_PER_S + (uint64_t)t->tv_nsec;
}

/* Converts the same moment into the system's time. */
static uint64_t
read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
	struct timespec wall, raw;

	clock_gettime(CLOCK_REALTIME, &wall);
	clock_gettime(CLOCK_MONOTONIC_RAW, &raw);
	return (uint64_t)wall.tv_sec * NS_PER_S + (uint64_t)wall.tv_nsec + read_completion_ts(ex) -
	       ((uint64_t)raw.tv_sec * NS_PER_S + (uint64_t)raw.tv_nsec);
}

struct ibv_cq_ex *
vb_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	const uint32_t masks = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
	struct vb_cq *cq;

	if ((attr->wc_flags & ~(STAMPS | IBV_WC_STANDARD_FLAGS)) != 0 ||
		(attr->comp_mask & ~masks) != 0) {
		vb_fail(EOPNOTSUPP, "completions have no VLANs, flow or matching tags");
		return NULL;
	}
	cq = vb_cq_create(context, attr);
	if (cq == NULL)
		return NULL;
	cq->ex.start_poll = start_poll;
	cq->ex.next_poll = next_poll;
	cq->ex.end_poll = end_poll;
	cq->ex.read_opcode = read_opcode;
	cq->ex.read_vendor_err = read_vendor_err;
	cq->ex.read_byte_len = read_byte_len;
	cq->ex.read_imm_data = read_imm_data;
	cq->ex.read_qp_num = read_qp_num;
	cq->ex.read_src_qp = read_src_qp;
	cq->ex.read_wc_flags = read_wc_flags;
	cq->ex.read_slid = read_slid;
	cq->ex.read_sl = read_sl;
	cq->ex.read_dlid_path_bits = read_none;
	cq->stamped = (attr->wc_flags & STAMPS) != 0;
	cq->ex.read_completion_ts = read_completion_ts;
	cq->ex.read_completion_wallclock_ns = read_completion_wallclock_ns;
	return &cq->ex;
}
