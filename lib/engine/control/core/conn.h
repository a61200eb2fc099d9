/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection, as the connection manager handles it. Each QP of a client has one, and so has each
 * host connection, which the datagrams between two hosts share and which no client owns. The
 * registry creates and frees a connection together with its QP; the connection manager
 * (lib/engine/control/cm) does everything between.
 */
#ifndef SAKER_ENGINE_CONTROL_CONN_H
#define SAKER_ENGINE_CONTROL_CONN_H

#include "core.h"

enum cm_state {
	CM_IDLE,
	CM_CONNECTING,      /* waits for the answer to ENG_CT_CONNECT or ENG_CT_LOOKUP */
	CM_OPENING,         /* the transport stage is connecting */
	CM_STARTING,        /* active: waits for the answer to ENG_CE_QP_START */
	CM_BINDING,         /* active: waits for the answer to ENG_CT_BIND */
	CM_ACCEPT_STARTING, /* passive: waits for the answer to ENG_CE_QP_START */
	CM_ACCEPTING,       /* passive: waits for the answer to ENG_CT_ACCEPT */
	CM_WAIT_PEER,       /* passive: waits for ENG_TC_ESTABLISHED */
	CM_ESTABLISHED,
	CM_CLOSED,   /* the stream has ended, and no other connection follows */
	CM_ABORTING, /* waits for the answer to ENG_CT_ABORT */
	CM_DELETING, /* waits for the answer to ENG_CE_QP_DEL */
	/* QPs modified by the program, and host connections: */
	CM_WAITING,    /* no attempt is in progress */
	CM_GIVING_WAY, /* waits for the answer to ENG_CT_ABORT, then accepts `request` */
	/* Any QP: */
	CM_RESETTING, /* waits for the answer to ENG_CE_QP_RESET */
	CM_REFUSED,   /* no listener answered; the client's command is repeated after a pause */
	CM_STATES
};

struct cm_conn {
	struct eng_qp *qp;         /* the engine stage's QP */
	struct ctl_client *client; /* the owner; NULL: a host connection */
	uint32_t slot, generation; /* number in c->conns, and its generation: cm_conn_cookie() */
	uint16_t attempt;  /* counts the connections that the QP requests or accepts, and resets */
	uint32_t qp_index; /* of the QP at its engine stage */
	uint32_t conn;     /* index of the connection at its transport stage */
	uint8_t state;     /* enum cm_state */
	uint8_t transport; /* index of its transport stage */
	bool dying;        /* the QP is deleted as soon as the state allows */
	bool ended;        /* ENG_EC_DISCONNECTED came while a command was unanswered */
	bool draft_ext;    /* iWARP: draft-ietf-storm-rdmap-ext-00 (enum shm_dialect) */
	int end_status;    /* `ended`: the status of that notice */
	uint16_t ird, ord; /* depths that both sides have agreed on */
	/* Of the packets of this side: what the program has chosen for the QP, and what the last or
	 * the next connection has. */
	struct shm_class chosen, class;
	struct eng_mpa_view mpa;    /* iWARP: what they have agreed on otherwise */
	struct ctl_op *op;          /* the command that destroys the QP, or NULL */
	struct ctl_op *reset;       /* the command that resets the QP, or NULL */
	struct ctl_event *outcome;  /* event for the client, sent when the connection is bound */
	struct cm_request *request; /* the request that the QP accepts, or NULL */
	/* A copy of the client's command to connect, until the attempt has an outcome, or NULL. Up
	 * to the time again_end (ns), an attempt that no listener answers is repeated. */
	struct eng_ctl *again;
	uint64_t again_end;
	/* An ENG_TC_FAILED that returns behind the last command about the connection, or NULL. */
	struct eng_ctl *held;
	/* Of repeated attempts. Times in ns: the next attempt; the pause after it, should it fail.
	 */
	struct sk_timer timer;
	uint64_t attempt_at, pause;
	bool reserved; /* attempt_at is a time that the user's attempts have left */
	/* Frees the QP or host connection that contains this, when no message about it is in a
	 * ring. */
	void (*free)(struct eng_control *c, struct cm_conn *conn);
	/* The following members are for QPs modified by the program, and for host connections. */
	bool modified; /* the program has moved the QP to RTR and has named its peer */
	bool given_up; /* no attempt follows */
	bool waits;    /* the QP has work and no connection */
	bool unopened; /* the connection has ended before it carried any message */
	/* The attributes that the program has set; `state` is the last state, or RESET. */
	struct shm_qp_move move;
	/* Times in ns: the end of the attempt in progress; the end of the time for the peer to
	 * appear (the patience). */
	uint64_t attempt_end, patience_end;
};

/* The functions of the connection manager that the registry calls. */
struct ctl_conn_ops {
	/* Ends the connection as soon as its state allows. The caller has set conn->dying or
	 * conn->reset before. */
	void (*leave)(struct eng_control *c, struct cm_conn *conn);
	/* Stops the timer and frees the request of a connection that is about to be freed. */
	void (*forget)(struct eng_control *c, struct cm_conn *conn);
	/* Returns the transport stage of the oldest request for which the client has created no QP,
	 * if this QP, of an enum eng_kind and an enum shm_qp_type, could accept it; or -1. The
	 * caller creates the QP. */
	int (*place)(struct ctl_client *cl, uint8_t kind, uint8_t type);
};

/* Returns whether this is a host connection: its peer is another host, not a QP. */
static inline bool
cm_is_host(const struct cm_conn *conn)
{
	return conn->qp->host != NULL;
}

/* Returns the cookie that names the connection, and the present one of its attempts, in messages of
 * the other stages. It is never 0. */
static inline uint64_t
cm_conn_cookie(const struct cm_conn *conn)
{
	return (uint64_t)conn->attempt << 48 | (uint64_t)(uint16_t)conn->generation << 32 |
	       (conn->slot + 1);
}

/* Returns the connection with that cookie, whichever of its attempts the cookie names, or NULL when
 * it has been freed. */
static inline struct cm_conn *
cm_conn_of_cookie(const struct eng_control *c, uint64_t cookie)
{
	struct cm_conn *conn = NULL;

	if ((uint32_t)cookie != 0)
		conn = ctl_table_get(&c->conns, (uint32_t)cookie - 1);
	return conn != NULL && (uint16_t)conn->generation == (uint16_t)(cookie >> 32) ? conn : NULL;
}

/* Returns the connection whose present attempt has that cookie, or NULL. Notices of a transport
 * stage may be deferred, while a command to reset the QP and those that connect it again are
 * executed: a late notice is about an attempt that has ended. */
static inline struct cm_conn *
cm_conn_of_attempt(const struct eng_control *c, uint64_t cookie)
{
	struct cm_conn *conn = cm_conn_of_cookie(c, cookie);

	return conn != NULL && conn->attempt == cookie >> 48 ? conn : NULL;
}

#endif
