/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleeping and waking, inside the library and outside on saker_fd(). The loss of a wake-up hangs
 * the test. */
#include <criterion/criterion.h>

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../lib/client/client_priv.h"
#include "fake_sock.h"

static struct fake_sock k;
static struct saker *s;
static struct saker_pd *pd;
static struct saker_cq *cq;
static struct saker_qp *qp;

static void
setup(void)
{
	struct saker_qp_attr attr = {.sq_depth = 4, .rq_depth = 4, .max_send_sge = 1};

	memset(&k, 0, sizeof(k));
	fake_sock_start(&k);
	cr_assert_eq(saker_open(k.path, "a test", &s), 0, "%s", saker_error());
	cr_assert_eq(saker_pd_create(s, &pd), 0);
	cr_assert_eq(saker_cq_create(s, 8, NULL, &cq), 0);
	attr.send_cq = attr.recv_cq = cq;
	cr_assert_eq(saker_qp_create(pd, &attr, &qp), 0);
}

static void
teardown(void)
{
	saker_close(s);
	fake_sock_stop(&k);
}

TestSuite(client_wait, .init = setup, .fini = teardown);

static void
established(void)
{
	struct shm_msg m = {.op = SHM_EV_ESTABLISHED};

	m.body.cm.qp = 7;
	pthread_mutex_lock(&k.lock);
	fake_event(&k.f, &m);
	pthread_mutex_unlock(&k.lock);
}

static void
completion(void)
{
	pthread_mutex_lock(&k.lock);
	cr_assert(fake_complete(&k.f, 0, 1, 1, RD_WC_SOLICITED));
	pthread_mutex_unlock(&k.lock);
}

static bool
readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

Test(client_wait, nothing_there_ends_with_the_time)
{
	cr_assert_eq(saker_wait(s, 0), 0);
	cr_assert_eq(saker_wait(s, 3), 0);
	cr_assert_eq(k.f.h->client_sleeps, 0, "awake again");
}

Test(client_wait, what_came_before_is_found_without_sleeping)
{
	struct saker_event ev;
	struct saker_cq *which;
	uint64_t wakes = k.f.wakes;

	established();
	cr_assert_eq(saker_wait(s, -1), 1);
	cr_assert_eq(saker_event(s, &ev), 1);
	saker_cq_arm(cq, false);
	completion();
	cr_assert_eq(saker_wait(s, -1), 1);
	cr_assert_eq(saker_cq_event(s, &which), 1);
	cr_assert_eq(which, cq);
	cr_assert_eq(k.f.wakes, wakes, "a client that is awake is not woken");
}

static void *
later(void *arg)
{
	/* After the client has set its flag. */
	while (__atomic_load_n(&k.f.h->client_sleeps, __ATOMIC_ACQUIRE) == 0)
		sched_yield();
	((void (*)(void))(uintptr_t)arg)();
	return NULL;
}

static void
wakes_from(void (*what)(void))
{
	pthread_t t;

	pthread_create(&t, NULL, later, (void *)(uintptr_t)what);
	cr_assert_eq(saker_wait(s, -1), 1);
	pthread_join(t, NULL);
}

Test(client_wait, an_event_wakes_a_sleeper)
{
	struct saker_event ev;
	struct saker_cq *which;

	for (int i = 0; i < 50; i++) {
		wakes_from(established);
		cr_assert_eq(saker_event(s, &ev), 1);
		saker_cq_arm(cq, true);
		wakes_from(completion);
		cr_assert_eq(saker_cq_event(s, &which), 1);
		cr_assert_eq(saker_cq_poll(cq, &(struct rd_wc){0}, 1), 1);
	}
}

Test(client_wait, a_post_wakes_an_engine_that_sleeps)
{
	struct saker_wr wr = {.opcode = RD_SEND};
	uint32_t rung = 0;

	for (uint32_t i = 1; i <= 50; i++) {
		struct shm_sqe e;

		cr_assert_eq(saker_post_send(qp, &wr, 1), 1);
		while (rung < i) {
			pthread_mutex_lock(&k.lock);
			rung = k.f.qp[0].rung;
			pthread_mutex_unlock(&k.lock);
			sched_yield();
		}
		pthread_mutex_lock(&k.lock);
		cr_assert(fake_sq(&k.f, 0, &e));
		pthread_mutex_unlock(&k.lock);
	}
	cr_assert_gt(k.wakes, 0);
}

Test(client_wait, the_descriptor_is_readable_while_something_waits_and_silent_after)
{
	struct saker_event ev;
	struct saker_cq *which;
	int fd = saker_fd(s);

	cr_assert_geq(fd, 0);
	cr_assert_eq(saker_event(s, &ev), 0);
	cr_assert_not(readable(fd, 0));
	for (int i = 0; i < 20; i++) {
		established();
		cr_assert(readable(fd, -1));
		cr_assert_eq(saker_event(s, &ev), 1);
		cr_assert_eq(saker_event(s, &ev), 0);
		cr_assert_not(readable(fd, 0));
		saker_cq_arm(cq, false);
		completion();
		cr_assert(readable(fd, -1));
		cr_assert_eq(saker_cq_event(s, &which), 1);
		cr_assert_eq(saker_cq_event(s, &which), 0);
		cr_assert_not(readable(fd, 0));
		cr_assert_eq(saker_cq_poll(cq, &(struct rd_wc){0}, 1), 1);
	}
}

Test(client_wait, an_event_that_a_command_took_in_still_makes_the_descriptor_readable)
{
	struct saker_event ev;
	struct saker_qp_info info;
	int fd = saker_fd(s);

	for (int i = 0; i < 20; i++) {
		established();
		cr_assert_eq(saker_qp_query(qp, &info), 0);
		cr_assert(readable(fd, 0), "round %d", i);
		cr_assert_eq(saker_event(s, &ev), 1);
		cr_assert_eq(saker_event(s, &ev), 0);
	}
}

Test(client_wait, what_waited_before_the_descriptor_was_asked_for_shows)
{
	established();
	cr_assert(readable(saker_fd(s), 0));
}

/* ---- Threads ---- */

#define THREADS 3
#define ROUNDS  100

static void *
querier(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct saker_qp_info info;

		if (saker_qp_query(qp, &info) != 0 || info.qpn != 7)
			return qp;
	}
	return arg;
}

Test(client_wait, one_sleeps_for_all)
{
	pthread_t t[THREADS];
	struct saker_event ev;
	void *failed;
	int events = 0;

	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, querier, NULL);
	while (events < ROUNDS) {
		established();
		cr_assert_eq(saker_wait(s, -1), 1);
		while (saker_event(s, &ev) == 1)
			events++;
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], &failed);
		cr_assert_null(failed);
	}
	cr_assert_eq(events, ROUNDS);
}

static void *
sleeper(void *arg)
{
	saker_wait(s, -1);
	return NULL;
}

static void *
destroyer(void *arg)
{
	pthread_cancel(pthread_self());
	saker_qp_destroy(qp);
	saker_free(s, saker_alloc(s, 1 << 20), 1 << 20);
	pthread_testcancel();
	return NULL;
}

static bool
leads(void)
{
	bool leader;

	pthread_mutex_lock(&s->wait.lock);
	leader = s->wait.leader;
	pthread_mutex_unlock(&s->wait.lock);
	return leader;
}

Test(client_wait, a_cancelled_leader_gives_its_part_back, .timeout = 60)
{
	pthread_t thread;
	void *end;

	cr_assert_eq(pthread_create(&thread, NULL, sleeper, NULL), 0);
	while (!leads())
		sched_yield();
	cr_assert_eq(pthread_cancel(thread), 0);
	cr_assert_eq(pthread_join(thread, &end), 0);
	cr_assert_eq(end, PTHREAD_CANCELED);
	cr_assert_not(leads());
}

Test(client_wait, a_cancelled_thread_ends_after_its_command, .timeout = 60)
{
	pthread_t thread;
	void *end;

	cr_assert_eq(pthread_create(&thread, NULL, destroyer, NULL), 0);
	cr_assert_eq(pthread_join(thread, &end), 0);
	cr_assert_eq(end, PTHREAD_CANCELED);
	cr_assert_eq(k.f.seen[SHM_QP_DESTROY], 1);
	cr_assert_eq(saker_cq_destroy(cq), 0, "%s", saker_error());
	saker_free(s, saker_alloc(s, 1 << 20), 1 << 20);
}

/* ---- A descriptor that shows events alone ---- */

static void
setup_events(void)
{
	cl_wait_for_events();
	setup();
}

TestSuite(client_wait_events, .init = setup_events, .fini = teardown, .timeout = 60);

/* A wake-up may come later than the reply: the engine must not write it at all. */
Test(client_wait_events, no_reply_makes_the_descriptor_readable)
{
	struct saker_qp_info info;
	int fd = cl_fd_events(s);

	cr_assert_eq(k.f.wakes, 0, "nor has one of the commands before");
	for (int i = 0; i < 200; i++) {
		cr_assert_eq(saker_qp_query(qp, &info), 0);
		cr_assert_not(readable(fd, 0));
	}
	cr_assert_eq(k.f.wakes, 0);
}

Test(client_wait_events, no_reply_of_several_threads_makes_the_descriptor_readable)
{
	int fd = cl_fd_events(s);
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&t[i], NULL, querier, NULL), 0);
	for (int i = 0; i < THREADS; i++) {
		void *failed;

		cr_assert_eq(pthread_join(t[i], &failed), 0);
		cr_assert_null(failed);
	}
	cr_assert_not(readable(fd, 0));
	cr_assert_eq(k.f.wakes, 0);
}

Test(client_wait_events, events_make_the_descriptor_readable_also_those_that_a_command_took_in)
{
	struct saker_qp_info info;
	struct saker_event ev;
	struct saker_cq *which;
	int fd = cl_fd_events(s);

	for (int i = 0; i < 20; i++) {
		established();
		if (i % 2 != 0)
			cr_assert_eq(saker_qp_query(qp, &info), 0);
		cr_assert(readable(fd, -1));
		cr_assert_eq(saker_event(s, &ev), 1);
		cr_assert_eq(saker_event(s, &ev), 0);
		cr_assert_not(readable(fd, 0));
		saker_cq_arm(cq, false);
		completion();
		cr_assert(readable(fd, -1));
		cr_assert_eq(saker_cq_event(s, &which), 1);
		cr_assert_eq(saker_cq_event(s, &which), 0);
		cr_assert_not(readable(fd, 0));
		cr_assert_eq(saker_cq_poll(cq, &(struct rd_wc){0}, 1), 1);
	}
}

Test(client_wait_events, a_program_that_sleeps_on_the_descriptor_itself_is_woken_by_replies)
{
	struct saker_qp_info info;

	cr_assert_geq(saker_fd(s), 0);
	cr_assert_eq(saker_qp_query(qp, &info), 0);
	cr_assert_eq(k.f.h->client_sleeps, SHM_SLEEPS);
	while (__atomic_load_n(&k.f.wakes, __ATOMIC_RELAXED) == 0)
		sched_yield();
}
