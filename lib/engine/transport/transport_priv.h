/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of a transport stage: one queue of each port, a net stack, a TCP stack, the connections
 * on them, and the rings to other stages. Only the loop that polls the stage accesses it. Times are
 * in ns.
 */
#ifndef SAKER_ENGINE_TRANSPORT_PRIV_H
#define SAKER_ENGINE_TRANSPORT_PRIV_H

#include <sys/queue.h>

#include <rte_byteorder.h>

#include "../../base/prf.h"
#include "../../base/wheel.h"
#include "../../net/net.h"
#include "../../tcp/tcp.h"
#include "../../wire/plain.h"
#include "../common/mbuf.h"
#include "cuts.h"
#include "lports.h"
#include "transport.h"

struct eng_handoff;
struct eng_link;
struct rte_hash;
struct rte_ring;

#define ENG_TX_BUFFER  64  /* frames of a port that are queued until the end of the turn */
#define ENG_SPARE      32  /* places for header mbufs that are allocated in advance */
#define ENG_LOOP_QUEUE 256 /* frames on the internal loop port; a power of two */
#define ENG_LEFT_PART  8   /* all left connections hold an ENG_LEFT_PART-th of the records */
#define ENG_CUTS_PART  4   /* the rests of cut records hold an ENG_CUTS_PART-th of tx_pool */
#define ENG_HIT_WAYS   2   /* recent lookups of connections in a slot of their table */
/* Payload bytes up to which a frame is one mbuf with a copy, which costs less than attaching. */
#define ENG_COPY_MAX 2048
/* Responder: from the TCP handshake to the end of the peer's request. */
#define ENG_REQUEST_TIMEOUT_NS 10000000000ull
/* Initiator: to the end of the peer's reply, for which the peer's program may need time. */
#define ENG_REPLY_TIMEOUT_NS 60000000000ull

/* The states of a connection. A connection's index is used again only when no other stage holds
 * it; the last words of each comment name the stages that may hold it. */
enum eng_conn_state {
	ECONN_FREE,
	ECONN_OPENING, /* active: until the peer's reply is complete; the control stage */
	ECONN_WAITING, /* passive: until the peer's request is complete; none */
	/* ENG_TC_REQUEST was sent or is pending; the control stage, and the engine stage from
	 * ENG_CT_ACCEPT on */
	ECONN_REQUESTED,
	/* active: both sides have agreed, and ENG_TC_ESTABLISHED was sent or, for iWARP, is sent
	 * when the configured delay has passed (struct eng_mpa, `holds`). Waits for ENG_CT_BIND;
	 * the control stage and the engine stage */
	ECONN_ESTABLISHED,
	ECONN_BOUND, /* bytes flow to the engine stage; the control stage and the engine stage */
	/* closed: waits until the last notice (notice_out) and ENG_T_RELEASE (release_due) have
	 * arrived from the stages that hold the index */
	ECONN_DEAD,
	ECONN_DRAIN, /* TCP still ends its connection; none */
	/* the TCP connection belongs to the transport itself, which uses it for several
	 * connections; none */
	ECONN_CARRIER,
};

/* The actions that are pending for a connection, because a ring was full, no message was free, or a
 * function of lib/tcp or lib/falcon was running. */
enum eng_conn_pending {
	ECONN_P_RESUME = 1,   /* call tcp_deliver_resume() */
	ECONN_P_EMSS = 2,     /* iWARP: send ENG_E_EMSS */
	ECONN_P_SPACE = 4,    /* iWARP: send ENG_E_SPACE */
	ECONN_P_FIN = 8,      /* send ENG_E_FIN */
	ECONN_P_CLOSED = 16,  /* send ENG_E_CLOSED */
	ECONN_P_NOTICE = 32,  /* send su->notice */
	ECONN_P_ABORT = 64,   /* call tcp_abort() */
	ECONN_P_CLOSE = 128,  /* call tcp_close() */
	ECONN_P_OPEN = 256,   /* Falcon: send ENG_E_OPEN */
	ECONN_P_FAIL = 512,   /* Falcon: call eng_falcon_failed() */
	ECONN_P_SPEAK = 1024, /* iWARP: send ENG_E_SPEAK */
	ECONN_P_MOVED = 2048, /* call eng_conn_use_path(): the path leads to another interface */
};

/* The list of its stage that a connection is in. */
enum eng_conn_queue {
	ECONN_Q_NONE,
	ECONN_Q_PENDING, /* t->pending: a turn tries its actions */
	/* t->unnoticed: no message was free for its notice. Other pending messages follow the
	 * notice, so no turn visits it until a message is free. */
	ECONN_Q_NOTICE,
};

/* The state that a connection needs only until it is bound, or until a responder may send. */
struct eng_startup {
	struct sk_timer timer;
	struct eng_conn *conn;
	void *part; /* the transport's own state of the start-up */
	uint64_t cookie;
	uint32_t listener;      /* passive: the control stage's number of the listener */
	uint16_t notice;        /* enum eng_ctl_type: the notice that is pending or was sent last */
	uint16_t service;       /* lookups: the port of the datagram service */
	uint32_t qpn, qkey;     /* lookups: the datagram QP of the service */
	struct eng_offer offer; /* of the listener, or of the active side */
	/* The contents of the notice: the terms, and the peer's private data. */
	struct eng_outcome outcome;
	uint16_t private_len;
	uint8_t private_data[SHM_PRIVATE_MAX];
};

/* A received segment uses the first cache line, one that is sent the first two. */
struct eng_conn {
	_Alignas(64) struct tcp_conn *tcp; /* NULL after TCP has closed */
	const struct eng_link *link;
	void *part;             /* the transport's own state; NULL: none */
	struct eng_startup *su; /* NULL: the start-up has ended */
	int64_t credit;         /* iWARP: bytes of send space granted to the engine stage */
	uint32_t index;         /* in t->conns */
	uint32_t qp_index;      /* index of the QP on engine stage `stage` */
	uint8_t state;          /* enum eng_conn_state */
	uint8_t stage;
	uint16_t pending;  /* enum eng_conn_pending */
	uint16_t user;     /* of its listener, or of the active side */
	uint16_t addr_sum; /* see eng_addr_sum() */
	uint8_t queue;     /* enum eng_conn_queue */
	bool notice_out;   /* the control stage holds the connection's last notice */
	bool release_due;  /* the engine stage has not sent ENG_T_RELEASE yet */
	bool fin;          /* the peer's FIN has arrived */
	bool lingers;      /* TCP closes it when the peer has acknowledged all bytes or closed */
	bool counted;      /* t->conn_share counts it, for `user` */
	bool whole;        /* iWARP: the engine stage uses the CRC of a slice, if it has one */
	/* The connection has no TCP connection of its own, and its link has not ended it yet. */
	bool rides;

	struct net_path path;
	int error;                  /* -errno: why the connection ended; 0: orderly */
	uint32_t noted;             /* number of its last event (flight.c); 0: none */
	TAILQ_ENTRY(eng_conn) next; /* in the list of `queue`, or in t->free */
};
_Static_assert(offsetof(struct eng_conn, path) == 64, "the cache lines that segments use");

/* The note about a TCP connection that is left (tcp_leave()): what it has taken of the share of its
 * user, and the class of its packets. */
struct eng_left {
	uint32_t units;
	uint16_t user;
	struct net_class class;
};
_Static_assert(sizeof(struct eng_left) == sizeof(struct tcp_note), "eng_conn_leave() copies it");

struct eng_listener {
	LIST_ENTRY(eng_listener) next;
	struct tcp_listener *tcp;
	struct sk_addr addr; /* and `v6only`: see eng_listens_at() */
	bool v6only;
	uint16_t port;
	uint32_t number; /* the control stage's number of the listener */
	uint16_t user;
	struct eng_offer offer;
};
#define ENG_LISTENER_BUCKETS 4096 /* a client chooses ports: at most 16 of them share a bucket */
/* The number of a listener that belongs to no client: the requests that it receives name a QP by
 * its QPN. Transports whose QPs a program can modify have one. */
#define ENG_LISTENER_BY_QPN UINT32_MAX

/* A recent lookup of a connection. `addrs` and `ports` are those of its plain frames
 * (wire/plain.h), if it has such frames. */
struct eng_hit {
	struct tcp_conn *conn; /* NULL: none */
	uint64_t addrs;
	uint32_t ports;
	uint16_t port; /* index of the network port */
	bool plain;    /* IPv4 without VLAN, not on the loop port */
};

/* A slot of the table of recent lookups, in a cache line: the latest one first. */
struct eng_hits {
	_Alignas(64) struct eng_hit way[ENG_HIT_WAYS];
};

struct eng_transport {
	struct eng *e;
	unsigned index;
	uint64_t now;
	/* When a look at the ports last found fewer frames than a burst, so that none was left; and
	 * this time plus that in which the loop did not run, which does not count as backlog. */
	uint64_t looked, empty_at;
	bool pulled; /* whether the turn has received pull requests */
	bool left;   /* whether the turn left frames in a queue */
	bool unsent; /* see eng_transport_unsent() */
	bool scarce; /* few mbufs of rx_pool were free at the last look */
	/* The frames until the next look at the free mbufs of pools; below 0: it is due. */
	int32_t frames_left;
	uint64_t resumed; /* the end of a stop, until a look leaves no frame in the queues; or 0 */
	/* The frames of this turn arrived within this time (ns) before `now`: after the look that
	 * left none in the queue. */
	uint64_t waited;
	struct tcp_stack *tcp;
	struct net_stack *net;
	void *part[ENG_KINDS]; /* the transports' parts of the stage; NULL: not configured */
	/* The configured transports with packets of their own beside TCP. */
	const struct eng_link *packet_links[ENG_KINDS];
	unsigned npacket_links;
	uint64_t net_due;    /* when to poll the timers of `net` again */
	unsigned tx_waiting; /* frames in tx[] */
	uint16_t ip_id;      /* the IPv4 Identification of the next frame */
	/* Lookup of connections and listeners */
	struct rte_hash *tuples; /* by eng_tuple_hash() */
	struct sk_key tuple_key; /* random */
	/* Recent results, in a slot for each connection that TCP can have (tuples.c): 2^n slots.
	 * The slot is the upper bits of a product with hit_key, which is random. */
	struct eng_hits *hits;
	uint64_t hit_key;
	unsigned hit_shift; /* 64 - n */
	LIST_HEAD(, eng_listener) listeners[ENG_LISTENER_BUCKETS];
	struct eng_lports lports; /* local ports of the active connections */
	/* Connections */
	struct eng_conn *conns;        /* [nconns] */
	uint32_t nconns, nused, fresh; /* conns[fresh..] have never been used */
	struct sk_share conn_share;    /* of the TCP connections, by user */
	struct sk_share left_share;    /* see eng_conn_leave() */
	TAILQ_HEAD(eng_conns, eng_conn) free, pending, unnoticed;
	struct sk_wheel wheel; /* start-up timers */
	/* Frames */
	struct rte_mempool *rx_pool, *tx_pool;
	struct eng_tx {
		/* Frames in m[]; the first `prepared` have passed transport_tx_prepare(). */
		uint16_t n, prepared;
		struct rte_mbuf *m[ENG_TX_BUFFER];
	} tx[ENG_MAX_PORTS];
	/* Header mbufs of tx_pool whose cache lines are being prefetched; not reset yet. */
	struct rte_mbuf *spare[ENG_SPARE];
	uint32_t spare_in, spare_out;
	struct eng_cuts cuts; /* mbufs of tx_pool that are rests of cut records */
	uint16_t loop_port;   /* the number of ports: the index after that of the last one */
	uint32_t loop_head, loop_tail;
	struct rte_mbuf *loop[ENG_LOOP_QUEUE];
	/* Other stages */
	/* By engine stage, of struct eng_dmsg; NULL until there are rings. linked[nlinked]: the
	 * engine stages that have them. */
	struct rte_ring *from_stage[ENG_MAX_STAGES], *to_stage[ENG_MAX_STAGES];
	uint8_t linked[ENG_MAX_STAGES];
	unsigned nlinked;
	/* Those of other loops, and the messages in both directions that eng_crossings_count() has
	 * counted. */
	unsigned nfar;
	struct eng_far {
		unsigned stage;
		uint32_t counted;
	} far[ENG_MAX_STAGES];
	struct eng_handoff *handoff;                /* NULL: there is one transport stage */
	struct rte_ring *from_control, *to_control; /* of struct eng_ctl * */
	struct eng_ctl *notices;                    /* [ENG_CTL_NOTICES] */
	struct eng_ctl *notices_free[ENG_CTL_NOTICES];
	unsigned nnotices;             /* entries of notices_free */
	struct eng_recorder *recorder; /* flight.c */
	uint64_t counters[eng_reason_count];
	uint64_t wire_counters[wire_reason_count];
};

/* Returns whether another loop polls the engine stage. */
static inline bool
eng_stage_is_far(const struct eng_transport *t, unsigned stage)
{
	const struct eng_config *cfg = &t->e->cfg;

	return cfg->stage_loop[stage] != cfg->transport_loop[t->index];
}

/* ---- transport.c ---- */

/* Takes the rings between the stage and an engine stage into use, if they exist. */
void eng_transport_link(struct eng_transport *t, unsigned stage);

/* ---- transport_rx.c ---- */

/* The distance of this prefetch within a burst, in frames. */
#define ENG_AHEAD_FRAME 8

/*
 * Prefetches all cache lines of a small frame at once, in the layout of the engine's pools: mbuf,
 * private area, headers and first payload bytes. Another lcore has just written the frames of a
 * port in memory (net_ring, net_memif), and without the prefetch their cache misses would follow
 * one another.
 */
static inline void
eng_frame_prefetch(const struct rte_mbuf *m)
{
	const char *at = (const char *)m;

	for (unsigned line = 0; line < 8; line++)
		rte_prefetch0(at + line * RTE_CACHE_LINE_SIZE);
}

/* Handles a frame that was received on `port`. Takes the frame. */
void eng_rx_frame(struct eng_transport *t, uint16_t port, struct rte_mbuf *m);
/* Checks the TCP or UDP checksum of the `len` bytes at offset `l4` of a received frame. Uses the
 * port's result (RTE_MBUF_F_RX_L4_CKSUM_*) if the frame has one, and computes the checksum
 * otherwise. `pseudo` is the sum of the pseudo-header. Counts a failure as ENG_RX_OFFLOAD_BAD (the
 * port's result) or as `wrong`, but not as ENG_RX_BAD. */
bool eng_rx_l4_intact(struct eng_transport *t, const struct rte_mbuf *m, uint32_t l4, uint32_t len,
	uint32_t pseudo, enum wire_reason wrong);
/* Implements net_ops.icmp_error. */
void eng_icmp_error(void *ctx, uint16_t port, uint16_t vlan, const struct wire_icmp *icmp);

/* Returns the sum of the pseudo-header's addresses and protocol, which is the same for all packets
 * between two addresses. */
static inline uint16_t
eng_addr_sum(const struct tcp_tuple *t, uint8_t proto)
{
	return (uint16_t)~wire_sum_fold(wire_pseudo_sum(&t->laddr, &t->raddr, proto, 0));
}

/* Returns the sum of a pseudo-header: adds `len`, the bytes of the TCP or UDP header and payload
 * (below 65536), to the result of eng_addr_sum(). */
static inline uint32_t
eng_pseudo_sum(uint16_t addr_sum, uint32_t len)
{
	return addr_sum + (uint32_t)rte_cpu_to_be_16((uint16_t)len);
}

/* ---- transport_tx.c ---- */

/* Implements tcp_ops.output. */
int eng_tcp_output(
	void *ctx, struct tcp_conn *conn, const struct tcp_tuple *to, const struct tcp_out *out);
/* Implement net_ops.send and net_ops.release. */
void eng_net_send(void *ctx, uint16_t port, const uint8_t *frame, size_t len);
void eng_net_release(void *ctx, uint16_t port, void *frame, const uint8_t *dst_mac);
/* Returns whether `port` has a place for one more frame; flushes its queue if necessary. */
bool eng_tx_room(struct eng_transport *t, uint16_t port);
/* Queues a frame for `port`, after eng_tx_room() has returned true. Takes the frame. */
void eng_tx_put(struct eng_transport *t, uint16_t port, struct rte_mbuf *m);
/* Returns an empty mbuf of tx_pool for headers, or NULL when the pool is empty. */
struct rte_mbuf *eng_tx_header(struct eng_transport *t);
/* Sends all queued frames. Frames that a port does not accept stay in the queue, except that a port
 * without link drops them. */
void eng_tx_flush(struct eng_transport *t);
/* Allocates header mbufs for later frames when at most half of the places for them are filled. */
void eng_tx_spare(struct eng_transport *t);
/* Returns the number of header mbufs that are allocated in advance. */
static inline uint32_t
eng_tx_spares(const struct eng_transport *t)
{
	return t->spare_in - t->spare_out;
}

/* Sets the class of the path of a TCP connection. Without a flow label of the program, that of IPv6
 * depends on the tuple alone: the segments before a connection is accepted, and those in TIME_WAIT,
 * have the same one (RFC 6437 3). */
void eng_path_class(struct eng_transport *t, struct net_path *path, const struct tcp_tuple *tuple,
	const struct net_class *class);

/* ---- port_remove.c ---- */

/* Takes note that the stage must not use `port` any more. If its device was removed, ends its
 * connections on this stage with -ENETDOWN. */
void eng_port_leave(struct eng_transport *t, uint16_t port);
/* Lets the stages use a port again that they have left. Called by the thread of eng_ports_look().
 */
void eng_port_back(struct eng_port *p);

/* ---- tuples.c: lookup of connections and listeners ---- */

/* Creates the table of tuples for `conns` TCP connections. Returns 0 or -ENOMEM. */
int eng_tuples_create(struct eng_transport *t, uint32_t conns);
void eng_tuples_destroy(struct eng_transport *t);
/* Returns the hash of a tuple in the table. */
uint32_t eng_tuple_hash(const struct eng_transport *t, const struct tcp_tuple *key);
/* Returns the TCP connection of the tuple `key`, or NULL. */
struct tcp_conn *eng_conn_find(struct eng_transport *t, const struct tcp_tuple *key);
static inline struct eng_hits *
eng_hits_of(const struct eng_transport *t, uint64_t addrs, uint32_t ports)
{
	return &t->hits[(addrs ^ (uint64_t)ports << 16) * t->hit_key >> t->hit_shift];
}
/* Returns the TCP connection of a frame with wire_plain_match() that `port` received, if it was
 * looked up recently, or NULL. */
static inline struct tcp_conn *
eng_conn_known(const struct eng_transport *t, uint16_t port, const struct wire_plain *p)
{
	const struct eng_hits *hits = eng_hits_of(t, p->addrs, p->ports);

	for (unsigned i = 0; i < ENG_HIT_WAYS; i++) {
		const struct eng_hit *hit = &hits->way[i];

		if (hit->addrs == p->addrs && hit->ports == p->ports && hit->port == port &&
			hit->plain)
			return hit->conn;
	}
	return NULL;
}
/* Returns the listener on `port` with that address, otherwise the one with the unspecified address,
 * otherwise NULL. */
struct eng_listener *eng_listener_find(
	struct eng_transport *t, const struct sk_addr *addr, uint16_t port);
/* Implement tcp_ops.conn_added and tcp_ops.conn_removed. */
void eng_tcp_conn_added(void *ctx, struct tcp_conn *conn, struct tcp_listener *l);
void eng_tcp_conn_removed(void *ctx, struct tcp_conn *conn);
/* Returns a local port that makes the tuple unique and its home this stage, or 0 when all such
 * ports are in use. key->lport is ignored. */
uint16_t eng_lport_choose(struct eng_transport *t, const struct tcp_tuple *key);

/* ---- conn.c: states and messages of a connection ---- */

/* Returns whether the connection has not ended. */
static inline bool
eng_conn_alive(const struct eng_conn *c)
{
	return c->tcp != NULL || c->rides;
}

/* Returns the addresses and ports of a connection that has not ended. */
struct tcp_tuple eng_conn_ends(const struct eng_transport *t, const struct eng_conn *c);

/* Returns an unused connection, in state `state`, or NULL when all are in use. */
struct eng_conn *eng_conn_alloc(struct eng_transport *t, uint8_t state);
/* Counts the connection, which is about to have a TCP connection, for the user. Returns false, and
 * counts the refusal, when the user's share of the connections is used up. */
bool eng_conn_admit(struct eng_transport *t, struct eng_conn *c, uint16_t user);
/* Counts an admitted connection for another user. Returns false, and counts the refusal, when that
 * user's share is used up: the connection then stays with the user that it has. */
bool eng_conn_charge(struct eng_transport *t, struct eng_conn *c, uint16_t user);
/* Frees the connection if it has ended and no stage and no message holds its index. */
void eng_conn_put(struct eng_transport *t, struct eng_conn *c);
/* Implement tcp_ops.deliver and tcp_ops.event. */
bool eng_tcp_deliver(void *ctx, struct tcp_conn *conn, struct tcp_slice *chain);
void eng_tcp_event(void *ctx, struct tcp_conn *conn, enum tcp_event ev);
/* Moves the connection to ECONN_DRAIN. It has no use for the bytes of the stream any more, and
 * takes those that lib/tcp still holds, too: lib/tcp keeps a connection until its owner has all
 * bytes. */
void eng_conn_drain(struct eng_transport *t, struct eng_conn *c);
/* Returns whether eng_conns_pending() has work. */
bool eng_conns_due(const struct eng_transport *t);
/* Queues the connection for eng_conns_pending(), with the bits `what` of enum eng_conn_pending. */
void eng_conn_pend(struct eng_transport *t, struct eng_conn *c, uint16_t what);
/* Adapts TCP to the interface that the path leads to: its MTU and its TSO. */
void eng_conn_use_path(struct eng_transport *t, struct eng_conn *c);
/* Performs the pending actions of all connections as far as possible. Returns whether there was
 * work. */
bool eng_conns_pending(struct eng_transport *t);
/* Sends a message to the engine stage of a bound connection. Returns false when the ring is
 * full. */
bool eng_conn_send(struct eng_transport *t, const struct eng_conn *c, enum eng_to_stage type,
	uint64_t u, uint32_t arg);
/* Leaves the TCP connection to lib/tcp (tcp_leave()), or aborts it if that is not possible. The
 * connection has ended then. */
void eng_conn_leave(struct eng_transport *t, struct eng_conn *c);
/* Returns whether a TCP connection was left, and sets *left. */
bool eng_conn_left(const struct tcp_conn *conn, struct eng_left *left);
/* Returns what a left connection has taken of t->left_share, when lib/tcp removes it. */
void eng_conn_left_end(struct eng_transport *t, const struct tcp_conn *conn);
/* Binds the connection to the QP `qp_index` of engine stage `stage`, to which its bytes go from
 * then on. */
void eng_conn_bind(struct eng_transport *t, struct eng_conn *c, uint8_t stage, uint32_t qp_index);
/* Handles the end of the peer's direction. */
void eng_conn_peer_fin(struct eng_transport *t, struct eng_conn *c);
/* Reports the end of the connection to the stages that hold it, when TCP has closed, or its link
 * has ended a connection that has none. */
void eng_conn_lost(struct eng_transport *t, struct eng_conn *c);
/* Handles a message of an engine stage. */
void eng_conn_message(struct eng_transport *t, const struct eng_dmsg *m);
/* Frees the payload of a message for a connection that does not exist any more. */
void eng_conn_drop(const struct eng_dmsg *m);

/* ---- conn_startup.c: the part of the start-up that all transports share ---- */

/* Allocates c->su. Returns 0 or -ENOMEM. */
int eng_startup_create(struct eng_conn *c);
/* Frees c->su, which may be NULL. */
void eng_startup_free(struct eng_transport *t, struct eng_conn *c);
/* Begins the start-up of a passive connection, when the TCP connection `tcp` of a listener is
 * established. lib/tcp counts the connection as half-done until the peer's request is complete. */
void eng_startup_passive(struct eng_transport *t, struct tcp_conn *tcp);
/* Begins the exchange of an active connection, when its TCP connection is established. */
void eng_startup_connected(struct eng_transport *t, struct eng_conn *c);
/* Handles received bytes of the exchange and takes `chain`. Returns false when it cannot take the
 * bytes now; TCP then offers them again. */
bool eng_startup_deliver(struct eng_transport *t, struct eng_conn *c, struct tcp_slice *chain);
/* Ends a start-up during which TCP has closed. */
void eng_startup_closed(struct eng_transport *t, struct eng_conn *c);
/* Ends a start-up that has failed on this side: aborts TCP's connection and sends ENG_TC_FAILED
 * with `error` (-errno) if the control stage holds the connection. */
void eng_startup_fail(struct eng_transport *t, struct eng_conn *c, int error);
/* Sends the notice `notice` (enum eng_ctl_type) about the connection, immediately or when a message
 * is free. */
void eng_startup_notice(struct eng_transport *t, struct eng_conn *c, uint16_t notice);
/* Sends c->su->notice. Returns false when no message is free. */
bool eng_startup_send_notice(struct eng_transport *t, struct eng_conn *c);
/* Handles expired start-up timers. Returns their number. */
unsigned eng_startup_poll(struct eng_transport *t, uint64_t now);
/* Opens an active connection: ENG_CT_CONNECT, ENG_CT_LOOKUP. Returns 0 and sets m->conn, or returns
 * -errno. With -EXDEV, m->transport is the home stage of the tuple. */
int eng_startup_connect(struct eng_transport *t, struct eng_ctl *m);

/* Prepares `c` for an active TCP connection that belongs to the transport itself, and for which the
 * user pays: chooses path and local port of *tuple, and allocates c->su. Returns 0, or -errno, and
 * then the caller frees `c`. */
int eng_startup_carrier(
	struct eng_transport *t, struct eng_conn *c, struct tcp_tuple *tuple, uint16_t user);

/* ---- transport_ctl.c: the commands of the control stage ---- */

/* Handles messages of the control stage. Returns whether there were any. */
bool eng_transport_ctl(struct eng_transport *t);
/* Opens a listener: ENG_CT_LISTEN. Returns 0 or -ENOMEM. */
int eng_transport_listen(struct eng_transport *t, const struct eng_ctl *m);

/* ---- flight.c: the last events of connections ---- */

/* Returns a recorder, or NULL without memory. */
struct eng_recorder *eng_recorder_create(void);
void eng_recorder_free(struct eng_recorder *r);
/* Implements tcp_ops.trace. */
void eng_tcp_trace(void *ctx, struct tcp_conn *conn, unsigned reason);
/* Notes an event of a connection: entry `reason` of `list`. */
void eng_flight_note(struct eng_transport *t, struct eng_conn *c, const struct sk_reason_list *list,
	unsigned reason, const struct eng_event *values);
/* Keeps the events of a connection that ends with c->error, whose TCP connection still exists. */
void eng_flight_keep(struct eng_transport *t, const struct eng_conn *c);
/* ENG_CT_EVENTS, ENG_CT_FAILED. */
int eng_flight_events(struct eng_transport *t, const struct eng_conn *c, struct eng_ctl *m);
int eng_flight_failed(struct eng_transport *t, struct eng_ctl *m);

/* ---- transport_change.c ---- */

/* Adds an address, and its interface if there is none yet. Returns 0 or -errno. */
int eng_transport_add_if(struct eng_transport *t, const struct eng_if_config *f, uint64_t now);
/* Performs a step of a change: ENG_CT_CHANGE. Returns 0 or -errno. */
int eng_transport_change(struct eng_transport *t, struct eng_ctl *m);

/* Returns whether a notice ends its connection, whose index stays in use until the notice is back.
 */
static inline bool
eng_notice_is_final(const struct eng_ctl *m)
{
	return m->type == ENG_TC_FAILED || m->type == ENG_TC_REJECTED || m->type == ENG_TC_FOUND;
}

#endif
