/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection, as the connection manager sees it. A QP of a client has one; so has the connection
 * of two hosts, which their datagrams share and which no client owns. The registry creates and
 * frees connections with the objects that have them; their life between is lib/engine/control/cm.
 */
#ifndef SAKER_ENGINE_CONTROL_CONN_H
#define SAKER_ENGINE_CONTROL_CONN_H

#include "core.h"

enum cm_state {
	CM_IDLE,
	CM_CONNECTING,      /* ENG_CT_CONNECT is not answered */
	CM_OPENING,         /* the transport stage is connecting */
	CM_STARTING,        /* active: ENG_CE_QP_START is not answered */
	CM_BINDING,         /* active: ENG_CT_BIND is not answered */
	CM_ACCEPT_STARTING, /* passive: ENG_CE_QP_START is not answered */
	CM_ACCEPTING,       /* passive: ENG_CT_ACCEPT is not answered */
	CM_WAIT_PEER,       /* passive: ENG_TC_ESTABLISHED has not come */
	CM_ESTABLISHED,
	CM_CLOSED,   /* the stream has ended; the connection is not used again */
	CM_ABORTING, /* ENG_CT_ABORT is not answered */
	CM_DELETING, /* ENG_CE_QP_DEL is not answered */
	/* of QPs that the program modifies: */
	CM_WAITING,    /* no attempt is in progress */
	CM_GIVING_WAY, /* ENG_CT_ABORT is not answered, then `request` is accepted */
	CM_RESETTING,  /* ENG_CE_QP_RESET is not answered (of any QP) */
	CM_STATES
};

struct cm_conn {
	struct eng_qp *qp;          /* the engine's QP */
	struct ctl_client *client;  /* NULL: the connection of two hosts */
	uint32_t slot, generation;  /* its cookie: cm_conn_cookie() */
	uint32_t qp_index;          /* at its engine stage */
	uint32_t conn;              /* at its transport stage */
	uint8_t state;              /* enum cm_state */
	uint8_t transport;          /* its transport stage */
	bool dying;                 /* to be deleted as soon as the state allows */
	bool ended;                 /* ENG_EC_DISCONNECTED came before its time */
	bool draft_ext;             /* iWARP: the client requests that dialect */
	int end_status;             /* why it ended, or why it could not start */
	uint16_t ird, ord;          /* agreed on */
	struct ctl_op *op;          /* the command that destroys the QP, or NULL */
	struct ctl_op *reset;       /* the command that resets it, or NULL */
	struct ctl_event *outcome;  /* for the client, when the connection is bound */
	struct cm_request *request; /* that it is accepting */
	/* ENG_TC_FAILED that may go back only behind the last command about the connection. */
	struct eng_ctl *held;
	/* Frees the object that has the connection: nothing of it is in flight. */
	void (*free)(struct eng_control *c, struct cm_conn *conn);
	/* Modified by the program, that is by ibv_modify_qp(): */
	bool modified;           /* to RTR, naming its peer */
	bool given_up;           /* no attempt follows */
	bool waits;              /* there is work */
	bool unopened;           /* the connection that has ended had never carried anything */
	struct shm_qp_move move; /* what the program has set; its state: the last one, or RESET */
	struct sk_timer timer;
	/* Times, ns: of the next attempt and the pause behind it; the ends of the attempt in
	 * progress and of the time that the peer has. */
	uint64_t attempt_at, pause, attempt_end, patience_end;
};

/* What the registry needs of the connection manager. */
struct ctl_conn_ops {
	/* conn->dying or conn->reset is set: ends the connection, as soon as its state allows. */
	void (*leave)(struct eng_control *c, struct cm_conn *conn);
	/* The connection is about to be freed: stops its timer, frees its request. */
	void (*forget)(struct eng_control *c, struct cm_conn *conn);
};

/* The peer of a host's connection is another host, not a QP. */
static inline bool
cm_is_host(const struct cm_conn *conn)
{
	return conn->qp->host != NULL;
}

/* Returns the number by which the other stages' answers name the connection; never 0. */
static inline uint64_t
cm_conn_cookie(const struct cm_conn *conn)
{
	return (uint64_t)conn->generation << 32 | (conn->slot + 1);
}

/* Returns the connection of a cookie, or NULL when it has been freed. */
static inline struct cm_conn *
cm_conn_of_cookie(const struct eng_control *c, uint64_t cookie)
{
	struct cm_conn *conn = NULL;

	if ((uint32_t)cookie != 0)
		conn = ctl_table_get(&c->conns, (uint32_t)cookie - 1);
	return conn != NULL && conn->generation == cookie >> 32 ? conn : NULL;
}

#endif
