/* SPDX-License-Identifier: BSD-3-Clause */
/* The conversion of completions from Saker's codes to those of verbs. The status codes are
 * equal. */
#ifndef SAKER_VERBS_WC_PRIV_H
#define SAKER_VERBS_WC_PRIV_H

#include "../../lib/client/path.h"
#include "verbs_priv.h"

_Static_assert((int)RD_REM_ACCESS_ERR == (int)IBV_WC_REM_ACCESS_ERR &&
		       (int)RD_GENERAL_ERR == (int)IBV_WC_GENERAL_ERR,
	"verbs and Saker have the same status codes");
_Static_assert(RD_ACC_MW_BIND == (int)IBV_ACCESS_MW_BIND &&
		       RD_ACC_ZERO_BASED == (int)IBV_ACCESS_ZERO_BASED,
	"verbs and Saker have the same access rights");
_Static_assert(sizeof(struct rd_sge) == sizeof(struct ibv_sge) &&
		       offsetof(struct rd_sge, len) == offsetof(struct ibv_sge, length) &&
		       offsetof(struct rd_sge, lkey) == offsetof(struct ibv_sge, lkey),
	"scatter/gather elements are passed without conversion");

/* Converts an enum rd_opcode. */
static inline enum ibv_wc_opcode
vb_wc_opcode(uint8_t rd)
{
	static const uint8_t of[RD_SWAP + 1] = {
		[RD_SEND] = IBV_WC_SEND,
		[RD_SEND_INV] = IBV_WC_SEND,
		[RD_SEND_IMM] = IBV_WC_SEND,
		[RD_WRITE] = IBV_WC_RDMA_WRITE,
		[RD_WRITE_IMM] = IBV_WC_RDMA_WRITE,
		[RD_READ] = IBV_WC_RDMA_READ,
		[RD_READ_INV] = IBV_WC_RDMA_READ,
		[RD_CMP_SWAP] = IBV_WC_COMP_SWAP,
		[RD_FETCH_ADD] = IBV_WC_FETCH_ADD,
		[RD_IMM] = IBV_WC_SEND,
		[RD_LOCAL_INV] = IBV_WC_LOCAL_INV,
		[RD_BIND_MW] = IBV_WC_BIND_MW,
		[RD_SWAP] = IBV_WC_COMP_SWAP,
	};

	if (rd == RD_RECV)
		return IBV_WC_RECV;
	if (rd == RD_RECV_IMM)
		return IBV_WC_RECV_RDMA_WITH_IMM;
	return rd <= RD_SWAP ? (enum ibv_wc_opcode)of[rd] : IBV_WC_SEND;
}

/* Converts enum rd_wc_flags into enum ibv_wc_flags. */
static inline unsigned int
vb_wc_flags(uint8_t rd)
{
	return ((rd & RD_WC_IMM) ? (unsigned)IBV_WC_WITH_IMM : 0) |
	       ((rd & RD_WC_INV) ? (unsigned)IBV_WC_WITH_INV : 0) |
	       ((rd & RD_WC_GRH) ? (unsigned)IBV_WC_GRH : 0);
}

/* Returns the service level of a completion. Neither transport has service levels. As the devices
 * of the field do, a datagram's completion reports here which header stands in its first 40 bytes:
 * 1 for IPv6, 2 for IPv4. */
static inline uint8_t
vb_wc_sl(uint8_t rd)
{
	return (uint8_t)(((rd & RD_WC_GRH) != 0) + ((rd & RD_WC_IP4) != 0));
}

/* The number of consecutive polls without a completion after which the thread yields its core. */
#define VB_POLL_PATIENCE 16

/* Counts a poll that found `found` completions. With $SAKER_POLL=yield, calls sched_yield(2) after
 * VB_POLL_PATIENCE polls without a completion: on a machine with fewer cores than polling threads,
 * a poll without a result takes time from the thread that produces the result. */
static inline void
vb_poll_found(struct vb_cq *cq, int found)
{
	if (!vb_context(cq->cq.context)->poll_yields)
		return;
	if (found > 0)
		cq->empty_polls = 0;
	else if (++cq->empty_polls % VB_POLL_PATIENCE == 0)
		sched_yield();
}

/* Takes completions that vb_cq_clean() kept, of which there are some. In cq.c. */
int vb_cq_take_kept(struct vb_cq *cq, struct rd_wc *wc, int n);

/* Returns whether there are completions. Called without the queue's lock. */
static inline bool
vb_cq_any(const struct vb_cq *cq)
{
	return cl_cq_any(cl_cq_of(cq->saker)) ||
	       __atomic_load_n(&cq->kept, __ATOMIC_RELAXED) != NULL;
}

/* Takes up to n completions, the oldest first. Returns their number. */
static inline int
vb_cq_take(struct vb_cq *cq, struct rd_wc *wc, int n)
{
	int got = 0;

	if (__builtin_expect(cq->kept != NULL, 0))
		got = vb_cq_take_kept(cq, wc, n);
	return got < n ? got + saker_cq_poll(cq->saker, wc + got, n - got) : got;
}

/* Creates a completion queue, of which the caller fills in the extended part. In cq.c. Returns NULL
 * with errno. */
struct vb_cq *vb_cq_create(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr);

#endif
