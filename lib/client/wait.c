/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleeping. The engine wakes a client through one descriptor, but several threads of the client may
 * sleep. One of them, the leader, sleeps in poll(2) on behalf of all; the others, the followers,
 * sleep on a condition variable. A thread that takes a reply of another thread kicks them: it
 * signals the condition variable and an eventfd. A flat attachment has no descriptor: the leader
 * calls `idle`, or sleeps for short times. An attachment through an ivshmem device has a thread
 * that polls the rings and kicks (attach/bar.c). It may have the descriptor of an interrupt, which
 * works from the first interrupt on: until then, every sleep is short.
 *
 * A program that has called saker_fd() sleeps outside of this library. From then on the flag that
 * requests wake-ups stays set, and a thread that empties the descriptors without taking all events
 * kicks, so that the descriptor is readable again.
 *
 * A driver may show the descriptor to a program that takes no replies for a reason to wake up
 * (cl_wait_for_events()). Then the engine does not wake the client for them, and a leader that
 * waits for a reply polls with short sleeps. A wake-up by the engine may come later than the reply
 * that caused it, so that emptying the descriptor after each command would not do.
 *
 * A program may cancel a thread in saker_wait() (pthread_cancel(3)). The leader then gives its part
 * back, and no lock stays taken: the descriptors are read and written by syscall(2), which is no
 * cancellation point.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../base/clock.h"
#include "client_priv.h"

#define FOLLOWER_MS 20    /* longest sleep of a follower before it polls by itself */
#define FLAT_YIELDS 2000  /* polls of a flat client before it sleeps between them */
#define FLAT_NAP_NS 50000 /* that sleep */
#define UNRUNG_MS   1     /* longest sleep before the first interrupt of an ivshmem device */
#define GONE_EVERY  256   /* polls that found nothing between two checks of the socket */

static uint64_t
clock_ms(void)
{
	return sk_clock_ns(CLOCK_MONOTONIC) / 1000000;
}

static int
epoll_add(int epoll, int fd, uint32_t events)
{
	struct epoll_event ev = {.events = events};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev);
}

void
cl_wait_renew(struct saker *s)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&s->wait.lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wait.woken, &attr);
	pthread_condattr_destroy(&attr);
}

static bool for_events; /* atomic; cl_wait_for_events() */

void
cl_wait_for_events(void)
{
	__atomic_store_n(&for_events, true, __ATOMIC_RELAXED);
}

/* Requests the wake-ups that the client needs while no thread of it sleeps in this library. */
static void
wakes_request(struct saker *s)
{
	static const uint32_t sleeps[] = {[CL_HANDED_NONE] = SHM_AWAKE,
		[CL_HANDED_EVENTS] = SHM_SLEEPS_EVENTS,
		[CL_HANDED_ALL] = SHM_SLEEPS};

	__atomic_store_n(&s->header->client_sleeps,
		s->wait.wake >= 0 ? sleeps[s->wait.handed] : (uint32_t)SHM_AWAKE, __ATOMIC_SEQ_CST);
}

int
cl_wait_init(struct saker *s)
{
	cl_wait_renew(s);
	if (s->sock >= 0 && __atomic_load_n(&for_events, __ATOMIC_RELAXED)) {
		s->wait.handed = CL_HANDED_EVENTS;
		wakes_request(s);
	}
	if (s->sock < 0 && s->bar == NULL)
		return 0;
	s->wait.kick = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	s->wait.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->wait.kick < 0 || s->wait.epoll < 0 ||
		epoll_add(s->wait.epoll, s->wait.kick, EPOLLIN) < 0 ||
		(s->wait.wake >= 0 && epoll_add(s->wait.epoll, s->wait.wake, EPOLLIN) < 0) ||
		(s->sock >= 0 && epoll_add(s->wait.epoll, s->sock, EPOLLRDHUP) < 0))
		return cl_fail(-errno, "no descriptors for waiting: %s", strerror(errno));
	return 0;
}

void
cl_wait_free(struct saker *s)
{
	const int fds[] = {s->wait.wake, s->wait.kick, s->wait.epoll};

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (s->header == NULL) /* cl_start() did not get so far */
		return;
	pthread_cond_destroy(&s->wait.woken);
	pthread_mutex_destroy(&s->wait.lock);
}

bool
cl_gone(struct saker *s)
{
	struct pollfd p = {.fd = s->sock, .events = POLLRDHUP};

	if (__atomic_load_n(&s->gone, __ATOMIC_RELAXED) != 0)
		return true;
	if (__atomic_load_n(&s->header->engine_alive, __ATOMIC_ACQUIRE) != 0 &&
		(s->sock < 0 || syscall(SYS_poll, &p, 1, 0) <= 0))
		return false;
	__atomic_store_n(&s->gone, 1, __ATOMIC_RELAXED);
	return true;
}

bool
saker_gone(struct saker *s)
{
	return cl_gone(s);
}

/* Returns whether an event or a CQ event is in a queue. */
static bool
cl_waits(struct saker *s)
{
	bool waits;

	pthread_mutex_lock(&s->mail.lock);
	cl_mail_drain(s);
	waits = !STAILQ_EMPTY(&s->mail.events);
	pthread_mutex_unlock(&s->mail.lock);
	if (waits)
		return true;
	sk_spin(&s->cqev.lock);
	for (uint32_t i = 0; i < s->nstages && !waits; i++)
		waits = shm_take_peek(&s->cqev.ring[i]) != NULL;
	sk_unspin(&s->cqev.lock);
	return waits;
}

static void
kick_fd(struct saker *s)
{
	const uint64_t one = 1;

	/* A full counter is readable, too. */
	if (s->wait.kick >= 0 && syscall(SYS_write, s->wait.kick, &one, sizeof(one)) < 0)
		return;
}

void
cl_kick(struct saker *s)
{
	pthread_mutex_lock(&s->wait.lock);
	if (s->wait.leader && !s->wait.naps)
		kick_fd(s);
	pthread_cond_broadcast(&s->wait.woken);
	pthread_mutex_unlock(&s->wait.lock);
}

/* Empties the descriptors. */
static void
fds_drain(struct saker *s)
{
	struct pollfd p[2] = {{s->wait.wake, POLLIN, 0}, {s->wait.kick, POLLIN, 0}};
	uint8_t scrap[512];

	if (syscall(SYS_poll, p, 2, 0) <= 0)
		return;
	if (p[0].revents != 0)
		__atomic_store_n(&s->wait.rung, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		if ((p[i].revents & POLLIN) != 0 &&
			syscall(SYS_read, p[i].fd, scrap, sizeof(scrap)) < 0)
			continue;
}

static bool
wait_ready(struct saker *s, const bool *done)
{
	bool waits = cl_waits(s); /* also takes replies, which set *done */

	return done != NULL ? __atomic_load_n(done, __ATOMIC_ACQUIRE) : waits;
}

static void
sleep_fds(struct saker *s, const bool *done, int timeout_ms)
{
	bool unrung = s->sock < 0 && !__atomic_load_n(&s->wait.rung, __ATOMIC_RELAXED);
	struct pollfd p[3] = {
		{s->wait.wake, POLLIN, 0}, {s->wait.kick, POLLIN, 0}, {s->sock, POLLRDHUP, 0}};

	__atomic_store_n(&s->header->client_sleeps, SHM_SLEEPS, __ATOMIC_SEQ_CST);
	shm_fence();
	if (!wait_ready(s, done))
		poll(p, 3, unrung && timeout_ms != 0 ? UNRUNG_MS : timeout_ms);
	fds_drain(s);
}

static void
sleep_flat(struct saker *s, unsigned tries)
{
	const struct timespec nap = {.tv_nsec = FLAT_NAP_NS};

	if (s->idle != NULL)
		s->idle(s->idle_arg);
	else if (tries < FLAT_YIELDS)
		sched_yield();
	else
		nanosleep(&nap, NULL);
}

static void
wait_unlock(void *lock)
{
	pthread_mutex_unlock(lock);
}

/* Sleeps until the leader wakes. The caller holds wait.lock. */
static void
follow(struct saker *s, int timeout_ms)
{
	struct timespec until;
	int ms = timeout_ms >= 0 && timeout_ms < FOLLOWER_MS ? timeout_ms : FOLLOWER_MS;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)ms * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cleanup_push(wait_unlock, &s->wait.lock);
	pthread_cond_timedwait(&s->wait.woken, &s->wait.lock, &until);
	pthread_cleanup_pop(0);
}

/* Ends the part of the leader, and makes saker_fd() readable again if something came that the
 * leader's thread has not taken. */
static void
lead_end(void *arg)
{
	struct saker *s = arg;
	bool handed;

	pthread_mutex_lock(&s->wait.lock);
	s->wait.leader = false;
	handed = s->wait.handed != CL_HANDED_NONE;
	wakes_request(s);
	pthread_cond_broadcast(&s->wait.woken);
	pthread_mutex_unlock(&s->wait.lock);
	if (handed && cl_waits(s))
		kick_fd(s);
}

void
cl_sleep(struct saker *s, const bool *done, int timeout_ms, unsigned tries)
{
	bool naps;

	pthread_mutex_lock(&s->wait.lock);
	if (s->wait.leader) {
		if (done == NULL || !__atomic_load_n(done, __ATOMIC_ACQUIRE))
			follow(s, timeout_ms);
		pthread_mutex_unlock(&s->wait.lock);
		return;
	}
	s->wait.leader = true;
	naps = s->wait.wake < 0 || (s->wait.handed == CL_HANDED_EVENTS && done != NULL);
	s->wait.naps = naps;
	pthread_mutex_unlock(&s->wait.lock);
	pthread_cleanup_push(lead_end, s);
	if (naps)
		sleep_flat(s, tries);
	else
		sleep_fds(s, done, timeout_ms);
	pthread_cleanup_pop(1);
}

void
cl_settle(struct saker *s)
{
	bool handed;

	pthread_mutex_lock(&s->wait.lock);
	handed = s->wait.handed != CL_HANDED_NONE;
	if (handed && (!s->wait.leader || s->wait.naps))
		fds_drain(s);
	pthread_mutex_unlock(&s->wait.lock);
	if (handed || ++s->cqev.empty % GONE_EVERY == 0)
		cl_gone(s);
	/* Something may have come between the last poll and the emptying. */
	if (handed && cl_waits(s))
		kick_fd(s);
}

int
cl_fd_events(struct saker *s)
{
	if (s->sock < 0 || s->wait.handed == CL_HANDED_NONE)
		return saker_fd(s);
	if (cl_waits(s))
		kick_fd(s);
	return s->wait.epoll;
}

int
saker_fd(struct saker *s)
{
	if (s->wait.epoll < 0)
		return -1;
	pthread_mutex_lock(&s->wait.lock);
	s->wait.handed = CL_HANDED_ALL;
	wakes_request(s);
	pthread_mutex_unlock(&s->wait.lock);
	shm_fence();
	if (s->bar != NULL)
		cl_bar_watch(s->bar);
	if (cl_waits(s))
		kick_fd(s);
	return s->wait.epoll;
}

bool
cl_wait_look(struct saker *s)
{
	if (!__atomic_load_n(&s->gone, __ATOMIC_ACQUIRE) && !cl_waits(s))
		return false;
	kick_fd(s);
	return true;
}

int
saker_wait(struct saker *s, int timeout_ms)
{
	uint64_t until = timeout_ms < 0 ? UINT64_MAX : clock_ms() + (uint64_t)timeout_ms;

	for (unsigned tries = 0;; tries++) {
		uint64_t now;

		if (cl_waits(s))
			return 1;
		if (cl_gone(s))
			return __atomic_load_n(&s->mail.gone_reported, __ATOMIC_RELAXED) ? -EPIPE
											 : 1;
		now = timeout_ms < 0 ? 0 : clock_ms();
		if (now >= until)
			return 0;
		cl_sleep(s, NULL, timeout_ms < 0 ? -1 : (int)(until - now), tries);
	}
}
