/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine stage and the functions that its files share. Only the loop that polls the stage
 * accesses this state and calls these functions; other threads read the counters alone.
 */
#ifndef SAKER_ENGINE_STAGE_PRIV_H
#define SAKER_ENGINE_STAGE_PRIV_H

#include <sys/queue.h>

#include "../../base/mem.h"
#include "../../iwarp/iwarp.h"
#include "../../rof/rof.h"
#include "../common/mbuf.h"
#include "../common/objects.h"
#include "stage.h"

struct rte_ring;

#define ENG_QP_TURN        64  /* QPs that the stage serves in a turn, at a weight of ENG_WEIGHT */
#define ENG_QP_UNSENT      2   /* the same while its transport has frames that it has not sent */
#define ENG_QP_BURST       64  /* messages or segments that a QP may send when it is served */
#define ENG_DOORBELLS      64  /* doorbells that the stage takes from a client in a turn */
#define ENG_DOORBELLS_TURN 256 /* and from all clients */
/* Invalid doorbells within a second after which a client is put out, in addition to one for each QP
 * that it may have: the doorbell of a QP may arrive after the QP is destroyed. */
#define ENG_BAD_DOORBELLS 1024
/* Prices in units of credit. A byte that is sent costs 1. A turn ends when QPs have spent
 * ENG_TURN_COST. */
#define ENG_COST_MESSAGE 256 /* a work request of a send queue */
#define ENG_COST_RECEIVE 64  /* a receive that is taken */
#define ENG_COST_VISIT   64  /* a QP that is served, and a doorbell */
#define ENG_TURN_COST    (256 * 1024)
/* A probe that fails costs a signal, so that ENG_FAULTS_TURN of them end the turn. */
#define ENG_FAULTS_TURN 4
#define ENG_COST_FAULT  (ENG_TURN_COST / ENG_FAULTS_TURN)
/* A user may request pages at this interval, and ENG_FETCH_BURST_NS / ENG_FETCH_NS at once. */
#define ENG_FETCH_NS           50000
#define ENG_FETCH_BURST_NS     (64 * ENG_FETCH_NS)
#define ENG_ROUND_QUANTUM      8192   /* credit for a turn, for a weight of 1 */
#define ENG_RATE_BURST_NS      100000 /* unused time that an idle client may send for at once */
#define ENG_RECORD_CHUNK       32     /* records that a user takes from its share at once */
#define ENG_EVENT_CLIENTS_TURN 4      /* clients with pending events that a turn checks */
#define ENG_EVENT_REST         16     /* turns without that, when all event rings were full */
#define ENG_STARVING_TURN      4      /* users that wait for records that a turn checks */
#define ENG_STARVING_WAKE      16     /* QPs of such a user that a turn wakes */
#define ENG_STARVING_REST      8      /* turns without that, when no such user could get a record */
/* A client is cold after ENG_COLD_AFTER turns without a doorbell, if more than ENG_HOT_MIN clients
 * are hot. The stage polls a cold client in every ENG_COLD_TURNS-th turn. */
#define ENG_COLD_AFTER 4096
#define ENG_COLD_TURNS 64
#define ENG_HOT_MIN    4

/* The messages that a QP has to send at the end of the turn. A message for which a ring is full or
 * no notice is free stays pending until a later turn. The messages to the transport stage go first,
 * and ENG_EC_QP_FATAL goes before ENG_EC_DISCONNECTED. */
enum eng_qp_pending {
	EQP_P_CONSUMED = 1, /* ENG_T_CONSUMED */
	EQP_P_CLOSE = 2,    /* ENG_T_CLOSE */
	EQP_P_ABORT = 4,    /* ENG_T_ABORT or ENG_T_LEAVE */
	EQP_P_RELEASE = 8,  /* ENG_T_RELEASE */
	EQP_P_FATAL = 16,   /* ENG_EC_QP_FATAL */
	EQP_P_ENDED = 32,   /* ENG_EC_DISCONNECTED */
	/* not a message: abort the connection, outside of the QP's own functions */
	EQP_P_DOOM = 64,
	EQP_P_GONE = 128,  /* the answer to ENG_CE_QP_DEL or ENG_CE_QP_RESET; last of all */
	EQP_P_WAITS = 256, /* ENG_EC_QP_WAITS */
	EQP_P_NOTICES = EQP_P_FATAL | EQP_P_ENDED | EQP_P_WAITS,
};

/* The list that eng_qp.next is in. */
enum eng_qp_place {
	EQP_IDLE,    /* none: the QP has no work */
	EQP_ACTIVE,  /* the list of the QP's client: it may have work to send */
	EQP_STARVED, /* the list of its user: it waits for a record */
};

/* The list that eng_qp.pend is in. */
enum eng_qp_queue {
	EQP_Q_NONE,
	EQP_Q_TURN,   /* s->pending */
	EQP_Q_RING,   /* s->ring_full[]: waits for room in the ring to its transport stage */
	EQP_Q_NOTICE, /* notice_qps of its client: waits for a notice */
};

TAILQ_HEAD(eng_client_list, eng_client_stage);
TAILQ_HEAD(eng_stage_user_list, eng_stage_user);

/* A user on an engine stage. */
struct eng_stage_user {
	struct eng_round round;
	struct eng_round_list clients; /* its clients with work */
	/* The records and Falcon payloads that the user holds: `allocated` less the sum of
	 * returned[].n, of which `returned_seen` is the last one read. The user has taken `share`
	 * units of s->records. */
	uint32_t allocated, returned_seen, share;
	struct eng_returned *returned; /* [0]: this stage, [1 + t]: transport stage t */
	struct eng_qp_list starved;    /* QPs that wait for a record */
	uint64_t fetch_paid;           /* ns: the time until which its requests for pages last */
	TAILQ_ENTRY(eng_stage_user) next;
	bool starving; /* in s->starving */
};

/* The work of one call of a QP's function. */
struct eng_spent {
	uint64_t bytes;
	uint32_t messages, other; /* `other` in units of credit */
	uint32_t requests;        /* Reads and Atomics that have arrived */
	bool no_record;           /* no record was free, or the user may not have more */
	bool ring_full;           /* the ring to the transport stage was full */
};

/* A cold client: the place of its next doorbell, and the turn that the doorbell will have. A look
 * at a cold client reads this record and the doorbell, and nothing else of the client. */
struct eng_cold {
	const struct shm_doorbell *bell;
	struct eng_client_stage *cs;
	uint32_t turn;
};

struct eng_stage {
	struct eng *e;
	unsigned index;
	uint64_t now;
	struct iw_stage iw;
	struct rof_stage rof;
	struct rte_mempool *store; /* mbufs of records and of Falcon payloads */
	uint32_t record_room;      /* data bytes of such an mbuf */
	/* By transport stage; NULL until there are rings. linked[nlinked]: those that have them. */
	struct rte_ring *from_transport[ENG_MAX_TRANSPORTS], *to_transport[ENG_MAX_TRANSPORTS];
	uint8_t linked[ENG_MAX_TRANSPORTS];
	unsigned nlinked;
	struct rte_ring *from_control, *to_control;
	/* Datagrams that other engine stages pass to this one (struct passed in stage_datagram.c);
	 * NULL: there is no other stage, or no Falcon. */
	struct rte_ring *passed;
	struct eng_client_list hot; /* clients whose doorbells the stage polls in each turn */
	struct eng_cold *cold;      /* those that it polls in every 64th turn; [ncold] */
	uint32_t nhot, ncold, next_cold;
	uint32_t cold_due; /* looks at cold clients that are due, in units of 1 / ENG_COLD_TURNS */
	struct eng_client_list event_clients; /* clients with pending events */
	uint32_t nevent_clients;
	STAILQ_HEAD(eng_wake_list, eng_client_stage) wakes; /* clients to wake (stage_cq.c) */
	uint32_t event_rings_full;          /* clients in a row whose event ring was full */
	uint32_t event_rest;                /* turns until the next check */
	struct eng_client_stage *next_bell; /* the hot client whose doorbells are next; or NULL */
	struct eng_stage_user *users;       /* [nusers], by eng_client.user */
	uint32_t nusers;
	struct eng_round_list rounds;  /* users with work */
	struct eng_round all;          /* of the instance: in no list */
	unsigned visits;               /* QPs that a turn serves */
	struct eng_client_stage own;   /* the payer of host connections */
	struct eng_stage_user *payer;  /* the user of the QP that is being served */
	uint64_t arrived;              /* see eng_bounds.arrived; in this turn */
	uint32_t faults;               /* probes that have failed in this turn */
	struct eng_spent spent;        /* by the QP that is being served */
	struct sk_wheel wheel;         /* timers of users and clients that are over their rates */
	struct sk_wheel fetches;       /* requests for pages of users that exceed ENG_FETCH_NS */
	struct sk_share records;       /* of s->store */
	struct eng_returned *returned; /* of all users */
	struct eng_stage_user_list starving;
	uint32_t nstarving, next_trim; /* next_trim: the next user whose share is checked */
	uint32_t starving_idle;        /* users in a row that could not get a record */
	uint32_t starving_rest;        /* turns until the next check */
	struct eng_qp_list pending;    /* QPs that got a bit of enum eng_qp_pending in this turn */
	struct eng_qp_list ring_full[ENG_MAX_TRANSPORTS];
	struct eng_cq_list touched; /* CQs with new completions */
	/* Falcon: the requests of the QP that is being served, which go to its transport stage in
	 * one message; first is NULL: none. */
	struct {
		const struct eng_qp *qp; /* NULL: requests are sent one by one */
		struct fa_buf *first, **end;
	} requests;
	/* Falcon: the answers to consecutive pulls of a message, in the same way. */
	struct {
		const struct eng_qp *qp;
		struct fa_buf *first, **end;
		uint32_t rsn, n; /* the RSN of the first, and their number */
	} answers;
	/* By the slot of the number (common/places.h), or NULL; the arrays are NULL without Falcon.
	 */
	struct rd_srq **xrc_srqs;
	struct eng_qp **datagram_qps;
	struct eng_qp **qps;  /* [nqps], by eng_qp.index; NULL: the index is free */
	uint32_t *free_index; /* [nqps]: stack of `nfree` free indices */
	uint32_t nqps, nfree;
	struct eng_ctl *notices; /* [ENG_CTL_NOTICES] */
	/* stack of `nnotices` free notices; the control stage holds the others */
	struct eng_ctl *notices_free[ENG_CTL_NOTICES];
	unsigned nnotices;
	/* [ENG_CTL_NOTICES], by the place in `notices`: of a notice that the control stage holds,
	 * the user, and for ENG_EC_MAILBOX the client, or NULL when it is gone. */
	struct {
		struct eng_client_stage *mailbox;
		uint16_t user;
	} notice_of[ENG_CTL_NOTICES];
	struct sk_share notice_share;
	struct sk_share late_share;      /* datagrams that wait for pages */
	struct eng_client_list noticing; /* clients with something that waits for a notice */
	uint32_t nnoticing;
	/* The messages and bytes of all QPs, also of those that are gone. Any thread may read the
	 * totals, relaxed. Every SUM_NS the stage adds to them what some QPs have counted, from
	 * qps[sum_next] on; no QP has ever had the index qps_used or a higher one. */
	struct eng_work totals;
	uint64_t sum_due; /* ns */
	uint32_t sum_next, qps_used;
	uint64_t counters[eng_reason_count]; /* enum eng_reason */
};

/* Returns the stage's QP to a QP of lib/rdma. */
static inline struct eng_qp *
eng_qp_of(struct rd_qp *rd)
{
	return (struct eng_qp *)rd;
}

/* With many QPs that take turns, the cache lines of each one are misses, which follow one another
 * unless the lines are prefetched while the stage serves the QPs before it. These are the distances
 * in messages, and the prefetches: of the QP, and then of its transport's part, to which the QP
 * has the pointer. */
#define ENG_AHEAD_QP   6
#define ENG_AHEAD_PART 3

static inline void
eng_qp_part_ahead(const struct eng_qp *qp)
{
	sk_prefetch(qp->iw, 3);
	sk_prefetch(qp->chan, 5);
}

/* ---- stage.c ---- */

/* Takes the rings between the stage and a transport stage into use, if they exist. Returns whether
 * they do. */
bool eng_stage_link(struct eng_stage *s, unsigned transport);

/* Adds to the stage's totals what the QP has counted since the last call. */
void eng_qp_sum(struct eng_stage *s, struct eng_qp *qp);

/* ---- stage_doorbell.c: clients and their doorbells ---- */

/* Starts and stops polling the doorbells of a client. A second call has no effect. */
void eng_doorbells_add(struct eng_stage *s, struct eng_client *c);
void eng_doorbells_del(struct eng_stage *s, struct eng_client *c);
/* Counts a doorbell of the client, or a visit of one of its QPs, that caused no work. */
static inline void
eng_doorbell_useless(struct eng_client_stage *cs)
{
	cs->useless += cs->useless < UINT8_MAX;
}
/* Takes the doorbells of the hot clients and of some cold ones. Returns whether there were any. */
bool eng_doorbells_poll(struct eng_stage *s);

/* ---- stage_round.c: users, clients and QPs with work take turns ---- */

/* Allocates the users, and initializes s->own. Returns 0 or -ENOMEM. eng_rounds_fini() frees them.
 */
int eng_rounds_init(struct eng_stage *s);
void eng_rounds_fini(struct eng_stage *s);
/* Initializes the place of a client that is added, and that of its user. */
void eng_round_add(struct eng_stage *s, struct eng_client *c);
/* Replaces the rates of a client, and those of its user. */
void eng_round_change(struct eng_stage *s, struct eng_client *c, const struct eng_rates *client,
	const struct eng_rates *user);
/* Removes a client that has no QPs any more. */
void eng_round_del(struct eng_stage *s, struct eng_client_stage *cs);
/* Puts the QP into the list of QPs with work, if it is not there. */
void eng_qp_activate(struct eng_stage *s, struct eng_qp *qp);
/* Removes the QP from the list that eng_qp.next is in. */
void eng_qp_deactivate(struct eng_stage *s, struct eng_qp *qp);
/* Serves QPs with work until ENG_QP_TURN of them were served, or ENG_TURN_COST is spent. Each user
 * gets a share of the bytes and messages in proportion to its weight, each client a share of its
 * user's, and the QPs of a client take turns. `unsent` is that of eng_stage_poll(). Returns whether
 * there were any. */
bool eng_qps_run(struct eng_stage *s, bool unsent);
/* Subtracts a cost outside the turns of a client from its credit and that of its user. Both keep as
 * much that their next turn serves a QP. */
void eng_round_owe(struct eng_client_stage *cs, int64_t cost);
/* Subtracts s->spent, the work of a received message or of a command, as eng_round_owe() does from
 * the QP's client, and resets it. The limits of rates do not count it. */
void eng_round_charge(struct eng_stage *s, struct eng_qp *qp);
/* Begins the work of a QP: it is charged to the QP's client. */
static inline void
eng_round_begin(struct eng_stage *s, const struct eng_qp *qp)
{
	s->spent = (struct eng_spent){0};
	s->payer = qp->payer->user;
}
/* Makes clients and users that were over their rate continue. */
void eng_rates_poll(struct eng_stage *s);

/* ---- stage_record.c: the shares of the records ---- */

/* Creates the shares of s->store. Returns 0 or -ENOMEM. eng_records_fini() frees them. */
int eng_records_init(struct eng_stage *s);
void eng_records_fini(struct eng_stage *s);
/* Return a record or a payload buffer for the user s->payer, or NULL when its share is used up or
 * no mbuf is free. */
struct tcp_rec *eng_record_get(struct eng_stage *s);
struct fa_buf *eng_payload_get(struct eng_stage *s);
/* Returns where the freeing of a record is counted that is passed to the transport stage of `qp`;
 * `own` is the value that eng_record_get() or eng_payload_get() has stored, or NULL. */
static inline struct eng_returned *
eng_record_sent(struct eng_returned *own, const struct eng_qp *qp)
{
	return own != NULL ? own + 1 + qp->transport : NULL;
}
/* Makes the QP wait until its user may have more records. */
void eng_record_wait(struct eng_stage *s, struct eng_qp *qp);
/* Returns records of QPs to the shares, and wakes QPs that wait for one. When no user could get
 * one, the next check comes ENG_STARVING_REST turns later. */
void eng_records_poll(struct eng_stage *s);
/* Returns whether a QP may wait for a record that was returned since the last check: the loop must
 * not sleep. */
static inline bool
eng_records_unchecked(const struct eng_stage *s)
{
	return s->nstarving > 0 && s->starving_rest < ENG_STARVING_REST;
}

/* ---- stage_qp.c: QPs and their messages ---- */

/* Marks the messages or actions `what` (enum eng_qp_pending) for the end of the turn. */
void eng_qp_pend(struct eng_stage *s, struct eng_qp *qp, uint16_t what);
/* Sends the messages that QPs have marked in this turn, and those for which a ring has room by now.
 * A QP whose ring is full costs nothing. */
void eng_qps_pending(struct eng_stage *s);
/* Sends the notices of a QP to the control stage. The QP waits again when no notice is free. */
void eng_qp_notices(struct eng_stage *s, struct eng_qp *qp);

/* ---- stage_notice.c: notices to the control stage ---- */

/* Put an object into the list of its client that waits for notices, if it is not there. */
void eng_notice_qp(struct eng_stage *s, struct eng_qp *qp);
void eng_notice_cq(struct eng_stage *s, struct rd_cq *cq);
void eng_notice_srq(struct eng_stage *s, struct rd_srq *srq);
/* Requests ENG_EC_MAILBOX, and ENG_EC_CLIENT_BAD. */
void eng_notice_mailbox(struct eng_stage *s, struct eng_client_stage *cs);
void eng_notice_bad(struct eng_stage *s, struct eng_client_stage *cs);
/* Removes a client from the list of clients that wait, unless an object of it waits. */
void eng_notice_client_idle(struct eng_stage *s, struct eng_client_stage *cs);
/* Removes a client. */
void eng_notice_client_del(struct eng_stage *s, struct eng_client_stage *cs);
/* Sends notices while there are free ones, by turns one for each client that waits. */
void eng_notices_poll(struct eng_stage *s);
/* Takes a notice back from the control stage. */
void eng_notice_put(struct eng_stage *s, struct eng_ctl *m);
/* Returns a free notice about `client`, zeroed but for its header; or NULL when the control stage
 * holds all of them, or as many as the client's user may have. */
struct eng_ctl *eng_notice_get(
	struct eng_stage *s, enum eng_ctl_type type, struct eng_client *client);
/* Sends a notice. It returns to the stage when the control stage has processed it. */
void eng_notice_send(struct eng_stage *s, struct eng_ctl *m);
/* Passes a message of a transport stage to its QP, or drops it when the QP has no connection. */
void eng_qp_message(struct eng_stage *s, const struct eng_dmsg *m);
/* Ends the connection of a QP for which the transport stage has none, and that therefore waits for
 * no ENG_E_CLOSED and sends no ENG_T_RELEASE. */
void eng_qp_unbound(struct eng_stage *s, struct eng_qp *qp);

/* ---- stage_pages.c: QPs that wait for missing pages ---- */

/* Implements rd_ops.fetch. */
void eng_pages_fetch(void *ctx, struct rd_qp *rd, const uint8_t *at, uint64_t len);
/* Continues the QPs whose pages have been fetched. Returns whether there were any. */
bool eng_pages_poll(struct eng_stage *s);
/* Submits the requests in s->fetches that are due. */
void eng_pages_due(struct eng_stage *s);

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
/* Returns a QP of which nothing is in flight to its initial state. Its turns then discard what is
 * in its queues (eng_qp_drain()), and answer ENG_CE_QP_RESET. */
void eng_qp_renew(struct eng_stage *s, struct eng_qp *qp);
/* Discards up to ENG_QP_BURST posted requests and receives of a QP with eng_qp.drains. Answers
 * ENG_CE_QP_RESET after the last ones, or when the client is dead. Returns whether there are more.
 */
bool eng_qp_drain(struct eng_stage *s, struct eng_qp *qp);

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
/* Copies the next requests as long as they are plain Writes, and takes the first `n` of them: as
 * rd_ops.sq_writes and rd_ops.sq_took. */
unsigned eng_sq_writes(void *ctx, struct rd_qp *qp, struct rd_write *out, unsigned n, bool *more);
void eng_sq_took(void *ctx, struct rd_qp *qp, unsigned n);
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

/* Allocates the tables of numbers. Returns 0 or -ENOMEM. eng_numbers_fini() frees them. */
int eng_numbers_init(struct eng_stage *s);
void eng_numbers_fini(struct eng_stage *s);
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
/* Creates s->passed. Returns 0 or -ENOMEM. eng_passed_fini() frees it. */
int eng_passed_init(struct eng_stage *s);
void eng_passed_fini(struct eng_stage *s);
/* Handles the datagrams in s->passed. Returns whether there were any. */
bool eng_passed_poll(struct eng_stage *s);
/* Implement rof_ops.ud_qp, ud_chan, ud_grh and ud_pass. */
bool eng_datagram_pass(void *ctx, uint32_t qpn, struct fa_buf *buf, const uint8_t grh[ROF_GRH_LEN]);
struct rof_qp *eng_datagram_qp(void *ctx, struct rof_chan *c, uint32_t qpn);
struct rof_chan *eng_datagram_chan(void *ctx, struct rof_qp *q, uint32_t handle);
int eng_datagram_late_take(void *ctx, struct rof_qp *q);
void eng_datagram_late_give(void *ctx, int user);
void eng_datagram_grh(void *ctx, struct rof_chan *c, uint32_t len, uint8_t grh[ROF_GRH_LEN]);

/* ---- stage_srq.c: shared receive queues ---- */

/* Make an SRQ of an XRC domain reachable by its number, and remove an SRQ from the table and the
 * lists. */
void eng_srq_add(struct eng_stage *s, struct rd_srq *srq);
void eng_srq_del(struct eng_stage *s, struct rd_srq *srq);
/* Takes the next receive of an SRQ. Returns false when it is empty. */
bool eng_srq_next(struct eng_stage *s, struct rd_srq *srq, struct rd_wr *wr);
/* Arms the limit: ENG_EC_SRQ_LIMIT is sent once when fewer than `limit` receives are left; 0:
 * never. */
void eng_srq_limit(struct eng_stage *s, struct rd_srq *srq, uint32_t limit);
/* Moves an SRQ to another ring, in which its receives have the same numbers. */
void eng_srq_move(struct rd_srq *srq, const struct shm_ring_at *to);
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
/* Sends pending events of clients whose event ring has room by now. Checks one field of
 * ENG_EVENT_CLIENTS_TURN clients, however many CQs have pending events. When all event rings were
 * full, the next check comes ENG_EVENT_REST turns later. */
void eng_cqs_pending(struct eng_stage *s);
/* Removes a CQ that the control stage is about to free. */
void eng_cq_forget(struct eng_stage *s, struct rd_cq *cq);
/* Moves the stage's sub-ring of a CQ to a larger one. */
void eng_cq_move(struct eng_stage *s, struct rd_cq *cq, const struct shm_ring_at *to);

/* ---- stage_ctl.c: messages from and to the control stage ---- */

/* Executes up to ENG_BURST commands, and takes notices back. Returns whether there were any. */
bool eng_stage_ctl(struct eng_stage *s);
/* Answers the command `m` with `status`: 0 or -errno. */
void eng_stage_answer(struct eng_stage *s, struct eng_ctl *m, int status);

#endif
