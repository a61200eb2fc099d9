/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Falcon transport (revision 0.9): packet delivery (section 9), transactions (section 8) and
 * the enforcement half of congestion control (section 10), as state machines without clock and
 * without I/O. Every call takes `now` (nanoseconds); packets come in as parsed records with a
 * payload, what is to be sent leaves through fa_ops. Knows nothing of RDMA, and nothing of PSP: who
 * owns the port seals and opens packets (psp.h) around fa_ops.output and fa_input().
 *
 * One fa_stack belongs to one transport stage: nothing here is safe to call from two threads. The
 * upper layer protocol (ULP) may live on another stage: all that passes between the two are the
 * calls below and the deliveries, each a small record, in order.
 *
 * Each connection is at once initiator and target of transactions, sender and receiver of packets.
 * Request sequence numbers (RSN) are assigned in the order in which the ULP hands over requests,
 * pushes and pulls together, from fa_params.tx_rsn on: the ULP counts along and needs no answer.
 */
#ifndef SAKER_FALCON_H
#define SAKER_FALCON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/reason.h"
#include "../wire/falcon.h"

struct fa_stack;
struct fa_conn;
struct fa_algorithm; /* rue.h */

#define FA_REQUEST_WINDOW 64 /* packets: receive windows, as the bitmaps on the wire (7.7) */
#define FA_DATA_WINDOW    128
#define FA_FLOWS_MAX      4       /* paths of a connection */
#define FA_TICK_PS        131072u /* the unit of t1..t4: 2^17 ps */

/* Nanoseconds to the 32-bit ticks of the wire: 1 tick is 131.072 ns. */
static inline uint32_t
fa_ticks(uint64_t ns)
{
	return (uint32_t)wire_falcon_ticks(ns);
}

/* A span of time in ticks, to the nearest. */
static inline uint32_t
fa_ticks_near(uint64_t ns)
{
	return (uint32_t)((ns * 1000 + FA_TICK_PS / 2) / FA_TICK_PS);
}

/* ---- Bytes ---- */

/*
 * What follows the Falcon header of one packet: ULP headers and ULP payload. It lives in the
 * owner's buffer. `len` are the bytes on the wire and in all the checks; `data_len` of them stand
 * at `data`. The two differ only in a simulator, whose payloads are lengths.
 */
struct fa_buf {
	struct fa_buf *next;
	uint8_t *data;
	uint32_t data_len;
	uint32_t len;
	void *owner;
	/* Falcon's, of a request that waits for resources. */
	uint32_t wait_rsn, wait_response_len;
	bool wait_pull;
};

/* A packet to build. */
struct fa_out {
	const struct wire_falcon *hdr; /* complete; request_len equals payload->len for a push */
	const struct fa_buf *payload;  /* NULL: none. Stays Falcon's; not to be changed */
	/* t1 of a data packet, t3 of an ACK or NACK, in ticks: goes into the IV of PSP */
	uint32_t stamp;
	/* 20 bits of path entropy: IPv6 flow label, or the low 14 bits + 49152 as UDP source port.
	 * The low two bits tell the flows of a connection apart. */
	uint32_t path;
	bool retransmission;
};

/* What stands around a received packet. */
struct fa_in {
	const struct wire_falcon *hdr;
	struct fa_buf *payload; /* ownership passes; NULL: none */
	uint32_t stamp;         /* the sender's t1 or t3: from PSP's IV */
	uint32_t path;          /* as in fa_out; acknowledgements go back on the same flow */
	uint8_t ttl;            /* IP time to live or hop limit, as received */
	bool ce;                /* ECN congestion experienced */
};

/* ---- Towards the ULP ---- */

enum fa_delivery_type {
	FA_PUSH,       /* at the target: a push request. Needs fa_outcome() */
	FA_PULL,       /* at the target: a pull request. Needs fa_outcome(), then fa_pull_data() */
	FA_PULL_DATA,  /* at the initiator: the answer to a pull, which completes it */
	FA_COMPLETION, /* at the initiator: a push is done, or a push or pull has failed */
};

/* Section 8.4.3, table of completion codes (4 bits). */
enum fa_completion {
	FA_DONE = 0,
	FA_TARGET_CIE = 1,   /* the target's ULP completed it in error; ulp_code says why */
	FA_TARGET_FATAL = 3, /* the target's ULP: not recoverable */
	FA_TARGET_CID = 4,   /* the target's ULP: this connection is not the QP's */
	FA_LOCAL_TIMEOUT = 8,
	FA_OPERATION_ERROR = 9,
	FA_DEAD_CONNECTION = 10,
	FA_LOCAL_RESOURCE = 11,
	FA_CREDIT_ERROR = 12,
	FA_REMOTE_ERROR = 13,
	FA_LOCAL_XLR = 15,
};

struct fa_delivery {
	uint8_t type;       /* enum fa_delivery_type */
	uint8_t completion; /* enum fa_completion, of FA_COMPLETION */
	uint8_t ulp_code;   /* of FA_TARGET_*: the 8 bits that the target's ULP gave */
	uint32_t rsn;
	uint32_t request_len; /* FA_PULL: bytes that the pull data shall have, at most */
	/* FA_PUSH, FA_PULL on an ordered connection: the first one after a refusal (FA_RNR). All
	 * that was delivered behind the refused one is to come back as FA_RNR, too, until this. */
	bool restart;
	struct fa_buf *buf; /* FA_PUSH, FA_PULL, FA_PULL_DATA: passes to the ULP */
};

/* What a target's ULP says to a request (8.5.3). */
enum fa_verdict {
	FA_TAKEN,
	FA_RNR,         /* no receive buffer; asks again after `rnr` */
	FA_CIE,         /* complete in error, the connection goes on */
	FA_FATAL_ERROR, /* non-recoverable */
	FA_WRONG_CID,   /* the QP is not this connection's */
};

struct fa_outcome {
	uint32_t rsn;
	uint8_t verdict;  /* enum fa_verdict */
	uint8_t rnr;      /* of FA_RNR: the 5-bit code of the timeout (7.8) */
	uint8_t ulp_code; /* of FA_CIE, FA_FATAL_ERROR */
	/* Of FA_RNR: the request comes back, Falcon offers it again. NULL otherwise. */
	struct fa_buf *buf;
};

enum fa_event {
	FA_EV_XOFF, /* no more requests for now; pull data goes on. XOFF, XON: of the whole stack,
		       the connection is NULL */
	FA_EV_XON,
	FA_EV_DEAD, /* given up (11): comes after the completions of all that was outstanding */
};

/* From inside these, the owner may call anything but fa_input(), fa_stack_*() and
 * fa_*_destroy(). */
struct fa_ops {
	/* Sends one packet. 0: taken. -EAGAIN: the port is full, Falcon asks again at the next
	 * poll. Another negative errno: lost, as on a wire. Comes from fa_stack_send() only, whose
	 * `now` is the one of `stamp`. */
	int (*output)(void *ctx, struct fa_conn *c, const struct fa_out *out);
	/* false: the way to the ULP is full. Falcon keeps the delivery, its windows close, and it
	 * offers it again at fa_deliver_resume(). */
	bool (*deliver)(void *ctx, struct fa_conn *c, const struct fa_delivery *d);
	/* A payload of either direction that Falcon needs no more. */
	void (*buf_free)(void *ctx, struct fa_buf *buf);
	void (*event)(void *ctx, struct fa_conn *c, enum fa_event ev);
};

/* ---- Configuration ---- */

/* The pools of 8.2.2: how many packet contexts and buffer cells. */
struct fa_pools {
	uint32_t tx_pkt_req, tx_buf_req;   /* ULP requests */
	uint32_t tx_pkt_data, tx_buf_data; /* ULP data: pull data */
	uint32_t rx_pkt_ulp, rx_buf_ulp;   /* completions and pull data awaited */
	uint32_t rx_pkt_net, rx_buf_net;   /* requests from the network */
	uint32_t rx_pkt_red, rx_buf_red;   /* of these, kept for head-of-line requests */
	/* Pulls of peers from their arrival until their pull data has a packet. At least as many as
	 * the ULP lets its peers have outstanding (the sum of its IRD): if fewer, two stacks can
	 * wait for each other, since pull data waits in one window with pushes. */
	uint32_t pulls;
	uint32_t tx_cell, rx_cell; /* bytes */
};

struct fa_config {
	uint32_t max_conns;
	struct fa_pools pools;
	uint64_t rto_initial_ns, rto_min_ns;
	uint64_t ulp_rto_ns;      /* of packets that were received and wait for the ULP */
	uint32_t max_retransmits; /* of a packet, then of its Resync (11); 0: no end */
	uint64_t reclaim_ns;      /* transactions sent longer ago are given up (FA_LOCAL_TIMEOUT);
				     much more than all retransmissions take; 0: never */
	uint32_t conn_requests;   /* requests of one peer that are held at once; 0: no limit */
	uint32_t conn_waiting;    /* requests of our ULP for which a connection may wait until there
				     are resources, when it has overrun them; 0: not at all */
	bool push_reoffer;        /* a refused push is offered again when its RNR timeout is over;
				     else when its retransmission comes (11 allows both) */
	uint64_t ack_delay_ns;    /* coalescing timer */
	uint32_t ack_count;       /* received packets that end it early */
	uint32_t ar_window;       /* fcwnd up to which each packet asks for an acknowledgement */
	uint32_t ar_percent;      /* beyond it, so many in a hundred */
	uint32_t ooo_threshold;   /* early retransmission: distance in PSN (9.1.4) */
	bool rack;                /* RACK-TLP instead of it */
	uint8_t ttl; /* what a peer sends packets with: forward hops = ttl - received ttl */
	uint8_t rx_thresholds_log2; /* level of the receive pools: occupancy in 2^k steps (10.2) */
	uint8_t rx_ema_shift; /* the newest occupancy counts 2^-k in the average; 0: it alone */
	uint64_t seed;        /* of the random gaps between AR bits, and of paths */
};

void fa_config_default(struct fa_config *cfg);

/* What the connection manager settled (6.2). */
struct fa_params {
	uint32_t cid, peer_cid; /* 24 bits: ours (in received packets), the peer's (in sent ones) */
	uint32_t function, peer_function; /* 24 bits: destination function, ours and the peer's */
	uint8_t protocol;                 /* 2: RDMA */
	bool ordered;                     /* 8.4.2, 8.5.2 */
	uint32_t tx_request_psn, tx_data_psn, tx_rsn; /* ours */
	uint32_t rx_request_psn, rx_data_psn, rx_rsn; /* the peer's */
	uint32_t mtu;       /* bytes of the largest payload (ULP headers and data) */
	uint32_t tx_window; /* packets outstanding in a window at most, if the peer's receive
			       windows are larger than ours; 0: as the wire's bitmaps */
	uint8_t flows;      /* 1 or 4 */
	const struct fa_algorithm *algorithm; /* NULL: Swift */
	void *user;
};

/* NULL when memory lacks or `cfg` makes no sense (smallest pools: one HoL request of each kind). */
struct fa_stack *fa_stack_create(
	const struct fa_config *cfg, const struct fa_ops *ops, void *ctx, uint64_t now);
/* Frees all payloads through ops; no deliveries, no events. */
void fa_stack_destroy(struct fa_stack *s);
/* Once per turn of the loop: timers that are due, deliveries, then up to `budget` packets, round
 * robin over connections that may send (8.3). Returns how many packets went out. */
unsigned fa_stack_poll(struct fa_stack *s, uint64_t now, unsigned budget);
/* Its two halves, for an owner whose clock moves on between what it last received and what it
 * sends: timers are to fire for what had not come by `now`, not for what lies unread at the port.
 */
void fa_stack_timers(struct fa_stack *s, uint64_t now);
unsigned fa_stack_send(struct fa_stack *s, uint64_t now, unsigned budget);
/* When it wants to be polled next though nothing arrives; SK_NEVER if never. */
uint64_t fa_stack_deadline(const struct fa_stack *s);
/* [fa_reason_count] */
const uint64_t *fa_stack_counters(const struct fa_stack *s);

/* ---- Connections ---- */

/* 0 with *out, -ENOBUFS, -EINVAL. */
int fa_conn_create(
	struct fa_stack *s, uint64_t now, const struct fa_params *p, struct fa_conn **out);
/* At once: payloads are freed, nothing is delivered any more. */
void fa_conn_destroy(struct fa_conn *c);
/* The connection is given up: outstanding requests complete with `code`, then FA_EV_DEAD. */
void fa_conn_fail(struct fa_conn *c, uint64_t now, enum fa_completion code);
void *fa_conn_user(const struct fa_conn *c);
const struct fa_params *fa_conn_params(const struct fa_conn *c);

/* A packet that passed the checks of 9.2.2.1 to 9.2.2.3 and names this connection. */
void fa_input(struct fa_conn *c, uint64_t now, const struct fa_in *in);

/* ---- From the ULP ---- */

/* Starts a transaction; takes `buf` in any case. An error comes as a completion of its RSN. A
 * request that cannot be (longer than the MTU; no resources, and fa_config.conn_waiting wait for
 * them already) leaves a hole in the order: an unordered connection goes on, an ordered one is
 * given up with that code.
 */
void fa_push(struct fa_conn *c, uint64_t now, struct fa_buf *buf);
/* `response_len`: bytes that the pull data will have at most. */
void fa_pull(struct fa_conn *c, uint64_t now, struct fa_buf *buf, uint32_t response_len);
/* The target's answer to the pull `rsn`, once it was FA_TAKEN. */
void fa_pull_data(struct fa_conn *c, uint64_t now, uint32_t rsn, struct fa_buf *buf);
/* One per FA_PUSH and FA_PULL that was delivered. A false `rsn` is counted and ignored. */
void fa_outcome(struct fa_conn *c, uint64_t now, const struct fa_outcome *o);
/* ops->deliver may be asked again. */
void fa_deliver_resume(struct fa_conn *c, uint64_t now);
/* ops->output may be asked again, or the next hop is known now. */
void fa_kick(struct fa_conn *c);

/* ---- Credits (8.2.3) ---- */

/* The six kinds. A connection has so many of each; the ULP's half of it keeps the count: it debits
 * when it hands over, and credits back when the delivery says so. */
struct fa_credits {
	uint32_t req_pkt_tx, req_buf_tx, req_pkt_rx, req_buf_rx, data_pkt_tx, data_buf_tx;
};
void fa_cost_push(const struct fa_pools *p, uint32_t len, struct fa_credits *out);
void fa_cost_pull(const struct fa_pools *p, uint32_t response_len, struct fa_credits *out);
void fa_cost_pull_data(const struct fa_pools *p, uint32_t len, struct fa_credits *out);
/* Takes `cost` from `have` if all six suffice. */
bool fa_credits_take(struct fa_credits *have, const struct fa_credits *cost);
void fa_credits_give(struct fa_credits *have, const struct fa_credits *cost);

/* ---- To look at ---- */

struct fa_info {
	uint32_t fcwnd_milli, ncwnd_milli; /* thousandths of a packet, all flows together */
	uint64_t rtt_ns, rto_ns, delay_ns; /* smoothed round trip, timeout, last fabric delay */
	uint32_t request_outstanding, data_outstanding, queued;
	uint64_t packets_out, packets_in, retransmits, early_retransmits, timeouts, probes;
	uint64_t acks_out, acks_in, nacks_out, nacks_in, resyncs_out, repaths;
	bool dead;
};
void fa_get_info(const struct fa_conn *c, struct fa_info *out);
/* Bytes of an idle connection. */
size_t fa_conn_size(void);

#define FA_REASONS(X)                                                                              \
	X(FA_DUPLICATE, SK_NORMAL, "a packet that had come before")                                \
	X(FA_OUT_OF_WINDOW, SK_NOTICE, "a packet beyond the receive window")                       \
	X(FA_STALE_ACK, SK_NORMAL, "an acknowledgement older than one that had come")              \
	X(FA_FUTURE_ACK, SK_WARNING, "an acknowledgement of packets that were never sent")         \
	X(FA_NO_RESOURCE, SK_NOTICE,                                                               \
		"a request was refused: the receive pools are in the red zone")                    \
	X(FA_DEAD, SK_NORMAL, "a packet for a connection that was given up")                       \
	X(FA_TYPE, SK_WARNING, "a packet of a type that does not belong there")                    \
	X(FA_FUNCTION, SK_WARNING, "a packet for another function of this host (7.2)")             \
	X(FA_PROTOCOL, SK_WARNING, "a packet of another upper layer protocol")                     \
	X(FA_LENGTH, SK_WARNING, "a payload longer than was asked for, or than the MTU")           \
	X(FA_NO_REQUEST, SK_WARNING, "pull data for no outstanding request")                       \
	X(FA_RSN, SK_WARNING, "a request sequence number that cannot be")                          \
	X(FA_EVICTED, SK_NOTICE,                                                                   \
		"a push that the ULP was not ready for made room; it will come again")             \
	X(FA_BAD_OUTCOME, SK_WARNING, "an outcome of a request that was not delivered")            \
	X(FA_NACK_UNKNOWN, SK_WARNING, "a NACK with a reserved code, or of a packet never sent")   \
	X(FA_RETRANSMIT, SK_NORMAL, "a packet was sent again")                                     \
	X(FA_EARLY, SK_NORMAL, "of these: because later ones had arrived")                         \
	X(FA_TIMEOUT, SK_NOTICE, "of these: because nothing came back in time")                    \
	X(FA_PROBE, SK_NORMAL, "of these: as a tail loss probe")                                   \
	X(FA_RNR_OUT, SK_NOTICE, "the ULP was not ready for a request")                            \
	X(FA_RNR_IN, SK_NOTICE, "the peer's ULP was not ready for a request")                      \
	X(FA_RESYNC_OUT, SK_NOTICE, "a Resync took the place of a packet")                         \
	X(FA_RESYNC_IN, SK_NOTICE, "a Resync came")                                                \
	X(FA_GIVEN_UP, SK_WARNING, "a connection was given up: a Resync got no answer")            \
	X(FA_RECLAIMED, SK_WARNING, "a transaction was given up: it took too long")                \
	X(FA_POOL_EMPTY, SK_NOTICE,                                                                \
		"a request of our own ULP found no resources, and waits or is refused")            \
	X(FA_DELIVER_BUSY, SK_NORMAL, "the way to the ULP was full; it is tried again")            \
	X(FA_OUTPUT_BUSY, SK_NORMAL, "the port could not take a packet; it is tried again")        \
	X(FA_ECN_CE, SK_NORMAL, "a packet came with congestion experienced")                       \
	X(FA_REPATH, SK_NORMAL, "a flow took another path (PLB, or timeouts in a row)")

SK_REASONS_DECLARE(fa, FA_NONE, FA_REASONS)

#endif
