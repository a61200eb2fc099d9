/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's own side of what clients hold handles of. The control stage creates and frees these;
 * from ENG_CE_*_ADD to the answer of ENG_CE_*_DEL the fields under "engine stage" belong to the
 * object's stage alone. Nothing here is visible to a client.
 */
#ifndef SAKER_ENGINE_OBJECTS_H
#define SAKER_ENGINE_OBJECTS_H

#include <sys/queue.h>

#include "../../rdma/rdma.h"
#include "../../shm/shm.h"
#include "../../shm/shm_ring.h"

struct iw_qp;
struct rof_chan;
struct rof_qp;
struct eng_qp;
struct eng_qp_ops;

/* A mapped region of a client: the home region, or memory that it brought. */
struct eng_region {
	uint8_t *base; /* NULL: no such region */
	uint64_t size;
	int fd;       /* -1: not ours (flat), or closed */
	int guard;    /* against SIGBUS, or -1 */
	uint32_t mrs; /* regions registered in it */
	bool sparse;  /* what is registered in it counts, not its size */
};

struct eng_client {
	uint32_t index; /* client number */
	char name[SHM_NAME_MAX];
	uint8_t *home;             /* mapped home region */
	struct shm_header *header; /* written at attach, never read */
	int wake_fd;               /* eventfd that wakes the client, or -1 */
	bool dead; /* atomic: put out (SIGBUS, nonsense, death); its rings are no longer looked at
		    */
	/* engine stages, an own line each: */
	struct eng_client_stage {
		_Alignas(64) struct shm_take doorbell;
		struct shm_prod event;
		bool added, cold;
		uint32_t quiet; /* turns without a doorbell */
		/* By QP handle: filled by ENG_CE_QP_ADD. [qps] */
		struct eng_qp **qps;
		uint32_t nqps;
		struct eng_ah **ahs; /* by handle, likewise, on ENG_DATAGRAM_STAGE; [nahs] */
		uint32_t nahs;
		TAILQ_ENTRY(eng_client_stage) next;
		struct eng_client *client;
	} stage[SHM_MAX_STAGES];
	void *control; /* the control stage's part: tables of handles, heap, mailbox rings, quotas
			*/
};

struct rd_cq {
	struct eng_client *client;
	uint32_t handle;
	struct shm_cq *shared;
	uint32_t refs; /* QPs; control stage */
	struct {
		_Alignas(64) struct shm_prod ring; /* engine stage's */
		bool overflow, told;               /* of it */
		bool touched;   /* produced into in this turn: look at its arm state at the end */
		bool solicited; /* one of these completions was, or failed */
		bool owed;      /* an event that did not fit the event ring */
		struct rd_cq *next_touched;
	} sub[SHM_MAX_STAGES];
};

/* An XRC domain. */
struct eng_xrcd {
	uint8_t stage; /* its home: of its receive QPs and queues */
};

struct rd_srq {
	struct eng_client *client;
	uint32_t handle, stage;
	const struct rd_pd *pd;
	uint32_t refs, depth, max_sge;
	/* XRC */
	const struct eng_xrcd *xrcd; /* NULL: it is none */
	uint32_t number;
	struct rd_cq *cq;
	/* engine stage's: */
	struct shm_take rq;
	uint32_t limit; /* ENG_EC_SRQ_LIMIT is due when fewer are left; 0: no */
	bool queued;    /* it is due: in s->pending_srqs */
	TAILQ_ENTRY(rd_srq) pend;
	struct rd_srq *next; /* of s->xrc_srqs */
};

/* Datagram QPs and all that they share live on this engine stage. */
#define ENG_DATAGRAM_STAGE 0

/* The connection of two hosts, for datagrams. It has an eng_qp without queues. Engine stage's. */
struct eng_host {
	struct sk_addr laddr, raddr; /* raddr is known from the beginning, laddr while it is open */
	uint64_t packets;            /* that have come; the control stage reads it */
	bool open;
};

struct eng_ah {
	const struct rd_pd *pd;
	struct eng_qp *host;
};

struct eng_qp {
	struct rd_qp rd; /* rd.user is this */
	struct eng_client *client;
	uint32_t handle; /* the client's */
	uint8_t stage;   /* its home */
	/* engine stage */
	uint8_t transport;
	bool active;                  /* in the stage's list of QPs with work */
	bool connected;               /* conn is valid */
	uint32_t conn;                /* index at the transport stage */
	uint32_t index;               /* at the engine stage */
	uint8_t kind;                 /* enum eng_kind; fixed */
	const struct eng_qp_ops *ops; /* its kind's; set by ENG_CE_QP_ADD */
	uint8_t type;                 /* enum shm_qp_type; fixed */
	const struct eng_xrcd *xrcd;  /* SHM_XRC_RECV */
	struct eng_host *host;        /* it is a connection of hosts; else NULL */
	struct eng_qp *next_number;   /* SHM_UD: of s->datagram_qps */
	union {
		struct iw_qp *iw;
		struct rof_qp *rof;
	};
	struct rof_chan *chan; /* Falcon: while it is connected */
	struct shm_qp *shared;
	struct shm_take sq, rq;
	TAILQ_ENTRY(eng_qp) next;
	uint16_t pending;  /* enum eng_qp_pending (stage_priv.h): what could not be sent yet */
	bool queued;       /* in the stage's list of QPs with something pending */
	uint32_t consumed; /* stream bytes to be told to the transport stage */
	int code, ended;   /* what ENG_EC_QP_FATAL and ENG_EC_DISCONNECTED are to say */
	uint32_t sq_shown; /* sq.next as the client sees it */
	/* Modified by the program: that it waits for its connection was told; its peer has gone. */
	bool modified, waits, lost;
	TAILQ_ENTRY(eng_qp) pend;
	/* ENG_CE_QP_DEL or ENG_CE_QP_RESET, which waits for ENG_E_CLOSED */
	struct eng_ctl *deleting;
	/* control stage */
	void *control;
};

#endif
