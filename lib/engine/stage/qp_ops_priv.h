/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The seam of a transport on the engine stage: the operations of its QPs, one table each.
 * Everything else on the stage serves every transport alike and calls through this table. The
 * connection of two hosts, which their datagrams share, has no queues of a client and operations of
 * its own.
 */
#ifndef SAKER_ENGINE_QP_OPS_PRIV_H
#define SAKER_ENGINE_QP_OPS_PRIV_H

#include "stage_priv.h"

struct eng_qp_ops {
	/* Allocates the transport's part of a QP. Returns 0 or -errno. */
	int (*create)(struct eng_stage *s, struct eng_qp *qp);
	void (*destroy)(struct eng_stage *s, struct eng_qp *qp);
	/* ENG_CE_QP_START. Returns 0 or -errno. */
	int (*start)(struct eng_stage *s, struct eng_qp *qp, const struct eng_start *start);
	/* Processes the send queue of a connected QP. Returns whether there is more to do now. */
	bool (*run)(struct eng_stage *s, struct eng_qp *qp);
	/* The QP is in the error state: flushes what the client posts. */
	void (*flush)(struct eng_qp *qp);
	/* Handles a message of the transport stage, other than ENG_E_CLOSED. */
	void (*message)(struct eng_stage *s, struct eng_qp *qp, const struct eng_dmsg *m);
	void (*disconnect)(struct eng_stage *s, struct eng_qp *qp, enum eng_close how);
	/* ENG_E_CLOSED: the connection has ended with `error`, 0 or -errno. */
	void (*closed)(struct eng_stage *s, struct eng_qp *qp, int error);
	/* Returns whether the connection has carried anything, or could have. */
	bool (*opened)(const struct eng_qp *qp);
	void (*info)(const struct eng_qp *qp, struct eng_work *out);
	/* Frees the payload of a message that no QP takes. NULL: the messages are another's. */
	void (*drop)(const struct eng_dmsg *m);
	/* The reason that stands for the end of the connection (iw_reasons, rof_reasons). */
	int lost;
};

extern const struct eng_qp_ops eng_iwarp_ops, eng_falcon_ops, eng_host_ops;
/* By enum eng_kind. */
extern const struct eng_qp_ops *const eng_qp_ops[ENG_KINDS];

/* ---- For the instances ---- */

/* Fills in *d from a message that carries a delivery of Falcon's. Returns false when it is another
 * message (stage_falcon.c). */
bool eng_falcon_delivery(const struct eng_dmsg *m, struct fa_delivery *d);
/* Sends a message to the QP's transport stage. Returns false when the ring is full (stage_qp.c). */
bool eng_qp_send(struct eng_stage *s, const struct eng_qp *qp, enum eng_to_transport type,
	const void *ptr, uint32_t arg);
/* The rd_ops of an engine stage, without its regions. */
extern const struct rd_ops eng_stage_rd_ops;

#endif
