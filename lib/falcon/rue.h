/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface between the data path and the rate update engine (section 10.6 of the Falcon
 * specification). The data path passes an event with its measurements and the state of the
 * connection; the algorithm returns the values to enforce. An algorithm has no state of its own, so
 * that it can be replaced, tested alone, or run elsewhere. Units are the specification's: ticks of
 * 131.072 ns, and windows in fixed point.
 *
 * rue.c    the algorithms by name, and the defaults of all parameters
 * swift.c  Swift (10.3): the window follows the delay
 * dctcp.c  DCTCP (RFC 8257): the window follows the share of packets with ECN CE
 * fixed.c  windows that never change
 * nic.c    the window for the peer's NIC (10.3.1, 10.3.3), for any algorithm
 * plb.c    the choice of another path (10.4), for any algorithm
 */
#ifndef SAKER_FALCON_RUE_H
#define SAKER_FALCON_RUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FA_CWND_ONE 1024u                /* one packet: windows have ten fraction bits */
#define FA_CWND_MAX (2047 * FA_CWND_ONE) /* the whole part of a window has eleven bits */
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
	/* The report of this end's algorithm to the peer's: the low 21 bits (FALCON_RUE_MASK) are
	 * in the ACKs and NACKs that the data path sends on this flow (7.7.1). */
	uint32_t metadata;
	uint32_t rto;     /* retransmission timeout in ticks after a packet's last transmission */
	uint32_t rto_min; /* ticks: set by the data path from its configuration */
	/* start of the round trip during which fcwnd is not cut again (10.3.6) */
	uint32_t fabric_marker;
	uint32_t base_delay;               /* ticks: the target without scaling */
	uint32_t delay, rtt;               /* smoothed, ticks; 0: not measured yet */
	uint16_t plb_acked, plb_congested; /* packets in this round (10.4) */
	uint8_t plb_attempts;              /* consecutive congested rounds */
	uint32_t opaque[4];                /* private to the algorithm */
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
	/* The report of the peer's algorithm: 21 bits of an ACK, 23 bits of a NACK
	 * (fa_cc.metadata). */
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
	 * `param` is fa_algorithm.param. */
	void (*init)(struct fa_cc *cc, struct fa_cc_nic *nic, const void *param);
	/* Processes an event of the flow `cc`. Sets all fields of `res`. */
	void (*run)(struct fa_cc *cc, struct fa_cc_nic *nic, const struct fa_rue_event *ev,
		struct fa_rue_result *res, const void *param);
	/* Of the algorithms below: a struct fa_rue_params; NULL: fa_rue_defaults. */
	const void *param;
};

/* ---- Parameters (10.5) ---- */

#define FA_FRACTION_ONE 1024u /* 1.0 in the factors below */

/* The window for the peer's NIC (10.5.2). */
struct fa_nic_params {
	uint32_t initial, min, max; /* windows, above 0 */
	uint32_t ai;                /* window: additive increment per round trip */
	/* factors: of the level's distance beyond `level`; the largest single cut */
	uint32_t md, max_md;
	uint8_t level; /* 0..31: the window shrinks from this receive level on */
};

/* Protective load balancing (10.5.3). */
struct fa_plb_params {
	uint32_t fraction; /* factor: the share of congested packets that makes a round congested */
	uint8_t attempts;  /* consecutive congested rounds until the path changes; 0: never */
};

enum fa_delay_select {
	FA_DELAY_FULL,    /* t4 - t1 */
	FA_DELAY_FABRIC,  /* (t4 - t1) - (t3 - t2) */
	FA_DELAY_FORWARD, /* t2 - t1, where both clocks are the same */
	FA_DELAY_REVERSE, /* t4 - t3, where both clocks are the same */
};

/* Swift (10.5.1, 10.5.4). Windows have the unit FA_CWND_ONE, and minima above 0; times are in
 * ticks; factors have the unit FA_FRACTION_ONE. */
struct fa_swift_params {
	uint32_t initial, min, max; /* windows */
	uint32_t ai;                /* window: additive increment per round trip */
	uint32_t md;                /* factor: of the delay's distance beyond its target */
	uint32_t max_md;            /* factor: the largest single cut */
	uint32_t delay_alpha;       /* factor: weight of the old value in the smoothed delay */
	uint32_t base_delay;        /* the target without scaling */
	uint32_t per_hop;           /* added to the target for each forward hop */
	/* Added to the target for small windows: flow_max ticks at a window of flow_from and below,
	 * nothing at flow_to and above, between them flow_a / sqrt(fcwnd) - flow_b, which are in
	 * 1024ths of a tick. fa_swift_flow_scaling() derives these two from the other three. */
	uint32_t flow_max, flow_from, flow_to;
	uint32_t flow_a, flow_b;
	uint8_t delay_select;     /* enum fa_delay_select */
	uint8_t retransmit_limit; /* retransmissions of one packet that set fcwnd to its minimum */
	/* An early retransmission also cuts fcwnd. When false, a gap whose delay is on target
	 * counts as a lost packet, and not as a full queue. */
	bool early_cuts;
	bool drop_cuts; /* an event with eack_drop cuts fcwnd as much as max_md permits */
	/* factor: for PLB, an ACK counts as congested beyond this multiple of the target */
	uint32_t plb_delay;
};

/* DCTCP (RFC 8257) in packets instead of bytes. */
struct fa_dctcp_params {
	uint32_t initial, min, max; /* windows, above 0 */
	uint32_t ai;                /* window: increment per round trip without marks */
	/* factor: weight of the last round trip in the estimate of the marked share (3.3's g) */
	uint32_t gain;
	/* An early retransmission halves the window, as RFC 8257 3.5 requires. When false, a lost
	 * packet is no sign of congestion, and only marks and timeouts are. */
	bool early_cuts;
};

struct fa_fixed_params {
	uint32_t fcwnd, ncwnd; /* windows, at least FA_CWND_ONE */
};

/* The parameters of all algorithms, so that a configuration changes the algorithm by its name
 * alone. */
struct fa_rue_params {
	uint32_t rtt_alpha; /* factor: weight of the old value in the smoothed round trip */
	uint8_t rto_scalar; /* the timeout in round trips */
	struct fa_nic_params nic;
	struct fa_plb_params plb;
	struct fa_swift_params swift;
	struct fa_dctcp_params dctcp;
	struct fa_fixed_params fixed;
};

extern const struct fa_rue_params fa_rue_defaults;
/* Checks that 0 < min <= initial <= max <= FA_CWND_MAX for all windows, and that the other values
 * are in their ranges. Returns 0, or -EINVAL with one sentence in `err`. */
int fa_rue_check(const struct fa_rue_params *p, char *err, size_t errlen);

/* ---- Algorithms ---- */

/* Returns the algorithm with this name, without parameters, or NULL. */
const struct fa_algorithm *fa_algorithm_find(const char *name);

/* Swift (10.3) with PLB by delay. */
extern const struct fa_algorithm fa_swift;
/* DCTCP's law for the fabric's window, from the peer's count of packets with ECN CE, with PLB by
 * marks. The switches of the network must mark packets. */
extern const struct fa_algorithm fa_dctcp;
/* Windows that never change, for trusted networks and as a reference in measurements; only the
 * timeout follows the round trip. */
extern const struct fa_algorithm fa_fixed;

/* Derives flow_a and flow_b. It uses floating point, for set-up time only. */
void fa_swift_flow_scaling(struct fa_swift_params *p);
/* Returns the target in ticks for the window of `cc` and `hops` forward hops. */
uint32_t fa_swift_target(const struct fa_swift_params *p, const struct fa_cc *cc, uint8_t hops);

/* ---- Parts of an algorithm ---- */

/* Changes ncwnd after an ACK or NACK: by the receive level, or by a NACK for resources. cc->rtt is
 * up to date. */
void fa_nic_window(const struct fa_cc *cc, struct fa_cc_nic *nic, const struct fa_nic_params *p,
	const struct fa_rue_event *ev);
/* Runs protective load balancing (10.4) for one ACK of `acked` packets, of which `congested` met
 * congestion. `window` is the smaller of fcwnd and ncwnd before this event. Returns true when the
 * path must change. */
bool fa_plb_ack(struct fa_cc *cc, const struct fa_plb_params *p, uint32_t window, uint32_t acked,
	uint32_t congested);
/* Returns the delay of an ACK or NACK in ticks (10.1). */
uint32_t fa_rue_delay(const struct fa_rue_event *ev, enum fa_delay_select select);

/* Returns the difference of two wrapping times in ticks. A negative one (different clocks, or
 * forged times) counts as 0, one beyond FA_DELAY_MAX as FA_DELAY_MAX. */
static inline uint32_t
fa_rue_span(uint32_t from, uint32_t to)
{
	int32_t d = (int32_t)(to - from);

	if (d < 0)
		return 0;
	return d > (int32_t)FA_DELAY_MAX ? FA_DELAY_MAX : (uint32_t)d;
}

/* Returns the exponential average. `alpha` is the weight of the old value (as in the pseudo code of
 * 10.3.4, and not as in the prose of 10.1); the first sample is taken as it is. */
static inline uint32_t
fa_rue_smooth(uint32_t old, uint32_t sample, uint32_t alpha)
{
	if (old == 0)
		return sample;
	return (uint32_t)(((uint64_t)old * alpha + (uint64_t)sample * (FA_FRACTION_ONE - alpha) +
				  FA_FRACTION_ONE / 2) /
			  FA_FRACTION_ONE);
}

/* Updates the smoothed round trip after an ACK or NACK. */
static inline void
fa_rue_round_trip(struct fa_cc *cc, const struct fa_rue_event *ev, const struct fa_rue_params *p)
{
	uint32_t rtt = fa_rue_span(ev->t1, ev->now);

	cc->rtt = fa_rue_smooth(cc->rtt, rtt > 0 ? rtt : 1, p->rtt_alpha);
}

/* Returns whether a round trip has passed since `marker`. */
static inline bool
fa_rue_elapsed(const struct fa_cc *cc, uint32_t marker, uint32_t now)
{
	return now - marker >= cc->rtt;
}

/* Keeps a marker within a round trip of now, so that the comparison does not wrap (10.3.6). */
static inline void
fa_rue_drag(const struct fa_cc *cc, uint32_t *marker, uint32_t now)
{
	if (now - *marker > cc->rtt)
		*marker = now - cc->rtt;
}

/* Sets the timeout (10.3.2) and the gap between packets (10.3.4) at the end of an event. */
static inline void
fa_rue_times(struct fa_cc *cc, const struct fa_rue_params *p)
{
	uint32_t rto = cc->rtt * p->rto_scalar;
	uint64_t ipg = 0;

	if (cc->fcwnd < FA_CWND_ONE)
		ipg = (uint64_t)cc->rtt * FA_CWND_ONE / cc->fcwnd;
	cc->ipg = ipg < FA_IPG_MAX ? (uint32_t)ipg : FA_IPG_MAX;
	cc->rto = rto > cc->rto_min ? rto : cc->rto_min;
}

#endif
