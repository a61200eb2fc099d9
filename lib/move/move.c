/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Holds on pages: which pages move, and when. A page moves into its window with its first hold, and
 * back after its last one. The present state of a page is read from /proc/self/maps each time,
 * because the program may have unmapped or remapped it meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "move_priv.h"

#define ADDR_END (1ull << 47) /* end of the addresses that mmap(2) returns without a hint */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int cancel; /* the state of the thread that holds the lock */

/* pthread_cancel(3) takes effect after the thread has released the lock. */
void
mv_lock(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&lock);
	cancel = state;
}

void
mv_unlock(void)
{
	int state = cancel;

	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(state, NULL);
}

/* Sets [*from, *to) to the whole pages around [addr, addr + len). Returns false when len is 0 or
 * the range exceeds the address space. */
static bool
pages_of(const void *addr, size_t len, uintptr_t *from, uintptr_t *to)
{
	uintptr_t at = (uintptr_t)addr;

	if (len == 0 || len - 1 > (uintptr_t)-1 - MV_PAGE - at)
		return false;
	*from = at & ~(uintptr_t)(MV_PAGE - 1);
	*to = (at + len + MV_PAGE - 1) & ~(uintptr_t)(MV_PAGE - 1);
	return true;
}

/* Returns the end of the part of [at, to) that lies in the window of `at`. */
static uintptr_t
window_end(uintptr_t at, uintptr_t to)
{
	uintptr_t end = (at & ~(uintptr_t)(MV_WINDOW - 1)) + MV_WINDOW;

	return end < to ? end : to;
}

/* ---- Out ---- */

/* Returns the end of the run of pages from `off` on that all have holds, or that all have none. */
static uint64_t
move_run_end(const struct mv_window *w, uint64_t off, uint64_t end)
{
	bool held = w->page[off / MV_PAGE] != 0;
	uint64_t run = off + MV_PAGE;

	while (run < end && (w->page[run / MV_PAGE] != 0) == held)
		run += MV_PAGE;
	return run;
}

/* Moves pages without a hold back: those among pages [off, end) of the window that `v` maps.
 * Returns false when that fails. The pages then stay shared, with their content, and a later hold
 * finds them in the window. */
static bool
vma_settle(const struct mv_window *w, const struct mv_vma *v, uint64_t off, uint64_t end)
{
	uint64_t last = v->offset + (v->end - v->start), run;

	if (off < v->offset)
		off = v->offset;
	for (last = last < end ? last : end; off < last; off = run) {
		run = move_run_end(w, off, last);
		if (w->page[off / MV_PAGE] == 0 &&
			mv_copy_out(w, v, v->start + (off - v->offset), off, run - off) < 0)
			return false;
	}
	return true;
}

/* Frees window pages without a hold that no mapping shows, because the program unmapped them while
 * they were held. */
static void
sweep(uintptr_t from, uintptr_t to)
{
	for (uintptr_t at = from, end; at < to; at = end) {
		const struct mv_window *w = mv_window_find(at);

		end = window_end(at, to);
		for (uint64_t off = at - w->base, run; off < end - w->base; off = run) {
			run = move_run_end(w, off, end - w->base);
			if (w->page[off / MV_PAGE] != 0)
				continue;
			mv_punch(w, off, run - off);
			mv_stage_clear(w, off, run - off);
		}
	}
}

/* Moves pages of [from, to) without a hold back, wherever the program has them mapped now. */
static void
move_settle(uintptr_t from, uintptr_t to)
{
	struct mv_vma v;
	size_t at = 0;
	bool all = true;

	if (mv_maps_load() < 0)
		return;
	while (mv_maps_next(&at, &v)) {
		const struct mv_window *w = mv_vma_window(&v);

		if (w != NULL && from < w->base + MV_WINDOW && to > w->base)
			all &= vma_settle(w, &v, from > w->base ? from - w->base : 0,
				window_end(from > w->base ? from : w->base, to) - w->base);
	}
	if (all)
		sweep(from, to);
}

static void
move_hold(uintptr_t from, uintptr_t to, const void *addr, size_t len)
{
	for (uintptr_t at = from; at < to; at += MV_PAGE) {
		const struct mv_window *w = mv_window_find(at);
		uint32_t *page = &w->page[(at - w->base) / MV_PAGE];

		(*page)++;
		if (at >= (uintptr_t)addr && at + MV_PAGE <= (uintptr_t)addr + len)
			*page |= MV_WHOLE;
	}
}

/* Releases one hold of each page. Returns whether a page has none any more. */
static bool
let_go(uintptr_t from, uintptr_t to)
{
	bool freed = false;

	for (uintptr_t at = from; at < to; at += MV_PAGE) {
		const struct mv_window *w = mv_window_find(at);
		uint32_t *page = w != NULL ? &w->page[(at - w->base) / MV_PAGE] : NULL;

		if (page == NULL || (*page & ~MV_WHOLE) == 0)
			continue;
		(*page)--;
		if ((*page & ~MV_WHOLE) == 0) {
			*page = 0;
			freed = true;
		}
	}
	return freed;
}

/* ---- In ---- */

/* Checks that no page of [from, to) is mapped elsewhere: the program moved it by mremap(2), and
 * still uses its place in the window. */
static int
places_free(uintptr_t from, uintptr_t to)
{
	struct mv_vma v;
	size_t at = 0;

	while (mv_maps_next(&at, &v)) {
		const struct mv_window *w = mv_vma_window(&v);
		uintptr_t home = w != NULL ? w->base + v.offset : 0;

		if (w != NULL && home != v.start && home < to && home + (v.end - v.start) > from)
			return mv_fail(-EBUSY,
				"the memory that was registered at %#llx is at %#llx now (mremap), "
				"and still registered",
				(unsigned long long)home, (unsigned long long)v.start);
	}
	return 0;
}

static int
windows_for(uintptr_t from, uintptr_t to)
{
	int rc = 0;

	for (uintptr_t at = from; at < to && rc == 0; at = window_end(at, to)) {
		unsigned window;

		rc = mv_window_get(at, &window);
	}
	return rc;
}

/* Moves the part of `v` that lies in [from, to). */
static int
vma_move(const struct mv_vma *v, uintptr_t from, uintptr_t to, int pagemap)
{
	int rc = 0;

	if (v->shared) /* it is in the window already */
		return 0;
	if (from < v->start)
		from = v->start;
	if (to > v->end)
		to = v->end;
	for (uintptr_t at = from, end; at < to && rc == 0; at = end) {
		end = window_end(at, to);
		rc = mv_copy_in(mv_window_find(at), v, at, end, pagemap);
	}
	return rc;
}

/* Reads the mappings, and checks that all of [from, to) can move. */
static int
move_check(uintptr_t from, uintptr_t to, bool write)
{
	int rc = windows_for(from, to);

	if (rc == 0)
		rc = mv_maps_load();
	if (rc == 0)
		rc = mv_judge(from, to, write);
	return rc == 0 ? places_free(from, to) : rc;
}

static int
pages_move(uintptr_t from, uintptr_t to)
{
	struct mv_vma v;
	size_t at = 0;
	int pagemap, rc = 0;

	mv_guard_open();
	pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (pagemap < 0)
		return mv_fail(-errno, "/proc/self/pagemap cannot be read: %s", strerror(errno));
	while (rc == 0 && mv_maps_next(&at, &v) && v.start < to)
		if (v.end > from)
			rc = vma_move(&v, from, to, pagemap);
	close(pagemap);
	return rc;
}

int
mv_in(const void *addr, size_t len, bool write)
{
	uintptr_t from, to;
	int rc;

	if (!pages_of(addr, len, &from, &to) || to > ADDR_END)
		return mv_fail(-EFAULT, "there is no memory of %zu bytes at %p", len, addr);
	mv_lock();
	mv_fork_watch();
	mv_fork_reserve();
	rc = move_check(from, to, write);
	if (rc == 0) {
		rc = pages_move(from, to);
		if (rc == 0)
			move_hold(from, to, addr, len);
		else
			move_settle(from, to);
	}
	mv_unlock();
	return rc;
}

void
mv_out(const void *addr, size_t len)
{
	uintptr_t from, to;

	if (!pages_of(addr, len, &from, &to))
		return;
	mv_lock();
	if (let_go(from, to))
		move_settle(from, to);
	mv_unlock();
}

unsigned
mv_extent(const void *addr, size_t len, uint64_t *off, uint64_t *part)
{
	const uint64_t in = (uintptr_t)addr & (MV_WINDOW - 1);
	unsigned window = 0;

	mv_lock();
	while (mv_window_at(window) != mv_window_find((uintptr_t)addr))
		window++;
	mv_unlock();
	*off = in;
	*part = len < MV_WINDOW - in ? len : MV_WINDOW - in;
	return window;
}

int
mv_window_fd(unsigned window)
{
	int fd;

	mv_lock();
	fd = mv_window_at(window)->fd;
	mv_unlock();
	return fd;
}
