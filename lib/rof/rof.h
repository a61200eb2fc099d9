/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA over Falcon (revision 0.9): work requests become Falcon transactions, and transactions
 * become placed bytes and completions. Runs on the QP's engine stage; knows no port, no lcore, no
 * shared memory, and of Falcon only what crosses the ring to the transport stage: struct rof_msg
 * one way, struct fa_delivery the other.
 *
 * A *channel* is this side of one Falcon connection: request sequence numbers, outstanding
 * transactions, credits. A reliable QP has a channel of its own (6.6.1, 6.6.2); datagram QPs share
 * channels, one for each host that an address handle names (6.6.3).
 */
#ifndef SAKER_ROF_H
#define SAKER_ROF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/reason.h"
#include "../falcon/falcon.h"
#include "../rdma/rdma.h"
#include "../wire/rof.h"

#define ROF_MTU_MIN     256
#define ROF_MTU_MAX     8192
#define ROF_RNR_FOREVER 7   /* rnr_retry without end */
#define ROF_RNR_SOON    1   /* code of the shortest RNR delay, 10 us */
#define ROF_GRH_LEN     40  /* bytes that a datagram's receive has before the payload */
#define ROF_HELD_MAX    128 /* datagrams that wait for their connection */

struct rof_qp;
struct rof_chan;

/* 6.2 */
enum rof_ordering {
	ROF_ORDER_STRONG, /* an ordered Falcon connection: data and completions in order */
	ROF_ORDER_WEAK,   /* an unordered one: data in any order, completions in order */
	ROF_ORDER_NONE,   /* an unordered one: completions in any order; Sends and Writes with
			     Immediate up to one MTU */
};

/* 6.3 */
enum rof_errors {
	ROF_ERRORS_VERBS,    /* an error ends the QP */
	ROF_ERRORS_COMPLETE, /* it ends the request, in error; the QP goes on */
};

/* The 8 bits that a NACK brings from target to initiator; the first three as InfiniBand's NAK
 * codes. */
enum rof_nak {
	ROF_NAK_REQUEST = 1,   /* makes no sense: opcode, length, sequence, invalidation */
	ROF_NAK_ACCESS = 2,    /* rkey, rights, bounds */
	ROF_NAK_OPERATION = 3, /* the target's own fault: a receive whose elements are wrong */
	ROF_NAK_RNR = 4,       /* no receive was posted, and it was asked often enough */
	ROF_NAK_QP = 5,        /* the QP is not in a state to receive */
};

/*
 * rd_wc.vendor_err of a request that failed: the lowest byte is enum rof_reason, why the QP ended
 * (0: it goes on, or had not ended yet); above it what is known of the request itself, of its first
 * transaction that failed: how Falcon completed it, and what the target said. The answer to a pull
 * that was refused has no room for a reason (falcon-transport 8.5.3.5): ROF_VENDOR_PULL stands for
 * that.
 */
#define ROF_VENDOR(completion, nak) ((uint32_t)((completion) | (nak) << 4) << 8)
#define ROF_VENDOR_REASON(v)        ((v)&0xff)             /* enum rof_reason */
#define ROF_VENDOR_COMPLETION(v)    ((v) >> 8 & 15)        /* enum fa_completion */
#define ROF_VENDOR_NAK(v)           ((v) >> 12 & 7)        /* enum rof_nak, 0: none */
#define ROF_VENDOR_PULL             ROF_VENDOR(0, 1u << 3) /* a pull that the target refused */

/* What goes to the transport stage, in this order. */
enum rof_msg_kind {
	ROF_MSG_PUSH,      /* fa_push(buf) */
	ROF_MSG_PULL,      /* fa_pull(buf, response_len) */
	ROF_MSG_PULL_DATA, /* fa_pull_data(rsn, buf) */
	ROF_MSG_OUTCOME,   /* fa_outcome(outcome) */
};

struct rof_msg {
	uint8_t kind; /* enum rof_msg_kind */
	uint32_t response_len;
	struct fa_buf *buf;        /* of the first three */
	struct fa_outcome outcome; /* its rsn also for ROF_MSG_PULL_DATA */
};

/* All are called on the stage; they may not call back. */
struct rof_ops {
	struct rd_ops rd;
	/* A buffer with at least `room` writable bytes at data (data_len and len 0). NULL: none
	 * now. In a simulator (rof_stage.lengths_only) headers alone are written to it. */
	struct fa_buf *(*buf_get)(void *ctx, uint32_t room);
	void (*buf_put)(void *ctx, struct fa_buf *buf);
	/* false: the ring is full; it is said again at the next rof_tx(). */
	bool (*tell)(void *ctx, struct rof_chan *c, const struct rof_msg *m);
	/* A reliable QP's connection is of no use any more: it is in the error state. Comes once.
	 */
	void (*close)(void *ctx, struct rof_qp *q);
	/* XRC: takes the next receive of shared receive queue `srqn`. -ENOENT: there is none such
	 * in the QP's domain; 0: it is empty; 1: *wr. */
	int (*xrc_next)(void *ctx, struct rof_qp *q, uint32_t srqn, struct rd_wr *wr);
	/* The protection domain of that queue, whose memory a request that names it may use. NULL:
	 * there is none such. */
	const struct rd_pd *(*xrc_pd)(void *ctx, struct rof_qp *q, uint32_t srqn);
	/* A receive of that queue, which may be gone, has completed. */
	void (*xrc_complete)(void *ctx, struct rof_qp *q, uint32_t srqn, const struct rd_wc *wc);
	/* Datagrams: which QP has this number, and which channel an address handle names. NULL:
	 * none. */
	struct rof_qp *(*ud_qp)(void *ctx, struct rof_chan *c, uint32_t qpn);
	struct rof_chan *(*ud_chan)(void *ctx, struct rof_qp *q, uint32_t ah);
	/* The 40 bytes before a datagram's payload: the addresses of the channel's two hosts. */
	void (*ud_grh)(
		void *ctx, struct rof_chan *c, uint32_t payload_len, uint8_t grh[ROF_GRH_LEN]);
};

struct rof_op;
struct rof_recv;

/* One per engine stage. */
struct rof_stage {
	struct rof_ops ops;
	void *ctx;
	bool lengths_only;     /* payloads are lengths: no byte of them is read or written */
	uint64_t counters[32]; /* by enum rof_reason; rof_reason_count <= 32 */
	/* rof's own; zero at first */
	struct rof_op *spare_op;
	struct rof_recv *spare_recv;
	unsigned spare_recvs;
	struct rof_chan *datagrams; /* all datagram channels */
	unsigned users;             /* QPs and channels; what is spare is freed with the last */
};

/* ---- Channels ---- */

struct rof_chan_params {
	uint8_t transport;     /* ROF_RC, ROF_XRC, ROF_UD */
	uint8_t ordering;      /* enum rof_ordering */
	uint8_t errors;        /* enum rof_errors */
	uint32_t mtu;          /* payload bytes of a packet, ROF_MTU_MIN to ROF_MTU_MAX */
	uint32_t tx_rsn;       /* of our first request */
	struct fa_pools pools; /* for the cell sizes */
	struct fa_credits
		credits;   /* 6.5. Datagram channels have none: Falcon refuses when it is out */
	uint8_t rnr_code;  /* what we ask a sender to wait when no receive is posted: 5 bits */
	uint8_t rnr_retry; /* how often the peer wants to be asked to; 7: without end */
};

/* NULL: no memory, or parameters that make no sense: unordered with errors as verbs have them
 * (6.4), credits that do not suffice for one full packet of each kind. */
struct rof_chan *rof_chan_create(struct rof_stage *st, const struct rof_chan_params *p, void *user);
/* Buffers go back; no completions: the QP has left it, by rof_qp_destroy() or rof_closed().
 * Datagrams that are under way complete, as if the network had lost them; rof_tx() is due for each
 * QP that has any, or that waits. */
void rof_chan_destroy(struct rof_chan *c);
void *rof_chan_user(const struct rof_chan *c);
/* Datagrams: the connection is not there yet. Up to `most` of them (ROF_HELD_MAX) wait for it;
 * those beyond complete, lost. For a channel that has just been made, whose mtu is the most that it
 * may come to be. */
void rof_chan_hold(struct rof_chan *c, unsigned most);
/* It is there now. Those that wait and are longer than its mtu are lost. rof_chan_tx() is due.
 * false: no memory, or parameters that make no sense: it stays as it was. */
bool rof_chan_open(struct rof_chan *c, const struct rof_chan_params *p);
/* What Falcon delivers. Everything is placed, completed and judged before it returns. Returns true
 * if rof_tx() of a QP that waited has something to do now (rof_chan_wake() tells whose), or there
 * is something to say (rof_chan_tx()). */
bool rof_rx(struct rof_chan *c, uint64_t now, const struct fa_delivery *d);
/* Says what waits. false: the ring is full, call again. Part of rof_tx() for reliable QPs. */
bool rof_chan_tx(struct rof_chan *c);
/* The next datagram QP that waited for this channel, the longest first; NULL: no more. All of them
 * are to be asked for before any rof_tx(), after which one may wait again. */
struct rof_qp *rof_chan_wake(struct rof_chan *c);

/* ---- QPs ---- */

struct rof_qp *rof_qp_create(struct rof_stage *st, struct rd_qp *qp, uint32_t qkey);
/* Frees everything; no completions. */
void rof_qp_destroy(struct rof_qp *q);
struct rd_qp *rof_qp_rd(const struct rof_qp *q);
/* A reliable QP is connected: `c` is its own from here on (whoever made it destroys it, after the
 * QP). The QP goes to RTS. */
void rof_qp_start(struct rof_qp *q, struct rof_chan *c, uint32_t peer_qpn);
/* A datagram QP may send and receive: it goes to RTS. */
void rof_qp_start_ud(struct rof_qp *q, uint8_t ordering, uint32_t mtu);
/* What datagrams must show that it receives. */
void rof_qp_set_qkey(struct rof_qp *q, uint32_t qkey);

enum rof_tx_result {
	ROF_TX_IDLE,    /* nothing to do: wait for a doorbell or a delivery */
	ROF_TX_MORE,    /* the budget is used up: call again */
	ROF_TX_BLOCKED, /* no credits, no ORD left, or a fence: rof_rx() tells when to go on */
	ROF_TX_NOBUF,   /* buf_get or tell refused: call again soon */
};
/* Works off the send queue. `budget`: transactions. */
enum rof_tx_result rof_tx(struct rof_qp *q, uint64_t now, unsigned budget);
/* The program moves the QP to ERR, or disconnects: all is flushed, then ops->close, also when a
 * fault of the peer had moved it there already. */
void rof_disconnect(struct rof_qp *q);
/* FA_EV_DEAD, or the end of the connection for another reason: all is flushed. */
void rof_closed(struct rof_qp *q, int error);
/* Also when the client posts to a QP in ERR. */
void rof_flush(struct rof_qp *q);
/* Its peer does not answer, or never did: the first request that waits or is under way completes
 * RD_RETRY_EXC_ERR, all behind it is flushed. Also of a QP that was never started. */
void rof_unreachable(struct rof_qp *q);
/* Neither is anything under way, nor does anything wait in the send queue. */
bool rof_idle(const struct rof_qp *q);

struct rof_info {
	uint64_t msgs_out, msgs_in, bytes_out, bytes_in;
	uint32_t reads_out, outstanding; /* Reads and Atomics; transactions */
	uint64_t rnr_out, naks_out, naks_in;
};
void rof_get_info(const struct rof_qp *q, struct rof_info *out);
/* Bytes of an idle connected QP: this library's part, its channel included. */
size_t rof_qp_size(void);

#define ROF_REASONS(X)                                                                             \
	X(ROF_BAD_HEADER, SK_WARNING, "a packet whose RDMA headers cannot be")                     \
	X(ROF_BAD_OPCODE, SK_WARNING,                                                              \
		"an opcode that does not belong into this Falcon packet or QP")                    \
	X(ROF_WRONG_QP, SK_WARNING, "a request for a QP that is not this connection's (6.9)")      \
	X(ROF_WRONG_QP_RESPONSE, SK_WARNING, "a response for a QP that is not this connection's")  \
	X(ROF_QP_STATE, SK_NOTICE, "a request for a QP that cannot receive")                       \
	X(ROF_SEQUENCE, SK_WARNING, "a sequence number (SN, RMSN) or offset that cannot be")       \
	X(ROF_LENGTH, SK_WARNING, "a message of another length than its headers say")              \
	X(ROF_TOO_LONG, SK_WARNING, "a message longer than its receive")                           \
	X(ROF_NO_RECEIVE, SK_NOTICE, "no receive is posted: the peer is asked to wait")            \
	X(ROF_RNR_EXHAUSTED, SK_WARNING, "no receive was posted in all the time the peer waited")  \
	X(ROF_NO_BUFFER, SK_NORMAL, "no buffer for a response: the request is offered again")      \
	X(ROF_STAG, SK_WARNING, "no such rkey, or invalidated")                                    \
	X(ROF_STAG_PD, SK_WARNING, "an rkey of another protection domain or QP")                   \
	X(ROF_ACCESS, SK_WARNING, "a right that the rkey or the QP does not grant")                \
	X(ROF_BOUNDS, SK_WARNING, "an access outside of its region")                               \
	X(ROF_ATOMIC_UNALIGNED, SK_WARNING, "an Atomic whose target is not aligned to 64 bits")    \
	X(ROF_ATOMIC_CONTENDED, SK_WARNING, "an Atomic whose target did not stand still")          \
	X(ROF_CANNOT_INVALIDATE, SK_WARNING, "an rkey that the peer may not invalidate")           \
	X(ROF_RECEIVE_FAULT, SK_WARNING, "a receive whose elements are wrong")                     \
	X(ROF_LOCAL_FAULT, SK_WARNING, "a work request that is wrong")                             \
	X(ROF_BAD_RESPONSE, SK_WARNING, "a response that is not the one awaited")                  \
	X(ROF_REMOTE_ERROR, SK_WARNING, "the peer refused a request")                              \
	X(ROF_CONNECTION_LOST, SK_NOTICE, "Falcon gave the connection up")                         \
	X(ROF_UNREACHABLE, SK_WARNING, "the peer of a QP was not there, or has gone")              \
	X(ROF_UD_NO_QP, SK_NOTICE, "a datagram for no QP: dropped")                                \
	X(ROF_UD_QKEY, SK_WARNING, "a datagram with a wrong Q_Key: dropped")                       \
	X(ROF_UD_NO_RECEIVE, SK_NOTICE, "a datagram for which no receive was posted: dropped")     \
	X(ROF_UD_LOST, SK_NOTICE, "a datagram that could not be delivered")                        \
	X(ROF_XRC_SRQ, SK_WARNING,                                                                 \
		"a request that names a receive queue which its QP's domain does not have")

SK_REASONS_DECLARE(rof, ROF_NONE, ROF_REASONS)

#endif
