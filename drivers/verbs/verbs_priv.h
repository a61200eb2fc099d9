/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of libsaker-verbs share: libibverbs (this folder) and librdmacm (cm/) for programs
 * that were built against the genuine ones. Each object is the public structure, which comes first,
 * and what libsaker knows it by.
 *
 * A process has one attachment to a saker, opened when it is first needed, and at most one thread
 * of ours, begun when first somebody may sleep on a descriptor (vb_dispatch_start()). Functions
 * give 0 or a positive errno, or NULL with errno, as verbs do; saker_ functions give -errno, and
 * vb_rc() leads from those to these.
 *
 * Locks, in the order in which they may be taken: vb_events_lock(), those of cm/ (which therefore
 * holds none of its own when it destroys an object), the list of contexts, a waiting queue's, the
 * attachment's. The spin locks of the data path come last and are never held together.
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

#include "../../lib/base/spin.h"
#include "../../lib/client/saker.h"
#include "kind_priv.h"

/* These are macros or inline functions there, and symbols here. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#undef ibv_get_device_list

#define VB_EXPORT __attribute__((visibility("default")))

#define vb_container(ptr, type, member) ((type *)((uint8_t *)(ptr)-offsetof(type, member)))

/* ---- attachment.c ---- */

/* The process's attachment; opened by the first who asks ($SAKER_SOCKET). In a child after fork(2)
 * it is a new one. NULL with errno: no saker answers. */
struct saker *vb_saker(void);
/* Its device as it was when we attached; NULL with errno. */
const struct shm_device *vb_saker_device(void);
/* -errno to errno, which it also sets, and, where $SAKER_VERBOSE is set, one line on stderr:
 * `what`, and saker_error(). 0 stays 0. */
int vb_rc(int rc, const char *what);
/* Sets errno and says why where $SAKER_VERBOSE is set; returns `err`. */
int vb_fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- device.c ---- */

struct vb_device {
	struct ibv_device dev;
	/* Programs call into providers' libraries, which read behind the device to see whether it
	 * is one of theirs. */
	uint8_t behind[1024];
	const struct vb_kind *kind;
	__be64 guid;
};

/* The device of a transport, also before anybody listed it; NULL with errno: no saker, or it has
 * none of this kind, or $SAKER_DEVICES leaves it out. Static: it stays. */
struct vb_device *vb_device_of(enum shm_transport transport);

/* ---- waitq.c ---- */

/* What vb_waitq holds; part of something that its owner allocates. */
struct vb_wait_item {
	STAILQ_ENTRY(vb_wait_item) next;
};

/*
 * Things that wait behind a descriptor: it is readable while some do. Blocking as the program has
 * set the descriptor (O_NONBLOCK).
 */
struct vb_waitq {
	pthread_mutex_t lock;
	int event; /* eventfd */
	STAILQ_HEAD(, vb_wait_item) items;
	/* With the lock: somebody takes the first item. true: it stays, there is more of it. May be
	 * NULL. */
	bool (*taken)(struct vb_wait_item *item);
};

/* 0 or errno. */
int vb_waitq_init(struct vb_waitq *q, bool (*taken)(struct vb_wait_item *item));
void vb_waitq_fini(struct vb_waitq *q);
void vb_waitq_push(struct vb_waitq *q, struct vb_wait_item *item);
/* The first item, or NULL: none. */
struct vb_wait_item *vb_waitq_pop(struct vb_waitq *q);
/* Waits for it on q->event. NULL with errno: EAGAIN (the descriptor does not block), EINTR. */
struct vb_wait_item *vb_waitq_get(struct vb_waitq *q);
/* Sleeps until `fd` is readable. -1 with errno as above. */
int vb_waitq_wait(int fd);
/* Takes an item that `wanted` likes out of the middle, without a word to `taken`; NULL: none. For
 * the end of an object. */
struct vb_wait_item *vb_waitq_take(
	struct vb_waitq *q, bool (*wanted)(const struct vb_wait_item *, void *), void *arg);
/* For an owner that keeps its own account, with the lock: items have come; all have gone. */
void vb_waitq_signal(struct vb_waitq *q);
void vb_waitq_settle(struct vb_waitq *q);

/* ---- context.c ---- */

struct vb_context {
	struct verbs_context vctx; /* programs hold &vctx.context */
	LIST_ENTRY(vb_context) next;
	const struct vb_kind *kind; /* its device's */
	struct saker *saker;
	struct vb_waitq async; /* struct vb_async */
	struct shm_device info;
	bool poll_yields; /* see vb_poll_found() */
	uint32_t dead;    /* atomic: of a parent process, or its saker went away */
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

/* 0, or the errno of a context that belongs to another process. */
int vb_alive(struct ibv_context *c);

/* Destroying what belongs to another process frees our memory and nothing else. */
static inline bool
vb_is_dead(struct ibv_context *c)
{
	return __atomic_load_n(&vb_context(c)->dead, __ATOMIC_RELAXED) != 0;
}

/* ---- Objects ---- */

struct vb_pd {
	struct ibv_pd pd;
	struct saker_pd *saker;
	struct vb_pd *parent; /* a parent domain's: whose saker_pd it uses */
	uint32_t refs;        /* atomic: parent domains of it */
	bool single;          /* of a thread domain: its QPs and CQs need no lock */
};

struct vb_mr {
	struct ibv_mr mr;
	struct saker_mr *saker;
	uint64_t iova;
	uint32_t access;
};

struct vb_mw {
	struct ibv_mw mw;
	struct saker_mw *saker;
};

struct vb_channel {
	struct ibv_comp_channel channel;
	struct vb_waitq waitq; /* struct vb_cq.event_item */
};

struct vb_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex ex;
	};
	struct saker_cq *saker;
	uint32_t lock;
	bool single;
	struct rd_wc wc;  /* the extended way: the completion at which the program stands */
	uint32_t in_vain; /* polls that found nothing, in a row; nobody minds a wrong count */
	/* Under the lock of the channel's queue: how many events wait there, in one item, and how
	 * many were fetched. */
	struct vb_wait_item event_item;
	uint32_t events_waiting, events_got;
	uint32_t async_got; /* async events of it that were fetched: under that queue's lock */
	uint32_t refs;      /* atomic: QPs and SRQs that use it */
};

struct vb_srq {
	struct ibv_srq srq;
	struct saker_srq *saker;
	uint32_t lock;
	uint32_t max_wr, max_sge, limit;
	bool xrc;
	struct vb_cq *cq; /* XRC: where its completions go */
	struct vb_xrcd *xrcd;
	uint32_t async_got;
	uint32_t refs; /* atomic: QPs that use it */
};

struct vb_qp {
	struct ibv_qp_ex ex; /* &ex.qp_base is the ibv_qp */
	struct saker_qp *saker;
	uint32_t sq_lock, rq_lock;
	bool single;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr; /* what the program set */
	uint32_t async_got;
	struct vb_xrcd *xrcd;      /* of an XRC receive QP */
	void *cm;                  /* cm/: the rdma_cm_id's own part, or NULL */
	struct vb_wr_build *build; /* the ibv_wr_ way: what is being built */
};

struct vb_ah {
	struct ibv_ah ah;
	struct saker_ah *saker;
};

struct vb_xrcd {
	struct ibv_xrcd xrcd;
	struct saker_xrcd *saker;
	struct saker_pd *pd; /* for its receive QPs, which have none of the program's */
	uint32_t refs;       /* atomic: what is in it */
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

/* ---- qp_state.c: what cm/ and the dispatcher tell a QP ---- */

/* The connection manager moved it: INIT when it was made for an id, RTS when accepted or
 * established, ERR when the connection ended. */
void vb_qp_moved(struct vb_qp *qp, enum ibv_qp_state state);

/* ---- dispatch.c ---- */

/* Held while an event is taken from libsaker and handed on, and while an object that events are
 * about is destroyed. Not recursive. */
void vb_events_lock(void);
void vb_events_unlock(void);
/* Begins the thread that hands events on, once. 0 or errno. */
int vb_dispatch_start(void);
/* Hands on what waits now, in the calling thread. False: the saker has gone, nothing comes any
 * more. */
bool vb_dispatch(struct saker *s);
/*
 * From now on `fn` gets every event that is not about a CQ (connections, QPs in error, the end of
 * the engine), after this folder has done its part. It is called in the dispatching thread with the
 * events' lock held: ev->qp and ev->listener live until it returns (saker_qp_user() is the struct
 * vb_qp, saker_listener_user() the listener's own), it must not destroy what it is about, and it
 * must not wait. It may call saker_reject().
 */
typedef void vb_cm_fn(const struct saker_event *ev);
void vb_on_cm_event(vb_cm_fn *fn);

/* ---- async.c ---- */

/* Puts an event into the context's queue; `element` is the ibv_cq, ibv_qp or ibv_srq, or NULL for
 * the port or the device. */
void vb_async_raise(struct ibv_context *c, enum ibv_event_type type, void *element);
/* An object ends: forgets what waits about it. */
void vb_async_purge(struct ibv_context *c, void *element);

#endif
