/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids: their list, their states, their destruction, and their handling in fork(2). */
#include <stdlib.h>

#include "cm_priv.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static LIST_HEAD(, cm_id) ids = LIST_HEAD_INITIALIZER(ids);
static uint32_t epoch;

void
vb_cm_lock(void)
{
	pthread_mutex_lock(&lock);
}

void
vb_cm_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void
vb_cm_wait(void)
{
	int state = vb_cancel_off();

	pthread_cond_wait(&changed, &lock);
	vb_cancel_back(state);
}

void
vb_cm_wake(void)
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
	vb_cm_device_forked();
}

/* Registers the handlers when the library is loaded. The handlers that are registered first run
 * last before a fork, so that vb_cm_lock() is taken after vb_events_lock(). */
__attribute__((constructor)) static void
watch_forks(void)
{
	pthread_atfork(vb_cm_lock, vb_cm_unlock, forked);
}

uint32_t
vb_cm_epoch(void)
{
	return __atomic_load_n(&epoch, __ATOMIC_RELAXED);
}

enum ibv_qp_type
vb_cm_qp_type_of(enum rdma_port_space ps)
{
	return ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
}

struct cm_id *
vb_cm_id_new(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps)
{
	struct cm_id *id = calloc(1, sizeof(*id));

	if (id == NULL)
		return NULL;
	id->id.channel = channel;
	id->id.context = context;
	id->id.ps = ps;
	id->id.qp_type = vb_cm_qp_type_of(ps);
	id->state = CM_IDLE;
	id->epoch = vb_cm_epoch();
	STAILQ_INIT(&id->early);
	vb_cm_lock();
	LIST_INSERT_HEAD(&ids, id, next);
	vb_cm_unlock();
	return id;
}

void
vb_cm_id_free(struct cm_id *id)
{
	vb_cm_lock();
	LIST_REMOVE(id, next);
	vb_cm_port_release(&id->port);
	vb_cm_unlock();
	if (id->dev != NULL)
		vb_cm_device_release(id->dev);
	free(id->qp_init);
	free(id);
}

void
vb_cm_id_each(void (*each)(struct cm_id *id, void *arg), void *arg)
{
	struct cm_id *id;

	LIST_FOREACH (id, &ids, next)
		each(id, arg);
}

/* Makes the check of vb_cm_check(). Call with vb_cm_lock() held. */
static int
state_is(const struct cm_id *id, unsigned in)
{
	if (id->epoch != vb_cm_epoch())
		return ENODEV;
	if ((id->state & in) != 0)
		return 0;
	return id->state == CM_REMOVED ? ENODEV : EINVAL;
}

int
vb_cm_move(struct cm_id *id, unsigned from, enum cm_state to)
{
	int err;

	vb_cm_lock();
	err = state_is(id, from);
	if (err == 0)
		id->state = to;
	vb_cm_unlock();
	return err;
}

int
vb_cm_check(struct cm_id *id, unsigned in)
{
	int err;

	vb_cm_lock();
	err = state_is(id, in);
	vb_cm_unlock();
	return err;
}

VB_EXPORT int
rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
	enum rdma_port_space ps)
{
	struct rdma_event_channel *own = NULL;
	struct cm_id *p;

	if (ps != RDMA_PS_TCP && ps != RDMA_PS_UDP && ps != RDMA_PS_IB)
		return vb_cm_end(vb_fail(EOPNOTSUPP, "the port space %#x is not supported", ps));
	if (channel == NULL) {
		own = rdma_create_event_channel();
		if (own == NULL)
			return -1;
	}
	p = vb_cm_id_new(own != NULL ? own : channel, context, ps);
	if (p == NULL) {
		if (own != NULL)
			rdma_destroy_event_channel(own);
		return vb_cm_end(ENOMEM);
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
	qp = vb_cm_qp_of(id);
	if (qp != NULL && id->state == CM_ESTABLISHED)
		saker_disconnect(qp->saker, true);
	if (qp != NULL)
		qp->cm = NULL;
	vb_cm_unlisten(id);
	if (id->state == CM_REQUEST)
		saker_reject(vb_context(id->id.verbs)->saker, id->request, NULL, 0);
	vb_cm_lock();
	id->state = CM_ENDING;
	vb_cm_unlock();
	vb_events_unlock();
}

VB_EXPORT int
rdma_destroy_id(struct rdma_cm_id *id)
{
	struct cm_id *p = vb_cm_id_of(id);
	struct rdma_event_channel *own = p->sync ? id->channel : NULL;

	if (p->epoch == vb_cm_epoch())
		id_cancel(p);
	if (id->event != NULL)
		rdma_ack_cm_event(id->event);
	id->event = NULL;
	vb_cm_event_refuse(p);
	vb_cm_event_purge(p);
	/* Threads of the parent process acknowledge the events of its ids, so that a child does not
	 * wait for them. */
	if (p->epoch == vb_cm_epoch())
		vb_cm_event_settle(p);
	vb_cm_id_free(p);
	vb_cm_device_sweep();
	if (own != NULL)
		rdma_destroy_event_channel(own);
	return 0;
}
