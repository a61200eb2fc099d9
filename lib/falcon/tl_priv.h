/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transaction sublayer's part of a connection and of a stack (section 8).
 *
 * tl_initiator.c  requests of our ULP: RSN, packets, completions (8.4)
 * tl_wait.c       requests of our ULP that overran the resources
 * tl_target.c     requests of the peer: verdicts of our ULP, pull data (8.5)
 * tl_admit.c      whether a request from the network gets in: zones, head of line, eviction
 * tl_order.c      who is delivered next, on ordered and unordered connections; calls the ULP
 * tl_rnr.c        requests that the ULP was not ready for
 * tl_reclaim.c    what took too long; connections that are given up (11)
 * tl_pool.c       the resource pools (8.2.2), Xoff, the receive level (10.2)
 * tl_table.c      transactions by connection and RSN
 * tl_stack.c      making and unmaking
 *
 * An idle connection has no transactions, and a transaction is one object at either end: it comes
 * from one of two pools of the stack, one for each direction, so that neither can starve the other
 * (CR#1, CR#2 of 8.2.1.2).
 */
#ifndef SAKER_TL_PRIV_H
#define SAKER_TL_PRIV_H

#include <sys/queue.h>

#include "falcon_priv.h"

/* How far ahead of the next RSN a request may be, on an ordered connection: more than anybody's
 * outstanding transactions. */
#define TL_RSN_REACH (1u << 20)

/* 8.4.1 and 8.5.1. Whether the packet is still with PDL is a flag of its own, since pull data may
 * overtake the acknowledgement of its request. */
enum tl_state {
	TL_FREE,
	/* At the initiator. */
	TL_PUSH_TX,   /* PushReqUlpRx, PushDataTx */
	TL_PULL_TX,   /* PullReqUlpRx, PullReqTx */
	TL_PULL_ACKD, /* PullReqAckd */
	TL_READY,     /* PushDataAckd, PullDataRx, or failed: to be delivered */
	TL_GONE,      /* PushCplTx, PullDataUlpTx: only the packet is still with PDL */
	/* At the target. */
	TL_HELD,           /* PullReqRx, PushDataRx */
	TL_ULP_TX,         /* PullReqUlpTx, PushReqUlpTx: the ULP has it */
	TL_REFUSED_BY_ULP, /* RNR: is offered again */
	TL_PULL_TAKEN,     /* PullReqUlpAckd */
	TL_DATA_WAITS,     /* PullDataUlpRx: no resources for the packet yet */
	TL_DATA_TX,        /* PullDataTx */
	TL_PASSED_OVER,    /* nothing comes under this RSN: the peer sent a Resync */
};

struct tl_txn {
	/* At the initiator the request, at the target the pull data; its rsn, type and request_len
	 * are those of the transaction in any case. */
	struct fa_pkt pkt;
	struct fa_conn *c;
	struct tl_txn *hash_next;
	TAILQ_ENTRY(tl_txn) link;  /* c->tl.reqs or c->tl.ins */
	TAILQ_ENTRY(tl_txn) queue; /* c->tl.ready, c->tl.refused or s->tl.data_waits */
	TAILQ_ENTRY(tl_txn) evict; /* s->tl.evictable */
	struct fa_buf *buf;        /* waits for the ULP: a request, or pull data */
	uint64_t due;              /* TL_REFUSED_BY_ULP: when it is offered again */
	uint32_t tx_cells, rx_cells;
	uint32_t psn; /* at the target: of the push */
	uint8_t state, type;
	uint8_t completion, ulp_code; /* TL_READY */
	uint8_t rnr;                  /* code of the timeout that the ULP gave */
	bool in_pdl, in_net, hashed, evictable;
	bool no_ack; /* the push's Resync came: PDL wants no verdict */
};

TAILQ_HEAD(tl_list, tl_txn);

/* Where an ordered connection's target stands with a request that the ULP was not ready for. */
enum tl_rnr {
	TL_RNR_NONE,
	TL_RNR_WAIT,  /* rx_rsn was refused; nothing behind it is offered */
	TL_RNR_PROBE, /* rx_rsn - 1 was offered again; its verdict decides */
};

struct tl_conn {
	uint32_t tx_rsn; /* NRSN of the initiator */
	uint32_t rx_rsn; /* NRSN of the target: ordered only */
	uint32_t judged; /* ordered: the RSN after the last one that has a verdict other than RNR */
	struct tl_list reqs;                   /* the initiator's, not delivered, by RSN */
	struct tl_list ins;                    /* the target's, up to TL_DATA_WAITS */
	struct tl_list ready;                  /* unordered: to be delivered, either side */
	struct tl_list refused;                /* unordered: TL_REFUSED_BY_ULP, by due */
	struct fa_buf *wait_head, **wait_tail; /* by RSN */
	TAILQ_ENTRY(fa_conn) wait_link;        /* s->tl.waiting, while wait_head */
	uint32_t wait_count;
	bool wait_listed;
	struct tl_txn *head; /* ordered: at the target, under rx_rsn, to be offered */
	uint32_t in_net;     /* on ins, with resources of the network's */
	uint32_t evictable;  /* of these, on s->tl.evictable */
	uint32_t out;        /* with the ULP: TL_ULP_TX */
	uint32_t held;       /* ordered: on ins, neither with the ULP nor beyond */
	uint32_t lost_rsn;   /* from here to tx_rsn: requests that had no transaction */
	uint8_t lost_code, rnr;
	uint8_t rnr_code;            /* of the refusal that holds up the connection */
	bool lost;                   /* lost_rsn counts; no request is taken any more */
	bool offer;                  /* TL_RNR_WAIT is over */
	bool restart;                /* the next request offered ends the ULP's refusing */
	bool busy, running;          /* ops->deliver said no; tl_run() is on the stack */
	bool dead, told;             /* tl_dead() came; FA_EV_DEAD was sent */
	uint64_t rnr_at, reclaim_at; /* what the timer is for; SK_NEVER */
	uint64_t gap_since;          /* requests are held up by one that has not come; 0: none */
};

/* One region of a pool (8.2.2). Of those for requests of our ULP: Xoff when three quarters are in
 * use, since some are on their way to Falcon then, or when a request of a full MTU would not fit.
 */
struct tl_region {
	uint32_t cap, used;
	uint32_t xoff_above, xon_upto;
};

struct tl_table {
	struct tl_txn **bucket;
	uint64_t key;
	unsigned bits;
};

struct tl_objects {
	struct tl_txn *array, *free;
	uint32_t count, fresh; /* array[fresh..] were never used */
};

struct tl_stack {
	struct tl_region tx_pkt_req, tx_buf_req, rx_pkt_ulp, rx_buf_ulp;
	struct tl_region tx_pkt_data, tx_buf_data, rx_pkt_net, rx_buf_net, pulls_in;
	uint64_t pkt_ema, buf_ema; /* 8 fraction bits */
	uint32_t pkt_cells;        /* of the level: a packet counts as so many cells */
	uint32_t mtu;              /* the largest of any connection */
	bool xoff;
	struct tl_objects reqs, ins;
	struct tl_table pulls, requests; /* of the initiator, of the target */
	TAILQ_HEAD(, fa_conn) waiting;   /* have requests that wait for resources */
	struct tl_list data_waits;       /* pull data without resources, oldest first */
	struct tl_list evictable;        /* pushes that were refused by the ULP, oldest first */
};

static inline struct tl_txn *
tl_txn_of(struct fa_pkt *p)
{
	return (struct tl_txn *)p;
}
_Static_assert(offsetof(struct tl_txn, pkt) == 0, "tl_txn_of()");

static inline uint32_t
tl_cells(uint32_t len, uint32_t cell)
{
	return len / cell + (len % cell != 0);
}

/* ---- tl_table.c ---- */

int tl_table_init(struct tl_table *t, uint32_t entries, uint64_t seed);
void tl_table_fini(struct tl_table *t);
struct tl_txn *tl_find(const struct tl_table *table, const struct fa_conn *c, uint32_t rsn);
void tl_insert(struct tl_table *table, struct tl_txn *t);
void tl_remove(struct tl_table *table, struct tl_txn *t); /* nothing, if it is not in */

/* ---- tl_pool.c ---- */

int tl_pools_init(struct fa_stack *s);
void tl_pools_fini(struct fa_stack *s);
/* Takes the resources of a request of our ULP (8.2.3); NULL: there are none. */
struct tl_txn *tl_request_alloc(struct fa_conn *c, uint32_t tx_cells, uint32_t rx_cells);
void tl_request_tx_done(struct fa_stack *s, struct tl_txn *t); /* Tx: the network acknowledged */
void tl_request_rx_done(struct fa_stack *s, struct tl_txn *t); /* Rx: the ULP has the answer */
void tl_request_free(struct fa_stack *s, struct tl_txn *t);
/* Whether a request from the network fits; `hol`: into the red zone, too (8.2.4). */
bool tl_net_fits(const struct fa_stack *s, uint32_t cells, bool hol);
struct tl_txn *tl_net_alloc(struct fa_conn *c, uint8_t type, uint32_t cells);
void tl_net_buf_done(struct fa_stack *s, struct tl_txn *t);
/* The network's resources of a request are given back when the ULP has taken it: what holds them
 * must go on whatever becomes of pull data (CR#2, CR#3). */
void tl_net_done(struct fa_stack *s, struct tl_txn *t);
/* A pull that was taken gets the resources of its pull data; false: there are none. */
bool tl_pull_to_data(struct fa_stack *s, struct tl_txn *t, uint32_t len);
void tl_data_free(struct fa_stack *s, struct tl_txn *t);
void tl_net_free(struct fa_stack *s, struct tl_txn *t);
/* A connection with that MTU was made. */
void tl_pools_mtu(struct fa_stack *s, uint32_t mtu);
/* Tells the ULP once when requests become scarce, and when there is room again. */
void tl_xoff(struct fa_stack *s);
void tl_xon(struct fa_stack *s);

/* ---- tl_order.c ---- */

/* The request of the peer, or the completion, can be delivered as far as it is concerned. */
void tl_ready(struct tl_txn *t);
/* ops->deliver; false: not now, and nothing else until fa_deliver_resume(). */
bool tl_deliver(struct fa_conn *c, const struct fa_delivery *d);
/* Ordered: which request is next, after rx_rsn or the state of one changed. */
void tl_find_head(struct fa_conn *c, uint64_t now);

/* ---- tl_initiator.c ---- */

/* Takes resources for a request and hands it to PDL; false: there are none. */
bool tl_begin(struct fa_conn *c, uint64_t now, bool pull, uint32_t rsn, struct fa_buf *buf,
	uint32_t response_len);

enum tl_event { TL_EV_ACK, TL_EV_FAIL, TL_EV_DATA, TL_EV_GIVE_UP };
/* false: that cannot happen in its state. */
bool tl_initiator_event(struct tl_txn *t, enum tl_event ev, uint8_t completion, uint8_t ulp_code);
/* PDL has let go of the request's packet. */
void tl_packet_gone(struct fa_stack *s, struct tl_txn *t);
enum tl_take tl_rx_pull_data(
	struct fa_conn *c, uint64_t now, const struct wire_falcon *h, struct fa_buf *payload);

/* ---- tl_wait.c ---- */

/* false: no more may wait. */
bool tl_wait(struct fa_conn *c, bool pull, uint32_t rsn, struct fa_buf *buf, uint32_t response_len);
/* Resources may be free again. */
void tl_wait_resume(struct fa_stack *s, uint64_t now);
/* The connection is dead: each completes with `code`, as far as the ULP takes it. */
void tl_wait_complete(struct fa_conn *c, enum fa_completion code);
/* Nothing waits any more, in silence. */
void tl_wait_drop(struct fa_conn *c);

/* ---- tl_target.c ---- */

/* The request is over: out of all lists, its payload is freed. */
void tl_target_finish(struct tl_txn *t);
/* The peer gave up a request that the ULP does not have: it takes up its place in the order, no
 * more. May free it. */
void tl_pass_over(struct tl_txn *t, uint64_t now);
/* Pull data that waited for resources. */
void tl_data_resume(struct fa_stack *s, uint64_t now);

/* ---- tl_admit.c ---- */

enum tl_take tl_rx_request(struct fa_conn *c, uint64_t now, const struct wire_falcon *h,
	struct fa_buf *payload, bool again);

/* ---- tl_rnr.c ---- */

/* The ULP was not ready for `t`, which is TL_ULP_TX. */
void tl_rnr_refused(struct tl_txn *t, uint64_t now, const struct fa_outcome *o);
/* The verdict on `t` is another one. */
void tl_rnr_over(struct tl_txn *t, uint64_t now);
/* A push came that cannot be offered, because one before it was refused: it is refused, too. */
void tl_rnr_behind(struct tl_txn *t, uint64_t now);
/* The push came again. */
void tl_rnr_again(struct tl_txn *t, uint64_t now);
/* c->tl.rnr_at: those that are due may be offered. */
void tl_rnr_due(struct fa_conn *c, uint64_t now);
/* The transaction leaves the refused ones. */
void tl_rnr_leave(struct tl_txn *t);
/* A push that is kept for convenience makes room; false: there is none. */
bool tl_rnr_evict(struct fa_stack *s);

/* ---- tl_reclaim.c ---- */

void tl_arm(struct fa_conn *c);
/* Something began that must come to an end. */
void tl_watch(struct fa_conn *c, uint64_t now);

#endif
