/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection manager: listeners, connect requests, and a table of states for the connection of
 * each QP. */
#ifndef SAKER_ENGINE_CM_H
#define SAKER_ENGINE_CM_H

#include "../../../rof/exchange.h"
#include "../core/conn.h"
#include "../registry/registry.h"

enum cm_event {
	CM_EV_CONNECTED,     /* ENG_CT_CONNECT was answered well */
	CM_EV_NOT_CONNECTED, /* or not */
	CM_EV_UP,            /* ENG_TC_ESTABLISHED */
	CM_EV_FOUND,         /* ENG_TC_FOUND */
	CM_EV_REJECTED,      /* ENG_TC_REJECTED */
	CM_EV_FAILED,        /* ENG_TC_FAILED */
	CM_EV_STARTED,       /* ENG_CE_QP_START was answered well */
	CM_EV_NOT_STARTED,   /* or not */
	CM_EV_BOUND,         /* ENG_CT_BIND was answered */
	CM_EV_ACCEPTED,      /* ENG_CT_ACCEPT was answered */
	CM_EV_ENDED,         /* ENG_EC_DISCONNECTED */
	CM_EV_ABORTED,       /* ENG_CT_ABORT was answered */
	CM_EV_DELETE,        /* the QP is to go, or to be reset */
	CM_EV_DELETED,       /* ENG_CE_QP_DEL was answered */
	CM_EV_RESET,         /* ENG_CE_QP_RESET was answered */
	CM_EVENTS
};

/* `m`: the message that brought it (NULL for CM_EV_DELETE). Returns whether `m` was kept (to be
 * returned later). */
bool cm_input(struct eng_control *c, struct cm_conn *q, enum cm_event ev, struct eng_ctl *m);
/* Starts an active open: tuple, offer and private data of `what`. */
void cm_start_connect(struct eng_control *c, struct cm_conn *q, const struct eng_ctl *what);
/* The same at a transport stage of the caller's choice. */
void cm_connect_at(
	struct eng_control *c, struct cm_conn *q, const struct eng_ctl *what, unsigned transport);
/* Starts the QP for the request that it accepts; cm_accept_send() completes the acceptance,
 * cm_accept_forget() gives it up. */
void cm_start_accept(struct eng_control *c, struct cm_conn *q, const struct eng_start *start);
void cm_accept_send(struct eng_control *c, struct cm_conn *q, struct ctl_msg *msg);
void cm_accept_forget(struct eng_control *c, struct cm_conn *q);

struct cm_listener {
	struct ctl_client *client;
	uint32_t handle; /* the client's */
	uint32_t number; /* the instance's, with a generation: ENG_CT_LISTEN carries it */
	uint32_t slot;
	struct sk_addr addr;
	uint16_t port;
	uint8_t space; /* enum shm_space */
	uint32_t backlog, pending;
	bool closing, ready;
};

struct cm_request {
	TAILQ_ENTRY(cm_request) waiting;
	LIST_ENTRY(cm_request) bucket;
	struct ctl_client *client;
	struct cm_listener *listener; /* NULL: closed meanwhile */
	uint32_t handle;
	bool timed;                /* in the list of those that wait */
	struct cm_conn *accepting; /* the client has accepted: until ENG_CT_ACCEPT is sent */
	struct eng_offer offer;    /* with this, */
	uint16_t private_len;      /* and this */
	uint8_t *private_data;
	uint8_t transport;
	uint32_t conn;
	struct tcp_tuple tuple;
	uint64_t deadline;
	uint32_t emss;
	int64_t send_space;
	uint8_t kind;               /* enum eng_kind */
	uint8_t type;               /* enum shm_qp_type of the QP that can accept it */
	uint16_t service;           /* SHM_UD: the port of the requested datagram service */
	struct eng_outcome outcome; /* what the peer requests */
};

/* The engine's client of a connection; NULL: it has none. */
static inline struct eng_client *
cm_client_of(const struct cm_conn *q)
{
	return q->client != NULL ? &q->client->eng : NULL;
}

/* Returns whether a notice may be handled: each may need a message for the answer, and so may the
 * answers to come. */
static inline bool
cm_may_answer(const struct eng_control *c)
{
	return c->nspare > CTL_RESERVE / 2;
}

/* ---- Notices (core.h) ---- */

ctl_notice cm_notice_request, cm_notice_lookup, cm_notice_outcome, cm_notice_disconnected,
	cm_notice_fatal, cm_notice_waits;
/* For the registry. */
extern const struct ctl_conn_ops cm_conn_ops;

ctl_handler cm_listen, cm_unlisten, cm_connect, cm_resolve, cm_accept, cm_reject, cm_disconnect,
	ctl_qp_modify, ctl_ah_create, ctl_ah_destroy;

struct cm_listener *cm_listener_of_service(
	const struct eng_control *c, const struct sk_addr *addr, uint16_t port);
struct cm_listener *cm_listener_find(const struct eng_control *c, uint32_t number);
/* Reaping: tells the transport stages; nobody waits. */
void cm_listener_close(struct eng_control *c, struct cm_listener *l, struct ctl_op *op);
/* Without a word to anybody: the control stage is being destroyed. */
void cm_listener_free(struct eng_control *c, struct cm_listener *l);

struct cm_request *cm_request_of_conn(
	const struct eng_control *c, uint8_t transport, uint32_t conn);
struct cm_request *cm_request_find(const struct ctl_client *cl, uint32_t handle);
void cm_request_free(struct eng_control *c, struct cm_request *r);
/* It no longer waits and counts no longer against its listener. */
void cm_request_answered(struct eng_control *c, struct cm_request *r);
/* Rejects and frees it. `cm`: the depths that it would have needed, private data; may be NULL.
 * Needs a free message. */
void cm_request_reject(struct eng_control *c, struct cm_request *r, const struct shm_cm *cm);
/* A request that nobody waits with; `cl` will not be asked about it. NULL: no memory, or it has too
 * many. */
struct cm_request *cm_request_new(
	struct eng_control *c, struct ctl_client *cl, const struct eng_ctl *m);
/* Refuses one that there is nothing of yet. */
void cm_request_refuse(struct eng_control *c, const struct eng_ctl *m, enum rofx_reason why);
/* Refuses those that nobody has answered. */
bool cm_request_poll(struct eng_control *c);
uint64_t cm_request_deadline(const struct eng_control *c);

bool cm_addr_is_ours(const struct eng_control *c, const struct sk_addr *a);

/* ---- cm.c, for QPs that are moved by hand ---- */

/* Ends the attempt that is under way; `how` as eng_ctl.code of ENG_CT_ABORT. */
void cm_abort(struct eng_control *c, struct cm_conn *q, int how);

/* ---- cm_hand.c: QPs that a program moves itself ---- */

/* Somebody asks for a QP by its number. */
void cm_modified_request(struct eng_control *c, const struct eng_ctl *m);
/* It may send: it may also begin. */
void cm_modified_rts(struct eng_control *c, struct cm_conn *q);
/* An attempt came to nothing: the next one, or the request that it gave way to. */
void cm_modified_again(struct eng_control *c, struct cm_conn *q);
/* The request that waits is not wanted, or has gone. */
void cm_modified_drop(struct eng_control *c, struct cm_conn *q, enum rofx_reason why);
/* There is a connection. */
void cm_modified_up(struct eng_control *c, struct cm_conn *q);
/* It is in error, or will be: no attempt is made any more. */
void cm_modified_give_up(struct eng_control *c, struct cm_conn *q);
/* It is going: no timer, no request. */
void cm_modified_forget(struct eng_control *c, struct cm_conn *q);
bool cm_modified_poll(struct eng_control *c);

/* ---- cm_host.c: address handles, and the connections of hosts that they share ---- */

/* The connection of two hosts, for datagrams. */
struct ctl_host {
	struct cm_conn conn;
	struct eng_qp qp; /* it has no queues */
	struct eng_host eng;
	LIST_ENTRY(ctl_host) all;
	uint32_t refs;          /* address handles */
	uint64_t packets, seen; /* that had come, and when that was so */
};

struct ctl_ah {
	struct eng_ah eng;
	struct ctl_host *host;
	uint32_t handle;
	bool dying;
};

/* Finds the connection to that host, or creates it. Returns NULL when there is no memory or
 * place. */
struct ctl_host *cm_host_get(struct eng_control *c, const struct sk_addr *remote);
/* Frees all connections of hosts: the control stage is being destroyed. */
void cm_hosts_free(struct eng_control *c);
/* Ends those that are not used. Returns whether there were any. */
bool cm_host_poll(struct eng_control *c);
/* Starts the end of an address handle; `op` may be quiet. */
void ctl_ah_delete(
	struct eng_control *c, struct ctl_client *cl, struct ctl_ah *ah, struct ctl_op *op);
/* Frees it without a message to the stage. */
void ctl_ah_free(struct eng_control *c, struct ctl_client *cl, struct ctl_ah *ah);
/* A move of a datagram QP; `finish` sends the reply. Returns 0, CTL_LATER or a refusal. */
int cm_datagram_move(
	struct eng_control *c, struct cm_conn *q, struct shm_msg *m, ctl_finish *finish);

/* ---- cm_kind.c: offers and outcomes of every transport ---- */

/* Sets what the registry has to know of the enabled transports. */
void cm_configure(struct eng_control *c);
/* Makes an offer of a client's command: to connect, or (q NULL) to listen. Returns 0, or a refusal
 * written to `m`. */
int cm_offer(
	struct eng_control *c, const struct cm_conn *q, struct shm_msg *m, struct eng_offer *out);
/* The same for the acceptance of a request. */
int cm_answer_offer(struct eng_control *c, const struct cm_conn *q, const struct cm_request *r,
	struct shm_msg *m, struct eng_offer *out);
/* Makes the offer of a QP that the program modifies. */
void cm_modified_offer(struct eng_control *c, const struct cm_conn *q, struct eng_offer *out);
/* Sets whether the client requests the draft's dialect. Returns as cm_offer(). */
int cm_dialect(struct eng_control *c, struct shm_msg *m, bool *draft_ext);
/* Returns a depth within the device's limit; a depth that was not negotiated becomes the limit. */
uint16_t cm_depth(uint16_t negotiated, uint16_t limit);
/* Returns how the QP starts with what both sides agreed on; sets q->ird and q->ord. */
struct eng_start cm_start(const struct eng_control *c, struct cm_conn *q, bool initiator,
	const struct eng_peer *peer);
/* Returns the same for a request that is accepted with r->offer. */
struct eng_start cm_agree(
	const struct eng_control *c, struct cm_conn *q, const struct cm_request *r);
/* Fills in what a client is told of a connection: the depths in force, the peer's, and the private
 * data of `m`. */
void cm_describe(struct shm_cm *cm, const struct eng_outcome *o, uint16_t ird, uint16_t ord,
	const struct eng_ctl *m);
/* Copies the private data of `m` alone. */
void cm_private(struct shm_cm *cm, const struct eng_ctl *m);

#endif
