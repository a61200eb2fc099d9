/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listeners that are bound to no device live on when the saker goes: they listen at the next one,
 * as a listener of the kernel's rdma_cm covers a device that is added later. Programs that only
 * wait for requests need not notice the change. The events' lock keeps the ids that have a listener
 * from being destroyed.
 */
#include <poll.h>

#include "cm_priv.h"

#define AGAIN_MS 200 /* between two looks for a saker */

struct search {
	struct cm_id *found;
};

static void
is_left(struct cm_id *id, void *arg)
{
	struct search *s = arg;

	if (id->id.verbs == NULL && id->listener != NULL && id->epoch == vb_cm_epoch() &&
		id->listens_on->gone)
		s->found = id;
}

/* Returns an id whose listener has lost its saker, or NULL. Call with the events' lock held. */
static struct cm_id *
left_find(void)
{
	struct search s = {.found = NULL};

	vb_cm_lock();
	vb_cm_id_each(is_left, &s);
	vb_cm_unlock();
	return s.found;
}

static bool
left_any(void)
{
	bool any;

	vb_events_lock();
	any = left_find() != NULL;
	vb_events_unlock();
	return any;
}

/* Queues the event for the program of an id that no longer listens. Call with the events' lock
 * held. */
static void
listener_lost(struct cm_id *id)
{
	vb_cm_lock();
	id->state = CM_REMOVED;
	vb_cm_unlock();
	vb_cm_event_raise(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
}

/* Moves the id's listener to the attachment. Returns false, and changes nothing, when the saker of
 * the attachment has gone as well. Call with the events' lock held. */
static bool
listener_move(struct cm_id *id, struct vb_attachment *a)
{
	uint32_t backlog = id->state == CM_LISTENING ? id->backlog : CM_BACKLOG_MAX;
	struct vb_attachment *old = id->listens_on;
	struct saker_listener *l = id->listener;
	int rc = vb_rc(vb_cm_listen_on(id, a, backlog), "listening again");

	if (rc == 0) {
		saker_unlisten(l);
		vb_attachment_release(old);
		return true;
	}
	if (saker_gone(a->saker))
		return false;
	vb_cm_unlisten(id);
	listener_lost(id);
	return true;
}

/* Returns false when the saker of the attachment has gone. */
static bool
listen_all(struct vb_attachment *a)
{
	struct cm_id *id;

	vb_events_lock();
	do
		id = left_find();
	while (id != NULL && listener_move(id, a));
	vb_events_unlock();
	return id == NULL;
}

/* Looks for a saker once. Returns whether all listeners listen there. */
static bool
listen_next(void)
{
	struct vb_attachment *a = saker_look(NULL) == 0 ? vb_attach() : NULL;
	bool all = a != NULL && vb_cm_listen_devices() == 0 && vb_cm_handler_start(a) == 0 &&
		   listen_all(a);

	if (a != NULL)
		vb_attachment_release(a);
	return all;
}

void
vb_cm_listen_again(int stop)
{
	struct pollfd p = {.fd = stop, .events = POLLIN};

	while (left_any())
		if (!listen_next() && poll(&p, 1, AGAIN_MS) > 0)
			return;
}
