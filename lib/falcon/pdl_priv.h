/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet delivery sublayer's part of a connection and of a stack (section 9).
 *
 * pdl_tx.c    what may go out, in which order, and the header of it
 * pdl_txw.c   the transmit windows: packets by PSN
 * pdl_ack.c   acknowledgements and NACKs that come in
 * pdl_loss.c  what is lost: by distance, by OWN, RACK, TLP
 * pdl_timer.c the one timer of a connection and what it stands for; RTO
 * pdl_rx.c    the receive windows
 * pdl_rxack.c acknowledgements and NACKs that go out
 * cc.c        events to the congestion algorithm, and what comes back
 */
#ifndef SAKER_PDL_PRIV_H
#define SAKER_PDL_PRIV_H

#include <sys/queue.h>

#include "falcon_priv.h"
#include "rue.h"

#define PDL_WINDOW_MAX   256 /* packets in a transmit window; the bitmaps on the wire reach 128 */
#define PDL_WORDS        (PDL_WINDOW_MAX / 64)
#define PDL_RING_MIN     16 /* packets a window has room for before it grows */
#define PDL_RING_CLASSES 5  /* 16, 32, .. PDL_WINDOW_MAX */
#define PDL_NACKS        128 /* NACKs of a stack that wait for the next poll: a lost NACK is repeated */

enum { PDL_REQUEST, PDL_DATA }; /* the two windows */

/* fa_pkt.flags */
#define PKT_SENT    0x01 /* has a PSN */
#define PKT_RETX    0x02 /* was sent again */
#define PKT_ORRC    0x04 /* counted in pdl_txw.orrc */
#define PKT_TIMEOUT 0x08 /* lost, says a timer */
#define PKT_EARLY   0x10 /* lost, says an acknowledgement */
#define PKT_PROBE   0x20 /* goes out as a tail loss probe */

struct pdl_fifo {
	struct fa_pkt *head, **tail;
};

/* A transmit window (9.1.1). The maps hold a packet's bit at PSN % PDL_WINDOW_MAX. */
struct pdl_txw {
	uint32_t base, next;  /* RBPSN, RNPSN; DBPSN, DNPSN */
	struct fa_pkt **ring; /* by PSN & ring_mask; NULL while the window is empty */
	uint16_t ring_mask;
	uint16_t size;      /* packets from base to next at most, whatever fcwnd says */
	uint16_t orc, orrc; /* requests outstanding; of these, retransmitted (9.1.2) */
	uint16_t lost_count;
	uint16_t flow_out[FA_FLOWS_MAX]; /* not acknowledged, by flow */
	uint64_t live[PDL_WORDS];        /* sent, not acknowledged */
	uint64_t held[PDL_WORDS]; /* of these: received and waiting for the ULP, or RNR: not lost */
	uint64_t lost[PDL_WORDS]; /* of these: to be sent again */
};

/* The receive windows (9.2.1). req, ack and rx start at the base, as on the wire; the others have a
 * push's bit at PSN % FA_DATA_WINDOW. */
struct pdl_rx {
	uint32_t rbase, dbase;
	uint64_t req;
	uint64_t ack[2], rx[2];
	uint64_t rnr[2];       /* the ULP was not ready: it is offered again when it comes again */
	uint64_t refused[2];   /* NACKed for good; `refusal` says how */
	uint64_t ar[2];        /* an acknowledgement is asked for as soon as the ULP takes it */
	uint64_t flow[2][2];   /* bits 0 and 1 of the flow that it came on */
	uint8_t (*refusal)[2]; /* [FA_DATA_WINDOW] NACK code, ULP code; NULL while refused is 0 */
	bool own_request, own_data;
};

/* A path of a connection: congestion state, and what acknowledgements of what came on it say. */
struct pdl_flow {
	struct fa_cc cc;
	uint32_t path;              /* fa_out.path */
	uint32_t acked;             /* packets acknowledged since the last event */
	uint64_t depart;            /* pacing: no packet before this */
	uint32_t rack_t1, rack_rtt; /* ticks: newest send time that was echoed; its round trip */
	/* As receiver. */
	uint32_t t1, t2;   /* of the packet that came last, in ticks */
	uint64_t ack_due;  /* coalescing timer; SK_NEVER: not running */
	uint32_t rx_path;  /* the packet's path: acknowledgements return on it */
	uint16_t ecn;      /* packets marked in all */
	uint16_t ack_half; /* coalescing counter, in halves of a packet */
	uint8_t hops;
	bool rack_valid, ack_now;
};

struct pdl_conn {
	TAILQ_ENTRY(fa_conn) tx_link, ack_link; /* s->pdl.tx, s->pdl.acks */
	bool on_tx, on_acks;
	bool data_turn;    /* round robin between requests and pull data (8.3) */
	bool tlp_out;      /* a probe is under way: no other until something is acknowledged */
	uint8_t flows;     /* 1 or FA_FLOWS_MAX */
	uint8_t next_flow; /* ties go round robin */
	uint16_t ar_gap;   /* packets until the next AR bit */
	uint16_t nacks;    /* in s->pdl.nack */
	uint32_t fcwnd;    /* whole packets, all flows; at least 1 */
	uint32_t ncwnd;    /* whole packets */
	uint32_t timeouts; /* consecutive, of any packet: since the last acknowledgement */
	uint64_t rto_ns;
	uint64_t rtx_due, loss_due, tlp_due, pace_due; /* lower bounds; SK_NEVER */
	uint64_t timer_at;                             /* what the timer is set to */
	struct pdl_fifo pulls, pushes, pull_data;      /* not sent yet */
	uint32_t queued;
	struct pdl_txw tx[2];
	struct pdl_rx rx;
	struct pdl_flow flow[FA_FLOWS_MAX];
	struct fa_info info; /* only its counts */
};

struct pdl_nack {
	struct fa_conn *c;
	uint32_t psn;
	bool request;
	uint8_t code, rnr, ulp_code, flow;
};

struct pdl_ring_block {
	struct pdl_ring_block *next;
};

struct pdl_stack {
	TAILQ_HEAD(, fa_conn) tx;   /* have packets to send, and no known reason to wait */
	TAILQ_HEAD(, fa_conn) acks; /* have an acknowledgement to send now */
	struct pdl_ring_block *rings[PDL_RING_CLASSES]; /* spare ones */
	struct pdl_nack nack[PDL_NACKS];
	uint32_t nack_head, nack_count;
	uint64_t random; /* state of the generator */
};

#endif
