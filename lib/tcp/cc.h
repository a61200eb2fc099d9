/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Congestion control: one const table of functions per algorithm; its state is a union in the
 * connection. Windows are in bytes. An algorithm changes nothing but cwnd, ssthresh and its own
 * state.
 */
#ifndef SAKER_TCP_CC_H
#define SAKER_TCP_CC_H

#include <stdbool.h>
#include <stdint.h>

struct tcp_conn;

struct tcp_cc_cubic {   /* RFC 9438 4.1; windows in segments */
	uint64_t epoch; /* start of congestion avoidance, ns; 0: none yet */
	double w_max, w_est, k;
	double prior; /* cwnd before the latest reduction */
	double frac;  /* growth below one byte */
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
	bool ecn;         /* offer ECN regardless of the configuration */
	bool precise_ecn; /* the receiver echoes each change of CE (RFC 8257 3.2) */
	void (*init)(struct tcp_conn *c);
	/* `bytes` were acknowledged outside of fast recovery. `limited`: the congestion window
	 * limited the sender. */
	void (*acked)(struct tcp_conn *c, uint64_t now, uint32_t bytes, bool limited);
	/* An acknowledgement on a connection with ECN; `ece` is its flag. NULL: not used. */
	void (*ecn_feedback)(struct tcp_conn *c, uint32_t bytes, bool ece);
	/* A loss, or ECE: at most one call each per window of data. Both set ssthresh and cwnd. */
	void (*loss)(struct tcp_conn *c, uint64_t now);
	void (*ecn_echo)(struct tcp_conn *c, uint64_t now);
	/* A timeout. Sets ssthresh; sets cwnd to the bytes in flight and one segment
	 * (tcp_cc_collapse()). */
	void (*timeout)(struct tcp_conn *c, uint64_t now);
	/* The connection sent nothing for longer than the RTO. */
	void (*idle)(struct tcp_conn *c, uint64_t now);
};

extern const struct tcp_cc_ops tcp_cc_cubic, tcp_cc_dctcp;

/* Returns NULL when no algorithm has this name. */
const struct tcp_cc_ops *tcp_cc_find(const char *name);
uint32_t tcp_cc_initial_window(const struct tcp_conn *c);
/* Restarts from the initial window after idle time (RFC 5681 4.1): for algorithms without a better
 * rule. */
void tcp_cc_idle_restart(struct tcp_conn *c, uint64_t now);
/* Sets cwnd after a timeout: one segment beyond the bytes that may still be in the network. */
void tcp_cc_collapse(struct tcp_conn *c);
/* Lets cwnd grow by slow start for `bytes`; returns the bytes that remain for congestion
 * avoidance. */
uint32_t tcp_cc_slow_start(struct tcp_conn *c, uint32_t bytes);

#endif
