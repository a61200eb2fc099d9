/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The base of the control stage: handles, messages to and from the other stages, replies and events
 * to clients, commands that wait for other stages, and the state that all parts of the control
 * stage share. Everything here belongs to the thread that polls the control stage, unless a comment
 * states otherwise.
 *
 * This folder calls no function of the other folders of the control stage. It passes messages to
 * them through three tables of handlers in struct eng_control: for clients' commands, for notices,
 * and for messages of other threads. eng_control_create() sets them.
 */
#ifndef SAKER_ENGINE_CORE_H
#define SAKER_ENGINE_CORE_H

#include <pthread.h>
#include <sys/queue.h>

#include "../../../base/mem.h"
#include "../../../base/wheel.h"
#include "../../common/instance.h"
#include "../../common/objects.h"
#include "heap.h"
#include "share.h"

#define CTL_POOL 1024 /* commands to all stages that may be unanswered or queued */
/* Messages of CTL_POOL that are reserved for connections. Clients' commands and the removal of
 * clients wait while only these are free. */
#define CTL_RESERVE 256
#define CTL_BACKLOG 2048 /* a power of two; holds CTL_POOL and a stage's notices */
#define CTL_BATCH   64   /* messages of one ring in a burst; QPs of a view in a turn */
/* The cost of clients' commands in a turn. A command that only the control stage executes costs 1;
 * struct ctl_command has the cost of the others. */
#define CTL_TURN_COST       8
#define CTL_USER_COST       8  /* of the commands of one user before the next user's turn */
#define CTL_TURN_BACKLOGGED 4  /* clients with queued events in a turn */
#define CTL_TURN_EVENTS     16 /* queued events of one client in a turn */
#define CTL_TURN_PEEKS      16 /* mailboxes in a turn, while all are polled */
#define CTL_TURN_REQUESTS   16 /* peers' requests in a turn, and requests that time out */
#define CTL_TURN_HOSTS      16 /* host connections in a turn, while all are examined */
#define CTL_TURN_RETIRED    64 /* retired objects in a turn */
/* Turns for which a client's commands wait after one that was refused: a client that only sends
 * such commands does not delay its neighbours. */
#define CTL_REFUSED_TURNS   256
#define CTL_BACKLOGGED_NS   (1000ull * 1000) /* time between polls of clients with queued events */
#define CTL_INBOX           16               /* messages of other threads in a turn */
#define CTL_CLIENT_COMMANDS 16               /* unanswered commands of one client */
/* Connect requests that wait for the answer of one client; a power of two. */
#define CTL_CLIENT_REQUESTS 1024
#define CTL_CLIENT_EVENTS   4096 /* queued events of one client; three more for each QP */
/* Time (ns) after which the control stage rejects a request that its client has not answered. */
#define CTL_REQUEST_NS      (10ull * 1000 * 1000 * 1000)
#define CTL_PEEK_NS         (10ull * 1000 * 1000) /* time between polls of all mailboxes */
#define CTL_REQUEST_HASH    1024
#define CTL_XRCD_HASH       1024 /* lists of XRC domains, by file */
#define CTL_PORT_HASH       1024 /* lists of listeners, by port */
#define CTL_HOST_HASH       1024 /* lists of host connections; counters of source prefixes */
#define CTL_BACKLOG_DEFAULT 128
#define CTL_CQ_MOVES        32 /* times that a CQ can grow; each doubles it at least */

struct cm_listener;
struct cm_request;
struct ctl_client;
struct ctl_host;
struct ctl_inbox;
struct ctl_msg;
struct ctl_op;
struct ctl_places;
struct ctl_query;
struct ctl_retired;
struct ctl_target;
struct ctl_xrcd;

/* ---- Handles: table.c ---- */

/* A table that gives small numbers to objects. It uses a freed number again as late as possible, so
 * that a late message about an old object does not reach a new one. */
struct ctl_table {
	void **slot;     /* [cap]: the object of each number, or NULL */
	uint32_t *queue; /* [cap]: a ring of the freed numbers, oldest first */
	/* Numbers in all; numbers that have been used at least once; objects; position of the
	 * oldest freed number in `queue`; freed numbers. */
	uint32_t cap, fresh, used, head, nfreed;
};

/* Initializes a table of `cap` numbers. Returns 0 or -ENOMEM. */
int ctl_table_init(struct ctl_table *t, uint32_t cap);
void ctl_table_fini(struct ctl_table *t);
/* Enters `object` and returns its number, or -ENOSPC when all numbers are in use. */
int64_t ctl_table_add(struct ctl_table *t, void *object);
void ctl_table_del(struct ctl_table *t, uint32_t number);

/* Returns the object with that number, or NULL. `number` may have any value. */
static inline void *
ctl_table_get(const struct ctl_table *t, uint32_t number)
{
	return number < t->fresh ? t->slot[number] : NULL;
}

/* ---- Clients' commands ---- */

#define CTL_LATER 1 /* a handler's result: an operation (struct ctl_op) sends the reply */

/* Executes a client's command. `m` is a private copy of the command, which the handler turns into
 * the reply. Returns 0, a refusal (-errno; ctl_refuse() has written it to `m`), or CTL_LATER. */
typedef int ctl_handler(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m);

struct ctl_command {
	ctl_handler *handler; /* NULL: no command has this number */
	uint16_t body;        /* bytes of the reply's body */
	uint8_t cost;         /* in addition to 1: see CTL_TURN_COST */
};

/* Handles a notice of a stage. Returns false when no message is free for the answer: the caller
 * then passes the same notice again later. Only notices of transport stages may be deferred. */
typedef bool ctl_notice(struct eng_control *c, struct ctl_target *t, struct eng_ctl *m);

/* Handles a message of another thread. */
typedef void ctl_inbox_handler(struct eng_control *c, struct ctl_inbox *in);

/* ---- Clients ---- */

/* The id of a client: 12 bits of its number, 19 bits of the number's generation. */
#define CTL_ID_BITS         12
#define CTL_ID(number, gen) ((uint32_t)(number) | ((uint32_t)(gen)&0x7ffff) << CTL_ID_BITS)
#define CTL_ID_NUMBER(id)   ((id) & ((1u << CTL_ID_BITS) - 1))

/* An event that is queued until the client's ring has room. */
struct ctl_event {
	STAILQ_ENTRY(ctl_event) next;
	uint32_t body_len;
	/* A struct shm_msg with the first body_len bytes of its body. */
	_Alignas(struct shm_msg) uint8_t msg[];
};

enum ctl_phase {
	CTL_ADDING, /* not all engine stages have answered ENG_CE_CLIENT_ADD */
	CTL_LIVE,
	/* The control stage destroys the client's objects: */
	CTL_REAP_QPS,    /* listeners, requests and QPs */
	CTL_REAP_QUEUES, /* SRQs, AHs and CQs */
	CTL_REAP_CLIENT, /* not all engine stages have answered ENG_CE_CLIENT_DEL */
	CTL_REAP_MRS,    /* memory windows and regions, which wait for a quiet point */
	CTL_REAP_LAST,   /* XRC domains and protection domains, which nothing uses any more */
	CTL_GONE,
};

struct ctl_client {
	struct eng_client eng; /* first: cache-line aligned */
	struct eng_control *control;
	/* Names the client to other threads: its number and the number's generation. Constant. */
	uint32_t id;
	TAILQ_ENTRY(ctl_client) all, rung, backlogged;
	enum ctl_phase phase;
	bool has_rung;         /* the client is in its user's list of clients to poll */
	unsigned waiting;      /* stages that have not answered the command of this phase */
	uint32_t step, walk;   /* phase: index of the table, and position in it */
	uint32_t nregions;     /* regions of its own memory that the client has passed */
	uint64_t sparse_bytes; /* bytes registered in sparse regions; atomic */
	uint32_t commands;     /* unanswered commands of the client */
	uint64_t resume_turn;  /* the turn from which on its commands are executed again */
	struct shm_take cmd;
	struct shm_prod evt;
	STAILQ_HEAD(, ctl_event) events;
	uint32_t nevents; /* length of `events`; if not 0, the client is in the list `backlogged` */
	struct heap heap;
	struct eng_region region[SHM_MAX_REGIONS];
	uint64_t heap_at;         /* offset of the heap in the home region */
	uint64_t mem_at, mem_len; /* flat: offset and bytes of the client's own memory in it */
	struct ctl_table pds, mrs, mws, cqs, srqs, xrcds, ahs, qps, listeners, requests;
	uint64_t tenant;        /* clients of one tenant may share XRC domains */
	struct shm_class class; /* as configured for the client */
	int pid;                /* of its process, which has attached through the socket; 0: flat */
	uint32_t uid;           /* likewise */
	uint16_t request_generation;
	/* The unanswered requests for which the client has created no QP since, oldest first. */
	TAILQ_HEAD(, cm_request) unplaced;
	uint32_t retiring; /* MRs and MWs that wait for a quiet point */
	/* The following members belong to the socket's thread. */
	bool flat;                              /* the client has no connection to the socket */
	uint32_t conn;                          /* number of its connection */
	struct eng_region map[SHM_MAX_REGIONS]; /* mapped regions */
	/* Atomic. Bit n is set when the control stage no longer uses region n. */
	uint64_t dropped;
	struct ctl_client *next_gone; /* in eng_control.gone */
};

/* A user: the clients of one user ID, or of one machine (eng_client.user). */
struct ctl_user {
	TAILQ_ENTRY(ctl_user) next;       /* in eng_control.rung, while `clients` is not empty */
	TAILQ_HEAD(, ctl_client) clients; /* whose mailboxes the next turns poll */
	/* The cost that the user's commands may still have before the next user's turn. Below 0,
	 * the user has used more than its part. */
	int credit;
	/* The time (ns) of the next attempt of a QP modified by the program that may begin. */
	uint64_t attempt_at;
};

/* ---- The control stage ---- */

/* Another stage, with the rings to it and from it. */
struct ctl_target {
	struct rte_ring *to, *from;
	uint32_t unanswered; /* commands in `to`, at the stage, or in `from` */
	uint32_t head, tail; /* of `backlog` */
	/* [CTL_BACKLOG]: a ring of the messages for which `to` has no room yet, in order. */
	struct eng_ctl **backlog;
	uint32_t notice_head, notice_tail; /* of `notices` */
	/* A ring of the notices that wait until a message for the answer is free. */
	struct eng_ctl *notices[ENG_CTL_NOTICES];
};

struct eng_control {
	struct eng_control_args a;
	const struct eng_config *cfg;
	pthread_mutex_t limits_lock;              /* of cfg->limits.client_* */
	const struct ctl_command *commands;       /* [SHM_OP_COUNT] */
	ctl_inbox_handler *const *inbox_handlers; /* [CTL_IN_KINDS] */
	ctl_notice *const *notices;               /* [ENG_CTL_TYPES] */
	uint64_t now, next_peek;                  /* ns: of this turn; of the next poll of all */
	struct ctl_target *transport, *stage;     /* [cfg->ntransports], [cfg->nstages] */
	struct ctl_msg *pool, *spare;             /* [CTL_POOL]; the list of the free ones */
	uint32_t nspare;                          /* free messages */
	/* The numbers of clients, and their users. Any thread takes and frees them. */
	struct ctl_places *places;
	/* [limits.clients], by number: the clients from CTL_IN_ADD until nothing but their memory
	 * is left. */
	struct ctl_client **clients;
	struct sk_share share[CTL_POOLS];
	/* Clients: all; those with queued events. */
	TAILQ_HEAD(ctl_clients, ctl_client) all, backlogged;
	struct ctl_user *users; /* [limits.clients + 1], by eng_client.user */
	/* Users with clients whose mailboxes the next turns poll. */
	TAILQ_HEAD(ctl_users, ctl_user) rung;
	int credit;      /* what commands may cost in this turn; below 0 after a costly one */
	uint32_t unseen; /* clients whose mailboxes the poll of all mailboxes has not seen yet */
	TAILQ_HEAD(, ctl_op) ops;
	/* Clients whose objects the control stage is destroying; eng_sigbus_count() at the last
	 * check. */
	uint32_t reaping, sigbus_seen;
	struct ctl_inbox *inbox;              /* messages of other threads, newest first; atomic */
	struct ctl_inbox *taken, **taken_end; /* messages taken from `inbox`, oldest first */
	TAILQ_HEAD(, ctl_query) queries;
	struct ctl_client *gone; /* clients that the socket's thread is to unmap; atomic */
	int sock_fd;             /* eventfd that wakes the socket's thread, or -1; atomic */
	struct eng_socket *socket;
	struct eng_totals totals;
	uint64_t counters[eng_reason_count];
	/* The following members belong to the registry. */
	struct ctl_table xrc_srqs;
	uint32_t *srq_generation; /* of each number in xrc_srqs */
	struct sk_key srqn_key, qpn_key;
	/* [CTL_XRCD_HASH]: lists of the XRC domains that have a file, by file and tenant */
	LIST_HEAD(ctl_xrcds, ctl_xrcd) * xrcds;
	TAILQ_HEAD(, ctl_retired) retiring;
	uint64_t stag_keys;                 /* keys of STags generated so far */
	uint32_t stage_qps[ENG_MAX_STAGES]; /* QPs on each engine stage */
	uint32_t ud_qps;                    /* datagram QPs */
	/* The following members belong to the connection manager. */
	const struct ctl_conn_ops *conn_ops; /* its functions that the registry calls */
	struct ctl_table conns;              /* connections of QPs, and host connections */
	uint32_t *conn_generation;           /* of each number in `conns` */
	struct ctl_table listeners;
	uint32_t *listener_generation; /* of each number in `listeners` */
	/* [CTL_PORT_HASH]: lists of the listeners, by port */
	LIST_HEAD(cm_ports, cm_listener) * ports;
	uint32_t requests_left;       /* requests of peers that this turn may still handle */
	bool deferred;                /* notices wait for the next turn */
	uint64_t turn;                /* number of this turn */
	struct sk_wheel wheel;        /* of the timers cm_conn.timer */
	bool turning;                 /* the first turn has initialized the wheel */
	bool datagrams;               /* a transport has address handles */
	bool xrc;                     /* a transport has XRC domains */
	uint8_t qp_types[ENG_KINDS];  /* bits 1 << enum shm_qp_type; 0: not enabled */
	uint16_t reserved_port;       /* TCP port of requests that name a QP; 0: none */
	uint64_t patience_ns;         /* least time for the peer of a modified QP to appear */
	TAILQ_HEAD(, ctl_host) hosts; /* host connections */
	/* [CTL_HOST_HASH]: lists of the host connections, by address, order and number */
	LIST_HEAD(cm_hosts, ctl_host) * host_hash;
	/* [CTL_HOST_HASH], by source prefix: the host connections that peers have requested */
	uint32_t *host_prefix;
	uint32_t nhosts,
		hosts_unseen; /* host connections; those that the search has not seen yet */
	uint64_t hosts_look;  /* time (ns) of the next search for unused ones */
	TAILQ_HEAD(, cm_request) waiting;                    /* requests, oldest first */
	LIST_HEAD(cm_request_bucket, cm_request) * requests; /* [CTL_REQUEST_HASH] */
};

/* Adds `by` to a member of eng_control.totals, which other threads read. */
static inline void
ctl_total(uint32_t *total, int by)
{
	__atomic_store_n(total, *total + (uint32_t)by, __ATOMIC_RELAXED);
}

/* ---- Messages to stages: ring.c ---- */

/* Handles the answer to a command. The caller frees the message afterwards. */
typedef void (*ctl_done)(struct eng_control *c, struct ctl_msg *m);

struct ctl_msg {
	struct eng_ctl m; /* the message itself; must be the first member */
	ctl_done done;
	struct ctl_msg *next;
	struct ctl_op *op;
	struct ctl_client *client;
	struct ctl_query *query;
	/* The message is a unit of CTL_POOL_MESSAGE that this user holds. */
	bool charged;
	uint16_t user;
};

/* Returns a message whose arguments are 0, or NULL when none is free. `done` may be NULL. */
struct ctl_msg *ctl_msg_get(struct eng_control *c, enum eng_ctl_type type, ctl_done done);
/* Counts the message in the share of the client's user (NULL: the instance) until the answer has
 * come. A message that exceeds the share is a part of CTL_RESERVE. */
void ctl_msg_charge(struct eng_control *c, struct ctl_msg *m, const struct ctl_client *cl);
/* Send a command to a transport stage, or to an engine stage, which answers `m`. */
void ctl_send_transport(struct eng_control *c, unsigned transport, struct ctl_msg *m);
void ctl_send_stage(struct eng_control *c, unsigned stage, struct ctl_msg *m);
/* Returns a notice to its stage, behind all earlier messages to the stage. */
void ctl_return(struct eng_control *c, struct ctl_target *t, struct eng_ctl *m);
/* Handles the answers and notices in all rings. Returns whether there were any. */
bool ctl_rings_poll(struct eng_control *c);
/* Returns whether a notice of that type about that connection waits for a later turn, while the
 * notices of engine stages that were sent after it are handled. */
bool ctl_notice_waits(
	const struct eng_control *c, unsigned transport, enum eng_ctl_type type, uint64_t cookie);
/* Returns whether a client's command may use messages: more than CTL_RESERVE are free. */
static inline bool
ctl_has_reserve(const struct eng_control *c)
{
	return c->nspare > CTL_RESERVE;
}
/* Returns the most messages that one command needs. */
static inline uint32_t
ctl_command_messages(const struct eng_control *c)
{
	return SK_MAX(c->cfg->nstages, c->cfg->ntransports);
}
/* Returns whether a command of the client may use messages: ctl_has_reserve(), and the share of the
 * client's user has enough of them. */
static inline bool
ctl_may_command(const struct eng_control *c, const struct ctl_client *cl)
{
	return ctl_has_reserve(c) &&
	       sk_share_room(&c->share[CTL_POOL_MESSAGE], cl->eng.user) >= ctl_command_messages(c);
}

/* ---- To clients: event.c ---- */

/* Sends a reply or an event with the first `body_len` bytes of msg->body, or queues a copy when the
 * ring is full. Removes a client that has too many queued events. */
void ctl_client_send(
	struct eng_control *c, struct ctl_client *cl, const struct shm_msg *msg, uint32_t body_len);
/* Returns a copy of the message to send later, or NULL when there is no memory. */
struct ctl_event *ctl_event_new(const struct shm_msg *msg, uint32_t body_len);
/* Sends such a copy and frees it. If `ev` is NULL, removes the client: an event is lost. */
void ctl_client_send_event(struct eng_control *c, struct ctl_client *cl, struct ctl_event *ev);
/* Sends an asynchronous event about the object with the client's handle `object`. `code` is a
 * reason of the transport, `reason` its name, or "". */
void ctl_client_send_async(struct eng_control *c, struct ctl_client *cl, enum shm_op op,
	uint32_t object, int code, const char *reason);
/* Moves at most CTL_TURN_EVENTS queued events into the ring. Returns whether it has moved any. */
bool ctl_events_flush(struct eng_control *c, struct ctl_client *cl);
/* Frees the oldest queued events. */
void ctl_events_drop(struct eng_control *c, struct ctl_client *cl, uint32_t most);
/* Removes a client that is dead, has left or violates the protocol. `why`, a clause for the log,
 * states the reason. The next turns destroy its objects. */
void ctl_client_put_out(struct eng_control *c, struct ctl_client *cl, const char *why);

/* ---- The turn: turn.c ---- */

/* Initializes the users and the lists of clients. Returns 0 or -ENOMEM. */
int ctl_turn_init(struct eng_control *c);
/* Makes the next turns poll the client's mailbox. */
void ctl_ring_client(struct eng_control *c, struct ctl_client *cl);
/* Withdraws ctl_ring_client(). */
void ctl_unring_client(struct eng_control *c, struct ctl_client *cl);
/* Executes clients' commands of a cost of CTL_TURN_COST: the users take turns, and so do the
 * clients of each user. Returns whether there were clients to poll. */
bool ctl_rung_poll(struct eng_control *c);
/* Polls all mailboxes every CTL_PEEK_NS, in case that a client has not rung its doorbell. */
void ctl_peek_poll(struct eng_control *c);
/* Sends queued events of clients, which take turns. Returns whether it has sent any. */
bool ctl_backlog_poll(struct eng_control *c);

/* ---- Commands: op.c ---- */

/* Executes one command of the client's mailbox. Sets *cost. Returns whether the mailbox must be
 * polled again. */
bool ctl_mailbox_poll(struct eng_control *c, struct ctl_client *cl, int *cost);
/* Turns `m` into a refusal with that sentence, counts it, and returns `status` (-errno). Some
 * checks of commands are repeated later, when no command is at hand: `m` is NULL then, and the
 * function only returns `status`. */
int ctl_refuse(struct eng_control *c, struct shm_msg *m, int status, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Like ctl_refuse(), for a command that exceeds a quota. */
int ctl_refuse_quota(struct eng_control *c, struct shm_msg *m, int status, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Completes an operation after the last answer that it waits for, which is `last`. */
typedef void ctl_finish(struct eng_control *c, struct ctl_op *op, const struct eng_ctl *last);

/* An operation: a client's command whose reply waits for the answers of other stages. */
struct ctl_op {
	TAILQ_ENTRY(ctl_op) all;
	struct ctl_client *client;
	void *object;
	unsigned waiting; /* answers that have not come yet */
	int status;       /* the first status below 0 among the answers, or 0 */
	ctl_finish *finish;
	struct shm_msg reply;
	bool quiet; /* there is no reply: the control stage destroys the object itself */
};

/* Returns an operation for the command `m` (NULL: a quiet operation), or NULL when there is no
 * memory. */
struct ctl_op *ctl_op_new(struct eng_control *c, struct ctl_client *cl, const struct shm_msg *m,
	void *object, ctl_finish *finish);
void ctl_op_free(struct eng_control *c, struct ctl_op *op);
/* Send `m` as a part of `op`, to a transport stage or to an engine stage. */
void ctl_op_send_transport(
	struct eng_control *c, struct ctl_op *op, unsigned transport, struct ctl_msg *m);
void ctl_op_send_stage(struct eng_control *c, struct ctl_op *op, unsigned stage, struct ctl_msg *m);
/* Sends the reply, unless the operation is quiet, and frees the operation. */
void ctl_op_reply(struct eng_control *c, struct ctl_op *op);
/* Implement ctl_finish for an operation that ends with its reply alone. The second one is for a
 * command about a QP, which a stage refuses when the QP does not exist any more. */
void ctl_op_finish(struct eng_control *c, struct ctl_op *op, const struct eng_ctl *last);
void ctl_op_finish_qp(struct eng_control *c, struct ctl_op *op, const struct eng_ctl *last);

/* ---- Classes of packets: class.c ---- */

/* Checks a class in a client's command. Returns 0, or a refusal written to `m`. */
int ctl_class_check(struct eng_control *c, struct shm_msg *m, const struct shm_class *k);
/* Takes from *from the members that *to leaves open. */
void ctl_class_fill(struct shm_class *to, const struct shm_class *from);
/* Returns the class for lib/net. The configuration maps the priority to that of a VLAN tag. */
struct net_class ctl_class_net(const struct eng_control *c, const struct shm_class *k);

/* ---- From other threads: inbox.c ---- */

enum ctl_inbox_kind { CTL_IN_ADD, CTL_IN_DETACH, CTL_IN_REGION, CTL_IN_QUERY, CTL_IN_KINDS };

/* A message names a client by its ctl_client.id, since the client may be gone when the control
 * stage handles the message. Only CTL_IN_ADD carries a pointer: it passes the client itself. */
struct ctl_inbox {
	struct ctl_inbox *next;
	enum ctl_inbox_kind kind;
	union {
		struct ctl_client *add;
		uint32_t detach; /* id of the client */
		struct {
			uint32_t id, number; /* of the client, and of the region */
			struct eng_region map;
		} region;
		struct ctl_query *query;
	};
};

/* Passes `in` to the control stage, which frees it. Any thread may call this. */
void ctl_inbox_push(struct eng_control *c, struct ctl_inbox *in);
/* Returns the oldest message, which the caller frees, or NULL. */
struct ctl_inbox *ctl_inbox_pop(struct eng_control *c);
/* Handles at most CTL_INBOX messages of other threads while ctl_has_reserve(). Returns whether
 * there were any. */
bool ctl_inbox_poll(struct eng_control *c);
/* Returns whether a message waits to be handled. */
bool ctl_inbox_waits(const struct eng_control *c);
/* Returns the client with that id, or NULL when it is not there any more. */
struct ctl_client *ctl_client_of(const struct eng_control *c, uint32_t id);
/* Passes a client of which only the memory is left to the socket's thread, which unmaps it. */
void ctl_gone_push(struct eng_control *c, struct ctl_client *cl);
/* Wakes the socket's thread if there is one. */
void ctl_wake_socket(struct eng_control *c);

#endif
