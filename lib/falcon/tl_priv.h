/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transaction sublayer's part of a connection and of a stack (section 8).
 *
 * tl_initiator.c  requests of the local ULP: RSN, packets, completions (8.4)
 * tl_wait.c       requests of the local ULP that wait for resources
 * tl_target.c     requests of the peer: outcomes of the local ULP, pull data (8.5)
 * tl_admit.c      admission of requests from the network: zones, head of line, eviction
 * tl_span.c       pushes of the peer that need no transaction
 * tl_order.c      order of deliveries, on ordered and unordered connections; calls the ULP
 * tl_rnr.c        requests for which the ULP was not ready
 * tl_reclaim.c    transactions that took too long; connections that have failed (11)
 * tl_pool.c       the resource pools (8.2.2), Xoff, the receive level (10.2)
 * tl_share.c      the shares of users of the pools; turns of connections that wait for resources
 * tl_table.c      transactions by connection and RSN
 * tl_stack.c      initialization and release
 *
 * An idle connection has no transactions. A transaction is one object at either end. It comes from
 * one of two pools of the stack, one for each direction, so that neither direction can exhaust the
 * other (CR#1, CR#2 of 8.2.1.2).
 */
#ifndef SAKER_TL_PRIV_H
#define SAKER_TL_PRIV_H

#include <sys/queue.h>

#include "../base/share.h"
#include "falcon_priv.h"

/* The distance of a request from the next RSN, on an ordered connection, from which its RSN is
 * invalid: more than any peer has outstanding. */
#define TL_RSN_REACH (1u << 20)

/* The states of 8.4.1 and 8.5.1. A flag of its own records whether PDL still has the packet, since
 * pull data may overtake the acknowledgement of its request. */
enum tl_state {
	TL_FREE,
	/* At the initiator. */
	TL_PUSH_TX,   /* PushReqUlpRx, PushDataTx */
	TL_PULL_TX,   /* PullReqUlpRx, PullReqTx */
	TL_PULL_ACKD, /* PullReqAckd */
	TL_READY,     /* PushDataAckd, PullDataRx, or failed: to be delivered */
	TL_GONE,      /* PushCplTx, PullDataUlpTx: only PDL still has the packet */
	/* At the target. */
	TL_HELD,           /* PullReqRx, PushDataRx */
	TL_ULP_TX,         /* PullReqUlpTx, PushReqUlpTx: delivered, no outcome yet */
	TL_REFUSED_BY_ULP, /* RNR: to be delivered again */
	TL_PULL_TAKEN,     /* PullReqUlpAckd */
	TL_DATA_WAITS,     /* PullDataUlpRx: no resources for the packet yet */
	TL_DATA_TX,        /* PullDataTx */
	TL_PASSED_OVER,    /* an RSN to skip: the peer sent a Resync */
};

struct tl_txn {
	/* The request at the initiator, the pull data at the target. Its rsn, type and request_len
	 * are always those of the transaction. */
	struct fa_pkt pkt;
	struct fa_conn *c;
	struct tl_txn *hash_next;
	TAILQ_ENTRY(tl_txn) link;  /* in c->tl.reqs or c->tl.ins */
	TAILQ_ENTRY(tl_txn) queue; /* in c->tl.ready, c->tl.refused or c->tl.data_waits */
	TAILQ_ENTRY(tl_txn) evict; /* in s->tl.evictable */
	struct fa_buf *buf;        /* a request or pull data that waits for the ULP */
	uint64_t due;              /* TL_REFUSED_BY_ULP: time of the next delivery */
	uint32_t tx_cells, rx_cells;
	uint16_t units;     /* of the share of requests, or of that of pull data */
	uint16_t net_units; /* of the share of requests from the network */
	uint32_t psn;       /* at the target: PSN of the push */
	uint8_t state, type;
	uint8_t completion, ulp_code; /* TL_READY */
	uint8_t rnr;                  /* code of the RNR timeout from the ULP */
	bool in_pdl, in_net, hashed, evictable;
	bool no_ack; /* the push's Resync arrived: PDL needs no outcome */
};

TAILQ_HEAD(tl_list, tl_txn);

/* The state of an ordered connection's target after the ULP was not ready for a request. */
enum tl_rnr {
	TL_RNR_NONE,
	TL_RNR_WAIT,  /* the ULP refused rx_rsn; no request behind it is delivered */
	TL_RNR_PROBE, /* rx_rsn - 1 was delivered again; its outcome decides */
};

/* Pushes that the ULP has (TL_ULP_TX) without a transaction: consecutive RSNs and PSNs. */
struct tl_span {
	uint32_t rsn, psn; /* of the first */
	uint16_t n;
	uint16_t cells; /* of each */
};

/* The resources that a connection waits for: those for requests of the local ULP, or for pull data
 * (without those that wait for a part of the connection's own, see tl_data_list()). */
enum tl_kind { TL_REQUESTS, TL_DATA, TL_KINDS };

struct tl_user {
	struct {
		TAILQ_HEAD(, fa_conn) conns; /* they take turns */
		TAILQ_ENTRY(tl_user) link;   /* in tl_stack.waits, while there are `conns` */
	} waits[TL_KINDS];
};

struct tl_waits {
	TAILQ_HEAD(, tl_user) users; /* they take turns */
	uint32_t count;
};

/* The shares of the pools: of requests of the local ULP, of those from the network without the red
 * zone, of the pulls of peers, and of pull data. */
struct tl_shares {
	struct sk_share requests, net, pulls, data;
	uint32_t tx_cells, rx_cells; /* buffer cells in a unit */
};

struct tl_conn {
	/* ---- What each request uses ---- */
	_Alignas(64) uint32_t tx_rsn; /* NRSN of the initiator */
	uint32_t rx_rsn;              /* NRSN of the target, if ordered */
	uint32_t judged; /* ordered: the RSN after the last one with an outcome other than RNR */
	struct tl_span span;      /* ordered; n == 0: no such push */
	uint32_t in_net;          /* those on `ins` with resources of the network's region */
	uint32_t out;             /* those in the state TL_ULP_TX */
	uint32_t held;            /* ordered: those on `ins` before the state TL_ULP_TX */
	uint32_t share;           /* number of its user */
	uint8_t rnr;              /* enum tl_rnr */
	bool lost;                /* lost_rsn is valid; no further request is accepted */
	bool restart;             /* fa_delivery.restart of the next request */
	bool busy, running;       /* ops->deliver returned false; tl_run() is executing */
	bool dead;                /* tl_dead() was called */
	bool offer;               /* the wait of TL_RNR_WAIT is over */
	struct fa_buf *wait_head; /* requests that wait for resources, by RSN */
	uint64_t reclaim_at;      /* a deadline of the timer; SK_NEVER: none */
	struct tl_list reqs;      /* the initiator's, not delivered yet, by RSN */
	struct tl_list ins;       /* the target's, up to the state TL_DATA_WAITS */
	struct tl_txn *head;      /* ordered: the target's request with rx_rsn, to be delivered */
	uint64_t rnr_at;          /* a deadline of the timer; SK_NEVER: none */

	/* ---- The others ---- */
	uint32_t wait_count;
	uint32_t data_cells; /* buffer cells of data_out */
	/* unordered: to be delivered, initiator's and target's */
	struct tl_list ready;
	/* unordered: in the state TL_REFUSED_BY_ULP, by `due` */
	struct tl_list refused;
	struct tl_list data_waits;           /* pull data without resources, oldest first */
	struct fa_buf **wait_tail;           /* of wait_head */
	TAILQ_ENTRY(fa_conn) turn[TL_KINDS]; /* in the list of its user, while `listed` */
	uint32_t evictable;                  /* those of in_net in s->tl.evictable */
	uint32_t pulls;                      /* of the peer, until their data is acknowledged */
	uint32_t pulls_held;                 /* those of `held` */
	uint32_t data_out;                   /* packet contexts of pull data */
	uint32_t lost_rsn; /* from here to tx_rsn: requests that had no transaction */
	bool listed[TL_KINDS];
	uint8_t lost_code;
	uint8_t rnr_code; /* of the refusal that blocks the connection */
	bool dead_sent;   /* FA_EV_DEAD was sent */
	/* Since when (fa_observed()) a missing request blocks others; 0: none does. */
	uint64_t gap_since;
};

/* One region of a pool (8.2.2). The regions for requests of the local ULP have marks for Xoff:
 * three quarters in use, since further requests are on their way to Falcon then, or no room for a
 * request of a full MTU. */
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
	uint32_t count, fresh; /* array[fresh..] has never been used */
};

struct tl_stack {
	struct tl_region tx_pkt_req, tx_buf_req, rx_pkt_ulp, rx_buf_ulp;
	struct tl_region tx_pkt_data, tx_buf_data, rx_pkt_net, rx_buf_net;
	uint32_t calm_pkts, calm_bufs, calm_pulls; /* see tl_net_calm() */
	uint64_t pkt_ema, buf_ema;                 /* 8 fraction bits */
	uint32_t pkt_cells; /* for the level: a packet counts as this number of cells */
	uint32_t mtu;       /* the largest one of all connections */
	bool xoff;
	struct tl_objects reqs, ins;
	struct tl_table pulls, requests; /* pulls of the initiator; requests at the target */
	struct tl_shares shares;
	struct tl_user *users;           /* [fa_config.shares.users] */
	struct tl_waits waits[TL_KINDS]; /* users with connections that wait */
	struct tl_list evictable;        /* pushes that the ULP refused, oldest first */
};

static inline struct tl_txn *
tl_txn_of(struct fa_pkt *p)
{
	return (struct tl_txn *)p;
}
_Static_assert(offsetof(struct tl_txn, pkt) == 0, "tl_txn_of()");

/* Adds `n` to the requests that are held for their order, of which `t` is one. */
static inline void
tl_hold(struct tl_conn *tl, const struct tl_txn *t, uint32_t n)
{
	tl->held += n;
	if (t->type == FALCON_PULL_REQUEST)
		tl->pulls_held += n;
}

static inline uint32_t
tl_cells(uint32_t len, uint32_t cell)
{
	return fa_cells(len, cell);
}

/* Returns whether resources for requests are scarce, and FA_EV_XOFF has not been sent. */
static inline bool
tl_scarce(const struct tl_stack *tl)
{
	return !tl->xoff && (tl->tx_pkt_req.used > tl->tx_pkt_req.xoff_above ||
				    tl->tx_buf_req.used > tl->tx_buf_req.xoff_above ||
				    tl->rx_pkt_ulp.used > tl->rx_pkt_ulp.xoff_above ||
				    tl->rx_buf_ulp.used > tl->rx_buf_ulp.xoff_above);
}

/* ---- tl_table.c ---- */

int tl_table_init(struct tl_table *t, uint32_t entries, uint64_t seed);
void tl_table_fini(struct tl_table *t);
struct tl_txn *tl_find(const struct tl_table *table, const struct fa_conn *c, uint32_t rsn);
void tl_insert(struct tl_table *table, struct tl_txn *t);
void tl_remove(struct tl_table *table, struct tl_txn *t); /* no effect if not inserted */

/* ---- tl_pool.c ---- */

int tl_pools_init(struct fa_stack *s);
void tl_pools_fini(struct fa_stack *s);
/* Returns whether the connection may take more of the regions for pull data. One that holds nothing
 * may always; when they are exhausted, it waits its turn. */
bool tl_data_share(const struct fa_conn *c);
/* Returns whether the connection may take more of the regions for requests from the network, of
 * which the red zone is not a part; and, if `pull` is true, of the pulls. */
bool tl_net_share(const struct fa_conn *c, bool pull);
/* Takes the resources of a request of the local ULP (8.2.3). Returns NULL when they are
 * exhausted. */
struct tl_txn *tl_request_alloc(struct fa_conn *c, uint32_t tx_cells, uint32_t rx_cells);
/* Tx part: after the network's ack */
void tl_request_tx_done(struct fa_stack *s, struct tl_txn *t);
void tl_request_rx_done(struct fa_stack *s, struct tl_txn *t); /* Rx part: after the delivery */
void tl_request_free(struct fa_stack *s, struct tl_txn *t);
/* Returns whether a request from the network fits; if `red` is true, also into the red zone
 * (8.2.4). */
bool tl_net_fits(const struct fa_stack *s, uint32_t cells, bool red);
/* Return whether one more request from the network, or one more pull, fits, and so few are in use
 * that tl_net_share() is true for each connection. */
static inline bool
tl_net_calm(const struct tl_stack *tl, uint32_t cells)
{
	return tl->rx_pkt_net.used < tl->calm_pkts &&
	       (uint64_t)tl->rx_buf_net.used + cells <= tl->calm_bufs;
}
static inline bool
tl_pulls_calm(const struct tl_stack *tl)
{
	return tl->shares.pulls.held < tl->calm_pulls;
}
/* Returns a number of requests of `cells` each for which tl_net_calm() is true and that fit into
 * the user's share. */
uint32_t tl_net_room(const struct fa_conn *c, uint32_t cells);
/* Takes the resources of a request from the network, which fit. Returns NULL when the user's share
 * is exhausted, unless `alone` is true: the share then does not count the request. In any case
 * returns NULL when there are no resources for one more pull. */
struct tl_txn *tl_net_alloc(struct fa_conn *c, uint8_t type, uint32_t cells, bool alone);
/* Take and return the network's resources of `n` pushes without a transaction, of `cells` each, and
 * give such a push one: the resources for it are there. tl_net_take() returns false when the user's
 * share is exhausted. */
bool tl_net_take(struct fa_conn *c, uint32_t cells, uint32_t n);
void tl_net_give(struct fa_conn *c, uint32_t cells, uint32_t n);
struct tl_txn *tl_net_adopt(struct fa_conn *c, uint32_t cells);
void tl_net_buf_done(struct fa_stack *s, struct tl_txn *t);
/* Returns the network's resources of a request that the ULP has taken: requests that hold them must
 * make progress whatever happens to pull data (CR#2, CR#3). */
void tl_net_done(struct fa_stack *s, struct tl_txn *t);
/* Takes the resources for the pull data of a pull. Returns false when they are exhausted. */
bool tl_pull_to_data(struct fa_stack *s, struct tl_txn *t, uint32_t len);
void tl_data_free(struct fa_stack *s, struct tl_txn *t);
void tl_net_free(struct fa_stack *s, struct tl_txn *t);
/* Adjusts the marks for Xoff to a new connection's MTU. */
void tl_pools_mtu(struct fa_stack *s, uint32_t mtu);
/* Send FA_EV_XOFF once when resources for requests become scarce, and FA_EV_XON when they are free
 * again. */
void tl_xoff(struct fa_stack *s);
void tl_xon(struct fa_stack *s);

/* ---- tl_share.c ---- */

/* Returns the units of a share that a packet with `cells` buffer cells takes. */
static inline uint32_t
tl_units(uint32_t cells, uint32_t unit)
{
	return cells <= unit ? 1 : (cells + unit - 1) / unit;
}

/* Returns 0, -EINVAL or -ENOMEM; tl_shares_fini() frees what there is. */
int tl_shares_init(struct fa_stack *s);
void tl_shares_fini(struct fa_stack *s);
/* Returns whether the share of each user can hold a transaction of this MTU. */
bool tl_shares_fit(const struct fa_stack *s, uint32_t mtu);
/* Returns the units of all shares that all users hold. For tests. */
uint32_t tl_shares_held(const struct tl_stack *tl);
/* Enter a connection that waits into the list of its user, and remove it. tl_unlist() has no effect
 * on one that is not listed. */
void tl_list(struct fa_conn *c, enum tl_kind kind);
void tl_unlist(struct fa_conn *c, enum tl_kind kind);
/* Calls `step` for the connections that wait, in turns, until it has returned false for each user.
 * False: the user lacks resources. */
void tl_turns(struct fa_stack *s, enum tl_kind kind, uint64_t now,
	bool (*step)(struct fa_conn *c, uint64_t now));

/* ---- tl_order.c ---- */

/* Queues a request of the peer or a completion for delivery; order and RNR permitting, tl_run()
 * delivers it. */
void tl_ready(struct tl_txn *t);
/* Calls ops->deliver. After false, no further call until fa_deliver_resume(). */
bool tl_deliver(struct fa_conn *c, const struct fa_delivery *d);
/* Ordered connections: sets tl.head, after rx_rsn or the state of a request changed. */
void tl_find_head(struct fa_conn *c, uint64_t now);

/* ---- tl_initiator.c ---- */

/* Takes resources for a request and passes it to PDL. Returns false when they are exhausted. */
bool tl_begin(struct fa_conn *c, uint64_t now, bool pull, uint32_t rsn, struct fa_buf *buf,
	uint32_t response_len);

enum tl_event { TL_EV_ACK, TL_EV_FAIL, TL_EV_DATA, TL_EV_GIVE_UP };
/* Returns false when the event is impossible in the transaction's state. */
bool tl_initiator_event(struct tl_txn *t, enum tl_event ev, uint8_t completion, uint8_t ulp_code);
/* Releases the packet of a request that PDL no longer has. */
void tl_packet_gone(struct fa_stack *s, struct tl_txn *t);
enum tl_take tl_rx_pull_data(
	struct fa_conn *c, uint64_t now, const struct wire_falcon *h, struct fa_buf *payload);
/* Accepts the pull data of the oldest request as part of a run, and ends the request. Returns
 * false, and changes nothing, when the packet needs tl_rx(). */
bool tl_run_pull_data(struct fa_conn *c, uint64_t now, const struct wire_falcon_plain *h);

/* ---- tl_wait.c ---- */

/* Queues a request until resources are free. Returns false when no more may wait. */
bool tl_wait(struct fa_conn *c, bool pull, uint32_t rsn, struct fa_buf *buf, uint32_t response_len);
/* Starts waiting requests when resources may be free again. */
void tl_wait_resume(struct fa_stack *s, uint64_t now);
/* Completes waiting requests of a dead connection with `code`, as far as the ULP accepts
 * completions. */
void tl_wait_complete(struct fa_conn *c, enum fa_completion code);
/* Frees waiting requests without completions. */
void tl_wait_drop(struct fa_conn *c);

/* ---- tl_target.c ---- */

/* Ends a request: removes it from all lists and frees its payload. */
void tl_target_finish(struct tl_txn *t);
/* Skips a request that the peer gave up and that the ULP does not have: it keeps only its place in
 * the order. May free `t`. */
void tl_pass_over(struct tl_txn *t, uint64_t now);
/* Sends pull data that waited for resources. */
void tl_data_resume(struct fa_stack *s, uint64_t now);
/* Enters the connection into the list of those whose pull data waits, or removes it, after a change
 * of its pull data that waits or is under way. */
void tl_data_list(struct fa_conn *c);

/* ---- tl_span.c ---- */

/* Ends the first ones of `n` pushes from `rsn` on, which the ULP has taken, as far as they have no
 * transaction. Returns their number. */
uint32_t tl_span_taken(struct fa_conn *c, uint64_t now, uint32_t rsn, uint32_t n);
/* Ends all pushes without a transaction, of a connection that ends. */
void tl_span_drop(struct fa_conn *c);
/* Returns the peer's request with this RSN, or NULL. A push without a transaction gets one. */
struct tl_txn *tl_request(struct fa_conn *c, uint32_t rsn);
/* Returns the peer's request that has this RSN and a transaction, or NULL. */
struct tl_txn *tl_request_find(const struct fa_conn *c, uint32_t rsn);

/* ---- tl_admit.c ---- */

/* Accepts a pull request in order as part of a run. Returns false, and changes nothing, when it
 * needs tl_rx(). */
bool tl_run_pull(struct fa_conn *c, const struct wire_falcon_plain *h);

/* ---- tl_rnr.c ---- */

/* Processes the ULP's FA_RNR for `t`, which is in the state TL_ULP_TX. */
void tl_rnr_refused(struct tl_txn *t, uint64_t now, const struct fa_outcome *o);
/* Processes an outcome of `t` other than FA_RNR. */
void tl_rnr_over(struct tl_txn *t, uint64_t now);
/* Refuses a push that cannot be delivered because the ULP refused one before it. */
void tl_rnr_behind(struct tl_txn *t, uint64_t now);
/* Processes the retransmission of a push. */
void tl_rnr_again(struct tl_txn *t, uint64_t now);
/* Runs at c->tl.rnr_at: delivers the requests that are due again. */
void tl_rnr_due(struct fa_conn *c, uint64_t now);
/* Removes the transaction from the refused ones. */
void tl_rnr_leave(struct tl_txn *t);
/* Drops a kept copy of a refused push to make room. Returns false when there is none. */
bool tl_rnr_evict(struct fa_stack *s, uint64_t now);
/* Does the same for the last copy of an unordered connection that has no other requests from the
 * network than such. */
void tl_rnr_evict_last(struct fa_conn *c);

/* ---- tl_reclaim.c ---- */

void tl_arm(struct fa_conn *c);
/* Starts the reclaim timer for a transaction or a gap that must end. */
void tl_watch(struct fa_conn *c, uint64_t now);
/* Starts the clock of a gap, now that a missing request blocks others. */
void tl_gap(struct fa_conn *c, uint64_t now);

#endif
