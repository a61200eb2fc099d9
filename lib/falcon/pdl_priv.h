/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet delivery sublayer's part of a connection and of a stack (section 9).
 *
 * pdl_tx.c    which packet goes out next, and its header
 * pdl_txw.c   the transmit windows: packets by PSN
 * pdl_ack.c   incoming acknowledgements and NACKs
 * pdl_loss.c  detection of losses: distance, OWN, RACK, TLP
 * pdl_timer.c the only timer of a connection and its deadlines; RTO
 * pdl_rx.c    the receive windows
 * pdl_rxack.c outgoing acknowledgements and NACKs
 * pdl_conn.c  creation, destruction, and the turn of the loop
 * cc.c        events for the congestion algorithm, and enforcement of its results
 */
#ifndef SAKER_PDL_PRIV_H
#define SAKER_PDL_PRIV_H

#include <sys/queue.h>

#include "../base/mem.h"
#include "falcon_priv.h"
#include "rue.h"

/* Packets in a transmit window; the bitmaps on the wire reach 128. */
#define PDL_WINDOW_MAX   256
#define PDL_WORDS        (PDL_WINDOW_MAX / 64)
#define PDL_RING_MIN     16 /* packets for which a window first allocates room */
#define PDL_RING_CLASSES 5  /* 16, 32, .. PDL_WINDOW_MAX */
/* NACKs that wait for the next poll; a further one replaces the oldest, as if it were lost. */
#define PDL_NACKS       128
#define PDL_TURN        8    /* packets that a connection sends in its turn (8.3) */
#define PDL_BACKOFF_MAX 16   /* doublings of a packet's timeout, at most */
#define PDL_REO_MIN_NS  4000 /* RACK: the smallest allowance for reordering */
#define PDL_REO_STEPS   3    /* RACK: the largest allowance, one round trip */
/* necessary retransmissions in a row that shrink the allowance by one step */
#define PDL_REO_PERSIST 16
#define PDL_PTO_MIN_NS  50000 /* TLP: the earliest probe */
/* consecutive ones of a packet after which its flow changes its path */
#define PDL_REPATH_TIMEOUTS 2
#define PDL_WAIT_MAX_NS     8000000u /* a longer wait in hosts counts as this */
/* The delay of an acknowledgement of pushes that the ULP has not taken, in that of others. */
#define PDL_RECEIVED_DELAYS 4
#define PDL_RTT_MAX         (1u << 23) /* ticks: a longer round trip, beyond a second, is invalid */

enum { PDL_DATA, PDL_REQUEST }; /* the two windows */

/* fa_pkt.flags */
#define PKT_RETX 0x01 /* was retransmitted */
#define PKT_ORRC 0x02 /* counted in pdl_txw.orrc */
#define PKT_SENT 0x04 /* has a PSN */
/* the peer's ULP was not ready: `deadline` is the time of the next attempt */
#define PKT_RNR     0x08
#define PKT_INSIST  0x10 /* to be sent though the peer has it: its ULP must answer */
#define PKT_EARLY   0x20 /* lost, by an acknowledgement */
#define PKT_TIMEOUT 0x40 /* lost, by a timer */
#define PKT_PROBE   0x80 /* a tail loss probe */
#define PKT_WHY     (PKT_INSIST | PKT_EARLY | PKT_TIMEOUT | PKT_PROBE)

struct pdl_fifo {
	struct fa_pkt *head, **tail;
};

/* A transmit window (9.1.1). The maps hold a packet's bit at PSN % PDL_WINDOW_MAX. */
struct pdl_txw {
	uint32_t base, next; /* RBPSN, RNPSN; DBPSN, DNPSN */
	uint32_t highest;    /* highest PSN that the peer has acknowledged or received */
	uint16_t size;       /* packets from base to next, at most, whatever fcwnd is */
	uint16_t ring_mask;
	struct fa_pkt **ring; /* indexed by PSN & ring_mask; NULL while the window is empty */
	/* outstanding requests; those of them that were retransmitted (9.1.2) */
	uint16_t orc, orrc;
	uint16_t lost_count;
	uint16_t flow_out[FA_FLOWS_MAX]; /* unacknowledged packets of each flow */
	uint64_t live[PDL_WORDS];        /* sent and not acknowledged */
	/* Of `live`: the peer has received them, and its ULP has not acknowledged them; they are
	 * not lost. */
	uint64_t held[PDL_WORDS];
	uint64_t lost[PDL_WORDS]; /* of `live`: to be retransmitted */
};

/* The receive windows (9.2.1). The bits of req, ack and rx start at the base, as on the wire; the
 * other maps hold a push's bit at PSN % FA_DATA_WINDOW. */
struct pdl_rx {
	uint32_t rbase, dbase;
	uint64_t req;
	uint64_t ack[2], rx[2];
	uint64_t ar[2];        /* the ULP's acknowledgement must go out immediately (AR) */
	uint64_t rnr[2];       /* the ULP was not ready: TL gets the push when it arrives again */
	uint64_t refused[2];   /* NACKed for good; `refusal` has the codes */
	uint64_t flow[2][2];   /* bits 0 and 1 of the number of its flow */
	uint8_t (*refusal)[2]; /* [FA_DATA_WINDOW]: NACK code, ULP code; NULL: no refusal so far */
};

/* A path of a connection: its congestion state, and the fields of acknowledgements for packets that
 * arrived on it. An acknowledgement uses all of it, any other packet the first 64 bytes. */
struct pdl_flow {
	uint32_t path;  /* fa_out.path */
	uint32_t acked; /* packets acknowledged since the last event */
	/* ---- As receiver ---- */
	uint64_t ack_due;  /* coalescing timer; SK_NEVER: stopped */
	uint64_t depart;   /* as sender: pacing: the earliest time of the next packet */
	uint32_t t1, t2;   /* ticks, of the last packet that arrived */
	uint32_t rx_path;  /* its path, on which acknowledgements return */
	uint16_t ecn;      /* number of packets with ECN CE */
	uint16_t ack_half; /* coalescing counter, in halves of a packet */
	uint8_t hops;
	bool ack_now : 1;
	/* ---- As sender ---- */
	bool rack_valid : 1;
	/* RACK: the allowance for reordering in quarters of a round trip, less one */
	uint8_t reo_steps;
	uint8_t reo_right;          /* necessary early retransmissions in a row */
	uint32_t rack_t1, rack_rtt; /* ticks: newest echoed send time; its fabric delay */
	struct fa_cc cc;
};

/* The last four share a cache line with the timer, which each packet uses, too. */
struct pdl_counts {
	uint64_t retransmits, early, timeouts, probes;
	uint64_t nacks_out, nacks_in;
	uint32_t resyncs_out, repaths;
	uint64_t packets_out, packets_in, acks_out, acks_in;
};

struct pdl_conn {
	_Alignas(64) bool on_tx;
	bool on_acks;
	bool data_turn;    /* round robin between requests and pull data (8.3) */
	bool tlp_out;      /* a probe is outstanding: no other until an acknowledgement arrives */
	bool coalescing;   /* ack_due of some flow may be set */
	uint8_t flows;     /* 1 or FA_FLOWS_MAX */
	uint8_t next_flow; /* round robin among flows with equal windows */
	bool answered;     /* rx.rnr or rx.refused may have a bit */
	/* A packet out of the window of requests, or of data, arrived: the next EACK reports it. */
	bool own_request, own_data;
	uint16_t ar_gap;                     /* packets until the next AR bit */
	uint32_t fcwnd;                      /* whole packets, sum of all flows; at least 1 */
	uint32_t ncwnd;                      /* whole packets; at least 1 */
	uint32_t queued;                     /* number of packets in the three fifos */
	uint64_t rtx_due, loss_due, tlp_due; /* lower bounds; SK_NEVER: none */
	uint64_t timer_at;                   /* deadline to which the timer is set */
	uint16_t nacks;                      /* number of entries in s->pdl.nack */

	_Alignas(64) struct pdl_rx rx;
	uint64_t pace_due; /* lower bound; SK_NEVER: none */
	struct fa_cc_nic nic;
	struct pdl_fifo pulls, pull_data; /* packets not sent yet */

	struct pdl_fifo pushes;                 /* packets not sent yet */
	TAILQ_ENTRY(fa_conn) tx_link, ack_link; /* s->pdl.tx, s->pdl.acks */
	uint64_t rto_ns, pto_ns;
	struct pdl_flow flow[FA_FLOWS_MAX];
	struct pdl_txw tx[2];
	struct pdl_counts n;
	struct sk_timer timer;
};
_Static_assert(
	offsetof(struct pdl_conn, rx.rnr) == 128 && offsetof(struct pdl_conn, pushes) == 256 &&
		offsetof(struct pdl_conn, flow) == 320 && offsetof(struct pdl_conn, tx) % 64 == 0 &&
		offsetof(struct pdl_conn, n.packets_out) / 64 ==
			(sizeof(struct sk_timer) - 1 + offsetof(struct pdl_conn, timer)) / 64,
	"the cache lines that packets use");

struct pdl_nack {
	struct fa_conn *c; /* NULL: the connection was destroyed */
	uint32_t psn;
	bool request;
	uint8_t code, rnr, ulp_code, flow;
};

struct pdl_ring_block {
	struct pdl_ring_block *next;
};

struct pdl_stack {
	TAILQ_HEAD(, fa_conn) tx;   /* connections that have packets and no known reason to wait */
	TAILQ_HEAD(, fa_conn) acks; /* connections that have an acknowledgement to send */
	struct pdl_ring_block *rings[PDL_RING_CLASSES]; /* spare blocks, by class */
	struct pdl_nack nack[PDL_NACKS];
	uint32_t nack_head, nack_count;
	uint8_t backlog;        /* the least receive level of acknowledgements, 0..31 */
	uint64_t missing_until; /* see fa_stack_missing() */
	/* How long packets spend in the two hosts at present, by the acknowledgements of all
	 * connections: no acknowledgement is late before. */
	uint64_t wait_ns;
	uint64_t random;                 /* state of the generator */
	uint32_t ticks;                  /* time of the current poll */
	struct wire_falcon hdr, ack_hdr; /* headers of the packet that is being sent */
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

/* Clears the bits of `n` consecutive PSNs in a map of PDL_WINDOW_MAX bits. */
static inline void
pdl_bits_clear(uint64_t *map, uint32_t psn, uint32_t n)
{
	while (n > 0) {
		uint32_t at = psn % 64, here = SK_MIN(64 - at, n);

		map[psn % PDL_WINDOW_MAX / 64] &= ~(UINT64_MAX >> (64 - here) << at);
		psn += here;
		n -= here;
	}
}

/* Returns whether a < b modulo 2^32. */
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
/* Enlarges the ring. Returns false when memory is exhausted. */
bool pdl_txw_grow(struct fa_stack *s, struct pdl_txw *w);
/* Makes room for the packet `next`. Returns false when memory is exhausted. */
static inline bool
pdl_txw_reserve(struct fa_stack *s, struct pdl_txw *w)
{
	return (w->ring != NULL && w->next - w->base <= w->ring_mask) || pdl_txw_grow(s, w);
}
/* Assigns the next PSN to `p` and adds it. */
void pdl_txw_add(struct pdl_txw *w, struct fa_pkt *p);
/* Removes an acknowledged packet from all maps and counts. */
void pdl_txw_remove(struct pdl_txw *w, struct fa_pkt *p);
void pdl_txw_lost(struct pdl_txw *w, struct fa_pkt *p, uint8_t why);
/* Clears the mark of pdl_txw_lost(): the packet is not lost, or was retransmitted. */
void pdl_txw_found(struct pdl_txw *w, struct fa_pkt *p);
/* Moves the base; a window that becomes empty returns its ring. */
void pdl_txw_rebase(struct fa_stack *s, struct pdl_txw *w, uint32_t base);
void pdl_rings_free(struct fa_stack *s);

static inline struct fa_pkt *
pdl_txw_get(const struct pdl_txw *w, uint32_t psn)
{
	return w->ring[psn & w->ring_mask];
}

/* Advances *psn to the first PSN from it on whose bit is set in `which` of the maps. Returns false
 * when there is none before `next`. */
enum pdl_which {
	PDL_LIVE,
	PDL_LOST,
	PDL_WAITING /* live and not lost */,
	PDL_MISSING /* live, not lost, not held */,
	PDL_ABSENT /* live, not held */
};
bool pdl_txw_find(const struct pdl_txw *w, uint32_t *psn, enum pdl_which which);

/* ---- pdl_tx.c ---- */

/* Puts the connection into the list of those that may send, if it has a packet. */
void pdl_wake(struct fa_conn *c);
/* Sends up to `budget` packets of all connections. Returns their number. */
unsigned pdl_tx_poll(struct fa_stack *s, uint64_t now, unsigned budget);
/* Turns `p` into a Resync. */
void pdl_to_resync(struct fa_pkt *p, uint8_t code, enum fa_completion how, uint8_t ulp_code);

/* ---- pdl_ack.c ---- */

void pdl_ack_input(struct fa_conn *c, uint64_t now, const struct fa_in *in);
/* Processes the bases in a reliable packet (9.2.3). Returns FA_NONE, or the reason why they have no
 * effect. */
enum fa_reason pdl_piggyback(struct fa_conn *c, uint64_t now, uint32_t rbpsn, uint32_t dbpsn);

/* ---- pdl_loss.c ---- */

/* Detects losses after an acknowledgement `h`, which arrived `rtt` ticks after its t1. */
void pdl_loss_ack(struct fa_conn *c, uint64_t now, const struct wire_falcon *h, uint32_t rtt);
/* Returns whether the bitmaps of an EACK, which have been processed, show a loss on `flow` by the
 * distance heuristic without its recency check (10.6.2.1, eack_drop). */
bool pdl_loss_shown(const struct fa_conn *c, unsigned flow);
/* Adapts RACK's allowance for reordering: `p` was retransmitted and is acknowledged. */
void pdl_loss_learn(struct fa_conn *c, uint64_t now, const struct fa_pkt *p);
/* Runs RACK when loss_due has come. */
void pdl_loss_timer(struct fa_conn *c, uint64_t now);
/* Sends a probe when tlp_due has come. */
void pdl_tlp(struct fa_conn *c, uint64_t now);
void pdl_tlp_arm(struct fa_conn *c, uint64_t now);

/* ---- pdl_timer.c ---- */

/* Moves the timer forward to `at`, a deadline of the connection, if that is earlier. */
void pdl_due(struct fa_conn *c, uint64_t at);
void pdl_timer(struct fa_conn *c, uint64_t now);
/* Returns the timeout of a packet in ns: that of the connection, doubled for each timeout, and
 * no less than three times the wait in hosts. */
uint64_t pdl_timeout(const struct fa_conn *c, const struct fa_pkt *p);
/* Counts a timeout of a packet, unless the loop has observed less than the timeout since the last
 * one: what stopped the loop is no silence of the peer. Returns whether it did. */
bool pdl_count_timeout(struct fa_conn *c, uint64_t now, struct fa_pkt *p);

/* ---- pdl_rx.c ---- */

void pdl_input(struct fa_conn *c, uint64_t now, const struct fa_in *in);
/* The parts of a run (fa_run_begin()): the bases of the first packet, for which pdl_run_acks()
 * returns whether they are new and took effect; whether a packet is new, and all its fields are as
 * expected; its reception; the acknowledgement of all. And for pushes like the last one: how many
 * from `psn` on are new if they arrive in order; the reception of `n` of them, with their AR
 * bits. */
bool pdl_run_acks(struct fa_conn *c, uint64_t now, const struct wire_falcon_plain *h);
bool pdl_run_fits(const struct fa_conn *c, const struct wire_falcon_plain *h);
void pdl_run_add(struct fa_conn *c, struct fa_run *run, const struct wire_falcon_plain *h,
	const struct fa_in *in);
void pdl_run_end(struct fa_conn *c, uint64_t now, const struct fa_run *run);
uint32_t pdl_run_room(const struct fa_conn *c, uint32_t psn);
void pdl_run_pushes(struct fa_conn *c, uint32_t psn, uint32_t n, const uint64_t ar[2]);

/* ---- pdl_rxack.c ---- */

/* Records that a packet on `flow` needs an acknowledgement: adds `halves` of a packet to the
 * coalescing counter; if `now_please` is true, the acknowledgement does not wait. */
void pdl_ack_note(struct fa_conn *c, uint64_t now, unsigned flow, unsigned halves, bool now_please);
/* Records that `pushes` pushes were received, which the ULP has not taken yet. An acknowledgement
 * follows when it has. If the ULP is slow, or a packet in front of them is missing, an EACK reports
 * before what was received. */
void pdl_ack_received(struct fa_conn *c, uint64_t now, unsigned flow, unsigned pushes);
/* Records that a reliable packet carries the bases. */
void pdl_ack_piggybacked(struct fa_conn *c);
/* Runs the coalescing timers that are due. Returns the next deadline. */
uint64_t pdl_ack_timer(struct fa_conn *c, uint64_t now);
void pdl_nack_queue(struct fa_conn *c, bool request, uint32_t psn, uint8_t code, uint8_t rnr,
	uint8_t ulp_code, unsigned flow);
/* Sends up to `budget` NACKs and acknowledgements of all connections. Returns their number. */
unsigned pdl_rxack_poll(struct fa_stack *s, unsigned budget);
void pdl_rxack_forget(struct fa_conn *c);

/* ---- cc.c ---- */

void pdl_cc_init(struct fa_conn *c);
/* Returns the path of acknowledgements for packets that arrived on `path`: one of the same flow,
 * whose low bits are in fa_params.paths. */
uint32_t pdl_path_back(const struct fa_conn *c, uint32_t path);
/* Returns the round trip of the acknowledgement in ticks, or 0 when its times are invalid. */
uint32_t pdl_cc_ack(struct fa_conn *c, uint64_t now, const struct fa_in *in, unsigned flow);
void pdl_cc_retransmit(
	struct fa_conn *c, uint64_t now, unsigned flow, enum fa_rue_retransmit why, unsigned times);

/* ---- pdl_conn.c ---- */

void pdl_stack_init(struct fa_stack *s);
void pdl_stack_fini(struct fa_stack *s);
void pdl_conn_init(struct fa_conn *c);
/* Returns all packets to TL: through tl_pkt_free() when `how` is FA_DONE, otherwise through
 * tl_sent(). */
void pdl_conn_fini(struct fa_conn *c, uint64_t now, enum fa_completion how);
unsigned pdl_poll(struct fa_stack *s, uint64_t now, unsigned budget);
bool pdl_busy(const struct fa_stack *s); /* some packet, ACK or NACK waits for the next poll */
uint32_t pdl_random(struct fa_stack *s);

static inline unsigned
pdl_flow_of(const struct pdl_conn *d, uint32_t path)
{
	return path & (d->flows - 1u);
}

#endif
