/* SPDX-License-Identifier: BSD-3-Clause */
/* Wake-ups of clients: one client cannot make them expensive for a loop for long. */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../lib/engine/common/waker.h"
#include "pair.h"

#define CLIENTS 4
/* Registrations with epoll: 3000 cost a write about 150 us. The limit of open files may permit
 * fewer, and LEAST still cost twice the time that is long. */
#define MANY     3000
#define LEAST    900
#define TRIES    1000 /* wake-ups after which a user is slow, at most */
#define MINUTE   (60 * 1000000000ull)
#define PATIENCE 60000 /* ms, for the thread */

/* A client, and its end of the socket pair. */
struct sleeper {
	struct eng_client c;
	struct shm_header header;
	int end;
	int crowd[MANY], epoll; /* epoll is -1: there is none */
	unsigned ncrowd;
};

static struct eng_waker *w;
static struct sleeper *sleepers[CLIENTS];

static void
setup(void)
{
	struct rlimit limit;

	pair_eal();
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	w = eng_waker_create(CLIENTS);
	cr_assert_not_null(w);
}

TestSuite(engine_waker, .init = setup);

/* Attaches client `i` of a user, asleep. */
static struct sleeper *
attach(unsigned i, uint16_t user, uint64_t tenant, uint64_t now)
{
	struct sleeper *s = calloc(1, sizeof(*s));
	int fds[2];

	cr_assert_not_null(s);
	sleepers[i] = s;
	cr_assert_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, fds), 0);
	s->c.wake_fd = fds[0];
	s->end = fds[1];
	s->epoll = -1;
	s->c.index = i;
	s->c.user = user;
	s->c.header = &s->header;
	s->header.client_sleeps = SHM_SLEEPS;
	cr_assert_eq(eng_waker_add(w, &s->c, tenant, now), 0);
	return s;
}

static void
detach(struct sleeper *s, uint64_t now)
{
	eng_waker_del(&s->c, now);
	close(s->c.wake_fd);
	close(s->end);
	while (s->ncrowd > 0)
		close(s->crowd[--s->ncrowd]);
	if (s->epoll >= 0)
		close(s->epoll);
	sleepers[s->c.index] = NULL;
	free(s);
}

/* Lets the client register its end MANY times, so that each wake-up takes long. */
static void
crowd(struct sleeper *s)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};

	s->epoll = epoll_create1(0);
	cr_assert_geq(s->epoll, 0);
	for (; s->ncrowd < MANY; s->ncrowd++) {
		int fd = dup(s->end);

		if (fd < 0)
			break;
		cr_assert_eq(epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev), 0);
		s->crowd[s->ncrowd] = fd;
	}
	cr_assert_geq(s->ncrowd, LEAST, "%u descriptors", s->ncrowd);
	/* Some for the other clients of a test. */
	for (unsigned i = 0; i < 20; i++)
		close(s->crowd[--s->ncrowd]);
}

/* Waits for a wake-up, and takes all that are there. */
static void
woken(const struct sleeper *s)
{
	struct pollfd f = {.fd = s->end, .events = POLLIN};
	uint64_t n;

	cr_assert_eq(poll(&f, 1, PATIENCE), 1);
	while (read(s->end, &n, sizeof(n)) > 0)
		;
}

/* Wakes the client until its user is slow. */
static void
wear_out(struct sleeper *s)
{
	for (unsigned i = 0; i < TRIES; i++) {
		bool now = eng_client_wake(&s->c, true);

		woken(s);
		if (now)
			return;
	}
	cr_assert_fail("no wake-up was found to take long");
}

static bool
readable(const struct sleeper *s)
{
	struct pollfd f = {.fd = s->end, .events = POLLIN};

	return poll(&f, 1, 0) == 1;
}

Test(engine_waker, a_client_that_sleeps_is_woken_at_once_and_one_that_does_not_is_not)
{
	struct sleeper *s = attach(0, 1, 1000, 0);

	cr_assert_not(eng_client_wake(&s->c, true));
	cr_assert(readable(s));
	woken(s);
	s->header.client_sleeps = SHM_AWAKE;
	cr_assert_not(eng_client_wake(&s->c, true));
	cr_assert_not(readable(s));
	s->header.client_sleeps = SHM_SLEEPS_EVENTS;
	cr_assert_not(eng_client_wake(&s->c, false), "a reply");
	cr_assert_not(readable(s));
	cr_assert_not(eng_client_wake(&s->c, true));
	woken(s);
	detach(s, 0);
	eng_waker_destroy(w);
}

/* One client makes all clients of its user slow, and those of no other user. */
Test(engine_waker, a_thread_wakes_the_clients_of_a_user_whose_wake_ups_take_long)
{
	struct sleeper *a = attach(0, 1, 1000, 0), *b = attach(1, 2, 1001, 0), *other;

	crowd(a);
	wear_out(a);
	cr_assert(eng_waker_slow(w, 1));
	cr_assert_not(eng_waker_slow(w, 2));
	other = attach(2, 1, 1000, 0);
	for (unsigned i = 0; i < 100; i++) {
		cr_assert_not(eng_client_wake(&a->c, true), "once");
		cr_assert_not(eng_client_wake(&other->c, true));
		woken(a);
		woken(other);
		eng_client_wake(&b->c, true);
		cr_assert(readable(b), "directly");
		woken(b);
	}
	detach(other, 0);
	detach(a, 0);
	detach(b, 0);
	eng_waker_destroy(w);
}

Test(engine_waker, a_user_that_comes_back_is_still_slow_for_ten_minutes)
{
	struct sleeper *s = attach(0, 1, 1000, MINUTE);

	crowd(s);
	wear_out(s);
	detach(s, MINUTE);
	s = attach(0, 2, 1000, 10 * MINUTE);
	cr_assert(eng_waker_slow(w, 2), "its number may be another one");
	detach(attach(1, 1, 1001, 10 * MINUTE), 0);
	cr_assert_not(eng_waker_slow(w, 1), "another user with its number");
	detach(s, 11 * MINUTE);
	s = attach(0, 1, 1000, 22 * MINUTE);
	cr_assert_not(eng_waker_slow(w, 1));
	detach(s, 22 * MINUTE);
	eng_waker_destroy(w);
}

/* The thread may be about to wake a client that goes. */
Test(engine_waker, clients_may_go_while_they_are_due)
{
	struct sleeper *s = attach(0, 1, 1000, 0);

	crowd(s);
	wear_out(s);
	for (unsigned i = 0; i < 200; i++) {
		struct sleeper *t = attach(1 + i % 3, 1, 1000, 0);

		eng_client_wake(&t->c, true);
		eng_client_wake(&s->c, true);
		detach(t, 0);
	}
	woken(s);
	detach(s, 0);
	eng_waker_destroy(w);
}
