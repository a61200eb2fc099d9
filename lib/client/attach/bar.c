/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attaching through the memory of an ivshmem device, as a program in a virtual machine does. The
 * client claims a slot of the memory (shm_bar.h describes the protocol); the slot is a flat region.
 * A thread writes the heartbeat, so that a program that computes for a minute does not count as
 * dead. The same thread detects that saker has gone away, and polls the rings for a program that
 * sleeps, unless interrupts wake it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../base/clock.h"
#include "../../base/thread.h"
#include "bar_priv.h"

#define MS         1000000ll /* ns */
#define LOOK_NS    MS        /* between two polls for the engine's reply */
#define CLAIM_MS   10000     /* how long the engine's reply may take */
#define TIMEOUT_MS 60000u    /* highest timeout that a directory may have */
/* Between two checks for a call of saker_fd(), or the end of the attachment. */
#define IDLE_NS (20 * MS)
/* Between two polls of the rings for a program that sleeps on saker_fd(): short while events come,
 * and for WATCH_FAST_NS afterwards. */
#define WATCH_MIN_NS  (MS / 5)
#define WATCH_MAX_NS  (2 * MS)
#define WATCH_FAST_NS (50 * MS)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, cl_bar) open_bars; /* protected by `lock` */

static void
bar_nap(long ns)
{
	const struct timespec ts = {.tv_sec = ns / (1000 * MS), .tv_nsec = ns % (1000 * MS)};

	nanosleep(&ts, NULL);
}

static int
map(struct cl_bar *b, const char *path)
{
	struct stat st;
	void *p;

	b->fd = open(path, O_RDWR | O_CLOEXEC);
	if (b->fd < 0)
		return cl_fail(-errno, "%s cannot be opened: %s", path, strerror(errno));
	if (fstat(b->fd, &st) < 0 || st.st_size < (off_t)sizeof(struct shm_bar))
		return cl_fail(-EINVAL, "%s is smaller than the directory of a saker", path);
	p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
	if (p == MAP_FAILED)
		return cl_fail(-errno, "%s cannot be mapped: %s", path, strerror(errno));
	b->base = p;
	b->size = (uint64_t)st.st_size;
	b->ino = st.st_ino;
	b->dir = p;
	b->device.base = (uintptr_t)p;
	mv_device_add(&b->device);
	return 0;
}

/* Checks the directory. It is read once, so that the checked values are those in use. */
static int
bar_check(struct cl_bar *b, const char *path, uint32_t *nslots)
{
	struct shm_bar h;

	if (__atomic_load_n(&b->dir->magic, __ATOMIC_ACQUIRE) != SHM_BAR_MAGIC)
		return cl_fail(-EPROTO, "no saker has initialised %s", path);
	memcpy(&h, b->dir, sizeof(h));
	if (h.version != SHM_BAR_VERSION)
		return cl_fail(-EPROTO, "%s: the saker has version %u of the directory, not %u",
			path, h.version, SHM_BAR_VERSION);
	if (h.nslots < 1 || h.nslots > SHM_BAR_SLOTS || h.slot_at > b->size ||
		h.slot_size > b->size || h.slot_size * h.nslots > b->size - h.slot_at ||
		h.timeout_ms < SHM_BAR_BEAT_MS || h.timeout_ms > TIMEOUT_MS)
		return cl_fail(-EPROTO, "the directory of %s is invalid", path);
	b->slot_at = h.slot_at;
	b->slot_size = h.slot_size;
	b->timeout_ms = h.timeout_ms;
	*nslots = h.nslots;
	return 0;
}

/* Locks the first free slot. */
static int
lock_slot(struct cl_bar *b, uint32_t nslots)
{
	for (uint32_t i = 0; i < nslots; i++) {
		struct flock l = {
			.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)i, .l_len = 1};

		if (fcntl(b->fd, F_OFD_SETLK, &l) == 0) {
			b->slot = i;
			return 0;
		}
		if (errno != EAGAIN && errno != EACCES)
			return cl_fail(-errno, "a slot cannot be locked: %s", strerror(errno));
	}
	return cl_fail(-EUSERS, "all %u slots of this machine's saker are in use", nslots);
}

static int
claim(struct cl_bar *b, const char *name)
{
	struct shm_bar_slot *slot = &b->dir->slots[b->slot];

	while (b->token == 0)
		if (getrandom(&b->token, sizeof(b->token), 0) < 0)
			return cl_fail(
				-errno, "a random number cannot be drawn: %s", strerror(errno));
	memset(slot->name, 0, sizeof(slot->name));
	strncpy(slot->name, name != NULL ? name : "", sizeof(slot->name) - 1);
	__atomic_fetch_add(&slot->beat, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->want, b->token, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < CLAIM_MS; i++) {
		if (__atomic_load_n(&slot->serves, __ATOMIC_ACQUIRE) == b->token)
			return 0;
		if (__atomic_load_n(&slot->refused, __ATOMIC_ACQUIRE) == b->token) {
			int reason = cl_reason(__atomic_load_n(&slot->status, __ATOMIC_RELAXED));

			return cl_fail(
				reason, "the saker refuses another program: %s", strerror(-reason));
		}
		bar_nap(LOOK_NS);
		__atomic_fetch_add(&slot->beat, 1, __ATOMIC_RELAXED);
	}
	return cl_fail(-ETIMEDOUT, "the saker behind this memory does not answer");
}

/* Checks whether the engine still serves the slot. *still: the number of checks since the engine's
 * heartbeat last changed. */
static bool
engine_lives(struct cl_bar *b, uint32_t *seen, unsigned *still)
{
	uint32_t beat = __atomic_load_n(&b->dir->engine_beat, __ATOMIC_ACQUIRE);
	struct shm_header *h = (struct shm_header *)(b->base + b->slot_at + b->slot * b->slot_size);

	*still = beat == *seen ? *still + 1 : 0;
	*seen = beat;
	/* An engine that ends in order clears its flag. */
	return *still * SHM_BAR_BEAT_MS < b->timeout_ms &&
	       __atomic_load_n(&h->engine_alive, __ATOMIC_ACQUIRE) != 0 &&
	       __atomic_load_n(&b->dir->slots[b->slot].serves, __ATOMIC_ACQUIRE) == b->token;
}

/* Sleeps until the next beat. For a program that sleeps on saker_fd() without interrupts, it polls
 * the rings meanwhile, less often after a time without events. A sleep may take much longer than
 * requested. */
static void
between_beats(struct cl_bar *b)
{
	const uint64_t due = sk_clock_ns(CLOCK_MONOTONIC) + SHM_BAR_BEAT_MS * MS;

	while (sk_clock_ns(CLOCK_MONOTONIC) < due && !__atomic_load_n(&b->stop, __ATOMIC_ACQUIRE)) {
		bool watched = __atomic_load_n(&b->watched, __ATOMIC_ACQUIRE);
		long gap = !watched                      ? IDLE_NS
			   : b->quiet_ns < WATCH_FAST_NS ? WATCH_MIN_NS
							 : WATCH_MAX_NS;

		if (cl_bar_irq_nap(b, SHM_BAR_BEAT_MS))
			continue;
		bar_nap(gap);
		if (watched)
			b->quiet_ns = cl_wait_look(b->s) ? 0 : b->quiet_ns + gap;
	}
}

static void *
beat_main(void *arg)
{
	struct cl_bar *b = arg;
	struct shm_bar_slot *slot = &b->dir->slots[b->slot];
	uint32_t seen = 0;
	unsigned still = 0;

	while (!__atomic_load_n(&b->stop, __ATOMIC_ACQUIRE)) {
		__atomic_fetch_add(&slot->beat, 1, __ATOMIC_RELEASE);
		if (!engine_lives(b, &seen, &still)) {
			__atomic_store_n(&b->s->gone, 1, __ATOMIC_RELEASE);
			cl_wait_look(b->s);
			return NULL;
		}
		between_beats(b);
		/* A lost interrupt costs one beat. */
		if (__atomic_load_n(&b->s->wait.rung, __ATOMIC_RELAXED))
			cl_wait_look(b->s);
	}
	return NULL;
}

void
cl_bar_watch(struct cl_bar *b)
{
	__atomic_store_n(&b->watched, true, __ATOMIC_RELEASE);
}

static int
beat_start(struct cl_bar *b)
{
	int rc = sk_thread_start(&b->thread, beat_main, b);

	b->beating = rc == 0;
	return rc == 0 ? 0
		       : cl_fail(-rc, "the heartbeat's thread cannot be started: %s", strerror(rc));
}

void
cl_bar_quiet(struct cl_bar *b)
{
	if (b == NULL || !b->beating)
		return;
	__atomic_store_n(&b->stop, true, __ATOMIC_RELEASE);
	cl_bar_irq_stop(b);
	pthread_join(b->thread, NULL);
	b->beating = false;
}

static void
bar_give_back(struct cl_bar *b)
{
	if (b->token != 0)
		__atomic_store_n(&b->dir->slots[b->slot].want, 0, __ATOMIC_RELEASE);
	b->token = 0;
}

/* Releases the slots when a program ends without saker_close(), so that its peers are informed
 * before the heartbeat counts as missed. */
__attribute__((destructor)) static void
at_exit(void)
{
	struct cl_bar *b;

	if (pthread_mutex_trylock(&lock) != 0)
		return;
	LIST_FOREACH (b, &open_bars, next)
		bar_give_back(b);
	pthread_mutex_unlock(&lock);
}

static void
bars_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

static void
bars_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void
bars_fork_child(void)
{
	pthread_mutex_init(&lock, NULL);
}

__attribute__((constructor)) static void
bars_watch_forks(void)
{
	pthread_atfork(bars_fork_prepare, bars_fork_parent, bars_fork_child);
}

void
cl_bar_free(struct cl_bar *b)
{
	if (b == NULL)
		return;
	pthread_mutex_lock(&lock);
	LIST_REMOVE(b, next);
	bar_give_back(b);
	pthread_mutex_unlock(&lock);
	cl_bar_pages_free(b->pages);
	cl_bar_doorbell_free(b);
	cl_bar_irq_free(b);
	if (b->base != NULL) {
		mv_device_remove(&b->device);
		munmap(b->base, b->size);
	}
	if (b->fd >= 0)
		close(b->fd);
	free(b);
}

static int
bar_attach(struct saker *s, struct cl_bar *b, const char *path, const char *name)
{
	uint32_t nslots;
	int rc = map(b, path);

	if (rc == 0)
		rc = bar_check(b, path, &nslots);
	if (rc == 0)
		rc = lock_slot(b, nslots);
	if (rc == 0)
		cl_bar_doorbell(b, path);
	if (rc == 0)
		rc = claim(b, name);
	if (rc == 0)
		rc = beat_start(b);
	return rc < 0 ? rc
		      : cl_start(s, b->base + b->slot_at + b->slot * b->slot_size, b->slot_size);
}

int
cl_bar_open(const char *path, const char *name, struct saker **out)
{
	struct saker *s = cl_new();
	struct cl_bar *b = calloc(1, sizeof(*b));
	int rc;

	if (s == NULL || b == NULL) {
		free(b);
		if (s != NULL)
			cl_free(s);
		return cl_fail(-ENOMEM, "no memory for an attachment");
	}
	b->fd = b->irqd = -1;
	b->s = s;
	s->bar = b;
	pthread_mutex_lock(&lock);
	LIST_INSERT_HEAD(&open_bars, b, next);
	pthread_mutex_unlock(&lock);
	rc = bar_attach(s, b, path, name);
	if (rc < 0) {
		cl_free(s);
		return rc;
	}
	*out = s;
	return 0;
}
