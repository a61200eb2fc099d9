/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of lib/rof:
 *
 *	rof_chan.c	the ULP side of one Falcon connection: RSN, outstanding transactions,
 *			credits, pending messages
 *	rof_qp.c	creation, start, disconnect, transitions to ERR
 *	rof_sq.c	outstanding requests and their completion, in order or not; flush
 *	rof_tx.c	the loop over the send queue
 *	rof_tx_fast.c	the fast path of a request that is one packet
 *	rof_tx_push.c	Sends, Writes and datagrams out
 *	rof_tx_pull.c	Reads and Atomics out
 *	rof_tx_local.c	requests that send no packet: bind, local invalidate
 *	rof_rx.c	deliveries: the QP, verdicts, RNR
 *	rof_rx_send.c	Sends in, and the receives that they fill in any order
 *	rof_rx_write.c	Writes in
 *	rof_rx_pull.c	Reads and Atomics in, and their answers
 *	rof_rx_fast.c	the fast path of a Read or Atomic of one packet, and of its answer
 *	rof_rx_done.c	at the initiator: completions and pull data
 *	rof_ud.c	datagrams in
 *	rof_hold.c	datagrams out before the connection exists
 *	rof_late.c	deliveries that wait for missing pages
 *	rof_parked.c	pulls that wait for the requests before them (weakly ordered)
 *	rof_place.c	bytes between packets and regions
 */
#ifndef SAKER_ROF_PRIV_H
#define SAKER_ROF_PRIV_H

#include <sys/queue.h>

#include "rof.h"

#include "../base/mem.h"

#define ROF_TXNS_MIN    16
#define ROF_TXNS_MAX    1024 /* outstanding transactions of a channel, at most */
#define ROF_REQS_MIN    16
#define ROF_PENDING_MIN 16
/* Receives that have begun and not completed: each has at least one packet that is in Falcon's data
 * window, or waits for it. */
#define ROF_RECVS (2 * FA_DATA_WINDOW)
/* The distance that sequence numbers may run ahead of a missing one: the outstanding transactions
 * of a channel, since Falcon's two windows move independently. A power of two, so that numbers may
 * wrap. */
#define ROF_SN_WINDOW   ROF_TXNS_MAX
#define ROF_SPARE_RECVS 64
/* Datagrams of one QP that wait for pages of the client's memory. */
#define ROF_LATE_MAX 32

/* A work request whose transactions are being started. */
struct rof_op {
	uint64_t total, done;
	uint64_t taken;        /* ns: when the request left the send queue */
	uint32_t sge, sge_off; /* position of byte `done` in the elements */
	uint32_t req;          /* its entry in the QP's reqs */
	uint32_t sent;         /* transactions started so far */

	bool begun;            /* req is valid */
	bool checked;          /* this call has looked up mrs[] */
	bool failing;          /* completes in error: the packet that ends the message carries CE */
	struct rd_local local; /* state of a bind or local invalidate */
	struct rd_mr *mrs[RD_MAX_SGE];
	struct rd_wr wr;
};

enum rof_req_flags {
	ROF_REQ_SIGNALED = 1,
	ROF_REQ_ISSUED = 2, /* all of its transactions were started */
	/* All of its transactions completed (ROF_ORDER_NONE: the entry waits until those before it
	 * are done). */
	ROF_REQ_DONE = 4,
	ROF_REQ_SAMPLED = 8, /* its latency counts */
};

/* A work request from its first transaction to its completion. */
struct rof_req {
	uint64_t wr_id;
	uint64_t taken;       /* ROF_REQ_SAMPLED: when it left the send queue, ns */
	uint32_t total, left; /* bytes; outstanding transactions */
	uint32_t inv_stag;    /* RD_READ_INV: to be invalidated when all bytes have arrived */
	uint8_t opcode;       /* enum rd_opcode */
	uint8_t flags;        /* enum rof_req_flags */
	uint8_t status;       /* enum rd_status: first error of its transactions */
	uint8_t detail;       /* of that error: ROF_VENDOR() >> 8 */
};

enum rof_txn_kind { ROF_TXN_NONE, ROF_TXN_PUSH, ROF_TXN_READ, ROF_TXN_ATOMIC };

/* An outstanding transaction of this side; the array is indexed by RSN. */
struct rof_txn {
	struct rof_qp *qp; /* NULL: the QP was destroyed or flushed */
	uint32_t req;
	uint32_t sn;
	union {
		struct {
			uint64_t sink; /* Read, Atomic: address to which the bytes go */
			uint32_t sink_lkey;
			uint32_t bytes; /* Read: requested bytes */
		};
		LIST_ENTRY(rof_txn) of_qp; /* datagram: in qp->datagrams, unless qp is NULL */
	};
	uint32_t len;   /* of the Falcon payload: the push, or the longest pull data */
	uint8_t kind;   /* enum rof_txn_kind; ROF_TXN_NONE: completed out of order */
	uint16_t cells; /* its credits: push, for transmit buffers; pull, for receive buffers */
};

/* The members that each message uses come first: one cache line where it arrives, two where it is
 * sent. */
struct rof_chan {
	_Alignas(64) struct rof_stage *st;
	struct rof_qp *rc; /* NULL: a datagram channel, or no QP yet */
	/* Outgoing: txns[rsn & (cap - 1)] for base <= rsn < next. */
	struct rof_txn *txns;
	uint32_t txn_cap, txn_base, txn_next;
	uint32_t sn;      /* sequence number of the next request (8.2) */
	uint32_t sn_next; /* all sequence numbers before it have arrived */
	/* Pending messages, in order: pending[i & (cap - 1)] for head <= i < tail. */
	uint32_t pending_head, pending_tail;
	/* The fast paths apply: ROF_RC in the strongly ordered mode, and the stage copies bytes. */
	bool plain : 1;
	/* While rof_rx() is executing: requests from taken_rsn on whose outcome FA_TAKEN is not
	 * sent yet. */
	bool in_rx : 1;
	bool refused : 1; /* refuse_rsn was answered with RNR, and has not been taken since */
	bool held : 1;    /* a datagram channel without a connection yet */
	bool is_late : 1; /* late[] has a delivery */
	struct rof_msg *pending;

	void *user;
	uint32_t pending_cap;
	struct fa_credits credits;
	uint32_t tx_cell, rx_cell; /* those of p.pools */
	uint32_t taken, taken_rsn;
	/* Deliveries of a reliable QP from the first one that waits for missing pages on:
	 * late[i & (late_cap - 1)] for late_head <= i < late_tail. */
	uint32_t late_head, late_tail, late_cap;

	struct fa_delivery *late;
	struct rof_chan_params p;
	/* ---- Incoming ---- */
	uint32_t refuse_rsn;
	uint32_t bounced_rsn; /* last RSN behind it that was refused, too */
	uint8_t rnr_count;    /* number of refusals of refuse_rsn */
	/* number of those for lack of a buffer, at most ROF_RNR_LATE - ROF_RNR_SOON */
	uint8_t buffer_waits;
	uint32_t hold; /* datagrams that may wait for the connection */
	/* sequence numbers that have arrived from sn_next on, modulo the window */
	uint64_t sn_map[ROF_SN_WINDOW / 64];
	struct rof_parked *parked; /* pulls that wait for those before them, by number */
	/* Datagram QPs that rof_chan_wake() returns: those that can continue, and those that wait
	 * for room, of which it returns the next `wakes`. */
	TAILQ_HEAD(rof_qps, rof_qp) ready, waiting;
	uint32_t wakes;
};

/* A receive that messages fill. */
struct rof_recv {
	struct rof_recv *next; /* in the list of spare ones */
	uint64_t room, got;
	uint64_t len;     /* of the message; UINT64_MAX: its end has not arrived */
	uint32_t last_sn; /* sequence number of the packet that ended it */
	uint32_t srqn;    /* XRC: the receive queue from which it was taken */
	uint8_t status;   /* enum rd_status */
	struct rd_wc wc;
	struct rd_wr wr;
};

enum rof_phase { ROF_PHASE_NEW, ROF_PHASE_OPEN, ROF_PHASE_ERROR };

/* The members that each message uses come first, in two cache lines. */
struct rof_qp {
	_Alignas(64) struct rd_qp *rd;
	struct rof_stage *st;
	struct rof_chan *c; /* a reliable QP's channel */
	struct rof_op *op;  /* the request that is being started, or waits */
	/* Requests: reqs[i & (cap - 1)] for head <= i < tail. */
	struct rof_req *reqs;
	uint32_t req_cap, req_head, req_tail;
	uint8_t phase;     /* enum rof_phase */
	uint8_t transport; /* ROF_RC, ROF_XRC, ROF_UD */
	uint8_t ordering, errors;
	bool blocked;      /* rof_tx() stopped for credits, ORD, entries or a fence */
	bool halted : 1;   /* a request was invalid: rof_tx() starts none behind it */
	bool tx_pages : 1; /* rof_tx() stopped because pages of the client's memory are missing */
	bool close_called : 1;
	struct rd_sample sample; /* which requests' latencies count */
	uint32_t mtu;

	uint32_t peer_qpn;
	uint32_t send_rmsn, pull_rmsn; /* RMSN of the next outgoing message (8.3.2) */
	uint32_t pulls_out;            /* outstanding Reads and Atomics */
	/* Receives: recvs[rmsn % ROF_RECVS] for base <= rmsn < taken. */
	struct rof_recv **recvs;
	uint32_t recv_base, recv_taken;
	struct rof_info info; /* the counts of messages and bytes are in this cache line */

	bool error_reported; /* a completion has reported the first error (ROF_ERRORS_VERBS) */
	bool unreachable;    /* the first flushed request completes with RD_RETRY_EXC_ERR */
	uint32_t qkey;
	int error;
	struct rof_chan *waits_for;
	bool is_ready; /* in waits_for->ready */
	/* In a list of waits_for, unless that is NULL. */
	TAILQ_ENTRY(rof_qp) of_waiting;
	/* Datagrams that wait for pages of the client's memory, and the place to append the next
	 * one. */
	struct rof_late *late, **late_end;
	uint32_t nlate;
	struct rof_recv
		*kept; /* the receive for the next datagram, or NULL: the next in the queue */
	LIST_HEAD(, rof_txn) datagrams; /* those outstanding, on all channels */
};
_Static_assert(offsetof(struct rof_chan, user) == 64 &&
		       offsetof(struct rof_chan, late_head) <= 128 &&
		       offsetof(struct rof_qp, peer_qpn) == 64,
	"the cache lines that each message uses");

/* A parsed request or response. */
struct rof_in {
	struct wire_rof h;
	struct fa_buf *buf;
	struct fa_buf *answer; /* pull data that answers a pull */
	/* a buffer for the answer of a pull that Falcon counts as taken; NULL: neither */
	struct fa_buf *reserved;
	bool pull;
	bool in_sequence; /* its sequence number is valid */
	uint32_t rsn;
	uint32_t head; /* bytes of headers, before the payload */
	uint32_t len;  /* bytes of payload without padding */
};

static inline void
rof_count(struct rof_stage *st, enum rof_reason reason)
{
	sk_count(st->counters, reason);
}

/* Frees the payload of a delivery, together with others, when rof_rx() ends. */
static inline void
rof_buf_done(struct rof_stage *st, struct fa_buf *buf)
{
	buf->next = st->done;
	st->done = buf;
}

/* Returns whether `n` bytes of a checked range can be accessed now. Otherwise the pages of `ahead`
 * bytes are requested, and rof_pages() follows. */
static inline bool
rof_ready(struct rof_qp *q, const struct rd_mr *mr, uint64_t addr, uint64_t n, uint64_t ahead)
{
	return n == 0 || q->st->lengths_only ||
	       rd_ready(&q->st->ops.rd, q->st->ctx, q->rd, mr, addr, n, ahead);
}

/* ---- rof_chan.c ---- */

bool rof_params_ok(const struct rof_chan_params *p);
/* Doubles the capacity of a ring of elements of `size` bytes, at first to `least`, a power of two.
 * The element i, for head <= i < tail, is at the place i & (*cap - 1). Returns the new ring and
 * frees the old one, or returns NULL and changes nothing when memory is exhausted. */
void *rof_ring_grow(
	void *ring, size_t size, uint32_t *cap, uint32_t head, uint32_t tail, uint32_t least);
/* Grow the arrays of pending messages and of transactions. Return false when memory is exhausted,
 * or at the limit. */
bool rof_pending_grow(struct rof_chan *c);
bool rof_txns_grow(struct rof_chan *c);
/* Sends `m`, now or when the ring has room. Returns false when memory for a pending message is
 * exhausted. */
bool rof_chan_send(struct rof_chan *c, const struct rof_msg *m);
enum rof_room {
	ROF_ROOM,       /* there is room, and the credits were debited */
	ROF_ROOM_LATER, /* no credits or entries: a delivery will free some */
	ROF_ROOM_RING,  /* the ring is full, or memory is exhausted */
	ROF_ROOM_LOST,  /* a datagram that cannot even wait */
};
/* Debits the credits of a transaction with a payload of `len` bytes. If there is no room, a
 * datagram QP `q` waits for rof_chan_wake(). */
enum rof_room rof_chan_room(
	struct rof_chan *c, struct rof_qp *q, enum rof_txn_kind kind, uint32_t len);
/* Returns the credits of a transaction that was not started, or that is done. */
void rof_chan_unroom(struct rof_chan *c, enum rof_txn_kind kind, uint32_t len);
/* Starts a transaction whose credits were debited; takes m->buf. */
struct rof_txn *rof_chan_start(struct rof_chan *c, const struct rof_msg *m, enum rof_txn_kind kind);
/* Returns the outstanding transaction with this RSN, or NULL. */
struct rof_txn *rof_chan_txn(struct rof_chan *c, uint32_t rsn);
void rof_chan_done(struct rof_chan *c, uint32_t rsn, struct rof_txn *t);
/* Moves a transaction to another array. */
void rof_txn_move(const struct rof_chan *c, struct rof_txn *to, struct rof_txn *from);
/* Completes a datagram as one that the network loses. The transaction has no QP afterwards, and
 * rof_chan_wake() returns the QP if it has been blocked. */
void rof_txn_lost(struct rof_chan *c, struct rof_txn *t);
/* Moves the base over the transactions that are done. */
static inline void
rof_chan_rebase(struct rof_chan *c)
{
	while (c->txn_base != c->txn_next &&
		c->txns[c->txn_base & (c->txn_cap - 1)].kind == ROF_TXN_NONE)
		c->txn_base++;
}
/* Detaches all transactions from `q`, on every channel: deliveries for them are dropped. It visits
 * only the channel of a reliable QP, and only the outstanding datagrams of a datagram QP. */
void rof_forget(struct rof_qp *q);
/* Make rof_chan_wake() return `q`, a datagram QP: when there is room, or now, since a datagram of
 * its own has ended. No effect on one that is to be returned already. */
void rof_chan_wait(struct rof_chan *c, struct rof_qp *q);
void rof_chan_ready(struct rof_chan *c, struct rof_qp *q);
void rof_users(struct rof_stage *st, int change);
/* Ends the wait of `q` for a channel. */
void rof_chan_unwait(struct rof_qp *q);
/* Returns whether an outstanding pull of `q` has its sink in the region `stag`. */
bool rof_chan_fills(const struct rof_chan *c, const struct rof_qp *q, uint32_t stag);

/* ---- rof_sq.c ---- */

/* Makes room for one more entry. Returns false when there is none. */
bool rof_reqs_grow(struct rof_qp *q);
static inline bool
rof_req_room(struct rof_qp *q)
{
	return q->req_tail - q->req_head < q->req_cap || rof_reqs_grow(q);
}
/* Adds an entry for `op`, as op->req. */
void rof_req_begin(struct rof_qp *q, struct rof_op *op);
static inline struct rof_req *
rof_req_at(struct rof_qp *q, uint32_t i)
{
	return &q->reqs[i & (q->req_cap - 1)];
}
/* Makes the latency of the request count for which rd_sample_due() returned true. `taken`: when it
 * left the send queue, ns. */
void rof_req_sample(struct rof_qp *q, struct rof_req *r, uint64_t taken);
/* Records that all transactions of the request were started. */
void rof_req_issued(struct rof_qp *q, uint32_t i);
/* Records that one of its transactions is done. After an error, the rest of the request is not
 * started where it has no purpose. */
void rof_req_progress(struct rof_qp *q, uint32_t i, enum rd_status status, uint32_t vendor);
/* Does what rof_req_progress() does after a transaction that succeeded, for a QP in ROF_PHASE_OPEN
 * whose requests complete in order. The request is not RD_READ_INV. */
void rof_req_pushed(struct rof_qp *q, uint32_t i);
/* Flush the requests, and the receives, that were taken from the queues. */
void rof_sq_flush(struct rof_qp *q);
void rof_rq_flush(struct rof_qp *q);
/* Flush up to `most` of those that are in the queues. Return whether there may be more. */
bool rof_sq_flush_queue(struct rof_qp *q, uint32_t most);
bool rof_rq_flush_queue(struct rof_qp *q, uint32_t most);

/* ---- rof_qp.c ---- */

struct rof_op *rof_op_take(struct rof_stage *st);
void rof_op_put(struct rof_stage *st, struct rof_op *op);
/* Fails the QP: flush, ERR, ops->close. */
void rof_fail(struct rof_qp *q, enum rof_reason reason);
/* Fails the QP for an invalid request of the peer. The connection stays until the peer closes it,
 * so that the NACK arrives, and the refusals of the pulls that wait (rof_parked.c). */
void rof_fail_target(struct rof_qp *q, enum rof_reason reason);

/* ---- rof_tx*.c ---- */

enum rof_step {
	ROF_STEP_DID,   /* a transaction was started, or a request ended */
	ROF_STEP_NONE,  /* no work */
	ROF_STEP_WAIT,  /* waits for credits, ORD or a fence */
	ROF_STEP_NOBUF, /* no buffer, or the ring is full */
	ROF_STEP_PAGES, /* waits for pages of the client's memory (rof_pages()) */
	ROF_STEP_DEAD,  /* the QP has failed */
};
enum rof_step rof_push_step(struct rof_qp *q, struct rof_op *op);
enum rof_step rof_read_step(struct rof_qp *q, struct rof_op *op);
enum rof_step rof_atomic_step(struct rof_qp *q, struct rof_op *op);
enum rof_step rof_local_step(struct rof_qp *q, struct rof_op *op);
/* Starts all of a request that has just been taken from the queue. Returns ROF_STEP_NONE, without
 * any effect, when the general path has to do it. */
enum rof_step rof_tx_fast(struct rof_qp *q, struct rof_op *op);
/* Starts the next requests of the queue, up to `budget`, as long as they are Writes that need no
 * general path, and info.bytes_out is below `enough`. Sets *sent to their number. Returns
 * ROF_STEP_NONE when the queue is empty then, ROF_STEP_NOBUF when there is no buffer, and
 * ROF_STEP_WAIT when the next request needs the general path and none was sent. */
enum rof_step rof_tx_run(struct rof_qp *q, unsigned budget, uint64_t enough, unsigned *sent);
/* Fails an invalid work request, as the error mode requires. */
enum rof_step rof_refuse(struct rof_qp *q, struct rof_op *op, enum rd_status status);
/* Fails a work request that has begun. */
enum rof_step rof_abandon(struct rof_qp *q, struct rof_op *op, enum rd_status status);
void rof_op_end(struct rof_qp *q, struct rof_op *op);

/* ---- rof_rx*.c ---- */

/* Parses the headers of a delivery. Returns false, and counts it, when they are invalid. */
bool rof_in_parse(struct rof_stage *st, struct rof_in *in, const struct fa_delivery *d);
enum rof_reason rof_fault_reason(enum rd_fault fault);
/* Returns whether the packet with this number and all before it have arrived (ROF_ORDER_WEAK). */
bool rof_sn_reached(const struct rof_chan *c, uint32_t sn);
/* Check and execute a request. Return ROF_NONE, or a reason with the code for the NACK in *nak.
 * After ROF_NO_RECEIVE, ROF_NO_BUFFER and ROF_NO_PAGE no state has changed. */
enum rof_reason rof_rx_send(struct rof_qp *q, struct rof_in *in, uint8_t *nak);
enum rof_reason rof_rx_write(struct rof_qp *q, struct rof_in *in, uint8_t *nak);
/* Places a packet of a Write without immediate data, when it is the next request of the strongly
 * ordered mode, nothing is refused and all its bytes lie on one page. *target: the region of the
 * Write before it, if nothing but such Writes came since. Returns false, and has changed nothing
 * else, when rof_rx_write() must process the packet. */
bool rof_rx_write_next(struct rof_chan *c, const struct fa_buf *b, struct rd_span *target);
enum rof_reason rof_rx_write_imm(struct rof_qp *q, struct rof_in *in);
enum rof_reason rof_rx_pull(struct rof_qp *q, struct rof_in *in, uint8_t *nak);
/* The fast path of a pull that is the next request of a channel with fast paths, when nothing is
 * refused and all bytes lie on one page. Returns ROF_FAST_NONE, and has changed nothing, when
 * rof_rx_pull() must process the delivery, else ROF_FAST_DONE with the answer in *answer, or
 * ROF_FAST_NOBUF when there is no buffer for it and the request must be refused for now. */
enum rof_fast { ROF_FAST_NONE, ROF_FAST_DONE, ROF_FAST_NOBUF };
enum rof_fast rof_rx_pull_next(
	struct rof_chan *c, const struct fa_delivery *d, struct fa_buf **answer);
/* Does what rof_rx_pull_data() does for the oldest transaction of a channel with fast paths, when
 * the response is as expected and its sink is on one page; takes d->buf. Returns false, and has
 * changed nothing, otherwise. */
bool rof_rx_pull_data_next(struct rof_chan *c, const struct fa_delivery *d);
/* Creates the answer that refuses a pull. Returns false when there is no buffer. */
bool rof_pull_refuse(struct rof_chan *c, struct rof_in *in);
/* Delivers a datagram or passes it to the stage of its QP. Returns whether it took in->buf. */
bool rof_rx_datagram(struct rof_chan *c, struct rof_in *in);
void rof_rx_completion(struct rof_chan *c, const struct fa_delivery *d);
/* Returns false, and has changed nothing, when the sink's pages are missing. */
bool rof_rx_pull_data(struct rof_chan *c, const struct fa_delivery *d);
/* Processes a delivery. Returns false, and has changed nothing, when pages are missing. */
bool rof_rx_one(struct rof_chan *c, const struct fa_delivery *d);
/* Returns whether rof_tx() or rof_chan_tx() has work after deliveries. */
bool rof_rx_kicks(const struct rof_chan *c);

/* Returns whether a packet with this opcode is the first one of its message. */
bool rof_begins(uint8_t opcode);
struct rof_recv *rof_recv_take(struct rof_stage *st);
void rof_recv_put(struct rof_stage *st, struct rof_recv *r);
/* Sets *out to the receive with the packet's RMSN. Takes it and those before it from the queue if
 * necessary. */
enum rof_reason rof_recv_get(struct rof_qp *q, const struct rof_in *in, struct rof_recv **out);
/* Marks the place of a request that was to take a receive and was refused for good: the receives
 * behind it do not wait for it (complete-in-error mode). */
void rof_recv_refused(struct rof_qp *q, const struct rof_in *in);
/* Completes the receives whose packets, and all before them, have arrived. */
void rof_recvs_complete(struct rof_qp *q);
void rof_recvs_drop(struct rof_qp *q);

/* XRC: makes `q` use the memory of the queue's protection domain. Returns false when its domain has
 * no such queue. */
bool rof_xrc_use(struct rof_qp *q, uint32_t srqn);

/* ---- rof_late.c ---- */

/* Keeps a delivery behind those that wait already. Fails the QP when memory is exhausted. */
void rof_late_add(struct rof_chan *c, const struct fa_delivery *d);
/* Keeps a datagram, whose bytes are copied, for the receive `r`, which it takes. Returns false, and
 * takes nothing, when too many wait or memory is exhausted. */
bool rof_late_datagram(struct rof_qp *q, const struct rof_in *in, const uint8_t grh[ROF_GRH_LEN],
	struct rof_recv *r);
/* Returns the receives of the datagrams that wait, and the one that is kept, to the stage; `flush`:
 * with a completion. */
void rof_late_end(struct rof_qp *q, bool flush);
/* Places a datagram, with the addresses before it, in its receive, and completes that. Returns
 * false when pages are missing (rof_ud.c). */
bool rof_ud_deliver(struct rof_qp *q, struct rof_recv *r, const struct rof_in *in,
	const uint8_t grh[ROF_GRH_LEN]);

/* ---- rof_parked.c ---- */

/* Returns whether all requests before a pull with this number have been executed, or, if they are
 * pushes, have arrived. */
bool rof_parked_first(const struct rof_chan *c, uint32_t sn);
/* Keeps a pull for which rof_parked_first() returned false; takes in->buf. Returns false, and takes
 * nothing, when there is no buffer for its answer. */
bool rof_parked_add(struct rof_chan *c, const struct rof_in *in);
/* Returns the pull to be executed now: the first one, if all before it have arrived or the QP has
 * failed; or NULL. */
struct rof_in *rof_parked_next(const struct rof_chan *c);
/* Frees the first pull, and the buffer that it has not used. */
void rof_parked_remove(struct rof_chan *c);
/* Executes the pulls that need not wait any more, in order (rof_rx.c). */
void rof_parked_run(struct rof_chan *c);

/* ---- rof_hold.c ---- */

/* Returns whether a datagram can wait on a channel without a connection. */
enum rof_room rof_hold_room(struct rof_chan *c);

/* ---- rof_place.c ---- */

/* Copies `n` bytes of the packet's payload from `off` on to `addr` of a checked region. */
void rof_place(
	const struct rof_in *in, uint32_t off, const struct rd_mr *mr, uint64_t addr, uint32_t n);
/* Scatters the payload over the receive's elements, from byte `at` of the message on. Places
 * nothing and returns ROF_RECEIVE_FAULT when an element is invalid, and ROF_NO_PAGE when pages of
 * one are missing. */
enum rof_reason rof_scatter(
	struct rof_qp *q, struct rof_recv *r, uint64_t at, const struct rof_in *in);
/* Appends `n` bytes of a checked region to a buffer. */
void rof_gather(const struct rof_stage *st, struct fa_buf *b, const struct rd_mr *mr, uint64_t addr,
	uint32_t n);
/* Lets a buffer that has only its headers carry its sum from here on, if the payloads of the
 * channel do and the `n` bytes that follow are many: a sum over few costs less where the frame is
 * built. */
#define ROF_SUM_MIN 256u
void rof_sum_begin(const struct rof_chan *c, struct fa_buf *b, uint32_t n);
/* For the fast paths: copies `n` bytes behind the headers of `head` bytes, which are an even
 * number, and sets the sum of both, if the payloads of the channel carry theirs. */
void rof_copy_long(
	const struct rof_chan *c, struct fa_buf *b, uint32_t head, const uint8_t *from, uint32_t n);
/* Appends `n` bytes at `src` to a buffer. */
void rof_append(const struct rof_stage *st, struct fa_buf *b, const void *src, uint32_t n);
/* Returns a buffer with the headers of `h`, and room for `n` bytes and their padding; NULL:
 * none. */
struct fa_buf *rof_buf(struct rof_stage *st, const struct wire_rof *h, uint32_t n);
/* Does the same for the answer of a pull, whose reserved buffer it takes first. */
struct fa_buf *rof_answer_buf(
	struct rof_stage *st, struct rof_in *in, const struct wire_rof *h, uint32_t n);
void rof_pad(const struct rof_stage *st, struct fa_buf *b, uint8_t pad);

#endif
