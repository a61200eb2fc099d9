/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine stage: the QPs whose home it is, DDP and RDMAP for them, their clients' doorbells, and
 * the completion sub-rings that are its own. Everything here is touched by the loop that polls the
 * stage, and by nobody else.
 */
#ifndef SAKER_ENGINE_STAGE_PRIV_H
#define SAKER_ENGINE_STAGE_PRIV_H

#include <sys/queue.h>

#include "../../iwarp/iwarp.h"
#include "../../rof/rof.h"
#include "../common/mbuf.h"
#include "../common/objects.h"
#include "stage.h"

struct rte_ring;

#define ENG_QP_TURN   64 /* QPs that a turn serves */
#define ENG_QP_BURST  64 /* messages or segments that a QP may send in its turn */
#define ENG_DOORBELLS 64 /* doorbells that a turn takes from a client */
#define ENG_COLD_AFTER                                                                             \
	4096                  /* turns without a doorbell after which a client is looked at seldom \
			       */
#define ENG_COLD_SHARE_LOG2 4 /* so seldom: every 16th turn */
#define ENG_HOT_MIN         4 /* so many clients stay hot in any case */

/* What a QP has to say once there is a place in a ring, in this order. */
enum eng_qp_pending {
	EQP_P_CONSUMED = 1, /* ENG_T_CONSUMED */
	EQP_P_CLOSE = 2,    /* ENG_T_CLOSE */
	EQP_P_ABORT = 4,    /* ENG_T_ABORT */
	EQP_P_RELEASE = 8,  /* ENG_T_RELEASE */
	EQP_P_FATAL = 16,   /* ENG_EC_QP_FATAL */
	EQP_P_ENDED = 32,   /* ENG_EC_DISCONNECTED */
	EQP_P_DOOM = 64,    /* not said but done: abort it, outside of its own calls */
	EQP_P_GONE = 128,   /* the answer to ENG_CE_QP_DEL and ENG_CE_QP_RESET */
	EQP_P_WAITS = 256,  /* ENG_EC_QP_WAITS */
};

TAILQ_HEAD(eng_qp_list, eng_qp);
TAILQ_HEAD(eng_client_list, eng_client_stage);
TAILQ_HEAD(eng_srq_list, rd_srq);

#define ENG_NUMBER_BUCKETS 1024 /* of what peers name by number */

struct eng_stage {
	struct eng *e;
	unsigned index;
	uint64_t now;
	struct iw_stage iw;
	struct rof_stage rof;
	struct rte_mempool *store; /* records */
	uint32_t record_room;
	struct rte_ring *from_transport[ENG_MAX_TRANSPORTS], *to_transport[ENG_MAX_TRANSPORTS];
	struct rte_ring *from_control, *to_control;
	struct eng_client_list hot, cold; /* clients whose doorbells are looked at */
	uint32_t nhot, ncold;
	struct eng_qp_list active; /* QPs that have something to send */
	struct eng_qp_list pending;
	struct eng_srq_list pending_srqs;
	struct rd_cq *touched;
	struct rd_srq *xrc_srqs[ENG_NUMBER_BUCKETS]; /* by number, modulo */
	struct eng_qp *datagram_qps[ENG_NUMBER_BUCKETS];
	/* By index: */
	struct eng_qp **qps;  /* [nqps] */
	uint32_t *free_index; /* a stack */
	uint32_t nqps, nfree;
	struct eng_ctl *notices; /* [ENG_CTL_NOTICES] */
	struct eng_ctl *notices_free[ENG_CTL_NOTICES];
	unsigned nnotices;
	struct eng_work done; /* by QPs that are gone */
	uint64_t counters[eng_reason_count];
};

static inline struct eng_qp *
eng_qp_of(struct rd_qp *rd)
{
	return rd->user;
}

/* ---- stage_bell.c: clients and their doorbells ---- */

void eng_doorbells_add(struct eng_stage *s, struct eng_client *c);
void eng_doorbells_del(struct eng_stage *s, struct eng_client *c);
bool eng_doorbells_poll(struct eng_stage *s);

/* ---- stage_qp.c: QPs in their lives ---- */

void eng_qp_activate(struct eng_stage *s, struct eng_qp *qp);
bool eng_qps_run(struct eng_stage *s);
void eng_qp_pend(struct eng_stage *s, struct eng_qp *qp, uint16_t what);
bool eng_qps_pending(struct eng_stage *s);
/* A message of transport stage `t`. */
void eng_qp_message(struct eng_stage *s, const struct eng_dmsg *m);
void eng_qp_forget(struct eng_stage *s, struct eng_qp *qp);

/* ---- stage_hand.c: QPs that a program moves itself ---- */

/* ENG_CE_QP_MOVE, ENG_CE_QP_FAIL */
void eng_modified_move(struct eng_qp *qp, const struct eng_ctl *m);
void eng_modified_fail(struct eng_stage *s, struct eng_qp *qp);
/* It was rung, and has no connection to send on. */
void eng_modified_posted(struct eng_stage *s, struct eng_qp *qp);
/* ENG_E_CLOSED, of a Falcon QP. */
void eng_modified_closed(struct eng_stage *s, struct eng_qp *qp);
/* Nothing of it is under way: it becomes as new, and the control stage has its answer. */
void eng_qp_renew(struct eng_stage *s, struct eng_qp *qp);

/* ---- stage_iwarp.c, stage_falcon.c: what the two kinds of QP ask for (half_priv.h) ---- */

void eng_stage_iwarp_init(struct eng_stage *s);
void eng_stage_falcon_init(struct eng_stage *s);
/* A message that nobody will take: its payload goes home. */
void eng_dmsg_drop(const struct eng_dmsg *m);

/* ---- stage_queue.c: the client's queues (rd_ops) ---- */

bool eng_sq_next(void *ctx, struct rd_qp *qp, struct rd_wr *wr);
bool eng_sq_pending(void *ctx, struct rd_qp *qp);
/* Shows the client how far its requests were taken: at the end of a turn, and before a completion,
 * so that who sees a request complete finds its place free. */
static inline void
eng_sq_show(struct eng_qp *qp)
{
	if (qp->sq.next == qp->sq_shown)
		return;
	qp->sq_shown = qp->sq.next;
	shm_take_publish(&qp->sq);
}
bool eng_rq_next(void *ctx, struct rd_qp *qp, struct rd_wr *wr);

/* Takes the next receive of `rq`, whose elements are at most `max_sge`. */
bool eng_receive_next(struct shm_take *rq, uint32_t max_sge, struct rd_wr *wr);

/* ---- stage_datagram.c: datagram QPs, address handles, the connections of hosts ---- */

void eng_datagram_add(struct eng_stage *s, struct eng_qp *qp);
void eng_datagram_del(struct eng_stage *s, struct eng_qp *qp);
/* ENG_CE_QP_MOVE */
void eng_datagram_move(struct eng_stage *s, struct eng_qp *qp, const struct eng_ctl *m);
/* ENG_CE_AH_ADD; NULL: ENG_CE_AH_DEL */
void eng_ah_set(struct eng_stage *s, struct eng_client *c, uint32_t handle, struct eng_ah *ah);
/* ENG_CE_QP_FAIL: what waits for the other host is lost. */
void eng_host_fail(struct eng_stage *s, struct eng_qp *qp);
/* rof_ops */
struct rof_qp *eng_datagram_qp(void *ctx, struct rof_chan *c, uint32_t qpn);
struct rof_chan *eng_datagram_chan(void *ctx, struct rof_qp *q, uint32_t handle);
void eng_datagram_grh(void *ctx, struct rof_chan *c, uint32_t len, uint8_t grh[ROF_GRH_LEN]);

/* ---- stage_srq.c: shared receive queues ---- */

void eng_srq_add(struct eng_stage *s, struct rd_srq *srq);
void eng_srq_del(struct eng_stage *s, struct rd_srq *srq);
bool eng_srq_next(struct eng_stage *s, struct rd_srq *srq, struct rd_wr *wr);
void eng_srq_limit(struct eng_stage *s, struct rd_srq *srq, uint32_t limit);
/* Says what is due of those that have come below their limit. */
void eng_srqs_pending(struct eng_stage *s);
/* XRC: rof_ops */
int eng_xrc_next(void *ctx, struct rof_qp *q, uint32_t srqn, struct rd_wr *wr);
const struct rd_pd *eng_xrc_pd(void *ctx, struct rof_qp *q, uint32_t srqn);
void eng_xrc_complete(void *ctx, struct rof_qp *q, uint32_t srqn, const struct rd_wc *wc);

/* ---- stage_cq.c: completions and their events ---- */

/* false: it is full, and the completion is lost. */
bool eng_cq_put(struct eng_stage *s, struct rd_cq *cq, const struct rd_wc *wc);

void eng_complete(void *ctx, struct rd_qp *qp, bool recv, const struct rd_wc *wc);
/* At the end of a turn: events for the CQs that were armed. */
void eng_cqs_touched(struct eng_stage *s);
/* The CQ is about to be freed. */
void eng_cq_forget(struct eng_stage *s, struct rd_cq *cq);

/* ---- stage_ctl.c: the control stage ---- */

bool eng_stage_ctl(struct eng_stage *s);
/* A message of our own about `client`; NULL: all are under way. */
struct eng_ctl *eng_notice_get(
	struct eng_stage *s, enum eng_ctl_type type, struct eng_client *client);
void eng_notice_send(struct eng_stage *s, struct eng_ctl *m);
void eng_stage_answer(struct eng_stage *s, struct eng_ctl *m, int status);

#endif
