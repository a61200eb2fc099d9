/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection manager: listeners, connect requests of peers, and the states of each connection
 * (struct cm_conn), which cm.c has as a table. */
#ifndef SAKER_ENGINE_CM_H
#define SAKER_ENGINE_CM_H

#include "../../../rof/exchange.h"
#include "../core/conn.h"
#include "../registry/registry.h"

enum cm_event {
	CM_EV_CONNECTED,     /* ENG_CT_CONNECT or ENG_CT_LOOKUP was answered with 0 */
	CM_EV_NOT_CONNECTED, /* ENG_CT_CONNECT or ENG_CT_LOOKUP was answered with an error */
	CM_EV_UP,            /* ENG_TC_ESTABLISHED */
	CM_EV_FOUND,         /* ENG_TC_FOUND */
	CM_EV_REJECTED,      /* ENG_TC_REJECTED */
	CM_EV_FAILED,        /* ENG_TC_FAILED */
	CM_EV_STARTED,       /* ENG_CE_QP_START was answered with 0 */
	CM_EV_NOT_STARTED,   /* ENG_CE_QP_START was answered with an error */
	CM_EV_BOUND,         /* ENG_CT_BIND was answered with 0 */
	CM_EV_NOT_BOUND,     /* ENG_CT_BIND was answered with an error */
	CM_EV_ACCEPTED,      /* ENG_CT_ACCEPT was answered with 0 */
	CM_EV_NOT_ACCEPTED,  /* ENG_CT_ACCEPT was answered with an error */
	CM_EV_UNBOUND,       /* ENG_CLOSE_UNBOUND was answered */
	CM_EV_ENDED,         /* ENG_EC_DISCONNECTED */
	CM_EV_ABORTED,       /* ENG_CT_ABORT was answered */
	CM_EV_DELETE,        /* a command requests to destroy or to reset the QP */
	CM_EV_DELETED,       /* ENG_CE_QP_DEL was answered */
	CM_EV_RESET,         /* ENG_CE_QP_RESET was answered */
	CM_EVENTS
};

/* Handles an event of a connection. `m` is the message that caused it, or NULL for CM_EV_DELETE.
 * Returns whether the connection keeps `m`, a notice, which it then returns to its stage later. */
bool cm_input(struct eng_control *c, struct cm_conn *q, enum cm_event ev, struct eng_ctl *m);
/* Sends a copy of `what` (ENG_CT_CONNECT or ENG_CT_LOOKUP: `connect` and private data) to a
 * transport stage that the QP's engine stage determines. */
void cm_start_connect(struct eng_control *c, struct cm_conn *q, const struct eng_ctl *what);
/* Sends a copy of `what` to the given transport stage. */
void cm_connect_at(
	struct eng_control *c, struct cm_conn *q, const struct eng_ctl *what, unsigned transport);
/* Starts the QP for q->request, which it accepts. Then cm_accept_send() completes the acceptance
 * with the command `msg`, or cm_accept_forget() frees the request instead. */
void cm_start_accept(struct eng_control *c, struct cm_conn *q, const struct eng_start *start);
void cm_accept_send(struct eng_control *c, struct cm_conn *q, struct ctl_msg *msg);
void cm_accept_forget(struct eng_control *c, struct cm_conn *q);

struct cm_listener {
	struct ctl_client *client;
	uint32_t handle;     /* of the client */
	uint32_t number;     /* unique in the instance, contains a generation: listen.number */
	uint32_t slot;       /* in c->listeners */
	struct sk_addr addr; /* and `v6only`: see eng_listens_at() */
	bool v6only;
	uint16_t port;
	uint8_t space;             /* enum shm_space */
	struct shm_modes modes;    /* of the acceptances that leave them open */
	struct shm_class class;    /* likewise */
	uint32_t backlog, pending; /* requests: the limit, and those without an answer */
	/* ENG_CT_UNLISTEN has been sent; all transport stages have listened; only the client's
	 * table contains the listener. */
	bool closing, ready, closed;
	struct ctl_op *unlisten;          /* SHM_UNLISTEN, which waits for the transport stages */
	LIST_ENTRY(cm_listener) by_port;  /* in c->ports */
	LIST_HEAD(, cm_request) requests; /* that wait for the client's answer */
};

/* A peer's request for a connection or for a datagram service. */
struct cm_request {
	TAILQ_ENTRY(cm_request) waiting;
	LIST_ENTRY(cm_request) bucket;
	struct ctl_client *client;
	uint16_t user; /* the holder of the request's unit of CTL_POOL_REQUEST */
	LIST_ENTRY(cm_request) of_listener;
	struct cm_listener *listener; /* NULL: answered, closed, or the request names a QP */
	uint32_t handle;
	TAILQ_ENTRY(cm_request) place; /* in client->unplaced, while `unplaced` */
	bool unplaced;
	bool timed;                /* the request is in c->waiting, until the client answers it */
	struct cm_conn *accepting; /* the accepting QP's, until ENG_CT_ACCEPT is sent */
	struct shm_modes modes;    /* the listener's */
	struct shm_class class;    /* likewise */
	struct eng_offer offer;    /* what the client has accepted the request with, */
	uint16_t private_len;      /* and the private data of that answer */
	uint8_t *private_data;
	uint8_t transport; /* index of the transport stage */
	uint32_t conn;     /* index of the connection there */
	struct tcp_tuple tuple;
	uint64_t deadline; /* ns: when the control stage rejects the request */
	uint32_t emss;
	int64_t send_space;
	uint8_t kind;               /* enum eng_kind */
	uint8_t type;               /* enum shm_qp_type of the QP that can accept the request */
	uint16_t service;           /* SHM_UD: port of the requested datagram service */
	struct eng_outcome outcome; /* what the peer requests */
};

/* Returns the client that owns the connection, or NULL for a host connection. */
static inline struct eng_client *
cm_client_of(const struct cm_conn *q)
{
	return q->client != NULL ? &q->client->eng : NULL;
}

/* Returns whether enough messages are free to handle a notice. Its answer needs one, and so may the
 * answers to commands that are unanswered. */
static inline bool
cm_may_answer(const struct eng_control *c)
{
	return c->nspare > CTL_RESERVE / 2;
}

/* ---- Notices (core.h) ---- */

ctl_notice cm_notice_request, cm_notice_lookup, cm_notice_outcome, cm_notice_disconnected,
	cm_notice_fatal, cm_notice_waits;
/* The functions that the registry calls. */
extern const struct ctl_conn_ops cm_conn_ops;

ctl_handler cm_listen, cm_unlisten, cm_connect, cm_resolve, cm_accept, cm_reject, cm_disconnect,
	ctl_qp_modify, ctl_ah_create, ctl_ah_destroy;

/* Returns the listener of a datagram service on that address and port, or NULL. */
struct cm_listener *cm_listener_of_service(
	const struct eng_control *c, const struct sk_addr *addr, uint16_t port);
/* Returns the listener with that listener number, or NULL. */
struct cm_listener *cm_listener_find(const struct eng_control *c, uint32_t number);
/* Begins to close a listener: sends ENG_CT_UNLISTEN to all transport stages and rejects the
 * requests that wait. If `op` is quiet, the listener of a live client stays in the client's table
 * until SHM_UNLISTEN. */
void cm_listener_close(struct eng_control *c, struct cm_listener *l, struct ctl_op *op);
/* Frees a listener and sends no message. */
void cm_listener_free(struct eng_control *c, struct cm_listener *l);

/* Returns the request of a transport stage's connection, or NULL. */
struct cm_request *cm_request_of_conn(
	const struct eng_control *c, uint8_t transport, uint32_t conn);
/* Returns the request with the client's handle, or NULL. */
struct cm_request *cm_request_find(const struct ctl_client *cl, uint32_t handle);
void cm_request_free(struct eng_control *c, struct cm_request *r);
/* Removes a request from its listener's backlog. */
void cm_request_orphan(struct cm_request *r);
/* Implements ctl_conn_ops.place. */
int cm_request_place(struct ctl_client *cl, uint8_t kind, uint8_t type);
/* Removes a request from the lists of waiting requests and from its listener's backlog. */
void cm_request_answered(struct eng_control *c, struct cm_request *r);
/* Rejects and frees a request. `cm` carries the depths that the acceptance would have needed and
 * the private data; it may be NULL. The caller ensures that a message is free. */
void cm_request_reject(struct eng_control *c, struct cm_request *r, const struct shm_cm *cm);
/* Returns a request with the contents of the notice `m`, in the client's table (`cl` NULL: in no
 * table), without a deadline and without an event to the client. Returns NULL when there is no
 * memory, or the client or its user has too many requests. */
struct cm_request *cm_request_new(
	struct eng_control *c, struct ctl_client *cl, const struct eng_ctl *m);
/* Rejects the request in the notice `m`, of which no struct cm_request exists. */
void cm_request_refuse(struct eng_control *c, const struct eng_ctl *m, enum rofx_reason why);
/* Rejects the requests whose deadline has passed. Returns whether there were any. */
bool cm_request_poll(struct eng_control *c);
/* Returns the earliest deadline of a waiting request (ns), or SK_NEVER. */
uint64_t cm_request_deadline(const struct eng_control *c);

/* Returns whether `a` is an address of this instance, but not a shared one (struct eng_config). */
bool cm_addr_is_ours(const struct eng_control *c, const struct sk_addr *a);

/* ---- cm_act.c, for QPs modified by the program ---- */

/* Sends ENG_CT_ABORT to end the attempt in progress. `how` is abort.how of that command. */
void cm_abort(struct eng_control *c, struct cm_conn *q, int how);

/* ---- cm_again.c: connect commands that meet no listener ---- */

/* Keeps a copy of the command `what` (ENG_CT_CONNECT or ENG_CT_LOOKUP), which begins now. */
void cm_again_keep(struct eng_control *c, struct cm_conn *q, const struct eng_ctl *what);
/* Frees the copy, because the command has an outcome. */
void cm_again_drop(struct cm_conn *q);
/* Puts the command off, because no listener has answered. Returns false when the time in which one
 * could appear is over. cm_again_fire() repeats the command, when the timer fires. */
bool cm_again_later(struct eng_control *c, struct cm_conn *q);
void cm_again_fire(struct eng_control *c, struct cm_conn *q);

/* ---- cm_modified.c: QPs modified by the program, and host connections ---- */

/* Returns whether the QP's next attempt may begin. If not, reserves attempt_at, the next time at
 * which one of this user may, so that attempts of the QPs of one user do not occupy the loop. */
bool cm_attempt_is_paced(struct eng_control *c, struct cm_conn *q);

/* Handles an ENG_TC_REQUEST that names a QP by its number, or requests a host connection. */
void cm_modified_request(struct eng_control *c, const struct eng_ctl *m);
/* Allows the QP to make attempts, and makes the first one now. The program has moved it to RTS. */
void cm_modified_rts(struct eng_control *c, struct cm_conn *q);
/* Continues after an attempt has failed: accepts the request that the attempt gave way to, if there
 * is one, else schedules the next attempt. */
void cm_modified_again(struct eng_control *c, struct cm_conn *q);
/* Rejects and frees q->request, if there is one. */
void cm_modified_drop(struct eng_control *c, struct cm_conn *q, enum rofx_reason why);
/* Stops the attempts, since the connection is established. */
void cm_modified_up(struct eng_control *c, struct cm_conn *q);
/* Ends the attempts for good, since the QP is in the error state or will be. */
void cm_modified_give_up(struct eng_control *c, struct cm_conn *q);
/* Stops the timer and frees the request of a QP that is being destroyed or reset. */
void cm_modified_forget(struct eng_control *c, struct cm_conn *q);
/* Handles timers that have expired. Returns whether there were any. */
bool cm_modified_poll(struct eng_control *c);

/* ---- cm_host.c: address handles, and the host connections that they share ---- */

/* A host connection: all datagrams between two hosts share it that have the same order of data, the
 * same class of packets and the same stage number. Datagrams in weak order and in none have the
 * same connection, since neither have an order on the way. */
struct ctl_host {
	struct cm_conn conn;
	struct eng_qp qp; /* a QP without queues */
	struct eng_host eng;
	TAILQ_ENTRY(ctl_host) all;
	LIST_ENTRY(ctl_host) bucket; /* in c->host_hash */
	/* The holder of its units of CTL_POOL_HOST and CTL_POOL_QP, which also pays for its next
	 * connection and for the datagrams on that: the user of the client whose address handle
	 * needed it first, or the instance if no address handle uses it. */
	uint16_t user;
	bool counted;           /* in c->host_prefix */
	uint32_t refs;          /* address handles that use it */
	uint64_t packets, seen; /* packets received at the last check; time (ns) of the last use */
};

/* Returns the user that pays for a connection: that of the client that owns the QP, or of a host
 * connection. */
static inline uint16_t
cm_user_of(const struct cm_conn *q)
{
	if (cm_is_host(q))
		return SK_CONTAINER(q, struct ctl_host, conn)->user;
	return q->client != NULL ? q->client->eng.user : SK_USER_INSTANCE;
}

struct ctl_ah {
	struct eng_ah eng;
	struct ctl_host *host;
	uint32_t handle;
	bool dying;
};

/* The host connections between two hosts have numbers: the class of packets in the low bits, and
 * the number of a stage above. An engine stage sends over those with its own number; those with
 * number k belong to engine stage k modulo the number of stages. */
#define CM_HOST_STAGE   9 /* the first bit of the stage */
#define CM_HOST_NUMBERS (ENG_MAX_STAGES << CM_HOST_STAGE)
/* Returns the host connection of that order and number to the peer `remote`, which has requested
 * it; creates it if there is none. Returns NULL when there is no memory, or the peers of its
 * network, or all peers, have as many as they may have. */
struct ctl_host *cm_host_get(
	struct eng_control *c, const struct sk_addr *remote, bool ordered, uint32_t number);
/* Frees all host connections and sends no message, since the control stage is being destroyed. */
void cm_hosts_free(struct eng_control *c);
/* Begins to destroy unused host connections. Returns whether there were any. */
bool cm_host_poll(struct eng_control *c);
/* Begins to destroy an address handle. `op` may be quiet. */
void ctl_ah_delete(
	struct eng_control *c, struct ctl_client *cl, struct ctl_ah *ah, struct ctl_op *op);
/* Frees an address handle and sends no message to the engine stage. */
void ctl_ah_free(struct eng_control *c, struct ctl_client *cl, struct ctl_ah *ah);
/* Executes SHM_QP_MODIFY for a datagram QP. `finish` sends the reply. Returns CTL_LATER or a
 * refusal. */
int cm_datagram_move(
	struct eng_control *c, struct cm_conn *q, struct shm_msg *m, ctl_finish *finish);

/* ---- cm_kind.c: offers and outcomes of every transport ---- */

/* Sets the members of `c` that depend on the enabled transports. */
void cm_configure(struct eng_control *c);
/* Translates the client's command `m`, SHM_CONNECT or (q NULL) SHM_LISTEN, into an offer. Returns
 * 0, or a refusal written to `m`. */
int cm_offer(
	struct eng_control *c, const struct cm_conn *q, struct shm_msg *m, struct eng_offer *out);
/* Translates SHM_ACCEPT for request `r` into an offer. Returns 0, or a refusal written to `m`. */
int cm_answer_offer(struct eng_control *c, struct cm_conn *q, const struct cm_request *r,
	struct shm_msg *m, struct eng_offer *out);
/* Sets the class of packets, for SHM_CONNECT and SHM_RESOLVE. Returns 0, or a refusal written to
 * `m`. */
int cm_class_offer(
	struct eng_control *c, struct cm_conn *q, struct shm_msg *m, struct eng_offer *out);
/* Checks the modes of Falcon in a client's command. `responds`: the client accepts connections.
 * Returns 0, or a refusal written to `m`. */
int cm_modes_check(
	struct eng_control *c, struct shm_msg *m, const struct shm_modes *modes, bool responds);
/* Checks the modes of Falcon that SHM_QP_MODIFY chooses for connections with `remote`. */
int cm_modes_move(struct eng_control *c, struct shm_msg *m);
/* Makes the offer of a QP modified by the program, or of a host connection. Returns 0, or -errno
 * when the configuration does not allow the modes of the QP any more. */
int cm_modified_offer(struct eng_control *c, const struct cm_conn *q, struct eng_offer *out);
/* Sets *draft_ext: whether the client requests the dialect of draft-ietf-storm-rdmap-ext-00.
 * Returns 0, or a refusal written to `m`. */
int cm_dialect(struct eng_control *c, struct shm_msg *m, bool *draft_ext);
/* Returns the parameters with which the QP starts, from the outcome of the negotiation. Sets q->ird
 * and q->ord. */
struct eng_start cm_start(const struct eng_control *c, struct cm_conn *q, bool initiator,
	const struct eng_peer *peer);
/* Returns these parameters for a request that is accepted with r->offer. */
struct eng_start cm_agree(
	const struct eng_control *c, struct cm_conn *q, const struct cm_request *r);
/* Fills in the part of an event that describes a connection: the depths of this side, the depths
 * that the peer has stated, and the private data of `m`. */
void cm_describe(struct shm_cm *cm, const struct eng_outcome *o, uint16_t ird, uint16_t ord,
	const struct eng_ctl *m);
/* Fills in only the private data of `m`. */
void cm_private(struct shm_cm *cm, const struct eng_ctl *m);

#endif
