/* SPDX-License-Identifier: BSD-3-Clause */
/* The exchange on plain libibverbs and librdmacm, for Linux's soft-iWARP: see exchange.h. */
#ifndef TEST_INTEROP_EXCHANGE_VERBS_H
#define TEST_INTEROP_EXCHANGE_VERBS_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "exchange.h"

struct ex_rdma {
	struct ex_peer ex;
	struct rdma_event_channel *events;
	struct rdma_cm_id *listener, *id;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr, *window;
};

/* The relevant fields of an event, which has been acknowledged. */
struct ex_event {
	enum rdma_cm_event_type type;
	int status;
	struct rdma_cm_id *id;
	uint8_t responder_resources, initiator_depth, private_len;
	uint8_t private_data[256];
};

/* All functions return 0, or -1 after they have printed what failed. */
int ex_rdma_fail(const char *what);
int ex_rdma_listen(struct ex_rdma *p, struct sockaddr *at);
/* Creates p->id with a route to `to`. */
int ex_rdma_resolve(struct ex_rdma *p, struct sockaddr *to);
/* Creates CQ, QP with `depth` send requests, and registered buffer for p->id. ex_rdma_end()
 * destroys them and the id. */
int ex_rdma_qp(struct ex_rdma *p, uint32_t depth);
void ex_rdma_end(struct ex_rdma *p);
/* ex_rdma_event() takes the next event; ex_rdma_expect() takes the next event, which must be `want`
 * (`out` may be NULL). */
int ex_rdma_event(struct ex_rdma *p, struct ex_event *out);
int ex_rdma_expect(struct ex_rdma *p, enum rdma_cm_event_type want, struct ex_event *out);

#endif
