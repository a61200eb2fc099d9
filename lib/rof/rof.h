/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA over Falcon (revision 0.9): converts work requests to Falcon transactions, and transactions
 * to placed bytes and completions. It runs on the QP's engine stage, and depends neither on a port,
 * nor on lcores, nor on shared memory. Of Falcon it uses only the records that cross the ring to
 * and from the transport stage: struct rof_msg one way, struct fa_delivery the other. Section
 * numbers in this header are those of the RDMA over Falcon specification.
 *
 * A *channel* is this side of one Falcon connection: request sequence numbers, outstanding
 * transactions, credits. A reliable QP has a channel of its own (6.6.1, 6.6.2). Datagram QPs share
 * channels, one for each host that an address handle names (6.6.3).
 *
 * All integers are in host byte order.
 */
#ifndef SAKER_ROF_H
#define SAKER_ROF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/reason.h"
#include "../falcon/falcon.h"
#include "../rdma/latency.h"
#include "../rdma/rdma.h"
#include "../wire/rof.h"

#define ROF_MTU_MIN     256
#define ROF_MTU_MAX     8192
#define ROF_RNR_FOREVER 7    /* rnr_retry without limit */
#define ROF_RNR_SOON    1    /* codes of the shortest RNR timeout, 10 us, */
#define ROF_RNR_LATE    20   /* and of 10.24 ms */
#define ROF_GRH_LEN     40   /* bytes before the payload in a datagram's receive */
#define ROF_HELD_MAX    128  /* datagrams that wait for their connection, at most */
#define ROF_LATE_ALL    2048 /* datagrams of a stage that wait for pages, at most */

struct rof_qp;
struct rof_chan;

/* The ordering modes (6.2). */
enum rof_ordering {
	ROF_ORDER_STRONG, /* on an ordered Falcon connection: data and completions in order */
	ROF_ORDER_WEAK,   /* on an unordered one: data in any order, completions in order */
	/* On an unordered one: completions in any order; Sends and Writes with Immediate up to one
	 * MTU. */
	ROF_ORDER_NONE,
};

/* The error modes (6.3). */
enum rof_errors {
	ROF_ERRORS_VERBS,    /* an error moves the QP to the error state */
	ROF_ERRORS_COMPLETE, /* an error completes the request; the QP continues */
};

/* The 8-bit codes of a NACK from target to initiator; the first three are InfiniBand's NAK
 * codes. */
enum rof_nak {
	ROF_NAK_REQUEST = 1,   /* invalid request: opcode, length, sequence, invalidation */
	ROF_NAK_ACCESS = 2,    /* rkey, access rights or bounds */
	ROF_NAK_OPERATION = 3, /* error of the target: a receive with invalid elements */
	ROF_NAK_RNR = 4,       /* no receive was posted after all retries */
	ROF_NAK_QP = 5,        /* the QP is in a state that does not receive */
};

/*
 * rd_wc.vendor_err of a failed request. The lowest byte is enum rof_reason, the reason why the QP
 * entered the error state (0: it has not). The bits above it describe the request's first
 * transaction that failed: Falcon's completion code, and the target's NACK code. The answer to a
 * pull that the target refused has no field for a reason (falcon-transport 8.5.3.5):
 * ROF_VENDOR_PULL stands for that.
 */
#define ROF_VENDOR(completion, nak) ((uint32_t)((completion) | (nak) << 4) << 8)
#define ROF_VENDOR_REASON(v)        ((v)&0xff)             /* enum rof_reason */
#define ROF_VENDOR_COMPLETION(v)    ((v) >> 8 & 15)        /* enum fa_completion */
#define ROF_VENDOR_NAK(v)           ((v) >> 12 & 7)        /* enum rof_nak, 0: none */
#define ROF_VENDOR_PULL             ROF_VENDOR(0, 1u << 3) /* the target refused a pull */

/* The messages to the transport stage, which must execute them in order. */
enum rof_msg_kind {
	ROF_MSG_PUSH,    /* fa_push(buf) */
	ROF_MSG_PULL,    /* fa_pull(buf, response_len) */
	ROF_MSG_ANSWER,  /* fa_answer(rsn, buf) */
	ROF_MSG_DATA,    /* fa_pull_data(rsn, buf): the pull's outcome was sent before */
	ROF_MSG_OUTCOME, /* fa_outcome(outcome) */
};

struct rof_msg {
	uint8_t kind; /* enum rof_msg_kind */
	uint32_t response_len;
	struct fa_buf *buf;        /* ROF_MSG_PUSH, ROF_MSG_PULL; answers, or NULL */
	struct fa_outcome outcome; /* answers use its rsn, too */
};

/* The owner's functions. All run on the engine stage; they must not call this library. */
struct rof_ops {
	struct rd_ops rd;
	/* Returns a buffer with at least `room` writable bytes at data, and with data_len and len
	 * 0; or NULL when none is free now. In a simulator (rof_stage.lengths_only) only headers
	 * are written to it. */
	struct fa_buf *(*buf_get)(void *ctx, uint32_t room);
	void (*buf_put)(void *ctx, struct fa_buf *buf);
	/* Frees a chain of buffers (fa_buf.next). NULL: buf_put does, one by one. */
	void (*bufs_put)(void *ctx, struct fa_buf *chain);
	/* Passes a message to the transport stage. Returns false when the ring is full: the next
	 * rof_tx() or rof_chan_tx() passes it again. */
	bool (*pass)(void *ctx, struct rof_chan *c, const struct rof_msg *m);
	/* Closes the connection of a reliable QP, which is in the error state. Called once. */
	void (*close)(void *ctx, struct rof_qp *q);
	/* XRC: takes the next receive of shared receive queue `srqn`. Returns 1 and sets *wr; 0
	 * when the queue is empty; -ENOENT when the QP's XRC domain has no such queue. */
	int (*xrc_next)(void *ctx, struct rof_qp *q, uint32_t srqn, struct rd_wr *wr);
	/* XRC: returns the protection domain of that queue, whose memory a request that names the
	 * queue may use; NULL when the domain has no such queue. */
	const struct rd_pd *(*xrc_pd)(void *ctx, struct rof_qp *q, uint32_t srqn);
	/* XRC: completes a receive of that queue, which may have been destroyed. */
	void (*xrc_complete)(void *ctx, struct rof_qp *q, uint32_t srqn, const struct rd_wc *wc);
	/* Datagrams: return the QP with a number, and the channel that an address handle names;
	 * NULL: none. `c` is NULL for a datagram that another stage has passed. */
	struct rof_qp *(*ud_qp)(void *ctx, struct rof_chan *c, uint32_t qpn);
	struct rof_chan *(*ud_chan)(void *ctx, struct rof_qp *q, uint32_t ah);
	/* Passes a packet for a datagram QP of another stage to that stage, which calls
	 * rof_rx_passed(), and takes `buf`. `grh`: see ud_grh(). Returns false when no other stage
	 * has the QP. NULL: there is one stage. */
	bool (*ud_pass)(
		void *ctx, uint32_t qpn, struct fa_buf *buf, const uint8_t grh[ROF_GRH_LEN]);
	/* Take and return a place for a datagram that waits for pages: late_take() returns the user
	 * of the QP's share of ROF_LATE_ALL places, or -1 when that is used up. NULL: the places
	 * have no shares. */
	int (*late_take)(void *ctx, struct rof_qp *q);
	void (*late_give)(void *ctx, int user);
	/* Writes the 40 bytes before a datagram's payload: the addresses of the channel's two
	 * hosts. */
	void (*ud_grh)(
		void *ctx, struct rof_chan *c, uint32_t payload_len, uint8_t grh[ROF_GRH_LEN]);
};

struct rof_op;
struct rof_recv;

/* The state of one engine stage. */
struct rof_stage {
	struct rof_ops ops;
	void *ctx;
	bool lengths_only;     /* payloads are lengths: their bytes are neither read nor written */
	bool general;          /* the fast paths are off, for comparisons with the general one */
	uint64_t counters[32]; /* indexed by enum rof_reason; rof_reason_count <= 32 */
	struct rd_latency latency; /* of requests; the owner sets latency.now in each turn */
	/* Private to the library; zero at first. */
	struct rof_op *spare_op;
	struct rof_recv *spare_recv;
	unsigned spare_recvs;
	unsigned late;       /* datagrams that wait for pages, of all QPs */
	unsigned users;      /* QPs and channels; the last one frees the spare objects */
	struct fa_buf *done; /* payloads that rof_rx() frees before it returns */
};

/* ---- Channels ---- */

struct rof_chan_params {
	uint8_t transport;     /* ROF_RC, ROF_XRC, ROF_UD */
	uint8_t ordering;      /* enum rof_ordering */
	uint8_t errors;        /* enum rof_errors */
	uint32_t mtu;          /* payload bytes of a packet, ROF_MTU_MIN to ROF_MTU_MAX */
	uint32_t tx_rsn;       /* RSN of the first request from this side */
	struct fa_pools pools; /* the sizes of cells, in which credits count */
	/* Credits (6.5). Datagram channels have none: Falcon refuses requests when resources are
	 * exhausted. */
	struct fa_credits credits;
	uint8_t rnr_code; /* 5-bit code of the RNR timeout when no receive is posted */
	/* RNR retries that the peer accepts; 7: no limit. */
	uint8_t rnr_retry;
	/* Long payloads carry their Internet checksum (fa_buf.sum), which the copy from the
	 * client's memory then computes. */
	bool sums;
};

/* Creates a channel. Returns NULL when memory is exhausted or `p` is invalid: an unordered channel
 * with ROF_ERRORS_VERBS (6.4), or credits for less than one full packet of each kind. */
struct rof_chan *rof_chan_create(struct rof_stage *st, const struct rof_chan_params *p, void *user);
/* Destroys a channel and returns its buffers, without completions: its QP has left it by
 * rof_qp_destroy() or rof_closed(). The caller has called rof_chan_lose() for a datagram channel,
 * and has taken all QPs from rof_chan_wake(), if any QPs remain. */
void rof_chan_destroy(struct rof_chan *c);
/* Does the same to a channel whose connection has ended, and makes it a new one with the parameters
 * `p`, with which rof_chan_create() has created it. */
void rof_chan_renew(struct rof_chan *c, const struct rof_chan_params *p);
/* Completes all outstanding datagrams of a channel that is to be destroyed or renewed, as if the
 * network had lost them: no completion will arrive for them. rof_chan_wake() then returns the QPs
 * for which the caller must call rof_tx(): those that wait for the channel, and those that were
 * blocked with a datagram on it. */
void rof_chan_lose(struct rof_chan *c);
void *rof_chan_user(const struct rof_chan *c);
/* Marks a new datagram channel as one without a connection. Up to `most` datagrams (at most
 * ROF_HELD_MAX) wait for the connection; further ones complete as lost. The channel's mtu is the
 * largest that the connection may get. */
void rof_chan_hold(struct rof_chan *c, unsigned most);
/* Gives the channel its connection. Waiting datagrams longer than p->mtu are lost. The caller must
 * call rof_chan_tx(), and rof_tx() for the QPs that rof_chan_wake() returns. Returns false, and
 * changes nothing, when memory is exhausted or `p` is invalid. */
bool rof_chan_open(struct rof_chan *c, const struct rof_chan_params *p);
/* Processes a delivery of Falcon; takes d->buf, which may be a chain (fa_buf.next): deliveries of
 * this type with consecutive RSNs from d->rsn on. Placement, completions and verdicts are done on
 * return, unless pages of the client's memory are missing (rof_pages()). Returns true when rof_tx()
 * of a QP that waited has work now (rof_chan_wake() and rof_chan_wakes() for datagram QPs), or when
 * messages wait for rof_chan_tx(). */
bool rof_rx(struct rof_chan *c, uint64_t now, const struct fa_delivery *d);
/* Passes pending messages to the transport stage. Returns false when the ring is full: the caller
 * must call again. rof_tx() of a reliable QP includes it. */
bool rof_chan_tx(struct rof_chan *c);
/* Handles a packet that another stage has passed (rof_ops.ud_pass), and takes `buf`. `grh` are the
 * 40 bytes before its payload. Returns its QP, or NULL when there is none. */
struct rof_qp *rof_rx_passed(
	struct rof_stage *st, struct fa_buf *buf, const uint8_t grh[ROF_GRH_LEN]);
/* Returns a datagram QP for which rof_tx() has work: each one that can continue because a datagram
 * of its own has ended; then, in turn, as many of those that wait for room as rof_chan_wakes() or
 * rof_chan_lose() have permitted. NULL: there is no further one. */
struct rof_qp *rof_chan_wake(struct rof_chan *c);
/* Permits rof_chan_wake() to return as many QPs that wait for room as the channel has room for
 * datagrams, but at most `most`. Returns that number. If it is not 0, the caller must call again
 * later, since a QP may not use its room. */
uint32_t rof_chan_wakes(struct rof_chan *c, uint32_t most);

/* ---- QPs ---- */

/* Creates the transport's part of `qp`. `qkey`: of a datagram QP. Returns NULL when memory is
 * exhausted. */
struct rof_qp *rof_qp_create(struct rof_stage *st, struct rd_qp *qp, uint32_t qkey);
/* Frees the QP, without completions. */
void rof_qp_destroy(struct rof_qp *q);
struct rd_qp *rof_qp_rd(const struct rof_qp *q);
/* Connects a reliable QP by the channel `c`, which belongs to the QP from then on; the creator of
 * the channel destroys it, after the QP. Moves the QP to RTS. */
void rof_qp_start(struct rof_qp *q, struct rof_chan *c, uint32_t peer_qpn);
/* Moves a datagram QP to RTS: it may send and receive. `errors` is the effect of its own faults: no
 * answer of a peer is one, as a datagram completes whether or not it arrives. ROF_ORDER_NONE
 * requires ROF_ERRORS_COMPLETE (6.4). */
void rof_qp_start_ud(struct rof_qp *q, uint8_t ordering, uint8_t errors, uint32_t mtu);
/* Sets the Q_Key that received datagrams must carry. */
void rof_qp_set_qkey(struct rof_qp *q, uint32_t qkey);

enum rof_tx_result {
	ROF_TX_IDLE, /* no work: wait for a doorbell or a delivery */
	ROF_TX_MORE, /* the budget is exhausted: call again */
	/* no credits, ORD exhausted, or a fence: rof_rx() returns when to call again; or missing
	 * pages: rof_pages() */
	ROF_TX_BLOCKED,
	ROF_TX_NOBUF, /* buf_get or pass failed: call again soon */
};
/* Processes the send queue; `budget` is a number of transactions. */
enum rof_tx_result rof_tx(struct rof_qp *q, uint64_t now, unsigned budget);
/* Continues after rd_ops.fetch: the pages are present, or could not be fetched. Meanwhile rof_tx()
 * started nothing that needed them, and rof_rx() kept the delivery that needed them and, of a
 * reliable QP, all deliveries behind it. Returns true when rof_tx() has work. */
bool rof_pages(struct rof_qp *q);
/* Drops the deliveries that a channel keeps, for missing pages or for requests before them, because
 * its connection has ended: no further message goes to the transport stage for them. */
void rof_chan_drop(struct rof_chan *c);
/* Moves the QP to ERR (by the program, or for a disconnect), flushes all requests, and calls
 * ops->close, even if an error of the peer had moved the QP to ERR before. */
void rof_disconnect(struct rof_qp *q);
/* Processes the end of the connection (FA_EV_DEAD, or another reason): flushes all requests.
 * `error` is nonzero when the connection was lost. */
void rof_closed(struct rof_qp *q, int error);
/* Flushes up to `most` requests and `most` receives in the queues of a QP in ERR. Returns whether
 * there may be more. Call it when the client posts to such a QP, and after rd_ops.qp_error() with
 * rd_ops.flush_later. */
bool rof_flush(struct rof_qp *q, uint32_t most);
/* Processes a peer that does not answer, or never did: the first request that waits or is
 * outstanding completes with RD_RETRY_EXC_ERR, all behind it are flushed. The QP need not have been
 * started. */
void rof_unreachable(struct rof_qp *q);
/* Returns whether no request is outstanding and none waits in the send queue. */
bool rof_idle(const struct rof_qp *q);

struct rof_info {
	uint64_t msgs_out, msgs_in, bytes_out, bytes_in;
};
void rof_get_info(const struct rof_qp *q, struct rof_info *out);

#define ROF_REASONS(X)                                                                             \
	X(ROF_BAD_HEADER, SK_WARNING, "a packet with invalid RDMA headers")                        \
	X(ROF_BAD_OPCODE, SK_WARNING, "an opcode that is invalid for this Falcon packet or QP")    \
	X(ROF_WRONG_QP, SK_WARNING, "a request for a QP of another connection (6.9)")              \
	X(ROF_WRONG_QP_RESPONSE, SK_WARNING, "a response for a QP of another connection")          \
	X(ROF_QP_STATE, SK_NOTICE, "a request for a QP that cannot receive")                       \
	X(ROF_SEQUENCE, SK_WARNING, "an invalid sequence number (SN, RMSN) or offset")             \
	X(ROF_LENGTH, SK_WARNING, "a message whose length contradicts its headers")                \
	X(ROF_TOO_LONG, SK_WARNING, "a message longer than its receive")                           \
	X(ROF_NO_RECEIVE, SK_NOTICE, "no receive is posted: the peer waits and repeats")           \
	X(ROF_RNR_EXHAUSTED, SK_WARNING, "no receive was posted after all RNR retries")            \
	X(ROF_NO_BUFFER, SK_NORMAL, "no buffer for a response: the request is delivered again")    \
	X(ROF_STAG, SK_WARNING, "no such rkey, or an invalidated one")                             \
	X(ROF_STAG_PD, SK_WARNING, "an rkey of another protection domain or QP")                   \
	X(ROF_ACCESS, SK_WARNING, "a right that the rkey or the QP does not grant")                \
	X(ROF_BOUNDS, SK_WARNING, "an access outside of its region")                               \
	X(ROF_ATOMIC_UNALIGNED, SK_WARNING, "an Atomic whose target is not aligned to 64 bits")    \
	X(ROF_ATOMIC_CONTENDED, SK_WARNING, "an Atomic whose target kept changing")                \
	X(ROF_CANNOT_INVALIDATE, SK_WARNING, "an rkey that the peer may not invalidate")           \
	X(ROF_RECEIVE_FAULT, SK_WARNING, "a receive with invalid elements")                        \
	X(ROF_LOCAL_FAULT, SK_WARNING, "an invalid work request")                                  \
	X(ROF_BAD_RESPONSE, SK_WARNING, "a response that does not match its request")              \
	X(ROF_REMOTE_ERROR, SK_WARNING, "the peer refused a request")                              \
	X(ROF_CONNECTION_LOST, SK_NOTICE, "the Falcon connection failed")                          \
	X(ROF_UNREACHABLE, SK_WARNING, "the peer of a QP does not answer")                         \
	X(ROF_UD_NO_QP, SK_NOTICE, "a datagram for an unknown QP: dropped")                        \
	X(ROF_UD_QKEY, SK_WARNING, "a datagram with a wrong Q_Key: dropped")                       \
	X(ROF_UD_NO_RECEIVE, SK_NOTICE, "a datagram for which no receive was posted: dropped")     \
	X(ROF_UD_LOST, SK_NOTICE, "a datagram that could not be delivered")                        \
	X(ROF_XRC_SRQ, SK_WARNING, "a request for a receive queue outside its QP's XRC domain")    \
	X(ROF_NO_IRD, SK_WARNING, "a Read or Atomic for a QP that agreed to none (IRD 0)")         \
	X(ROF_NO_PAGE, SK_NORMAL, "a delivery waited for missing pages of the client's memory")

SK_REASONS_DECLARE(rof, ROF_NONE, ROF_REASONS)

#endif
