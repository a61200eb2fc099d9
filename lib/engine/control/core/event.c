/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replies and events to clients. Messages for which the client's ring has no room wait in a queue
 * of bounded length. A client that reads its events cannot have more of them queued than its
 * objects and unanswered commands cause, so only a client that does not read overflows the queue.
 */
#include <stdlib.h>
#include <string.h>

#include "../../../base/log.h"
#include "../../common/waker.h"
#include "core.h"

static bool
is_event(const struct shm_msg *msg)
{
	return msg->op >= SHM_OP_COUNT;
}

/* Wakes the client if it sleeps until such a message comes. `event`: it is no reply. */
static void
ctl_wake_client(struct eng_control *c, const struct ctl_client *cl, bool event)
{
	if (eng_client_wake(&cl->eng, event))
		sk_count(c->counters, ENG_WAKE_SLOW);
}

static void
control_event_put(struct ctl_client *cl, const struct shm_msg *msg, uint32_t body_len)
{
	uint8_t *e = shm_prod_entry(&cl->evt);

	memcpy(e + sizeof(msg->turn), (const uint8_t *)msg + sizeof(msg->turn),
		offsetof(struct shm_msg, body) - sizeof(msg->turn) + body_len);
	shm_prod_push(&cl->evt);
}

struct ctl_event *
ctl_event_new(const struct shm_msg *msg, uint32_t body_len)
{
	size_t len = offsetof(struct shm_msg, body) + body_len;
	struct ctl_event *ev = malloc(sizeof(*ev) + len);

	if (ev != NULL) {
		memcpy(ev->msg, msg, len);
		ev->body_len = body_len;
	}
	return ev;
}

/* Queues or frees `ev`, which belongs to this function from here on. */
static void
enqueue(struct eng_control *c, struct ctl_client *cl, struct ctl_event *ev)
{
	if (ev == NULL || cl->nevents >= CTL_CLIENT_EVENTS + 3 * cl->qps.used) {
		free(ev);
		ctl_client_put_out(c, cl, "it does not read its events");
		return;
	}
	if (cl->nevents++ == 0)
		TAILQ_INSERT_TAIL(&c->backlogged, cl, backlogged);
	STAILQ_INSERT_TAIL(&cl->events, ev, next);
}

static bool
ring_is_free(struct ctl_client *cl)
{
	return STAILQ_EMPTY(&cl->events) && shm_prod_room(&cl->evt);
}

void
ctl_client_send(
	struct eng_control *c, struct ctl_client *cl, const struct shm_msg *msg, uint32_t body_len)
{
	if (cl->phase > CTL_LIVE)
		return;
	if (ring_is_free(cl)) {
		control_event_put(cl, msg, body_len);
		ctl_wake_client(c, cl, is_event(msg));
		return;
	}
	enqueue(c, cl, ctl_event_new(msg, body_len));
}

void
ctl_client_send_event(struct eng_control *c, struct ctl_client *cl, struct ctl_event *ev)
{
	if (ev != NULL && (cl->phase > CTL_LIVE || ring_is_free(cl))) {
		ctl_client_send(c, cl, (const struct shm_msg *)ev->msg, ev->body_len);
		free(ev);
		return;
	}
	enqueue(c, cl, ev);
}

bool
ctl_events_flush(struct eng_control *c, struct ctl_client *cl)
{
	struct ctl_event *ev;
	bool event = false;
	unsigned n;

	for (n = 0; n < CTL_TURN_EVENTS && (ev = STAILQ_FIRST(&cl->events)) != NULL &&
		    shm_prod_room(&cl->evt);
		n++) {
		STAILQ_REMOVE_HEAD(&cl->events, next);
		cl->nevents--;
		control_event_put(cl, (const struct shm_msg *)ev->msg, ev->body_len);
		event |= is_event((const struct shm_msg *)ev->msg);
		free(ev);
	}
	if (n)
		ctl_wake_client(c, cl, event);
	if (n && cl->nevents == 0) {
		TAILQ_REMOVE(&c->backlogged, cl, backlogged);
		ctl_ring_client(c, cl); /* the client's commands have waited for this */
	}
	return n != 0;
}

void
ctl_events_drop(struct eng_control *c, struct ctl_client *cl, uint32_t most)
{
	struct ctl_event *ev;

	while (most-- > 0 && (ev = STAILQ_FIRST(&cl->events)) != NULL) {
		STAILQ_REMOVE_HEAD(&cl->events, next);
		free(ev);
		if (--cl->nevents == 0)
			TAILQ_REMOVE(&c->backlogged, cl, backlogged);
	}
}

void
ctl_client_send_async(struct eng_control *c, struct ctl_client *cl, enum shm_op op, uint32_t object,
	int code, const char *reason)
{
	struct shm_msg m = {.op = (uint16_t)op};

	m.body.async.object = object;
	m.body.async.code = (uint32_t)code;
	strncpy(m.body.async.reason, reason, sizeof(m.body.async.reason) - 1);
	ctl_client_send(c, cl, &m, sizeof(m.body.async));
}

void
ctl_client_put_out(struct eng_control *c, struct ctl_client *cl, const char *why)
{
	if (cl->phase > CTL_LIVE)
		return;
	/* If stages have still to add the client, its objects are destroyed after they have. */
	cl->phase = CTL_REAP_QPS;
	cl->walk = 0;
	c->reaping++;
	sk_count(c->counters, ENG_CLIENT_DEAD);
	sk_log(SK_LOG_INFO, "client %u (%s) is removed: %s", cl->eng.index, cl->eng.name, why);
	__atomic_store_n(&cl->eng.dead, true, __ATOMIC_RELEASE);
	__atomic_store_n(&cl->eng.header->engine_alive, 0, __ATOMIC_RELEASE);
	ctl_wake_client(c, cl, true);
}
