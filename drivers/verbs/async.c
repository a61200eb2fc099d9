/* SPDX-License-Identifier: BSD-3-Clause */
/* Asynchronous events: one queue per context, and for each object the numbers of events that the
 * program has fetched and acknowledged. Destroying an object waits until the two are equal. */
#include <stdlib.h>
#include <string.h>

#include "events_priv.h"
#include "ops_priv.h"
#include "verbs_priv.h"

struct async {
	struct vb_wait_item item;
	struct ibv_async_event event;
	struct vb_context *context;
};

/* Returns the count of fetched events of the object that the event names. Returns NULL for an event
 * of the port or the device. */
static uint32_t *
got_of(const struct ibv_async_event *e)
{
	switch (e->event_type) {
	case IBV_EVENT_CQ_ERR:
		return &vb_cq(e->element.cq)->async_got;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return &vb_qp(e->element.qp)->async_got;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return &vb_srq(e->element.srq)->async_got;
	default:
		return NULL;
	}
}

bool
vb_async_taken(struct vb_wait_item *item)
{
	uint32_t *got = got_of(&vb_container(item, struct async, item)->event);

	if (got != NULL)
		++*got;
	return false;
}

void
vb_async_raise(struct ibv_context *c, enum ibv_event_type type, void *element)
{
	struct async *a = vb_context(c)->closed ? NULL : calloc(1, sizeof(*a));

	if (a == NULL)
		return;
	a->event.event_type = type;
	if (element != NULL)
		a->event.element.qp = element;
	else
		a->event.element.port_num = 1;
	vb_waitq_push(&vb_context(c)->async, &a->item);
}

static bool
about(const struct vb_wait_item *item, void *element)
{
	const struct async *a = vb_container(item, const struct async, item);

	return got_of(&a->event) != NULL && a->event.element.qp == element;
}

static bool
any(const struct vb_wait_item *item, void *arg)
{
	return true;
}

void
vb_async_purge(struct ibv_context *c)
{
	struct vb_wait_item *item;

	while ((item = vb_waitq_take(&vb_context(c)->async, any, NULL)) != NULL)
		free(vb_container(item, struct async, item));
}

uint32_t
vb_async_hide(struct ibv_context *c, void *element, const uint32_t *got, struct vb_wait_items *to)
{
	struct vb_waitq *q = &vb_context(c)->async;
	struct vb_wait_item *item;
	uint32_t n;

	if (vb_context(c)->closed)
		return *got;
	while ((item = vb_waitq_take(q, about, element)) != NULL)
		STAILQ_INSERT_TAIL(to, item, next);
	if (vb_is_dead(c))
		return 0;
	pthread_mutex_lock(&q->lock);
	n = *got;
	pthread_mutex_unlock(&q->lock);
	return n;
}

static struct vb_wait_item *
hidden_take(struct vb_wait_items *from)
{
	struct vb_wait_item *item = STAILQ_FIRST(from);

	if (item != NULL)
		STAILQ_REMOVE_HEAD(from, next);
	return item;
}

void
vb_async_show(struct ibv_context *c, struct vb_wait_items *from)
{
	struct vb_wait_item *item;

	while ((item = hidden_take(from)) != NULL)
		vb_waitq_push(&vb_context(c)->async, item);
}

void
vb_async_drop(struct vb_wait_items *from)
{
	struct vb_wait_item *item;

	while ((item = hidden_take(from)) != NULL)
		free(vb_container(item, struct async, item));
}

/* Returns the event for the reason that ended a queue pair. Verbs have three: a request of the peer
 * that is not permitted, a request of the peer that is invalid, and any other error. The strings
 * are the names of the transports' reasons. */
static enum ibv_event_type
event_of(const char *reason)
{
	static const char *const forbidden[] = {"IW_DDP_T_STAG", "IW_DDP_T_BOUNDS",
		"IW_DDP_T_STREAM", "IW_DDP_T_WRAP", "IW_RDMAP_STAG", "IW_RDMAP_BOUNDS",
		"IW_RDMAP_ACCESS", "IW_RDMAP_STREAM", "IW_RDMAP_WRAP", "IW_RDMAP_CANNOT_INV",
		"ROF_STAG", "ROF_STAG_PD", "ROF_ACCESS", "ROF_BOUNDS", "ROF_CANNOT_INVALIDATE"};
	static const char *const invalid[] = {"IW_DDP_U_QN", "IW_DDP_U_NO_BUFFER", "IW_DDP_U_MSN",
		"IW_DDP_U_MO", "IW_DDP_U_TOO_LONG", "IW_RDMAP_OPCODE", "IW_IRD_EXCEEDED",
		"IW_ATOMIC_UNALIGNED", "IW_ATOMIC_OPERATION", "IW_EXT_LENGTH", "ROF_BAD_OPCODE",
		"ROF_LENGTH", "ROF_TOO_LONG", "ROF_SEQUENCE", "ROF_ATOMIC_UNALIGNED"};

	for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
		if (strcmp(reason, forbidden[i]) == 0)
			return IBV_EVENT_QP_ACCESS_ERR;
	for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
		if (strcmp(reason, invalid[i]) == 0)
			return IBV_EVENT_QP_REQ_ERR;
	return IBV_EVENT_QP_FATAL;
}

/* Returns whether the reason has failed a request of the queue pair. Its completion reports the
 * error, as InfiniBand has it, and devices raise no event. */
static bool
is_completed(const char *reason)
{
	static const char *const completed[] = {
		"ROF_CONNECTION_LOST", "ROF_UNREACHABLE", "ROF_REMOTE_ERROR"};

	for (size_t i = 0; i < sizeof(completed) / sizeof(completed[0]); i++)
		if (strcmp(reason, completed[i]) == 0)
			return true;
	return false;
}

/* ibv_qp.state is what the program set or queried last: programs that modify their queue pairs rely
 * on it (UCX asserts it before each request). The connection manager sets that of its own. */
void
vb_qp_fatal(struct vb_qp *qp, const struct saker_async *why)
{
	if (qp->cm != NULL || !vb_kind_of(qp->ex.qp_base.context)->modified_by_program)
		vb_qp_set_state(qp, IBV_QPS_ERR);
	if (!is_completed(why->reason))
		vb_async_raise(qp->ex.qp_base.context, event_of(why->reason), qp);
	vb_qp_failed(qp);
}

void
vb_cq_overflow(struct vb_cq *cq)
{
	vb_async_raise(cq->cq.context, IBV_EVENT_CQ_ERR, cq);
}

/* ibv_modify_srq(3): the event disarms the limit. */
void
vb_srq_limit(struct vb_srq *srq)
{
	__atomic_store_n(&srq->limit, 0, __ATOMIC_RELAXED);
	vb_async_raise(srq->srq.context, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
}

VB_EXPORT int
ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct vb_context *c = vb_context(context);
	struct vb_wait_item *item;

	if (vb_alive(context) != 0)
		return -1;
	while ((item = vb_waitq_pop(&c->async)) == NULL) {
		/* Without the dispatching thread this thread delivers the events: async_fd is
		 * readable when libsaker has some. */
		if (!vb_dispatch_running(c->at))
			vb_dispatch(c->at);
		item = vb_waitq_pop(&c->async);
		if (item != NULL)
			break;
		if (vb_waitq_wait(context->async_fd) < 0)
			return -1;
	}
	*event = vb_container(item, struct async, item)->event;
	free(vb_container(item, struct async, item));
	return 0;
}

static void
ack(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed)
{
	pthread_mutex_lock(mutex);
	++*completed;
	pthread_cond_broadcast(cond);
	pthread_mutex_unlock(mutex);
}

VB_EXPORT void
ibv_ack_async_event(struct ibv_async_event *event)
{
	uint32_t *got = got_of(event);
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_srq *srq = event->element.srq;

	if (got == NULL)
		return;
	if (got == &vb_cq(cq)->async_got)
		ack(&cq->mutex, &cq->cond, &cq->async_events_completed);
	else if (got == &vb_qp(qp)->async_got)
		ack(&qp->mutex, &qp->cond, &qp->events_completed);
	else
		ack(&srq->mutex, &srq->cond, &srq->events_completed);
}
