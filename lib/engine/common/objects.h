/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's private state of the objects that clients name by handles. The control stage creates
 * and frees the objects. From ENG_CE_*_ADD to the answer of ENG_CE_*_DEL, only the engine stage of
 * an object accesses the fields under "engine stage". Clients cannot access this memory.
 */
#ifndef SAKER_ENGINE_OBJECTS_H
#define SAKER_ENGINE_OBJECTS_H

#include <sys/queue.h>

#include "../../base/wheel.h"
#include "../../rdma/rdma.h"
#include "../../shm/shm_msg.h"
#include "../../shm/shm_ring.h"
#include "../engine.h"
#include "msg.h"

struct iw_qp;
struct rof_chan;
struct rof_qp;
struct eng_qp;
struct eng_qp_ops;
struct eng_stage_user;
struct eng_waker;
struct rd_cq;
struct rd_srq;

TAILQ_HEAD(eng_qp_list, eng_qp);
TAILQ_HEAD(eng_cq_list, rd_cq);
TAILQ_HEAD(eng_srq_list, rd_srq);

/* A place in a round robin of the engine stage: a user among the users, or a client among the
 * clients of its user. The unit of credit is a byte that is sent. */
struct eng_round {
	TAILQ_ENTRY(eng_round) next;
	bool queued;     /* in the list: it has work and is within its rate */
	bool over_rate;  /* over its rate until `timer` fires */
	int64_t credit;  /* positive: it is served before its next turn in the list */
	int64_t quantum; /* credit of each turn in the list: ENG_ROUND_QUANTUM times the weight */
	/* The prices of a byte and of a message in units of 2^-32 ns (0: no limit), and for both
	 * limits the time until which everything sent is paid for (ns and 2^-32 ns). */
	uint64_t price[2], paid[2];
	uint32_t paid_part[2];
	struct sk_timer timer;
};
TAILQ_HEAD(eng_round_list, eng_round);

/* A mapped region of a client: its home region, or memory that it has registered. */
struct eng_region {
	uint8_t *base; /* NULL: no such region */
	uint64_t size; /* bytes */
	int fd;        /* -1: closed, or the region of a flat client, which has no descriptor */
	int guard;     /* number that eng_guard() returned, or -1 */
	uint32_t page; /* bytes of its pages; 0: a flat client's region */
	uint32_t mrs;  /* memory regions that are registered in it */
	bool sparse;   /* the quota counts the registered bytes instead of `size` */
};

struct eng_client {
	uint32_t index; /* client number */
	/* The number of its user (a user ID or a machine), 1 to limits.clients: the holder of the
	 * client's share of each pool. Constant. */
	uint16_t user;
	char name[SHM_NAME_MAX];
	uint8_t *home;             /* mapped home region */
	struct shm_header *header; /* written when the client attaches, never read */
	int wake_fd;               /* socket that wakes the client, or -1 */
	struct eng_waker *waker;   /* NULL: wake-ups of the client never take long */
	/* Atomic. The client is removed (after SIGBUS, an invalid entry, or its end): no stage
	 * polls its rings any more. */
	bool dead;
	/* [nstages], each on cache lines of its own */
	struct eng_client_stage {
		_Alignas(64) struct shm_take doorbell;
		struct shm_prod event;
		bool added, cold; /* cold: polled in every 64th turn only */
		uint32_t quiet;   /* turns without a doorbell */
		uint32_t cold_at; /* cold: index in the stage's `cold` */
		/* The place among the clients of the user, and the QPs that may have work to send
		 * (stage_round.c). */
		struct eng_round round;
		struct eng_stage_user *user;
		struct eng_qp_list active;
		/* CQs whose events wait until the event ring has room (stage_cq.c). */
		struct eng_cq_list event_cqs;
		TAILQ_ENTRY(eng_client_stage) event_next;
		STAILQ_ENTRY(eng_client_stage) wake_next;
		/* Objects that wait for a free notice, and notices about the client itself
		 * (stage_notice.c). */
		struct eng_qp_list notice_qps;
		struct eng_cq_list notice_cqs;
		struct eng_srq_list notice_srqs;
		TAILQ_ENTRY(eng_client_stage) notice_next;
		bool events_pending, noticing; /* in s->event_clients, in s->noticing */
		bool wake;                     /* in s->wakes */
		bool mailbox, bad;             /* ENG_EC_MAILBOX, ENG_EC_CLIENT_BAD are pending */
		bool mailbox_out;              /* the control stage holds ENG_EC_MAILBOX */
		bool put_out;                  /* ENG_EC_CLIENT_BAD was requested */
		uint32_t bad_doorbells;        /* since bad_since, ns */
		uint64_t bad_since;
		/* Doorbells and visits without work since the last one with work, at most 255. */
		uint8_t useless;
		/* [nqps], by the handle of the QP; ENG_CE_QP_ADD fills it in. */
		struct eng_qp **qps;
		uint32_t nqps;
		/* [nahs], by handle; ENG_CE_AH_ADD fills it in. The control stage allocates it
		 * before the first datagram QP or address handle of the client on the stage. */
		struct eng_ah **ahs;
		uint32_t nahs;
		TAILQ_ENTRY(eng_client_stage) next;
		struct eng_client *client;
	} * stage;
	/* The limits of this client alone, and those of all clients of its user together.
	 * Constant. */
	struct eng_rates rates, user_rates;
	/* control stage: tables of handles, heap, mailbox rings, quotas */
	void *control;
};

struct rd_cq {
	struct eng_client *client;
	uint32_t handle;
	struct shm_cq *shared;
	uint32_t refs; /* control stage: QPs and SRQs that use the CQ */
	/* [nstages]; engine stage s: sub[s], after the control stage has made its ring */
	struct eng_cq_sub {
		/* of completions; entries NULL: no queue of the stage uses the CQ */
		_Alignas(64) struct shm_prod ring;
		uint32_t number; /* of the ring in shared->sub */
		uint32_t piece;  /* control stage: of the home region's heap, in which it is */
		/* A completion found no free entry; ENG_EC_CQ_OVERFLOW waits for a notice. */
		bool overflow, noticing;
		/* touched: the stage wrote a completion in this turn, and checks at its end whether
		 * the CQ is armed. event_pending: its event waits for room in the event
		 * ring. */
		bool touched, event_pending;
		bool solicited; /* a completion since the last check is solicited or has failed */
		TAILQ_ENTRY(rd_cq) next;   /* in s->touched, or in the client's list event_cqs */
		TAILQ_ENTRY(rd_cq) notice; /* in the client's list notice_cqs */
	} sub[];
};

/* An XRC domain. */
struct eng_xrcd {
	uint8_t stage; /* the engine stage of its receive QPs and SRQs */
};

struct rd_srq {
	struct eng_client *client;
	uint32_t handle, stage;
	const struct rd_pd *pd;
	uint32_t refs, depth, max_sge;
	/* XRC */
	const struct eng_xrcd *xrcd; /* NULL: not an XRC SRQ */
	uint32_t number;             /* the SRQ number that the peer addresses */
	struct rd_cq *cq;
	/* engine stage */
	struct shm_take rq;
	uint32_t limit; /* below this many receive requests, ENG_EC_SRQ_LIMIT is sent; 0: never */
	bool queued;    /* ENG_EC_SRQ_LIMIT is pending: the SRQ is in the client's notice_srqs */
	TAILQ_ENTRY(rd_srq) pend;
};

/* A host connection. It belongs to an eng_qp without queues, on the engine stage. */
struct eng_host {
	struct sk_addr laddr, raddr; /* laddr is valid while the connection is open */
	uint64_t packets;            /* received packets; the control stage reads it */
	bool open;
	bool ordered; /* the datagrams arrive in the order in which they were sent; constant */
};

struct eng_ah {
	const struct rd_pd *pd;
	struct eng_qp *host;
};

/* The fields that the engine stage uses for each message come first, in three cache lines, of which
 * received messages use two: with thousands of QPs that take turns, each line is a cache miss. */
struct eng_qp {
	_Alignas(64) struct rd_qp rd;
	/* engine stage */
	const struct eng_qp_ops *ops; /* the functions of `kind`; set by ENG_CE_QP_ADD */
	/* The client that pays for the work of the QP; of a host connection: s->own. */
	struct eng_client_stage *payer;
	union {
		struct iw_qp *iw;
		struct rof_qp *rof;
	};
	struct rof_chan *chan; /* Falcon: not NULL while the QP is connected */
	uint16_t pending;      /* enum eng_qp_pending (stage_priv.h): messages not sent yet */
	uint8_t queued;        /* enum eng_qp_queue: the list of `pend` */
	uint8_t active;        /* enum eng_qp_place (stage_priv.h) */
	uint8_t type;          /* enum shm_qp_type; constant */
	uint8_t transport;
	uint8_t stage;  /* the engine stage that owns the QP */
	bool connected; /* `conn` is valid */
	bool whole;     /* `u` of the next ENG_T_CONSUMED */
	/* The program modifies the QP; the QP has work and no connection, and ENG_EC_QP_WAITS is
	 * sent or pending; its connection has ended. */
	bool modified, waits, lost;
	uint32_t conn;     /* index of the connection on the transport stage */
	uint32_t consumed; /* stream bytes of the next ENG_T_RECORD or ENG_T_CONSUMED */
	uint32_t sq_shown; /* the value of sq.next that the client can read */
	struct shm_take sq;
	TAILQ_ENTRY(eng_qp) next;
	struct shm_qp *shared;
	/* ENG_CE_QP_DEL or ENG_CE_QP_RESET, which is answered after ENG_E_CLOSED; or NULL */
	struct eng_ctl *deleting;

	struct shm_take rq;
	struct eng_client *client;
	uint32_t handle; /* by which the client names the QP */
	uint32_t index;  /* index of the QP on the engine stage */
	TAILQ_ENTRY(eng_qp) pend;
	struct eng_host *host;       /* of a host connection; NULL for any other QP */
	const struct eng_xrcd *xrcd; /* SHM_XRC_RECV: its domain */
	int code, ended; /* the reason in ENG_EC_QP_FATAL, the status in ENG_EC_DISCONNECTED */
	uint8_t kind;    /* enum eng_kind; constant */
	bool drains;     /* ENG_CE_QP_RESET discards what is in the queues: at most so much more */
	uint32_t drain_sq, drain_rq;
	struct eng_work summed; /* the part of its counters that the stage's totals contain */
	/* control stage */
	void *control;
};
_Static_assert(offsetof(struct eng_qp, rd) == 0, "eng_qp_of()");
_Static_assert(offsetof(struct eng_qp, sq) == 128 && offsetof(struct eng_qp, rq) == 192,
	"the cache lines that received messages and all messages use");

#endif
