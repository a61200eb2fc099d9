/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that can be registered: saker_alloc(). It comes from a few large arenas, each of which is
 * one region of the engine: the memory part of a flat region, or memfds that the client passes over
 * the socket as needed. One bit per page marks it as allocated, so adjacent free pages need no
 * merging.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client_priv.h"

#define PAGE        4096ull
#define HUGE_PAGE   (2ull << 20)
#define ARENA_FIRST (16ull << 20) /* each further arena is twice as large */
#define ARENA_MOST  (1ull << 30)

void
cl_mem_init(struct saker *s)
{
	pthread_mutex_init(&s->mem.lock, NULL);
	TAILQ_INIT(&s->mem.arenas);
	LIST_INIT(&s->mem.objects);
}

static void
arena_free(struct cl_arena *a)
{
	if (a->mapped)
		munmap(a->base, a->size);
	free(a->taken);
	free(a);
}

void
cl_mem_free(struct saker *s)
{
	struct cl_object *o;
	struct cl_arena *a;

	while ((o = LIST_FIRST(&s->mem.objects)) != NULL) {
		LIST_REMOVE(o, next);
		free(o);
	}
	while ((a = TAILQ_FIRST(&s->mem.arenas)) != NULL) {
		TAILQ_REMOVE(&s->mem.arenas, a, next);
		arena_free(a);
	}
	pthread_mutex_destroy(&s->mem.lock);
}

int
cl_mem_add(struct saker *s, uint8_t *base, uint64_t size, uint32_t region, uint64_t offset,
	bool mapped)
{
	struct cl_arena *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return -ENOMEM;
	a->taken = calloc((size / PAGE + 63) / 64, sizeof(uint64_t));
	if (a->taken == NULL) {
		free(a);
		return -ENOMEM;
	}
	a->base = base;
	a->size = size;
	a->region = region;
	a->offset = offset;
	a->mapped = mapped;
	TAILQ_INSERT_TAIL(&s->mem.arenas, a, next);
	return 0;
}

static inline bool
page_taken(const struct cl_arena *a, uint64_t page)
{
	return (a->taken[page / 64] >> (page % 64) & 1) != 0;
}

static void
pages_mark(struct cl_arena *a, uint64_t page, uint64_t n, bool taken)
{
	for (uint64_t i = page; i < page + n; i++) {
		uint64_t bit = 1ull << (i % 64);

		if (taken)
			a->taken[i / 64] |= bit;
		else
			a->taken[i / 64] &= ~bit;
	}
}

/* Returns the first of `n` free pages in a row (first fit), or UINT64_MAX. */
static uint64_t
pages_find(const struct cl_arena *a, uint64_t n)
{
	uint64_t total = a->size / PAGE, run = 0;

	if (n > total - a->used)
		return UINT64_MAX;
	for (uint64_t i = 0; i < total; i++) {
		if (i % 64 == 0 && a->taken[i / 64] == UINT64_MAX) {
			run = 0;
			i += 63;
			continue;
		}
		run = page_taken(a, i) ? 0 : run + 1;
		if (run == n)
			return i + 1 - n;
	}
	return UINT64_MAX;
}

static void *
arena_alloc(struct cl_arena *a, uint64_t pages)
{
	uint64_t at = pages_find(a, pages), end;

	if (at == UINT64_MAX)
		return NULL;
	pages_mark(a, at, pages, true);
	a->used += pages;
	at *= PAGE;
	end = at + pages * PAGE;
	/* Only memory that was allocated before may be other than zero. */
	if (at < a->fresh)
		memset(a->base + at, 0, (end < a->fresh ? end : a->fresh) - at);
	if (end > a->fresh)
		a->fresh = end;
	return a->base + at;
}

static int
memfd_of(uint64_t size, unsigned flags, uint8_t **base)
{
	int fd = memfd_create("saker-client", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	if (fd < 0)
		return -errno;
	*base = MAP_FAILED;
	if (ftruncate(fd, (off_t)size) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0)
		*base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*base == MAP_FAILED) {
		close(fd);
		return -ENOMEM;
	}
	return fd;
}

/* Adds an arena of `size` bytes, and passes it to the engine. */
static int
arena_bring(struct saker *s, uint64_t size)
{
	uint8_t *base = NULL;
	int region, fd = memfd_of(size, MFD_HUGETLB, &base);

	if (fd < 0)
		fd = memfd_of(size, 0, &base);
	if (fd < 0)
		return cl_fail(
			fd, "no memory for an arena of %llu bytes", (unsigned long long)size);
	region = cl_sock_region(s, fd, size, 0);
	close(fd); /* the mappings keep the memory */
	if (region >= 0 && cl_mem_add(s, base, size, (uint32_t)region, 0, true) < 0) {
		cl_command_handle(s, SHM_REGION_DROP, (uint32_t)region);
		region = cl_fail(-ENOMEM, "no memory for an arena");
	}
	if (region < 0)
		munmap(base, size);
	return region < 0 ? region : 0;
}

static int
mem_grow(struct saker *s, uint64_t need)
{
	uint64_t exact = (need + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1), size = ARENA_FIRST;
	struct cl_arena *a;
	int rc;

	if (s->sock < 0)
		return cl_fail(-ENOMEM, "the flat region has no %llu bytes left",
			(unsigned long long)need);
	TAILQ_FOREACH (a, &s->mem.arenas, next)
		if (size < ARENA_MOST)
			size *= 2;
	rc = size > exact ? arena_bring(s, size) : -ENOMEM;
	/* The quota or the system may still allow a smaller one. */
	return rc < 0 && rc != -EPIPE ? arena_bring(s, exact) : rc;
}

void
cl_mem_lock(struct saker *s)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&s->mem.lock);
	s->mem.cancel = state;
}

void
cl_mem_unlock(struct saker *s)
{
	int state = s->mem.cancel;

	pthread_mutex_unlock(&s->mem.lock);
	pthread_setcancelstate(state, NULL);
}

void *
saker_alloc(struct saker *s, size_t len)
{
	uint64_t pages = len / PAGE + (len % PAGE != 0);
	struct cl_arena *a;
	void *p = NULL;

	if (len == 0 || len > (size_t)1 << 46) {
		cl_fail(-EINVAL, "%zu bytes cannot be allocated", len);
		return NULL;
	}
	cl_mem_lock(s);
	TAILQ_FOREACH (a, &s->mem.arenas, next) {
		p = arena_alloc(a, pages);
		if (p != NULL)
			break;
	}
	if (p == NULL && mem_grow(s, pages * PAGE) == 0)
		p = arena_alloc(TAILQ_LAST(&s->mem.arenas, cl_arenas), pages);
	cl_mem_unlock(s);
	return p;
}

static struct cl_arena *
arena_of(struct saker *s, const void *addr, size_t len)
{
	struct cl_arena *a;

	TAILQ_FOREACH (a, &s->mem.arenas, next) {
		uint64_t off = (uint64_t)((uintptr_t)addr - (uintptr_t)a->base);

		if ((uintptr_t)addr >= (uintptr_t)a->base && off <= a->size && len <= a->size - off)
			return a;
	}
	return NULL;
}

/* Drops an empty arena. The first one stays, so that a program that frees and allocates in turn
 * sends no commands. */
static void
arena_drop(struct saker *s, struct cl_arena *a)
{
	if (!a->mapped || a == TAILQ_FIRST(&s->mem.arenas) ||
		cl_command_handle(s, SHM_REGION_DROP, a->region) < 0)
		return;
	TAILQ_REMOVE(&s->mem.arenas, a, next);
	arena_free(a);
}

void
saker_free(struct saker *s, void *p, size_t len)
{
	uint64_t pages = len / PAGE + (len % PAGE != 0);
	struct cl_arena *a;

	if (p == NULL)
		return;
	cl_mem_lock(s);
	a = arena_of(s, p, len);
	if (a != NULL) {
		uint64_t first = (uint64_t)((uint8_t *)p - a->base) / PAGE, freed = 0;

		for (uint64_t i = first; i < first + pages; i++)
			freed += page_taken(a, i);
		pages_mark(a, first, pages, false);
		a->used -= freed;
		if (a->used == 0)
			arena_drop(s, a);
	}
	cl_mem_unlock(s);
}

bool
cl_mem_find(struct saker *s, const void *addr, size_t len, struct shm_extent *out)
{
	struct cl_arena *a;
	bool taken = false;

	cl_mem_lock(s);
	a = arena_of(s, addr, len);
	if (a != NULL && len > 0) {
		uint64_t off = (uint64_t)((const uint8_t *)addr - a->base);

		taken = true;
		for (uint64_t i = off / PAGE; i <= (off + len - 1) / PAGE && taken; i++)
			taken = page_taken(a, i);
		out->region = a->region;
		out->offset = a->offset + off;
		out->len = len;
	}
	cl_mem_unlock(s);
	return taken;
}
