/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QP operations: what a transport does for a QP on the engine stage, as one table of functions per
 * transport. All other code of the stage serves every transport alike, and calls these functions. A
 * host connection, which has no queues of a client, has a table of its own.
 */
#ifndef SAKER_ENGINE_QP_OPS_PRIV_H
#define SAKER_ENGINE_QP_OPS_PRIV_H

#include "stage_priv.h"

struct eng_qp_ops {
	/* Allocates the transport's part of a QP. Returns 0 or -ENOMEM. */
	int (*create)(struct eng_stage *s, struct eng_qp *qp);
	/* Frees the transport's part. */
	void (*destroy)(struct eng_stage *s, struct eng_qp *qp);
	/* Starts the QP on a connection (ENG_CE_QP_START). Returns 0 or -errno. */
	int (*start)(struct eng_stage *s, struct eng_qp *qp, const struct eng_start *start);
	/* Sends up to ENG_QP_BURST messages or segments of a connected QP. Returns whether the QP
	 * has more to send in the next turn. */
	bool (*run)(struct eng_stage *s, struct eng_qp *qp);
	/* Flushes up to ENG_QP_BURST requests and receives in the queues of a QP in the error
	 * state. Returns whether there may be more. */
	bool (*flush)(struct eng_qp *qp);
	/* Continues after the pages that the QP has requested were fetched. Returns whether run()
	 * has work. NULL for host connections, which have no memory. */
	bool (*pages)(struct eng_stage *s, struct eng_qp *qp);
	/* Processes a message of the transport stage other than ENG_E_CLOSED, and takes its
	 * payload. */
	void (*message)(struct eng_stage *s, struct eng_qp *qp, const struct eng_dmsg *m);
	/* Moves the QP to the error state and closes its connection. */
	void (*disconnect)(struct eng_stage *s, struct eng_qp *qp, enum eng_close how);
	/* Returns whether ENG_T_LEAVE may replace ENG_T_ABORT. NULL: it never may. */
	bool (*may_leave)(const struct eng_qp *qp);
	/* Processes the end of the connection (ENG_E_CLOSED) with `error`: 0 or -errno. */
	void (*closed)(struct eng_stage *s, struct eng_qp *qp, int error);
	/* Returns whether the connection was open, so that it may have carried data. */
	bool (*opened)(const struct eng_qp *qp);
	/* Fills in *out: messages and bytes of the QP. */
	void (*info)(const struct eng_qp *qp, struct eng_work *out);
	/* Frees the payload of a message that no QP takes. NULL for host connections, whose
	 * messages are those of Falcon. */
	void (*drop)(const struct eng_dmsg *m);
	/* The reason code that means the end of the connection (of iw_reasons or rof_reasons). */
	int lost;
};

extern const struct eng_qp_ops eng_iwarp_ops, eng_falcon_ops, eng_host_ops;
/* The tables, indexed by enum eng_kind. */
extern const struct eng_qp_ops *const eng_qp_ops[ENG_KINDS];

/* ---- For the transports ---- */

/* Fills in *d from a message that carries a delivery of Falcon; d->buf belongs to the caller then.
 * Returns false for any other message (stage_falcon.c). */
bool eng_falcon_delivery(const struct eng_dmsg *m, struct fa_delivery *d);
/* Sends a message about the QP's connection to its transport stage, which takes what `ptr` points
 * to. Returns false, and counts ENG_RING_FULL, when the ring is full (stage_qp.c). */
bool eng_qp_send(struct eng_stage *s, const struct eng_qp *qp, enum eng_to_transport type,
	const void *ptr, uint32_t arg);
/* The functions that lib/iwarp and lib/rof call alike. Each stage sets rd_ops.mrs itself. */
extern const struct rd_ops eng_stage_rd_ops;

#endif
