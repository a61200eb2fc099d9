/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP lite: what a data-centre peer needs of RFC 9293, 7323, 2018, 8985 (RACK-TLP), 5961, 6528,
 * 3168, 8257, 9438. A connection is a state machine without clock and I/O: every call takes `now`
 * (nanoseconds), received segments come in as parsed records with payload slices, and what is to be
 * sent leaves through tcp_ops.
 *
 * TCP carries *records*: the bytes that the layer above wants to see in one segment. A record is
 * cut only when it exceeds the effective MSS; retransmission keeps record boundaries; several whole
 * records may share a segment.
 *
 * One tcp_stack belongs to one transport stage: nothing here is safe to call from two threads.
 * Which connection a segment belongs to is the caller's business (it owns the table of tuples).
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

struct tcp_tuple {
	struct sk_addr laddr, raddr;
	uint16_t lport, rport;
	uint16_t vlan; /* ETH_NO_VLAN or id: part of the key */
	uint16_t port; /* the network port's index */
};

/* ---- Bytes ---- */

/*
 * A record to send. It lives in the owner's buffer (an mbuf's private area, a malloc'ed block).
 * From tcp_send() until ops->rec_free() it is TCP's; the bytes at `data` do not change meanwhile.
 */
struct tcp_rec {
	struct tcp_rec *next;
	uint8_t *data; /* NULL: a length only (simulator) */
	void *owner;   /* opaque to TCP */
	uint32_t len;  /* bytes, 1 or more */
	/* TCP's own from here on: valid in the first record of each segment that was sent */
	uint32_t seg_len; /* bytes of the segment: whole records */
	uint32_t seq;
	uint16_t flags, xmits;
	uint64_t sent_at;         /* last transmission, ns */
	struct tcp_rec *seg_next; /* first record of the next segment that was sent */
};

/* Received payload. Lives in the owner's buffer; passes to TCP with tcp_input() and leaves by
 * ops->deliver() or ops->slice_free(). `data` is never written to. */
struct tcp_slice {
	struct tcp_slice *next;
	const uint8_t *data; /* NULL: a length only */
	uint32_t len;
	uint32_t seq; /* set by TCP */
	void *owner;
	/* TCP's own, while the slice waits out of order: the next run of adjacent slices, and the
	 * last slice of this one */
	struct tcp_slice *run_next, *run_tail;
};

/* A segment to build: header in host order, and the bytes [off, off + len) of the chain of records
 * that starts at `first`. */
struct tcp_out {
	struct wire_tcp tcp;   /* complete but for the checksum */
	struct tcp_rec *first; /* NULL when len is 0 */
	uint32_t off, len;
	/* 0; else: TSO, cut in segments of so many payload bytes, each of which holds whole
	 * records. The last one may be shorter. */
	uint32_t gso_size;
	uint8_t ecn; /* IP_ECN_* to put into the IP header */
};

/* ---- What the stack asks of its owner ---- */

enum tcp_event {
	/* An open is done; of a passive one: tcp_conn_listener() tells whose, tcp_claim() it. */
	TCP_EV_CONNECTED,
	TCP_EV_SENT,     /* send buffer space came free: tcp_send_space() grew */
	TCP_EV_EMSS,     /* tcp_emss() changed */
	TCP_EV_PEER_FIN, /* the peer will send no more; all its bytes have been delivered */
	/* The last event: tcp_close_reason() tells why. The owner's part is over, though the
	 * connection may stay in TIME_WAIT for a while: until ops->conn_removed it takes segments,
	 * and nothing else may be done with it. A connection that came from a listener and never
	 * was TCP_EV_CONNECTED ends without events. */
	TCP_EV_CLOSED,
};

/*
 * From inside deliver(), event(), conn_added() and conn_removed() the owner may call anything but
 * tcp_input() and its kin, tcp_stack_poll() and tcp_stack_destroy(); a connection that it aborts
 * there is freed when the outermost call returns. The other functions may not call back.
 */
struct tcp_ops {
	/* Sends one segment. 0: taken. -EAGAIN: the port or its buffers are full; the stack asks
	 * again at the next poll. Another negative errno: lost, as on a wire; it becomes the reason
	 * if the connection times out. The records stay TCP's. `conn` NULL: a reset for no
	 * connection; then `to` is the tuple. Called from tcp_stack_poll(); also from other calls
	 * for resets and for DCTCP's acknowledgement of a change (RFC 8257 3.2). */
	int (*output)(void *ctx, struct tcp_conn *conn, const struct tcp_tuple *to,
		const struct tcp_out *out);
	/* In-order payload, a chain; ownership passes if true is returned. false: the stack keeps
	 * it, its window closes, and it offers it again when tcp_deliver_resume() is called. */
	bool (*deliver)(void *ctx, struct tcp_conn *conn, struct tcp_slice *chain);
	void (*slice_free)(void *ctx, struct tcp_slice *chain);
	/* Acknowledged (or aborted) records, a chain. */
	void (*rec_free)(void *ctx, struct tcp_rec *chain);
	/* Cuts `rec` at byte `at`: afterwards rec->len == at, and the returned record has the rest
	 * (its `next` is TCP's). The halves are freed on their own. NULL: no memory now, TCP tries
	 * again later. */
	struct tcp_rec *(*rec_split)(void *ctx, struct tcp_rec *rec, uint32_t at);
	void (*event)(void *ctx, struct tcp_conn *conn, enum tcp_event ev);
	/* A connection was created (a SYN came to `l`; l NULL: tcp_connect) or is going away: keep
	 * the tuple table. */
	void (*conn_added)(void *ctx, struct tcp_conn *conn, struct tcp_listener *l);
	void (*conn_removed)(void *ctx, struct tcp_conn *conn);
};

/* ---- Configuration ---- */

struct tcp_config {
	uint32_t max_conns;
	uint32_t max_half_open; /* SYN_RECEIVED, all listeners together; beyond it the oldest is
				   dropped */
	uint32_t max_time_wait; /* beyond it the oldest is dropped */
	uint32_t snd_buf,
		rcv_buf; /* bytes per connection; rcv_buf at least one maximal FPDU and a segment */
	uint32_t ooo_slices;       /* most slices a connection keeps (out of order, or refused by
				      ops->deliver) */
	uint32_t ooo_slices_total; /* most that all connections keep together */
	uint64_t msl_ns;           /* TIME_WAIT lasts twice this */
	uint64_t rto_min_ns, rto_max_ns, rto_initial_ns;
	uint64_t delack_ns;
	uint64_t keepalive_idle_ns; /* 0: off */
	uint64_t keepalive_interval_ns;
	uint32_t keepalive_probes;
	uint32_t syn_retries, data_retries;
	const char *cc; /* "cubic", "dctcp", "none" (a fixed, large window) */
	bool ecn;       /* offer and accept ECN (always with dctcp) */
	bool timestamps, sack;
	uint8_t rcv_wscale;    /* 0..14 */
	struct sk_key isn_key; /* RFC 6528 */
};

/* Fills in the defaults (milliseconds and buffers of a data centre; random key). */
void tcp_config_default(struct tcp_config *cfg);

/* NULL when memory lacks or a field of `cfg` makes no sense. `cfg` and `ops` are copied. */
struct tcp_stack *tcp_stack_create(
	const struct tcp_config *cfg, const struct tcp_ops *ops, void *ctx, uint64_t now);
/* Frees all records and slices through ops, no events, no resets. */
void tcp_stack_destroy(struct tcp_stack *s);

/* Once per turn of the loop: timers that are due, then the segments that this turn made necessary
 * (one acknowledgement per connection however many segments came). Returns how many segments went
 * out. */
unsigned tcp_stack_poll(struct tcp_stack *s, uint64_t now, unsigned budget);
/* When it wants to be polled next though nothing arrives: `now` or earlier if work waits, SK_NEVER
 * if never. */
uint64_t tcp_stack_deadline(const struct tcp_stack *s);
/* Reason counters: [tcp_reason_count]. */
const uint64_t *tcp_stack_counters(const struct tcp_stack *s);

/* ---- Connections ---- */

/* `user` is the owner's pointer (tcp_user). `mtu` is the path's: IP packet bytes (EMSS = mtu - IP -
 * TCP headers - options). Returns 0 with *out, -ENOBUFS when all connections are in use. */
int tcp_connect(struct tcp_stack *s, uint64_t now, const struct tcp_tuple *t, uint32_t mtu,
	void *user, struct tcp_conn **out);

/* A listener takes SYNs that the caller gives to tcp_listen_input(). `backlog`: connections that
 * are established but not yet claimed by tcp_claim(), and half-open ones. */
struct tcp_listener *tcp_listen(struct tcp_stack *s, uint32_t backlog, void *user);
/* Connections that came from it and were not claimed are reset. */
void tcp_unlisten(struct tcp_listener *l, uint64_t now);
void *tcp_listener_user(const struct tcp_listener *l);
/* The owner takes responsibility for an accepted connection (it leaves the backlog) and sets its
 * user pointer. */
void tcp_claim(struct tcp_conn *c, void *user);

/* A segment for `c`, for a listener, or for nobody (answered with RST as RFC 9293 3.10.7.1 says).
 * `payload` may be NULL; it is a chain whose lengths sum to the segment's payload. `ecn` is the IP
 * header's. */
void tcp_input(struct tcp_conn *c, uint64_t now, const struct wire_tcp *seg,
	struct tcp_slice *payload, uint8_t ecn);
void tcp_listen_input(struct tcp_listener *l, uint64_t now, const struct tcp_tuple *t, uint32_t mtu,
	const struct wire_tcp *seg, struct tcp_slice *payload, uint8_t ecn);
void tcp_orphan_input(struct tcp_stack *s, uint64_t now, const struct tcp_tuple *t,
	const struct wire_tcp *seg, struct tcp_slice *payload);

/* Queues a chain of records. Always takes them; the caller keeps within tcp_send_space() (a chain
 * may exceed it by one record). Nothing is sent before the next tcp_stack_poll(). -EPIPE (records
 * freed through ops) when no more may be sent. */
int tcp_send(struct tcp_conn *c, struct tcp_rec *chain);
/* Bytes that tcp_send() may take now; 0 or less: none. */
int64_t tcp_send_space(const struct tcp_conn *c);
/* The owner has done with so many delivered bytes: the window may open. Delivered bytes count
 * against rcv_buf until then. */
void tcp_consumed(struct tcp_conn *c, uint32_t bytes);
/* Offers again what ops->deliver refused. */
void tcp_deliver_resume(struct tcp_conn *c);
/* FIN after all that was queued. */
void tcp_close(struct tcp_conn *c, uint64_t now);
/* RST at once; TCP_EV_CLOSED comes before it returns. */
void tcp_abort(struct tcp_conn *c, uint64_t now);
/* A believable ICMP "too big" for this connection: quoted sequence number inside the send window
 * (RFC 5927). */
void tcp_icmp_mtu(struct tcp_conn *c, uint64_t now, uint32_t seq, uint32_t mtu);
/* The owner can send again after -EAGAIN, or the next hop's address is known now. */
void tcp_kick(struct tcp_conn *c);

/* Largest payload of one segment now: what MPA derives its MULPDU from (RFC 5044 4.5). */
uint32_t tcp_emss(const struct tcp_conn *c);
/* Whose SYN queue it came from; NULL: tcp_connect(). */
struct tcp_listener *tcp_conn_listener(const struct tcp_conn *c);
const struct tcp_tuple *tcp_tuple(const struct tcp_conn *c);
void *tcp_user(const struct tcp_conn *c);
void tcp_set_user(struct tcp_conn *c, void *user);
/* 0: closed in order by both; -ECONNREFUSED, -ECONNRESET, -ETIMEDOUT, -ECONNABORTED (our abort),
 * -EHOSTUNREACH */
int tcp_close_reason(const struct tcp_conn *c);
/* All of the sent bytes have been acknowledged. */
bool tcp_all_acked(const struct tcp_conn *c);
/* An established connection asks its peer after `idle_ns` of silence, and then five times as often,
 * instead of as tcp_config has it; 0: as that has it. */
void tcp_set_keepalive(struct tcp_conn *c, uint64_t now, uint64_t idle_ns);
/* How large TSO segments may grow; 0 (default): no TSO. */
void tcp_set_tso(struct tcp_conn *c, uint32_t max_bytes);

struct tcp_info {
	const char *state;
	uint64_t srtt_ns, rttvar_ns, rto_ns, min_rtt_ns;
	uint32_t cwnd, ssthresh, snd_wnd, rcv_wnd, in_flight, queued, emss;
	uint64_t bytes_sent, bytes_acked, bytes_received, retransmits, rtos, tlps, dup_acks_in;
};
void tcp_get_info(const struct tcp_conn *c, struct tcp_info *out);
/* Engine-private bytes of one idle connection. */
size_t tcp_conn_size(void);

/* ---- Reasons ---- */

#define TCP_REASONS(X)                                                                             \
	X(TCP_NO_CONN, SK_NORMAL, "a segment for no connection and no listener")                   \
	X(TCP_HALF_OPEN_FULL, SK_WARNING, "the oldest half-open connection made room for a SYN")   \
	X(TCP_BACKLOG_FULL, SK_NOTICE, "a SYN was dropped: the listener's backlog is full")        \
	X(TCP_CONNS_FULL, SK_WARNING, "a SYN was dropped: all connections are in use")             \
	X(TCP_BAD_FLAGS, SK_NOTICE, "flags that make no sense in the connection's state")          \
	X(TCP_OUT_OF_WINDOW, SK_NORMAL, "a segment outside the receive window")                    \
	X(TCP_PAWS, SK_NORMAL, "a timestamp older than the last one (RFC 7323 5)")                 \
	X(TCP_OLD_ACK, SK_NORMAL, "an acknowledgement older than the window allows")               \
	X(TCP_FUTURE_ACK, SK_WARNING, "an acknowledgement of bytes that were never sent")          \
	X(TCP_CHALLENGE, SK_NOTICE, "a challenge ACK was sent (RFC 5961)")                         \
	X(TCP_CHALLENGE_LIMIT, SK_NOTICE, "a challenge ACK was withheld (rate limit)")             \
	X(TCP_DUP_PAYLOAD, SK_NORMAL, "payload that had come before")                              \
	X(TCP_OOO_FULL, SK_NOTICE, "an out-of-order slice was dropped: no room to keep it")        \
	X(TCP_RCV_FULL, SK_NOTICE, "payload beyond the advertised window was cut off")             \
	X(TCP_RETRANSMIT, SK_NORMAL, "a segment was sent again")                                   \
	X(TCP_RACK_LOSS, SK_NORMAL, "a record was deemed lost by RACK")                            \
	X(TCP_TLP, SK_NORMAL, "a tail loss probe was sent")                                        \
	X(TCP_RTO, SK_NOTICE, "a retransmission timeout")                                          \
	X(TCP_SPURIOUS, SK_NORMAL, "a retransmission that was not needed (DSACK)")                 \
	X(TCP_ZERO_WINDOW_PROBE, SK_NORMAL, "a probe of a closed window")                          \
	X(TCP_KEEPALIVE, SK_NORMAL, "a keepalive probe")                                           \
	X(TCP_TIMED_OUT, SK_NOTICE, "a connection was given up: no answer")                        \
	X(TCP_RESET_IN, SK_NOTICE, "a valid reset came")                                           \
	X(TCP_RESET_OUT, SK_NOTICE, "a reset was sent")                                            \
	X(TCP_ECN_CE, SK_NORMAL, "a segment came with congestion experienced")                     \
	X(TCP_ECN_ECHO, SK_NORMAL, "the peer echoed congestion")                                   \
	X(TCP_PMTU, SK_NOTICE, "the path MTU shrank")                                              \
	X(TCP_OUTPUT_BUSY, SK_NORMAL, "the port could not take a segment; it is tried again")

SK_REASONS_DECLARE(tcp, TCP_NONE, TCP_REASONS)

#endif
