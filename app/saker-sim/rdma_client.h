/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client of the RDMA transports. A flow has a QP at each end, and a message is a Write or a
 * Read of its source. The client makes work requests when the transport fetches them. Each host has
 * one memory region, which all its messages share.
 */
#ifndef SAKER_SIM_RDMA_CLIENT_H
#define SAKER_SIM_RDMA_CLIENT_H

#include "../../lib/base/mem.h"
#include "../../lib/rdma/rdma.h"
#include "world.h"

struct rdma_end {
	struct sim_end *end;
	struct rd_qp rd;
	void *q, *c;           /* the transport's QP, and its channel (rof) */
	struct rdma_end *next; /* in the host's list */
	struct rdma_end *next_active;
	bool active;     /* in the host's list of QPs that need a turn */
	uint64_t in;     /* bytes placed so far, as reported to the flow */
	unsigned turn;   /* alternates Writes and Reads */
	uint32_t queued; /* work requests that were fetched and have not completed */
};

static inline struct rdma_end *
sim_rdma_end_of(struct rd_qp *qp)
{
	return SK_CONTAINER(qp, struct rdma_end, rd);
}

struct rdma_host {
	struct sim_host *h;
	struct rd_pd pd;
	struct rd_mr_table *mrs;
	struct rd_mr mr;
	struct rd_extent extent;
	struct rdma_end *ends, *active;
};

/* Initializes a host with a region of the length of a message. `bytes` is its memory, or NULL if
 * the transport never accesses it. Returns 0 or a negative errno. */
int sim_rdma_host_init(struct rdma_host *r, struct sim_host *h, uint8_t *bytes);
void sim_rdma_host_fini(struct rdma_host *r);
/* Returns the operations for the transport's stage, whose context is the rdma_host. */
struct rd_ops sim_rdma_ops(const struct rdma_host *r);
/* Creates a QP for an end of a flow. The host owns it. */
struct rdma_end *sim_rdma_end_new(struct rdma_host *r, struct sim_end *end);
/* Returns the QPN of a flow's QP at `side`: 0 source, 1 destination. */
uint32_t sim_rdma_qpn(const struct sim_flow *f, unsigned side);
/* Adds a QP to the list of those that need a turn. */
void sim_rdma_activate(struct rdma_host *r, struct rdma_end *e);
/* Gives a turn to each QP of the list. `send` returns whether the QP needs another one. */
void sim_rdma_turn(
	struct rdma_host *r, uint64_t now, bool (*send)(struct rdma_end *e, uint64_t now));
/* Reports that the transport has placed `bytes_in` bytes since the start. */
void sim_rdma_placed(struct rdma_end *e, uint64_t bytes_in);

#endif
