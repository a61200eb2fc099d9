/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ground floor of the control stage: handles, messages to and from the other stages, replies
 * and events to clients, commands that wait for other stages, and the state that all parts of the
 * control stage share. Everything here belongs to the thread that polls the control stage, except
 * where a comment says otherwise.
 *
 * This folder calls nothing above it. What a message means is known above: eng_control holds two
 * tables of handlers, of clients' commands and of notices, which control.c fills in.
 */
#ifndef SAKER_ENGINE_CORE_H
#define SAKER_ENGINE_CORE_H

#include <sys/queue.h>

#include "../../../base/mem.h"
#include "../../../base/wheel.h"
#include "../../common/instance.h"
#include "../../common/objects.h"
#include "heap.h"

#define CTL_POOL 1024 /* commands to all stages that may be unanswered or queued */
/* Commands of CTL_POOL that are kept for connections: clients' commands and reaping wait while no
 * more are free. */
#define CTL_RESERVE         256
#define CTL_BACKLOG         2048 /* CTL_POOL and a stage's notices fit in: a power of two */
#define CTL_BATCH           64   /* most messages of one ring, and clients' commands, in a turn */
#define CTL_CLIENT_COMMANDS 16   /* unanswered commands of one client */
/* Connect requests that wait for the answer of one client: a power of two. */
#define CTL_CLIENT_REQUESTS 1024
#define CTL_CLIENT_EVENTS   4096 /* queued events, besides three for each QP */
/* Time after which a request that its client does not answer is refused, ns. */
#define CTL_REQUEST_NS      (10ull * 1000 * 1000 * 1000)
#define CTL_PEEK_NS         (10ull * 1000 * 1000) /* between polls of all mailboxes, ns */
#define CTL_REQUEST_HASH    1024
#define CTL_BACKLOG_DEFAULT 128

struct cm_request;
struct ctl_client;
struct ctl_host;
struct ctl_inbox;
struct ctl_msg;
struct ctl_op;
struct ctl_query;
struct ctl_retired;
struct ctl_target;
struct ctl_xrcd;

/* ---- Handles: table.c ---- */

/* Small numbers for objects. A freed number is used again as late as possible, so that a message
 * about an old object does not reach a new one. */
struct ctl_table {
	void **slot;     /* [cap] */
	uint32_t *queue; /* freed numbers, oldest first: [cap], a ring */
	uint32_t cap, fresh, used, head, nfreed;
};

/* Returns 0 or -ENOMEM. */
int ctl_table_init(struct ctl_table *t, uint32_t cap);
void ctl_table_fini(struct ctl_table *t);
/* Returns a number for `object`, or -ENOSPC. */
int64_t ctl_table_add(struct ctl_table *t, void *object);
void ctl_table_del(struct ctl_table *t, uint32_t number);

/* Returns the object of that number, or NULL. Any number is allowed. */
static inline void *
ctl_table_get(const struct ctl_table *t, uint32_t number)
{
	return number < t->fresh ? t->slot[number] : NULL;
}

/* ---- Clients' commands ---- */

#define CTL_LATER 1 /* a handler's result: an operation sends the reply */

/* Executes a command. `m` is a copy that the client cannot reach, and becomes the reply unless the
 * result is CTL_LATER. */
typedef int ctl_handler(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m);

struct ctl_command {
	ctl_handler *handler; /* NULL: there is no such command */
	uint16_t body;        /* bytes of the reply's body */
};

/* Handles a notice of a stage. Returns false when it cannot be handled now, because no message is
 * free for the answer: the notice is handed in again later. Only a transport stage's may be. */
typedef bool ctl_notice(struct eng_control *c, struct ctl_target *t, struct eng_ctl *m);

/* Handles a message of another thread. */
typedef void ctl_inbox_handler(struct eng_control *c, struct ctl_inbox *in);

/* ---- Clients ---- */

/* An event that waits for room in the client's ring. */
struct ctl_event {
	STAILQ_ENTRY(ctl_event) next;
	uint32_t body_len;
	_Alignas(struct shm_msg)
		uint8_t msg[]; /* a struct shm_msg with body_len bytes of its body */
};

enum ctl_phase {
	CTL_ADDING, /* not all engine stages have answered ENG_CE_CLIENT_ADD */
	CTL_LIVE,
	CTL_REAP_QPS,    /* listeners, requests and QPs are destroyed */
	CTL_REAP_QUEUES, /* SRQs, AHs and CQs are destroyed */
	CTL_REAP_CLIENT, /* ENG_CE_CLIENT_DEL */
	CTL_REAP_MRS,    /* memory windows and regions are retired, and wait for quiescence */
	CTL_GONE,
};

struct ctl_client {
	struct eng_client eng; /* first: cache-line aligned */
	struct eng_control *control;
	TAILQ_ENTRY(ctl_client) all, rung, backlogged;
	enum ctl_phase phase;
	bool added; /* in the list of all */
	bool has_rung;
	unsigned waiting;      /* answers that the phase waits for */
	uint32_t step, walk;   /* positions of the phase's walks */
	uint32_t nregions;     /* that the client has brought */
	uint64_t sparse_bytes; /* atomic; registered in sparse regions */
	uint32_t commands;     /* unanswered */
	struct shm_take cmd;
	struct shm_prod evt;
	STAILQ_HEAD(, ctl_event) events;
	uint32_t nevents; /* in `events`; more than 0: in the list of backlogged clients */
	struct heap heap;
	struct eng_region region[SHM_MAX_REGIONS];
	uint64_t heap_at;         /* offset of the heap in the home region */
	uint64_t mem_at, mem_len; /* of the client's own memory in it */
	struct ctl_table pds, mrs, mws, cqs, srqs, xrcds, ahs, qps, listeners, requests;
	uint64_t tenant; /* clients of one tenant may share XRC domains */
	uint16_t request_generation;
	uint32_t retiring; /* MRs and MWs that wait for quiescence */
	/* The socket's thread: */
	void *socket;                           /* its connection; NULL: flat */
	struct eng_region map[SHM_MAX_REGIONS]; /* mapped regions */
	uint64_t dropped; /* atomic; bit: region that the control stage does not use any more */
	struct ctl_client *next_gone;
};

/* ---- The control stage ---- */

/* Another stage, as the control stage sends to it. */
struct ctl_target {
	struct rte_ring *to, *from;
	uint32_t unanswered; /* commands */
	uint32_t head, tail;
	struct eng_ctl **backlog; /* [CTL_BACKLOG]: in order, what the ring has not taken yet */
	uint32_t notice_head, notice_tail;
	struct eng_ctl *notices[ENG_CTL_NOTICES]; /* that wait for a free message: a ring */
};

struct eng_control {
	struct eng_control_args a;
	const struct eng_config *cfg;
	const struct ctl_command *commands;       /* [SHM_OP_COUNT] */
	ctl_inbox_handler *const *inbox_handlers; /* [CTL_IN_KINDS] */
	ctl_notice *const *notices;               /* [ENG_CTL_TYPES] */
	uint64_t now, next_peek;
	struct ctl_target transport[ENG_MAX_TRANSPORTS], stage[ENG_MAX_STAGES];
	struct ctl_msg *pool, *spare;
	uint32_t nspare;
	/* [limits.clients]; slots are taken and given back atomically, by any thread. */
	struct ctl_client **clients;
	TAILQ_HEAD(ctl_clients, ctl_client) all, rung, backlogged;
	TAILQ_HEAD(, ctl_op) ops;
	uint32_t reaping, sigbus_seen;
	struct ctl_inbox *inbox;              /* atomic; newest first */
	struct ctl_inbox *taken, **taken_end; /* oldest first */
	TAILQ_HEAD(, ctl_query) queries;
	struct ctl_client *gone; /* atomic: for the socket's thread to unmap */
	int sock_fd;             /* atomic; eventfd that wakes the socket's thread, or -1 */
	struct eng_socket *socket;
	struct eng_totals totals;
	uint64_t counters[eng_reason_count];
	/* registry: */
	struct ctl_table xrc_srqs;
	uint32_t *srq_generation; /* per number */
	struct sk_key srqn_key, qpn_key;
	TAILQ_HEAD(, ctl_xrcd) xrcds;
	TAILQ_HEAD(, ctl_retired) retiring;
	uint64_t stag_keys; /* how many keys were drawn */
	uint32_t stage_qps[ENG_MAX_STAGES];
	uint32_t ud_qps;
	/* cm: */
	const struct ctl_conn_ops *conn_ops; /* the connection manager, for the registry */
	struct ctl_table conns;              /* of QPs and of hosts */
	uint32_t *conn_generation;           /* per number */
	struct ctl_table listeners;
	uint32_t *listener_generation; /* per number */
	struct sk_wheel wheel;         /* cm_conn.timer */
	bool turning;                  /* the wheel has begun */
	bool datagrams;                /* a transport has address handles */
	bool xrc;                      /* a transport has XRC domains */
	uint8_t qp_types[ENG_KINDS];   /* bits 1 << enum shm_qp_type; 0: not enabled */
	uint16_t reserved_port;        /* TCP: where requests name a QP; 0: none */
	uint64_t patience_ns;          /* least time that a modified QP's peer has to appear */
	LIST_HEAD(, ctl_host) hosts;
	uint64_t hosts_look;                                 /* when to search for unused ones */
	TAILQ_HEAD(, cm_request) waiting;                    /* requests, oldest first */
	LIST_HEAD(cm_request_bucket, cm_request) * requests; /* [CTL_REQUEST_HASH] */
};

static inline void
ctl_total(uint32_t *total, int by)
{
	__atomic_store_n(total, *total + (uint32_t)by, __ATOMIC_RELAXED);
}

/* ---- Messages to stages: ring.c ---- */

/* Called with the answer; the message is freed behind it. */
typedef void (*ctl_done)(struct eng_control *c, struct ctl_msg *m);

struct ctl_msg {
	struct eng_ctl m; /* first: this travels */
	ctl_done done;
	struct ctl_msg *next;
	struct ctl_op *op;
	struct ctl_client *client;
	struct ctl_query *query;
};

/* Returns a message without arguments, or NULL when none is free. `done` may be NULL. */
struct ctl_msg *ctl_msg_get(struct eng_control *c, enum eng_ctl_type type, ctl_done done);
void ctl_send_transport(struct eng_control *c, unsigned transport, struct ctl_msg *m);
void ctl_send_stage(struct eng_control *c, unsigned stage, struct ctl_msg *m);
/* Returns a notice to its stage, behind all that was sent to the stage before. */
void ctl_return(struct eng_control *c, struct ctl_target *t, struct eng_ctl *m);
/* Handles answers and notices. Returns whether there was work. */
bool ctl_rings_poll(struct eng_control *c);
/* Returns whether clients' commands may use messages. */
static inline bool
ctl_has_reserve(const struct eng_control *c)
{
	return c->nspare > CTL_RESERVE;
}

/* ---- To clients: event.c ---- */

/* Sends a reply or an event with `body_len` bytes of msg->body; queues it when the ring is full. A
 * client that lets too many queue up is put out. */
void ctl_client_send(
	struct eng_control *c, struct ctl_client *cl, const struct shm_msg *msg, uint32_t body_len);
/* Returns a copy to send later, or NULL: no memory. */
struct ctl_event *ctl_event_new(const struct shm_msg *msg, uint32_t body_len);
/* Sends such a copy and frees it. NULL: the client is put out. */
void ctl_client_send_event(struct eng_control *c, struct ctl_client *cl, struct ctl_event *ev);
/* Sends an asynchronous event about an object. `reason` is its name, or "". */
void ctl_client_send_async(struct eng_control *c, struct ctl_client *cl, enum shm_op op,
	uint32_t object, int code, const char *reason);
/* Moves queued events into the ring. Returns whether any were. */
bool ctl_events_flush(struct eng_control *c, struct ctl_client *cl);
void ctl_events_drop(struct eng_control *c, struct ctl_client *cl);
/* Wakes the client if it sleeps. */
void ctl_wake_client(const struct ctl_client *cl);
/* Lets the next turn poll the client's mailbox. */
void ctl_ring_client(struct eng_control *c, struct ctl_client *cl);
/* Ends a client that is dead or harms others: `why`, a clause, goes to the log. The client is
 * reaped from the next turn on. */
void ctl_client_put_out(struct eng_control *c, struct ctl_client *cl, const char *why);

/* ---- Commands: op.c ---- */

/* Executes one command of a client, already copied. */
void ctl_command(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m);
/* Executes what the mailbox holds, within bounds. Returns whether there may be more. */
bool ctl_mailbox_poll(struct eng_control *c, struct ctl_client *cl);
/* Makes `m` a refusal with that sentence, counts it, and returns `status`. */
int ctl_refuse(struct eng_control *c, struct shm_msg *m, int status, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Refuses with -EDQUOT: the client has `most` of `what`. */
int ctl_refuse_quota(struct eng_control *c, struct shm_msg *m, const char *what, uint32_t most);
/* Refuses with -ENOSPC: all clients together have `most` of `what`. */
int ctl_refuse_all(struct eng_control *c, struct shm_msg *m, const char *what, uint32_t most);

/* Everything that an operation waited for has come; `last` is the last answer. */
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
	bool quiet; /* no client waits for the reply: a part of reaping */
};

/* `m` NULL: quiet. Returns NULL when there is no memory. */
struct ctl_op *ctl_op_new(struct eng_control *c, struct ctl_client *cl, const struct shm_msg *m,
	void *object, ctl_finish *finish);
void ctl_op_free(struct eng_control *c, struct ctl_op *op);
/* Sends `m` as part of `op`, to a transport or an engine stage. */
void ctl_op_send_transport(
	struct eng_control *c, struct ctl_op *op, unsigned transport, struct ctl_msg *m);
void ctl_op_send_stage(struct eng_control *c, struct ctl_op *op, unsigned stage, struct ctl_msg *m);
/* Replies, unless the operation is quiet, and frees it. */
void ctl_op_reply(struct eng_control *c, struct ctl_op *op);

/* ---- From other threads: inbox.c ---- */

enum ctl_inbox_kind { CTL_IN_ADD, CTL_IN_DETACH, CTL_IN_REGION, CTL_IN_QUERY, CTL_IN_KINDS };

struct ctl_inbox {
	struct ctl_inbox *next;
	enum ctl_inbox_kind kind;
	struct ctl_client *client;
	uint32_t number; /* CTL_IN_DETACH: client; CTL_IN_REGION: region */
	struct eng_region region;
	struct ctl_query *query;
};

/* Hands `in` to the control stage, which frees it. Any thread. */
void ctl_inbox_push(struct eng_control *c, struct ctl_inbox *in);
/* Returns the oldest message, which the caller frees, or NULL. */
struct ctl_inbox *ctl_inbox_pop(struct eng_control *c);
/* Handles what has come, while messages are free. Returns whether there was anything. */
bool ctl_inbox_poll(struct eng_control *c);
/* Hands a client of which only the memory is left to the socket's thread. */
void ctl_gone_push(struct eng_control *c, struct ctl_client *cl);
void ctl_wake_socket(struct eng_control *c);

#endif
