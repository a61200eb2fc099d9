/* SPDX-License-Identifier: BSD-3-Clause */
/* Event channels and events: rdma_get_cm_event(3), rdma_ack_cm_event(3), rdma_destroy_id(3),
 * rdma_migrate_id(3). */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cm_fake.h"

TestSuite(cm_event, .init = fake_reset);

static struct rdma_cm_id *
resolving(struct rdma_event_channel *ch)
{
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_resolve_addr(id, NULL, fake_addr("192.0.2.9", 1), 100), 0);
	return id;
}

Test(cm_event, every_type_has_its_name)
{
	cr_assert_str_eq(
		rdma_event_str(RDMA_CM_EVENT_ADDR_RESOLVED), "RDMA_CM_EVENT_ADDR_RESOLVED");
	for (int i = 0; i <= RDMA_CM_EVENT_TIMEWAIT_EXIT; i++)
		cr_assert_eq(
			strncmp(rdma_event_str((enum rdma_cm_event_type)i), "RDMA_CM_EVENT_", 14),
			0);
	cr_assert_str_eq(rdma_event_str((enum rdma_cm_event_type)77), "UNKNOWN EVENT");
}

Test(cm_event, the_descriptor_is_readable_only_while_events_wait)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *a, *b;

	cr_assert_not(fake_readable(ch));
	a = resolving(ch);
	b = resolving(ch);
	cr_assert(fake_readable(ch));
	fake_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	cr_assert(fake_readable(ch));
	fake_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	cr_assert_not(fake_readable(ch));
	fake_destroy(a, NULL);
	fake_destroy(b, ch);
}

Test(cm_event, a_descriptor_that_does_not_block_returns_eagain)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_event *ev;

	fcntl(ch->fd, F_SETFL, fcntl(ch->fd, F_GETFL) | O_NONBLOCK);
	cr_assert_eq(rdma_get_cm_event(ch, &ev), -1);
	cr_assert_eq(errno, EAGAIN);
	rdma_destroy_event_channel(ch);
}

Test(cm_event, what_waits_about_an_id_goes_with_it)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *a = resolving(ch), *b = resolving(ch);
	struct rdma_cm_event *ev;

	fake_destroy(a, NULL);
	ev = fake_next(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_assert_eq(ev->id, b);
	rdma_ack_cm_event(ev);
	cr_assert_not(fake_readable(ch));
	fake_destroy(b, ch);
}

static struct {
	struct rdma_cm_id *id;
	int done, waits; /* atomic; waits: calls of pthread_cond_wait() */
} ending;

int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);

int
__wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	__atomic_fetch_add(&ending.waits, 1, __ATOMIC_RELEASE);
	return __real_pthread_cond_wait(cond, mutex);
}

static void *
end_id(void *arg)
{
	rdma_destroy_id(ending.id);
	__atomic_store_n(&ending.done, 1, __ATOMIC_RELEASE);
	return NULL;
}

Test(cm_event, destroying_an_id_waits_for_the_acknowledgement_of_its_events, .timeout = 60)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_event *ev;
	pthread_t t;

	ending.id = resolving(ch);
	ev = fake_next(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	pthread_create(&t, NULL, end_id, NULL);
	while (__atomic_load_n(&ending.waits, __ATOMIC_ACQUIRE) == 0 &&
		__atomic_load_n(&ending.done, __ATOMIC_ACQUIRE) == 0)
		usleep(100);
	cr_assert_eq(__atomic_load_n(&ending.done, __ATOMIC_ACQUIRE), 0);
	cr_assert_eq(ev->id, ending.id);
	rdma_ack_cm_event(ev);
	pthread_join(t, NULL);
	cr_assert_eq(ending.done, 1);
	rdma_destroy_event_channel(ch);
}

Test(cm_event, a_thread_that_destroys_an_id_is_cancelled_after_it, .timeout = 60)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_event *ev;
	void *end;
	pthread_t t;

	ending.id = resolving(ch);
	ev = fake_next(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	pthread_create(&t, NULL, end_id, NULL);
	usleep(20000);
	cr_assert_eq(pthread_cancel(t), 0);
	usleep(20000);
	rdma_ack_cm_event(ev);
	cr_assert_eq(pthread_join(t, &end), 0);
	cr_assert_eq(ending.done, 1);
	fake_destroy(resolving(ch), ch);
}

Test(cm_event, a_migrated_id_takes_its_events_along)
{
	struct rdma_event_channel *from = rdma_create_event_channel();
	struct rdma_event_channel *to = rdma_create_event_channel();
	struct rdma_cm_id *a = resolving(from), *b = resolving(from);
	struct rdma_cm_event *ev;

	cr_assert_eq(rdma_migrate_id(b, to), 0);
	cr_assert_eq(b->channel, to);
	ev = fake_next(to, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_assert_eq(ev->id, b);
	rdma_ack_cm_event(ev);
	ev = fake_next(from, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_assert_eq(ev->id, a);
	rdma_ack_cm_event(ev);
	cr_assert_not(fake_readable(from));
	cr_assert_eq(rdma_resolve_route(b, 100), 0);
	fake_expect(to, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	fake_destroy(a, from);
	fake_destroy(b, to);
}

Test(cm_event, an_id_that_migrates_to_its_own_channel_keeps_its_events, .timeout = 60)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id = resolving(ch);

	cr_assert_eq(rdma_migrate_id(id, ch), 0);
	cr_assert_eq(id->channel, ch);
	fake_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	fake_destroy(id, ch);
	/* That of a synchronous id then belongs to the program. */
	cr_assert_eq(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	ch = id->channel;
	cr_assert_eq(rdma_migrate_id(id, ch), 0);
	cr_assert_eq(rdma_resolve_addr(id, NULL, fake_addr("192.0.2.9", 7471), 100), 0);
	fake_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	fake_destroy(id, ch);
}

Test(cm_event, a_child_has_nothing_of_its_parents)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id = resolving(ch), *own;
	struct rdma_cm_event *ev;
	int status;
	pid_t child = fork();

	if (child == 0) {
		bool ok = rdma_get_cm_event(ch, &ev) == -1 && errno == ENODEV &&
			  rdma_resolve_route(id, 1) == -1 && errno == ENODEV;

		ch = rdma_create_event_channel();
		ok = ok && rdma_create_id(ch, &own, NULL, RDMA_PS_TCP) == 0 &&
		     rdma_resolve_addr(own, NULL, fake_addr("192.0.2.9", 1), 1) == 0 &&
		     fake_readable(ch) && own->verbs != id->verbs && rdma_destroy_id(own) == 0;
		_exit(ok ? 0 : 1);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	/* The parent's id and event are unchanged. */
	fake_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	cr_assert_eq(rdma_resolve_route(id, 1), 0);
	fake_expect(ch, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	fake_destroy(id, ch);
}

#define TAKERS 4
#define ROUNDS 200

static void *
take(void *arg)
{
	struct rdma_cm_event *ev;
	long n = 0;

	while (rdma_get_cm_event(arg, &ev) == 0) {
		bool last = ev->event == RDMA_CM_EVENT_ADDR_ERROR;

		rdma_ack_cm_event(ev);
		if (last)
			break;
		n++;
	}
	return (void *)n;
}

Test(cm_event, each_event_goes_to_one_of_many_threads)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *ids[ROUNDS], *last[TAKERS];
	pthread_t t[TAKERS];
	long sum = 0;

	for (int i = 0; i < TAKERS; i++)
		pthread_create(&t[i], NULL, take, ch);
	for (int i = 0; i < ROUNDS; i++)
		ids[i] = resolving(ch);
	fake.no_falcon = true;
	for (int i = 0; i < TAKERS; i++) {
		/* Each of these events ends one thread. */
		cr_assert_eq(rdma_create_id(ch, &last[i], NULL, RDMA_PS_UDP), 0);
		cr_assert_eq(rdma_resolve_addr(last[i], NULL, fake_addr("192.0.2.9", 1), 1), 0);
	}
	for (int i = 0; i < TAKERS; i++) {
		void *n;

		pthread_join(t[i], &n);
		sum += (long)n;
	}
	cr_assert_eq(sum, ROUNDS);
	for (int i = 0; i < ROUNDS; i++)
		fake_destroy(ids[i], NULL);
	for (int i = 0; i < TAKERS; i++)
		fake_destroy(last[i], NULL);
	rdma_destroy_event_channel(ch);
}
