/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of lib/tcp share: the connection, the stack, and who calls whom.
 *
 *	input.c   a segment comes in     ->  ack.c (what it acknowledges), reasm.c (what it brings)
 *	ack.c     the queue of records   ->  sack.c (scoreboard), rack.c (loss), rtt.c, cc*.c
 *(window) timers.c  a deadline is due      ->  rack.c, conn.c output.c  a connection has its turn
 *in tcp_stack_poll()  ->  segment.c (one segment)
 *
 * The owner may call tcp_send(), tcp_close(), tcp_abort(), tcp_consumed() from inside its
 *callbacks. So whoever runs a callback holds the connection with tcp_conn_hold() and looks at its
 *state afterwards; a connection that ended meanwhile is freed by the last tcp_conn_release().
 */
#ifndef SAKER_TCP_PRIV_H
#define SAKER_TCP_PRIV_H

#include <errno.h>
#include <sys/queue.h>

#include "../base/mem.h"
#include "cc.h"
#include "tcp.h"

/* ---- Constants with a reason ---- */

#define TCP_TICK_SHIFT 20 /* a timestamp tick is 2^20 ns: RFC 7323 5.4 asks for 1 ms to 1 s */
#define TCP_PAWS_IDLE_NS                                                                           \
	(24ull * 86400 * 1000000000) /* RFC 7323 5.5: older timestamps are void                    \
				      */
#define TCP_MSS_DEFAULT_V4  536      /* RFC 9293 3.7.1 */
#define TCP_MSS_DEFAULT_V6  1220
#define TCP_MSS_MIN         88   /* a peer that offers less would make us send mostly headers */
#define TCP_MTU_MIN_V4      576  /* below this a "too big" is not believed (RFC 1191 allows 68) */
#define TCP_MTU_MIN_V6      1280 /* RFC 8200 5 */
#define TCP_TS_LEN          12   /* timestamps option with its padding */
#define TCP_IW_SEGS         10   /* RFC 6928 */
#define TCP_MAX_SEGS        4096 /* segments in flight: bounds each walk over the scoreboard */
#define TCP_DUP_THRESH      3    /* RFC 5681, RFC 8985 */
#define TCP_QUANTUM         16   /* segments a connection may send per turn */
#define TCP_TIMERS_PER_POLL 256
#define TCP_BUSY_PER_POLL   32 /* so many -EAGAIN end a poll: the port is full for all */
#define TCP_CHALLENGES      10 /* RFC 5961 7: in one window of time, per connection */
#define TCP_CHALLENGE_NS    5000000000ull
#define TCP_PTO_MIN_NS                                                                             \
	500000ull /* a peer on a shared core may be away so long: no probe before                  \
		   */
#define TCP_PEER_DELACK_NS 1000000ull     /* what a lone segment's acknowledgement may be late */
#define TCP_FIN_WAIT_2_NS  60000000000ull /* a peer that never closes does not hold a connection */
#define TCP_RACK_PERSIST   16             /* RFC 8985 6.2 step 4 */
#define TCP_RST_QUEUE      64
#define TCP_WSCALE_MAX     14             /* RFC 7323 2.3 */
#define TCP_MIN_RTT_WINDOW 10000000000ull /* RFC 8985 6.1 leaves it open: ten seconds */

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

enum {                         /* conn.todo: what the next turn has to send */
	DO_ACK = 1 << 0,       /* there is something to acknowledge: now or with the timer */
	DO_ACK_NOW = 1 << 1,   /* ... now */
	DO_SYN = 1 << 2,       /* SYN or SYN,ACK, by the state */
	DO_FIN_AGAIN = 1 << 3, /* a FIN without data is sent again */
	DO_TLP = 1 << 4,       /* RFC 8985 7.3 */
	DO_WND_PROBE = 1 << 5, /* RFC 9293 3.8.6.1 */
	DO_KEEPALIVE = 1 << 6, /* RFC 9293 3.8.4 */
	DO_RTX_FIRST = 1 << 8, /* one lost segment goes whatever the congestion window says */
	DO_WND_FORCE =
		1 << 7, /* the window is too small for a record, but the wait is over: cut it */
};

enum {                           /* conn.flags */
	F_TS = 1 << 0,           /* timestamps were negotiated */
	F_SACK = 1 << 1,         /* SACK was negotiated */
	F_ECN = 1 << 2,          /* ECN was negotiated */
	F_WSCALE = 1 << 3,       /* window scaling was negotiated */
	F_FIN_QUEUED = 1 << 4,   /* tcp_close() was called */
	F_FIN_SENT = 1 << 5,     /* our FIN has the sequence number snd_nxt - 1 */
	F_FIN_KNOWN = 1 << 6,    /* the peer's FIN is at rcv_fin */
	F_FIN_TAKEN = 1 << 7,    /* ... and rcv_nxt is behind it */
	F_FIN_NOTIFIED = 1 << 8, /* ... and the owner knows */
	F_ECHO_CE = 1 << 9,      /* our acknowledgements carry ECE */
	F_SEND_CWR = 1 << 10,    /* the next new data carries CWR */
	F_ANNOUNCED = 1 << 11,   /* the owner gets events */
	F_OVER = 1 << 12,        /* TCP_EV_CLOSED was sent */
	F_CLAIMED = 1 << 13,     /* the connection does not count against a backlog */
	F_PASSIVE = 1 << 14,
	F_CWND_LIMITED = 1 << 15, /* the congestion window held data back */
	F_REORDERING = 1 << 16,   /* RACK.reordering_seen */
	F_RACK_DSACK = 1 << 17,   /* RACK.dsack_round is valid */
	F_TLP_RETRANS = 1 << 18,  /* TLP.is_retrans */
	F_TLP_OUT = 1 << 19,      /* TLP.end_seq is valid */
	F_DSACK = 1 << 20,        /* conn.dsack is to be reported */
	F_HALF = 1 << 21,         /* counted as half-open */
	F_LISTED = 1 << 22,       /* in the list `link` */
	F_UNDO = 1 << 23,         /* prior_cwnd and prior_ssthresh are valid */
	F_EIFEL = 1 << 24, /* eifel_ts is valid: the next acknowledgement judges the timeout */
};

enum { /* tcp_rec.flags */
	R_SACKED = 1 << 0,
	R_LOST = 1 << 1,    /* deemed lost and not sent again yet */
	R_RETRANS = 1 << 2, /* sent more than once */
};

enum tcp_ca { CA_OPEN, CA_CWR, CA_RECOVERY, CA_LOSS }; /* the congestion controller's view */

enum { T_RTX, T_DELACK, T_LIFE, T_COUNT };
enum tcp_rtx_kind { RTX_NONE, RTX_RTO, RTX_PTO, RTX_REO, RTX_PERSIST };

enum { ON_NONE, ON_WORK, ON_BUSY }; /* conn.where */

struct tcp_rack { /* RFC 8985 6.1 */
	uint64_t xmit_ts, rtt;
	uint64_t min_rtt, min_rtt_at;
	uint32_t end_seq, fack;
	uint32_t dsack_round;
	uint8_t reo_wnd_mult, reo_wnd_persist;
};

struct tcp_conn {
	/* Every segment in */
	struct tcp_stack *s;
	uint8_t state, busy, ca, where;
	bool fast; /* established and nothing unusual: the guards of the fast path may be tried */
	uint8_t snd_wscale, rcv_wscale;
	uint8_t rtx_kind;
	uint16_t todo;
	uint16_t rcv_mss; /* the largest segment that came: what "full-sized" means */
	uint32_t flags;
	uint32_t rcv_nxt, rcv_adv, rcv_acked; /* rcv_adv: right edge of the window as advertised */
	uint32_t rcv_unread;                  /* delivered or waiting, not yet consumed: bytes */
	uint32_t ts_recent;
	uint32_t snd_una, snd_nxt, snd_wnd, snd_wl1, snd_wl2;
	uint64_t last_rx;
	uint64_t keepalive_ns; /* 0: the stack's */

	/* Every segment out, every acknowledgement */
	struct tcp_rec *seg_head,
		*seg_tail; /* first records of the first and last segments in flight */
	struct tcp_rec *unsent, *q_tail; /* the first unsent record, the last of all */
	uint32_t queued;                 /* bytes in the queue */
	uint32_t cwnd, ssthresh;
	uint32_t sacked_out,
		lost_out; /* bytes in flight that were SACKed; that are lost and not sent again */
	uint32_t nsegs, nsacked; /* segments in flight, of them SACKed */
	uint32_t max_wnd;        /* the largest window that the peer offered */
	uint32_t emss, tso_max;
	uint32_t ts_offset;
	uint64_t last_tx; /* last data */
	uint64_t due[T_COUNT];

	struct tcp_tuple tuple;
	void *user;
	TAILQ_ENTRY(tcp_conn) work;
	struct sk_timer timer;
	uint64_t srtt, rttvar, rto; /* ns; srtt 0: no sample yet */
	uint32_t rtt_seq;           /* the next RTO sample waits for this acknowledgement */
	uint8_t backoff, retries, probes, dupacks;
	struct tcp_rack rack;

	/* Receiving out of order */
	struct tcp_slice *ooo, *ooo_tail;         /* runs, by sequence number */
	struct tcp_slice *refused, *refused_tail; /* in order, but ops->deliver said no */
	uint32_t ooo_count;                       /* slices, out of order and refused */
	uint32_t ooo_bytes;
	uint32_t rcv_fin;
	struct wire_sack sack[TCP_MAX_SACK]; /* what we report, latest first */
	struct wire_sack dsack;
	uint8_t nsack;
	uint8_t challenges;

	/* Loss recovery */
	uint32_t recover;  /* ca leaves recovery when snd_una gets here */
	uint32_t rtx_high; /* no segment behind this was sent again */
	uint32_t tlp_end;
	uint32_t prior_cwnd, prior_ssthresh, undo_retrans;
	uint32_t eifel_ts; /* our timestamp clock at the first timeout: before any retransmission */
	struct tcp_rec *lost_hint; /* no lost segment before it; NULL: seg_head */
	union tcp_cc_state cc;

	/* Rarely */
	TAILQ_ENTRY(tcp_conn) link; /* half-open, unclaimed, TIME_WAIT or free */
	struct tcp_listener *listener;
	uint64_t ts_recent_at, challenge_at;
	uint32_t iss, irs, mtu;
	uint16_t peer_mss, soft_error;
	int reason;
	uint64_t n_retransmits, n_bytes_in;
	uint32_t n_rtos, n_tlps, n_dup_acks;
	uint64_t n_acked;
};

TAILQ_HEAD(tcp_conn_list, tcp_conn);

struct tcp_listener {
	struct tcp_stack *s;
	void *user;
	uint32_t backlog, n_half, n_unclaimed;
	uint32_t refs; /* connections that point here */
	bool closed;
	struct tcp_conn_list half, unclaimed; /* oldest first */
	TAILQ_ENTRY(tcp_listener) link;
};

struct tcp_rst { /* a reset that the port could not take yet */
	struct tcp_tuple to;
	struct wire_tcp tcp;
};

struct tcp_stack {
	struct tcp_ops ops;
	void *ctx;
	uint64_t now; /* of the latest call: for calls that have none */
	struct tcp_conn_list work, busy;
	const struct tcp_cc_ops *cc;
	struct tcp_config cfg;
	uint32_t n_live, n_half, n_tw; /* connections; max_conns bounds n_live */
	uint32_t ooo_total;            /* slices that all connections keep */
	struct tcp_conn *pool;
	uint32_t pool_size, pool_fresh; /* those behind pool_fresh were never used */
	struct tcp_conn_list free, tw;
	TAILQ_HEAD(, tcp_listener) listeners;
	struct tcp_rst rst[TCP_RST_QUEUE];
	unsigned nrst;
	uint64_t counters[tcp_reason_count];
	struct sk_wheel wheel;
};

/* ---- conn.c, stack.c ---- */

struct tcp_conn *tcp_conn_new(struct tcp_stack *s, const struct tcp_tuple *t, uint32_t mtu);
void tcp_conn_free_now(struct tcp_conn *c);
/* The end: records and slices go back, the owner is told once, the connection is freed as soon as
 * nobody holds it. */
void tcp_conn_end(struct tcp_conn *c, int reason);
/* The owner's part is over. */
void tcp_conn_over(struct tcp_conn *c, int reason);
void tcp_conn_time_wait(struct tcp_conn *c);
void tcp_conn_unlink(struct tcp_conn *c);
void tcp_conn_drop_buffers(struct tcp_conn *c);
void tcp_conn_event(struct tcp_conn *c, enum tcp_event ev);
/* Takes the peer's options from its SYN. */
void tcp_conn_options(struct tcp_conn *c, const struct wire_tcp *syn);
/* Recomputes emss; true if it changed. */
bool tcp_conn_set_emss(struct tcp_conn *c);
void tcp_conn_established(struct tcp_conn *c);

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

/* Puts `c` on the list of those that have a turn in the next poll. One that ended inside a callback
 * stays off: it is about to be freed. */
static inline void
tcp_conn_wake(struct tcp_conn *c)
{
	if (c->where == ON_NONE && c->state != TCPS_CLOSED) {
		c->where = ON_WORK;
		TAILQ_INSERT_TAIL(&c->s->work, c, work);
	}
}

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

static inline uint32_t
tcp_ticks(const struct tcp_conn *c, uint64_t now)
{
	return (uint32_t)(now >> TCP_TICK_SHIFT) + c->ts_offset;
}

/* Bytes that are thought to be in the network (RFC 6675 "pipe"). */
static inline uint32_t
tcp_in_flight(const struct tcp_conn *c)
{
	uint32_t out = c->snd_nxt - c->snd_una, gone = c->sacked_out + c->lost_out;

	return out > gone ? out - gone : 0;
}

uint32_t tcp_isn(const struct tcp_stack *s, const struct tcp_tuple *t, uint64_t now);
uint32_t tcp_ts_offset(const struct tcp_stack *s, const struct tcp_tuple *t);

/* ---- input.c, fin.c, ack.c, reasm.c, sack.c ---- */

void tcp_challenge(struct tcp_conn *c);

struct tcp_acked { /* what one acknowledgement brought */
	uint64_t now;
	uint32_t bytes;      /* acknowledged cumulatively */
	uint32_t sacked;     /* newly SACKed */
	uint64_t first_sent; /* the oldest and the newest transmission among them that were */
	uint64_t last_sent;  /* sent once only; 0: none */
	uint32_t ts_ecr;
	bool ts, dsack, ece;
};

/* The segment's acknowledgement, already known to lie in [snd_una, snd_nxt]. `plain`: no SACK,
 * nothing lost. */
void tcp_ack(struct tcp_conn *c, uint64_t now, const struct wire_tcp *seg, uint32_t len);
void tcp_ack_plain(struct tcp_conn *c, uint64_t now, const struct wire_tcp *seg);
void tcp_sack_process(struct tcp_conn *c, const struct wire_tcp *seg, struct tcp_acked *a);
void tcp_sack_forget(struct tcp_conn *c);

/* Payload at `seq` (within the window or not); takes the chain. Returns how many bytes of it, from
 * its start, lie inside the window. */
void tcp_reasm_input(struct tcp_conn *c, uint32_t seq, struct tcp_slice *chain, uint32_t len);
/* In-order payload, nothing waiting. */
void tcp_reasm_deliver(struct tcp_conn *c, struct tcp_slice *chain, uint32_t len);
void tcp_reasm_free_all(struct tcp_conn *c);
void tcp_reasm_dsack(struct tcp_conn *c, uint32_t left, uint32_t right);
void tcp_fin_reached(struct tcp_conn *c);
void tcp_fin_acked(struct tcp_conn *c);

/* ---- rack.c, loss.c, rtt.c ---- */

void tcp_rack_init(struct tcp_conn *c);
/* A segment has been acknowledged or SACKed for the first time. */
void tcp_rack_delivered(struct tcp_conn *c, struct tcp_rec *seg, struct tcp_acked *a);
/* Marks what is lost; sets the reordering timer if some may be. */
void tcp_rack_detect(struct tcp_conn *c, uint64_t now);
void tcp_rack_dsack(struct tcp_conn *c);
void tcp_rack_round(struct tcp_conn *c, uint32_t ack);
void tcp_loss_mark(struct tcp_conn *c, struct tcp_rec *seg);
void tcp_loss_rto(struct tcp_conn *c, uint64_t now);
/* RFC 3522: does this acknowledgement show that the timeout was for nothing? */
void tcp_loss_judge_rto(struct tcp_conn *c, const struct tcp_acked *a);
/* After an acknowledgement: enters or leaves recovery, lets the congestion controller grow. */
void tcp_loss_after_ack(struct tcp_conn *c, const struct tcp_acked *a);
void tcp_loss_dupack(struct tcp_conn *c, uint64_t now);
void tcp_loss_tlp_ack(struct tcp_conn *c, uint32_t ack, const struct tcp_acked *a);

void tcp_rtt_init(struct tcp_conn *c);
void tcp_rtt_sample(struct tcp_conn *c, uint64_t now, uint64_t rtt);
/* The handshake's round trip. */
void tcp_rtt_first(struct tcp_conn *c, uint64_t now);
void tcp_rtt_min(struct tcp_conn *c, uint64_t now, uint64_t rtt);
/* RTO with its backoff. */
uint64_t tcp_rtt_rto(const struct tcp_conn *c);

/* ---- timers.c ---- */

/* Named after what happened; which timer that concerns is timers.c's affair. */
void tcp_timers_sent(
	struct tcp_conn *c, uint64_t now); /* something that wants an acknowledgement */
void tcp_timers_acked(
	struct tcp_conn *c, uint64_t now); /* snd_una moved, or the scoreboard changed */
void tcp_timers_reorder(struct tcp_conn *c, uint64_t now, uint64_t wait);
void tcp_timers_window_closed(struct tcp_conn *c, uint64_t now);
void tcp_timers_ack_delayed(struct tcp_conn *c, uint64_t now);
void tcp_timers_life(struct tcp_conn *c, uint64_t deadline);
void tcp_timers_alive(struct tcp_conn *c, uint64_t now); /* established: keepalive starts */
void tcp_timers_stop(struct tcp_conn *c);
void tcp_timers_fire(void *stack, struct sk_timer *t, uint64_t now);

/* ---- output.c, segment.c, reset.c ---- */

/* The connection's turn: at most `most` segments. Returns how many; links the connection to where
 * it belongs. */
unsigned tcp_output(struct tcp_conn *c, uint64_t now, unsigned most);

void tcp_seg_header(
	struct tcp_conn *c, uint64_t now, struct tcp_out *out, uint8_t flags, uint32_t seq);
/* Adds SACK blocks as far as `room` bytes of options allow. */
void tcp_seg_sack(struct tcp_conn *c, struct tcp_out *out, uint32_t room);
/* 0, or -EAGAIN: nothing happened. */
int tcp_seg_emit(struct tcp_conn *c, struct tcp_out *out);
int tcp_seg_pure_ack(struct tcp_conn *c, uint64_t now);
int tcp_seg_syn(struct tcp_conn *c, uint64_t now);
int tcp_seg_retransmit(struct tcp_conn *c, uint64_t now, struct tcp_rec *seg);
/* Sends new records, `room` bytes at most: 1 or more segments in one go; 0: nothing fits; -EAGAIN.
 */
int tcp_seg_new(struct tcp_conn *c, uint64_t now, uint32_t room);
int tcp_seg_fin(struct tcp_conn *c, uint64_t now, bool again);
int tcp_seg_probe(struct tcp_conn *c, uint64_t now);
/* Cuts a segment in flight so that it has at most `at` bytes; false: no memory. */
bool tcp_seg_cut(struct tcp_conn *c, struct tcp_rec *seg, uint32_t at);

void tcp_rst_send(struct tcp_stack *s, struct tcp_conn *c, const struct tcp_tuple *to,
	const struct wire_tcp *tcp);
/* For a segment that belongs to nobody, or whose acknowledgement cannot be (RFC 9293 3.10.7.1). */
void tcp_rst_answer(
	struct tcp_stack *s, const struct tcp_tuple *to, const struct wire_tcp *seg, uint32_t len);
unsigned tcp_rst_flush(struct tcp_stack *s);

/* ---- listen.c ---- */

/* The connection leaves its listener's lists. */
void tcp_listen_leave(struct tcp_conn *c);
void tcp_listen_unref(struct tcp_listener *l);
void tcp_listen_established(struct tcp_conn *c);

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
