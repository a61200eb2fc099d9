/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A transport stage: one queue of each port, a net stack, a TCP stack, the connections on it, and
 * the rings to engine stages. Everything here is touched by the loop that polls the stage, and by
 * nobody else.
 */
#ifndef SAKER_ENGINE_TRANSPORT_PRIV_H
#define SAKER_ENGINE_TRANSPORT_PRIV_H

#include <sys/queue.h>

#include <rte_byteorder.h>

#include "../../base/wheel.h"
#include "../../net/net.h"
#include "../../tcp/tcp.h"
#include "../common/mbuf.h"
#include "transport.h"

struct eng_handoff;
struct eng_link;
struct rte_hash;
struct rte_ring;

#define ENG_TX_BUFFER  64  /* frames that wait for the end of the turn, per port */
#define ENG_SPARE      32  /* header mbufs that are fetched ahead */
#define ENG_LOOP_QUEUE 256 /* frames on the internal loop port; a power of two */
#define ENG_HITS       256 /* connections found lately; a power of two */
#define ENG_COPY_MAX                                                                               \
	2048 /* payload bytes up to which a frame is one mbuf with a copy: cheaper than attaching  \
	      */
#define ENG_REQUEST_TIMEOUT_NS                                                                     \
	10000000000ull /* responder: from the TCP connection to the whole request */
#define ENG_REPLY_TIMEOUT_NS                                                                       \
	60000000000ull /* initiator: to the whole reply; a program may think about it */

/* How a connection lives. Who else knows its index, and so what must happen before the index is
 * used again: */
enum eng_conn_state {
	ECONN_FREE,
	ECONN_OPENING,     /* active: until MPA's reply. The control stage */
	ECONN_WAITING,     /* passive: until MPA's request. Nobody */
	ECONN_REQUESTED,   /* ENG_TC_REQUEST was said. The control stage, and the engine stage once
			      accepting began */
	ECONN_ESTABLISHED, /* active: ENG_TC_ESTABLISHED was said, or is when su->holds ends; waits
			      for ENG_CT_BIND. Both */
	ECONN_BOUND,       /* bytes flow to the engine stage */
	ECONN_DEAD,        /* waits for what others still have to say: notice_out, release_due */
	ECONN_DRAIN,       /* nobody's any more; TCP still ends it */
};

/* What could not be said yet because a ring or the pool of messages was exhausted. */
enum eng_conn_pending {
	ECONN_P_RESUME = 1, /* tcp_deliver_resume() */
	ECONN_P_EMSS = 2,   /* iWARP */
	ECONN_P_SPACE = 4,  /* iWARP */
	ECONN_P_FIN = 8,
	ECONN_P_CLOSED = 16,
	ECONN_P_NOTICE = 32, /* su->notice */
	ECONN_P_ABORT = 64,  /* not from inside of a call of TCP's */
	ECONN_P_CLOSE = 128,
	ECONN_P_OPEN = 256,   /* Falcon: eng_falcon_send_open() */
	ECONN_P_FAIL = 512,   /* Falcon: eng_falcon_failed() */
	ECONN_P_SPEAK = 1024, /* iWARP */
};

/* What a connection needs only until it is bound, or a responder may send. */
struct eng_startup {
	struct sk_timer timer;
	struct eng_conn *conn;
	void *part; /* the transport's (struct eng_link) */
	uint64_t cookie;
	uint32_t listener;
	uint16_t notice;  /* enum eng_ctl_type that waits to be sent */
	uint16_t service; /* lookups: the port, and its QP */
	uint32_t qpn, qkey;
	struct eng_offer offer;     /* of the listener, or of the active side */
	struct eng_outcome outcome; /* for the notice, with the peer's private data: */
	uint16_t private_len;
	uint8_t private_data[SHM_PRIVATE_MAX];
};

struct eng_conn {
	struct tcp_conn *tcp; /* NULL once it has closed */
	const struct eng_link *link;
	void *part; /* the link's; NULL: none (any more) */
	struct eng_startup *su;
	int64_t credit; /* iWARP: send space that the engine stage may still count on */
	uint32_t index;
	uint32_t qp_index; /* at the engine stage */
	uint8_t state;     /* enum eng_conn_state */
	uint8_t stage;
	uint16_t pending; /* enum eng_conn_pending */
	bool queued;      /* in t->pending */
	bool notice_out;  /* the final ENG_TC_* has not come back yet */
	bool release_due; /* ENG_T_RELEASE has not come yet */
	bool fin;         /* the peer's FIN came before the engine stage was known */
	bool lingers;     /* is closed when the peer has acknowledged everything, or has closed */
	/* The sum of the pseudo-header's addresses and protocol, as eng_addr_sum() returns it. */
	uint16_t addr_sum;
	int error; /* why TCP closed */
	struct net_path path;
	TAILQ_ENTRY(eng_conn) next; /* t->pending or t->free */
};

struct eng_listener {
	LIST_ENTRY(eng_listener) next;
	struct tcp_listener *tcp;
	struct sk_addr addr; /* unspecified: every address */
	uint16_t port;
	uint32_t number; /* the control stage's */
	struct eng_offer offer;
};
#define ENG_LISTENER_BUCKETS 64
/* The number of a listener that no client has: where requests name a QP (transports whose QPs
 * programs modify themselves). */
#define ENG_LISTENER_BY_QPN UINT32_MAX

struct eng_transport {
	struct eng *e;
	unsigned index;
	uint64_t now;
	struct tcp_stack *tcp;
	struct net_stack *net;
	void *part[ENG_KINDS]; /* the transports' parts of the stage; NULL: not configured */
	/* The configured transports with packets of their own beside TCP. */
	const struct eng_link *packet_links[ENG_KINDS];
	unsigned npacket_links;
	uint64_t tcp_due, net_due; /* when to look at their timers again */
	bool tcp_work;             /* TCP was given something in this turn */
	unsigned tx_waiting;       /* frames in tx[] */
	uint16_t ip_id;
	/* Which connection? */
	struct rte_hash *tuples;
	struct tcp_conn *hit[ENG_HITS];
	LIST_HEAD(, eng_listener) listeners[ENG_LISTENER_BUCKETS];
	/* Connections */
	struct eng_conn *conns;                   /* [nconns] */
	uint32_t nconns, nstartups, nused, fresh; /* conns[fresh..] have never been used */
	TAILQ_HEAD(eng_conns, eng_conn) free, pending;
	struct sk_wheel wheel; /* start-up timeouts */
	uint16_t next_lport;
	struct sk_key port_key;
	/* Frames */
	struct rte_mempool *rx_pool, *tx_pool;
	struct eng_tx {
		uint16_t n, prepared; /* of these the port has seen the first `prepared` */
		struct rte_mbuf *m[ENG_TX_BUFFER];
	} tx[ENG_MAX_PORTS];
	struct rte_mbuf *spare[ENG_SPARE]; /* of tx_pool, on their way into our cache; not reset */
	uint32_t spare_in, spare_out;
	uint16_t loop_port; /* the index behind the last real port's */
	uint32_t loop_head, loop_tail;
	struct rte_mbuf *loop[ENG_LOOP_QUEUE];
	/* Other stages */
	struct rte_ring *from_stage[ENG_MAX_STAGES], *to_stage[ENG_MAX_STAGES]; /* eng_dmsg */
	struct eng_handoff *handoff;                /* NULL: there is one transport stage */
	struct rte_ring *from_control, *to_control; /* eng_ctl * */
	struct eng_ctl *notices;                    /* [ENG_CTL_NOTICES] */
	struct eng_ctl *notices_free[ENG_CTL_NOTICES];
	unsigned nnotices;
	uint64_t counters[eng_reason_count];
	uint64_t wire_counters[wire_reason_count];
};

/* ---- transport_rx.c ---- */

void eng_rx_frame(struct eng_transport *t, uint16_t port, struct rte_mbuf *m);
/* Checks the TCP or UDP checksum of the `len` bytes at offset `l4` of a received frame: accepts the
 * port's verdict (RTE_MBUF_F_RX_L4_CKSUM_*) where it gives one, and computes the sum where it does
 * not. `pseudo` is the pseudo-header's sum. Counts a failure as the port's (ENG_RX_OFFLOAD_BAD) or
 * as `wrong`, but not as ENG_RX_BAD. */
bool eng_rx_l4_intact(struct eng_transport *t, const struct rte_mbuf *m, uint32_t l4, uint32_t len,
	uint32_t pseudo, enum wire_reason wrong);
void eng_icmp_error(void *ctx, uint16_t port, uint16_t vlan, const struct wire_icmp *icmp);

/* The part of a pseudo-header's sum that is the same for all packets between two addresses. */
static inline uint16_t
eng_addr_sum(const struct tcp_tuple *t, uint8_t proto)
{
	return (uint16_t)~wire_sum_fold(wire_pseudo_sum(&t->laddr, &t->raddr, proto, 0));
}

/* And the rest of it: the length of header and payload, below 65536. */
static inline uint32_t
eng_pseudo_sum(uint16_t addr_sum, uint32_t len)
{
	return addr_sum + (uint32_t)rte_cpu_to_be_16((uint16_t)len);
}

/* ---- transport_tx.c ---- */

int eng_tcp_output(
	void *ctx, struct tcp_conn *conn, const struct tcp_tuple *to, const struct tcp_out *out);
/* net_ops.send and net_ops.release */
void eng_net_send(void *ctx, uint16_t port, const uint8_t *frame, size_t len);
void eng_net_release(void *ctx, uint16_t port, void *frame, const uint8_t *dst_mac);
/* Is there a place for one more frame on `port`? eng_tx_put() then takes it. */
bool eng_tx_room(struct eng_transport *t, uint16_t port);
void eng_tx_put(struct eng_transport *t, uint16_t port, struct rte_mbuf *m);
/* A small empty mbuf of tx_pool; NULL: none. */
struct rte_mbuf *eng_tx_header(struct eng_transport *t);
/* Hands all that waits to the ports; what they do not take stays. */
void eng_tx_flush(struct eng_transport *t);
/* Fetches header mbufs for the frames of a later turn, when few are left. */
void eng_tx_spare(struct eng_transport *t);
static inline uint32_t
eng_tx_spares(const struct eng_transport *t)
{
	return t->spare_in - t->spare_out;
}

/* ---- tuples.c: which connection, which listener ---- */

int eng_tuples_create(struct eng_transport *t, uint32_t conns);
void eng_tuples_destroy(struct eng_transport *t);
struct tcp_conn *eng_conn_find(struct eng_transport *t, const struct tcp_tuple *key);
struct eng_listener *eng_listener_find(
	struct eng_transport *t, const struct sk_addr *addr, uint16_t port);
/* tcp_ops.conn_added and conn_removed */
void eng_tcp_conn_added(void *ctx, struct tcp_conn *conn, struct tcp_listener *l);
void eng_tcp_conn_removed(void *ctx, struct tcp_conn *conn);
/* A local port that makes the tuple unique; 0: all are in use. */
uint16_t eng_lport_choose(struct eng_transport *t, const struct tcp_tuple *key);

/* ---- conn.c: the life of a connection; tcp_ops.deliver and event ---- */

/* Returns an unused connection in that state, or NULL. */
struct eng_conn *eng_conn_alloc(struct eng_transport *t, uint8_t state);
/* Frees the connection if no stage and no message names it any more. */
void eng_conn_put(struct eng_transport *t, struct eng_conn *c);
bool eng_tcp_deliver(void *ctx, struct tcp_conn *conn, struct tcp_slice *chain);
void eng_tcp_event(void *ctx, struct tcp_conn *conn, enum tcp_event ev);
/* Queues the connection for eng_conns_pending(), with those bits of enum eng_conn_pending. */
void eng_conn_pend(struct eng_transport *t, struct eng_conn *c, uint16_t what);
/* Tries again what is pending. Returns whether anything was done. */
bool eng_conns_pending(struct eng_transport *t);
/* Sends a message to the engine stage of a bound connection. Returns false when the ring is
 * full. */
bool eng_conn_send(struct eng_transport *t, const struct eng_conn *c, enum eng_to_stage type,
	uint64_t u, uint32_t arg);
/* From here on the connection's bytes go to QP `qp_index` of `stage`. */
void eng_conn_bind(struct eng_transport *t, struct eng_conn *c, uint8_t stage, uint32_t qp_index);
/* TCP has closed, or goes on without the connection: reports it to the stages concerned. */
void eng_conn_lost(struct eng_transport *t, struct eng_conn *c);
/* Handles a message of an engine stage. */
void eng_conn_message(struct eng_transport *t, const struct eng_dmsg *m);
/* Frees the payload of a message that no connection takes. */
void eng_conn_drop(const struct eng_dmsg *m);

/* ---- conn_startup.c: the exchange that makes a connection, as far as all transports share it ----
 */

/* Returns -ENOMEM when there is no memory. */
int eng_startup_create(struct eng_transport *t, struct eng_conn *c);
void eng_startup_free(struct eng_transport *t, struct eng_conn *c);
/* A TCP connection of a listener is established. */
void eng_startup_passive(struct eng_transport *t, struct tcp_conn *tcp);
/* An active TCP connection is established. */
void eng_startup_connected(struct eng_transport *t, struct eng_conn *c);
/* Takes bytes of the exchange. Returns false when none can be taken now. */
bool eng_startup_deliver(struct eng_transport *t, struct eng_conn *c, struct tcp_slice *chain);
/* TCP has closed during the start-up. */
void eng_startup_closed(struct eng_transport *t, struct eng_conn *c);
/* Ends a start-up that failed on this side: with a reset, and a notice to the control stage. */
void eng_startup_fail(struct eng_transport *t, struct eng_conn *c, int error);
/* Sends a notice about the connection, now or when a message is free. */
void eng_startup_notice(struct eng_transport *t, struct eng_conn *c, uint16_t notice);
bool eng_startup_send_notice(struct eng_transport *t, struct eng_conn *c);
/* Handles start-up timers that have expired; returns how many. */
unsigned eng_startup_poll(struct eng_transport *t, uint64_t now);
/* Opens a connection: ENG_CT_CONNECT, ENG_CT_LOOKUP. Returns 0 with m->conn, or -errno; -EXDEV:
 * m->transport is the stage that the tuple belongs to. */
int eng_startup_connect(struct eng_transport *t, struct eng_ctl *m);

/* ---- transport_ctl.c: what the control stage says ---- */

bool eng_transport_ctl(struct eng_transport *t);
/* ENG_CT_LISTEN */
int eng_transport_listen(struct eng_transport *t, const struct eng_ctl *m);

#endif
