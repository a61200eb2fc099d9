/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Destroying an object while another thread holds an event of it: the object works until the thread
 * has acknowledged the event (ibv_get_cq_event(3), ibv_get_async_event(3)). The engine is
 * test/mini. The thread acts when the main thread sleeps in pthread_cond_wait(3).
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>

#include "../../../drivers/verbs/events_priv.h"
#include "../../../drivers/verbs/ops_priv.h"
#include "../../../drivers/verbs/qp_priv.h"
#include "../../../lib/client/client_priv.h"
#include "../../mini/mini.h"

#define HOME  (4ul << 20)
#define DEPTH 16
#define LIMIT 60 /* seconds */

static struct mini mini;
static struct saker *s;
static struct vb_context context;
static struct vb_pd pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_qp *qp;
static pthread_mutex_t events = PTHREAD_MUTEX_INITIALIZER;

/* ---- What the tested files need of others ---- */

int
vb_dispatch_start(struct vb_attachment *a)
{
	return 0;
}

bool
vb_dispatch_running(const struct vb_attachment *a)
{
	return true;
}

bool
vb_dispatch(struct vb_attachment *a)
{
	return true;
}

void
vb_events_lock(void)
{
	pthread_mutex_lock(&events);
}

void
vb_events_unlock(void)
{
	pthread_mutex_unlock(&events);
}

void
vb_qp_failed(struct vb_qp *q)
{
}

void
vb_qp_set_state(struct vb_qp *q, enum ibv_qp_state state)
{
	q->ex.qp_base.state = state;
}

int
vb_wr_init(struct vb_qp *q, uint64_t ops)
{
	return 0;
}

void
vb_wr_fini(struct vb_qp *q)
{
}

/* ---- The rig ---- */

static uint32_t destroyed; /* commands that destroy an object; atomic */
static bool refuses;       /* the engine refuses these commands */

static bool
destroys(const struct shm_msg *m)
{
	return m->op == SHM_CQ_DESTROY || m->op == SHM_SRQ_DESTROY || m->op == SHM_QP_DESTROY;
}

/* Replies to a command with -EBUSY. */
static void
refuse(const struct shm_msg *m)
{
	struct shm_msg *out = shm_prod_entry(&mini.evt);

	out->op = m->op;
	out->tag = m->tag;
	out->status = -EBUSY;
	out->body.text[0] = '\0';
	shm_take_pop(&mini.cmd);
	shm_take_publish(&mini.cmd);
	shm_prod_push(&mini.evt);
}

static void
idle(void *arg)
{
	const struct shm_msg *m = shm_take_peek(&mini.cmd);

	if (m != NULL && destroys(m)) {
		__atomic_fetch_add(&destroyed, 1, __ATOMIC_RELAXED);
		if (refuses)
			refuse(m);
	}
	mini_poll(&mini);
}

static void
start(void)
{
	struct ibv_srq_init_attr sa = {.attr = {.max_wr = DEPTH, .max_sge = 1}};
	struct ibv_qp_init_attr qa = {.cap = {DEPTH, DEPTH, 1, 1, 0}, .qp_type = IBV_QPT_RC};

	cr_assert(mini_init(&mini, HOME));
	cr_assert_eq(saker_open_flat(mini.home, mini.size, idle, NULL, &s), 0);
	cr_assert_eq(vb_waitq_init(&context.async, vb_async_taken), 0);
	context.vctx.context.async_fd = context.async.event;
	cr_assert_eq(fcntl(context.async.event, F_SETFL, O_NONBLOCK), 0);
	context.kind = &vb_kinds[SAKER_IWARP];
	context.saker = s;
	context.info.max_cq_depth = context.info.max_rq_depth = DEPTH;
	context.vctx.context.num_comp_vectors = 1;
	pd.pd.context = &context.vctx.context;
	cr_assert_eq(saker_pd_create(s, &pd.saker), 0);
	channel = ibv_create_comp_channel(pd.pd.context);
	cr_assert_not_null(channel);
	cr_assert_eq(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	cq = ibv_create_cq(pd.pd.context, DEPTH, NULL, channel, 0);
	cr_assert_not_null(cq);
	srq = ibv_create_srq(&pd.pd, &sa);
	cr_assert_not_null(srq);
	qa.send_cq = qa.recv_cq = cq;
	qp = ibv_create_qp(&pd.pd, &qa);
	cr_assert_not_null(qp);
	qp->state = IBV_QPS_RTS;
}

static void
end(void)
{
	cr_assert_eq(ibv_destroy_comp_channel(channel), 0);
	vb_async_purge(pd.pd.context);
	vb_waitq_fini(&context.async);
	saker_close(s);
	mini_free(&mini);
}

TestSuite(verbs_retire, .init = start, .fini = end, .timeout = LIMIT);

/* ---- The thread that holds an event ---- */

static sem_t fetched, sleeping;
static bool acknowledged;

int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);

int
__wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	sem_post(&sleeping);
	return __real_pthread_cond_wait(cond, mutex);
}

/* Lets the main thread destroy the object until it waits for the acknowledgement. */
static void
wait_until_main_sleeps(void)
{
	sem_post(&fetched);
	while (sem_wait(&sleeping) != 0)
		;
	cr_assert_eq(__atomic_load_n(&destroyed, __ATOMIC_RELAXED), 0,
		"the engine destroys an object whose event is not acknowledged");
}

/* Destroys the object while a thread runs `holder`. */
static void
destroy_beside(void *(*holder)(void *arg), int (*destroy)(void))
{
	pthread_t t;

	cr_assert_eq(sem_init(&fetched, 0, 0), 0);
	cr_assert_eq(sem_init(&sleeping, 0, 0), 0);
	cr_assert_eq(pthread_create(&t, NULL, holder, NULL), 0);
	while (sem_wait(&fetched) != 0)
		;
	cr_assert_eq(destroy(), 0);
	cr_assert(__atomic_load_n(&acknowledged, __ATOMIC_RELAXED));
	cr_assert_eq(destroyed, 1);
	cr_assert_eq(pthread_join(t, NULL), 0);
}

static void
raise_async(enum ibv_event_type type, void *element)
{
	vb_events_lock();
	vb_async_raise(pd.pd.context, type, element);
	vb_events_unlock();
}

static void
raise_comp(void)
{
	vb_events_lock();
	vb_channel_event(vb_cq(cq));
	vb_events_unlock();
}

static void
fetch_comp(void)
{
	struct ibv_cq *of;
	void *arg;

	cr_assert_eq(ibv_get_cq_event(channel, &of, &arg), 0);
	cr_assert_eq(of, cq);
}

static void
ack_async(struct ibv_async_event *ev)
{
	__atomic_store_n(&acknowledged, true, __ATOMIC_RELAXED);
	ibv_ack_async_event(ev);
}

static void
complete(void)
{
	struct shm_cqe *e = shm_prod_entry(&mini.cq[0].ring);

	e->opcode = RD_RECV;
	e->flags = 0;
	e->status = RD_SUCCESS;
	shm_prod_push(&mini.cq[0].ring);
}

/* Arms a queue with a completion, so that there is a second event, and acknowledges the two. */
static void *
holder_arms_and_polls(void *arg)
{
	struct ibv_wc wc;

	fetch_comp();
	wait_until_main_sleeps();
	complete();
	cr_assert_eq(vb_req_notify_cq(cq, 0), 0);
	cr_assert_eq(vb_poll_cq(cq, 1, &wc), 1);
	fetch_comp();
	__atomic_store_n(&acknowledged, true, __ATOMIC_RELAXED);
	ibv_ack_cq_events(cq, 2);
	return NULL;
}

static int
destroy_cq(void)
{
	return ibv_destroy_cq(cq);
}

Test(verbs_retire, a_cq_works_until_its_events_are_acknowledged_ibv_get_cq_event_3)
{
	cr_assert_eq(ibv_destroy_srq(srq), 0);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	destroyed = 0;
	raise_comp();
	destroy_beside(holder_arms_and_polls, destroy_cq);
}

static void *
holder_polls(void *arg)
{
	struct ibv_async_event ev;
	struct ibv_wc wc;

	cr_assert_eq(ibv_get_async_event(pd.pd.context, &ev), 0);
	wait_until_main_sleeps();
	complete();
	cr_assert_eq(vb_poll_cq(ev.element.cq, 1, &wc), 1);
	ack_async(&ev);
	return NULL;
}

Test(verbs_retire, a_cq_works_until_its_error_is_acknowledged_ibv_get_async_event_3)
{
	cr_assert_eq(ibv_destroy_srq(srq), 0);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	destroyed = 0;
	raise_async(IBV_EVENT_CQ_ERR, cq);
	destroy_beside(holder_polls, destroy_cq);
}

static void *
holder_posts_shared(void *arg)
{
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad;
	struct ibv_async_event ev;

	cr_assert_eq(ibv_get_async_event(pd.pd.context, &ev), 0);
	wait_until_main_sleeps();
	cr_assert_eq(vb_post_srq_recv(ev.element.srq, &wr, &bad), 0);
	ack_async(&ev);
	return NULL;
}

static int
destroy_srq(void)
{
	return ibv_destroy_srq(srq);
}

Test(verbs_retire, an_srq_works_until_its_events_are_acknowledged_ibv_get_async_event_3)
{
	raise_async(IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	destroy_beside(holder_posts_shared, destroy_srq);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
}

static void *
holder_posts(void *arg)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	struct ibv_async_event ev;

	cr_assert_eq(ibv_get_async_event(pd.pd.context, &ev), 0);
	wait_until_main_sleeps();
	cr_assert_eq(vb_post_send(ev.element.qp, &wr, &bad), 0);
	ack_async(&ev);
	return NULL;
}

static int
destroy_qp(void)
{
	return ibv_destroy_qp(qp);
}

Test(verbs_retire, a_qp_works_until_its_events_are_acknowledged_ibv_get_async_event_3)
{
	raise_async(IBV_EVENT_QP_FATAL, qp);
	destroy_beside(holder_posts, destroy_qp);
	cr_assert_eq(ibv_destroy_srq(srq), 0);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
}

/* ---- Without such a thread ---- */

Test(verbs_retire, an_object_that_the_engine_does_not_destroy_keeps_its_events)
{
	struct ibv_async_event ev;

	cr_assert_eq(ibv_destroy_srq(srq), 0);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	for (int i = 0; i < 2; i++)
		raise_comp();
	raise_async(IBV_EVENT_CQ_ERR, cq);
	refuses = true;
	cr_assert_eq(ibv_destroy_cq(cq), EBUSY);
	refuses = false;
	raise_comp();
	for (int i = 0; i < 3; i++)
		fetch_comp();
	cr_assert_eq(ibv_get_async_event(pd.pd.context, &ev), 0);
	cr_assert_eq(ev.event_type, IBV_EVENT_CQ_ERR);
	ibv_ack_async_event(&ev);
	ibv_ack_cq_events(cq, 3);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
}

Test(verbs_retire, an_event_that_was_not_fetched_ends_with_its_object)
{
	struct ibv_async_event ev;
	struct ibv_cq *of;
	void *arg;

	raise_async(IBV_EVENT_QP_FATAL, qp);
	raise_async(IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	raise_comp();
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_srq(srq), 0);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
	cr_assert_eq(ibv_get_async_event(pd.pd.context, &ev), -1);
	cr_assert_eq(errno, EAGAIN);
	cr_assert_eq(ibv_get_cq_event(channel, &of, &arg), -1);
	cr_assert_eq(errno, EAGAIN);
}

Test(verbs_retire, a_child_does_not_wait_for_acknowledgements_of_its_parent)
{
	struct ibv_async_event ev;

	raise_comp();
	fetch_comp();
	raise_async(IBV_EVENT_QP_FATAL, qp);
	cr_assert_eq(ibv_get_async_event(pd.pd.context, &ev), 0);
	context.dead = 1;
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_srq(srq), 0);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
	cr_assert_eq(destroyed, 0);
	context.dead = 0;
}
