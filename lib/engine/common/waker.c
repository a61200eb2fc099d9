/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A wake-up that takes long by the clock may have been preempted, so it only makes the next ones of
 * its user be measured in processor time, by two more system calls each. The thread takes at most a
 * tenth of a processor for a user: after a wake-up, the clients of the user rest ten times as long.
 */
#include "waker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <rte_lcore.h>

#include "../../base/clock.h"
#include "../../base/mem.h"
#include "../../base/wake.h"

#define SLOW_NS    20000 /* an ordinary wake-up takes 1 to 5 us */
#define CHECKS     8     /* wake-ups that are measured after a long one */
#define STRIKES    2     /* of these: so many long ones make a user slow */
#define MEMORY_NS  (600 * 1000000000ull)
#define REMEMBERED 64 /* users without clients that were slow */
#define REST       10 /* the thread does not wake a user for so many times its last wake-up */

struct waker_slot {
	pthread_mutex_t lock; /* of `fd` and `user` */
	int fd;               /* -1: no client */
	uint16_t user;
	bool due; /* atomic: the thread has to wake the client */
};

struct waker_user {
	uint32_t clients;
	uint64_t tenant;
	/* Atomic. Two loops may count the same wake-up once only. */
	uint8_t checks, strikes;
	bool slow;
	uint64_t rest_until; /* ns; of the thread */
};

struct waker_memory {
	uint64_t tenant, until;
};

struct eng_waker {
	uint32_t n;
	struct waker_slot *slot; /* [n], by client number */
	struct waker_user *user; /* [n + 1], by user number */
	struct waker_memory memory[REMEMBERED];
	uint32_t nmemory;
	int fd;      /* eventfd: a client is due, or `stop` is set */
	bool asleep; /* atomic: a write to `fd` is necessary */
	bool stop;   /* atomic */
	bool running;
	pthread_t thread;
};

/* ---- The thread ---- */

/* Wakes a client, unless its user rests; then *wait is the time until which it does, if that is
 * earlier. Returns whether the client was woken. */
static bool
waker_serve(struct eng_waker *w, struct waker_slot *slot, uint64_t *wait)
{
	uint64_t from = sk_clock_ns(CLOCK_MONOTONIC);
	struct waker_user *u;
	bool rests;

	pthread_mutex_lock(&slot->lock);
	u = &w->user[slot->user];
	rests = slot->fd >= 0 && from < u->rest_until;
	if (!rests)
		__atomic_store_n(&slot->due, false, __ATOMIC_SEQ_CST);
	if (!rests && slot->fd >= 0) {
		sk_wake(slot->fd);
		u->rest_until = from + REST * (sk_clock_ns(CLOCK_MONOTONIC) - from);
	}
	pthread_mutex_unlock(&slot->lock);
	if (rests)
		*wait = SK_MIN(*wait, u->rest_until);
	return !rests;
}

/* Wakes each client that is due and whose user does not rest, once. Returns whether there was one.
 * If not, *wait is the time (ns) at which the next one stops resting, or UINT64_MAX. */
static bool
waker_pass(struct eng_waker *w, uint64_t *wait)
{
	bool any = false;

	*wait = UINT64_MAX;
	for (uint32_t i = 0; i < w->n; i++)
		if (__atomic_load_n(&w->slot[i].due, __ATOMIC_RELAXED))
			any |= waker_serve(w, &w->slot[i], wait);
	return any;
}

/* Sleeps until a loop marks a client. The loop reads `asleep` after it has marked the client, and
 * the thread looks at the marks after it has set `asleep`. */
static void
waker_sleep(struct eng_waker *w)
{
	struct pollfd f = {.fd = w->fd, .events = POLLIN};
	struct timespec t;
	uint64_t n, until, now;

	__atomic_store_n(&w->asleep, true, __ATOMIC_SEQ_CST);
	shm_fence();
	if (!waker_pass(w, &until) && !__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE)) {
		now = sk_clock_ns(CLOCK_MONOTONIC);
		n = until > now ? until - now : 0;
		t = (struct timespec){
			.tv_sec = (time_t)(n / 1000000000), .tv_nsec = n % 1000000000};
		ppoll(&f, 1, until == UINT64_MAX ? NULL : &t, NULL);
	}
	__atomic_store_n(&w->asleep, false, __ATOMIC_SEQ_CST);
	while (read(w->fd, &n, sizeof(n)) > 0)
		;
}

static void *
waker_run(void *arg)
{
	struct eng_waker *w = arg;
	uint64_t until;

	while (!__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE))
		if (!waker_pass(w, &until))
			waker_sleep(w);
	return NULL;
}

/* ---- Clients ---- */

struct eng_waker *
eng_waker_create(uint32_t clients)
{
	struct eng_waker *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->slot = calloc(clients, sizeof(*w->slot));
	w->user = calloc(clients + 1, sizeof(*w->user));
	if (w->fd < 0 || w->slot == NULL || w->user == NULL) {
		eng_waker_destroy(w);
		return NULL;
	}
	w->n = clients;
	for (uint32_t i = 0; i < clients; i++) {
		pthread_mutex_init(&w->slot[i].lock, NULL);
		w->slot[i].fd = -1;
	}
	return w;
}

void
eng_waker_destroy(struct eng_waker *w)
{
	if (w == NULL)
		return;
	if (w->running) {
		__atomic_store_n(&w->stop, true, __ATOMIC_SEQ_CST);
		sk_wake(w->fd);
		pthread_join(w->thread, NULL);
	}
	for (uint32_t i = 0; i < w->n; i++)
		pthread_mutex_destroy(&w->slot[i].lock);
	if (w->fd >= 0)
		close(w->fd);
	free(w->slot);
	free(w->user);
	free(w);
}

/* Returns whether the tenant's clients were slow when it last had some. */
static bool
waker_remembers(const struct eng_waker *w, uint64_t tenant, uint64_t now)
{
	for (uint32_t i = 0; i < REMEMBERED; i++)
		if (w->memory[i].tenant == tenant && w->memory[i].until > now)
			return true;
	return false;
}

static void
set_client(struct waker_slot *slot, int fd, uint16_t user)
{
	pthread_mutex_lock(&slot->lock);
	slot->fd = fd;
	slot->user = user;
	pthread_mutex_unlock(&slot->lock);
}

int
eng_waker_add(struct eng_waker *w, struct eng_client *c, uint64_t tenant, uint64_t now)
{
	struct waker_user *u;
	int rc = 0;

	if (w == NULL)
		return 0;
	if (!w->running)
		rc = rte_ctrl_thread_create(&w->thread, "saker-wake", NULL, waker_run, w);
	if (rc != 0)
		return rc > 0 ? -rc : rc;
	w->running = true;
	u = &w->user[c->user];
	if (u->clients++ == 0) {
		u->tenant = tenant;
		__atomic_store_n(&u->checks, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&u->strikes, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&u->slow, waker_remembers(w, tenant, now), __ATOMIC_RELAXED);
	}
	set_client(&w->slot[c->index], c->wake_fd, c->user);
	c->waker = w;
	return 0;
}

void
eng_waker_del(struct eng_client *c, uint64_t now)
{
	struct eng_waker *w = c->waker;
	struct waker_user *u;

	if (w == NULL)
		return;
	u = &w->user[c->user];
	set_client(&w->slot[c->index], -1, c->user);
	c->waker = NULL;
	if (--u->clients == 0 && eng_waker_slow(w, c->user))
		w->memory[w->nmemory++ % REMEMBERED] =
			(struct waker_memory){.tenant = u->tenant, .until = now + MEMORY_NS};
}

/* ---- Loops ---- */

/* Writes, and returns the time that it takes by a clock, in ns. */
static uint64_t
timed_write(int fd, clockid_t clock)
{
	uint64_t from = sk_clock_ns(clock);

	sk_wake(fd);
	return sk_clock_ns(clock) - from;
}

/* Measures a wake-up in processor time. Returns whether it makes the user slow. */
static bool
wake_checked(struct waker_user *u, int fd, uint8_t checks)
{
	uint8_t strikes = __atomic_load_n(&u->strikes, __ATOMIC_RELAXED);

	strikes += timed_write(fd, CLOCK_THREAD_CPUTIME_ID) > SLOW_NS;
	checks--;
	__atomic_store_n(&u->checks, checks, __ATOMIC_RELAXED);
	__atomic_store_n(&u->strikes, checks == 0 ? 0 : strikes, __ATOMIC_RELAXED);
	return strikes >= STRIKES && !__atomic_exchange_n(&u->slow, true, __ATOMIC_RELAXED);
}

static bool
wake_directly(struct waker_user *u, int fd)
{
	uint8_t checks = __atomic_load_n(&u->checks, __ATOMIC_RELAXED);

	if (checks > 0)
		return wake_checked(u, fd, checks);
	if (timed_write(fd, CLOCK_MONOTONIC) > SLOW_NS)
		__atomic_store_n(&u->checks, CHECKS, __ATOMIC_RELAXED);
	return false;
}

/* Marks the client for the thread, and wakes the thread if it sleeps. */
static void
waker_mark(struct eng_waker *w, struct waker_slot *slot)
{
	if (__atomic_load_n(&slot->due, __ATOMIC_RELAXED) ||
		__atomic_exchange_n(&slot->due, true, __ATOMIC_SEQ_CST))
		return;
	shm_fence();
	if (__atomic_load_n(&w->asleep, __ATOMIC_RELAXED))
		sk_wake(w->fd);
}

bool
eng_waker_slow(const struct eng_waker *w, uint16_t user)
{
	return __atomic_load_n(&w->user[user].slow, __ATOMIC_RELAXED);
}

bool
eng_client_wake(const struct eng_client *c, bool event)
{
	struct eng_waker *w = c->waker;
	uint32_t sleeps;

	if (c->wake_fd < 0)
		return false;
	shm_fence();
	sleeps = __atomic_load_n(&c->header->client_sleeps, __ATOMIC_RELAXED);
	if (sleeps == SHM_AWAKE || (sleeps == SHM_SLEEPS_EVENTS && !event))
		return false;
	if (w == NULL) {
		sk_wake(c->wake_fd);
		return false;
	}
	if (!eng_waker_slow(w, c->user))
		return wake_directly(&w->user[c->user], c->wake_fd);
	waker_mark(w, &w->slot[c->index]);
	return false;
}
