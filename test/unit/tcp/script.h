/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A scripted peer: it exchanges segments, written as lines of text, with one stack in virtual time.
 * Sequence numbers are relative to the sender's ISN.
 *
 *	IN("S 0:0 win 65535 mss 1460 sackok ws 7")  the peer sends a segment, then the stack polls
 *	OUT("S. 0:0 ack 1")                         compares the oldest sent segment that no OUT()
 *	                                            has compared yet
 *	NONE()                                      there is no such segment
 *	WAIT(ns)                                    lets time pass; timers fire
 *
 * A line consists of flags (S F R P . E W; "." is ACK), first:behind, and words: "ack N", "win N"
 * (as in the header), "mss N", "ws N", "sackok", "ts val/ecr", "nots", "sack a:b,c:d", "ce", "ect",
 * "nopoll". OUT() compares the flags (P only if the line has it), the range, and each word of the
 * line. "nosack" requires that there are no blocks; "ts x/ecr" compares the echo only.
 */
#ifndef SAKER_TEST_SCRIPT_H
#define SAKER_TEST_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "../../../lib/tcp/tcp.h"

#define SC_PEER_ISN 0xfffffc00u /* wraps soon */
#define SC_MAX_OUT  1024
#define MS          1000000ull
#define US          1000ull

struct sc_out {
	uint64_t at;
	struct wire_tcp tcp;
	uint32_t len, gso, nrecs, off;
	uint32_t rec_len[64];
	uint8_t ecn;
	bool orphan;
};

struct script {
	struct tcp_config cfg;
	struct tcp_stack *s;
	struct tcp_listener *l;
	struct tcp_conn *c; /* the latest connection; NULL once removed */
	struct tcp_conn *closed_conn;
	struct tcp_tuple t;
	uint64_t now;
	uint32_t mtu, iss;
	bool ts;      /* the peer's segments carry timestamps */
	uint64_t rtt; /* round trip of sc_establish(): 10 us by default */
	uint32_t peer_ts, ts_echo;
	struct sc_out out[SC_MAX_OUT];
	unsigned nout, seen;
	struct sc_out last; /* the segment that OUT() compared last */
	/* Recorded by the owner. */
	unsigned connected, sent_ev, emss_ev, unread_ev, peer_fin, closed, added, removed;
	int reason;
	uint64_t delivered; /* bytes */
	uint8_t *got;       /* the delivered bytes */
	int64_t recs, slices;
	/* Behaviour of the owner. */
	bool reports; /* consumes all bytes on TCP_EV_UNREAD */
	bool refuse, busy, no_split, keep_bytes, abort_in_deliver, no_claim, claim_early;
};

/* sc_new() sets the defaults; a test may change cfg before sc_start(). */
void sc_new(struct script *p);
void sc_start(struct script *p);
/* Asserts that all records and slices came back. */
void sc_end(struct script *p);
void sc_in(struct script *p, int line, const char *text);
void sc_out(struct script *p, int line, const char *text);
void sc_none(struct script *p, int line);
void sc_wait(struct script *p, uint64_t ns);
void sc_poll(struct script *p);
/* Sends n records of len bytes each, then polls. */
void sc_send(struct script *p, unsigned n, uint32_t len);
void sc_connect(struct script *p);
void sc_listen(struct script *p);
/* Opens a connection actively; the peer answers with "mss 1460 sackok ws 7" (timestamps and ECN if
 * cfg has them) after `rtt`. All segments of the handshake count as seen. */
void sc_establish(struct script *p);
const char *sc_state(struct script *p);
uint64_t sc_count(struct script *p, enum tcp_reason r);
struct tcp_info sc_info(struct script *p);

#define IN(text)    sc_in(&p, __LINE__, text)
#define OUT(text)   sc_out(&p, __LINE__, text)
#define NONE()      sc_none(&p, __LINE__)
#define WAIT(ns)    sc_wait(&p, ns)
#define STATE(name) cr_assert_str_eq(sc_state(&p), name)

#endif
