/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions through which events reach the program. The callers of vb_channel_event(),
 * vb_channel_hide(), vb_channel_show(), vb_async_hide(), vb_async_show(), vb_cq_overflow(),
 * vb_srq_limit(), vb_qp_fatal() and vb_contexts_gone() hold the events' lock (vb_events_lock()). */
#ifndef SAKER_VERBS_EVENTS_PRIV_H
#define SAKER_VERBS_EVENTS_PRIV_H

#include "verbs_priv.h"

/* ---- channel.c ---- */

/* Queues a completion event on the channel of the CQ, if the CQ has one. */
void vb_channel_event(struct vb_cq *cq);
/* Queues an event on the channel of a CQ that has one, without a lock: a signal handler may call
 * it. Several calls may result in one event. */
void vb_channel_ring(struct vb_cq *cq);
/* Hides the waiting events of a CQ that has a channel, and sets *hidden if there are some: no call
 * fetches them, nor those that follow. Returns the number of events that the program has fetched;
 * in a child of the process that made the CQ, any number. */
uint32_t vb_channel_hide(struct vb_cq *cq, bool *hidden);
/* Makes hidden events available again. */
void vb_channel_show(struct vb_cq *cq);

/* ---- async.c ---- */

/* Raises IBV_EVENT_CQ_ERR. */
void vb_cq_overflow(struct vb_cq *cq);
/* Raises IBV_EVENT_SRQ_LIMIT_REACHED and disarms the limit. */
void vb_srq_limit(struct vb_srq *srq);
/* Sets the QP's state to ERR and raises the event that verbs have for the reason `why`. */
void vb_qp_fatal(struct vb_qp *qp, const struct saker_async *why);
/* Counts an asynchronous event that the program fetches (vb_waitq.taken). Returns false. */
bool vb_async_taken(struct vb_wait_item *item);
STAILQ_HEAD(vb_wait_items, vb_wait_item);
/* Moves the waiting events of an object to the end of the list `to`. Returns *got, the number of
 * events of the object that the program has fetched; in a child of the process that opened the
 * context, any number. */
uint32_t vb_async_hide(
	struct ibv_context *c, void *element, const uint32_t *got, struct vb_wait_items *to);
/* Moves hidden events back into the queue. */
void vb_async_show(struct ibv_context *c, struct vb_wait_items *from);
/* Frees hidden events. */
void vb_async_drop(struct vb_wait_items *from);

/* ---- retire.c ---- */

/* An object that is being destroyed. */
struct vb_retire {
	struct ibv_context *context;
	void *element;               /* as of vb_async_raise() */
	pthread_mutex_t *mutex;      /* the object's */
	pthread_cond_t *cond;        /* the object's */
	const uint32_t *async_acked; /* guarded by `mutex` */
	const uint32_t *async_got;   /* guarded by the lock of the context's queue */
	struct vb_cq *cq;            /* the object, if it is a CQ; else NULL */
	/* Set by vb_retire_begin(). */
	struct vb_wait_items hidden;
	bool channel_hidden;
};

/* Waits until the program has acknowledged all events of the object that it has fetched. Returns
 * with the events' lock held; from then on no thread fetches an event of the object. The caller
 * destroys the engine's object and calls vb_retire_end(). For an object of the parent process it
 * does not wait: threads of the parent acknowledge the events. */
void vb_retire_begin(struct vb_retire *r);
/* Releases the lock. `destroyed`: whether the waiting events end with the object; if not, all is as
 * it was before vb_retire_begin(). */
void vb_retire_end(struct vb_retire *r, bool destroyed);

/* ---- context.c ---- */

/* Raises IBV_EVENT_DEVICE_FATAL on every context of the attachment, because the saker has gone. */
void vb_contexts_gone(const struct vb_attachment *a);
/* Removes libsaker's descriptor from the async_fd of each context of the attachment: a thread
 * delivers its events from now on, so async_fd need not show events that wait at libsaker. */
void vb_contexts_dispatched(const struct vb_attachment *a);

/* ---- dispatch.c ---- */

/* Returns whether the thread that delivers the attachment's events runs. */
bool vb_dispatch_running(const struct vb_attachment *a);

#endif
