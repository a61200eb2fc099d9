/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface between the data path and the rate update engine (section 10.6 of the Falcon
 * specification). The data path passes an event with its measurements and the state of the
 * connection; the algorithm returns the values to enforce. An algorithm has no state of its own, so
 * that it can be replaced, tested alone, or run elsewhere. Units are the specification's: ticks of
 * 131.072 ns, and windows in fixed point.
 */
#ifndef SAKER_FALCON_RUE_H
#define SAKER_FALCON_RUE_H

#include <stdbool.h>
#include <stdint.h>

#define FA_CWND_ONE 1024u /* one packet: windows have ten fraction bits */
/* The longest delay or round trip that an algorithm accepts: 24 bits of ticks, 2.2 s. */
#define FA_DELAY_MAX 0xffffffu
/*
 * The longest gap between two packets in ticks: 41 ms, which is 800 kb/s with packets of 4 KiB, the
 * slowest rate that 10.6 requires. A host that the scheduler stops for a while measures round trips
 * of a tenth of a second; without this limit the smallest window would then be one packet in ten
 * seconds.
 */
#define FA_IPG_MAX 312500u

enum fa_rue_type { FA_RUE_ACK = 0, FA_RUE_NACK = 1, FA_RUE_RETRANSMIT = 2 };
enum fa_rue_retransmit { FA_RUE_TIMEOUT = 0, FA_RUE_EARLY = 1 };

/* The congestion state of one flow, which the data path keeps from one event to the next. Before
 * fa_algorithm.init() all fields but `rto_min` are zero. Times are in ticks and wrap at 32 bits. */
struct fa_cc {
	uint32_t fcwnd; /* fabric window; FA_CWND_ONE is one packet */
	/* Ticks from one departure to the next while fcwnd is below one packet; otherwise 0. A
	 * retransmission counts as a departure, an ACK or NACK does not. */
	uint32_t ipg;
	/* What this end's algorithm reports to the peer's: the low 21 bits (FALCON_RUE_MASK) are in
	 * the ACKs and NACKs that the data path sends on this flow (7.7.1). */
	uint32_t metadata;
	uint32_t rto;     /* retransmission timeout in ticks after a packet's last transmission */
	uint32_t rto_min; /* ticks: set by the data path from its configuration */
	/* start of the round trip during which fcwnd is not cut again (10.3.6) */
	uint32_t fabric_marker;
	uint32_t base_delay;               /* ticks: the target without scaling */
	uint32_t delay, rtt;               /* smoothed, ticks; 0: not measured yet */
	uint32_t plb_acked, plb_congested; /* packets in this round (10.4) */
	uint8_t plb_attempts;              /* consecutive congested rounds */
	uint32_t opaque[2];                /* private to the algorithm */
};

/* The congestion state that all flows of a connection share: that of the peer's NIC. */
struct fa_cc_nic {
	uint32_t ncwnd;  /* NIC window; FA_CWND_ONE is one packet; its whole part is enforced */
	uint32_t marker; /* time of ncwnd's last change (10.3.6) */
	bool up;         /* the last change was an increase */
	uint32_t opaque; /* private to the algorithm */
};

struct fa_rue_event {
	uint8_t type;        /* enum fa_rue_type */
	uint8_t retransmit;  /* enum fa_rue_retransmit */
	uint8_t retransmits; /* consecutive ones of the packet; saturates at 7 */
	uint8_t nack_code;
	/* Ticks, of ACK and NACK: sent here, received by the peer, sent by the peer, received
	 * here. The times of reception are lower bounds where a port has no timestamps: the times
	 * between them exclude what the loops of the two hosts add to a round trip. */
	uint32_t t1, t2, t3, t4;
	uint32_t now; /* ticks: now - t1 is the whole round trip */
	uint8_t hops, rx_level;
	uint16_t ecn;   /* marked packets in total, as the peer counts them (14 bits) */
	uint32_t acked; /* packets of this flow acknowledged since its last event */
	/* What the peer's algorithm reports: 21 bits of an ACK, 23 bits of a NACK (fa_cc.metadata).
	 */
	uint32_t metadata;
	bool eack; /* the acknowledgement had bitmaps */
	/* They show a loss by the OOO-distance heuristic (9.1.4): a packet of this flow has not
	 * arrived, and one more than fa_config.ooo_threshold behind it has. Until the packet
	 * arrives, each EACK shows it. */
	bool eack_drop;
	bool own; /* the acknowledgement reported packets out of window */
	uint8_t flow;
};

struct fa_rue_result {
	/* The data path must choose another flow label or UDP source port for this flow. */
	bool randomize_path;
};

struct fa_algorithm {
	const char *name;
	/* Initializes the state of a flow. `nic` is NULL for all flows but a connection's first.
	 * `param` is fa_algorithm.param; NULL means the algorithm's defaults. */
	void (*init)(struct fa_cc *cc, struct fa_cc_nic *nic, const void *param);
	/* Processes an event of the flow `cc`. Sets all fields of `res`. */
	void (*run)(struct fa_cc *cc, struct fa_cc_nic *nic, const struct fa_rue_event *ev,
		struct fa_rue_result *res, const void *param);
	const void *param;
};

/* ---- Swift (10.3) with PLB (10.4) ---- */

enum fa_delay_select {
	FA_DELAY_FULL,    /* t4 - t1 */
	FA_DELAY_FABRIC,  /* (t4 - t1) - (t3 - t2) */
	FA_DELAY_FORWARD, /* t2 - t1, where both clocks are the same */
	FA_DELAY_REVERSE, /* t4 - t3, where both clocks are the same */
};

#define FA_FRACTION_ONE 1024u /* 1.0 in the factors below */

/* The parameters of 10.5.1 to 10.5.4. Windows have the unit FA_CWND_ONE, and minima above 0; times
 * are in ticks; factors have the unit FA_FRACTION_ONE. */
struct fa_swift_params {
	uint32_t fcwnd_initial, fcwnd_min, fcwnd_max;
	uint32_t ncwnd_initial, ncwnd_min, ncwnd_max;
	uint32_t fabric_ai, nic_ai; /* windows: additive increment per round trip */
	/* factors: of the signal's distance beyond its target */
	uint32_t fabric_md, nic_md;
	uint32_t fabric_max_md, nic_max_md; /* factors: the largest single cut */
	uint32_t rtt_alpha, delay_alpha;    /* factors: weight of the old value */
	uint32_t base_delay;                /* the target without scaling */
	uint32_t per_hop;                   /* added to the target for each forward hop */
	/* Added to the target for small windows: flow_a / sqrt(fcwnd) - flow_b, at least 0 and at
	 * most flow_max. flow_a and flow_b are in 1024ths of a tick, flow_max is in ticks.
	 * fa_swift_flow_scaling() sets the three. */
	uint32_t flow_a, flow_b, flow_max;
	uint8_t delay_select;     /* enum fa_delay_select */
	uint8_t rx_level_target;  /* 0..31: ncwnd shrinks from this receive level on */
	uint8_t rto_scalar;       /* the timeout in round trips */
	uint8_t retransmit_limit; /* retransmissions of one packet that set fcwnd to its minimum */
	/* An early retransmission also cuts fcwnd. When false, a gap whose delay is on target
	 * counts as a lost packet, and not as a full queue. */
	bool early_cuts;
	/* factor: an ACK counts as congested beyond this multiple of the target */
	uint32_t plb_delay;
	/* factor: the share of congested packets that makes a round congested */
	uint32_t plb_fraction;
	uint8_t plb_attempts; /* consecutive congested rounds until the path changes; 0: never */
};

void fa_swift_defaults(struct fa_swift_params *p);
/* Sets flow_max to `max` ticks, and derives flow_a and flow_b so that the target grows by `max` at
 * a window of `w_min` and below, and by nothing at `w_max` (both in FA_CWND_ONE, 0 < w_min <
 * w_max). It uses floating point, for set-up time only. */
void fa_swift_flow_scaling(struct fa_swift_params *p, uint32_t max, uint32_t w_min, uint32_t w_max);
/* Returns the target in ticks for the window of `cc` and `hops` forward hops. */
uint32_t fa_swift_target(const struct fa_swift_params *p, const struct fa_cc *cc, uint8_t hops);
/* Runs protective load balancing (10.4) for one ACK of `acked` packets. `window` is the smaller of
 * fcwnd and ncwnd before this event. Returns true when the path must change. */
bool fa_plb_ack(struct fa_cc *cc, const struct fa_swift_params *p, uint32_t window, uint32_t acked,
	bool congested);

/* The algorithm of 10.3; fa_algorithm.param is a struct fa_swift_params. */
extern const struct fa_algorithm fa_swift;

/* ---- Fixed windows, for trusted networks and as a reference in measurements ---- */

struct fa_fixed_params {
	uint32_t fcwnd, ncwnd; /* FA_CWND_ONE is one packet */
};

/* Windows never change (default: 128 packets each); only the timeout follows the round trip.
 * fa_algorithm.param is a struct fa_fixed_params. */
extern const struct fa_algorithm fa_fixed;

#endif
