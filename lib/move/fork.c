/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork(2). A child needs memory of its own at the addresses where the parent has pages in a window.
 *
 * Before the fork, the windows' pages are copied to the stage, which is private memory. The child
 * inherits that copy, as all private memory, and maps it in the place of the shared pages before
 * the program continues. The parent drops the copy.
 *
 * From the copy to the fork the parent's other threads must not write to the pages; otherwise the
 * child would find moved pages older than its other memory. The thread that forks must still be
 * able to write, and libc writes to memory of its own (locks of streams and heaps) during fork(2).
 * So the guard covers only pages that one registration covers as a whole, and only a process that
 * may use userfaultfd in full has it. The engine can write at any time.
 *
 * Pages in a device's memory (struct mv_device) are copied by the child, as the first thing that it
 * does. Until then it writes to its stack only: anything else may lie on such a page.
 *
 * Then the child calls the function of mv_on_child(). libsaker's detaches it from all attachments
 * and closes their descriptors; otherwise the engine would not notice the end of the parent.
 *
 * A process without a free descriptor cannot read its mappings. Its child then closes one that the
 * library keeps for this, and makes all copies itself.
 *
 * The handlers are registered when the library is loaded, before those of all constructors without
 * a priority: they run last before the fork, when the locks of other libraries are taken, and first
 * after it, as handlers of others write to memory that may be on moved pages. vfork(2) and
 * posix_spawn(3) do not call handlers, and need none.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "move_priv.h"
#include "sys_priv.h"

/* A part of a window or of a device's memory that a mapping shows, and that becomes the child's own
 * memory. */
struct piece {
	const struct mv_window *w; /* NULL: a device's memory, which is mapped at `from`, too */
	uintptr_t at, from;
	uint64_t off, len;
	int prot;
	bool waits;  /* the program's mapping is on the stage */
	bool filled; /* the copy is complete; false: memory was exhausted */
};

static struct piece *pieces;
static size_t npieces, cap;
static LIST_HEAD(, mv_device) devices = LIST_HEAD_INITIALIZER(devices);
static void (*on_child)(void);
static uint64_t signals; /* mask of the thread that forks */
static bool listed;      /* the parent's `pieces` and huge pages are complete */
/* A descriptor that the child closes to read its mappings when the process has no free one. */
static int reserve = -1;

void
mv_fork_reserve(void)
{
	if (reserve < 0)
		reserve = eventfd(0, EFD_CLOEXEC);
}

static void
reserve_close(void)
{
	if (reserve >= 0)
		close(reserve);
	reserve = -1;
}

static bool
piece_add(const struct piece *p)
{
	if (npieces == cap) {
		size_t more = cap != 0 ? 2 * cap : MV_PAGE / sizeof(*p);
		struct piece *bigger = mv_own_map(more * sizeof(*p), PROT_READ | PROT_WRITE);

		if (bigger == NULL)
			return false;
		for (size_t i = 0; i < npieces; i++)
			bigger[i] = pieces[i];
		if (pieces != NULL)
			munmap(pieces, cap * sizeof(*p));
		pieces = bigger;
		cap = more;
	}
	pieces[npieces++] = *p;
	return true;
}

/* Adds the pieces of `v`, divided where mappings on the stage begin. */
static bool
vma_pieces(const struct mv_window *w, const struct mv_vma *v)
{
	struct mv_vma s;
	struct piece p = {.w = w, .at = v->start, .off = v->offset, .prot = v->prot};

	for (; p.at < v->end; p.at += p.len, p.off += p.len) {
		p.len = v->end - p.at;
		if (mv_maps_find(w->stage + p.off, &s)) {
			p.waits = s.prot != PROT_NONE;
			if (s.end - (w->stage + p.off) < p.len)
				p.len = s.end - (w->stage + p.off);
		}
		if (!piece_add(&p))
			return false;
	}
	return true;
}

/* Returns the device in whose memory `v` has pages that have moved, or NULL. The mapping of all of
 * that memory, which an engine in the same process has as well, begins at offset 0, where no page
 * moves to. */
static const struct mv_device *
vma_device(const struct mv_vma *v)
{
	const struct mv_device *d;
	struct mv_vma all;

	if (!v->shared || v->offset == 0)
		return NULL;
	LIST_FOREACH (d, &devices, next)
		if (mv_maps_find(d->base, &all) && all.shared && all.ino == v->ino &&
			all.dev == v->dev)
			return d;
	return NULL;
}

/* Lists the pieces of all mappings. Returns false when not all are listed, because there is no free
 * descriptor or no memory. */
static bool
pieces_list(void)
{
	struct mv_vma v;
	size_t at = 0;
	bool all = true;

	npieces = 0;
	if (mv_window_at(0) == NULL && LIST_EMPTY(&devices))
		return true;
	if (mv_maps_load() < 0)
		return false;
	while (all && mv_maps_next(&at, &v)) {
		const struct mv_window *w = mv_vma_window(&v);
		const struct mv_device *d = w == NULL ? vma_device(&v) : NULL;

		if (w != NULL)
			all = vma_pieces(w, &v);
		if (d != NULL)
			all = piece_add(&(struct piece){.at = v.start,
				.from = d->base + v.offset,
				.len = v.end - v.start,
				.prot = v.prot});
	}
	if (!all)
		npieces = 0;
	return all;
}

static void
pieces_fill(void)
{
	for (size_t i = 0; i < npieces; i++) {
		struct piece *p = &pieces[i];
		uint64_t known = 0;

		if (p->w != NULL)
			p->filled = mv_stage_fill(p->w, p->off, p->len, p->waits, &known) == 0;
	}
}

/* ---- Guarding against other threads ---- */

/* Calls `each` for the runs of pages with MV_WHOLE in all pieces. */
static void
whole_runs(void (*each)(uintptr_t at, uint64_t len, int prot))
{
	for (size_t i = 0; i < npieces; i++) {
		const struct piece *p = &pieces[i];
		const uint32_t *page = p->w != NULL ? &p->w->page[p->off / MV_PAGE] : NULL;
		uint64_t n = page != NULL ? p->len / MV_PAGE : 0, run;

		for (uint64_t k = 0; k < n; k += run) {
			bool whole = (page[k] & MV_WHOLE) != 0;

			for (run = 1; k + run < n && ((page[k + run] & MV_WHOLE) != 0) == whole;
				run++)
				;
			if (whole)
				each(p->at + k * MV_PAGE, run * MV_PAGE, p->prot);
		}
	}
}

static void
keep_out(uintptr_t at, uint64_t len, int prot)
{
	mv_guard_begin(MV_GUARD_UFFD, at, len, prot, true);
}

static void
let_in(uintptr_t at, uint64_t len, int prot)
{
	mv_guard_undo(MV_GUARD_UFFD, at, len, prot);
}

/* ---- The three moments ---- */

static void
fork_before(void)
{
	mv_lock();
	/* A signal handler that writes to a guarded page would wait for this thread itself. */
	mv_sys_signals_off(&signals);
	npieces = 0;
	listed = mv_huge_fork() && pieces_list();
	if (!listed)
		return;
	if (mv_guard_full())
		whole_runs(keep_out);
	pieces_fill();
}

static void
in_parent(void)
{
	if (mv_guard_full())
		whole_runs(let_in);
	for (size_t i = 0; i < npieces; i++) {
		const struct piece *p = &pieces[i];

		if (p->w == NULL)
			continue;
		if (p->waits)
			mv_sys_madvise(p->w->stage + p->off, p->len, MADV_DONTNEED);
		else
			mv_stage_clear(p->w, p->off, p->len);
	}
	mv_huge_in_parent();
	mv_sys_signals_back(&signals);
	mv_unlock();
}

/* Returns the address of the child's copy of a piece, or -errno. */
static long
piece_copied(const struct piece *p)
{
	long copy;

	if (p->w != NULL)
		return p->filled ? (long)(p->w->stage + p->off) : -ENOMEM;
	copy = mv_sys_mmap(0, p->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy >= 0)
		mv_copy_bytes((void *)copy, (const void *)p->from, p->len);
	return copy;
}

/* Lists and copies in the child what the parent could not list. The child has one thread, so the
 * descriptor that it frees stays free. */
static void
list_again(void)
{
	mv_huge_in_parent();
	reserve_close();
	if (!mv_huge_fork() || !pieces_list())
		abort(); /* the child must not write to the parent's memory */
	pieces_fill();
}

/* Writes to the stack only until the loop has ended, if the parent has listed the pieces. */
static void
in_child(void)
{
	if (!listed)
		list_again();
	for (size_t i = 0; i < npieces; i++) {
		const struct piece *p = &pieces[i];
		long copy = piece_copied(p);

		if (copy >= 0 && mv_sys_mremap((uintptr_t)copy, p->len,
					 MREMAP_MAYMOVE | MREMAP_FIXED, p->at) >= 0)
			mv_sys_mprotect(p->at, p->len, p->prot);
		else /* the child must not write to the parent's memory */
			mv_sys_mmap(p->at, p->len, PROT_NONE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	}
	npieces = 0;
	reserve_close();
	mv_huge_in_child();
	mv_guard_forget();
	mv_window_forget();
	if (on_child != NULL)
		on_child();
	mv_sys_signals_back(&signals);
	mv_unlock();
}

void
mv_fork_watch(void)
{
	static bool watched;

	if (!watched)
		watched = pthread_atfork(fork_before, in_parent, in_child) == 0;
}

/* GCC ignores the priority of a function that a header declares. */
__attribute__((constructor(101))) static void
watch_first(void)
{
	mv_fork_watch();
}

void
mv_on_child(void (*fn)(void))
{
	mv_lock();
	on_child = fn;
	mv_unlock();
}

void
mv_device_add(struct mv_device *d)
{
	mv_lock();
	mv_fork_reserve();
	LIST_INSERT_HEAD(&devices, d, next);
	mv_unlock();
}

void
mv_device_remove(struct mv_device *d)
{
	mv_lock();
	LIST_REMOVE(d, next);
	mv_unlock();
}
