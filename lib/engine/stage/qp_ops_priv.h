/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A QP's transport half, as its engine stage drives it: the only place that knows whether a QP is
 * iWARP's or Falcon's, or no client's but the connection of two hosts. Everything else on the stage
 * asks through this table.
 */
#ifndef SAKER_ENGINE_HALF_PRIV_H
#define SAKER_ENGINE_HALF_PRIV_H

#include "stage_priv.h"

struct eng_half {
	int (*create)(struct eng_stage *s, struct eng_qp *qp); /* 0 or -errno */
	void (*destroy)(struct eng_stage *s, struct eng_qp *qp);
	/* ENG_CE_QP_START: 0 or -errno. */
	int (*start)(struct eng_stage *s, struct eng_qp *qp, const struct eng_ctl *m);
	/* Works off the send queue of a connected QP; false: nothing more to do now. */
	bool (*run)(struct eng_stage *s, struct eng_qp *qp);
	/* The QP is in the error state: what the client posts is flushed. */
	void (*flush)(struct eng_qp *qp);
	/* What the transport stage says, but for ENG_E_CLOSED. */
	void (*message)(struct eng_stage *s, struct eng_qp *qp, const struct eng_dmsg *m);
	void (*disconnect)(struct eng_stage *s, struct eng_qp *qp, enum iw_close how);
	void (*closed)(struct eng_stage *s, struct eng_qp *qp, int error);
	void (*info)(const struct eng_qp *qp, struct eng_work *out);
	/* The payload of a message for a QP that is not there. */
	void (*drop)(const struct eng_dmsg *m);
};

extern const struct eng_half eng_iwarp, eng_falcon, eng_hosts;

static inline const struct eng_half *
eng_half_of(const struct eng_qp *qp)
{
	if (!qp->falcon)
		return &eng_iwarp;
	return qp->host == NULL ? &eng_falcon : &eng_hosts;
}

/* ---- What both ask of the engine (stage_qp.c) ---- */

/* What Falcon has delivered. false: it is none of that. (stage_falcon.c) */
bool eng_falcon_delivery(const struct eng_dmsg *m, struct fa_delivery *d);
/* false: the ring is full. */
bool eng_qp_tell(struct eng_stage *s, const struct eng_qp *qp, enum eng_to_transport type,
	const void *ptr, uint32_t arg);
/* rd_ops of an engine stage, but for its regions. */
extern const struct rd_ops eng_stage_rd_ops;

#endif
