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
 * pdl_conn.c  life and death, the turn of the loop
 * cc.c        events to the congestion algorithm, and what comes back
 */
#ifndef SAKER_PDL_PRIV_H
#define SAKER_PDL_PRIV_H

#include <sys/queue.h>

#include "falcon_priv.h"
#include "rue.h"

#define PDL_WINDOW_MAX      256 /* packets in a transmit window; the bitmaps on the wire reach 128 */
#define PDL_WORDS           (PDL_WINDOW_MAX / 64)
#define PDL_RING_MIN        16  /* packets a window has room for before it grows */
#define PDL_RING_CLASSES    5   /* 16, 32, .. PDL_WINDOW_MAX */
#define PDL_NACKS           128 /* that wait for the next poll; one too many is lost, as on a wire */
#define PDL_TURN            8   /* packets of a connection before the next one's turn (8.3) */
#define PDL_BACKOFF_MAX     6   /* the timeout of a packet doubles so often at most */
#define PDL_REO_MIN_NS      4000       /* RACK: reordering that is always allowed for */
#define PDL_REO_STEPS       3          /* RACK: a whole round trip at most */
#define PDL_REO_PERSIST     16         /* so many that were needed: one step back */
#define PDL_PTO_MIN_NS      50000      /* TLP: no probe earlier */
#define PDL_REPATH_TIMEOUTS 2          /* of a packet, in a row: its flow tries another path */
#define PDL_RTT_MAX         (1u << 23) /* ticks: a round trip beyond a second is a lie */

enum { PDL_REQUEST, PDL_DATA }; /* the two windows */

/* fa_pkt.flags */
#define PKT_RETX    0x01 /* was sent again */
#define PKT_ORRC    0x02 /* counted in pdl_txw.orrc */
#define PKT_SENT    0x04 /* has a PSN */
#define PKT_RNR     0x08 /* the peer's ULP was not ready: `deadline` is when to try again */
#define PKT_INSIST  0x10 /* goes out though the peer has it: its ULP is asked again */
#define PKT_EARLY   0x20 /* lost: an acknowledgement said so */
#define PKT_TIMEOUT 0x40 /* lost: a timer said so */
#define PKT_PROBE   0x80 /* a tail loss probe */
#define PKT_WHY     (PKT_INSIST | PKT_EARLY | PKT_TIMEOUT | PKT_PROBE)

struct pdl_fifo {
	struct fa_pkt *head, **tail;
};

/* A transmit window (9.1.1). The maps hold a packet's bit at PSN % PDL_WINDOW_MAX. */
struct pdl_txw {
	uint32_t base, next; /* RBPSN, RNPSN; DBPSN, DNPSN */
	uint32_t highest;    /* PSN that the peer is known to have received */
	uint16_t size;       /* packets from base to next at most, whatever fcwnd says */
	uint16_t ring_mask;
	struct fa_pkt **ring; /* by PSN & ring_mask; NULL while the window is empty */
	uint16_t orc, orrc;   /* requests outstanding; of these, retransmitted (9.1.2) */
	uint16_t lost_count;
	uint16_t flow_out[FA_FLOWS_MAX]; /* not acknowledged, by flow */
	uint64_t live[PDL_WORDS];        /* sent, not acknowledged */
	uint64_t held[PDL_WORDS]; /* of these: received, so not to be taken for lost; waits for ULP
				   */
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
	uint64_t ar[2];        /* an acknowledgement is wanted as soon as the ULP takes it */
	uint64_t flow[2][2];   /* bits 0 and 1 of the flow that it came on */
	uint8_t (*refusal)[2]; /* [FA_DATA_WINDOW] NACK code, ULP code; NULL: none so far */
	bool own_request, own_data;
};

/* A path of a connection: congestion state, and what acknowledgements of what came on it say. */
struct pdl_flow {
	struct fa_cc cc;
	uint32_t path;              /* fa_out.path */
	uint32_t acked;             /* packets acknowledged since the last event */
	uint64_t depart;            /* pacing: no packet before this */
	uint32_t rack_t1, rack_rtt; /* ticks: newest send time that was echoed; its fabric delay */
	/* As receiver. */
	uint64_t ack_due;  /* coalescing timer; SK_NEVER: not running */
	uint32_t t1, t2;   /* of the packet that came last, in ticks */
	uint32_t rx_path;  /* its path: acknowledgements return on it */
	uint16_t ecn;      /* packets marked in all */
	uint16_t ack_half; /* coalescing counter, in halves of a packet */
	uint8_t hops;
	bool rack_valid, ack_now;
	uint8_t reo_steps; /* RACK: quarters of a round trip allowed for reordering, less one */
	uint8_t reo_right; /* early retransmissions in a row that were needed */
};

struct pdl_counts {
	uint64_t packets_out, packets_in, retransmits, early, timeouts, probes;
	uint64_t acks_out, acks_in, nacks_out, nacks_in, resyncs_out, repaths;
};

struct pdl_conn {
	TAILQ_ENTRY(fa_conn) tx_link, ack_link; /* s->pdl.tx, s->pdl.acks */
	bool on_tx, on_acks;
	bool data_turn;    /* round robin between requests and pull data (8.3) */
	bool tlp_out;      /* a probe is under way: no other until something is acknowledged */
	bool coalescing;   /* some flow's ack_due may be set */
	uint8_t flows;     /* 1 or FA_FLOWS_MAX */
	uint8_t next_flow; /* ties go round robin */
	uint16_t ar_gap;   /* packets until the next AR bit */
	uint16_t nacks;    /* in s->pdl.nack */
	uint32_t fcwnd;    /* whole packets, all flows; at least 1 */
	uint32_t ncwnd;    /* whole packets, at least 1 */
	uint32_t queued;   /* in the fifos */
	uint64_t rto_ns, pto_ns;
	uint64_t rtx_due, loss_due, tlp_due, pace_due; /* lower bounds; SK_NEVER */
	uint64_t timer_at;                             /* what the timer is set to */
	struct pdl_fifo pulls, pushes, pull_data;      /* not sent yet */
	struct pdl_txw tx[2];
	struct pdl_rx rx;
	struct fa_cc_nic nic;
	struct pdl_flow flow[FA_FLOWS_MAX];
	struct pdl_counts n;
};

struct pdl_nack {
	struct fa_conn *c; /* NULL: the connection is gone */
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
	uint64_t random;                 /* state of the generator */
	uint32_t ticks;                  /* of the poll that runs */
	struct wire_falcon hdr, ack_hdr; /* of what is being sent */
};

/* ---- Bits by PSN ---- */

static inline bool
pdl_bit(const uint64_t *map, unsigned bits, uint32_t psn)
{
	return map[psn % bits / 64] >> (psn % 64) & 1;
}

static inline void
pdl_bit_set(uint64_t *map, unsigned bits, uint32_t psn)
{
	map[psn % bits / 64] |= 1ull << (psn % 64);
}

static inline void
pdl_bit_clear(uint64_t *map, unsigned bits, uint32_t psn)
{
	map[psn % bits / 64] &= ~(1ull << (psn % 64));
}

/* a < b on the circle. */
static inline bool
pdl_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static inline unsigned
pdl_window_of(const struct fa_pkt *p)
{
	return p->type == FALCON_PULL_REQUEST ? PDL_REQUEST : PDL_DATA;
}

static inline bool
pdl_is_request(const struct fa_pkt *p)
{
	return p->type != FALCON_PULL_DATA;
}

/* ---- pdl_txw.c ---- */

void pdl_txw_init(struct pdl_txw *w, uint32_t psn, uint16_t size);
/* Room for the packet `next`; false: no memory. */
bool pdl_txw_reserve(struct fa_stack *s, struct pdl_txw *w);
/* Gives `p` the next PSN. */
void pdl_txw_add(struct pdl_txw *w, struct fa_pkt *p);
/* It is acknowledged: out of all maps and counts. */
void pdl_txw_remove(struct pdl_txw *w, struct fa_pkt *p);
void pdl_txw_lost(struct pdl_txw *w, struct fa_pkt *p, uint8_t why);
void pdl_txw_found(struct pdl_txw *w, struct fa_pkt *p); /* not lost after all, or sent again */
/* Moves the base; an empty window gives its ring back. */
void pdl_txw_rebase(struct fa_stack *s, struct pdl_txw *w, uint32_t base);
void pdl_rings_free(struct fa_stack *s);

static inline struct fa_pkt *
pdl_txw_get(const struct pdl_txw *w, uint32_t psn)
{
	return w->ring[psn & w->ring_mask];
}

/* From *psn on, the first PSN whose bit is set in `which` of the maps; false: none before next. */
enum pdl_which { PDL_LIVE, PDL_LOST, PDL_WAITING /* live, not lost */, PDL_MISSING /* nor held */ };
bool pdl_txw_find(const struct pdl_txw *w, uint32_t *psn, enum pdl_which which);

/* ---- pdl_tx.c ---- */

/* There may be something to send now. */
void pdl_wake(struct fa_conn *c);
/* Sends up to `budget` packets of all connections. */
unsigned pdl_tx_poll(struct fa_stack *s, uint64_t now, unsigned budget);
/* From now on `p` is a Resync. */
void pdl_to_resync(struct fa_pkt *p, uint8_t code, enum fa_completion how, uint8_t ulp_code);

/* ---- pdl_ack.c ---- */

void pdl_ack_input(struct fa_conn *c, uint64_t now, const struct fa_in *in);
/* The bases in a reliable packet (9.2.3). */
void pdl_piggyback(struct fa_conn *c, uint64_t now, const struct wire_falcon *h);

/* ---- pdl_loss.c ---- */

/* After an acknowledgement `h` on `flow`, which came `rtt` ticks after its t1. */
void pdl_loss_ack(struct fa_conn *c, uint64_t now, const struct wire_falcon *h, uint32_t rtt);
/* `p` was sent again and has arrived: was that needed? */
void pdl_loss_learn(struct fa_conn *c, uint64_t now, const struct fa_pkt *p);
/* When loss_due has come: RACK looks again. */
void pdl_loss_timer(struct fa_conn *c, uint64_t now);
/* When tlp_due has come. */
void pdl_tlp(struct fa_conn *c, uint64_t now);
void pdl_tlp_arm(struct fa_conn *c, uint64_t now);

/* ---- pdl_timer.c ---- */

/* A deadline of the connection moved to `at`, or was set to it. */
void pdl_due(struct fa_conn *c, uint64_t at);
void pdl_timer(struct fa_conn *c, uint64_t now);

/* ---- pdl_rx.c ---- */

void pdl_input(struct fa_conn *c, uint64_t now, const struct fa_in *in);

/* ---- pdl_rxack.c ---- */

/* Something came on `flow` that wants an acknowledgement: `halves` of a packet for the coalescing
 * counter; `now_please`: do not wait. */
void pdl_ack_note(struct fa_conn *c, uint64_t now, unsigned flow, unsigned halves, bool now_please);
/* A reliable packet goes out with our bases. */
void pdl_ack_piggybacked(struct fa_conn *c);
/* Coalescing timers that are due; returns the next. */
uint64_t pdl_ack_timer(struct fa_conn *c, uint64_t now);
void pdl_nack_queue(struct fa_conn *c, bool request, uint32_t psn, uint8_t code, uint8_t rnr,
	uint8_t ulp_code, unsigned flow);
unsigned pdl_rxack_poll(struct fa_stack *s, unsigned budget);
void pdl_rxack_forget(struct fa_conn *c);

/* ---- cc.c ---- */

void pdl_cc_init(struct fa_conn *c);
/* Returns the round trip of the acknowledgement in ticks; 0: its times cannot be. */
uint32_t pdl_cc_ack(struct fa_conn *c, uint64_t now, const struct fa_in *in, unsigned flow);
void pdl_cc_retransmit(
	struct fa_conn *c, uint64_t now, unsigned flow, enum fa_rue_retransmit why, unsigned times);

/* ---- pdl_conn.c: life ---- */

void pdl_stack_init(struct fa_stack *s);
void pdl_stack_fini(struct fa_stack *s);
void pdl_conn_init(struct fa_conn *c);
/* Gives all packets back, through tl_pkt_free() or, when `how` is not FA_DONE, through tl_sent().
 */
void pdl_conn_fini(struct fa_conn *c, uint64_t now, enum fa_completion how);
unsigned pdl_poll(struct fa_stack *s, uint64_t now, unsigned budget);
bool pdl_busy(const struct fa_stack *s); /* something waits for the next poll */
uint32_t pdl_random(struct fa_stack *s);

static inline unsigned
pdl_flow_of(const struct pdl_conn *d, uint32_t path)
{
	return path & (d->flows - 1u);
}

#endif
