/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of lib/rof. Who owns what:
 *
 *	rof_chan.c	one Falcon connection's ULP side: RSN, outstanding transactions, credits,
 *			what waits to be said
 *	rof_qp.c	life: create, start, disconnect, the way into ERR
 *	rof_sq.c	requests under way and their completion, in order or not; flush
 *	rof_tx.c	the loop over the send queue; local requests
 *	rof_tx_push.c	Sends, Writes and datagrams out
 *	rof_tx_pull.c	Reads and Atomics out
 *	rof_tx_local.c	requests that send nothing: bind, local invalidate
 *	rof_rx.c	deliveries in: which QP, verdicts, RNR
 *	rof_rx_send.c	Sends in, and the receives that they fill in any order
 *	rof_rx_write.c	Writes in
 *	rof_rx_pull.c	Reads and Atomics in, and their answers
 *	rof_rx_done.c	at the initiator: completions and pull data
 *	rof_ud.c	datagrams in
 *	rof_hold.c	datagrams out before there is a connection
 *	rof_place.c	bytes of a packet into regions
 */
#ifndef SAKER_ROF_PRIV_H
#define SAKER_ROF_PRIV_H

#include "rof.h"

#include "../base/mem.h"

#define ROF_TXNS_MIN 16
#define ROF_TXNS_MAX 1024 /* transactions that a channel has outstanding */
#define ROF_REQS_MIN 16
#define ROF_OWED_MIN 16
/* Receives begun and not completed: each has at least one packet in Falcon's data window, or waits
 * for one there. */
#define ROF_RECVS (2 * FA_DATA_WINDOW)
/* Packets whose sequence numbers may come before that of one which is missing: as many as a channel
 * has outstanding, since Falcon's two windows move on without each other. A power of two, so that
 * numbers may wrap. */
#define ROF_SN_WINDOW   ROF_TXNS_MAX
#define ROF_SPARE_RECVS 64

/* A work request under way. */
struct rof_op {
	uint64_t total, done;
	uint32_t sge, sge_off; /* where byte `done` stands */
	uint32_t req;          /* its entry in the QP's reqs */
	uint32_t sent;         /* transactions so far */

	bool begun;            /* req is valid */
	bool checked;          /* mrs[] were looked up during this call */
	bool failing;          /* complete in error: the packet that ends it says so */
	struct rd_local local; /* bind, local invalidate */
	struct rd_mr *mrs[RD_MAX_SGE];
	struct rd_wr wr;
};

enum rof_req_flags {
	ROF_REQ_SIGNALED = 1,
	ROF_REQ_ISSUED = 2, /* all of its transactions have been handed over */
	ROF_REQ_DONE = 4,   /* and completed (ROF_ORDER_NONE: it waits for the queue to move) */
	ROF_REQ_PULL = 8,   /* counts against ORD */
};

/* A work request, from its first transaction to its completion. */
struct rof_req {
	uint64_t wr_id;
	uint32_t total, left; /* bytes; transactions outstanding */
	uint32_t inv_stag;    /* RD_READ_INV: to be invalidated when all has come */
	uint8_t opcode;       /* enum rd_opcode */
	uint8_t flags;        /* enum rof_req_flags */
	uint8_t status;       /* enum rd_status: the first error of its transactions */
	uint8_t detail;       /* of that error: ROF_VENDOR() >> 8 */
};

enum rof_txn_kind { ROF_TXN_NONE, ROF_TXN_PUSH, ROF_TXN_READ, ROF_TXN_ATOMIC };

/* A transaction of ours, by RSN. */
struct rof_txn {
	struct rof_qp *qp; /* NULL: its QP has gone or was flushed */
	uint32_t req;
	uint32_t sn;
	uint64_t sink; /* Read, Atomic: where the bytes go */
	uint32_t sink_lkey;
	uint32_t bytes; /* Read: that are wanted */
	uint32_t len;   /* of the Falcon payload: push, or pull data at most */
	uint8_t kind;   /* enum rof_txn_kind; ROF_TXN_NONE: completed out of order */
};

struct rof_chan {
	struct rof_stage *st;
	void *user;
	struct rof_qp *rc; /* NULL: datagrams, or nobody yet */
	struct rof_chan_params p;
	/* Outgoing: txns[rsn & (cap - 1)] for base <= rsn < next */
	struct rof_txn *txns;
	uint32_t txn_cap, txn_base, txn_next;
	uint32_t sn; /* of the next request (8.2) */
	struct fa_credits credits;
	/* What waits to be said, in order. */
	struct rof_msg *owed;
	uint32_t owed_cap, owed_head, owed_tail;
	/* Incoming */
	bool refused; /* an RNR was said to refuse_rsn, which has not been taken since */
	uint32_t refuse_rsn;
	uint32_t bounced_rsn;                /* the last one behind it that was sent back */
	uint8_t rnr_count;                   /* how often refuse_rsn was refused */
	uint32_t sn_next;                    /* incoming: all before it have come */
	uint64_t sn_map[ROF_SN_WINDOW / 64]; /* of those from it on, by number modulo the window */
	bool held;                           /* datagrams: there is no connection yet, */
	uint32_t hold;                       /* and so many may wait */
	/* Datagram QPs that wait for room, and where the next one is appended. */
	struct rof_qp *waiting, **waiting_end;
	struct rof_chan *next_datagrams;
};

/* A receive that is being filled. */
struct rof_recv {
	struct rof_recv *next; /* spare */
	uint64_t room, got;
	uint64_t len;     /* of the message; UINT64_MAX: its end has not come */
	uint32_t last_sn; /* of the packet that ended it */
	uint32_t srqn;    /* XRC: the queue that it is from */
	uint8_t status;   /* enum rd_status */
	struct rd_wc wc;
	struct rd_wr wr;
};

enum rof_phase { ROF_PHASE_NEW, ROF_PHASE_OPEN, ROF_PHASE_ERROR };

struct rof_qp {
	struct rd_qp *rd;
	struct rof_stage *st;
	struct rof_chan *c; /* reliable: its own */
	struct rof_op *op;  /* under way, or waiting */
	uint8_t phase;      /* enum rof_phase */
	uint8_t transport;  /* ROF_RC, ROF_XRC, ROF_UD */
	uint8_t ordering, errors;
	bool blocked; /* rof_tx() stopped for credits, ORD, entries or a fence */
	bool halted;  /* a request was wrong: none behind it is taken */
	bool told;    /* the first error has been, by a completion (ROF_ERRORS_VERBS) */
	bool close_called;
	bool unreachable; /* the first request of a flush has run out of retries */
	uint32_t peer_qpn, qkey, mtu;
	/* Requests: reqs[i & (cap - 1)] for head <= i < tail */
	struct rof_req *reqs;
	uint32_t req_cap, req_head, req_tail;
	uint32_t pulls_out;            /* Reads and Atomics that are under way */
	uint32_t send_rmsn, pull_rmsn; /* of the next one out (8.3.2) */
	/* Receives: recvs[rmsn % ROF_RECVS] for base <= rmsn < taken */
	struct rof_recv **recvs;
	uint32_t recv_base, recv_taken;
	int error;
	struct rof_info info;
	struct rof_chan *waits_for;
	struct rof_qp *next_waiting;
};

/* A request or response as it was parsed. */
struct rof_in {
	struct wire_rof h;
	struct fa_buf *buf;
	struct fa_buf *answer; /* to a pull */
	bool pull;
	bool in_sequence; /* its SN was good */
	uint32_t rsn;
	uint32_t head; /* bytes of headers: the payload starts there */
	uint32_t len;  /* bytes of payload without padding */
};

static inline void
rof_count(struct rof_stage *st, enum rof_reason reason)
{
	sk_count(st->counters, reason);
}

/* ---- rof_chan.c ---- */

bool rof_params_ok(const struct rof_chan_params *p);
/* More places for what waits to be said, and for transactions. false: no memory, or the most. */
bool rof_owed_grow(struct rof_chan *c);
bool rof_txns_grow(struct rof_chan *c);
/* Says `m`, now or when there is room. false: no memory to remember it. */
bool rof_say(struct rof_chan *c, const struct rof_msg *m);
enum rof_room {
	ROF_ROOM,       /* the credits were debited */
	ROF_ROOM_LATER, /* no credits or entries: a delivery will change that */
	ROF_ROOM_RING,  /* something waits to be said */
	ROF_ROOM_LOST,  /* a datagram that cannot even wait */
};
/* May a transaction of this size be started? `q` is told later if not. */
enum rof_room rof_chan_room(
	struct rof_chan *c, struct rof_qp *q, enum rof_txn_kind kind, uint32_t len);
/* It was not started after all, or it is done. */
void rof_chan_unroom(struct rof_chan *c, enum rof_txn_kind kind, uint32_t len);
/* Starts a transaction whose credits were taken; consumes m->buf. */
struct rof_txn *rof_chan_start(struct rof_chan *c, const struct rof_msg *m, enum rof_txn_kind kind);
/* The outstanding transaction with this RSN; NULL: none. */
struct rof_txn *rof_chan_txn(struct rof_chan *c, uint32_t rsn);
void rof_chan_done(struct rof_chan *c, uint32_t rsn, struct rof_txn *t);
/* Transactions of `q`, on whatever channel, no longer have a QP: what comes for them is thrown
 * away.
 */
void rof_forget(struct rof_qp *q);
/* rof_chan_wake() is to name `q`, a datagram QP. */
void rof_chan_wait(struct rof_chan *c, struct rof_qp *q);
void rof_users(struct rof_stage *st, int change);
/* `q` waits for no channel any more. */
void rof_chan_unwait(struct rof_qp *q);
/* Has a pull of `q` that is outstanding its sink there? */
bool rof_chan_fills(const struct rof_chan *c, const struct rof_qp *q, uint32_t stag);

/* ---- rof_sq.c ---- */

/* Room for one more entry. */
bool rof_req_room(struct rof_qp *q);
/* It becomes op->req. */
void rof_req_begin(struct rof_qp *q, struct rof_op *op);
static inline struct rof_req *
rof_req_at(struct rof_qp *q, uint32_t i)
{
	return &q->reqs[i & (q->req_cap - 1)];
}
/* All transactions of the request have been handed over. */
void rof_req_issued(struct rof_qp *q, uint32_t i);
/* One of them is done. After an error, what makes no sense any more is not started. */
void rof_req_progress(struct rof_qp *q, uint32_t i, enum rd_status status, uint32_t vendor);
void rof_sq_flush(struct rof_qp *q);
void rof_rq_flush(struct rof_qp *q);

/* ---- rof_qp.c ---- */

struct rof_op *rof_op_take(struct rof_stage *st);
void rof_op_put(struct rof_stage *st, struct rof_op *op);
/* The QP fails: flush, ERR, ops->close. */
void rof_fail(struct rof_qp *q, enum rof_reason reason);
/* The same for a fault of the peer's request: the connection stays until the peer has heard. */
void rof_fail_target(struct rof_qp *q, enum rof_reason reason);

/* ---- rof_tx*.c ---- */

enum rof_step {
	ROF_STEP_DID,   /* a transaction was started, or a request ended */
	ROF_STEP_NONE,  /* nothing to do */
	ROF_STEP_WAIT,  /* for credits, ORD, a fence */
	ROF_STEP_NOBUF, /* no buffer, or the ring is full */
	ROF_STEP_DEAD,  /* the QP has failed */
};
enum rof_step rof_push_step(struct rof_qp *q, struct rof_op *op);
enum rof_step rof_read_step(struct rof_qp *q, struct rof_op *op);
enum rof_step rof_atomic_step(struct rof_qp *q, struct rof_op *op);
enum rof_step rof_local_step(struct rof_qp *q, struct rof_op *op);
/* The work request is wrong: what happens is a matter of the error mode. */
enum rof_step rof_refuse(struct rof_qp *q, struct rof_op *op, enum rd_status status);
/* The same for one that has begun. */
enum rof_step rof_abandon(struct rof_qp *q, struct rof_op *op, enum rd_status status);
void rof_op_end(struct rof_qp *q, struct rof_op *op);

/* ---- rof_rx*.c ---- */

/* false: counted, in->h is not valid. */
bool rof_in_parse(struct rof_stage *st, struct rof_in *in, const struct fa_delivery *d);
enum rof_reason rof_fault_reason(enum rd_fault fault);
/* Has the packet with this number, and all before it, come? (ROF_ORDER_WEAK) */
bool rof_sn_reached(const struct rof_chan *c, uint32_t sn);
/* Judge and execute a request: 0, or a reason, for which the peer is told *nak. After
 * ROF_NO_RECEIVE and ROF_NO_BUFFER nothing has happened. */
enum rof_reason rof_rx_send(struct rof_qp *q, struct rof_in *in, uint8_t *nak);
enum rof_reason rof_rx_write(struct rof_qp *q, struct rof_in *in, uint8_t *nak);
enum rof_reason rof_rx_write_imm(struct rof_qp *q, struct rof_in *in);
enum rof_reason rof_rx_pull(struct rof_qp *q, struct rof_in *in, uint8_t *nak);
/* Makes the answer that says no; false: no buffer. */
bool rof_pull_refuse(struct rof_chan *c, struct rof_in *in);
void rof_rx_datagram(struct rof_chan *c, struct rof_in *in);
void rof_rx_completion(struct rof_chan *c, const struct fa_delivery *d);
void rof_rx_pull_data(struct rof_chan *c, const struct fa_delivery *d);

struct rof_recv *rof_recv_take(struct rof_stage *st);
void rof_recv_put(struct rof_stage *st, struct rof_recv *r);
/* The receive with the packet's RMSN, taking it and those before it from the queue if need be. */
enum rof_reason rof_recv_get(struct rof_qp *q, const struct rof_in *in, struct rof_recv **out);
/* A request that was to take a receive has been refused for good: the receives behind it do not
 * wait for it (complete-in-error mode). */
void rof_recv_refused(struct rof_qp *q, const struct rof_in *in);
/* Completes those all of whose packets, and all before them, have come. */
void rof_recvs_complete(struct rof_qp *q);
void rof_recvs_drop(struct rof_qp *q);

/* XRC: from here on `q` uses the memory that goes with the queue. false: it has no such queue. */
bool rof_xrc_use(struct rof_qp *q, uint32_t srqn);

/* ---- rof_hold.c ---- */

/* A message of a channel that has no connection yet: is there a place for it? */
enum rof_room rof_hold_room(struct rof_chan *c);

/* ---- rof_place.c ---- */

/* `n` bytes of the packet's payload from `off` to `addr` of a checked region. */
void rof_place(
	const struct rof_in *in, uint32_t off, const struct rd_mr *mr, uint64_t addr, uint32_t n);
/* Scatters the payload over the receive's elements, from byte `at` of the message on. false: an
 * element is wrong, nothing was placed. */
bool rof_scatter(struct rof_qp *q, struct rof_recv *r, uint64_t at, const struct rof_in *in);
/* Appends `n` bytes of a checked region to a buffer. */
void rof_gather(const struct rof_stage *st, struct fa_buf *b, const struct rd_mr *mr, uint64_t addr,
	uint32_t n);
/* Appends raw bytes; padding too. */
void rof_append(const struct rof_stage *st, struct fa_buf *b, const void *src, uint32_t n);
/* A buffer with the headers of `h`, and room for `n` bytes and their padding. */
struct fa_buf *rof_buf(struct rof_stage *st, const struct wire_rof *h, uint32_t n);
void rof_pad(const struct rof_stage *st, struct fa_buf *b, uint8_t pad);

#endif
