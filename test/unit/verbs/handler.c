/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signal handlers that poll and post while their thread is within the same functions. A handler
 * that waits for a lock of its own thread never ends, which the limit of time of each test ends.
 * The engine is test/mini, which the main thread calls outside of handlers.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "../../../drivers/verbs/events_priv.h"
#include "../../../drivers/verbs/ops_priv.h"
#include "../../../drivers/verbs/path_priv.h"
#include "../../../drivers/verbs/qp_priv.h"
#include "../../../drivers/verbs/wc_priv.h"
#include "../../../lib/client/client_priv.h"
#include "../../mini/mini.h"

#define HOME  (8ul << 20)
#define DEPTH 64
#define LIMIT 60 /* seconds */

static struct mini mini;
static struct saker *s;
static struct vb_context context;
static struct vb_kind kind;
static struct ibv_srq *no_srq;
static struct vb_cq *cq;
static struct vb_qp *qp[2];

/* ---- What the tested files need of others ---- */

int
vb_alive(struct ibv_context *c)
{
	return 0;
}

void
vb_owned_enter(struct ibv_context *c, struct vb_owned *o, enum vb_owned_kind k)
{
}

void
vb_owned_leave(struct vb_owned *o)
{
}

int
vb_fail(int err, const char *fmt, ...)
{
	return err;
}

int
vb_rc(int rc, const char *what)
{
	return rc < 0 ? -rc : 0;
}

void
vb_channel_ring(struct vb_cq *q)
{
}

void
vb_retire_begin(struct vb_retire *r)
{
}

void
vb_retire_end(struct vb_retire *r, bool destroyed)
{
}

/* ---- The rig ---- */

static struct vb_qp *
make_qp(struct saker_pd *pd)
{
	struct saker_qp_attr attr = {.send_cq = cq->saker,
		.recv_cq = cq->saker,
		.sq_depth = DEPTH,
		.rq_depth = DEPTH,
		.max_send_sge = 1,
		.max_recv_sge = 1};
	struct vb_qp *q = calloc(1, sizeof(*q));

	cr_assert_eq(saker_qp_create(pd, &attr, &q->saker), 0, "%s", saker_error());
	q->ex.qp_base.context = &context.vctx.context;
	q->ex.qp_base.srq = no_srq;
	q->ex.qp_base.state = IBV_QPS_RTS;
	q->init.cap.max_send_sge = 1;
	cr_assert_eq(vb_wr_init(q, IBV_QP_EX_WITH_RDMA_WRITE), 0);
	return q;
}

static void
start(void)
{
	struct saker_pd *pd;

	cr_assert(mini_init(&mini, HOME));
	cr_assert_eq(saker_open_flat(mini.home, mini.size, mini_idle, &mini, &s), 0, "%s",
		saker_error());
	context.kind = &kind;
	cq = calloc(1, sizeof(*cq));
	cq->cq.context = &context.vctx.context;
	cr_assert_eq(saker_cq_create(s, 4 * DEPTH, cq, &cq->saker), 0);
	cr_assert_eq(saker_pd_create(s, &pd), 0);
	for (int i = 0; i < 2; i++)
		qp[i] = make_qp(pd);
}

static void
end(void)
{
	for (int i = 0; i < 2; i++) {
		vb_wr_fini(qp[i]);
		free(qp[i]);
	}
	saker_close(s);
	free(cq);
	mini_free(&mini);
}

static int
post(struct vb_qp *q)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad = NULL;
	int rc = vb_post_send(&q->ex.qp_base, &wr, &bad);

	if (rc != 0 && bad != &wr)
		return -1;
	return rc;
}

static int
post_recv(struct vb_qp *q)
{
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad = NULL;
	int rc = vb_post_recv(&q->ex.qp_base, &wr, &bad);

	if (rc != 0 && bad != &wr)
		return -1;
	return rc;
}

/* Returns the number of completions, of at most `n`. */
static int
poll_cq(int n)
{
	struct ibv_wc wc[DEPTH];

	return vb_poll_cq(&cq->cq, n, wc);
}

static void (*in_handler)(void);

static void
on_usr1(int sig)
{
	in_handler();
}

/* Runs `f` in a signal handler. */
static void
interrupt(void (*f)(void))
{
	struct sigaction sa = {.sa_handler = on_usr1};

	in_handler = f;
	cr_assert_eq(sigaction(SIGUSR1, &sa, NULL), 0);
	cr_assert_eq(raise(SIGUSR1), 0);
}

static int result;

/* ---- One function interrupts another ---- */

static void
handler_polls(void)
{
	result = poll_cq(1);
}

Test(verbs_handler, a_poll_that_interrupted_a_poll_finds_nothing, .timeout = LIMIT)
{
	start();
	cr_assert_eq(post(qp[0]), 0);
	mini_poll(&mini);
	cr_assert(vb_path_enter(&cq->lock));
	result = -1;
	interrupt(handler_polls);
	cr_assert_eq(result, 0);
	vb_path_leave(&cq->lock);
	interrupt(handler_polls);
	cr_assert_eq(result, 1, "outside of the data path a handler finds the completion");
	cr_assert_eq(vb_path_depth, 0);
	end();
}

Test(verbs_handler, a_poll_between_start_poll_and_end_poll_finds_nothing, .timeout = LIMIT)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = DEPTH};
	struct ibv_poll_cq_attr none = {0};
	struct vb_cq *plain;
	struct ibv_cq_ex *ex;

	start();
	context.saker = s;
	context.info.max_cq_depth = DEPTH;
	context.vctx.context.num_comp_vectors = 1;
	ex = vb_create_cq_ex(&context.vctx.context, &attr);
	cr_assert_not_null(ex);
	plain = cq;
	/* The extended queue polls the queue of the completions. */
	((struct vb_cq *)ex)->saker = plain->saker;
	cr_assert_eq(post(qp[0]), 0);
	cr_assert_eq(post(qp[0]), 0);
	mini_poll(&mini);
	cr_assert_eq(ibv_start_poll(ex, &none), 0);
	cq = (struct vb_cq *)ex;
	result = -1;
	interrupt(handler_polls);
	cr_assert_eq(result, 0);
	cr_assert_eq(post(qp[1]), 0, "between the two, the program may post");
	ibv_end_poll(ex);
	interrupt(handler_polls);
	cr_assert_eq(result, 1);
	cr_assert_eq(vb_path_depth, 0);
	free(ex);
	cq = plain;
	end();
}

static int recv_result;

static void
handler_posts(void)
{
	result = post(qp[0]);
	recv_result = post_recv(qp[0]);
}

Test(verbs_handler, a_post_that_interrupted_a_post_to_the_same_queue_is_busy, .timeout = LIMIT)
{
	start();
	cr_assert(vb_path_enter(&qp[0]->sq_lock));
	interrupt(handler_posts);
	cr_assert_eq(result, EBUSY);
	cr_assert_eq(recv_result, 0, "the receive queue has a lock of its own");
	vb_path_leave(&qp[0]->sq_lock);
	cr_assert(vb_path_enter(&qp[0]->rq_lock));
	interrupt(handler_posts);
	cr_assert_eq(result, 0);
	cr_assert_eq(recv_result, EBUSY);
	vb_path_leave(&qp[0]->rq_lock);
	mini_poll(&mini);
	cr_assert_eq(poll_cq(DEPTH), 1);
	cr_assert_eq(vb_path_depth, 0);
	end();
}

static void
handler_builds(void)
{
	struct ibv_qp_ex *ex = &qp[0]->ex;

	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, 7, 7);
	ibv_wr_set_sge(ex, 7, 7, 7);
	result = ibv_wr_complete(ex);
	ibv_wr_start(ex);
	ibv_wr_abort(ex);
}

Test(verbs_handler, a_build_within_a_build_is_busy_and_leaves_it_as_it_is, .timeout = LIMIT)
{
	struct ibv_qp_ex *ex;

	start();
	ex = &qp[0]->ex;
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, 1, 2);
	interrupt(handler_builds);
	cr_assert_eq(result, EBUSY);
	interrupt(handler_posts);
	cr_assert_eq(result, EBUSY);
	ibv_wr_set_sge(ex, 0, 0, 0);
	ibv_wr_rdma_write(ex, 3, 4);
	cr_assert_eq(post(qp[1]), 0, "between the two, the program may post to another QP");
	cr_assert_eq(ibv_wr_complete(ex), 0);
	mini_poll(&mini);
	cr_assert_eq(poll_cq(DEPTH), 3);
	cr_assert_eq(vb_path_depth, 0);
	end();
}

/* ---- A build in a handler, and one of another thread ---- */

static pthread_barrier_t step;
static int inner_result;

static void
next_step(void)
{
	pthread_barrier_wait(&step);
}

/* Builds a request of the QP in the second thread, as a handler that interrupted a function of the
 * data path. The first thread acts between the steps. */
static void *
second_builds(void *arg)
{
	struct ibv_qp_ex *ex = arg;

	(void)vb_path_enter(&qp[1]->rq_lock);
	ibv_wr_start(ex);
	next_step();
	next_step();
	ibv_wr_rdma_write(ex, 5, 6);
	ibv_wr_set_sge(ex, 5, 6, 1);
	result = ibv_wr_complete(ex);
	next_step();
	next_step();
	vb_path_leave(&qp[1]->rq_lock);
	return NULL;
}

/* Starts a build, and the second thread, up to its refused start. */
static struct ibv_qp_ex *
two_builds(pthread_t *t, void *(*second)(void *arg))
{
	struct ibv_qp_ex *ex;

	start();
	ex = &qp[0]->ex;
	result = inner_result = -1;
	cr_assert_eq(pthread_barrier_init(&step, NULL, 2), 0);
	ibv_wr_start(ex);
	cr_assert_eq(pthread_create(t, NULL, second, ex), 0);
	next_step();
	return ex;
}

static void
two_builds_end(int requests)
{
	struct ibv_qp_ex *ex = &qp[0]->ex;

	mini_poll(&mini);
	cr_assert_eq(poll_cq(DEPTH), requests);
	/* The queue has one lock, which is free now. */
	ibv_wr_start(ex);
	interrupt(handler_posts);
	cr_assert_eq(result, EBUSY);
	ibv_wr_abort(ex);
	interrupt(handler_posts);
	cr_assert_eq(result, 0);
	context.dead = 1;
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, 1, 2);
	cr_assert_eq(ibv_wr_complete(ex), EIO);
	context.dead = 0;
	cr_assert_eq(vb_path_depth, 0);
	end();
}

Test(verbs_handler, a_refused_build_leaves_that_of_another_thread_as_it_is, .timeout = LIMIT)
{
	struct ibv_qp_ex *ex;
	pthread_t t;

	ex = two_builds(&t, second_builds);
	ibv_wr_rdma_write(ex, 1, 2);
	next_step();
	next_step();
	cr_assert_eq(result, EBUSY);
	ibv_wr_set_sge(ex, 0, 0, 0);
	ibv_wr_rdma_write(ex, 3, 4);
	ibv_wr_set_sge(ex, 0, 0, 0);
	cr_assert_eq(ibv_wr_complete(ex), 0);
	next_step();
	cr_assert_eq(pthread_join(t, NULL), 0);
	two_builds_end(2);
}

Test(verbs_handler, a_refused_build_posts_nothing_when_another_thread_has_ended_its_own,
	.timeout = LIMIT)
{
	struct ibv_qp_ex *ex;
	pthread_t t;

	ex = two_builds(&t, second_builds);
	ibv_wr_rdma_write(ex, 1, 2);
	ibv_wr_set_sge(ex, 0, 0, 0);
	cr_assert_eq(ibv_wr_complete(ex), 0);
	ibv_wr_start(ex);
	next_step();
	next_step();
	cr_assert_eq(result, EBUSY);
	ibv_wr_rdma_write(ex, 3, 4);
	ibv_wr_set_sge(ex, 0, 0, 0);
	cr_assert_eq(ibv_wr_complete(ex), 0);
	next_step();
	cr_assert_eq(pthread_join(t, NULL), 0);
	two_builds_end(2);
}

/* A handler interrupts the handler whose build was refused, and finds the queue free. */
static void *
second_builds_within(void *arg)
{
	struct ibv_qp_ex *ex = arg;

	(void)vb_path_enter(&qp[1]->rq_lock);
	ibv_wr_start(ex);
	next_step();
	next_step();
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, 5, 6);
	ibv_wr_set_sge(ex, 0, 0, 0);
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, 7, 8);
	ibv_wr_abort(ex);
	inner_result = ibv_wr_complete(ex);
	result = ibv_wr_complete(ex);
	vb_path_leave(&qp[1]->rq_lock);
	return NULL;
}

Test(verbs_handler, a_build_within_a_refused_one_has_the_queue, .timeout = LIMIT)
{
	struct ibv_qp_ex *ex;
	pthread_t t;

	ex = two_builds(&t, second_builds_within);
	ibv_wr_abort(ex);
	next_step();
	cr_assert_eq(pthread_join(t, NULL), 0);
	cr_assert_eq(inner_result, 0);
	cr_assert_eq(result, EBUSY);
	two_builds_end(1);
}

static void
handler_posts_elsewhere(void)
{
	result = post(qp[1]);
}

Test(verbs_handler, a_doorbell_within_a_doorbell_is_written_after_it, .timeout = LIMIT)
{
	start();
	cr_assert(sk_own(&s->doorbell[0].lock, 0));
	interrupt(handler_posts_elsewhere);
	cr_assert_eq(result, 0);
	sk_disown(&s->doorbell[0].lock);
	mini_poll(&mini);
	cr_assert_eq(poll_cq(DEPTH), 0, "the doorbell is late");
	cr_assert_eq(post(qp[0]), 0);
	mini_poll(&mini);
	cr_assert_eq(poll_cq(DEPTH), 2);
	end();
}

/* The holder of the lock may not run for a long time, while others post to all of their QPs. */
Test(verbs_handler, any_number_of_doorbells_waits_for_the_holder_of_the_lock, .timeout = LIMIT)
{
	struct cl_doorbell *b;
	uint32_t before;

	start();
	b = &s->doorbell[0];
	before = b->ring.next;
	b->lock = sk_self() + 64;
	for (uint32_t handle = 0; handle < 100; handle++)
		cr_assert(cl_ring(s, 0, handle));
	cr_assert_eq(b->ring.next, before);
	b->lock = 0;
	cr_assert(cl_ring(s, 0, 100));
	cr_assert_eq(b->ring.next - before, 101);
	for (uint32_t n = 0; n <= 100; n++) {
		const struct shm_doorbell *d = shm_take_peek(&mini.doorbell);

		cr_assert_not_null(d);
		cr_assert_eq(d->what, n == 0 ? 100 : n - 1);
		shm_take_pop(&mini.doorbell);
	}
	shm_take_publish(&mini.doorbell);
	end();
}

static void
handler_posts_shared(void)
{
	struct saker_srq srq = {
		.s = s, .rq = {.ring.entries = mini.home, .gone = &s->gone, .lock = sk_self()}};
	struct vb_srq vsrq = {.saker = &srq};
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad = NULL;

	result = saker_post_srq(&srq, &(struct saker_wr){0}, 1);
	cr_assert_eq(vb_post_srq_recv(&vsrq.srq, &wr, &bad), EBUSY);
	cr_assert_eq(bad, &wr);
}

Test(verbs_handler, a_post_within_a_post_to_a_shared_queue_is_busy, .timeout = LIMIT)
{
	start();
	interrupt(handler_posts_shared);
	cr_assert_eq(result, -EBUSY);
	end();
}

static void
mark(void *owner)
{
	(*(int *)owner)++;
}

/* The handler of the thread that holds the table may wait for the queue that the caller holds. */
Test(verbs_handler, a_mark_that_meets_a_held_table_is_made_when_that_is_released, .timeout = LIMIT)
{
	struct cl_table t = {.mark = mark};
	const uintptr_t holder[2] = {sk_self(), sk_self() + 64}; /* this thread, and another one */
	struct cl_node node[3];
	int marked[3] = {0};

	cr_assert_eq(cl_table_add(&t, &node[0], cl_key(CL_QPN, 5), &marked[0]), 0);
	cr_assert_eq(cl_table_add(&t, &node[1], cl_key(CL_QPN, 6), &marked[1]), 0);
	cr_assert_eq(cl_table_add(&t, &node[2], cl_key(CL_CQ, 5), &marked[2]), 0);
	for (int i = 0; i < 2; i++) {
		t.lock = holder[i];
		cl_table_mark(&t, 5);
		cr_assert_eq(marked[0], 2 * i);
		t.lock = 0;
		cl_table_find(&t, cl_key(CL_QPN, 6));
		cr_assert_eq(marked[0], 2 * i + 1);
		cl_table_mark(&t, 5);
		cr_assert_eq(marked[0], 2 * i + 2);
	}
	cr_assert_eq(marked[1] + marked[2], 0);
	cl_table_free(&t);
}

/* A program that finds nothing after an event sleeps until the next one. */
Test(verbs_handler, a_failed_completion_is_found_while_the_table_is_held, .timeout = LIMIT)
{
	struct shm_take *t;

	start();
	cr_assert_eq(poll_cq(DEPTH), 0, "it takes over the sub-ring");
	cr_assert_eq(post(qp[0]), 0);
	mini_poll(&mini);
	t = &cl_cq_of(cq->saker)->sub[0];
	((struct shm_cqe *)(uintptr_t)shm_take_at(t, t->next))->status = RD_WR_FLUSH_ERR;
	s->table.lock = sk_self() + 64;
	cr_assert_eq(poll_cq(DEPTH), 1);
	cr_assert_eq(qp[0]->saker->rq.failed, 0);
	s->table.lock = 0;
	cl_table_find(&s->table, 0);
	cr_assert_eq(qp[0]->saker->rq.failed, 1);
	cr_assert_eq(qp[1]->saker->rq.failed, 0);
	end();
}

/* ---- Any point of any function ---- */

#define ENOUGH 500 /* times that a handler has interrupted the data path */

static volatile sig_atomic_t met, odd;
static uint64_t posted, found; /* atomic */

static void
storm_post(struct vb_qp *q)
{
	int rc = post(q);

	if (rc == 0)
		__atomic_fetch_add(&posted, 1, __ATOMIC_RELAXED);
	else if (rc != EBUSY && rc != ENOMEM)
		odd = rc;
}

static void
on_alarm(int sig)
{
	met += vb_path_depth != 0;
	__atomic_fetch_add(&found, (uint64_t)poll_cq(8), __ATOMIC_RELAXED);
	storm_post(qp[1]);
	storm_post(qp[0]);
}

/* The fake completion queue has room for each request that the two send queues hold. */
static uint64_t
in_flight(void)
{
	return __atomic_load_n(&posted, __ATOMIC_RELAXED) -
	       __atomic_load_n(&found, __ATOMIC_RELAXED);
}

Test(verbs_handler, no_lock_is_waited_for_and_no_doorbell_is_lost, .timeout = LIMIT)
{
	const struct itimerval every = {.it_interval = {0, 50}, .it_value = {0, 50}}, never = {0};
	struct sigaction sa = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	sigset_t alarm_only;

	start();
	sigemptyset(&alarm_only);
	sigaddset(&alarm_only, SIGALRM);
	cr_assert_eq(sigaction(SIGALRM, &sa, NULL), 0);
	cr_assert_eq(setitimer(ITIMER_REAL, &every, NULL), 0);
	while (met < ENOUGH) {
		for (int i = 0; i < 2000; i++) {
			storm_post(qp[0]);
			__atomic_fetch_add(&found, (uint64_t)poll_cq(8), __ATOMIC_RELAXED);
		}
		pthread_sigmask(SIG_BLOCK, &alarm_only, NULL);
		while (mini_poll(&mini))
			;
		while (poll_cq(0) == 0 && in_flight() > 0) {
			int n = poll_cq(8);

			cr_assert_gt(n, 0, "%lu requests have no completion",
				(unsigned long)in_flight());
			found += (uint64_t)n;
		}
		pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
	}
	cr_assert_eq(setitimer(ITIMER_REAL, &never, NULL), 0);
	cr_assert_eq(odd, 0, "posting: %s", strerror(odd));
	cr_assert_eq(vb_path_depth, 0);
	while (mini_poll(&mini))
		;
	end();
}
