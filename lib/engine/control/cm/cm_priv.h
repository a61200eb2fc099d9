/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection manager: listeners, connect requests, and a table of states for the connection of
 * each QP. */
#ifndef SAKER_ENGINE_CM_PRIV_H
#define SAKER_ENGINE_CM_PRIV_H

#include "../../../rof/exchange.h"
#include "../registry/registry_priv.h"

#define CM_CONFIGURED 2 /* shm_cm.crc, .markers: as the configuration says */

_Static_assert(SHM_DEPTH_AUTO == MPA_IRD_AUTO, "one value for clients and on the wire");

enum cm_event {
	CM_EV_CONNECTED,     /* ENG_CT_CONNECT was answered well */
	CM_EV_NOT_CONNECTED, /* or not */
	CM_EV_UP,            /* ENG_TC_ESTABLISHED */
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
bool cm_input(struct eng_control *c, struct ctl_qp *q, enum cm_event ev, struct eng_ctl *m);
/* What one stage has sent unasked. false: no message is free for the answer, ask again later. */
bool cm_unasked(struct eng_control *c, struct ctl_target *t, struct eng_ctl *m);
/* Starts an active open: tuple, offer and private data of `what`. */
void cm_start_connect(struct eng_control *c, struct ctl_qp *q, const struct eng_ctl *what);
/* The same at a transport stage of the caller's choice. */
void cm_connect_at(
	struct eng_control *c, struct ctl_qp *q, const struct eng_ctl *what, unsigned transport);
/* Starts the QP for the request that it accepts; cm_accept_send() completes the acceptance,
 * cm_accept_forget() gives it up. */
void cm_start_accept(struct eng_control *c, struct ctl_qp *q, const struct iw_params *params);
void cm_accept_send(struct eng_control *c, struct ctl_qp *q, struct ctl_msg *msg);
void cm_accept_forget(struct eng_control *c, struct ctl_qp *q);

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
	bool timed;               /* in the list of those that wait */
	struct ctl_qp *accepting; /* the client has accepted: until ENG_CT_ACCEPT is sent */
	struct mpa_offer offer;   /* with this, */
	uint16_t private_len;     /* and this */
	uint8_t *private_data;
	uint8_t transport;
	uint32_t conn;
	struct tcp_tuple tuple;
	uint64_t deadline;
	uint32_t emss;
	int64_t send_space;
	bool falcon;
	uint8_t type;          /* enum shm_qp_type of the QP that can accept it */
	uint16_t service;      /* SHM_UD: the port that is asked for */
	struct mpa_result mpa; /* but for the private data */
};

/* What a Falcon QP wants of its connection; of an iWARP QP, that it is none. */
struct eng_falcon_ask cm_falcon_ask(
	const struct eng_control *c, const struct ctl_qp *q, const struct mpa_offer *offer);

ctl_handler cm_listen, cm_unlisten, cm_connect, cm_resolve, cm_accept, cm_reject, cm_disconnect;

struct cm_listener *cm_listener_of_service(
	const struct eng_control *c, const struct sk_addr *addr, uint16_t port);
struct cm_listener *cm_listener_find(const struct eng_control *c, uint32_t number);
/* Reaping: tells the transport stages; nobody waits. */
void cm_listener_close(struct eng_control *c, struct cm_listener *l, struct ctl_op *op);
/* Without a word to anybody: the control stage is being destroyed. */
void cm_listener_free(struct eng_control *c, struct cm_listener *l);

void cm_request_in(struct eng_control *c, struct eng_ctl *m);
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
void cm_abort(struct eng_control *c, struct ctl_qp *q, int how);

/* ---- cm_hand.c: QPs that a program moves itself ---- */

/* Somebody asks for a QP by its number. */
void cm_hand_request(struct eng_control *c, const struct eng_ctl *m);
/* It may send: it may also begin. */
void cm_hand_rts(struct eng_control *c, struct ctl_qp *q);
/* An attempt came to nothing: the next one, or the request that it gave way to. */
void cm_hand_again(struct eng_control *c, struct ctl_qp *q);
/* The request that waits is not wanted, or has gone. */
void cm_hand_drop(struct eng_control *c, struct ctl_qp *q, enum rofx_reason why);
/* There is a connection. */
void cm_hand_up(struct eng_control *c, struct ctl_qp *q);
/* ENG_EC_QP_WAITS */
void cm_hand_waits(struct eng_control *c, struct ctl_qp *q);
/* It is in error, or will be: no attempt is made any more. */
void cm_hand_give_up(struct eng_control *c, struct ctl_qp *q);
/* It is going: no timer, no request. */
void cm_hand_forget(struct eng_control *c, struct ctl_qp *q);
bool cm_hand_poll(struct eng_control *c);

/* ---- cm_host.c: connections of hosts, for datagrams ---- */

struct ctl_host *cm_host_find(const struct eng_control *c, const struct sk_addr *remote);
/* Finds or makes it. NULL: no memory or place. */
struct ctl_host *cm_host_get(struct eng_control *c, const struct sk_addr *remote);
void cm_host_free(struct eng_control *c, struct ctl_host *h);
/* Ends those of no use. */
bool cm_host_poll(struct eng_control *c);
/* A move of a datagram QP; `finish` sends the reply. 0, CTL_LATER or a refusal. */
int cm_datagram_move(
	struct eng_control *c, struct ctl_qp *q, struct shm_msg *m, ctl_finish *finish);

/* ---- cm_offer.c: between a client's words, MPA's and RDMAP's ---- */

/* What the client asked for, checked. 0 or a refusal written to `m`. */
int cm_offer(struct eng_control *c, struct shm_msg *m, struct mpa_offer *out);
/* Whether it wants the draft's dialect; a refusal as above. */
int cm_dialect(struct eng_control *c, struct shm_msg *m, bool *draft_ext);
/* A depth that nobody negotiated is the device's. */
uint16_t cm_depth(uint16_t negotiated, uint16_t limit);
/* What both sides agreed on, as iw_params; q->ird and q->ord with it. */
struct iw_params cm_params(const struct eng_control *c, struct ctl_qp *q, bool initiator,
	const struct mpa_result *mpa);
/* What a client is told: depths that hold, what the peer said, private data. */
void cm_describe(struct shm_cm *cm, const struct mpa_result *mpa, uint16_t ird, uint16_t ord);

#endif
