/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The beginning and the end of destroying an object that events name. A thread that has fetched an
 * event of the object may use the object until it acknowledges the event (ibv_get_cq_event(3),
 * ibv_get_async_event(3)). Until then, the object stays as it is, also in the engine. Its waiting
 * events are hidden meanwhile, so that no thread fetches a further one.
 */
#include "events_priv.h"

struct acks {
	uint32_t async, comp;
};

/* Returns how many events the program has acknowledged. */
static struct acks
acks_of(const struct vb_retire *r)
{
	struct acks n;

	pthread_mutex_lock(r->mutex);
	n.async = *r->async_acked;
	n.comp = r->cq != NULL ? r->cq->cq.comp_events_completed : 0;
	pthread_mutex_unlock(r->mutex);
	return n;
}

/* Sleeps until the program has acknowledged further events than `seen`. */
static void
acks_await(const struct vb_retire *r, const struct acks *seen)
{
	int state = vb_cancel_off();

	pthread_mutex_lock(r->mutex);
	while (*r->async_acked == seen->async &&
		(r->cq == NULL || r->cq->cq.comp_events_completed == seen->comp))
		pthread_cond_wait(r->cond, r->mutex);
	pthread_mutex_unlock(r->mutex);
	vb_cancel_back(state);
}

/* Hides the waiting events. Returns how many events the program has fetched. */
static struct acks
events_hide(struct vb_retire *r)
{
	struct acks n = {.async = vb_async_hide(r->context, r->element, r->async_got, &r->hidden)};

	if (r->cq != NULL)
		n.comp = vb_channel_hide(r->cq, &r->channel_hidden);
	return n;
}

void
vb_retire_begin(struct vb_retire *r)
{
	STAILQ_INIT(&r->hidden);
	if (r->cq != NULL && r->cq->cq.channel == NULL)
		r->cq = NULL;
	/* The acknowledgements are counted before the events are hidden: a thread that had an event
	 * may have caused another one before it acknowledged. */
	for (;;) {
		bool dead = vb_is_dead(r->context);
		struct acks seen = dead ? (struct acks){0} : acks_of(r), got;

		vb_events_lock();
		got = events_hide(r);
		if (dead || (got.async == seen.async && got.comp == seen.comp))
			return;
		vb_events_unlock();
		acks_await(r, &seen);
	}
}

void
vb_retire_end(struct vb_retire *r, bool destroyed)
{
	if (destroyed) {
		vb_async_drop(&r->hidden);
	} else {
		vb_async_show(r->context, &r->hidden);
		if (r->channel_hidden)
			vb_channel_show(r->cq);
	}
	vb_events_unlock();
}
