/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP with the parts that a data-centre peer needs: RFC 9293, 7323, 2018, 8985 (RACK-TLP), 5961,
 * 6528, 3168, 8257 and 9438. A connection is a state machine without a clock and without I/O: each
 * call takes `now` (nanoseconds), received segments come in as parsed headers with slices of
 * payload, and segments to send leave through tcp_ops.
 *
 * TCP carries *records*: the bytes that the layer above keeps together in one segment (an FPDU, for
 * example). TCP cuts a record only when it exceeds the effective MSS; a retransmission keeps the
 * boundaries of records; several whole records may share a segment.
 *
 * One tcp_stack belongs to one transport stage. No function of this header is safe to call from two
 * threads at a time on the same stack. The caller (the "owner" below) keeps the table of tuples and
 * finds the connection that a segment belongs to.
 *
 * Ports, sequence numbers, windows and lengths are in host order, times are in nanoseconds, and
 * lengths are in bytes.
 */
#ifndef SAKER_TCP_H
#define SAKER_TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/addr.h"
#include "../base/prf.h"
#include "../base/reason.h"
#include "../base/wheel.h"
#include "../wire/wire.h"

struct tcp_stack;
struct tcp_conn;
struct tcp_listener;

/* The key of a connection: addresses and ports, and the network that they are valid in. */
struct tcp_tuple {
	struct sk_addr laddr, raddr;
	uint16_t lport, rport;
	uint16_t vlan; /* VLAN id, or ETH_NO_VLAN */
	uint16_t port; /* index of the network port */
};

/* ---- Bytes ---- */

/*
 * A record to send. It lies in the owner's buffer (an mbuf's private area, a malloc'ed block). TCP
 * owns the record from tcp_send() until ops->rec_free(); the owner does not change the bytes at
 * `data` during this time.
 */
struct tcp_rec {
	struct tcp_rec *next;
	uint8_t *data; /* NULL: the record has a length, but no bytes (simulator) */
	void *owner;   /* the owner's pointer; TCP does not use it */
	uint32_t len;  /* bytes, 1 or more */
	/* TCP does not use it: the Internet checksum of the bytes (sk_sum_fold()) if the owner has
	 * computed it and `len` is even, else 0. */
	uint16_t sum;
	/* TCP sets the fields below; they are valid in the first record of a segment in flight. */
	uint8_t flags, xmits;     /* TCP's marks; number of transmissions */
	uint32_t seg_len;         /* bytes of the segment, which consists of whole records */
	uint32_t seq;             /* sequence number of the segment */
	uint64_t sent_at;         /* time of the last transmission, ns */
	struct tcp_rec *seg_next; /* first record of the next segment in flight */
};

/*
 * A piece of received payload. It lies in the owner's buffer. TCP owns the slice from tcp_input()
 * until ops->deliver() accepts it or ops->slice_free() gives it back. TCP never writes to the bytes
 * at `data`.
 */
struct tcp_slice {
	struct tcp_slice *next;
	const uint8_t *data; /* NULL: the slice has a length, but no bytes (simulator) */
	uint32_t len;        /* bytes */
	uint32_t seq;        /* sequence number of the first byte; TCP sets it */
	void *owner;         /* the owner's pointer; TCP does not use it */
	/* TCP does not use them: the running CRC32C (SK_CRC32C_INIT) after the `crc_len` bytes that
	 * followed `data` when the owner computed it, which may have moved since; 0 bytes: none. */
	uint32_t crc, crc_len;
	/* TCP uses the fields while the slice waits out of order, as the first one of a run of
	 * adjacent slices: the last slice of the run, and the runs below it in the tree. */
	struct tcp_slice *run_tail, *run_left, *run_right;
};

/* A segment to build: the header in host order, and the bytes [off, off + len) of the chain of
 * records that begins at `first`. */
struct tcp_out {
	struct wire_tcp tcp;   /* all fields but the checksum, which the owner fills in */
	struct tcp_rec *first; /* NULL when `len` is 0 */
	uint32_t off, len;     /* bytes */
	/* 0, or the segment size of TSO in payload bytes: the port cuts the bytes into segments of
	 * this size, each of which holds whole records. The last segment may be shorter. */
	uint32_t gso_size;
	uint8_t ecn; /* IP_ECN_* for the IP header */
};

/* ---- Callbacks of the owner ---- */

enum tcp_event {
	/* The connection is established. tcp_conn_listener() returns the listener of a passive
	 * open; the owner accepts the connection with tcp_claim(). */
	TCP_EV_CONNECTED,
	TCP_EV_SENT, /* the send buffer has more room: tcp_send_space() grew */
	TCP_EV_EMSS, /* the value of tcp_emss() changed */
	/* The peer is silent, and the owner holds delivered bytes as far as TCP can see: the owner
	 * calls tcp_consumed() for those that it has processed. If it still holds some, the
	 * keepalive probes of tcp_config.keepalive_held_ns begin. */
	TCP_EV_UNREAD,
	TCP_EV_PEER_FIN, /* the peer closed its direction, and the owner has all of its bytes */
	/* The last event of a connection; tcp_close_reason() returns the reason. The connection may
	 * stay in TIME_WAIT, or be left (tcp_leave()): until ops->conn_removed() the owner passes
	 * it segments and ICMP errors, and calls nothing else on it. A connection that came from a
	 * listener and was never TCP_EV_CONNECTED ends without an event. */
	TCP_EV_CLOSED,
};

/*
 * From inside deliver(), event(), conn_added() and conn_removed() the owner may call any function
 * but tcp_input(), tcp_listen_input(), tcp_orphan_input(), tcp_stack_poll() and
 * tcp_stack_destroy(). TCP frees a connection that the owner aborts there when the outermost call
 * returns. The other callbacks may not call TCP.
 */
struct tcp_ops {
	/*
	 * Sends one segment to `to`, the tuple of `conn`. `conn` is NULL for a reset that belongs
	 * to no connection. The records stay TCP's.
	 *
	 * Returns 0 when the segment is sent, or -EAGAIN when the port or its buffers are full: TCP
	 * tries again at the next poll. Another negative errno means that the segment is lost, as
	 * on a wire; it becomes the reason if the connection times out.
	 *
	 * tcp_stack_poll() calls it; other functions call it for resets and for DCTCP's immediate
	 * acknowledgement of a changed CE mark (RFC 8257 3.2).
	 */
	int (*output)(void *ctx, struct tcp_conn *conn, const struct tcp_tuple *to,
		const struct tcp_out *out);
	/* Delivers payload in order, as a chain. Returns true when the owner accepts the chain and
	 * owns it from here on. After false, TCP keeps the chain, its receive window closes, and
	 * tcp_deliver_resume() delivers the chain again. */
	bool (*deliver)(void *ctx, struct tcp_conn *conn, struct tcp_slice *chain);
	/* Gives a chain of slices back to the owner. */
	void (*slice_free)(void *ctx, struct tcp_slice *chain);
	/* Gives a chain of records back to the owner: the peer acknowledged them, or the connection
	 * ended. */
	void (*rec_free)(void *ctx, struct tcp_rec *chain);
	/* Cuts `rec`, a record of `conn`, at byte `at`: sets rec->len to `at` and returns a new
	 * record with the other bytes, whose `next` TCP sets. TCP frees both records separately.
	 * Returns NULL without memory; TCP tries again later. */
	struct tcp_rec *(*rec_split)(
		void *ctx, struct tcp_conn *conn, struct tcp_rec *rec, uint32_t at);
	void (*event)(void *ctx, struct tcp_conn *conn, enum tcp_event ev);
	/* Reports a new connection, and the end of one: the owner keeps its table of tuples by
	 * these. `l` is the listener that received the SYN, or NULL after tcp_connect(). */
	void (*conn_added)(void *ctx, struct tcp_conn *conn, struct tcp_listener *l);
	void (*conn_removed)(void *ctx, struct tcp_conn *conn);
	/* Reports a rare event of a connection, which has been counted: losses, retransmissions,
	 * timeouts, probes, ECN echoes, path MTU changes, resets. It only takes a note: it calls no
	 * function that changes the connection. NULL: nobody takes notes. */
	void (*trace)(void *ctx, struct tcp_conn *conn, unsigned reason); /* enum tcp_reason */
};

/* ---- Configuration ---- */

struct tcp_config {
	uint32_t max_conns; /* connections, without those half-open, left or in TIME_WAIT */
	/* Half-done connections: those that a peer opened and that are not settled yet
	 * (tcp_settled()), of all listeners together, of one listener, and of one source prefix
	 * (an IPv4 address, or 64 bits of an IPv6 address). Beyond it TCP ends an older one or
	 * drops the SYN. A listener with a small backlog has fewer: max(backlog, 32). */
	uint32_t max_half_open, half_open_per_listener, half_open_per_prefix;
	uint32_t max_time_wait; /* connections in TIME_WAIT; beyond it TCP drops the oldest */
	uint32_t max_left;      /* connections that are left; beyond it tcp_leave() resets */
	/* Bytes per connection. rcv_buf holds at least one FPDU of maximal length and a segment. */
	uint32_t snd_buf, rcv_buf;
	/* Slices that one connection keeps at most, out of order or refused by ops->deliver(); the
	 * slices of one segment that is refused may exceed it. */
	uint32_t ooo_slices;
	/* Slices that all connections together keep at most. One connection keeps no more than are
	 * left over, but always a few: TCP discards the slices of the connection that made no
	 * progress for the longest time. */
	uint32_t ooo_slices_total;
	uint64_t msl_ns; /* maximum segment lifetime; TIME_WAIT lasts twice this */
	uint64_t rto_min_ns, rto_max_ns, rto_initial_ns; /* RFC 6298 */
	uint64_t delack_ns;                              /* delay of an acknowledgement */
	/* Silence before the first keepalive probe, of any connection, and of one that holds
	 * received bytes, which the peer must complete; 0: no probes. */
	uint64_t keepalive_idle_ns, keepalive_held_ns;
	uint64_t keepalive_interval_ns;
	uint32_t keepalive_probes;          /* probes without an answer that end a connection */
	uint32_t syn_retries, data_retries; /* retransmissions that end a connection */
	/* Time that a peer may keep its window closed, although it answers, before TCP resets the
	 * connection; 0: for ever. The time counts anew when the peer has taken 64 KiB. */
	uint64_t zero_window_ns;
	const char *cc;        /* "cubic", "dctcp", or "none" (a large fixed window) */
	bool ecn;              /* negotiate ECN; DCTCP always does */
	bool timestamps, sack; /* negotiate the option (RFC 7323, RFC 2018) */
	uint8_t rcv_wscale;    /* shift of our window, 0 to 14 (RFC 7323 2) */
	struct sk_key isn_key; /* secret of initial sequence numbers (RFC 6528) */
	bool general; /* the fast path of input is off, for comparisons with the general one */
};

/* Fills in the defaults: timeouts and buffers for a data centre, and a random key. */
void tcp_config_default(struct tcp_config *cfg);

/* Returns a new stack, or NULL without memory or when a field of `cfg` is out of its range. Copies
 * `cfg` and `ops`; `ctx` is the first argument of each callback. */
struct tcp_stack *tcp_stack_create(
	const struct tcp_config *cfg, const struct tcp_ops *ops, void *ctx, uint64_t now);
/* Frees the stack and its connections. Gives all records and slices back through ops; sends no
 * resets and no events. */
void tcp_stack_destroy(struct tcp_stack *s);

/* Runs the timers that are due, then sends the segments that the connections need: at most `budget`
 * segments, and one acknowledgement per connection however many segments came. The owner calls it
 * once per turn of its loop. Returns the number of segments sent. */
unsigned tcp_stack_poll(struct tcp_stack *s, uint64_t now, unsigned budget);
/* Returns the time (ns) of the next necessary poll when no segment arrives before: the time of the
 * latest call or earlier when segments wait to be sent, SK_NEVER without any timer. */
uint64_t tcp_stack_deadline(const struct tcp_stack *s);
/* Returns the counters, indexed by enum tcp_reason: tcp_reason_count entries. */
const uint64_t *tcp_stack_counters(const struct tcp_stack *s);

/* ---- Connections ---- */

/* Begins an active open (RFC 9293 3.10.1). `mtu` is the path MTU in bytes of an IP packet: the
 * effective MSS is mtu - IP header - TCP header - options. `user` is the owner's pointer
 * (tcp_user()). Returns 0 and sets *out, or -ENOBUFS when all connections are in use. */
int tcp_connect(struct tcp_stack *s, uint64_t now, const struct tcp_tuple *t, uint32_t mtu,
	void *user, struct tcp_conn **out);

/* Returns a listener, which accepts the SYNs that the owner passes to tcp_listen_input(), or NULL
 * without memory. `backlog` bounds its half-open connections plus its established connections
 * before their tcp_claim(). */
struct tcp_listener *tcp_listen(struct tcp_stack *s, uint32_t backlog, void *user);
/* Closes a listener, and resets its connections that the owner has not claimed. */
void tcp_unlisten(struct tcp_listener *l, uint64_t now);
void *tcp_listener_user(const struct tcp_listener *l);
/* Takes an accepted connection out of its listener's backlog, and sets its user pointer. With
 * tcp_claim(), the connection is settled; after tcp_claim_early(), it is half-done until
 * tcp_settled(), because the peer still has to complete the exchange of the layer above. TCP may
 * reset a connection that is half-done for a second when its place is needed. */
void tcp_claim(struct tcp_conn *c, void *user);
void tcp_claim_early(struct tcp_conn *c, void *user);
void tcp_settled(struct tcp_conn *c);

/*
 * Each of these functions processes one received segment: of the connection `c`, for the listener
 * `l` (the tuple has no connection yet), or of neither, which TCP answers with a reset (RFC 9293
 * 3.10.7.1). `payload` is NULL or a chain whose lengths sum up to the segment's payload; TCP owns
 * the chain from here on. `ecn` is the ECN field of the IP header. `mtu` is the path MTU in bytes,
 * as in tcp_connect().
 */
void tcp_input(struct tcp_conn *c, uint64_t now, const struct wire_tcp *seg,
	struct tcp_slice *payload, uint8_t ecn);
void tcp_listen_input(struct tcp_listener *l, uint64_t now, const struct tcp_tuple *t, uint32_t mtu,
	const struct wire_tcp *seg, struct tcp_slice *payload, uint8_t ecn);
void tcp_orphan_input(struct tcp_stack *s, uint64_t now, const struct tcp_tuple *t,
	const struct wire_tcp *seg, struct tcp_slice *payload);
/* If the connection is in TIME-WAIT and `seg` is a SYN that may open a new incarnation of it, ends
 * the connection and returns true (RFC 6191). The owner asks this before tcp_input() when the
 * segment is addressed to a listener, which may be another one than the connection's, and then
 * passes the segment to tcp_listen_input(). */
bool tcp_reopen(struct tcp_conn *c, uint64_t now, const struct wire_tcp *seg);

/* Queues a chain of records; the next tcp_stack_poll() sends them. The caller keeps within
 * tcp_send_space(), which a chain may exceed by one record: TCP does not refuse more. Returns 0, or
 * -EPIPE after tcp_close() or the end of the connection: the records then went back through
 * ops->rec_free(). */
int tcp_send(struct tcp_conn *c, struct tcp_rec *chain);
/* Returns the bytes that the send buffer has room for; 0 or less: none. */
int64_t tcp_send_space(const struct tcp_conn *c);
/* Reports that the owner has processed so many delivered bytes. Delivered bytes count against
 * rcv_buf until then, so the receive window may open. */
void tcp_consumed(struct tcp_conn *c, uint32_t bytes);
/* Delivers again the payload that ops->deliver() refused. */
void tcp_deliver_resume(struct tcp_conn *c);
/* Closes our direction: sends FIN after all records in the queue (RFC 9293 3.10.4). */
void tcp_close(struct tcp_conn *c, uint64_t now);
/* Limits the rest of the connection's life to a minute, and the time of TIME_WAIT, whatever the
 * peer does: for a connection whose owner only waits for its end. Without it, new bytes of the peer
 * extend the life of a half-closed connection, and acknowledged bytes that of records. */
void tcp_limit_life(struct tcp_conn *c, uint64_t now);
/* Sends RST and ends the connection (RFC 9293 3.10.5). TCP_EV_CLOSED comes before the function
 * returns. */
void tcp_abort(struct tcp_conn *c, uint64_t now);
/* The note of the owner about a connection that it leaves; TCP does not use it. */
struct tcp_note {
	uint64_t word[2];
};
/*
 * Leaves the connection to TCP (RFC 9293 3.6 and 3.10.4): TCP sends the records of its queue and
 * then FIN, and nobody receives any more. TCP_EV_CLOSED comes before the function returns, with the
 * reason of tcp_abort(); from then on only ops->output(), rec_split(), rec_free() and
 * conn_removed() concern the connection, with a user pointer of NULL. TCP copies `note`, what the
 * owner then needs to know, for tcp_left().
 *
 * Bytes of the peer that would be lost make TCP reset the connection (RFC 1122 4.2.2.13, RFC 2525
 * 2.17): at once when it holds some that no tcp_consumed() has reported, and later when new ones
 * arrive. It also resets at once a connection that is not established yet, and one beyond max_left.
 * Returns false after such a reset, and true when the connection is left. A connection is left for
 * one minute at most, whatever the peer does, and for the time of TIME_WAIT.
 */
bool tcp_leave(struct tcp_conn *c, uint64_t now, const struct tcp_note *note);
/* Returns the note if the connection was left, and NULL otherwise. */
const struct tcp_note *tcp_left(const struct tcp_conn *c);
/* Resets the left connections for whose tuple pick() returns true, except those in TIME_WAIT. */
void tcp_left_reset(struct tcp_stack *s, uint64_t now,
	bool (*pick)(const void *ctx, const struct tcp_tuple *t), const void *ctx);
/* Returns the number of records in the queue. It walks over them. */
uint32_t tcp_queued_records(const struct tcp_conn *c);
/* Processes an ICMP "packet too big" of this connection. `seq` is the quoted sequence number, `mtu`
 * the reported MTU in bytes; 0: the report has none. Ignores a report whose `seq` lies outside the
 * send window, and one of less than the minimum of the IP version. A report that contradicts what
 * the peer acknowledged waits for a timeout (RFC 5927). The path MTU is the original one again
 * after ten minutes. */
void tcp_icmp_mtu(struct tcp_conn *c, uint64_t now, uint32_t seq, uint32_t mtu);
/* Sets the MTU of the link to the first hop, in bytes of an IP packet, when a connection begins or
 * moves to another link. If it shrinks, the segments in flight that exceed it are retransmitted. A
 * smaller path MTU that was found stays. */
void tcp_set_link_mtu(struct tcp_conn *c, uint64_t now, uint32_t mtu);
/* Processes an ICMP "destination unreachable" of this connection that quotes `seq`. `hard`: the
 * protocol or the port is unreachable. A hard error ends a connection that is not established yet,
 * with -ECONNREFUSED; any other becomes the reason if the connection times out (RFC 9293 3.9.2.2,
 * RFC 5927 5.2). Ignores an error whose `seq` lies outside the send window. */
void tcp_icmp_unreachable(struct tcp_conn *c, uint64_t now, uint32_t seq, bool hard);

/* Returns the largest payload of one segment now, in bytes: MPA derives its MULPDU from it (RFC
 * 5044 4.5). */
uint32_t tcp_emss(const struct tcp_conn *c);
/* Returns the listener that the connection came from, or NULL after tcp_connect(). */
struct tcp_listener *tcp_conn_listener(const struct tcp_conn *c);
const struct tcp_tuple *tcp_tuple(const struct tcp_conn *c);
void *tcp_user(const struct tcp_conn *c);
void tcp_set_user(struct tcp_conn *c, void *user);
/* Returns the reason of TCP_EV_CLOSED: 0 when both sides closed in order, or -ECONNREFUSED,
 * -ECONNRESET, -ETIMEDOUT, -ECONNABORTED (tcp_abort()), or the error of ops->output() (for example
 * -EHOSTUNREACH) that the connection timed out with. */
int tcp_close_reason(const struct tcp_conn *c);
/* Returns true when the peer has acknowledged all bytes of the queue. */
bool tcp_all_acked(const struct tcp_conn *c);
/* Sets the keepalive times of one connection: the first probe follows after `idle_ns` of silence,
 * the next ones at intervals of a fifth of it. 0 restores the times of tcp_config. */
void tcp_set_keepalive(struct tcp_conn *c, uint64_t now, uint64_t idle_ns);
/* Sets the largest TSO segment in payload bytes; 0, the default, turns TSO off. */
void tcp_set_tso(struct tcp_conn *c, uint32_t max_bytes);

/* The report of tcp_get_info(): times in ns, windows and amounts in bytes. */
struct tcp_info {
	const char *state; /* name of the state in RFC 9293 3.3.2 */
	uint64_t srtt_ns, rttvar_ns, rto_ns, min_rtt_ns;
	uint32_t cwnd, ssthresh, snd_wnd, rcv_wnd, in_flight, queued, emss;
	uint64_t retransmits, rtos, tlps;
};
void tcp_get_info(const struct tcp_conn *c, struct tcp_info *out);
/* Returns the bytes of memory that one connection takes, without its buffers. */
size_t tcp_conn_size(void);

/* ---- Reasons ---- */

#define TCP_REASONS(X)                                                                             \
	X(TCP_NO_CONN, SK_NORMAL, "a segment for no connection and no listener")                   \
	X(TCP_HALF_OPEN_FULL, SK_WARNING, "a half-open connection was dropped for a newer SYN")    \
	X(TCP_BACKLOG_FULL, SK_NOTICE, "a SYN was dropped: the listener's backlog is full")        \
	X(TCP_CONNS_FULL, SK_WARNING, "a SYN was refused: all connections are in use")             \
	X(TCP_PREFIX_FULL, SK_WARNING,                                                             \
		"a SYN was dropped: its source prefix has too many half-done connections")         \
	X(TCP_HALF_DONE_ENDED, SK_WARNING,                                                         \
		"a connection without a request was reset to make room for a newer SYN")           \
	X(TCP_BAD_FLAGS, SK_NOTICE, "a segment's flags are not valid in the connection's state")   \
	X(TCP_OUT_OF_WINDOW, SK_NORMAL, "a segment outside the receive window")                    \
	X(TCP_PAWS, SK_NORMAL, "a timestamp older than the last one (RFC 7323 5)")                 \
	X(TCP_OLD_ACK, SK_NORMAL, "an acknowledgement older than the window allows")               \
	X(TCP_FUTURE_ACK, SK_WARNING, "an acknowledgement of bytes that were never sent")          \
	X(TCP_CHALLENGE, SK_NOTICE, "a challenge ACK was sent (RFC 5961)")                         \
	X(TCP_CHALLENGE_LIMIT, SK_NOTICE, "a challenge ACK was withheld (rate limit)")             \
	X(TCP_DUP_PAYLOAD, SK_NORMAL, "a segment repeated payload that was received before")       \
	X(TCP_OOO_FULL, SK_NOTICE, "an out-of-order slice was dropped: the queue is full")         \
	X(TCP_OOO_DISCARDED, SK_WARNING,                                                           \
		"the out-of-order slices of a connection were discarded for those of another")     \
	X(TCP_RCV_FULL, SK_NOTICE, "payload beyond the advertised window was cut off")             \
	X(TCP_RETRANSMIT, SK_NORMAL, "a segment was retransmitted")                                \
	X(TCP_RACK_LOSS, SK_NORMAL, "RACK marked a segment as lost")                               \
	X(TCP_TLP, SK_NORMAL, "a tail loss probe was sent")                                        \
	X(TCP_RTO, SK_NOTICE, "a retransmission timeout expired")                                  \
	X(TCP_SPURIOUS, SK_NORMAL, "a retransmission was unnecessary (DSACK or Eifel detection)")  \
	X(TCP_ZERO_WINDOW_PROBE, SK_NORMAL, "a probe of a closed window was sent")                 \
	X(TCP_ZERO_WINDOW_END, SK_WARNING,                                                         \
		"a connection was reset because the peer kept its window closed for too long")     \
	X(TCP_KEEPALIVE, SK_NORMAL, "a keepalive probe was sent")                                  \
	X(TCP_TIMED_OUT, SK_NOTICE, "a connection ended because the peer did not answer")          \
	X(TCP_LEFT, SK_NORMAL, "a connection was left to TCP, which sends the rest and a FIN")     \
	X(TCP_LEFT_FULL, SK_WARNING,                                                               \
		"a connection was reset instead of left: too many are left already")               \
	X(TCP_LEFT_UNREAD, SK_NOTICE,                                                              \
		"a connection without an owner was reset: bytes of the peer were lost")            \
	X(TCP_LEFT_END, SK_WARNING,                                                                \
		"a connection without an owner was reset: the peer did not take all in time")      \
	X(TCP_RESET_IN, SK_NOTICE, "a valid reset was received")                                   \
	X(TCP_RESET_OUT, SK_NOTICE, "a reset was sent")                                            \
	X(TCP_RESET_LIMIT, SK_NOTICE, "a segment was not answered by a reset (rate limit)")        \
	X(TCP_ECN_CE, SK_NORMAL, "a segment was received with the mark Congestion Experienced")    \
	X(TCP_ECN_ECHO, SK_NORMAL, "the peer echoed a congestion mark (ECE)")                      \
	X(TCP_PMTU, SK_NOTICE, "the path MTU became smaller")                                      \
	X(TCP_UNREACHABLE, SK_NOTICE,                                                              \
		"an ICMP error reported the peer of a connection unreachable")                     \
	X(TCP_OUTPUT_BUSY, SK_NORMAL, "the port was full; the segment is sent again later")

SK_REASONS_DECLARE(tcp, TCP_NONE, TCP_REASONS)

#endif
