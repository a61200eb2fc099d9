/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids: their list, their states, their destruction, and their handling in fork(2). */
#include <stdlib.h>

#include "cm_priv.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static LIST_HEAD(, cm_id) ids = LIST_HEAD_INITIALIZER(ids);
static uint32_t epoch;

void
cm_lock(void)
{
	pthread_mutex_lock(&lock);
}

void
cm_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void
cm_wait(void)
{
	pthread_cond_wait(&changed, &lock);
}

void
cm_wake(void)
{
	pthread_cond_broadcast(&changed);
}

/* Runs in the child, which has only the thread that called fork(2). That thread holds the lock. */
static void
forked(void)
{
	epoch++;
	pthread_mutex_init(&lock, NULL);
	pthread_cond_init(&changed, NULL);
	cm_device_forked();
}

/* Registers the handlers when the library is loaded. The handlers that are registered first run
 * last before a fork, so that cm_lock() is taken after vb_events_lock(). */
__attribute__((constructor)) static void
watch_forks(void)
{
	pthread_atfork(cm_lock, cm_unlock, forked);
}

uint32_t
cm_epoch(void)
{
	return __atomic_load_n(&epoch, __ATOMIC_RELAXED);
}

enum ibv_qp_type
cm_qp_type_of(enum rdma_port_space ps)
{
	return ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
}

struct cm_id *
cm_id_new(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps)
{
	struct cm_id *id = calloc(1, sizeof(*id));

	if (id == NULL)
		return NULL;
	id->id.channel = channel;
	id->id.context = context;
	id->id.ps = ps;
	id->id.qp_type = cm_qp_type_of(ps);
	id->state = CM_IDLE;
	id->epoch = cm_epoch();
	cm_lock();
	LIST_INSERT_HEAD(&ids, id, next);
	cm_unlock();
	return id;
}

void
cm_id_free(struct cm_id *id)
{
	cm_lock();
	LIST_REMOVE(id, next);
	cm_port_release(&id->port);
	cm_unlock();
	free(id->qp_init);
	free(id);
}

void
cm_id_each(void (*each)(struct cm_id *id))
{
	struct cm_id *id;

	LIST_FOREACH (id, &ids, next)
		each(id);
}

/* Makes the check of cm_check(). Call with cm_lock() held. */
static int
state_is(const struct cm_id *id, unsigned in)
{
	if (id->epoch != cm_epoch())
		return ENODEV;
	if ((id->state & in) != 0)
		return 0;
	return id->state == CM_REMOVED ? ENODEV : EINVAL;
}

int
cm_move(struct cm_id *id, unsigned from, enum cm_state to)
{
	int err;

	cm_lock();
	err = state_is(id, from);
	if (err == 0)
		id->state = to;
	cm_unlock();
	return err;
}

int
cm_check(struct cm_id *id, unsigned in)
{
	int err;

	cm_lock();
	err = state_is(id, in);
	cm_unlock();
	return err;
}

VB_EXPORT int
rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
	enum rdma_port_space ps)
{
	struct rdma_event_channel *own = NULL;
	struct cm_id *p;

	if (ps != RDMA_PS_TCP && ps != RDMA_PS_UDP && ps != RDMA_PS_IB)
		return cm_end(vb_fail(EOPNOTSUPP, "the port space %#x is not supported", ps));
	if (channel == NULL) {
		own = rdma_create_event_channel();
		if (own == NULL)
			return -1;
	}
	p = cm_id_new(own != NULL ? own : channel, context, ps);
	if (p == NULL) {
		if (own != NULL)
			rdma_destroy_event_channel(own);
		return cm_end(ENOMEM);
	}
	p->sync = own != NULL;
	*id = &p->id;
	return 0;
}

/* Ends the operation that is in progress: aborts the connection, stops listening, or rejects the
 * request. After this, no event of the engine leads to the id. */
static void
id_cancel(struct cm_id *id)
{
	struct vb_qp *qp;

	vb_events_lock();
	qp = cm_qp_of(id);
	if (qp != NULL && id->state == CM_ESTABLISHED)
		saker_disconnect(qp->saker, true);
	if (qp != NULL)
		qp->cm = NULL;
	if (id->listener != NULL)
		saker_unlisten(id->listener);
	id->listener = NULL;
	if (id->state == CM_REQUEST)
		saker_reject(vb_context(id->id.verbs)->saker, id->request, NULL, 0);
	cm_lock();
	id->state = CM_CLOSED;
	cm_unlock();
	vb_events_unlock();
}

VB_EXPORT int
rdma_destroy_id(struct rdma_cm_id *id)
{
	struct cm_id *p = cm_id_of(id);
	struct rdma_event_channel *own = p->sync ? id->channel : NULL;

	if (p->epoch == cm_epoch())
		id_cancel(p);
	if (id->event != NULL)
		rdma_ack_cm_event(id->event);
	id->event = NULL;
	cm_event_purge(p);
	/* Threads of the parent process acknowledge the events of its ids, so that a child does not
	 * wait for them. */
	if (p->epoch == cm_epoch())
		cm_event_settle(p);
	cm_id_free(p);
	if (own != NULL)
		rdma_destroy_event_channel(own);
	return 0;
}
