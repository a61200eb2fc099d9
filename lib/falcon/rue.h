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

enum fa_rue_type { FA_RUE_ACK = 0, FA_RUE_NACK = 1, FA_RUE_RETRANSMIT = 2 };
enum fa_rue_retransmit { FA_RUE_TIMEOUT = 0, FA_RUE_EARLY = 1 };

/* What a flow of a connection carries from one event to the next; the data path keeps it. All ones
 * wrap at 32 bits where they are times (ticks). Zero and fa_algorithm.init() at first. */
struct fa_cc {
	uint32_t fcwnd; /* FA_CWND_ONE: one packet */
	uint32_t ncwnd; /* the same unit; of flow 0, for the whole connection */
	uint32_t ipg;   /* ticks between two packets while fcwnd is below one; else 0 */
	uint32_t rto;   /* ticks */
	uint32_t fabric_marker, nic_marker; /* when the windows were last cut */
	bool ncwnd_up;                      /* the last change of ncwnd was an increase */
	uint32_t base_delay;                /* ticks: target without scaling */
	uint32_t delay, rtt;                /* smoothed */
	uint32_t plb_acked, plb_congested;
	uint8_t plb_attempts;
	uint32_t opaque[2]; /* the algorithm's */
};

struct fa_rue_event {
	uint8_t type;        /* enum fa_rue_type */
	uint8_t retransmit;  /* enum fa_rue_retransmit */
	uint8_t retransmits; /* consecutive, of the packet in question; saturates at 7 */
	uint8_t nack_code;
	uint32_t t1, t2, t3, t4; /* ticks: sent, received there, sent there, received here */
	uint32_t now;            /* ticks */
	uint8_t hops, rx_level;
	uint16_t ecn;   /* packets marked in all, as the peer counts (14 bits) */
	uint32_t acked; /* packets since the last event */
	bool eack, own; /* the acknowledgement had a bitmap; told of packets out of window */
	uint8_t flow;
};

struct fa_rue_result {
	bool randomize_path;
};

struct fa_algorithm {
	const char *name;
	/* `param`: what fa_config or a test set for it; NULL: defaults. */
	void (*init)(struct fa_cc *cc, const void *param);
	void (*run)(struct fa_cc *cc, const struct fa_rue_event *ev, struct fa_rue_result *res,
		const void *param);
	const void *param;
};

extern const struct fa_algorithm fa_swift;

#endif
