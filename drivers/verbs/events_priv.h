/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions through which events reach the program. The callers of vb_channel_event(),
 * vb_channel_forget(), vb_cq_overflow(), vb_srq_limit(), vb_qp_fatal() and vb_contexts_gone() hold
 * the events' lock (vb_events_lock()). */
#ifndef SAKER_VERBS_EVENTS_PRIV_H
#define SAKER_VERBS_EVENTS_PRIV_H

#include "verbs_priv.h"

/* ---- channel.c ---- */

/* Queues a completion event on the channel of the CQ, if the CQ has one. */
void vb_channel_event(struct vb_cq *cq);
/* Queues an event on the channel of a CQ that has one, without a lock: a signal handler may call
 * it. Several calls may result in one event. */
void vb_channel_ring(struct vb_cq *cq);
/* Removes the waiting events of a CQ that is being destroyed. Returns the number of its events that
 * the program has fetched. */
uint32_t vb_channel_forget(struct vb_cq *cq);

/* ---- async.c ---- */

/* Raises IBV_EVENT_CQ_ERR. */
void vb_cq_overflow(struct vb_cq *cq);
/* Raises IBV_EVENT_SRQ_LIMIT_REACHED and disarms the limit. */
void vb_srq_limit(struct vb_srq *srq);
/* Sets the QP's state to ERR and raises the event that verbs have for the reason `why`. */
void vb_qp_fatal(struct vb_qp *qp, const struct saker_async *why);
/* Counts an asynchronous event that the program fetches (vb_waitq.taken). Returns false. */
bool vb_async_taken(struct vb_wait_item *item);
/* Waits until the program has acknowledged as many events of an object as it has fetched (`got`).
 * Called when the object is destroyed, without the events' lock. For an object of the parent
 * process it returns at once: threads of the parent acknowledge the events. */
void vb_await_acks(struct ibv_context *c, pthread_mutex_t *mutex, pthread_cond_t *cond,
	const uint32_t *completed, uint32_t got);

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
