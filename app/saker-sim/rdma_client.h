/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client of the RDMA transports: a flow is a QP at each end, a message a Write or a Read of its
 * source. Work requests are made when the transport fetches them; the region is one per host and
 * all messages meet in it.
 */
#ifndef SAKER_SIM_RDMA_CLIENT_H
#define SAKER_SIM_RDMA_CLIENT_H

#include "../../lib/rdma/rdma.h"
#include "world.h"

struct rdma_end {
	struct sim_end *end;
	struct rd_qp rd;
	void *q, *c;           /* the transport's QP, and what it needs beside */
	struct rdma_end *next; /* of the host's */
	struct rdma_end *next_active;
	bool active;     /* the send queue, or what waits, needs a turn */
	uint64_t in;     /* bytes that came in, as far as they were reported */
	unsigned turn;   /* Writes and Reads take turns */
	uint32_t queued; /* work requests fetched, not completed */
};

struct rdma_host {
	struct sim_host *h;
	struct rd_pd pd;
	struct rd_mr_table *mrs;
	struct rd_mr mr;
	struct rd_extent extent;
	struct rdma_end *ends, *active;
};

/* `bytes`: the region's memory, of the length of a message; NULL: no byte of it is ever looked at.
 * 0 or a negative errno. */
int rdma_host_init(struct rdma_host *r, struct sim_host *h, uint8_t *bytes);
void rdma_host_fini(struct rdma_host *r);
/* For the transport's stage, whose context is the host. */
struct rd_ops rdma_ops(const struct rdma_host *r);
/* A QP for the end; belongs to the host. */
struct rdma_end *rdma_end_new(struct rdma_host *r, struct sim_end *end);
uint32_t rdma_qpn(const struct sim_flow *f, unsigned side);
void rdma_activate(struct rdma_host *r, struct rdma_end *e);
/* The transport has placed so many bytes in all. */
void rdma_placed(struct rdma_end *e, uint64_t bytes_in);

#endif
