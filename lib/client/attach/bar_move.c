/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registration of memory that a program in a virtual machine has allocated already: its pages move
 * into the memory of the ivshmem device (lib/move). That memory has a fixed size, and all programs
 * of the machine share it, so each page gets any free place, unlike in a window of lib/move. Pages
 * are counted: a page moves with its first registration, and moves back after its last one.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bar_priv.h"
#include "../../move/move.h"

struct bm_page {
	uintptr_t at;   /* address in the program */
	uint8_t *there; /* address of its place in the mapping of the device's memory */
	uint32_t held;  /* registrations */
};

struct cl_bar_pages {
	struct bm_page *page; /* by address */
	size_t n, room;
};

/* Returns the index of the first page at or above `at`. */
static size_t
lower(const struct cl_bar_pages *t, uintptr_t at)
{
	size_t from = 0, to = t->n;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (t->page[mid].at < at)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

static struct bm_page *
bar_move_find(const struct cl_bar_pages *t, uintptr_t at)
{
	size_t i = lower(t, at);

	return i < t->n && t->page[i].at == at ? &t->page[i] : NULL;
}

/* Makes room for `more` entries. */
static int
reserve(struct cl_bar_pages *t, size_t more)
{
	size_t room = t->n + more;
	struct bm_page *p;

	if (room <= t->room)
		return 0;
	p = realloc(t->page, 2 * room * sizeof(*p));
	if (p == NULL)
		return cl_fail(-ENOMEM, "no memory to keep account of moved pages");
	t->page = p;
	t->room = 2 * room;
	return 0;
}

/* ---- In ---- */

/* Moves [from, to), of which no page has moved, to `there`. */
static int
run_copy(const struct cl_bar *b, uintptr_t from, uintptr_t to, uint8_t *there)
{
	struct mv_vma v;
	size_t at = 0;
	int rc = 0;

	while (rc == 0 && mv_maps_next(&at, &v) && v.start < to) {
		uintptr_t start = v.start > from ? v.start : from, end = v.end < to ? v.end : to;

		if (start < end)
			rc = mv_piece_in(&v, start, end - start, there + (start - from), b->fd,
				(uint64_t)(there - b->base) + (start - from));
	}
	return rc;
}

static void
run_enter(struct cl_bar_pages *t, uintptr_t from, uintptr_t to, uint8_t *there)
{
	size_t i = lower(t, from), n = (to - from) / MV_PAGE;

	memmove(&t->page[i + n], &t->page[i], (t->n - i) * sizeof(t->page[0]));
	for (size_t k = 0; k < n; k++)
		t->page[i + k] =
			(struct bm_page){.at = from + k * MV_PAGE, .there = there + k * MV_PAGE};
	t->n += n;
}

static int
run_in(struct saker *s, struct cl_bar *b, uintptr_t from, uintptr_t to, bool write)
{
	uint8_t *there;
	int rc = mv_judge(from, to, write);

	if (rc < 0)
		return cl_fail(rc, "%s", mv_error());
	rc = reserve(b->pages, (to - from) / MV_PAGE);
	if (rc < 0)
		return rc;
	there = saker_alloc(s, to - from);
	if (there == NULL)
		return cl_fail(-ENOMEM, "the device's memory has no %llu bytes left",
			(unsigned long long)(to - from));
	/* The pages are entered even if the copy fails: those that have moved go back with the
	 * others. */
	rc = run_copy(b, from, to, there);
	run_enter(b->pages, from, to, there);
	return rc < 0 ? cl_fail(rc, "the memory at %#llx cannot be moved: %s",
				(unsigned long long)from, strerror(-rc))
		      : 0;
}

/* ---- Out ---- */

/* Moves [from, to), whose place is `there`, back, except memory that the program has unmapped or
 * replaced meanwhile. */
static void
run_out(struct saker *s, struct cl_bar *b, uintptr_t from, uintptr_t to, uint8_t *there)
{
	struct mv_vma v;
	size_t at = 0;
	bool all = mv_maps_load() == 0;

	while (all && mv_maps_next(&at, &v) && v.start < to) {
		uintptr_t start = v.start > from ? v.start : from, end = v.end < to ? v.end : to;

		if (start < end && v.shared && v.ino == b->ino &&
			v.offset + (start - v.start) ==
				(uint64_t)(there - b->base) + (start - from))
			all = mv_piece_out(&v, start, end - start, there + (start - from)) == 0;
	}
	/* A place that the program may still use is not freed. */
	if (all)
		saker_free(s, there, to - from);
}

/* Moves all pages of [from, to) without a registration back. */
static void
bar_move_settle(struct saker *s, struct cl_bar *b, uintptr_t from, uintptr_t to)
{
	struct cl_bar_pages *t = b->pages;
	size_t i = lower(t, from);

	while (i < t->n && t->page[i].at < to) {
		struct bm_page first = t->page[i];
		size_t n = 1;

		if (first.held != 0) {
			i++;
			continue;
		}
		while (i + n < t->n && t->page[i + n].held == 0 &&
			t->page[i + n].at == first.at + n * MV_PAGE && t->page[i + n].at < to &&
			t->page[i + n].there == first.there + n * MV_PAGE)
			n++;
		memmove(&t->page[i], &t->page[i + n], (t->n - i - n) * sizeof(t->page[0]));
		t->n -= n;
		run_out(s, b, first.at, first.at + n * MV_PAGE, first.there);
	}
}

/* ---- Registrations ---- */

static int
move_missing(struct saker *s, struct cl_bar *b, uintptr_t from, uintptr_t to, bool write)
{
	int rc = mv_maps_load();

	if (rc < 0)
		return cl_fail(rc, "%s", mv_error());
	for (uintptr_t at = from, end; at < to && rc == 0; at = end) {
		end = at + MV_PAGE;
		if (bar_move_find(b->pages, at) != NULL)
			continue;
		while (end < to && bar_move_find(b->pages, end) == NULL)
			end += MV_PAGE;
		rc = run_in(s, b, at, end, write);
	}
	return rc;
}

/* Sets the extents of [addr, addr + len), as few as possible. */
static int
extents(struct saker *s, const struct cl_bar *b, uintptr_t addr, size_t len, struct shm_mr *m)
{
	m->nextents = 0;
	while (len > 0) {
		uintptr_t page = addr & ~(uintptr_t)(MV_PAGE - 1);
		const struct bm_page *p = bar_move_find(b->pages, page);
		struct shm_extent *e = &m->extents[m->nextents - (m->nextents > 0)];
		uint64_t part = MV_PAGE - (addr - page), off;

		part = part < len ? part : len;
		off = (uint64_t)(p->there - s->home) + (addr - page);
		if (m->nextents > 0 && e->offset + e->len == off) {
			e->len += part;
		} else {
			if (m->nextents == SHM_MAX_EXTENTS)
				return cl_fail(-EOPNOTSUPP,
					"the memory region has more than %u pieces",
					SHM_MAX_EXTENTS);
			m->extents[m->nextents++] =
				(struct shm_extent){.region = SHM_HOME, .offset = off, .len = part};
		}
		addr += part;
		len -= part;
	}
	return 0;
}

static void
bar_move_hold(struct cl_bar_pages *t, uintptr_t from, uintptr_t to, int by)
{
	for (size_t i = lower(t, from); i < t->n && t->page[i].at < to; i++)
		t->page[i].held += (uint32_t)by;
}

int
cl_bar_move_in(struct saker *s, const void *addr, size_t len, bool write, struct shm_mr *m)
{
	uintptr_t from = (uintptr_t)addr & ~(uintptr_t)(MV_PAGE - 1);
	uintptr_t to = ((uintptr_t)addr + len + MV_PAGE - 1) & ~(uintptr_t)(MV_PAGE - 1);
	struct cl_bar *b = s->bar;
	sigset_t all, before;
	int rc;

	if (len == 0 || to <= from)
		return cl_fail(-EFAULT, "there is no memory of %zu bytes at %p", len, addr);
	if (b->pages == NULL)
		b->pages = calloc(1, sizeof(*b->pages));
	if (b->pages == NULL)
		return cl_fail(-ENOMEM, "no memory to keep account of moved pages");
	sigfillset(&all);
	mv_lock();
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = move_missing(s, b, from, to, write);
	if (rc == 0)
		rc = extents(s, b, (uintptr_t)addr, len, m);
	if (rc == 0)
		bar_move_hold(b->pages, from, to, 1);
	else
		bar_move_settle(s, b, from, to);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	mv_unlock();
	return rc;
}

void
cl_bar_move_out(struct saker *s, const void *addr, size_t len)
{
	uintptr_t from = (uintptr_t)addr & ~(uintptr_t)(MV_PAGE - 1);
	uintptr_t to = ((uintptr_t)addr + len + MV_PAGE - 1) & ~(uintptr_t)(MV_PAGE - 1);
	struct cl_bar *b = s->bar;
	sigset_t all, before;

	sigfillset(&all);
	mv_lock();
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bar_move_hold(b->pages, from, to, -1);
	bar_move_settle(s, b, from, to);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	mv_unlock();
}

/* The pages that had moved are the child's own by now. */
void
cl_bar_orphan(struct cl_bar *b)
{
	b->beating = false;
	b->token = 0;
	b->s->wake_register = NULL;
	if (b->pages != NULL)
		b->pages->n = 0;
	cl_orphan_pages(b->base, b->size);
	close(b->fd);
	b->fd = -1;
	cl_bar_irq_free(b);
}

void
cl_bar_pages_free(struct cl_bar_pages *t)
{
	if (t != NULL)
		free(t->page);
	free(t);
}
