/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma_migrate_id(3): moves an id and its waiting events to another event channel, or to a channel
 * of its own, which makes the id synchronous. */
#include "cm_priv.h"

static bool
migrate_is_misplaced(const struct vb_wait_item *item, void *arg)
{
	return vb_container(item, struct cm_event, item)->owner->id.channel == arg;
}

/* Sets the channel and moves the waiting events. The ids of waiting requests, which the program has
 * not received yet, move with their listener and with the events that they have. Call with
 * vb_cm_lock() held, so that no event is queued meanwhile. */
static void
move_events(struct cm_id *id, struct rdma_event_channel *to)
{
	struct vb_waitq *from = &vb_cm_channel_of(id->id.channel)->queue;
	struct vb_wait_item *item;

	if (id->id.channel == to)
		return;
	id->id.channel = to;
	vb_cm_event_kept_follow(id);
	while ((item = vb_waitq_take(from, migrate_is_misplaced, to)) != NULL)
		vb_cm_event_push_locked(vb_container(item, struct cm_event, item));
}

VB_EXPORT int
rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	struct cm_id *p = vb_cm_id_of(id);
	struct rdma_event_channel *own = p->sync ? id->channel : NULL, *to = channel;

	if (p->epoch != vb_cm_epoch())
		return vb_cm_end(ENODEV);
	if (to == NULL)
		to = rdma_create_event_channel();
	if (to == NULL)
		return -1;
	if (id->event != NULL)
		rdma_ack_cm_event(id->event);
	id->event = NULL;
	vb_cm_lock();
	move_events(p, to);
	p->sync = channel == NULL;
	vb_cm_unlock();
	if (own != NULL && own != to)
		rdma_destroy_event_channel(own);
	return 0;
}
