/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine stage and the functions that its files share. Only the loop that polls the stage
 * accesses this state and calls these functions; other threads read the counters alone.
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

#define ENG_QP_TURN   64 /* QPs that the stage serves in a turn */
#define ENG_QP_BURST  64 /* messages or segments that a QP may send in a turn */
#define ENG_DOORBELLS 64 /* doorbells that the stage takes from a client in a turn */
/* A client is cold after ENG_COLD_AFTER turns without a doorbell, if more than ENG_HOT_MIN clients
 * are hot. The stage polls a cold client in every 16th turn (2^ENG_COLD_SHARE_LOG2). */
#define ENG_COLD_AFTER      4096
#define ENG_COLD_SHARE_LOG2 4
#define ENG_HOT_MIN         4

/* What a QP has to send at the end of the turn. A message for which a ring is full or no notice is
 * free stays pending until a later turn. The messages to the transport stage go first, and
 * ENG_EC_QP_FATAL goes before ENG_EC_DISCONNECTED. */
enum eng_qp_pending {
	EQP_P_CONSUMED = 1, /* ENG_T_CONSUMED */
	EQP_P_CLOSE = 2,    /* ENG_T_CLOSE */
	EQP_P_ABORT = 4,    /* ENG_T_ABORT */
	EQP_P_RELEASE = 8,  /* ENG_T_RELEASE */
	EQP_P_FATAL = 16,   /* ENG_EC_QP_FATAL */
	EQP_P_ENDED = 32,   /* ENG_EC_DISCONNECTED */
	/* not a message: abort the connection, outside of the QP's own functions */
	EQP_P_DOOM = 64,
	EQP_P_GONE = 128,  /* the answer to ENG_CE_QP_DEL or ENG_CE_QP_RESET; last of all */
	EQP_P_WAITS = 256, /* ENG_EC_QP_WAITS */
};

TAILQ_HEAD(eng_qp_list, eng_qp);
TAILQ_HEAD(eng_client_list, eng_client_stage);
TAILQ_HEAD(eng_srq_list, rd_srq);

#define ENG_NUMBER_BUCKETS 1024 /* buckets of a hash table of numbers that peers send */

struct eng_stage {
	struct eng *e;
	unsigned index;
	uint64_t now;
	struct iw_stage iw;
	struct rof_stage rof;
	struct rte_mempool *store; /* mbufs of records and of Falcon payloads */
	uint32_t record_room;      /* data bytes of such an mbuf */
	struct rte_ring *from_transport[ENG_MAX_TRANSPORTS], *to_transport[ENG_MAX_TRANSPORTS];
	struct rte_ring *from_control, *to_control;
	struct eng_client_list hot, cold; /* clients whose doorbells the stage polls */
	uint32_t nhot, ncold;
	struct eng_qp_list active;  /* QPs that may have work to send */
	struct eng_qp_list pending; /* QPs with a bit of enum eng_qp_pending */
	/* SRQs below their limit, for which ENG_EC_SRQ_LIMIT was not sent yet */
	struct eng_srq_list pending_srqs;
	struct rd_cq *touched; /* CQs with new completions, or with an event that waits */
	/* hash tables: the bucket is the SRQ number or QPN, modulo ENG_NUMBER_BUCKETS */
	struct rd_srq *xrc_srqs[ENG_NUMBER_BUCKETS];
	struct eng_qp *datagram_qps[ENG_NUMBER_BUCKETS];
	struct eng_qp **qps;  /* [nqps], by eng_qp.index; NULL: the index is free */
	uint32_t *free_index; /* [nqps]: stack of `nfree` free indices */
	uint32_t nqps, nfree;
	struct eng_ctl *notices; /* [ENG_CTL_NOTICES] */
	/* stack of `nnotices` free notices; the control stage holds the others */
	struct eng_ctl *notices_free[ENG_CTL_NOTICES];
	unsigned nnotices;
	struct eng_work done; /* messages and bytes of QPs before they were destroyed or reset */
	uint64_t counters[eng_reason_count]; /* enum eng_reason */
};

/* Returns the stage's QP to a QP of lib/rdma. */
static inline struct eng_qp *
eng_qp_of(struct rd_qp *rd)
{
	return rd->user;
}

/* ---- stage_doorbell.c: clients and their doorbells ---- */

/* Starts and stops polling the doorbells of a client. A second call has no effect. */
void eng_doorbells_add(struct eng_stage *s, struct eng_client *c);
void eng_doorbells_del(struct eng_stage *s, struct eng_client *c);
/* Takes the doorbells of the hot clients and of some cold ones. Returns whether there were any. */
bool eng_doorbells_poll(struct eng_stage *s);

/* ---- stage_qp.c: QPs with work, and their messages ---- */

/* Puts the QP into the list of QPs with work, if it is not there. */
void eng_qp_activate(struct eng_stage *s, struct eng_qp *qp);
/* Serves up to ENG_QP_TURN QPs of that list, round robin. Returns whether there were any. */
bool eng_qps_run(struct eng_stage *s);
/* Marks the messages or actions `what` (enum eng_qp_pending) for the end of the turn. */
void eng_qp_pend(struct eng_stage *s, struct eng_qp *qp, uint16_t what);
/* Tries to send all pending messages. Returns true. */
bool eng_qps_pending(struct eng_stage *s);
/* Passes a message of a transport stage to its QP, or drops it when the QP has no connection. */
void eng_qp_message(struct eng_stage *s, const struct eng_dmsg *m);
/* Frees the stage's part of a QP of which nothing is in flight, and answers ENG_CE_QP_DEL. From
 * then on the control stage may free the QP. */
void eng_qp_forget(struct eng_stage *s, struct eng_qp *qp);

/* ---- stage_pages.c: QPs that wait for missing pages ---- */

/* Implements rd_ops.fetch. */
void eng_pages_fetch(void *ctx, struct rd_qp *rd, const uint8_t *at, uint64_t len);
/* Continues the QPs whose pages have been fetched. Returns whether there were any. */
bool eng_pages_poll(struct eng_stage *s);

/* ---- stage_modified.c: QPs modified by the program ---- */

/* Executes ENG_CE_QP_MOVE: sets the access rights that the program has chosen. */
void eng_modified_move(struct eng_qp *qp, const struct eng_ctl *m);
/* Executes ENG_CE_QP_FAIL: the peer did not appear in time, so work requests fail. */
void eng_modified_fail(struct eng_stage *s, struct eng_qp *qp);
/* Processes a doorbell of a QP without a connection: requests a connection from the control stage
 * (ENG_EC_QP_WAITS), or fails the work requests when the peer has gone. */
void eng_modified_posted(struct eng_stage *s, struct eng_qp *qp);
/* Processes ENG_E_CLOSED. The QP stays in its state: it fails only when it has work. */
void eng_modified_closed(struct eng_stage *s, struct eng_qp *qp);
/* Returns a QP of which nothing is in flight to its initial state, and answers ENG_CE_QP_RESET. */
void eng_qp_renew(struct eng_stage *s, struct eng_qp *qp);

/* ---- stage_iwarp.c, stage_falcon.c: the two transports (qp_ops_priv.h) ---- */

/* Fill in the functions that lib/iwarp and lib/rof call. eng_stage_iwarp_init() returns 0 or
 * -ENOMEM; eng_stage_iwarp_fini() frees what it allocated, in any case. */
int eng_stage_iwarp_init(struct eng_stage *s);
void eng_stage_iwarp_fini(struct eng_stage *s);
void eng_stage_falcon_init(struct eng_stage *s);
/* Frees the payload of a message that no QP takes. */
void eng_dmsg_drop(const struct eng_dmsg *m);

/* ---- stage_queue.c: the client's queues (rd_ops) ---- */

/* Takes the next work request of the send queue: copies it to *wr. Returns false when the queue is
 * empty. An entry that exceeds the QP's limits becomes a request with an invalid opcode. */
bool eng_sq_next(void *ctx, struct rd_qp *qp, struct rd_wr *wr);
/* Returns whether the send queue has a work request. */
bool eng_sq_pending(void *ctx, struct rd_qp *qp);
/* Publishes to the client how many send requests were taken. The stage calls it at the end of a
 * turn and before each completion, so that a client that polls a completion finds its entry free.
 */
static inline void
eng_sq_show(struct eng_qp *qp)
{
	if (qp->sq.next == qp->sq_shown)
		return;
	qp->sq_shown = qp->sq.next;
	shm_take_publish(&qp->sq);
}
/* Takes the next receive of the QP, or of its SRQ. Returns false when there is none. */
bool eng_rq_next(void *ctx, struct rd_qp *qp, struct rd_wr *wr);

/* Takes the next receive of `rq` into *wr. Returns false when the queue is empty. A receive with
 * more than `max_sge` SGEs is taken as one without any. */
bool eng_receive_next(struct shm_take *rq, uint32_t max_sge, struct rd_wr *wr);

/* ---- stage_datagram.c: datagram QPs, address handles, host connections ---- */

/* Add a datagram QP to the table of QPNs, and remove it. */
void eng_datagram_add(struct eng_stage *s, struct eng_qp *qp);
void eng_datagram_del(struct eng_stage *s, struct eng_qp *qp);
/* Executes ENG_CE_QP_MOVE for a datagram QP: sets its Q_Key, or starts it. */
void eng_datagram_move(struct eng_stage *s, struct eng_qp *qp, const struct eng_ctl *m);
/* Sets the address handle `handle` of a client (ENG_CE_AH_ADD); NULL removes it (ENG_CE_AH_DEL).
 * The control stage owns *ah. */
void eng_ah_set(struct eng_stage *s, struct eng_client *c, uint32_t handle, struct eng_ah *ah);
/* Executes ENG_CE_QP_FAIL for a host connection that is not open: the datagrams that wait for it
 * complete as lost. */
void eng_host_fail(struct eng_stage *s, struct eng_qp *qp);
/* Implement rof_ops.ud_qp, ud_chan and ud_grh. */
struct rof_qp *eng_datagram_qp(void *ctx, struct rof_chan *c, uint32_t qpn);
struct rof_chan *eng_datagram_chan(void *ctx, struct rof_qp *q, uint32_t handle);
void eng_datagram_grh(void *ctx, struct rof_chan *c, uint32_t len, uint8_t grh[ROF_GRH_LEN]);

/* ---- stage_srq.c: shared receive queues ---- */

/* Make an SRQ of an XRC domain reachable by its number, and remove an SRQ from the lists. */
void eng_srq_add(struct eng_stage *s, struct rd_srq *srq);
void eng_srq_del(struct eng_stage *s, struct rd_srq *srq);
/* Takes the next receive of an SRQ. Returns false when it is empty. */
bool eng_srq_next(struct eng_stage *s, struct rd_srq *srq, struct rd_wr *wr);
/* Arms the limit: ENG_EC_SRQ_LIMIT is sent once when fewer than `limit` receives are left; 0:
 * never. */
void eng_srq_limit(struct eng_stage *s, struct rd_srq *srq, uint32_t limit);
/* Sends the notices of SRQs below their limit, as far as notices are free. */
void eng_srqs_pending(struct eng_stage *s);
/* Implement rof_ops.xrc_next, xrc_pd and xrc_complete. */
int eng_xrc_next(void *ctx, struct rof_qp *q, uint32_t srqn, struct rd_wr *wr);
const struct rd_pd *eng_xrc_pd(void *ctx, struct rof_qp *q, uint32_t srqn);
void eng_xrc_complete(void *ctx, struct rof_qp *q, uint32_t srqn, const struct rd_wc *wc);

/* ---- stage_cq.c: completions and their events ---- */

/* Adds a completion to the sub-ring of this stage. Returns false when it is full: the completion is
 * lost, and the client receives an error event for the CQ. */
bool eng_cq_put(struct eng_stage *s, struct rd_cq *cq, const struct rd_wc *wc);
/* Implements rd_ops.complete. An overflow of the CQ aborts the connection of the QP. */
void eng_complete(void *ctx, struct rd_qp *qp, bool recv, const struct rd_wc *wc);
/* Sends the events of armed CQs that have new completions. Called at the end of a turn. */
void eng_cqs_touched(struct eng_stage *s);
/* Removes a CQ that the control stage is about to free. */
void eng_cq_forget(struct eng_stage *s, struct rd_cq *cq);

/* ---- stage_ctl.c: messages from and to the control stage ---- */

/* Executes up to ENG_BURST commands, and takes notices back. Returns whether there were any. */
bool eng_stage_ctl(struct eng_stage *s);
/* Returns a free notice about `client`, zeroed but for its header; or NULL when the control stage
 * holds all of them. */
struct eng_ctl *eng_notice_get(
	struct eng_stage *s, enum eng_ctl_type type, struct eng_client *client);
/* Sends a notice. It returns to the stage when the control stage has processed it. */
void eng_notice_send(struct eng_stage *s, struct eng_ctl *m);
/* Answers the command `m` with `status`: 0 or -errno. */
void eng_stage_answer(struct eng_stage *s, struct eng_ctl *m, int status);

#endif
