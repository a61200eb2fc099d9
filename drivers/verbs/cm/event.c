/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events for the program. The id that an event is about (for a connect request: the listener)
 * counts it from the moment when it is queued until the program acknowledges it. rdma_destroy_id()
 * waits until that count is 0, so that a thread that holds an event may use the id that it names.
 */
#include <stdlib.h>
#include <string.h>

#include "cm_priv.h"

static const char *const event_names[] = {
	[RDMA_CM_EVENT_ADDR_RESOLVED] = "RDMA_CM_EVENT_ADDR_RESOLVED",
	[RDMA_CM_EVENT_ADDR_ERROR] = "RDMA_CM_EVENT_ADDR_ERROR",
	[RDMA_CM_EVENT_ROUTE_RESOLVED] = "RDMA_CM_EVENT_ROUTE_RESOLVED",
	[RDMA_CM_EVENT_ROUTE_ERROR] = "RDMA_CM_EVENT_ROUTE_ERROR",
	[RDMA_CM_EVENT_CONNECT_REQUEST] = "RDMA_CM_EVENT_CONNECT_REQUEST",
	[RDMA_CM_EVENT_CONNECT_RESPONSE] = "RDMA_CM_EVENT_CONNECT_RESPONSE",
	[RDMA_CM_EVENT_CONNECT_ERROR] = "RDMA_CM_EVENT_CONNECT_ERROR",
	[RDMA_CM_EVENT_UNREACHABLE] = "RDMA_CM_EVENT_UNREACHABLE",
	[RDMA_CM_EVENT_REJECTED] = "RDMA_CM_EVENT_REJECTED",
	[RDMA_CM_EVENT_ESTABLISHED] = "RDMA_CM_EVENT_ESTABLISHED",
	[RDMA_CM_EVENT_DISCONNECTED] = "RDMA_CM_EVENT_DISCONNECTED",
	[RDMA_CM_EVENT_DEVICE_REMOVAL] = "RDMA_CM_EVENT_DEVICE_REMOVAL",
	[RDMA_CM_EVENT_MULTICAST_JOIN] = "RDMA_CM_EVENT_MULTICAST_JOIN",
	[RDMA_CM_EVENT_MULTICAST_ERROR] = "RDMA_CM_EVENT_MULTICAST_ERROR",
	[RDMA_CM_EVENT_ADDR_CHANGE] = "RDMA_CM_EVENT_ADDR_CHANGE",
	[RDMA_CM_EVENT_TIMEWAIT_EXIT] = "RDMA_CM_EVENT_TIMEWAIT_EXIT",
};

VB_EXPORT const char *
rdma_event_str(enum rdma_cm_event_type event)
{
	if ((unsigned)event >= sizeof(event_names) / sizeof(event_names[0]))
		return "UNKNOWN EVENT";
	return event_names[event];
}

struct cm_event *
vb_cm_event_new(struct cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct cm_event *e = calloc(1, sizeof(*e));

	if (e == NULL)
		return NULL;
	e->ev.id = &id->id;
	e->ev.event = type;
	e->ev.status = status;
	e->owner = id;
	return e;
}

void
vb_cm_event_private(struct cm_event *e, const void *data, size_t len)
{
	/* The two members of `param` have their private data at the same offset. */
	_Static_assert(offsetof(struct rdma_conn_param, private_data_len) ==
			       offsetof(struct rdma_ud_param, private_data_len),
		"both parameters have private data at one offset");

	if (len > CM_PRIVATE_MAX)
		len = CM_PRIVATE_MAX;
	if (len == 0)
		return;
	memcpy(e->private_data, data, len);
	e->ev.param.conn.private_data = e->private_data;
	e->ev.param.conn.private_data_len = (uint8_t)len;
}

/* Gives the new id of a request the channel of its listener. It must not keep another one: the
 * program may destroy the channel that a listener has left. */
static void
event_follow(struct cm_event *e)
{
	if (e->ev.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		e->ev.id->channel = e->owner->id.channel;
}

void
vb_cm_event_push_locked(struct cm_event *e)
{
	event_follow(e);
	vb_waitq_push(&vb_cm_channel_of(e->owner->id.channel)->queue, &e->item);
}

void
vb_cm_event_queue_locked(struct cm_event *e)
{
	e->owner->pending++;
	vb_cm_event_push_locked(e);
}

/* Does the work of vb_cm_event_queue_locked() without vb_cm_lock() held. */
static void
vb_cm_event_queue(struct cm_event *e)
{
	vb_cm_lock();
	vb_cm_event_queue_locked(e);
	vb_cm_unlock();
}

int
vb_cm_event_raise(struct cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct cm_event *e = vb_cm_event_new(id, type, status);

	if (e == NULL)
		return ENOMEM;
	vb_cm_event_queue(e);
	return 0;
}

/* Subtracts an event from its owner's count and frees it. */
static void
uncount(struct cm_event *e)
{
	vb_cm_lock();
	e->owner->pending--;
	vb_cm_wake();
	vb_cm_unlock();
	free(e);
}

void
vb_cm_event_drop(struct cm_event *e)
{
	/* The program has not received the id of this request, so that it cannot destroy it. */
	if (e->ev.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		rdma_destroy_id(e->ev.id);
	uncount(e);
}

static bool
event_is_about(const struct vb_wait_item *item, void *arg)
{
	return vb_container(item, struct cm_event, item)->owner == arg;
}

void
vb_cm_event_keep_locked(struct cm_event *e)
{
	e->owner->pending++;
	event_follow(e);
	STAILQ_INSERT_TAIL(&e->owner->early, &e->item, next);
}

void
vb_cm_event_kept_follow(struct cm_id *id)
{
	struct vb_wait_item *item;

	STAILQ_FOREACH (item, &id->early, next)
		event_follow(vb_container(item, struct cm_event, item));
}

/* Returns the first request that was kept, or NULL. Call with vb_cm_lock() held. */
static struct cm_event *
early_take(struct cm_id *id)
{
	struct vb_wait_item *item = STAILQ_FIRST(&id->early);

	if (item == NULL)
		return NULL;
	STAILQ_REMOVE_HEAD(&id->early, next);
	return vb_container(item, struct cm_event, item);
}

void
vb_cm_event_release(struct cm_id *id)
{
	struct cm_event *e;

	vb_cm_lock();
	while ((e = early_take(id)) != NULL)
		vb_cm_event_push_locked(e);
	vb_cm_unlock();
}

void
vb_cm_event_refuse(struct cm_id *id)
{
	struct cm_event *e;

	do {
		vb_cm_lock();
		e = early_take(id);
		vb_cm_unlock();
		if (e != NULL)
			vb_cm_event_drop(e);
	} while (e != NULL);
}

void
vb_cm_event_purge(struct cm_id *id)
{
	struct vb_waitq *q = &vb_cm_channel_of(id->id.channel)->queue;
	struct vb_wait_item *item;

	while ((item = vb_waitq_take(q, event_is_about, id)) != NULL)
		vb_cm_event_drop(vb_container(item, struct cm_event, item));
}

void
vb_cm_event_settle(struct cm_id *id)
{
	vb_cm_lock();
	while (id->pending != 0)
		vb_cm_wait();
	vb_cm_unlock();
}

void
vb_cm_event_give(struct cm_event *e, struct cm_id *id)
{
	vb_cm_lock();
	e->owner->pending--;
	e->owner = id;
	id->pending++;
	vb_cm_wake();
	vb_cm_unlock();
}

VB_EXPORT int
rdma_ack_cm_event(struct rdma_cm_event *event)
{
	if (event == NULL)
		return vb_cm_end(EINVAL);
	uncount(vb_container(event, struct cm_event, ev));
	return 0;
}
