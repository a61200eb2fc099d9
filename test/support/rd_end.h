/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One end of a QP for tests of the RDMA protocols (lib/iwarp, lib/rof): the client's queues and the
 * part of the engine stage that struct rd_ops names. Requests come from two arrays that the test
 * fills; completions go to two arrays that the test reads. There is no clock and no thread.
 *
 * A test's structure has RD_END_MEMBERS first, by way of RD_END, and is the `ctx` of its stage.
 */
#ifndef TEST_RD_END_H
#define TEST_RD_END_H

#include "../../lib/rdma/rdma.h"

#define RD_END_MEMBERS                                                                             \
	struct rd_mr_table *mrs;                                                                   \
	struct rd_pd pd;                                                                           \
	struct rd_qp rd;                                                                           \
	/* Work requests: sq[i % wrs] for head <= i < tail. */                                     \
	struct rd_wr *sq, *rq;                                                                     \
	unsigned wrs, sq_head, sq_tail, rq_head, rq_tail;                                          \
	/* Completions: send_wc[i % wcs] for i < nsend. */                                         \
	struct rd_wc *send_wc, *recv_wc;                                                           \
	unsigned wcs, nsend, nrecv;                                                                \
	unsigned errors, invalidations; /* calls of rd_ops.qp_error and .invalidate */             \
	int error_code;                 /* of the last qp_error */

struct rd_end {
	RD_END_MEMBERS
};

/* The first member of a test's structure: the members are accessible by their own names, and
 * together as `rd_end`. */
#define RD_END                                                                                     \
	union {                                                                                    \
		struct rd_end rd_end;                                                              \
		struct {                                                                           \
			RD_END_MEMBERS                                                             \
		};                                                                                 \
	}

/* Initializes a zeroed end: queues of `wrs` work requests, arrays of `wcs` completions, and a table
 * of `mrs` regions whose STags derive from `key`. Aborts when memory is exhausted. */
void rd_end_init(
	struct rd_end *e, unsigned wrs, unsigned wcs, uint32_t mrs, const struct sk_key *key);
/* Frees the queues, the completions and the table. The regions remain the caller's. */
void rd_end_fini(struct rd_end *e);
/* Returns the operations of the end, for a stage whose `ctx` is the end. */
struct rd_ops rd_end_ops(const struct rd_end *e);

/* Append a work request to a queue, zeroed but for wr_id and opcode (RD_RECV), and return it. */
struct rd_wr *rd_end_post(struct rd_end *e, uint8_t opcode, uint64_t wr_id);
struct rd_wr *rd_end_recv(struct rd_end *e, uint64_t wr_id);

/* Operations that the operations of a protocol include, too; as in struct rd_ops. */
bool rd_end_rq_next(void *ctx, struct rd_qp *qp, struct rd_wr *wr);
void rd_end_complete(void *ctx, struct rd_qp *qp, bool recv, const struct rd_wc *wc);

#endif
