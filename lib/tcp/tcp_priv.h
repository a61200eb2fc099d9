/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection and the stack, and the functions that the files of lib/tcp share.
 *
 *	input.c   processes a segment  ->  ack.c (its acknowledgement), reasm.c (its payload)
 *	ack.c     frees records        ->  sack.c (scoreboard), rack.c (loss), rtt.c, cc*.c
 *	                                   (window), prr.c (window during recovery)
 *	timers.c  runs deadlines       ->  rack.c, loss.c, conn.c
 *	output.c  sends in a turn      ->  segment.c (one segment)
 *	left.c    connections without an owner
 *
 * The owner may call tcp_send(), tcp_close(), tcp_abort() and tcp_consumed() from inside its
 * callbacks. Therefore each function that runs a callback holds the connection with tcp_conn_hold()
 * and checks its state afterwards. The last tcp_conn_release() frees a connection that ended
 * meanwhile.
 */
#ifndef SAKER_TCP_PRIV_H
#define SAKER_TCP_PRIV_H

#include <errno.h>
#include <sys/queue.h>

#include "../base/mem.h"
#include "cc.h"
#include "tcp.h"

/* ---- Constants ---- */

#define TCP_TICK_SHIFT 20 /* a timestamp tick is 2^20 ns: RFC 7323 5.4 requires 1 ms to 1 s */
/* RFC 7323 5.5: an older timestamp is not valid any more. */
#define TCP_PAWS_IDLE_NS    (24ull * 86400 * 1000000000)
#define TCP_MSS_DEFAULT_V4  536 /* RFC 9293 3.7.1 */
#define TCP_MSS_DEFAULT_V6  1220
#define TCP_MSS_MIN         88   /* below this, segments would consist mostly of headers */
#define TCP_MTU_MIN_V4      68   /* RFC 791 3.2 */
#define TCP_MTU_MIN_V6      1280 /* RFC 8200 5 */
#define TCP_MTU_HOSTS_V4    576  /* each host accepts a packet of this size (RFC 1122 3.3.2) */
#define TCP_TS_LEN          12   /* timestamps option with its two bytes of padding */
#define TCP_IW_SEGS         10   /* RFC 6928 */
#define TCP_MAX_SEGS        4096 /* segments in flight: bounds each walk over the scoreboard */
#define TCP_SACK_TURN       (4 * TCP_MAX_SEGS) /* segments in a turn that walks for SACK visit */
#define TCP_KNOWN           16                 /* known blocks of SACK */
#define TCP_MAX_CUTS        256 /* live cuts of records that a connection may cause */
#define TCP_DUP_THRESH      3   /* RFC 5681, RFC 8985 */
#define TCP_QUANTUM         16  /* segments that a connection may send per turn */
#define TCP_TIMERS_PER_POLL 256
#define TCP_BUSY_PER_POLL   32 /* -EAGAIN of so many connections ends a poll: the port is full */
/* RFC 5961 7: challenge ACKs per connection in one window of time. */
#define TCP_CHALLENGES   10
#define TCP_CHALLENGE_NS 5000000000ull
/* A peer on a shared core may be away for this time: no tail loss probe before. */
#define TCP_PTO_MIN_NS 500000ull
/* Delay that the peer may add to the acknowledgement of a lone segment. */
#define TCP_PEER_DELACK_NS 1000000ull
#define TCP_WAIT_MAX_NS    8000000ull /* a longer wait counts as this */
/* The interval of FIN-WAIT-2: a peer that never closes, and sends no new bytes in one, does not
 * hold a connection any longer. */
#define TCP_FIN_WAIT_2_NS 60000000000ull
/* A connection that its owner has left, or whose life it limits, holds records and a place for at
 * most this time. A peer that takes them at all has taken them by then. */
#define TCP_LEFT_NS      60000000000ull
#define TCP_RACK_PERSIST 16 /* RFC 8985 6.2 step 4 */
#define TCP_RST_QUEUE    64
#define TCP_PMTU_NS      600000000000ull /* RFC 1191 6.3, RFC 8201 5.2: ten minutes */
#define TCP_OOO_FEW      8 /* slices that each connection may always keep out of order */
/* A peer that takes so many bytes uses the connection, however often its window is closed. */
#define TCP_WINDOW_PROGRESS 65536u
/* A half-done connection of this age may be ended for a newer one. */
#define TCP_HALF_DONE_NS 1000000000ull
#define TCP_BACKLOG_MIN  32 /* half-done connections of a listener with a small backlog */
/* After a pause of this length, a connection is not used so often that it should keep its timer. */
#define TCP_PAUSE_NS      1000000ull
#define TCP_SAMPLES       8    /* half-done connections of which TCP ends one for a newer one */
#define TCP_SOURCES       4096 /* slots of source prefixes; a power of 2 */
#define TCP_SOURCE_PROBES 8    /* slots in which a source prefix may be */
/* Distance of the ISN after TIME-WAIT from the last sequence number of the old incarnation. */
#define TCP_REOPEN_GAP     65536u
#define TCP_MIN_RTT_WINDOW 10000000000ull /* ten seconds; RFC 8985 6.1 does not set the length */

/* ---- Sequence numbers ---- */

static inline bool
tcp_seq_lt(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static inline bool
tcp_seq_le(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) <= 0;
}

static inline uint32_t
tcp_seq_max(uint32_t a, uint32_t b)
{
	return tcp_seq_lt(a, b) ? b : a;
}

/* ---- The connection ---- */

enum tcp_state { /* RFC 9293 3.3.2; LISTEN is struct tcp_listener */
	TCPS_CLOSED,
	TCPS_SYN_SENT,
	TCPS_SYN_RCVD,
	TCPS_ESTABLISHED,
	TCPS_FIN_WAIT_1,
	TCPS_FIN_WAIT_2,
	TCPS_CLOSE_WAIT,
	TCPS_CLOSING,
	TCPS_LAST_ACK,
	TCPS_TIME_WAIT,
	TCPS_COUNT
};

/* conn.todo: segments that the next turn sends */
enum {
	DO_ACK = 1 << 0,       /* received data has no acknowledgement yet: now or with T_DELACK */
	DO_ACK_NOW = 1 << 1,   /* the acknowledgement goes out in this turn */
	DO_SYN = 1 << 2,       /* SYN, or SYN,ACK in SYN_RECEIVED */
	DO_FIN_AGAIN = 1 << 3, /* a FIN without data is retransmitted */
	DO_TLP = 1 << 4,       /* RFC 8985 7.3 */
	DO_WND_PROBE = 1 << 5, /* RFC 9293 3.8.6.1 */
	DO_KEEPALIVE = 1 << 6, /* RFC 9293 3.8.4 */
	DO_RTX_FIRST = 1 << 8, /* one lost segment goes out regardless of the congestion window */
	/* The window is smaller than the record, but the sender has waited long enough: cut it. */
	DO_WND_FORCE = 1 << 7,
	DO_DETECT = 1 << 9, /* RACK has not processed the latest acknowledgements yet */
};

/* conn.flags */
enum {
	F_TS = 1 << 0,            /* timestamps were negotiated */
	F_SACK = 1 << 1,          /* SACK was negotiated */
	F_ECN = 1 << 2,           /* ECN was negotiated */
	F_WSCALE = 1 << 3,        /* window scaling was negotiated */
	F_FIN_QUEUED = 1 << 4,    /* tcp_close() was called */
	F_FIN_SENT = 1 << 5,      /* our FIN has the sequence number snd_nxt - 1 */
	F_FIN_NOTED = 1 << 6,     /* the peer's FIN has the sequence number rcv_fin */
	F_FIN_TAKEN = 1 << 7,     /* rcv_nxt is behind the peer's FIN */
	F_FIN_NOTIFIED = 1 << 8,  /* the owner got TCP_EV_PEER_FIN */
	F_ECHO_CE = 1 << 9,       /* our acknowledgements carry ECE */
	F_SEND_CWR = 1 << 10,     /* the next segment with new data carries CWR */
	F_ANNOUNCED = 1 << 11,    /* the owner gets events */
	F_OVER = 1 << 12,         /* the owner got TCP_EV_CLOSED */
	F_CLAIMED = 1 << 13,      /* the connection does not count against a backlog */
	F_PASSIVE = 1 << 14,      /* the connection came from a listener */
	F_CWND_LIMITED = 1 << 15, /* the congestion window limited the last turn */
	F_REORDERING = 1 << 16,   /* RACK.reordering_seen */
	F_RACK_DSACK = 1 << 17,   /* RACK.dsack_round is valid */
	F_TLP_RETRANS = 1 << 18,  /* TLP.is_retrans */
	F_TLP_OUT = 1 << 19,      /* TLP.end_seq is valid */
	F_DSACK = 1 << 20,        /* the next acknowledgement reports conn.dsack */
	F_HALF = 1 << 21,         /* the connection counts as half-open */
	F_LISTED = 1 << 22,       /* the connection is in its listener's list (field `link`) */
	F_UNDO = 1 << 23,         /* prior_cwnd and prior_ssthresh are valid */
	F_EIFEL = 1 << 24, /* eifel_ts is valid: the next acknowledgement decides on the timeout */
	F_HALF_DONE = 1 << 25, /* the connection is in the lists of half-done ones */
	F_EARLY = 1 << 26,     /* tcp_claim_early() was called */
	F_HOLDS = 1 << 27,     /* the connection is in the stack's list `holders` */
	/* The peer sends single segments, and this side no data that could carry their
	 * acknowledgements: they are not delayed. */
	F_LONE = 1 << 28,
	F_ASKED = 1 << 30,  /* the owner got TCP_EV_UNREAD in this silence of the peer */
	F_PAUSED = 1 << 29, /* the peer was silent for TCP_PAUSE_NS before its last segment */
};

enum {                      /* tcp_rec.flags */
	R_SACKED = 1 << 0,  /* the peer reported the segment by SACK */
	R_LOST = 1 << 1,    /* marked lost, and not retransmitted yet */
	R_RETRANS = 1 << 2, /* sent more than once */
};

/* Phase of congestion control: none, after ECE, fast recovery, after a timeout. */
enum tcp_ca { CA_OPEN, CA_CWR, CA_RECOVERY, CA_LOSS };

enum { T_RTX, T_DELACK, T_LIFE, T_COUNT };
enum tcp_rtx_kind { RTX_NONE, RTX_RTO, RTX_PTO, RTX_REO, RTX_PERSIST };

enum { ON_NONE, ON_WORK, ON_BUSY }; /* conn.where: the stack's list that holds it */

struct tcp_rack { /* RFC 8985 6.1 */
	uint64_t xmit_ts, rtt;
	uint64_t min_rtt, min_rtt_at;
	uint32_t end_seq, fack;
	uint32_t dsack_round;
	uint8_t reo_wnd_mult, reo_wnd_persist;
	uint16_t largest; /* bytes of the largest segment that arrived; not of RACK, but as hot */
};

struct tcp_prr { /* RFC 9937 6 */
	bool on;
	bool loss;                       /* the latest acknowledgement revealed a loss */
	uint32_t target;                 /* the window when recovery ends (ssthresh) */
	uint32_t flight;                 /* RecoverFS */
	uint32_t delivered;              /* prr_delivered */
	uint32_t snd_nxt, retransmitted; /* prr_out is what was sent behind, and again */
};

struct tcp_pmtu {       /* pmtu.c */
	uint64_t until; /* the path MTU is `link` again from here on; 0: it is */
	uint32_t link;  /* path MTU when the connection began */
	uint32_t seq;   /* sequence number that the claim quotes */
	uint16_t claim; /* reported MTU that waits for evidence; 0: none */
};

/* A block of SACK: all segments from `left` to the end of `last` are SACKed. `seq` is that of
 * `last`; NULL: there is none. */
struct tcp_known {
	uint32_t left, seq;
	struct tcp_rec *last;
};

/* Segments in flight that a connection has walked over in the turn of time `at`. A turn receives
 * many acknowledgements, so the limit TCP_MAX_SEGS of one walk does not bound the turn. */
struct tcp_walks {
	uint64_t at;
	uint32_t sack, rack; /* for blocks of SACK, to detect losses */
};

/* A received segment uses the first two cache lines, one that is sent the first five, and an
 * acknowledgement these and the sixth: with thousands of connections that take turns, each line is
 * a cache miss. */
struct tcp_conn {
	_Alignas(64) struct tcp_stack *s;
	uint8_t state, busy, ca, where;
	/* Established without anything unusual: tcp_input() tries the guards of the fast path. */
	bool fast;
	uint8_t snd_wscale, rcv_wscale;
	uint8_t rtx_kind;
	uint16_t todo;
	uint16_t rcv_mss; /* largest received segment: the measure of "full-sized" */
	uint32_t flags;
	uint32_t rcv_nxt, rcv_adv, rcv_acked; /* rcv_adv: right edge of the advertised window */
	/* Bytes in order that the owner has not consumed yet. */
	uint32_t rcv_unread;
	uint32_t ts_recent;
	uint32_t snd_una, snd_nxt, snd_wnd, snd_wl1, snd_wl2;

	uint64_t last_rx;
	uint64_t ts_recent_at;
	uint64_t due[T_COUNT];
	void *user;
	uint32_t max_wnd; /* largest window that the peer advertised */
	uint32_t ts_offset;
	uint32_t rtt_seq; /* the next RTT sample is taken when this is acknowledged */
	uint8_t backoff, retries, dupacks;
	uint8_t nsack; /* entries of sack[] */

	/* First records of the first and of the last segment in flight. */
	struct tcp_rec *seg_head, *seg_tail;
	struct tcp_rec *unsent, *q_tail; /* first record that was not sent yet; last record */
	uint32_t queued;                 /* bytes of all records */
	uint32_t cwnd, ssthresh;
	/* Bytes in flight that the peer SACKed; that are lost and not retransmitted yet. */
	uint32_t sacked_out, lost_out;
	uint32_t nsegs; /* segments in flight */
	uint32_t emss, tso_max;

	struct tcp_tuple tuple;
	TAILQ_ENTRY(tcp_conn) work;
	uint64_t n_bytes_in;

	struct sk_timer timer;      /* of T_RTX and T_DELACK */
	uint64_t srtt, rttvar, rto; /* ns; srtt 0: no sample yet */
	uint64_t last_tx;           /* time of the last segment with data */
	uint64_t n_acked;

	struct tcp_rack rack;
	struct tcp_rec *lost_hint; /* no lost segment lies before it; NULL: seg_head */
	uint32_t nsacked;          /* segments in flight that the peer SACKed */
	uint32_t rtx_high;         /* no segment behind this was retransmitted */

	/* Reassembly. */
	struct tcp_slice *ooo, *ooo_tail;         /* root of the tree of runs; the last run */
	struct tcp_slice *refused, *refused_tail; /* in order, but refused by ops->deliver() */
	uint32_t ooo_count;                       /* slices in both lists */
	uint32_t rcv_fin;
	struct wire_sack sack[TCP_MAX_SACK]; /* blocks to report, the latest first */
	struct wire_sack dsack;
	uint8_t challenges, probes;

	/* Loss recovery. */
	uint32_t recover; /* recovery ends when snd_una reaches this */
	uint32_t tlp_end;
	uint32_t prior_cwnd, prior_ssthresh, undo_retrans;
	uint32_t eifel_ts; /* our timestamp clock at the first timeout, before any retransmission */
	struct tcp_prr prr;
	union tcp_cc_state cc;
	struct tcp_walks walks; /* see tcp_walks() */
	/* Blocks by their left edges, then those of the latest acknowledgement. */
	struct tcp_known known[TCP_KNOWN + TCP_MAX_SACK];

	/* Rarely used. */
	struct sk_timer life;  /* of T_LIFE */
	uint64_t keepalive_ns; /* idle time before a probe; 0: that of the configuration */
	/* In one list: half-open, unclaimed, left, TIME_WAIT or free. */
	TAILQ_ENTRY(tcp_conn) link;
	struct tcp_listener *listener;
	TAILQ_ENTRY(tcp_conn) of_source; /* F_HALF_DONE */
	TAILQ_ENTRY(tcp_conn) holder;    /* F_HOLDS */
	uint64_t born;                   /* time of the SYN */
	uint32_t half_at;                /* F_HALF_DONE: index in the listener's `half_done` */
	/* For how long the peer's window was closed until `closed_at`, and n_acked when that time
	 * began to count. */
	uint64_t closed_ns, closed_at, closed_acked;
	uint64_t challenge_at;
	/* Cuts of records since none was live, and the sequence number at which the last rest
	 * begins. */
	uint32_t ncuts, cut_end;
	uint64_t half_closed_in; /* FIN_WAIT_2: n_bytes_in when the present interval began */
	uint32_t iss, irs, mtu;
	struct tcp_pmtu pmtu;
	uint16_t source; /* F_HALF_DONE: index in the stack's `sources` */
	uint16_t peer_mss, soft_error;
	bool left;     /* tcp_leave() was called; `note` is valid */
	bool limited;  /* the connection ends after TCP_LEFT_NS, whatever the peer does */
	bool answered; /* an acknowledgement came after the last timeout, retries is not 0 */
	struct tcp_note note;
	int reason;
	uint64_t n_retransmits;
	uint32_t n_rtos, n_tlps;
};
_Static_assert(
	offsetof(struct tcp_conn, last_rx) == 64 && offsetof(struct tcp_conn, seg_head) == 128 &&
		offsetof(struct tcp_conn, tuple) == 192 &&
		offsetof(struct tcp_conn, timer) == 256 && offsetof(struct tcp_conn, rack) == 320,
	"the cache lines that segments use");

TAILQ_HEAD(tcp_conn_list, tcp_conn);

struct tcp_listener {
	struct tcp_stack *s;
	void *user;
	uint32_t backlog, n_half, n_unclaimed;
	uint32_t n_half_done; /* includes those of n_half and n_unclaimed */
	uint32_t refs;        /* connections that point to the listener */
	bool closed;
	struct tcp_conn_list half, unclaimed; /* in the order of arrival */
	struct tcp_conn **half_done;          /* [most], the first n_half_done are valid */
	uint32_t most;
	TAILQ_ENTRY(tcp_listener) link;
};

/* The half-done connections of a source prefix, in the order of arrival. Prefixes share a slot only
 * when no other one is free. */
struct tcp_source {
	uint64_t prefix; /* keyed hash; valid if n is not 0 */
	uint32_t n;
	struct tcp_conn_list conns; /* valid if n is not 0 */
};

/* Resets that answer segments of no connection: 10000 per second, 256 at once. */
#define TCP_RST_INTERVAL 100000
#define TCP_RST_BURST    256

struct tcp_rst { /* a reset that waits for the port */
	struct tcp_tuple to;
	struct wire_tcp tcp;
};

/* The latest connection in TIME-WAIT that a SYN ended: its next incarnation begins behind its
 * sequence numbers. */
struct tcp_reopened {
	struct tcp_tuple tuple;
	uint32_t snd_nxt;
	bool valid;
};

struct tcp_stack {
	struct tcp_ops ops;
	void *ctx;
	uint64_t now; /* time of the latest call, for functions without such an argument */
	struct tcp_conn_list work, busy;
	const struct tcp_cc_ops *cc;
	/* The average, over all connections, of the time by which round trips are longer than the
	 * shortest ones. With many busy connections, most of this time passes in the queues of the
	 * two hosts, and grows for all of them at once. A connection that was idle has no other way
	 * to measure it; its probe and its timeout would come before the acknowledgement. */
	uint64_t wait_ns;
	struct tcp_config cfg;
	/* Connections by kind; max_conns bounds n_live. */
	uint32_t n_live, n_half, n_tw, n_left;
	uint32_t n_half_done; /* of all listeners */
	uint64_t ndrawn;      /* draws of samples of half-done connections */
	uint32_t ooo_total;   /* slices that all connections keep */
	/* The connections with slices out of order, by the time of their last progress. */
	struct tcp_conn_list holders;
	struct tcp_conn *pool;
	uint32_t pool_size, pool_fresh; /* connections from pool_fresh on were never used */
	struct tcp_conn_list free, tw, left;
	TAILQ_HEAD(, tcp_listener) listeners;
	struct tcp_reopened reopened;
	struct tcp_rst rst[TCP_RST_QUEUE];
	unsigned nrst;
	uint64_t rst_full; /* the bucket of resets that answer a segment (base/bucket.h) */
	uint64_t counters[tcp_reason_count];
	struct sk_wheel wheel;
	struct tcp_source sources[TCP_SOURCES];
};

/* ---- conn.c, stack.c ---- */

/* Returns a connection without a state or a place in a list, or NULL when all are in use. */
struct tcp_conn *tcp_conn_new(struct tcp_stack *s, const struct tcp_tuple *t, uint32_t mtu);
/* Gives the connection back to the stack's pool, and its reference to the listener. */
void tcp_conn_free_now(struct tcp_conn *c);
/* Ends a connection: frees its records and slices, sends the owner its last event, and frees the
 * connection as soon as no function holds it. */
void tcp_conn_end(struct tcp_conn *c, int reason);
/* Sends RST where the peer has the connection, and ends it. */
void tcp_conn_reset(struct tcp_conn *c, uint64_t now, int reason);
/* Sends TCP_EV_CLOSED, once: from here on, the owner does not use the connection. */
void tcp_conn_over(struct tcp_conn *c, int reason);
/* Moves a connection to TIME_WAIT, and drops the oldest one there when there are too many. */
void tcp_conn_time_wait(struct tcp_conn *c);
/* Takes the connection out of the list of field `link`, and out of the count of its kind. */
void tcp_conn_unlink(struct tcp_conn *c);
/* Gives all records and slices back to the owner. */
void tcp_conn_drop_buffers(struct tcp_conn *c);
/* Sends the owner an event, unless the connection has no owner yet or no longer. */
void tcp_conn_event(struct tcp_conn *c, enum tcp_event ev);
/* Stores the peer's options from its SYN. */
void tcp_conn_options(struct tcp_conn *c, const struct wire_tcp *syn);
/* Computes emss anew; returns true when it changed. */
bool tcp_conn_set_emss(struct tcp_conn *c);
/* Enters ESTABLISHED, or FIN_WAIT_1 after tcp_close(), and sends TCP_EV_CONNECTED. */
void tcp_conn_established(struct tcp_conn *c);

/* Keeps the connection from being freed until tcp_conn_release(). */
static inline void
tcp_conn_hold(struct tcp_conn *c)
{
	c->busy++;
}

static inline void
tcp_conn_release(struct tcp_conn *c)
{
	if (--c->busy == 0 && c->state == TCPS_CLOSED)
		tcp_conn_free_now(c);
}

/* Puts `c` on the list of connections that have a turn in the next poll. A connection that ended
 * inside a callback stays off the list, since it is about to be freed. */
static inline void
tcp_conn_wake(struct tcp_conn *c)
{
	if (c->where == ON_NONE && c->state != TCPS_CLOSED) {
		c->where = ON_WORK;
		TAILQ_INSERT_TAIL(&c->s->work, c, work);
	}
}

/* Sends an acknowledgement in the next turn. */
static inline void
tcp_conn_ack_now(struct tcp_conn *c)
{
	c->todo |= DO_ACK | DO_ACK_NOW;
	tcp_conn_wake(c);
}

static inline void
tcp_count(struct tcp_stack *s, enum tcp_reason reason)
{
	sk_count(s->counters, reason);
}

/* Counts an event of a connection that is rare, and reports it to tcp_ops.trace. */
static inline void
tcp_trace(struct tcp_conn *c, enum tcp_reason reason)
{
	tcp_count(c->s, reason);
	if (c->s->ops.trace != NULL)
		c->s->ops.trace(c->s->ctx, c, reason);
}

/* Returns whether two full-sized segments arrived that are not acknowledged yet: the
 * acknowledgement is not delayed any longer (RFC 9293 3.8.6.3). */
static inline bool
tcp_ack_due(const struct tcp_conn *c)
{
	return c->rcv_nxt - c->rcv_acked >= 2u * c->rcv_mss;
}

/* Returns our timestamp clock (RFC 7323 5.4). */
static inline uint32_t
tcp_ticks(const struct tcp_conn *c, uint64_t now)
{
	return (uint32_t)(now >> TCP_TICK_SHIFT) + c->ts_offset;
}

/* Returns the bytes that are presumably in the network (RFC 6675 "pipe"). */
static inline uint32_t
tcp_in_flight(const struct tcp_conn *c)
{
	uint32_t out = c->snd_nxt - c->snd_una, gone = c->sacked_out + c->lost_out;

	return out > gone ? out - gone : 0;
}

/* Returns the walks of this turn. All segments that a turn receives have the same time. */
static inline struct tcp_walks *
tcp_walks(struct tcp_conn *c)
{
	if (c->walks.at != c->s->now)
		c->walks = (struct tcp_walks){.at = c->s->now};
	return &c->walks;
}

/* Return the initial sequence number and the offset of the timestamp clock of a tuple. */
uint32_t tcp_isn(struct tcp_stack *s, const struct tcp_tuple *t, uint64_t now);
uint32_t tcp_ts_offset(const struct tcp_stack *s, const struct tcp_tuple *t);

/* Returns whether the connection holds received bytes: out of order, or not consumed by the owner
 * (an unfinished FPDU, for example). */
static inline bool
tcp_holds_bytes(const struct tcp_conn *c)
{
	return c->rcv_unread || c->ooo != NULL;
}

/* ---- left.c ---- */

/* Ends a connection of limited life, except in TIME_WAIT, after TCP_LEFT_NS. */
void tcp_left_due(struct tcp_conn *c, uint64_t now);
/* Resets a left connection because bytes of the peer are lost (RFC 1122 4.2.2.13). */
void tcp_left_unread(struct tcp_conn *c, uint64_t now);

/* ---- input.c, fin.c, ack.c, reasm.c, sack.c ---- */

struct tcp_acked { /* the effect of one acknowledgement */
	uint64_t now;
	uint32_t bytes;  /* cumulatively acknowledged */
	uint32_t sacked; /* newly SACKed */
	/* snd_una and the SACKed bytes behind it, before the acknowledgement. tcp_ack_plain() does
	 * not set it. */
	uint32_t reported;
	/* Oldest and newest transmission time among the acknowledged segments that were sent only
	 * once; 0: none. */
	uint64_t first_sent;
	uint64_t last_sent;
	uint32_t ts_ecr;
	bool ts, dsack, ece;
};

/* Process the acknowledgement of a segment; it lies in [snd_una, snd_nxt]. tcp_ack_plain() requires
 * a segment without SACK blocks, and no loss. */
void tcp_ack(struct tcp_conn *c, uint64_t now, const struct wire_tcp *seg, uint32_t len);
void tcp_ack_plain(struct tcp_conn *c, uint64_t now, const struct wire_tcp *seg);
/* Processes the SACK blocks of an acknowledgement that a later one has overtaken: it lies below
 * snd_una, and was valid when it was sent. */
void tcp_ack_overtaken(struct tcp_conn *c, uint64_t now, const struct wire_tcp *seg);
/* Marks the segments that the blocks of `seg` report; notes a DSACK in `a`. */
void tcp_sack_process(struct tcp_conn *c, const struct wire_tcp *seg, struct tcp_acked *a);
/* Removes all marks of SACK: the peer may discard data that it reported (RFC 2018 8). */
void tcp_sack_forget(struct tcp_conn *c);

/* Processes payload at `seq`, of which any part may lie outside the window. Owns the chain from
 * here on. */
void tcp_reasm_input(struct tcp_conn *c, uint32_t seq, struct tcp_slice *chain, uint32_t len);
/* Delivers payload in order; nothing is waiting before it. */
void tcp_reasm_deliver(struct tcp_conn *c, struct tcp_slice *chain, uint32_t len);
/* Gives all waiting slices back to the owner. */
void tcp_reasm_free_all(struct tcp_conn *c);
/* Notes [left, right) as a duplicate to report by DSACK (RFC 2883). */
void tcp_reasm_dsack(struct tcp_conn *c, uint32_t left, uint32_t right);
/* Processes the peer's FIN once all bytes before it have come (RFC 9293 3.10.7.4). */
void tcp_fin_reached(struct tcp_conn *c);
/* Changes the state after the acknowledgement of our FIN. */
void tcp_fin_acked(struct tcp_conn *c);

/* ---- rack.c, loss.c, prr.c, rtt.c ---- */

void tcp_rack_init(struct tcp_conn *c);
/* Notes that a segment was acknowledged or SACKed for the first time. */
void tcp_rack_delivered(struct tcp_conn *c, struct tcp_rec *seg, struct tcp_acked *a);
/* Marks the lost segments; sets the reordering timer when others may be lost, too. */
void tcp_rack_detect(struct tcp_conn *c, uint64_t now);
/* Widens the reordering window after a DSACK (RFC 8985 6.2 step 4). */
void tcp_rack_dsack(struct tcp_conn *c);
/* Notes the end of a round trip, after which the next DSACK counts again. */
void tcp_rack_round(struct tcp_conn *c, uint32_t ack);
/* Does the same for an acknowledgement; after many in a turn, leaves it to the next tcp_output().
 */
void tcp_rack_acked(struct tcp_conn *c, uint64_t now);
/* Marks a segment in flight as lost, unless the peer SACKed it. */
void tcp_loss_mark(struct tcp_conn *c, struct tcp_rec *seg);
/* Detects losses without an acknowledgement, and enters recovery if there are some. */
void tcp_loss_detect(struct tcp_conn *c, uint64_t now);
/* Processes an expired RTO (RFC 6298 5.4 to 5.6). */
void tcp_loss_rto(struct tcp_conn *c, uint64_t now);
/* Checks whether this acknowledgement proves that the timeout was spurious (RFC 3522). */
void tcp_loss_judge_rto(struct tcp_conn *c, const struct tcp_acked *a);
/* Enters or leaves recovery after an acknowledgement, and lets the congestion window grow. */
void tcp_loss_after_ack(struct tcp_conn *c, const struct tcp_acked *a);
/* Counts a duplicate acknowledgement of a peer without SACK (RFC 5681 3.2). */
void tcp_loss_dupack(struct tcp_conn *c, const struct tcp_acked *a);
/* Detects a loss that a tail loss probe repaired (RFC 8985 7.4). */
void tcp_loss_tlp_ack(struct tcp_conn *c, uint32_t ack, const struct tcp_acked *a);

/* Begins or ends the gradual reduction of the window from the bytes in flight to cwnd;
 * tcp_prr_ack() sets cwnd after each acknowledgement in between. */
void tcp_prr_begin(struct tcp_conn *c, const struct tcp_acked *a);
void tcp_prr_ack(struct tcp_conn *c, const struct tcp_acked *a);
void tcp_prr_end(struct tcp_conn *c);

void tcp_rtt_init(struct tcp_conn *c);
/* Updates SRTT, RTTVAR and RTO by a sample (RFC 6298 2.2, 2.3), ns. */
void tcp_rtt_sample(struct tcp_conn *c, uint64_t now, uint64_t rtt);
/* Takes the handshake's round trip as the first sample. */
void tcp_rtt_first(struct tcp_conn *c, uint64_t now);
/* Updates the minimum of the RTT over TCP_MIN_RTT_WINDOW, ns. */
void tcp_rtt_min(struct tcp_conn *c, uint64_t now, uint64_t rtt);
/* Notes by how much a round trip, in ns, was longer than the shortest one of its connection. */
void tcp_rtt_wait(struct tcp_stack *s, uint64_t wait);
/* Returns the RTO with its backoff, ns. */
uint64_t tcp_rtt_rto(const struct tcp_conn *c);

/* ---- pmtu.c ---- */

/* Uses a smaller path MTU that a report claimed of the segment whose timeout expires now. */
void tcp_pmtu_timeout(struct tcp_conn *c, uint64_t now);
/* Restores the path MTU after TCP_PMTU_NS. */
void tcp_pmtu_expire(struct tcp_conn *c);

/* ---- timers.c ---- */

/* The functions are named after the event that happened; timers.c alone decides which timer that
 * concerns. */
/* A segment was sent that the peer acknowledges. */
void tcp_timers_sent(struct tcp_conn *c, uint64_t now);
/* snd_una moved, or the scoreboard changed. */
void tcp_timers_acked(struct tcp_conn *c, uint64_t now);
/* RACK waits `wait` ns for reordered segments. */
void tcp_timers_reorder(struct tcp_conn *c, uint64_t now, uint64_t wait);
/* The peer's window has no room for the next record. */
void tcp_timers_window_closed(struct tcp_conn *c, uint64_t now);
/* An acknowledgement arrived while the window was closed. */
void tcp_timers_window_answered(struct tcp_conn *c, uint64_t now);
/* The RTO expired while the peer's window is closed behind what is in flight. Returns true when it
 * was closed for too long, and the connection has ended. */
bool tcp_timers_window_shrunk(struct tcp_conn *c, uint64_t now);
/* A window opened that was closed behind what is in flight. */
void tcp_timers_window_opened(struct tcp_conn *c, uint64_t now);
/* An acknowledgement waits for data that carries it. */
void tcp_timers_ack_delayed(struct tcp_conn *c, uint64_t now);
/* Our direction is closed, and the peer's is not: an interval of TCP_FIN_WAIT_2_NS begins. */
void tcp_timers_half_closed(struct tcp_conn *c, uint64_t now);
/* The state ends, or is checked, at `deadline`. */
void tcp_timers_life(struct tcp_conn *c, uint64_t deadline);
/* The connection is established, or its keepalive times changed. */
void tcp_timers_alive(struct tcp_conn *c, uint64_t now);
/* Stops all timers of a connection that ends. */
void tcp_timers_stop(struct tcp_conn *c);
void tcp_timers_fire(void *stack, struct sk_timer *t, uint64_t now);

/* ---- output.c, segment.c, reset.c ---- */

/* Sends at most `most` segments of a connection, and links the connection into the list where it
 * belongs. Returns the number of segments. */
unsigned tcp_output(struct tcp_conn *c, uint64_t now, unsigned most);

/* Fills in the header of a segment and no payload. */
void tcp_seg_header(
	struct tcp_conn *c, uint64_t now, struct tcp_out *out, uint8_t flags, uint32_t seq);
/* Each sends one segment of its kind and notes that in the connection. Returns 0, or
 * -EAGAIN: the connection is unchanged. */
int tcp_seg_pure_ack(struct tcp_conn *c, uint64_t now);
int tcp_seg_syn(struct tcp_conn *c, uint64_t now);
int tcp_seg_retransmit(struct tcp_conn *c, uint64_t now, struct tcp_rec *seg);
/* Sends new records, at most `room` bytes, in one call of ops->output(). Returns the number of
 * segments, 0 when nothing fits, or -EAGAIN. */
int tcp_seg_new(struct tcp_conn *c, uint64_t now, uint32_t room);
/* Sends a FIN without data; `again`: a retransmission. Returns as tcp_seg_pure_ack(). */
int tcp_seg_fin(struct tcp_conn *c, uint64_t now, bool again);
int tcp_seg_probe(struct tcp_conn *c, uint64_t now);
/* Returns whether TCP_MAX_CUTS cuts of records may be in flight. */
bool tcp_seg_cuts_full(const struct tcp_conn *c);

/* Sends a reset to `to`, or queues it when the port is full. */
void tcp_rst_send(struct tcp_stack *s, struct tcp_conn *c, const struct tcp_tuple *to,
	const struct wire_tcp *tcp);
/* Answers a segment of no connection, or one with an impossible acknowledgement, by a reset (RFC
 * 9293 3.10.7.1). */
void tcp_rst_answer(
	struct tcp_stack *s, const struct tcp_tuple *to, const struct wire_tcp *seg, uint32_t len);
/* Sends the queued resets; returns how many left. */
unsigned tcp_rst_flush(struct tcp_stack *s);

/* ---- listen.c ---- */

/* Takes the connection out of its listener's lists. */
void tcp_listen_leave(struct tcp_conn *c);
/* Frees a listener that no connection refers to. */
void tcp_listen_free(struct tcp_listener *l);
/* Drops a connection's reference; the last one frees a closed listener. */
void tcp_listen_unref(struct tcp_listener *l);
/* Moves `c` from the half-open to the unclaimed; the caller has cleared F_HALF. */
void tcp_listen_established(struct tcp_conn *c);
/* Takes the connection out of the lists of half-done ones. */
void tcp_listen_settle(struct tcp_conn *c);

/* Returns the bytes of a chain. */
static inline uint32_t
tcp_slice_len(const struct tcp_slice *chain)
{
	uint32_t n = 0;

	for (; chain != NULL; chain = chain->next)
		n += chain->len;
	return n;
}

static inline void
tcp_slice_drop(struct tcp_stack *s, struct tcp_slice *chain)
{
	if (chain != NULL)
		s->ops.slice_free(s->ctx, chain);
}

#endif
