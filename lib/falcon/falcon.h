/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Falcon transport (Falcon Transport Protocol, revision 0.9): packet delivery (section 9),
 * transactions (section 8) and the enforcement of congestion control (section 10). Section numbers
 * in this header are of that specification.
 *
 * The library consists of state machines without a clock and without I/O. Each call takes `now` in
 * nanoseconds of any monotonic clock. Packets arrive as parsed headers with a payload (fa_input());
 * packets to send leave through fa_ops.output. The library depends neither on RDMA nor on PSP: the
 * owner of the port seals and opens packets (psp.h) around fa_ops.output and fa_input().
 *
 * One fa_stack belongs to one transport stage. No function is safe to call from two threads at
 * once. The upper layer protocol (ULP) may run on another stage: the calls and deliveries below,
 * small records in order, are all that passes between the two.
 *
 * Each connection is initiator and target of transactions, and sender and receiver of packets, at
 * the same time. Falcon assigns request sequence numbers (RSN) to pushes and pulls together, in the
 * order in which the ULP submits them, beginning with fa_params.tx_rsn. The ULP counts in the same
 * way, so that no call has to return an RSN.
 *
 * All integers are in host byte order, unless a comment states otherwise.
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

/* Receive windows in packets: the bits of the bitmaps on the wire (7.7). */
#define FA_REQUEST_WINDOW 64
#define FA_DATA_WINDOW    128
#define FA_FLOWS_MAX      4       /* paths of a connection, at most */
#define FA_PATHS          32      /* entries of fa_params.paths */
#define FA_PATH_LOW       0x3fffu /* the bits of a path that are a part of the UDP source port */
#define FA_TICK_PS        131072u /* picoseconds: the unit of t1..t4, 2^17 ps */

/* Converts a time in nanoseconds to the 32-bit ticks of the wire; 1 tick is 131.072 ns. */
static inline uint32_t
fa_ticks(uint64_t ns)
{
	return (uint32_t)wire_falcon_ticks(ns);
}

/* Converts a span in nanoseconds to ticks, rounded to the nearest. */
static inline uint32_t
fa_ticks_near(uint64_t ns)
{
	return (uint32_t)((ns * 1000 + FA_TICK_PS / 2) / FA_TICK_PS);
}

/* ---- Payloads and packets ---- */

/* The bytes that follow the Falcon header of one packet: ULP headers and ULP payload, in a buffer
 * of the owner. `len` is the length in bytes on the wire, which all checks use; `data_len` bytes of
 * it stand at `data`. The two differ only in a simulator, whose payloads are lengths without
 * bytes. */
struct fa_buf {
	struct fa_buf *next;
	uint8_t *data;
	uint32_t data_len;
	uint32_t len;
	void *owner;
	/* Of a request to fa_request(): whether it is a pull, and then the largest length of the
	 * pull data, in bytes. */
	bool pull;
	/* The owner's; Falcon does not use it: the Internet checksum of the data_len bytes
	 * (sk_sum_fold()), if the owner has it; 0: not known. */
	uint16_t sum;
	uint32_t response_len;
	uint32_t wait_rsn; /* used by Falcon while the request waits for resources */
};

/* A packet that ops->output sends. */
struct fa_out {
	const struct wire_falcon *hdr; /* complete; for a push, request_len equals payload->len */
	/* NULL: no payload. Falcon keeps it: output must not change it. */
	const struct fa_buf *payload;
	/* Ticks: t1 of a data packet, t3 of an ACK or NACK. PSP's IV carries it. */
	uint32_t stamp;
	/* 20 bits of path entropy: the IPv6 flow label, or, as a UDP source port, 49152 plus the
	 * low 14 bits. If the connection has several flows, the low two bits are the flow's
	 * number. */
	uint32_t path;
	bool retransmission;
};

/* A received packet, with the values of its IP and PSP headers that Falcon uses. */
struct fa_in {
	const struct wire_falcon *hdr;
	struct fa_buf *payload; /* Falcon takes it; NULL: no payload */
	uint32_t stamp;         /* ticks: the sender's t1 or t3, from PSP's IV */
	uint32_t path;          /* as in fa_out; its acknowledgement returns on the same flow */
	uint8_t ttl;            /* IPv4 time to live or IPv6 hop limit, as received */
	bool ce;                /* the IP header carries ECN "congestion experienced" */
	/* Ticks: the packet may have waited so long for this call, in the queue of the port and
	 * behind other packets. It did not arrive earlier. 0: `now` is the time of its arrival. */
	uint32_t waited;
};

/* ---- Deliveries to the ULP ---- */

enum fa_delivery_type {
	FA_PUSH, /* At the target: a push request. The ULP answers with fa_outcome(). */
	/* At the target: a pull request. The ULP answers with fa_outcome(), then fa_pull_data(). */
	FA_PULL,
	FA_PULL_DATA,  /* At the initiator: the pull data that completes a pull. */
	FA_COMPLETION, /* At the initiator: a push is complete, or a push or a pull has failed. */
};

/* The completion codes of 8.4.3 (4 bits). */
enum fa_completion {
	FA_DONE = 0,
	/* The target's ULP completed the request in error; ulp_code is its reason. */
	FA_TARGET_CIE = 1,
	FA_TARGET_FATAL = 3, /* The target's ULP reported a non-recoverable error. */
	FA_TARGET_CID = 4,   /* The target's ULP does not accept this connection for the QP. */
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
	uint8_t completion; /* FA_COMPLETION: enum fa_completion */
	uint8_t ulp_code;   /* FA_TARGET_*: the 8-bit code from the target's ULP */
	uint32_t rsn;
	/* FA_COMPLETION with FA_DONE, if fa_config.runs is set: as many pushes with the next RSNs
	 * are complete, too. */
	uint32_t more;
	uint32_t request_len; /* FA_PULL: the largest length of the pull data, in bytes */
	/* FA_PUSH and FA_PULL on an ordered connection: this is the first delivery after the ULP
	 * answered FA_RNR. The ULP must answer FA_RNR to every request that Falcon delivered behind
	 * the refused one, until a delivery has this flag. */
	bool restart;
	struct fa_buf *buf; /* FA_PUSH, FA_PULL, FA_PULL_DATA: the ULP takes it */
};

/* The target ULP's answer to a request (8.5.3). */
enum fa_verdict {
	FA_TAKEN,
	FA_RNR,         /* no receive buffer; Falcon delivers it again after `rnr` */
	FA_CIE,         /* completed in error; the connection continues */
	FA_FATAL_ERROR, /* non-recoverable error */
	FA_WRONG_CID,   /* the QP does not belong to this connection */
};

struct fa_outcome {
	uint32_t rsn;
	uint8_t verdict;  /* enum fa_verdict */
	uint8_t rnr;      /* FA_RNR: the 5-bit code of the timeout (7.8) */
	uint8_t ulp_code; /* FA_CIE, FA_FATAL_ERROR: the 8-bit reason */
	uint16_t more;    /* FA_TAKEN: the same outcome for this number of RSNs that follow */
	/* FA_RNR: the payload of the request, which Falcon takes back and delivers again. Otherwise
	 * NULL. */
	struct fa_buf *buf;
};

enum fa_event {
	/* The ULP must stop submitting requests; pull data may continue. FA_EV_XOFF and FA_EV_XON
	 * apply to the whole stack: their connection is NULL. */
	FA_EV_XOFF,
	FA_EV_XON,
	/* The connection has failed (11). The event follows the completions of all outstanding
	 * requests. */
	FA_EV_DEAD,
};

/* The owner's functions. They may call every function of this header but fa_input(), fa_stack_*()
 * and fa_conn_destroy(). */
struct fa_ops {
	/*
	 * Sends one packet. Returns 0 when the packet is sent; -EAGAIN when the port is full
	 * (Falcon calls again at its next poll); another negative errno when the packet is lost,
	 * which Falcon treats as a loss on the wire. Only fa_stack_send() calls it, with the `now`
	 * from which `stamp` derives.
	 */
	int (*output)(void *ctx, struct fa_conn *c, const struct fa_out *out);
	/* Delivers `d` to the ULP. Returns false when the queue to the ULP is full: Falcon keeps
	 * the delivery, lets its windows close, and delivers again after fa_deliver_resume(). */
	bool (*deliver)(void *ctx, struct fa_conn *c, const struct fa_delivery *d);
	/* Frees a payload of either direction. */
	void (*buf_free)(void *ctx, struct fa_buf *buf);
	void (*event)(void *ctx, struct fa_conn *c, enum fa_event ev);
	/* Reports a rare event of a connection (enum fa_reason), which has been counted: the cause
	 * of a retransmission, RNR, resync, a changed path, the end. It only takes a note. NULL:
	 * nobody takes notes. */
	void (*trace)(void *ctx, struct fa_conn *c, unsigned reason);
	/* Frees a chain of payloads (fa_buf.next). NULL: buf_free does, one by one. */
	void (*bufs_free)(void *ctx, struct fa_buf *chain);
};

/* ---- Configuration ---- */

/* The resource pools of 8.2.2: numbers of packet contexts (_pkt) and of buffer cells (_buf). */
struct fa_pools {
	uint32_t tx_pkt_req, tx_buf_req;   /* requests of the local ULP */
	uint32_t tx_pkt_data, tx_buf_data; /* pull data of the local ULP */
	uint32_t rx_pkt_ulp, rx_buf_ulp;   /* completions and pull data that requests will need */
	uint32_t rx_pkt_net, rx_buf_net;   /* requests from the network */
	/* the part of *_net that is reserved for head-of-line requests */
	uint32_t rx_pkt_red, rx_buf_red;
	/*
	 * The pulls of peers, from their arrival until their pull data has a packet context. The
	 * value must be at least the number of pulls that the ULP lets its peers have outstanding
	 * (the sum of its IRD). With fewer, two stacks can wait for each other, since pull data
	 * shares its window with pushes.
	 */
	uint32_t pulls;
	uint32_t tx_cell, rx_cell; /* bytes of a cell */
};

/* The users among whom the pools are shared. Each of the first `reserved` users has a minimum of
 * every pool that no other user can take; the rest is common (base/share.h). */
struct fa_shares {
	uint32_t users;        /* 0 or 1: there is only user 0, which can take all of each pool */
	uint32_t reserved;     /* users that have a minimum */
	uint8_t minimum, most; /* percentages of a pool; `most` 0: all */
};

struct fa_config {
	uint32_t max_conns;
	struct fa_pools pools;
	struct fa_shares shares;
	/* rto_max_ns is the limit of doubled timeouts; at least rto_min_ns applies. */
	uint64_t rto_initial_ns, rto_min_ns, rto_max_ns;
	/* retransmission timeout of packets that the peer has received and its ULP has not
	 * acknowledged */
	uint64_t ulp_rto_ns;
	uint32_t max_retransmits; /* of a packet, then of its Resync (11); 0: no limit */
	/* Age at which a transaction that was sent fails with FA_LOCAL_TIMEOUT; much longer than
	 * all retransmissions take. 0: never. */
	uint64_t reclaim_ns;
	uint32_t conn_requests; /* requests of one peer that Falcon holds at once; 0: no limit */
	/* The share of one connection: pulls of its peer, from their arrival until the peer has
	 * acknowledged their data, and packet contexts of pull data. 0: no limit */
	uint32_t conn_pulls, conn_data;
	/* Requests of the local ULP that one connection may queue while resources are exhausted; 0:
	 * none. */
	uint32_t conn_waiting;
	/* Delivers a push that the ULP refused again when its RNR timeout is over; otherwise when
	 * its retransmission arrives (11 permits both). */
	bool push_reoffer;
	uint64_t ack_delay_ns;  /* coalescing timer of acknowledgements */
	uint32_t ack_count;     /* received packets that end the coalescing early */
	uint32_t ar_window;     /* fcwnd, in packets, up to which each burst ends with an AR bit */
	uint32_t ar_percent;    /* percentage of packets with the AR bit beyond ar_window */
	uint32_t ooo_threshold; /* early retransmission: distance in PSN (9.1.4) */
	bool rack;              /* RACK-TLP instead of the distance in PSN */
	/* Initial TTL of the peer's packets: forward hops = ttl - received ttl. */
	uint8_t ttl;
	/* The receive level (10.2) is the pools' occupancy in steps of 2^k cells. */
	uint8_t rx_thresholds_log2;
	/* weight 2^-k of the newest occupancy in the average; 0: no averaging */
	uint8_t rx_ema_shift;
	uint64_t seed; /* of the random gaps between AR bits, and of paths */
	/* The ULP accepts fa_delivery.more. */
	bool runs;
	/* Switches the fast paths off, for comparisons with the general one. */
	bool general;
};

void fa_config_default(struct fa_config *cfg);

/* The parameters of a connection, from the connection manager (6.2). */
struct fa_params {
	uint32_t cid, peer_cid;           /* 24 bits: of received packets, of sent packets */
	uint32_t function, peer_function; /* 24 bits: destination function, local and the peer's */
	uint16_t mtu;                     /* largest payload in bytes (ULP headers and data) */
	/* Pulls that the peer may have outstanding (IRD of RDMA): further ones get a NACK for
	 * resources. 0: no limit but fa_config.conn_pulls. */
	uint16_t pulls;
	/* Largest number of outstanding packets in a window, for a peer whose receive windows are
	 * larger than the bitmaps on the wire; 0: the sizes of those bitmaps. */
	uint16_t tx_window;
	uint8_t protocol;  /* Protocol Type on the wire; 2: RDMA */
	bool ordered : 1;  /* RSN order at initiator (8.4.2) and target (8.5.2) */
	uint8_t flows : 3; /* 1 or 4 */
	/* [FA_PATHS], valid as long as the connection: the values that the low 14 bits of the paths
	 * of all packets may have, each in the low bits of its entry; the other bits of an entry do
	 * not count. The low two bits of entry i are those of i. NULL: any values. */
	const uint16_t *paths;
	const struct fa_algorithm *algorithm; /* NULL: Swift */
	void *user;
	uint32_t tx_request_psn, tx_data_psn, tx_rsn; /* first values that this end sends */
	uint32_t rx_request_psn, rx_data_psn, rx_rsn; /* first values that the peer sends */
};

/* Creates a stack. `cfg` and `ops` are copied. Returns NULL when memory is exhausted, or when `cfg`
 * is invalid (each pool must hold at least one head-of-line request of its kind). */
struct fa_stack *fa_stack_create(
	const struct fa_config *cfg, const struct fa_ops *ops, void *ctx, uint64_t now);
/* Frees the stack with its connections, and all payloads through ops->buf_free; it makes no
 * deliveries and no events. */
void fa_stack_destroy(struct fa_stack *s);
/* Runs one turn: timers that are due, deliveries, then up to `budget` packets, round robin over the
 * connections that may send (8.3). Returns the number of packets sent. */
unsigned fa_stack_poll(struct fa_stack *s, uint64_t now, unsigned budget);
/* The two parts of fa_stack_poll(), for an owner whose clock advances between the packets that it
 * received last and those that it sends: a timer must fire only for packets that had not arrived by
 * `now`, and not for packets that lie unread at the port. */
void fa_stack_timers(struct fa_stack *s, uint64_t now);
unsigned fa_stack_send(struct fa_stack *s, uint64_t now, unsigned budget);
/* Reports that the owner's loop did not run for `gap` ns before `now`: the scheduler ran another
 * thread, or a turn took long. Packets are retransmitted when they are due, but this time does not
 * count for the decision to give the peer up, since nobody observed its silence. The owner runs the
 * timers after it has received what arrived meanwhile. Called before all other functions that
 * receive `now`. */
void fa_stack_stopped(struct fa_stack *s, uint64_t gap);
/* Reports whether few buffers are free that packets are received into. While it is so, a payload
 * that would have to wait for others is dropped, as if it were lost: of requests, only those at the
 * head of their connection's line are taken, and of pull data, that of the oldest request. */
void fa_stack_scarce(struct fa_stack *s, bool scarce);
/* Reports the time in ns for which the queue of the port was never found empty. A host that is too
 * slow for what it receives has a backlog that persists: its acknowledgements then report a higher
 * receive level (10.2), at which the peers do not increase ncwnd or, if packets are missing, reduce
 * it. */
void fa_stack_backlog(struct fa_stack *s, uint64_t ns);
/* Returns whether a connection has packets that wait only for room at the port. */
bool fa_stack_ready(const struct fa_stack *s);
/* Returns the time (ns) of the next poll that is necessary though no packet arrives, or
 * SK_NEVER. */
uint64_t fa_stack_deadline(const struct fa_stack *s);
/* Returns the counters, an array of fa_reason_count elements that the stack owns. */
const uint64_t *fa_stack_counters(const struct fa_stack *s);

/* ---- Connections ---- */

/* Creates a connection in *out. Returns 0, -ENOBUFS when the stack has fa_config.max_conns
 * connections, or -EINVAL when `p` is invalid, or the pools or a share cannot hold one request of
 * its MTU. */
int fa_conn_create(
	struct fa_stack *s, uint64_t now, const struct fa_params *p, struct fa_conn **out);
/* Sets the first path (20 bits) of all flows, but for the bits that fa_params.paths or the number
 * of the flow determines. The owner calls it before the first packet: else the first paths are
 * random, as all later ones. */
void fa_conn_path(struct fa_conn *c, uint32_t path);
/* Sets the user of whose shares the connection takes, before its first transaction; else it is user
 * 0. Returns 0, or -EINVAL when there is no such user (fa_config.shares). */
int fa_conn_share(struct fa_conn *c, uint32_t user);
/* Destroys the connection immediately: frees its payloads, and makes no more deliveries for it. */
void fa_conn_destroy(struct fa_conn *c);
/* Fails the connection: the next poll completes outstanding requests with `code`, then sends
 * FA_EV_DEAD. */
void fa_conn_fail(struct fa_conn *c, uint64_t now, enum fa_completion code);
void *fa_conn_user(const struct fa_conn *c);

/* Processes a packet for this connection that passed the checks of 9.2.2.1 to 9.2.2.3. Takes
 * in->payload. */
void fa_input(struct fa_conn *c, uint64_t now, const struct fa_in *in);

/*
 * A run: consecutive received packets of one connection and of one type, which go to the ULP
 * together: pushes, pull requests, or pull data. They have the same effects as calls of fa_input(),
 * but each costs a fraction of one. Between fa_run_begin() and fa_run_done(), the owner calls no
 * other function of the stack but those below; the deliveries of these packets to the ULP, with
 * consecutive RSNs, are its own. ops->deliver is not called for them.
 */
struct fa_run {
	uint32_t n;   /* packets so far */
	uint32_t rsn; /* of the first one */
	uint8_t type; /* enum falcon_type */
	/* Private: what acknowledgements report of the last packet; the value of all packets for
	 * the coalescing counter, and whether one has the AR bit. */
	uint8_t ttl;
	bool ar;
	uint16_t halves;
	uint32_t stamp, path, waited;
	/* Private, of pushes: the number that fits for sure, as long as each is as `next` expects;
	 * those that were accepted for that reason and are not recorded yet, and their AR bits. */
	struct wire_falcon_plain next;
	uint32_t room, fresh;
	uint64_t fresh_ar[2];
};

/* Begins a run whose first packet has the header `h`: if its bases acknowledge packets, they take
 * effect now, and ops->deliver is called for what they complete. Returns false when the packet must
 * pass through fa_input(), to which its bases are no news then. */
bool fa_run_begin(
	struct fa_conn *c, uint64_t now, struct fa_run *run, const struct wire_falcon_plain *h);
/* Adds a packet: `in` without hdr and payload. Returns false, and has changed nothing, when the
 * packet must pass through fa_input(), after fa_run_done(). */
bool fa_run_add(struct fa_conn *c, uint64_t now, struct fa_run *run,
	const struct wire_falcon_plain *h, const struct fa_in *in);
/* Ends a run; the owner delivers its packets then. */
void fa_run_end(struct fa_conn *c, uint64_t now, struct fa_run *run);
/* Makes the deliveries that the run made possible, which follow those of its packets. */
void fa_run_done(struct fa_conn *c, uint64_t now);

/* ---- Calls of the ULP ---- */

/*
 * Start a transaction, and take `buf` in any case. An error arrives as a completion of the
 * transaction's RSN. A request that Falcon cannot execute (it is longer than the MTU, or resources
 * are exhausted and fa_config.conn_waiting requests wait for them already) leaves a gap in the
 * order of RSNs: an unordered connection continues, an ordered one fails with the error's code.
 */
void fa_push(struct fa_conn *c, uint64_t now, struct fa_buf *buf);
/* `response_len`: the largest length of the pull data, in bytes. */
void fa_pull(struct fa_conn *c, uint64_t now, struct fa_buf *buf, uint32_t response_len);
/* Calls fa_pull() with buf->response_len if buf->pull is true, else fa_push(). */
void fa_request(struct fa_conn *c, uint64_t now, struct fa_buf *buf);
/* Sends the target's answer to the pull `rsn`, whose outcome was FA_TAKEN. Takes `buf`. */
void fa_pull_data(struct fa_conn *c, uint64_t now, uint32_t rsn, struct fa_buf *buf);
/* The same as fa_outcome() with FA_TAKEN for the pull `rsn`, and fa_pull_data(). `buf` may be a
 * chain (fa_buf.next): the answers to pulls with consecutive RSNs from `rsn` on. */
void fa_answer(struct fa_conn *c, uint64_t now, uint32_t rsn, struct fa_buf *buf);
/* Reports the outcome of an FA_PUSH or FA_PULL delivery, or of several (o->more). An `rsn` that is
 * not with the ULP counts as FA_BAD_OUTCOME and has no effect. */
void fa_outcome(struct fa_conn *c, uint64_t now, const struct fa_outcome *o);
/* Reports that the queue to the ULP has room again: ops->deliver may be called. */
void fa_deliver_resume(struct fa_conn *c, uint64_t now);

/* ---- Credits (8.2.3) ---- */

/* The six kinds of credits of one connection. The ULP's part of the connection counts them: it
 * debits the cost when it submits a transaction, and credits it when the delivery completes. */
struct fa_credits {
	uint32_t req_pkt_tx, req_buf_tx, req_pkt_rx, req_buf_rx, data_pkt_tx, data_buf_tx;
};
/* Returns the cells that `len` bytes take. */
static inline uint32_t
fa_cells(uint32_t len, uint32_t cell)
{
	return len / cell + (len % cell != 0);
}
/* Fill in the credits that a transaction takes: a push of `len` bytes, a pull whose response has
 * `response_len` bytes, and at the target the pull data of `len` bytes. */
void fa_cost_push(const struct fa_pools *p, uint32_t len, struct fa_credits *out);
void fa_cost_pull(const struct fa_pools *p, uint32_t response_len, struct fa_credits *out);
void fa_cost_pull_data(const struct fa_pools *p, uint32_t len, struct fa_credits *out);
/* Subtracts `cost` from `have` and returns true if all six suffice; otherwise returns false. */
bool fa_credits_take(struct fa_credits *have, const struct fa_credits *cost);
/* Adds `cost` to `have`. */
void fa_credits_give(struct fa_credits *have, const struct fa_credits *cost);

/* ---- Inspection ---- */

struct fa_info {
	uint32_t cid, peer_cid; /* of received packets, of sent packets */
	uint32_t flows;
	uint32_t fcwnd_milli, ncwnd_milli; /* thousandths of a packet, the sum of all flows */
	uint64_t rtt_ns, rto_ns, delay_ns; /* smoothed round trip, timeout, last fabric delay */
	uint32_t request_outstanding, data_outstanding, queued;
	uint64_t packets_out, packets_in, retransmits, early_retransmits, timeouts, probes;
	uint64_t acks_out, acks_in, nacks_out, nacks_in, resyncs_out, repaths;
	bool dead;
};
void fa_get_info(const struct fa_conn *c, struct fa_info *out);

#define FA_REASONS(X)                                                                              \
	X(FA_DUPLICATE, SK_NORMAL, "a packet that had arrived before")                             \
	X(FA_OUT_OF_WINDOW, SK_NOTICE, "a packet beyond the receive window")                       \
	X(FA_STALE_ACK, SK_NORMAL, "an acknowledgement older than one that had arrived")           \
	X(FA_FUTURE_ACK, SK_WARNING, "an acknowledgement of packets that were never sent")         \
	X(FA_PULLS_SHARE, SK_WARNING,                                                              \
		"a pull was refused: its connection has too many whose data is unacknowledged")    \
	X(FA_PULLS_EXCESS, SK_NOTICE,                                                              \
		"a pull was refused: the peer seems to have more outstanding than agreed (IRD)")   \
	X(FA_NO_RESOURCE, SK_NOTICE,                                                               \
		"a request was refused: the receive pools are in the red zone")                    \
	X(FA_SCARCE, SK_WARNING,                                                                   \
		"a packet out of order was dropped: few receive buffers are free")                 \
	X(FA_DEAD, SK_NORMAL, "a packet for a connection that has failed")                         \
	X(FA_TYPE, SK_WARNING, "a packet of an invalid type")                                      \
	X(FA_FUNCTION, SK_WARNING, "a packet for another function of this host (7.2)")             \
	X(FA_PROTOCOL, SK_WARNING, "a packet of another upper layer protocol")                     \
	X(FA_LENGTH, SK_WARNING, "a payload longer than its request or than the MTU permits")      \
	X(FA_NO_REQUEST, SK_WARNING, "pull data for no outstanding request")                       \
	X(FA_RSN, SK_WARNING, "an invalid request sequence number")                                \
	X(FA_EVICTED, SK_NOTICE,                                                                   \
		"a push that the ULP refused was dropped for room; the peer resends it")           \
	X(FA_BAD_OUTCOME, SK_WARNING, "an outcome of a request that was not delivered")            \
	X(FA_NACK_UNKNOWN, SK_WARNING, "a NACK with a reserved code, or for a packet never sent")  \
	X(FA_RETRANSMIT, SK_NORMAL, "a packet was retransmitted")                                  \
	X(FA_EARLY, SK_NORMAL, "retransmissions because later packets had arrived")                \
	X(FA_TIMEOUT, SK_NOTICE, "retransmissions after a timeout")                                \
	X(FA_PROBE, SK_NORMAL, "retransmissions as tail loss probes")                              \
	X(FA_RNR_OUT, SK_NOTICE, "the local ULP was not ready for a request")                      \
	X(FA_RNR_IN, SK_NOTICE, "the peer's ULP was not ready for a request")                      \
	X(FA_RESYNC_OUT, SK_NOTICE, "a Resync replaced a packet")                                  \
	X(FA_RESYNC_IN, SK_NOTICE, "a Resync arrived")                                             \
	X(FA_GIVEN_UP, SK_WARNING, "a connection failed: a Resync was not acknowledged")           \
	X(FA_RECLAIMED, SK_WARNING, "a transaction took too long and was given up")                \
	X(FA_POOL_EMPTY, SK_NOTICE,                                                                \
		"no resources for a request of the local ULP, which waits or fails")               \
	X(FA_DELIVER_BUSY, SK_NORMAL, "the queue to the ULP was full: the delivery is repeated")   \
	X(FA_OUTPUT_BUSY, SK_NORMAL, "the port was full: the packet is sent later")                \
	X(FA_ECN_CE, SK_NORMAL, "a packet arrived with ECN congestion experienced")                \
	X(FA_REPATH, SK_NORMAL, "a flow changed its path (PLB, or consecutive timeouts)")

SK_REASONS_DECLARE(fa, FA_NONE, FA_REASONS)

#endif
