/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control stage from within: what it keeps about clients, their objects, and the messages under
 * way to other stages. Everything here belongs to the thread that polls the control stage, but for
 * what says otherwise.
 */
#ifndef SAKER_ENGINE_REGISTRY_PRIV_H
#define SAKER_ENGINE_REGISTRY_PRIV_H

#include <sys/queue.h>

#include "../../../base/mem.h"
#include "../../../base/wheel.h"
#include "../../common/objects.h"
#include "../control.h"
#include "../core/heap_priv.h"

#define CTL_POOL 1024 /* commands to all stages that may wait for an answer or for their turn */
#define CTL_RESERVE                                                                                \
	256 /* of them kept for connections; clients' commands and reaping wait meanwhile */
#define CTL_BACKLOG         2048 /* pool and unasked messages fit in: a power of two */
#define CTL_BATCH           64   /* most messages of one ring, and clients' commands, in a turn */
#define CTL_CLIENT_COMMANDS 16   /* of one client, unanswered */
#define CTL_CLIENT_REQUESTS                                                                        \
	1024 /* connect requests that wait for one client's answer: a power of two */
#define CTL_CLIENT_EVENTS 4096 /* queued events, besides three for each QP */
#define CTL_REQUEST_NS                                                                             \
	(10ull * 1000 * 1000 * 1000) /* until a request that nobody answers is refused */
#define CTL_PEEK_NS         (10ull * 1000 * 1000) /* between looks into all mailboxes */
#define CTL_REQUEST_HASH    1024
#define CTL_BACKLOG_DEFAULT 128

struct ctl_client;
struct ctl_qp;
struct ctl_msg;
struct ctl_op;
struct cm_listener;
struct cm_request;

/* ---- Handles ---- */

/* Small numbers for objects. A freed number is used again as late as possible, so that what is
 * still on its way about an old object does not hit a new one. */
struct ctl_table {
	void **slot;     /* [cap] */
	uint32_t *queue; /* freed numbers, oldest first: [cap], a ring */
	uint32_t cap, fresh, used, head, nfreed;
};

int ctl_table_init(struct ctl_table *t, uint32_t cap);
void ctl_table_fini(struct ctl_table *t);
/* A number for `object`, or -ENOSPC. */
int64_t ctl_table_add(struct ctl_table *t, void *object);
void ctl_table_del(struct ctl_table *t, uint32_t number);

static inline void *
ctl_table_get(const struct ctl_table *t, uint32_t number)
{
	return number < t->fresh ? t->slot[number] : NULL;
}

/* ---- Objects that only the control stage knows ---- */

struct ctl_pd {
	struct rd_pd rd;
	uint32_t handle;
};

/* What a stage may have looked up by STag: freed when every loop has passed a quiet point. */
struct ctl_retiree {
	TAILQ_ENTRY(ctl_retiree) next;
	struct ctl_client *client;
	struct ctl_op *op; /* the command that destroys it, or NULL */
	uint64_t token;    /* of the quiescent state that it waits for */
	void (*free)(struct eng_control *c, struct ctl_retiree *r);
};

struct ctl_mr {
	struct ctl_retiree end; /* first */
	struct rd_mr rd;
	uint32_t handle;
	uint32_t regions[SHM_MAX_EXTENTS]; /* region of each extent, as counted */
	struct rd_extent extents[];
};

struct ctl_mw {
	struct ctl_retiree end; /* first */
	struct rd_mw rd;
	uint32_t handle;
};

struct ctl_cq {
	struct rd_cq eng; /* first: CQs are cache-line aligned */
	uint32_t piece, depth;
	bool dying;
};

struct ctl_srq {
	struct rd_srq eng;
	uint32_t piece;
	struct ctl_xrcd_ref *xrcd; /* XRC: as its client opened it */
	uint32_t slot;             /* XRC: in c->xrc_srqs */
	bool dying;
};

struct ctl_xrcd {
	struct eng_xrcd eng;
	TAILQ_ENTRY(ctl_xrcd) all;
	uint64_t tenant, dev, ino;
	uint32_t opens;
};

struct ctl_ah {
	struct eng_ah eng;
	struct ctl_host *host;
	uint32_t handle;
	bool dying;
};

/* An XRC domain, as one client has opened it. */
struct ctl_xrcd_ref {
	struct ctl_xrcd *domain;
	uint32_t handle;
	uint32_t users; /* the client's QPs and receive queues in it */
};

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
	CM_CLOSED,   /* the stream has ended; not to be used again */
	CM_ABORTING, /* ENG_CT_ABORT is not answered */
	CM_DELETING, /* ENG_CE_QP_DEL is not answered */
	/* Moved by hand: */
	CM_WAITING,    /* no attempt is under way */
	CM_GIVING_WAY, /* ENG_CT_ABORT is not answered, then `request` is accepted */
	CM_RESETTING,  /* ENG_CE_QP_RESET is not answered (of any QP) */
	CM_STATES
};

struct ctl_qp {
	struct eng_qp eng;
	struct ctl_client *client;
	uint32_t slot, generation; /* its cookie */
	uint32_t piece;
	uint32_t index; /* at its engine stage */
	uint32_t conn;
	uint8_t cm; /* enum cm_state */
	uint8_t transport;
	bool added;     /* ENG_CE_QP_ADD was answered well */
	bool dying;     /* to be deleted as soon as the state allows */
	bool ended;     /* ENG_EC_DISCONNECTED came before its time */
	int end_status; /* why it ended, or why it could not start */
	bool draft_ext; /* the client wants that dialect */
	uint16_t ird, ord;
	struct ctl_op *op;           /* the command that destroys it, or NULL */
	struct ctl_event *outcome;   /* what the client will be told when the connection is bound */
	struct cm_request *request;  /* that it is accepting */
	struct ctl_host *host;       /* that it is the connection of; else NULL */
	struct ctl_xrcd_ref *xrcd;   /* SHM_XRC_RECV */
	LIST_HEAD(, ctl_qp) openers; /* handles of others for it */
	/* SHM_QP_OPEN: this is but a handle for another client's QP (NULL: which has gone), and
	 * nothing else of it means anything. */
	bool is_opened;
	struct ctl_qp *opens;
	LIST_ENTRY(ctl_qp) opener;
	struct eng_ctl *held; /* ENG_TC_FAILED that may go back only behind our last command about
				 the connection */
	struct ctl_op *reset; /* the command that resets it, or NULL */
	/* Moved by hand: */
	bool by_hand;            /* to RTR, naming its peer */
	bool given_up;           /* no attempt follows */
	bool waits;              /* there is work */
	bool unopened;           /* what has ended had never carried anything */
	struct shm_qp_move move; /* what the program has said; its state: the last move, or RESET */
	struct sk_timer timer;
	/* The next attempt, and how long it is waited for then; the end of the one under way; of
	 * the time that the peer has. */
	uint64_t attempt_at, pause, attempt_end, patience_end;
};

/* The connection of two hosts, for datagrams. */
struct ctl_host {
	struct ctl_qp q; /* first; it has no queues and belongs to c->own */
	struct eng_host eng;
	LIST_ENTRY(ctl_host) all;
	uint32_t refs;          /* address handles */
	uint64_t packets, seen; /* that had come, and when that was so */
};

/* ---- What goes to a client ---- */

struct ctl_event {
	STAILQ_ENTRY(ctl_event) next;
	uint32_t body_len;
	_Alignas(struct shm_msg)
		uint8_t msg[]; /* a struct shm_msg with body_len bytes of its body */
};

/* All that an operation waited for has come; `last` is the last answer. */
typedef void ctl_finish(struct eng_control *c, struct ctl_op *op, const struct eng_ctl *last);

/* A command whose reply waits for other stages. */
struct ctl_op {
	TAILQ_ENTRY(ctl_op) all;
	struct ctl_client *client;
	void *object;
	unsigned waiting; /* answers */
	int status;       /* the first refusal among them */
	ctl_finish *finish;
	struct shm_msg reply;
	bool quiet; /* nobody waits for the reply: part of reaping */
};

enum ctl_phase {
	CTL_ADDING, /* ENG_CE_CLIENT_ADD is not answered by all */
	CTL_LIVE,
	CTL_REAP_QPS,    /* listeners, requests and QPs go */
	CTL_REAP_QUEUES, /* SRQs and CQs go */
	CTL_REAP_CLIENT, /* the stages forget the client */
	CTL_REAP_MRS,    /* memory windows and regions go and wait for quiescence */
	CTL_GONE,
};

struct ctl_client {
	struct eng_client eng; /* first: cache-line aligned */
	struct eng_control *control;
	TAILQ_ENTRY(ctl_client) all, rung, late; /* late: those with queued events */
	enum ctl_phase phase;
	bool added; /* in the list of all */
	bool has_rung;
	unsigned waiting;      /* answers that the phase waits for */
	uint32_t step, walk;   /* where the phase's walks are */
	uint32_t nregions;     /* brought */
	uint64_t sparse_bytes; /* atomic; registered in regions that are sparse */
	uint32_t commands;     /* unanswered */
	struct shm_take cmd;
	struct shm_prod evt;
	STAILQ_HEAD(, ctl_event) events;
	uint32_t nevents;
	struct heap heap;
	struct eng_region region[SHM_MAX_REGIONS];
	uint64_t heap_at;         /* offset of the heap in the home region */
	uint64_t mem_at, mem_len; /* of the client's own memory in it */
	struct ctl_table pds, mrs, mws, cqs, srqs, xrcds, ahs, qps, listeners, requests;
	uint64_t tenant; /* whose it is: clients of one tenant may share XRC domains */
	uint16_t request_generation;
	uint32_t retiring; /* MRs and MWs that wait for quiescence */
	/* The socket's thread: */
	void *socket;                           /* its connection; NULL: flat */
	struct eng_region map[SHM_MAX_REGIONS]; /* what it has mapped */
	uint64_t dropped; /* atomic; bit: region that the control stage has let go */
	struct ctl_client *next_gone;
};

/* ---- What comes from other threads ---- */

enum ctl_inbox_kind { CTL_IN_ADD, CTL_IN_DETACH, CTL_IN_REGION, CTL_IN_QUERY };

struct ctl_inbox {
	struct ctl_inbox *next;
	enum ctl_inbox_kind kind;
	struct ctl_client *client;
	uint32_t number; /* CTL_IN_DETACH: client; CTL_IN_REGION: region */
	struct eng_region region;
	struct ctl_query *query;
};

/* From any thread; the control stage frees it. */
void ctl_inbox_push(struct eng_control *c, struct ctl_inbox *in);
/* The control stage's: works it off. */
bool ctl_inbox_poll(struct eng_control *c);

/* To the socket's thread: nothing of the client is left but its memory; or something was dropped.
 */
void ctl_gone_push(struct eng_control *c, struct ctl_client *cl);
void ctl_wake_socket(struct eng_control *c);

/* ---- Messages to stages ---- */

typedef void (*ctl_done)(struct eng_control *c, struct ctl_msg *m);

struct ctl_msg {
	struct eng_ctl m; /* first: what travels */
	ctl_done done;    /* called with the answer; the message is freed behind it */
	struct ctl_msg *next;
	struct ctl_op *op;
	struct ctl_client *client;
	struct ctl_query *query;
};

struct ctl_target {
	struct rte_ring *to, *from;
	uint32_t under_way; /* commands that are not answered */
	uint32_t head, tail;
	struct eng_ctl **backlog; /* [CTL_BACKLOG]: in order, what the ring has not yet taken */
	uint32_t unasked_head, unasked_tail;
	struct eng_ctl *unasked[ENG_CTL_UNASKED]; /* that wait for a free message: a ring */
};

struct eng_control {
	struct eng_control_args a;
	const struct eng_config *cfg;
	uint64_t now, next_peek;
	struct ctl_target transport[ENG_MAX_TRANSPORTS], stage[ENG_MAX_STAGES];
	struct ctl_msg *pool, *spare;
	uint32_t nspare;
	struct ctl_client **clients; /* [limits.clients]; slots are taken and given back atomically,
					by any thread */
	TAILQ_HEAD(ctl_clients, ctl_client) all, rung, late;
	TAILQ_HEAD(, ctl_op) ops;
	uint32_t reaping, sigbus_seen;
	struct ctl_table qps, listeners, xrc_srqs; /* of the whole instance */
	uint32_t *srq_generation;                  /* per number */
	struct sk_key srqn_key;
	TAILQ_HEAD(, ctl_xrcd) xrcds;
	struct ctl_client *own; /* whose the connections of hosts are; in no list */
	LIST_HEAD(, ctl_host) hosts;
	uint64_t hosts_look; /* when to look for unused ones */
	uint32_t ud_qps;
	uint32_t *qp_generation, *listener_generation; /* per number */
	struct sk_key qpn_key;
	struct sk_wheel wheel; /* ctl_qp.timer */
	bool turning;          /* the wheel has begun */
	uint64_t stag_keys;    /* how many were given */
	uint32_t stage_qps[ENG_MAX_STAGES];
	struct eng_totals totals;
	TAILQ_HEAD(, ctl_retiree) retiring;
	TAILQ_HEAD(, cm_request) waiting; /* requests, oldest first */
	LIST_HEAD(cm_request_bucket, cm_request) *
		requests;                     /* [CTL_REQUEST_HASH], by transport and conn */
	struct ctl_inbox *inbox;              /* atomic; newest first */
	struct ctl_inbox *taken, **taken_end; /* oldest first */
	TAILQ_HEAD(, ctl_query) queries;
	struct ctl_client *gone; /* atomic: for the socket's thread to unmap */
	int sock_fd;             /* eventfd that wakes it, or -1; atomic */
	uint64_t counters[eng_reason_count];
	struct eng_socket *socket;
};

/* NULL when none is free. `done` may be NULL. */
struct ctl_msg *ctl_msg_get(struct eng_control *c, enum eng_ctl_type type, ctl_done done);
void ctl_send_transport(struct eng_control *c, unsigned transport, struct ctl_msg *m);
void ctl_send_stage(struct eng_control *c, unsigned stage, struct ctl_msg *m);
/* A message that a transport or an engine stage has sent unasked goes home, behind all that was
 * sent to it before. */
void ctl_return(struct eng_control *c, struct ctl_target *t, struct eng_ctl *m);
bool ctl_rings_poll(struct eng_control *c);
static inline bool
ctl_has_reserve(const struct eng_control *c)
{
	return c->nspare > CTL_RESERVE;
}

/* ---- To the client: control_event.c ---- */

/* `body_len` bytes of msg->body count. */
void ctl_tell(
	struct eng_control *c, struct ctl_client *cl, const struct shm_msg *msg, uint32_t body_len);
struct ctl_event *ctl_event_new(const struct shm_msg *msg, uint32_t body_len);
void ctl_tell_event(struct eng_control *c, struct ctl_client *cl, struct ctl_event *ev);
bool ctl_events_flush(struct eng_control *c, struct ctl_client *cl);
void ctl_events_drop(struct eng_control *c, struct ctl_client *cl);
void ctl_tell_async(
	struct eng_control *c, struct ctl_client *cl, enum shm_op op, uint32_t object, int code);
void ctl_wake_client(const struct ctl_client *cl);

/* ---- Commands: control_cmd.c ---- */

#define CTL_LATER 1 /* a handler's result: the reply comes by itself */

/* `m` is the copy that the client cannot reach; a result of 0 sends it back as the reply. */
typedef int ctl_handler(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m);
/* Writes the sentence, counts, returns `status`. */
int ctl_refuse(struct eng_control *c, struct shm_msg *m, int status, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int ctl_refuse_quota(struct eng_control *c, struct shm_msg *m, const char *what, uint32_t most);
/* The same where it is all clients together that have so many: -ENOSPC. */
int ctl_refuse_all(struct eng_control *c, struct shm_msg *m, const char *what, uint32_t most);
/* Executes one command of a client, already copied. */
void ctl_command(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m);
/* Takes what the mailbox holds, within bounds. Returns whether there may be more. */
bool ctl_mailbox_poll(struct eng_control *c, struct ctl_client *cl);
void ctl_ring_client(struct eng_control *c, struct ctl_client *cl);

/* `m` NULL: quiet. NULL: no memory. */
struct ctl_op *ctl_op_new(struct eng_control *c, struct ctl_client *cl, const struct shm_msg *m,
	void *object, ctl_finish *finish);
void ctl_op_free(struct eng_control *c, struct ctl_op *op);
/* Sends `m` as part of `op`; to a transport or an engine stage. */
void ctl_op_send_transport(
	struct eng_control *c, struct ctl_op *op, unsigned transport, struct ctl_msg *m);
void ctl_op_send_stage(struct eng_control *c, struct ctl_op *op, unsigned stage, struct ctl_msg *m);
/* Replies (unless quiet) and frees it. */
void ctl_op_reply(struct eng_control *c, struct ctl_op *op);

ctl_handler ctl_query_device, ctl_pd_create, ctl_pd_destroy, ctl_mr_create, ctl_mr_destroy,
	ctl_mw_create, ctl_mw_destroy, ctl_cq_create, ctl_cq_destroy, ctl_srq_create,
	ctl_srq_destroy, ctl_ah_create, ctl_ah_destroy, ctl_srq_modify, ctl_xrcd_open,
	ctl_xrcd_close, ctl_qp_open, ctl_qp_create, ctl_qp_modify, ctl_qp_query, ctl_qp_destroy,
	ctl_region_drop;

/* ---- Objects: registry_*.c ---- */

struct ctl_pd *ctl_pd_find(const struct ctl_client *cl, uint32_t handle);
struct ctl_cq *ctl_cq_find(const struct ctl_client *cl, uint32_t handle);
struct ctl_srq *ctl_srq_find(const struct ctl_client *cl, uint32_t handle);
void ctl_ah_delete(
	struct eng_control *c, struct ctl_client *cl, struct ctl_ah *ah, struct ctl_op *op);
/* Without a word to the stage. */
void ctl_ah_free(struct eng_control *c, struct ctl_client *cl, struct ctl_ah *ah);
struct ctl_xrcd_ref *ctl_xrcd_find(const struct ctl_client *cl, uint32_t handle);
void ctl_xrcd_free(struct eng_control *c, struct ctl_client *cl, struct ctl_xrcd_ref *ref);
/* A handle for another's QP goes. */
void ctl_qp_close_opened(struct ctl_qp *q);
/* Those who opened it hear that it is in error (`code`: a reason of the transport); and that it has
 * gone. */
void ctl_qp_tell_openers(struct eng_control *c, struct ctl_qp *q, int code);
void ctl_qp_leave_openers(struct eng_control *c, struct ctl_qp *q);
/* Not one that it has but opened. */
struct ctl_qp *ctl_qp_find(const struct ctl_client *cl, uint32_t handle);
/* By its number; NULL: none. */
struct ctl_qp *ctl_qp_of_number(const struct eng_control *c, uint32_t qpn);
struct ctl_qp *ctl_qp_of_cookie(const struct eng_control *c, uint64_t cookie);
static inline uint64_t
ctl_qp_cookie(const struct ctl_qp *q)
{
	return (uint64_t)q->generation << 32 | (q->slot + 1);
}
/* Nothing of it is in flight: gives back all it held. */
void ctl_qp_free(struct eng_control *c, struct ctl_qp *q);
/* Starts the end of an object; `op` may be quiet. */
void ctl_qp_delete(struct eng_control *c, struct ctl_qp *q, struct ctl_op *op);
void ctl_cq_delete(struct eng_control *c, struct ctl_cq *cq, struct ctl_op *op);
void ctl_srq_delete(struct eng_control *c, struct ctl_srq *s, struct ctl_op *op);
void ctl_pd_free(struct eng_control *c, struct ctl_client *cl, struct ctl_pd *pd);
void ctl_mr_retire(struct eng_control *c, struct ctl_mr *mr);
void ctl_mw_retire(struct eng_control *c, struct ctl_mw *mw);
/* Enters a region or a window under a key that cannot be told. -ENOSPC. */
int ctl_stag_add(struct eng_control *c, struct rd_mr *mr);
/* It is in no table any more. */
void ctl_retire(struct eng_control *c, struct ctl_client *cl, struct ctl_retiree *r);
/* Frees those for which quiescence has come. */
bool ctl_retire_poll(struct eng_control *c);
/* Frees all of them: no loop runs. */
void ctl_retire_all(struct eng_control *c);
/* The engine stage with the fewest QPs. */
uint8_t ctl_least_loaded(const struct eng_control *c);
/* A ring of 2^log2_count entries at `entries`, bytes from the home region's start. */
struct shm_ring_at ctl_ring_at(
	uint64_t entries, uint64_t cons, uint16_t stride, uint8_t log2_count);

static inline void
ctl_total(uint32_t *total, int by)
{
	__atomic_store_n(total, *total + (uint32_t)by, __ATOMIC_RELAXED);
}

#endif
