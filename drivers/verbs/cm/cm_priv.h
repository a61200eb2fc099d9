/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The declarations that the files of the librdmacm side share. An id (struct cm_id) and an event
 * (struct cm_event) each begin with the public structure of rdma_cma.h.
 *
 * Locks: vb_events_lock() comes first. A thread holds it while it ties a QP or a listener to an id
 * or unties it, and whenever it follows the pointer from a QP or a listener to an id. vb_cm_lock()
 * comes next. It guards the states of ids, the list of ids, the ports and the counts of events; its
 * holder calls no function that waits. The queues of events (struct vb_waitq) have locks of their
 * own, which come last.
 */
#ifndef SAKER_CM_PRIV_H
#define SAKER_CM_PRIV_H

#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "../../../lib/base/addr.h"
#include "../verbs_priv.h"

#define CM_PRIVATE_MAX 255 /* bytes: the limit of rdma_conn_param.private_data_len */
#define CM_BACKLOG_MAX 1024
#define CM_RETRIES     7 /* reported to programs; neither transport negotiates retries */

/* Each state is a bit, so that a function can name the set of states in which it may be called. */
enum cm_state {
	CM_IDLE = 1 << 0,
	CM_BOUND = 1 << 1,
	CM_ADDR_RESOLVED = 1 << 2,
	CM_ROUTE_RESOLVED = 1 << 3,
	CM_LISTENING = 1 << 4,
	CM_REQUEST = 1 << 5, /* a peer's request that the program has not answered */
	CM_CONNECTING = 1 << 6,
	CM_ACCEPTING = 1 << 7,
	CM_ESTABLISHED = 1 << 8,
	CM_CLOSING = 1 << 9, /* the program called rdma_disconnect() */
	CM_CLOSED = 1 << 10,
	CM_REMOVED = 1 << 11, /* the engine has gone */
	CM_ENDING = 1 << 12,  /* the program called rdma_destroy_id() */
};
#define CM_CONNECTED (CM_ESTABLISHED | CM_CLOSING)

/* A port that an id holds. */
struct cm_port {
	LIST_ENTRY(cm_port) next;
	struct sk_addr addr;
	enum rdma_port_space ps;
	uint16_t port; /* host order; 0: the id holds no port */
	bool reuse;    /* RDMA_OPTION_ID_REUSEADDR */
	bool afonly;   /* RDMA_OPTION_ID_AFONLY: :: stands for no IPv4 address */
	bool chosen;   /* the library chose the number, not the program */
};

struct cm_id {
	struct rdma_cm_id id;
	LIST_ENTRY(cm_id) next;
	enum cm_state state;
	uint32_t epoch;      /* vb_cm_epoch() of the process that created the id */
	bool sync;           /* the library created its channel, and calls wait for their event */
	uint8_t ack_timeout; /* RDMA_OPTION_ID_ACK_TIMEOUT, shown by ibv_query_qp(3); 0: none */
	/* RDMA_OPTION_ID_TOS of the id; of a request's id: of its listener, at first */
	uint8_t tos;
	bool tos_set;
	struct cm_port port;
	struct cm_device *dev;        /* the device to which the id is bound; held; or NULL */
	struct sk_addr local, remote; /* local unspecified: the engine chooses it */
	uint16_t rport;               /* the peer's port, host order */
	/* It exists from rdma_bind_addr() on. Before rdma_listen(), requests wait in `early`. An id
	 * that is bound to no device loses it when the saker goes, and gets one of the next saker.
	 * `listens_on` is the attachment that has it, and is held. */
	struct saker_listener *listener;
	struct vb_attachment *listens_on;
	STAILQ_HEAD(, vb_wait_item) early; /* of cm_event.item */
	uint32_t backlog;  /* of rdma_listen(): most requests that wait or are not acknowledged */
	uint32_t request;  /* in CM_REQUEST: the number by which the engine names the request */
	uint32_t qpn;      /* the number of the QP that is tied to the id; 0: none */
	uint16_t ird, ord; /* in CM_REQUEST: the largest depths that the peer's request permits */
	uint32_t pending;  /* events that wait or that the program has not acknowledged */
	struct ibv_sa_path_rec path;
	/* rdma_create_ep(), passive side: the attributes and the protection domain with which the
	 * QP of each request is created. NULL: the program creates the QPs. */
	struct ibv_qp_init_attr *qp_init;
	struct ibv_pd *ep_pd;
};

struct cm_event {
	struct rdma_cm_event ev;
	struct vb_wait_item item;
	struct cm_id *owner; /* the id whose count of pending events contains it */
	uint8_t private_data[CM_PRIVATE_MAX + 1];
};

struct cm_channel {
	struct rdma_event_channel channel;
	struct vb_waitq queue; /* of cm_event.item */
	uint32_t epoch;        /* vb_cm_epoch() of the process that created the channel */
};

static inline struct cm_id *
vb_cm_id_of(struct rdma_cm_id *id)
{
	return vb_container(id, struct cm_id, id);
}

static inline struct cm_channel *
vb_cm_channel_of(struct rdma_event_channel *ch)
{
	return vb_container(ch, struct cm_channel, channel);
}

/* Converts an errno into the result of an rdma_ function: 0, or -1 with errno set. */
static inline int
vb_cm_end(int err)
{
	if (err == 0)
		return 0;
	errno = err;
	return -1;
}

/* ---- id.c ---- */

void vb_cm_lock(void);
void vb_cm_unlock(void);
/* Releases vb_cm_lock(), sleeps until a thread that holds it calls vb_cm_wake(), and takes it
 * again. */
void vb_cm_wait(void);
void vb_cm_wake(void);
/* Returns the number of fork(2) calls between the first process and this one. An object with a
 * smaller number belongs to the parent process. */
uint32_t vb_cm_epoch(void);
/* Returns the type of the QPs that ids of a port space connect. */
enum ibv_qp_type vb_cm_qp_type_of(enum rdma_port_space ps);
/* Returns the class of packets that the id's traffic class determines. */
struct saker_class vb_cm_class_of(const struct cm_id *id);
/* Creates an id on `channel` and inserts it into the list. Returns NULL without memory. */
struct cm_id *vb_cm_id_new(
	struct rdma_event_channel *channel, void *context, enum rdma_port_space ps);
/* Removes an id from the list, releases its port and frees it. No other object may refer to it. */
void vb_cm_id_free(struct cm_id *id);
/* Calls `each` for every id. Call with vb_cm_lock() held. */
void vb_cm_id_each(void (*each)(struct cm_id *id, void *arg), void *arg);
/* Sets the state to `to` if the present state is in the mask `from`. Returns 0; EINVAL when the id
 * is in another state; ENODEV when the engine has gone or the id belongs to the parent process. */
int vb_cm_move(struct cm_id *id, unsigned from, enum cm_state to);
/* Makes the same check and leaves the state. */
int vb_cm_check(struct cm_id *id, unsigned in);

/* ---- event.c ---- */

/* Creates an event about `id`. Returns NULL without memory. */
struct cm_event *vb_cm_event_new(struct cm_id *id, enum rdma_cm_event_type type, int status);
/* Copies private data into the event, at most CM_PRIVATE_MAX bytes. */
void vb_cm_event_private(struct cm_event *e, const void *data, size_t len);
/* Appends the event to the queue of its owner's channel. Call with vb_cm_lock() held. */
void vb_cm_event_queue_locked(struct cm_event *e);
/* Does the same for an event that its owner has counted already. */
void vb_cm_event_push_locked(struct cm_event *e);
/* Creates an event and queues it. Returns 0 or ENOMEM. */
int vb_cm_event_raise(struct cm_id *id, enum rdma_cm_event_type type, int status);
/* Frees an event that the program does not receive. Rejects the request of a connect request. */
void vb_cm_event_drop(struct cm_event *e);
/* Keeps a request that has come before its listener listens. Call with vb_cm_lock() held. */
void vb_cm_event_keep_locked(struct cm_event *e);
/* Gives the ids of the requests that were kept the channel of the listener, which has moved. Call
 * with vb_cm_lock() held. */
void vb_cm_event_kept_follow(struct cm_id *id);
/* Queues the requests that were kept. */
void vb_cm_event_release(struct cm_id *id);
/* Rejects the requests that were kept. */
void vb_cm_event_refuse(struct cm_id *id);
/* Drops the waiting events of `id`. */
void vb_cm_event_purge(struct cm_id *id);
/* Waits until the program has acknowledged every event of `id`. */
void vb_cm_event_settle(struct cm_id *id);
/* Makes `id` the owner of an event that the program has fetched. */
void vb_cm_event_give(struct cm_event *e, struct cm_id *id);

/* ---- device.c ---- */

struct cm_device {
	SLIST_ENTRY(cm_device) next; /* of the devices whose saker has gone */
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_xrcd *xrcd; /* the default XRC domain; NULL until an id needs it */
	uint32_t epoch;        /* vb_cm_epoch() of the process that opened the device */
	uint32_t refs;         /* atomic: the ids that are bound to it, and calls that use it */
	bool listed;           /* rdma_get_devices() has returned `verbs`: it is never closed */
	bool removed;          /* atomic: its saker has gone */
};

/* Returns the device of a transport with its default protection domain, opens it if needed, and
 * holds it. Returns NULL with errno. */
struct cm_device *vb_cm_device_open(enum saker_transport transport);
/* Returns the device if it is open, else NULL. Does not wait. It stays open while the caller holds
 * the events' lock. */
struct cm_device *vb_cm_device_have(enum saker_transport transport);
void vb_cm_device_hold(struct cm_device *dev);
void vb_cm_device_release(struct cm_device *dev);
/* Marks the devices of an attachment whose saker has gone: the next call that needs one opens it
 * anew. Call with the events' lock held. */
void vb_cm_device_removed(const struct vb_attachment *a);
/* Closes the devices whose saker has gone and that nothing uses any more. */
void vb_cm_device_sweep(void);
/* Returns the open device that has this context, or NULL. */
struct cm_device *vb_cm_device_of(struct ibv_context *verbs);
/* Resets the lock of this part. Called in a child of fork(2) before any other function. */
void vb_cm_device_forked(void);
/* Returns the transport of the device to which an address of a port space is bound: $SAKER_DEVICE,
 * or else the first device that the program can open. */
enum saker_transport vb_cm_device_choice(enum rdma_port_space ps);
/* Binds an id to a device: sets its verbs, its port_num and, where the program gave none, its
 * pd. Takes over the caller's hold on the device. */
void vb_cm_device_bind(struct cm_id *id, struct cm_device *dev);
/* Unbinds the id, if it is bound, and releases the device. Call with vb_cm_lock() held: the end of
 * a saker looks for the ids of its devices. */
void vb_cm_device_unbind(struct cm_id *id);

/* ---- addr.c ---- */

/* Converts a socket address into an address and a port in host order. A loopback address becomes
 * the unspecified address of its family. Returns 0, EAFNOSUPPORT, or EINVAL for NULL. */
int vb_cm_addr_from(const struct sockaddr *sa, struct sk_addr *a, uint16_t *port);
/* Converts an address and a port in host order into a socket address. `scope` is used for
 * link-local addresses only. */
void vb_cm_addr_to(
	const struct sk_addr *a, uint16_t port, uint32_t scope, struct sockaddr_storage *sa);
/* Returns sin6_scope_id; 0 for IPv4. */
uint32_t vb_cm_addr_scope(const struct sockaddr *sa);
/* Finds the address of the device from which packets to `remote` are sent. Returns 0, or
 * ENETUNREACH when the device has no address of that family and scope. */
int vb_cm_addr_choose(const struct saker_device *d, const struct sk_addr *remote, uint32_t scope,
	struct sk_addr *local);
/* Returns whether the device has this address. */
bool vb_cm_addr_is_local(const struct saker_device *d, const struct sk_addr *a);
uint16_t vb_cm_addr_port(const struct sockaddr *sa); /* host order */
void vb_cm_addr_set_port(struct sockaddr *sa, uint16_t port);

/* ---- port.c: call with vb_cm_lock() held ---- */

/* Takes `port` of the port space, or a free port when `port` is 0, and releases the port that *p
 * held. Returns 0 or EADDRINUSE. */
int vb_cm_port_take(struct cm_port *p, enum rdma_port_space ps, const struct sk_addr *addr,
	uint16_t port, bool reuse);
void vb_cm_port_release(struct cm_port *p);

/* ---- resolve.c ---- */

/* Fills in the path record of an id whose device has path records. */
void vb_cm_path_fill(struct cm_id *id, const struct sk_addr *src, const struct sk_addr *dst);

/* ---- connect.c ---- */

/* Returns the QP that is tied to `id`, or NULL. Call with vb_events_lock() held; the QP stays valid
 * until the lock is released. */
struct vb_qp *vb_cm_qp_of(struct cm_id *id);
/* Ties a QP to the id: the id's own QP, or else the one that p->qp_num names. Returns 0, or EINVAL
 * when there is no such QP or another id connects it. */
int vb_cm_qp_tie(struct cm_id *id, const struct rdma_conn_param *p);
/* Unties the QP, if there is one. */
void vb_cm_qp_untie(struct cm_id *id);
/* Fills in the parameters of saker_connect() and saker_accept(). Returns 0, or EINVAL for a depth
 * (ORD, IRD) that exceeds the device's. With `p` NULL, the depths are the largest that the device
 * and, in CM_REQUEST, the peer's request permit. */
int vb_cm_conn_param(
	const struct cm_id *id, const struct rdma_conn_param *p, struct saker_conn_param *out);

/* ---- listen.c ---- */

/* Makes a bound id reachable before the program calls rdma_listen(): a peer that has the port
 * number already is not refused. Returns 0, or EADDRINUSE when another process has the port. */
int vb_cm_listen_early(struct cm_id *id);
/* Destroys the early listener, because the program connects or destroys the id. */
void vb_cm_listen_end(struct cm_id *id);
/* Destroys the listener, if there is one. Call with vb_events_lock() held. */
void vb_cm_unlisten(struct cm_id *id);
/* Creates the id's listener on an attachment that the caller holds. Call with vb_events_lock()
 * held. Returns 0, or -errno as saker_listen() does. */
int vb_cm_listen_on(struct cm_id *id, struct vb_attachment *a, uint32_t backlog);

/* Opens the devices on which the requests of a listener can arrive that is bound to none, because
 * the thread that processes requests must not wait. Returns 0, or ENODEV without any device. */
int vb_cm_listen_devices(void);

/* ---- listen_again.c ---- */

/* Waits for the next saker while ids listen that are bound to no device, and has them listen there.
 * Returns early when the descriptor `stop` is readable. The dispatching thread calls it when the
 * saker has gone. */
void vb_cm_listen_again(int stop);

/* ---- handler.c ---- */

/* Starts the processing of an attachment's connection events, if it has not started. The caller
 * holds the attachment. Returns 0 or errno. */
int vb_cm_handler_start(struct vb_attachment *a);

/* ---- endpoint.c ---- */

/* Waits, for a synchronous id, for the event of the operation that the caller has just started. For
 * any other id it returns 0 at once. Returns 0 or the errno that the event means. */
int vb_cm_complete(struct cm_id *id);
/* Does the same for an operation that has ended: takes its event if it still waits. */
int vb_cm_complete_past(struct cm_id *id);

/* ---- ud.c ---- */

/* Returns whether the id is of the UDP port space. */
bool vb_cm_is_ud(const struct cm_id *id);
/* Moves a new datagram QP to RTS. Returns 0 or errno. */
int vb_cm_ud_ready(struct cm_id *id, struct ibv_qp *qp);
/* Sends a request for the datagram service at the id's remote address. Returns 0 or errno. */
int vb_cm_ud_connect(struct cm_id *id, const struct rdma_conn_param *p);
/* Answers a request with the number of a datagram QP: the id's own, or p->qp_num. Returns 0 or
 * errno. */
int vb_cm_ud_accept(struct cm_id *id, const struct rdma_conn_param *p);
/* Fills in the event's parameters from a request or an answer of the peer. */
void vb_cm_ud_fill(struct cm_event *e, const struct cm_id *id, const struct saker_conn_info *cm);

#endif
