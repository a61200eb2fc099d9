/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replies and events to clients. What does not fit into the client's ring waits in a queue of
 * bounded length; what a lawful client can have coming is bounded by its objects and its unanswered
 * commands, so only one that does not read, and goes on asking, overflows it.
 */
#include <stdlib.h>
#include <unistd.h>

#include "../attach/client_priv.h"

void
ctl_wake_client(const struct ctl_client *cl)
{
	static const uint64_t one = 1;

	if (cl->eng.wake_fd < 0)
		return;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&cl->eng.header->client_sleeps, __ATOMIC_RELAXED))
		return;
	/* A full queue of wake-ups is a wake-up too. */
	if (write(cl->eng.wake_fd, &one, sizeof(one)) < 0)
		return;
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

/* Takes `ev`. */
static void
enqueue(struct eng_control *c, struct ctl_client *cl, struct ctl_event *ev)
{
	if (ev == NULL || cl->nevents >= CTL_CLIENT_EVENTS + 3 * cl->qps.used) {
		free(ev);
		client_put_out(c, cl, "it does not read its events");
		return;
	}
	if (cl->nevents++ == 0)
		TAILQ_INSERT_TAIL(&c->late, cl, late);
	STAILQ_INSERT_TAIL(&cl->events, ev, next);
}

static bool
ring_is_free(struct ctl_client *cl)
{
	return STAILQ_EMPTY(&cl->events) && shm_prod_room(&cl->evt);
}

void
ctl_tell(struct eng_control *c, struct ctl_client *cl, const struct shm_msg *msg, uint32_t body_len)
{
	if (cl->phase > CTL_LIVE)
		return;
	if (ring_is_free(cl)) {
		control_event_put(cl, msg, body_len);
		ctl_wake_client(cl);
		return;
	}
	enqueue(c, cl, ctl_event_new(msg, body_len));
}

void
ctl_tell_event(struct eng_control *c, struct ctl_client *cl, struct ctl_event *ev)
{
	if (ev != NULL && (cl->phase > CTL_LIVE || ring_is_free(cl))) {
		ctl_tell(c, cl, (const struct shm_msg *)ev->msg, ev->body_len);
		free(ev);
		return;
	}
	enqueue(c, cl, ev);
}

bool
ctl_events_flush(struct eng_control *c, struct ctl_client *cl)
{
	struct ctl_event *ev;
	bool work = false;

	while ((ev = STAILQ_FIRST(&cl->events)) != NULL && shm_prod_room(&cl->evt)) {
		STAILQ_REMOVE_HEAD(&cl->events, next);
		cl->nevents--;
		control_event_put(cl, (const struct shm_msg *)ev->msg, ev->body_len);
		free(ev);
		work = true;
	}
	if (work)
		ctl_wake_client(cl);
	if (work && cl->nevents == 0) {
		TAILQ_REMOVE(&c->late, cl, late);
		ctl_ring_client(c, cl); /* its commands had to wait */
	}
	return work;
}

void
ctl_events_drop(struct eng_control *c, struct ctl_client *cl)
{
	struct ctl_event *ev;

	if (cl->nevents)
		TAILQ_REMOVE(&c->late, cl, late);
	while ((ev = STAILQ_FIRST(&cl->events)) != NULL) {
		STAILQ_REMOVE_HEAD(&cl->events, next);
		free(ev);
	}
	cl->nevents = 0;
}

/* The reason's name, in the words of the QP's transport. */
static const char *
fatal_name(const struct ctl_client *cl, uint32_t qp, int code)
{
	const struct ctl_qp *q = ctl_table_get(&cl->qps, qp);

	if (code > 0 && q != NULL && q->eng.falcon && code < rof_reason_count)
		return rof_reasons.reasons[code].name;
	return code > 0 && code < iw_reason_count ? iw_reasons.reasons[code].name : "";
}

void
ctl_tell_async(
	struct eng_control *c, struct ctl_client *cl, enum shm_op op, uint32_t object, int code)
{
	struct shm_msg m = {.op = (uint16_t)op};
	const char *name = "";

	if (op == SHM_EV_QP_FATAL)
		name = fatal_name(cl, object, code);
	else if (op == SHM_EV_CQ_OVERFLOW)
		name = eng_reasons.reasons[ENG_CQ_OVERFLOW].name;
	m.body.async.object = object;
	m.body.async.code = (uint32_t)code;
	strncpy(m.body.async.reason, name, sizeof(m.body.async.reason) - 1);
	ctl_tell(c, cl, &m, sizeof(m.body.async));
}
