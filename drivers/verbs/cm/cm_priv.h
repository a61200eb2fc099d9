/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the librdmacm side share. An id is the public struct rdma_cm_id with our part
 * behind it; an event likewise.
 *
 * Locks: vb_events_lock() comes first and is held while a QP or a listener is tied to an id or
 * taken from it, and whenever an id is reached from a QP or a listener. cm_lock() comes behind it
 * and guards ids' states, the list of ids, the ports and the counts of events; nothing that waits
 * is called with it. Queues of events (struct vb_waitq) have locks of their own, which come last.
 */
#ifndef SAKER_CM_PRIV_H
#define SAKER_CM_PRIV_H

#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "../verbs_priv.h"

#define CM_PRIVATE_MAX 255 /* bytes: what rdma_conn_param's length can tell */
#define CM_BACKLOG_MAX 1024
#define CM_RETRIES     7 /* stated to programs; neither transport negotiates it */

/* A state is a bit, so that a call can name all in which it may be made. */
enum cm_state {
	CM_IDLE = 1 << 0,
	CM_BOUND = 1 << 1,
	CM_ADDR_RESOLVED = 1 << 2,
	CM_ROUTE_RESOLVED = 1 << 3,
	CM_LISTENING = 1 << 4,
	CM_REQUEST = 1 << 5, /* a peer's, unanswered */
	CM_CONNECTING = 1 << 6,
	CM_ACCEPTING = 1 << 7,
	CM_ESTABLISHED = 1 << 8,
	CM_CLOSING = 1 << 9, /* we asked for the end */
	CM_CLOSED = 1 << 10,
	CM_REMOVED = 1 << 11, /* the engine went away */
};
#define CM_CONNECTED (CM_ESTABLISHED | CM_CLOSING)

/* A port that an id holds. */
struct cm_port {
	LIST_ENTRY(cm_port) next;
	struct sk_addr addr;
	enum rdma_port_space ps;
	uint16_t port; /* host order; 0: holds none */
	bool reuse;
	bool chosen; /* by us */
};

struct cm_id {
	struct rdma_cm_id id;
	LIST_ENTRY(cm_id) next;
	enum cm_state state;
	uint32_t epoch; /* of the process that made it, see cm_epoch() */
	bool sync;      /* its channel is its own, and calls wait for their event */
	bool afonly;
	struct cm_port port;
	struct sk_addr local, remote; /* local unspecified: Saker chooses */
	uint16_t rport;
	struct saker_listener *listener;
	uint32_t request;  /* in CM_REQUEST */
	uint32_t qpn;      /* of the QP that is being connected; 0: none */
	uint16_t ird, ord; /* what the peer's request lets us have */
	uint32_t pending;  /* events that wait or that the program has not acknowledged */
	struct ibv_sa_path_rec path;
	/* rdma_create_ep(), passive: what each request's QP is made with. */
	struct ibv_qp_init_attr *qp_init;
	struct ibv_pd *ep_pd;
};

struct cm_event {
	struct rdma_cm_event ev;
	struct vb_wait_item item;
	struct cm_id *owner; /* whose count it is in */
	uint8_t private_data[CM_PRIVATE_MAX + 1];
};

struct cm_channel {
	struct rdma_event_channel channel;
	struct vb_waitq queue;
	uint32_t epoch;
};

static inline struct cm_id *
cm_id_of(struct rdma_cm_id *id)
{
	return vb_container(id, struct cm_id, id);
}

static inline struct cm_channel *
cm_channel_of(struct rdma_event_channel *ch)
{
	return vb_container(ch, struct cm_channel, channel);
}

/* As every rdma_ function ends: 0, or -1 with errno. */
static inline int
cm_end(int err)
{
	if (err == 0)
		return 0;
	errno = err;
	return -1;
}

/* ---- id.c ---- */

void cm_lock(void);
void cm_unlock(void);
/* Sleeps, without cm_lock() meanwhile, until somebody calls cm_wake() with it. */
void cm_wait(void);
void cm_wake(void);
/* Counts up in a child of fork(2): what was made before is the parent's. */
uint32_t cm_epoch(void);
/* Returns the type of the QPs that ids of a port space connect. */
enum ibv_qp_type cm_qp_type_of(enum rdma_port_space ps);
/* A new id on `channel`, in the list. NULL with errno. */
struct cm_id *cm_id_new(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps);
/* Takes an id out of the list and frees it; nothing refers to it any more. */
void cm_id_free(struct cm_id *id);
/* Calls `each` for every id, with cm_lock. */
void cm_id_each(void (*each)(struct cm_id *id));
/* `from`: a mask of states. 0, EINVAL: it is in another, ENODEV: it is another process's. */
int cm_move(struct cm_id *id, unsigned from, enum cm_state to);
/* The same without a move. */
int cm_check(struct cm_id *id, unsigned in);

/* ---- event.c ---- */

/* NULL: no memory. */
struct cm_event *cm_event_new(struct cm_id *id, enum rdma_cm_event_type type, int status);
/* Adds a copy of private data, as much as there is room for. */
void cm_event_private(struct cm_event *e, const void *data, size_t len);
/* To the channel of its owner; with no lock but vb_events_lock() and cm_lock(). */
void cm_event_queue(struct cm_event *e);
void cm_event_queue_locked(struct cm_event *e);
/* Both of the above at once. 0 or ENOMEM. */
int cm_event_raise(struct cm_id *id, enum rdma_cm_event_type type, int status);
/* An event that nobody will see: its request is turned down. */
void cm_event_drop(struct cm_event *e);
/* Drops what waits about `id`. */
void cm_event_purge(struct cm_id *id);
/* Waits until every event of `id` was acknowledged. */
void cm_event_settle(struct cm_id *id);
/* An event that was fetched counts at `id` from now on. */
void cm_event_give(struct cm_event *e, struct cm_id *id);

/* ---- device.c ---- */

struct cm_device {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_xrcd *xrcd; /* NULL until asked for */
	uint32_t epoch;
};

/* The open device of a transport with its default protection domain; NULL with errno. */
struct cm_device *cm_device_open(enum shm_transport transport);
/* The same if it is open already: waits for nothing. */
struct cm_device *cm_device_have(enum shm_transport transport);
struct cm_device *cm_device_of(struct ibv_context *verbs);
/* In a child of fork(2), before anything else. */
void cm_device_forked(void);
/* Which device an id gets that could be on either. */
enum shm_transport cm_device_choice(enum rdma_port_space ps);
/* Ties an id to a device: verbs, pd, port_num. */
void cm_device_bind(struct cm_id *id, struct cm_device *dev);

/* ---- addr.c ---- */

/* EAFNOSUPPORT or EINVAL. A loopback address comes out as the unspecified one. */
int cm_addr_from(const struct sockaddr *sa, struct sk_addr *a, uint16_t *port);
void cm_addr_to(
	const struct sk_addr *a, uint16_t port, uint32_t scope, struct sockaddr_storage *sa);
uint32_t cm_addr_scope(const struct sockaddr *sa);
bool cm_addr_is_link_local(const struct sk_addr *a);
/* The address of the device from which `remote` is spoken to. ENETUNREACH: none. */
int cm_addr_choose(const struct shm_device *d, const struct sk_addr *remote, uint32_t scope,
	struct sk_addr *local);
bool cm_addr_is_ours(const struct shm_device *d, const struct sk_addr *a);
uint16_t cm_addr_port(const struct sockaddr *sa); /* host order */
void cm_addr_set_port(struct sockaddr *sa, uint16_t port);

/* ---- port.c; with cm_lock ---- */

/* Takes `port` of the port space, or with 0 one that is free. EADDRINUSE. */
int cm_port_take(struct cm_port *p, enum rdma_port_space ps, const struct sk_addr *addr,
	uint16_t port, bool reuse);
void cm_port_release(struct cm_port *p);

/* ---- resolve.c ---- */

/* The path record of an id on the IB-style device; on the other there is none. */
void cm_path_fill(struct cm_id *id, const struct sk_addr *src, const struct sk_addr *dst);

/* ---- connect.c ---- */

/* The QP that `id` connects, while vb_events_lock() is held. */
struct vb_qp *cm_qp_of(struct cm_id *id);
/* Finds and ties the QP: that of the id, or the one that `p` names. 0 or errno. */
int cm_qp_tie(struct cm_id *id, const struct rdma_conn_param *p);
void cm_qp_untie(struct cm_id *id);
/* For saker_connect() and saker_accept(). EINVAL: a depth that the device has not. `p` NULL: as
 * deep as device and, accepting, request allow. */
int cm_conn_param(
	const struct cm_id *id, const struct rdma_conn_param *p, struct saker_conn_param *out);

/* ---- handler.c ---- */

/* Begins to take connection events in, once. 0 or errno. */
int cm_handler_start(void);

/* ---- endpoint.c ---- */

/* A synchronous id waits for the event of what was just begun; else 0 at once. 0 or errno. */
int cm_complete(struct cm_id *id);
/* The same for what has happened already: takes the event if it still waits. */
int cm_complete_past(struct cm_id *id);

/* ---- ud.c ---- */

bool cm_is_ud(const struct cm_id *id);
/* A new datagram QP gets ready to send. 0 or errno. */
int cm_ud_ready(struct cm_id *id, struct ibv_qp *qp);
/* Asks the peer, and answers it. 0 or errno. */
int cm_ud_connect(struct cm_id *id, const struct rdma_conn_param *p);
int cm_ud_accept(struct cm_id *id, const struct rdma_conn_param *p);
/* What the peer has told. */
void cm_ud_fill(struct cm_event *e, const struct cm_id *id, const struct shm_cm *cm);

#endif
