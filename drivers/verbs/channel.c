/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels: completion events behind a descriptor. A CQ has at most one item in the
 * queue of its channel, with a count of the events that wait. */
#include <stdlib.h>

#include "events_priv.h"
#include "verbs_priv.h"

static struct vb_channel *
channel_of(struct ibv_comp_channel *c)
{
	return (struct vb_channel *)c;
}

/* Counts an event of the CQ that the program fetches. Called with the queue's lock held. Returns
 * whether further events of the CQ wait. */
static bool
channel_taken(struct vb_wait_item *item)
{
	struct vb_cq *cq = vb_container(item, struct vb_cq, event_item);

	cq->events_got++;
	return --cq->events_waiting > 0;
}

/* Adds an event of the CQ. Called with the queue's lock held. */
static void
channel_add(struct vb_waitq *q, struct vb_cq *cq)
{
	if (cq->events_waiting++ == 0)
		STAILQ_INSERT_TAIL(&q->items, &cq->event_item, next);
}

void
vb_channel_event(struct vb_cq *cq)
{
	struct vb_waitq *q;

	if (cq->cq.channel == NULL)
		return;
	q = &channel_of(cq->cq.channel)->waitq;
	pthread_mutex_lock(&q->lock);
	channel_add(q, cq);
	vb_waitq_signal(q);
	pthread_mutex_unlock(&q->lock);
}

/* The values of vb_cq.ringing. An event that were fetched before its signal would leave the
 * descriptor readable without an event. */
enum {
	RING_NONE,   /* no event */
	RING_LISTED, /* the CQ is in the list, and the signal follows */
	RING_SIGNALLED,
};

static void
rung_push(struct vb_channel *c, struct vb_cq *cq)
{
	cq->next_rung = __atomic_load_n(&c->rung, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(
		&c->rung, &cq->next_rung, cq, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		;
}

void
vb_channel_ring(struct vb_cq *cq)
{
	struct vb_channel *c = channel_of(cq->cq.channel);
	uint32_t none = RING_NONE;

	/* The descriptor is readable for an event that waits already, or becomes readable. */
	if (!__atomic_compare_exchange_n(
		    &cq->ringing, &none, RING_LISTED, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	rung_push(c, cq);
	vb_waitq_signal(&c->waitq);
	__atomic_store_n(&cq->ringing, RING_SIGNALLED, __ATOMIC_RELEASE);
}

/* Returns whether the event of a CQ in the list may be fetched. In a child of fork(2), a thread
 * that was about to signal does not exist. */
static bool
is_signalled(const struct vb_cq *cq)
{
	return __atomic_load_n(&cq->ringing, __ATOMIC_ACQUIRE) == RING_SIGNALLED ||
	       vb_is_dead(cq->cq.context);
}

/* Queues the events of vb_channel_ring(). Called with the queue's lock held. */
static bool
channel_gather(struct vb_waitq *q)
{
	struct vb_channel *c = vb_container(q, struct vb_channel, waitq);
	struct vb_cq *cq = __atomic_load_n(&c->rung, __ATOMIC_RELAXED), *next;
	bool more = false;

	if (cq == NULL)
		return false;
	cq = __atomic_exchange_n(&c->rung, NULL, __ATOMIC_ACQ_REL);
	for (; cq != NULL; cq = next) {
		next = cq->next_rung;
		if (!is_signalled(cq)) {
			rung_push(c, cq);
			more = true;
			continue;
		}
		__atomic_store_n(&cq->ringing, RING_NONE, __ATOMIC_RELEASE);
		channel_add(q, cq);
	}
	return more;
}

static bool
is(const struct vb_wait_item *item, void *arg)
{
	return item == arg;
}

/* channel_add() does not insert the item of a CQ whose events wait already, so a hidden one stays
 * hidden. */
uint32_t
vb_channel_hide(struct vb_cq *cq, bool *hidden)
{
	struct vb_waitq *q = &channel_of(cq->cq.channel)->waitq;
	uint32_t got;

	if (vb_waitq_take(q, is, &cq->event_item) != NULL)
		*hidden = true;
	if (vb_is_dead(cq->cq.context))
		return 0;
	pthread_mutex_lock(&q->lock);
	got = cq->events_got;
	pthread_mutex_unlock(&q->lock);
	return got;
}

void
vb_channel_show(struct vb_cq *cq)
{
	vb_waitq_push(&channel_of(cq->cq.channel)->waitq, &cq->event_item);
}

VB_EXPORT struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *context)
{
	struct vb_channel *c = calloc(1, sizeof(*c));
	int rc = c == NULL ? ENOMEM : vb_alive(context);

	if (rc == 0)
		rc = vb_dispatch_start(vb_context(context)->at);
	if (rc == 0)
		rc = vb_waitq_init(&c->waitq, channel_taken);
	if (rc != 0) {
		free(c);
		errno = rc;
		return NULL;
	}
	c->waitq.gather = channel_gather;
	c->channel.context = context;
	c->channel.fd = c->waitq.event;
	return &c->channel;
}

VB_EXPORT int
ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct vb_channel *c = channel_of(channel);

	if (__atomic_load_n(&channel->refcnt, __ATOMIC_ACQUIRE) != 0)
		return EBUSY;
	vb_waitq_fini(&c->waitq);
	free(c);
	return 0;
}

VB_EXPORT int
ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct vb_wait_item *item = vb_waitq_get(&channel_of(channel)->waitq);
	struct vb_cq *c;

	if (item == NULL)
		return -1;
	c = vb_container(item, struct vb_cq, event_item);
	*cq = &c->cq;
	*cq_context = c->cq.cq_context;
	return 0;
}

VB_EXPORT void
ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	if (nevents == 0)
		return;
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_broadcast(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}
