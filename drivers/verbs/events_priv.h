/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the dispatcher hands events to. All but vb_contexts_dispatched() and vb_dispatch_running()
 * are called with the events' lock. */
#ifndef SAKER_VERBS_EVENTS_PRIV_H
#define SAKER_VERBS_EVENTS_PRIV_H

#include "verbs_priv.h"

/* channel.c */
void vb_channel_event(struct vb_cq *cq);
/* The CQ ends: its events are forgotten; how many were fetched. */
uint32_t vb_channel_forget(struct vb_cq *cq);
/* async.c */
void vb_cq_overflow(struct vb_cq *cq);
void vb_srq_limit(struct vb_srq *srq);
void vb_qp_fatal(struct vb_qp *qp, const struct shm_async *why);
bool vb_async_taken(struct vb_wait_item *item);
/* The end of an object waits until as many events of it were acknowledged as were fetched. */
void vb_await_acks(
	pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed, uint32_t got);
/* context.c: the saker has gone; from now on a thread hands on, so that the contexts' descriptors
 * need not show what waits undispatched. */
void vb_contexts_gone(void);
void vb_contexts_dispatched(void);

bool vb_dispatch_running(void);

#endif
