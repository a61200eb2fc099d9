/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The split between the data path and the rate update engine (section 10.6): what was measured goes
 * in as an event, together with the state of the connection; what is to be enforced comes out as a
 * result. An algorithm keeps nothing of its own, so that any can be plugged in, tested alone, or
 * run elsewhere. Units are those of the specification: ticks of 131.072 ns, windows as fixed point.
 */
#ifndef SAKER_FALCON_RUE_H
#define SAKER_FALCON_RUE_H

#include <stdbool.h>
#include <stdint.h>

#define FA_CWND_ONE 1024u /* one packet: windows have ten fraction bits */
/* Longest delay or round trip that is believed: 24 bits of ticks, 2.2 s. */
#define FA_DELAY_MAX 0xffffffu
/* The longest gap between two packets, ticks: 41 ms, 800 kb/s of packets of 4 KiB, the slowest rate
 * that 10.6 asks for. A host that is not run for a while measures round trips of a tenth of a
 * second, of which the smallest window would make a packet in ten seconds. */
#define FA_IPG_MAX 312500u

enum fa_rue_type { FA_RUE_ACK = 0, FA_RUE_NACK = 1, FA_RUE_RETRANSMIT = 2 };
enum fa_rue_retransmit { FA_RUE_TIMEOUT = 0, FA_RUE_EARLY = 1 };

/* What a flow of a connection carries from one event to the next; the data path keeps it. All zero
 * but for `rto_min` before fa_algorithm.init(). Times wrap at 32 bits. */
struct fa_cc {
	uint32_t fcwnd;   /* FA_CWND_ONE: one packet */
	uint32_t ipg;     /* ticks from one departure to the next while fcwnd is below one; else 0.
			     A retransmission counts as a departure, an ACK or NACK does not */
	uint32_t rto;     /* ticks since a packet was last sent */
	uint32_t rto_min; /* ticks: set by the data path from its configuration */
	uint32_t fabric_marker; /* for a round trip from here on fcwnd is not cut (10.3.6) */
	uint32_t base_delay;    /* ticks: target without scaling */
	uint32_t delay, rtt;    /* smoothed, ticks; 0: never measured */
	uint32_t plb_acked, plb_congested; /* packets in this round (10.4) */
	uint8_t plb_attempts;              /* congested rounds in a row */
	uint32_t opaque[2];                /* the algorithm's */
};

/* The same of what all flows of a connection share: the peer's NIC. */
struct fa_cc_nic {
	uint32_t ncwnd;  /* FA_CWND_ONE: one packet; the whole part is enforced */
	uint32_t marker; /* when ncwnd last changed (10.3.6) */
	bool up;         /* the last change was an increase */
	uint32_t opaque; /* the algorithm's */
};

struct fa_rue_event {
	uint8_t type;        /* enum fa_rue_type */
	uint8_t retransmit;  /* enum fa_rue_retransmit */
	uint8_t retransmits; /* consecutive, of the packet in question; saturates at 7 */
	uint8_t nack_code;
	/* Ticks: sent, received there, sent there, received here. Of ACK and NACK. */
	uint32_t t1, t2, t3, t4;
	uint32_t now; /* ticks */
	uint8_t hops, rx_level;
	uint16_t ecn;   /* packets marked in all, as the peer counts (14 bits) */
	uint32_t acked; /* packets of this flow since its last event */
	bool eack, own; /* the acknowledgement had a bitmap; told of packets out of window */
	uint8_t flow;
};

struct fa_rue_result {
	bool randomize_path; /* choose another flow label or UDP source port for this flow */
};

struct fa_algorithm {
	const char *name;
	/* Sets the state at the start of a connection; `nic` is NULL for all flows but the first.
	 * `param`: fa_algorithm.param; NULL: the algorithm's defaults. */
	void (*init)(struct fa_cc *cc, struct fa_cc_nic *nic, const void *param);
	/* Digests an event of the flow `cc`. Sets all of `res`. */
	void (*run)(struct fa_cc *cc, struct fa_cc_nic *nic, const struct fa_rue_event *ev,
		struct fa_rue_result *res, const void *param);
	const void *param;
};

/* ---- Swift (10.3) with PLB (10.4) ---- */

enum fa_delay_select {
	FA_DELAY_FULL,    /* t4 - t1 */
	FA_DELAY_FABRIC,  /* (t4 - t1) - (t3 - t2) */
	FA_DELAY_FORWARD, /* t2 - t1, when both clocks are one */
	FA_DELAY_REVERSE, /* t4 - t3, likewise */
};

#define FA_FRACTION_ONE 1024u /* 1.0 in the factors below */

/* The parameters of 10.5.1 to 10.5.4. Windows: FA_CWND_ONE, minima above 0; times: ticks; factors:
 * FA_FRACTION_ONE. */
struct fa_swift_params {
	uint32_t fcwnd_initial, fcwnd_min, fcwnd_max;
	uint32_t ncwnd_initial, ncwnd_min, ncwnd_max;
	uint32_t fabric_ai, nic_ai;         /* windows: additive increment per round trip */
	uint32_t fabric_md, nic_md;         /* factors: of how far the signal is beyond target */
	uint32_t fabric_max_md, nic_max_md; /* factors: largest cut at once */
	uint32_t rtt_alpha, delay_alpha;    /* factors: weight of the old value */
	uint32_t base_delay;                /* target without scaling */
	uint32_t per_hop;                   /* more of it for each forward hop */
	/* More of it for small windows: flow_a / sqrt(fcwnd) - flow_b, at least 0 and at most
	 * flow_max. Set them with fa_swift_flow_scaling(). In 1024ths of a tick but for flow_max */
	uint32_t flow_a, flow_b, flow_max;
	uint8_t delay_select;     /* enum fa_delay_select */
	uint8_t rx_level_target;  /* 0..31: from here on ncwnd shrinks */
	uint8_t rto_scalar;       /* rto: so many round trips */
	uint8_t retransmit_limit; /* retransmissions of a packet that bring fcwnd to its minimum */
	/* An early retransmission is an event for congestion control, too. Off: a hole whose delay
	 * is on target is a lost packet, not a full queue. */
	bool early_cuts;
	uint32_t plb_delay;    /* factor: an ACK beyond target times this counts as congested */
	uint32_t plb_fraction; /* factor: congested packets of a round that make it congested */
	uint8_t plb_attempts;  /* congested rounds in a row until the path changes; 0: never */
};

void fa_swift_defaults(struct fa_swift_params *p);
/* Derives flow_a and flow_b: `max` ticks more at a window of `w_min` and below, none at `w_max`
 * (both as windows, 0 < w_min < w_max). For set-up time. */
void fa_swift_flow_scaling(struct fa_swift_params *p, uint32_t max, uint32_t w_min, uint32_t w_max);
/* The target for a window and a number of hops, ticks. */
uint32_t fa_swift_target(const struct fa_swift_params *p, const struct fa_cc *cc, uint8_t hops);
/* One ACK's worth of PLB: `window` is the smaller of fcwnd and ncwnd before this event; true when
 * the path shall change. */
bool fa_plb_ack(struct fa_cc *cc, const struct fa_swift_params *p, uint32_t window, uint32_t acked,
	bool congested);

/* fa_algorithm.param: a struct fa_swift_params. */
extern const struct fa_algorithm fa_swift;

/* ---- Fixed windows, for trusted wires and to measure against ---- */

struct fa_fixed_params {
	uint32_t fcwnd, ncwnd; /* FA_CWND_ONE: one packet */
};

/* Windows never change (default: 128 packets each); only the timeout follows the round trip.
 * fa_algorithm.param: a struct fa_fixed_params. */
extern const struct fa_algorithm fa_fixed;

#endif
