/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Congestion control: one const table of functions per algorithm, its state in a union in the
 * connection. Windows are bytes. Who calls these is loss.c; the algorithms touch nothing but cwnd,
 * ssthresh and their state.
 */
#ifndef SAKER_TCP_CC_H
#define SAKER_TCP_CC_H

#include <stdbool.h>
#include <stdint.h>

struct tcp_conn;

struct tcp_cc_cubic {   /* RFC 9438 4.1; windows in segments */
	uint64_t epoch; /* when congestion avoidance began, ns; 0: it has not */
	double w_max, w_est, k;
	double prior; /* cwnd before the latest reduction */
	double frac;  /* growth that is less than a byte */
};

struct tcp_cc_dctcp { /* RFC 8257 3.3 */
	double alpha;
	uint64_t acked, marked; /* bytes of this observation window */
	uint32_t window_end;
	uint32_t grown; /* bytes acknowledged since cwnd grew by one segment */
};

union tcp_cc_state {
	struct tcp_cc_cubic cubic;
	struct tcp_cc_dctcp dctcp;
};

struct tcp_cc_ops {
	const char *name;
	bool ecn;         /* ECN is offered whatever the configuration says */
	bool precise_ecn; /* the receiver echoes each change of CE (RFC 8257 3.2) */
	void (*init)(struct tcp_conn *c);
	/* `bytes` newly acknowledged outside of fast recovery; `limited`: the window was what held
	 * data back. */
	void (*acked)(struct tcp_conn *c, uint64_t now, uint32_t bytes, bool limited);
	/* Each acknowledgement on an ECN connection, with the ECE flag. NULL: not wanted. */
	void (*ecn_feedback)(struct tcp_conn *c, uint32_t bytes, bool ece);
	/* At most once per window each: a loss was found, or ECE came. Set ssthresh and cwnd. */
	void (*loss)(struct tcp_conn *c, uint64_t now);
	void (*ecn_echo)(struct tcp_conn *c, uint64_t now);
	/* A timeout: set ssthresh, and cwnd to what is in flight and one segment (tcp_cc_collapse).
	 */
	void (*timeout)(struct tcp_conn *c, uint64_t now);
	/* Nothing was sent for longer than the RTO. */
	void (*idle)(struct tcp_conn *c, uint64_t now);
};

extern const struct tcp_cc_ops tcp_cc_cubic, tcp_cc_dctcp, tcp_cc_none;

/* NULL: no such algorithm. */
const struct tcp_cc_ops *tcp_cc_find(const char *name);
uint32_t tcp_cc_initial_window(const struct tcp_conn *c);
/* RFC 5681 4.1, for those who have nothing better. */
void tcp_cc_idle_restart(struct tcp_conn *c, uint64_t now);
/* After a timeout: one segment beyond what may still be in the network. */
void tcp_cc_collapse(struct tcp_conn *c);
/* Slow start for `bytes`; returns the bytes that are left for congestion avoidance. */
uint32_t tcp_cc_slow_start(struct tcp_conn *c, uint32_t bytes);

#endif
