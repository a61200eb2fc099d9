/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The declarations that all files of libsaker-verbs share. The library implements libibverbs (this
 * folder) and librdmacm (cm/) for programs that were built against the genuine libraries. Each
 * object is a structure that begins with the public structure of verbs and adds libsaker's handle.
 *
 * A process has one attachment to a saker at a time, which the library opens when a program first
 * needs it, and at most one thread of the library for it, which vb_dispatch_start() starts as soon
 * as a program can sleep on a descriptor. Functions return 0 or a positive errno, or NULL with
 * errno set, as verbs do. The functions of libsaker return -errno; vb_rc() converts the one into
 * the other.
 *
 * Locks, in the order in which a thread may take them: vb_events_lock(); the locks of cm/ (which
 * therefore holds no lock of its own when it destroys an object); the lock of the list of contexts;
 * the lock of a wait queue; the lock of the attachment. The locks of the data path come last
 * (path_priv.h). A thread waits for one only while no function of the data path runs in it.
 */
#ifndef SAKER_VERBS_PRIV_H
#define SAKER_VERBS_PRIV_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <time.h>

#include <saker/saker.h>

#include "../../lib/base/spin.h"
#include "kind_priv.h"

/* <infiniband/verbs.h> defines these names as macros or inline functions; this library exports
 * functions of the same names. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#undef ibv_get_device_list

#define VB_EXPORT __attribute__((visibility("default")))

#define vb_container(ptr, type, member) ((type *)((uint8_t *)(ptr)-offsetof(type, member)))

/* ---- attachment.c ---- */

/* An attachment to a saker. Each user of `saker` holds a reference. */
struct vb_attachment {
	struct saker *saker;
	struct saker_device device; /* as it was when the process attached */
	uint32_t refs;              /* guarded by attachment.c's lock */
	bool gone;                  /* SAKER_EV_ENGINE_GONE has come; guarded by the events' lock */
	/* The thread that delivers its events; see dispatch.c. */
	bool running, joined;
	pthread_t thread;
	int stop; /* eventfd: readable when the thread must end */
};

/* Returns the attachment of the process, and holds it. The first call opens it ($SAKER_SOCKET), and
 * so do the first call in a child after fork(2) and the first one after the saker has gone. Returns
 * NULL with errno when no saker answers. Takes the events' lock. */
struct vb_attachment *vb_attach(void);
/* Returns the attachment of the process as it is, and holds it; NULL: it has none. */
struct vb_attachment *vb_attachment_now(void);
void vb_attachment_hold(struct vb_attachment *a);
/* The last holder closes the attachment, which destroys all objects that belong to it. */
void vb_attachment_release(struct vb_attachment *a);
/* Returns the description of the saker's device as it was when the process attached, or NULL with
 * errno. It is never freed. Takes the events' lock. */
const struct saker_device *vb_saker_device(void);
/* Converts a result of libsaker, -errno, into a positive errno, which it also sets. Where
 * $SAKER_VERBOSE is set, prints one line on stderr: `what` and saker_error(). Returns 0 when `rc`
 * is not negative. */
int vb_rc(int rc, const char *what);
/* Sets errno to `err` and returns `err`. Where $SAKER_VERBOSE is set, prints the formatted reason
 * on stderr. */
int vb_fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Lets pthread_cancel(3) take effect after vb_cancel_back(), which gets the result: around what may
 * end a thread while it holds locks. */
static inline int
vb_cancel_off(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static inline void
vb_cancel_back(int state)
{
	pthread_setcancelstate(state, NULL);
}

/* ---- device.c ---- */

struct vb_device {
	struct ibv_device dev;
	/* Programs call functions of providers' libraries, which read bytes behind the ibv_device
	 * to detect their own devices. These bytes keep such a read inside the object. */
	uint8_t behind[1024];
	const struct vb_kind *kind;
	__be64 guid;
};

/* Returns the device of a transport; the program need not have listed it before. The device is
 * static and is never freed. Returns NULL with errno when no saker answers, when the saker has no
 * such device, or when $SAKER_DEVICES does not name it. */
struct vb_device *vb_device_of(enum saker_transport transport);

/* ---- waitq.c ---- */

/* An element of a vb_waitq. It is part of an object that the queue's owner allocates. */
struct vb_wait_item {
	STAILQ_ENTRY(vb_wait_item) next;
};

/*
 * A queue of items behind a descriptor. The descriptor is readable while the queue holds items. A
 * call blocks or not as the program has set the descriptor (O_NONBLOCK).
 */
struct vb_waitq {
	pthread_mutex_t lock;
	int event; /* the eventfd that the program polls */
	STAILQ_HEAD(, vb_wait_item) items;
	/* Called with the lock held when a caller takes the first item. Returns true when the item
	 * stays in the queue because it stands for further events. May be NULL. */
	bool (*taken)(struct vb_wait_item *item);
	/* Called with the lock held before a caller looks for items: adds those that the owner
	 * keeps elsewhere, after it has called vb_waitq_signal() for them. Returns whether there
	 * are others, for which that call is under way. May be NULL. */
	bool (*gather)(struct vb_waitq *q);
	uint32_t forks; /* tells the process that created it from its children */
};

/* Creates the descriptor and an empty queue. Returns 0 or the errno of eventfd(2). */
int vb_waitq_init(struct vb_waitq *q, bool (*taken)(struct vb_wait_item *item));
void vb_waitq_fini(struct vb_waitq *q);
void vb_waitq_push(struct vb_waitq *q, struct vb_wait_item *item);
/* Takes the first item out of the queue. Returns NULL when the queue is empty. */
struct vb_wait_item *vb_waitq_pop(struct vb_waitq *q);
/* Takes the first item and waits for it if the queue is empty. Returns NULL with errno EAGAIN when
 * the descriptor does not block, EINTR, unless
 * vb_restarts(), or EIO in a child of the process that created the queue. */
struct vb_wait_item *vb_waitq_get(struct vb_waitq *q);
/* Returns whether a call that poll(2) ended with EINTR goes on. It does when all handlers that may
 * have run have SA_RESTART; nothing shows which one it was. */
bool vb_restarts(void);
/* Sleeps until `fd` is readable. Returns 0, or -1 with errno EAGAIN or EINTR as above. */
int vb_waitq_wait(int fd);
/* Takes the first item for which `match` returns true, wherever it stands in the queue, without
 * calling q->taken. Returns NULL when there is none. Used when an object is destroyed. */
struct vb_wait_item *vb_waitq_take(
	struct vb_waitq *q, bool (*match)(const struct vb_wait_item *, void *), void *arg);
/* Makes the descriptor readable. For an owner that edits q->items itself. Call with the lock
 * held. */
void vb_waitq_signal(struct vb_waitq *q);

/* ---- context.c ---- */

/* The order is that in which the end of a context destroys objects. */
enum vb_owned_kind { VB_QP, VB_AH, VB_SRQ, VB_XRCD, VB_CQ, VB_MW, VB_MR, VB_PD, VB_OWNED_KINDS };

/* The part of an object by which its context knows it. */
struct vb_owned {
	LIST_ENTRY(vb_owned) next;
	struct vb_context *context;
	enum vb_owned_kind kind;
	bool ended; /* the context was closed, which has destroyed the engine's object */
};

struct vb_context {
	struct verbs_context vctx; /* programs hold the address of vctx.context */
	LIST_ENTRY(vb_context) next;
	const struct vb_kind *kind; /* the kind of its device */
	struct vb_attachment *at;   /* held, unless `dead` */
	struct saker *saker;        /* of `at` */
	struct vb_waitq async;      /* of struct async, see async.c */
	struct saker_device info;
	bool poll_yields; /* $SAKER_POLL is `yield`, see vb_poll_found() */
	uint32_t dead;    /* atomic; not 0: the context belongs to the parent process */
	/* The program has closed the context, which exists until its last object is destroyed:
	 * `async` and both descriptors do not exist any more. Guarded by the events' lock. */
	bool closed;
	uint64_t dev, ino; /* the file of cmd_fd, which imported contexts have in common */
	LIST_HEAD(, vb_owned) owned; /* guarded by the lock of the list of contexts */
};

static inline struct vb_context *
vb_context(struct ibv_context *c)
{
	return vb_container(c, struct vb_context, vctx.context);
}

static inline const struct vb_kind *
vb_kind_of(struct ibv_context *c)
{
	return vb_context(c)->kind;
}

/* Returns 0, or EIO for a context that belongs to the parent process. */
int vb_alive(struct ibv_context *c);
/* Enters a new object of the context. */
void vb_owned_enter(struct ibv_context *c, struct vb_owned *o, enum vb_owned_kind kind);
/* Called before the object is freed, which may end a closed context. */
void vb_owned_leave(struct vb_owned *o);

/* ---- ah.c ---- */

/* Returns the class of packets that a path names. 0 names none: verbs has no other value for that.
 * Bits of the flow label and of the service level that do not fit do not count. */
struct saker_class vb_class_of(const struct ibv_ah_attr *path);

/* ---- modes.c ---- */

/* Sets the modes for a new connection of the device from the environment; those without a variable
 * are as configured. Returns 0, or EINVAL for a variable with a wrong value. */
int vb_modes(struct ibv_context *c, struct saker_modes *out);

/* Returns whether the context belongs to the parent process. Destroying an object of such a context
 * frees the library's memory and does not call the engine. */
static inline bool
vb_is_dead(struct ibv_context *c)
{
	return __atomic_load_n(&vb_context(c)->dead, __ATOMIC_RELAXED) != 0;
}

/* Returns whether destroying the object must destroy one of the engine. */
static inline bool
vb_owned_live(struct ibv_context *c, const struct vb_owned *o)
{
	return !o->ended && !vb_is_dead(c);
}

/* ---- Objects ---- */

struct vb_pd {
	struct ibv_pd pd;
	struct vb_owned owned;
	LIST_ENTRY(vb_pd) next; /* in import.c */
	const struct vb_attachment *at;
	struct saker_pd *saker;
	/* Of a parent domain, and of one that was imported: the domain whose saker_pd it uses; else
	 * NULL. */
	struct vb_pd *parent;
	uint32_t refs; /* atomic: the parent domains that were made from it, and the objects that
			  lie in memory of its allocator */
	bool single;   /* it has a thread domain, so that its QPs and CQs need no lock */
	/* Of a parent domain with allocators (ibv_parent_domain_init_attr); else NULL. */
	void *(*alloc)(struct ibv_pd *pd, void *user, size_t size, size_t alignment, uint64_t type);
	void (*free)(struct ibv_pd *pd, void *user, void *p, uint64_t type);
	void *user;
};

struct vb_mr {
	struct ibv_mr mr;
	struct vb_owned owned;
	LIST_ENTRY(vb_mr) next; /* in import.c */
	struct saker_mr *saker; /* NULL: it was imported, and ends with its original */
	const struct saker_pd *domain;
	uint64_t iova;
	uint32_t access;
};

/* Enter a new domain or region in its context, and give it its handle, by which ibv_import_pd() and
 * ibv_import_mr() find it until the context is closed. */
void vb_pd_enter(struct vb_pd *pd);
void vb_mr_enter(struct vb_mr *mr);
/* Called before the object is freed. */
void vb_pd_leave(struct vb_pd *pd);
void vb_mr_leave(struct vb_mr *mr);
/* Makes that nothing finds the objects that a program has left in a context. */
void vb_objects_hide(const struct ibv_context *context);

struct vb_mw {
	struct ibv_mw mw;
	struct vb_owned owned;
	struct saker_mw *saker;
};

struct vb_channel {
	struct ibv_comp_channel channel;
	struct vb_waitq waitq; /* of vb_cq.event_item */
	struct vb_cq *rung;    /* atomic: the first CQ of vb_channel_ring(), or NULL */
};

struct vb_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex ex;
	};
	struct saker_cq *saker;
	uintptr_t lock;       /* of polling, see path_priv.h */
	bool single;          /* one thread polls it: the lock is not taken */
	bool stamped;         /* extended CQ: completions have timestamps */
	struct vb_kept *kept; /* older completions than those in the rings, or NULL; see cq.c */
	struct rd_wc wc;      /* extended CQ: the completion whose fields the program reads */
	struct timespec when; /* extended CQ: when it was polled, on CLOCK_MONOTONIC_RAW */
	uint32_t empty_polls; /* consecutive polls that found nothing; not exact between threads */
	/* Guarded by the lock of the channel's queue. One item stands for all events that wait
	 * there; the program has fetched `events_got` events. */
	struct vb_wait_item event_item;
	uint32_t events_waiting, events_got;
	/* While `ringing` (atomic) is not 0, the CQ is in the list vb_channel.rung. */
	struct vb_cq *next_rung;
	uint32_t ringing;
	/* The asynchronous events of the CQ that the program has fetched; guarded by the lock of
	 * the context's queue. */
	uint32_t async_got;
	uint32_t refs;       /* atomic: the QPs and SRQs that use it */
	struct vb_pd *owner; /* of its memory: see alloc_priv.h */
	struct vb_owned owned;
};

struct vb_srq {
	struct ibv_srq srq;
	struct saker_srq *saker;
	uint32_t max_wr, max_sge, limit;
	bool xrc;
	struct vb_cq *cq;     /* XRC: the CQ of its receives; else NULL */
	struct vb_xrcd *xrcd; /* XRC: its domain; else NULL */
	uint32_t async_got;   /* as vb_cq.async_got */
	uint32_t refs;        /* atomic: the QPs that use it */
	struct vb_pd *owner;  /* of its memory: see alloc_priv.h */
	struct vb_owned owned;
};

struct vb_qp {
	struct ibv_qp_ex ex; /* &ex.qp_base is the ibv_qp */
	struct saker_qp *saker;
	uintptr_t sq_lock, rq_lock; /* of posting, see path_priv.h */
	bool single;                /* one thread posts to it: the locks are not taken */
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;   /* the attributes that the program has set */
	uint32_t async_got;        /* as vb_cq.async_got */
	uint32_t failed;           /* atomic; not 0: the QP has entered the error state */
	struct vb_xrcd *xrcd;      /* of an XRC receive QP; else NULL */
	void *cm;                  /* the struct cm_id that connects it, or NULL */
	struct vb_wr_build *build; /* the requests of an ibv_wr_start(); NULL: no such posting */
	struct vb_pd *owner;       /* of its memory: see alloc_priv.h */
	struct vb_owned owned;
};

struct vb_ah {
	struct ibv_ah ah;
	struct saker_ah *saker;
	struct vb_owned owned;
};

struct vb_xrcd {
	struct ibv_xrcd xrcd;
	struct vb_owned owned;
	struct saker_xrcd *saker;
	struct saker_pd *pd; /* for its receive QPs: the program gives them no domain */
	uint32_t refs;       /* atomic: the QPs and SRQs in it */
};

static inline struct vb_pd *
vb_pd(struct ibv_pd *p)
{
	return (struct vb_pd *)p;
}

static inline struct vb_cq *
vb_cq(struct ibv_cq *p)
{
	return (struct vb_cq *)p;
}

static inline struct vb_srq *
vb_srq(struct ibv_srq *p)
{
	return (struct vb_srq *)p;
}

static inline struct vb_qp *
vb_qp(struct ibv_qp *p)
{
	return (struct vb_qp *)p;
}

static inline void
vb_hold(uint32_t *refs)
{
	__atomic_add_fetch(refs, 1, __ATOMIC_RELAXED);
}

static inline void
vb_release(uint32_t *refs)
{
	__atomic_sub_fetch(refs, 1, __ATOMIC_RELEASE);
}

static inline bool
vb_held(const uint32_t *refs)
{
	return __atomic_load_n(refs, __ATOMIC_ACQUIRE) != 0;
}

/* ---- cq.c ---- */

/* Removes the completions of a QP from a CQ, as the step to RESET demands. `cq` may be NULL. */
void vb_cq_clean(struct ibv_cq *cq, uint32_t qpn);

/* ---- qp_state.c ---- */

/* Sets the state that the program sees. The connection manager and the dispatcher call it: INIT
 * when the QP is made for an id, RTS when the connection is accepted or established, ERR when the
 * connection ends. */
void vb_qp_set_state(struct vb_qp *qp, enum ibv_qp_state state);
/* Raises IBV_EVENT_QP_LAST_WQE_REACHED for a QP with an SRQ, unless that was done since the QP was
 * last in another state than ERR. vb_qp_set_state() does this, too. */
void vb_qp_failed(struct vb_qp *qp);

/* ---- dispatch.c ---- */

/* Takes the events' lock: a thread holds it while it takes an event from libsaker and delivers it,
 * and while it destroys an object that events can name. Not recursive. */
void vb_events_lock(void);
void vb_events_unlock(void);
/* Starts the thread that delivers the events of an attachment that the caller holds, if it does not
 * run yet and the saker has not gone. Returns 0 or errno. */
int vb_dispatch_start(struct vb_attachment *a);
/* Delivers the events that wait now, in the calling thread. Returns false when the saker has gone
 * and no further event will come. */
bool vb_dispatch(struct vb_attachment *a);
/*
 * A receiver of all events but those of completions: connections, QPs in error, the end of the
 * engine. The dispatching thread calls it with the events' lock held, after the libibverbs side has
 * processed the event. ev->qp and ev->listener stay valid until the receiver returns;
 * saker_qp_user() gives the struct vb_qp, saker_listener_user() the value that cm/ passed to
 * saker_listen(). The receiver must not destroy these objects and must not wait. It may call
 * saker_reject().
 */
typedef void vb_cm_fn(struct vb_attachment *a, const struct saker_event *ev);
/* Called by the dispatching thread at its end, without a lock, when the saker has gone. It may wait
 * until `stop` is readable: then the process ends. */
typedef void vb_cm_gone_fn(int stop);
/* Sets the two. */
void vb_on_cm_event(vb_cm_fn *fn, vb_cm_gone_fn *gone);

/* ---- async.c ---- */

/* Appends an asynchronous event to the queue of a context that is not closed. `element` is the
 * ibv_cq, ibv_qp or ibv_srq, or NULL for an event of the port or the device. */
void vb_async_raise(struct ibv_context *c, enum ibv_event_type type, void *element);
/* Frees the waiting events of a context that is being closed. */
void vb_async_purge(struct ibv_context *c);

#endif
