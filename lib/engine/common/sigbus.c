/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The SIGBUS handler and its table of guarded mappings. The handler may run on any thread at any
 * time, so it takes no lock and calls no function except mmap(2), ioctl(2) and clock_gettime(2).
 * eng_guard() publishes an entry by adding its mapping to the index (spans.h); eng_unguard() frees
 * it when no thread accesses the mapping any more, and waits for the calls of eng_fetch() that use
 * it, but not for those that use another one: a client can make the kernel delay a fetch.
 */
#include "sigbus.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "../../base/fault.h"
#include "../../base/mem.h"
#include "../../base/probe.h"
#include "../engine.h"
#include "spans.h"

#define FETCH_TRIES 8   /* attempts to fetch a page that does not stay */
#define GUARD_FILLS 128 /* pages of a mapping that the handler fills within a second */

/* Not in the headers of all systems (Linux 5.11). */
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

static struct guard {
	uint32_t next;       /* of a free entry: the next one, or ENG_SPANS */
	uint32_t generation; /* atomic: of the mapping, or of the next one */
	uint32_t fetch; /* atomic: size in bytes of the pages that eng_fetch() fetches; 0: none */
	uintptr_t base;
	size_t len;
	bool *flag;
	/* Atomic. The number of pages that the handler has filled since the second `filled_in`. */
	uint32_t filled, filled_in;
	uint32_t fetches; /* calls of eng_fetch() that use the entry; under fetch_lock */
} guards[ENG_SPANS];

/* The lock of what eng_guard() and eng_unguard() change: the free entries and the index. */
static pthread_mutex_t guards_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t guards_free = ENG_SPANS; /* the first free entry of those that were in use */
static uint32_t guards_used;             /* entries from this one on have never been in use */
static uint32_t mended;                  /* atomic; mappings that were replaced */
static uint32_t installed;               /* atomic */
static struct sigaction before;

static pthread_mutex_t fetch_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t fetch_ended = PTHREAD_COND_INITIALIZER;
static pthread_once_t uffd_once = PTHREAD_ONCE_INIT;
static int uffd = -1; /* the process's userfaultfd, or -errno */
/* Zero bytes to copy into pages that the kernel cannot zero itself (huge ones); under fetch_lock.
 */
static const uint8_t *zeros;
static size_t zeros_len;

static struct guard *
sigbus_find(uintptr_t addr)
{
	int i = eng_span_find(addr);

	return i >= 0 ? &guards[i] : NULL;
}

/* Replaces a mapping by zero pages and marks its client. */
static bool
guard_cut(struct guard *g)
{
	void *p = mmap((void *)g->base, g->len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return false;
	__atomic_store_n(&g->fetch, 0, __ATOMIC_RELEASE);
	__atomic_store_n(g->flag, true, __ATOMIC_RELEASE);
	__atomic_fetch_add(&mended, 1, __ATOMIC_RELEASE);
	return true;
}

/* Makes the thread continue behind a probe that has failed. Returns false when the fault is not a
 * probe's. */
static bool
probe_failed(void *context)
{
#ifdef __x86_64__
	greg_t *pc = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	uintptr_t landing = sk_probe_landing((uintptr_t)*pc);

	if (landing != 0)
		*pc = (greg_t)landing;
	return landing != 0;
#else
	return false;
#endif
}

/* Counts a page that the handler fills. Returns false when there are too many within a second: the
 * client then removes its pages on purpose, and each of them costs the loop a signal. */
static bool
fill_permitted(struct guard *g)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	if (__atomic_exchange_n(&g->filled_in, (uint32_t)t.tv_sec, __ATOMIC_RELAXED) !=
		(uint32_t)t.tv_sec)
		__atomic_store_n(&g->filled, 0, __ATOMIC_RELAXED);
	return __atomic_add_fetch(&g->filled, 1, __ATOMIC_RELAXED) <= GUARD_FILLS;
}

/* Fills a small page with zeros. Returns false when there is no memory, or the client has removed
 * too many pages. */
static bool
small_fill(struct guard *g, uintptr_t addr)
{
	struct uffdio_zeropage z = {
		.range = {.start = addr & ~(uintptr_t)(SK_PROBE_PAGE - 1), .len = SK_PROBE_PAGE}};

	if (!fill_permitted(g))
		return false;
	return ioctl(uffd, UFFDIO_ZEROPAGE, &z) == 0 || errno == EEXIST || errno == EAGAIN;
}

static void
on_sigbus(int sig, siginfo_t *info, void *context)
{
	struct guard *g = sigbus_find((uintptr_t)info->si_addr);
	int saved = errno;
	uint32_t page;
	bool ok;

	if (g == NULL) {
		sk_fault_pass_on(&before, sig, info, context);
		return;
	}
	page = __atomic_load_n(&g->fetch, __ATOMIC_ACQUIRE);
	/* A page with a memory error is not missing. */
	ok = page != 0 && info->si_code == BUS_ADRERR && probe_failed(context);
	ok = ok || (page == SK_PROBE_PAGE && small_fill(g, (uintptr_t)info->si_addr));
	if (!ok && !guard_cut(g))
		sk_fault_pass_on(&before, sig, info, context);
	errno = saved;
}

int
eng_sigbus_install(void)
{
	struct sigaction sa = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_RESTART};

	if (__atomic_exchange_n(&installed, 1, __ATOMIC_ACQ_REL))
		return 0;
	sigemptyset(&sa.sa_mask);
	return sigaction(SIGBUS, &sa, &before) < 0 ? -errno : 0;
}

/* Returns the number of a free entry, or ENG_SPANS. */
static uint32_t
guard_take(void)
{
	uint32_t i = guards_free;

	if (i != ENG_SPANS)
		guards_free = guards[i].next;
	else if (guards_used < ENG_SPANS)
		i = guards_used++;
	return i;
}

int
eng_guard(void *base, size_t len, bool *flag)
{
	int rc = eng_sigbus_install();
	uint32_t i;

	if (rc < 0)
		return rc;
	pthread_mutex_lock(&guards_lock);
	i = guard_take();
	if (i != ENG_SPANS) {
		guards[i] = (struct guard){.base = (uintptr_t)base,
			.len = len,
			.flag = flag,
			.generation = guards[i].generation};
		eng_span_add((uintptr_t)base, len, i);
	}
	pthread_mutex_unlock(&guards_lock);
	return i != ENG_SPANS ? (int)i : -ENOSPC;
}

void
eng_unguard(int guard)
{
	if (guard < 0)
		return;
	pthread_mutex_lock(&fetch_lock);
	while (guards[guard].fetches > 0)
		pthread_cond_wait(&fetch_ended, &fetch_lock);
	pthread_mutex_lock(&guards_lock);
	eng_span_remove(guards[guard].base);
	__atomic_add_fetch(&guards[guard].generation, 1, __ATOMIC_RELEASE);
	guards[guard].next = guards_free;
	guards_free = (uint32_t)guard;
	pthread_mutex_unlock(&guards_lock);
	pthread_mutex_unlock(&fetch_lock);
}

uint32_t
eng_sigbus_count(void)
{
	return __atomic_load_n(&mended, __ATOMIC_ACQUIRE);
}

/* ---- Watched memory ---- */

static void
uffd_open(void)
{
	struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_SIGBUS};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api) < 0) {
		int rc = -errno;

		close(fd);
		uffd = rc;
		return;
	}
	uffd = fd < 0 ? -errno : fd;
}

int
eng_watch_permitted(void)
{
#ifdef __x86_64__
	pthread_once(&uffd_once, uffd_open);
	return uffd < 0 ? uffd : 0;
#else
	return -ENOTSUP; /* probes do not fail there (base/probe.h) */
#endif
}

int
eng_watch(int guard, size_t len, size_t page)
{
	int rc = guard < 0 ? -EINVAL : eng_watch_permitted();
	struct uffdio_register r = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	struct guard *g;

	if (rc < 0)
		return rc;
	g = &guards[guard];
	r.range = (struct uffdio_range){.start = g->base, .len = len};
	if (ioctl(uffd, UFFDIO_REGISTER, &r) < 0)
		return -errno;
	__atomic_store_n(&g->fetch, (uint32_t)page, __ATOMIC_RELEASE);
	return 0;
}

/* Returns `page` zero bytes, or NULL. A shorter mapping of zeros stays, since another thread may
 * use it: there is at most one for each size of page. */
static const uint8_t *
zeros_of(size_t page)
{
	const uint8_t *found = NULL;
	void *p;

	pthread_mutex_lock(&fetch_lock);
	if (page > zeros_len) {
		p = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p != MAP_FAILED) {
			zeros = p;
			zeros_len = page;
		}
	}
	if (page <= zeros_len)
		found = zeros;
	pthread_mutex_unlock(&fetch_lock);
	return found;
}

/* Fills one huge page. Returns 0 or -errno. */
static int
huge_fill(uintptr_t at, size_t page)
{
	struct uffdio_copy c = {.dst = at, .len = page, .src = (uintptr_t)zeros_of(page)};

	if (c.src == 0)
		return -ENOMEM;
	return ioctl(uffd, UFFDIO_COPY, &c) < 0 ? -errno : 0;
}

/* Fills small pages up to the first one that is present. Sets *done to the bytes filled. Returns 0
 * or -errno. */
static int
smalls_fill(uintptr_t at, size_t len, size_t *done)
{
	struct uffdio_zeropage z = {.range = {.start = at, .len = len}};
	int rc = ioctl(uffd, UFFDIO_ZEROPAGE, &z) < 0 ? -errno : 0;

	*done = z.zeropage > 0 ? (size_t)z.zeropage : 0;
	return rc;
}

/* Fills the holes in [at, end), whole pages. Returns false when there is no memory. */
static bool
range_fill(uintptr_t at, uintptr_t end, size_t page)
{
	while (at < end) {
		size_t done = page;
		int rc = page == SK_PROBE_PAGE ? smalls_fill(at, end - at, &done)
					       : huge_fill(at, page);

		if (rc == -EEXIST)
			done = page; /* the client has touched it meanwhile */
		else if (rc == -ENOMEM || rc == -ENOSPC || rc == -EFAULT)
			return false;
		else if (rc < 0 && done == 0)
			return true; /* the mapping is changing */
		at += done;
	}
	return true;
}

/* Fills the range until its first byte can be read. A client that removes the page each time, and a
 * page that cannot be read for another reason, give up the mapping. */
static void
guard_fill(struct guard *g, const uint8_t *at, size_t len, size_t page)
{
	uintptr_t first = (uintptr_t)at & ~(uintptr_t)(page - 1), end = (uintptr_t)at + len;

	end = (end + page - 1) & ~(uintptr_t)(page - 1);
	end = SK_MIN(end, g->base + g->len);
	for (unsigned i = 0; i < FETCH_TRIES && range_fill(first, end, page); i++)
		if (sk_probe(at))
			return;
	guard_cut(g);
}

uint64_t
eng_guard_name(const void *at)
{
	int i = eng_span_find((uintptr_t)at);

	return i < 0 ? 0
		     : (uint64_t)__atomic_load_n(&guards[i].generation, __ATOMIC_ACQUIRE) << 32 |
			       ((uint32_t)i + 1);
}

void
eng_fetch(uint64_t name, const uint8_t *at, size_t len)
{
	struct guard *g = NULL;
	size_t page;

	pthread_mutex_lock(&fetch_lock);
	if (name != 0 && eng_guard_name(at) == name)
		g = &guards[(uint32_t)name - 1];
	page = g != NULL ? __atomic_load_n(&g->fetch, __ATOMIC_ACQUIRE) : 0;
	if (page != 0)
		g->fetches++;
	pthread_mutex_unlock(&fetch_lock);
	if (page == 0)
		return; /* the mapping is gone, or consists of zero pages */
	guard_fill(g, at,
		page >= ENG_FETCH_MAX ? 1 : SK_MIN(SK_MAX(len, (size_t)1), (size_t)ENG_FETCH_MAX),
		page);
	pthread_mutex_lock(&fetch_lock);
	g->fetches--;
	pthread_cond_broadcast(&fetch_ended);
	pthread_mutex_unlock(&fetch_lock);
}
