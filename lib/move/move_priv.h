/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface between the files of lib/move.
 *
 * A window in which the program has registered memory has one memfd, and each page has the same
 * offset in the memfd as in the window. So a registered range is one extent (two across the border
 * of windows), however registrations overlap, nest or touch; nothing is allocated, nothing
 * fragments, and pages without a registration are holes. Windows belong to the process; each
 * attachment passes the memfds that it needs to its engine.
 *
 * A window also has the *stage*: an address range of the same size that belongs to the library. The
 * mapping that the program made, without its pages, stays on the stage while its pages are in the
 * memfd. When the pages go back, the program gets that mapping, which joins its neighbours again; a
 * new mapping of the same kind would not.
 */
#ifndef SAKER_MOVE_PRIV_H
#define SAKER_MOVE_PRIV_H

#include <signal.h>

#include "move.h"

#define MV_CHUNK (2ull << 20) /* bytes that move in one step: a huge page */

/* ---- error.c ---- */

/* Sets mv_error() and returns `rc`. */
int mv_fail(int rc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- window.c ---- */

struct mv_window {
	uintptr_t base; /* address of its first byte, a multiple of MV_WINDOW */
	uint64_t dev, ino;
	int fd;
	uintptr_t stage; /* address of the stage's first byte */
	uint32_t *page;  /* for each page: MV_WHOLE | number of holds */
};
#define MV_WHOLE 0x80000000u /* one registration covers the whole page: nothing else is on it */

/* Sets *out to the number of the window of an address, and creates the window at first use. Returns
 * 0, or -errno with a sentence. */
int mv_window_get(uintptr_t addr, unsigned *out);
/* Returns the window of an address, or NULL when there is none. */
struct mv_window *mv_window_find(uintptr_t addr);
/* Returns the window with number `i`, or NULL behind the last one. */
struct mv_window *mv_window_at(unsigned i);
/* Forgets all windows and closes the descriptors, in a child of fork(2). */
void mv_window_forget(void);
/* Returns `len` bytes of memory of the library, never locked, or NULL. */
void *mv_own_map(uint64_t len, int prot);

static inline uintptr_t
mv_stage(const struct mv_window *w, uintptr_t addr)
{
	return w->stage + (addr - w->base);
}

/* ---- maps.c ---- */

/* Sets *v to the mapping that contains `addr`. Returns false when there is none. */
bool mv_maps_find(uintptr_t addr, struct mv_vma *v);
/* Returns the window whose memory the program sees in `v`, or NULL. (An engine in the same process
 * maps all of a window at once; such a mapping does not count.) */
struct mv_window *mv_vma_window(const struct mv_vma *v);

/* Reads the mappings with the size of their pages. It takes longer than mv_maps_load(). */
int mv_maps_load_all(void);

/* ---- huge.c ---- */

/* Returns whether the mapping is private memory on huge pages. */
bool mv_is_huge(const struct mv_vma *v);
/* Replaces private memory on huge pages by shared memory on huge pages of the same size with the
 * same content. The mappings must be read again afterwards. Returns 0, or -errno with a
 * sentence. */
int mv_huge_share(const struct mv_vma *v);
/* fork(2): makes the child's copy of such memory, or returns false when it cannot list all of it;
 * the parent drops it; the child maps it. */
bool mv_huge_fork(void);
void mv_huge_in_parent(void);
void mv_huge_in_child(void);

/* ---- stack.c ---- */

/* Checks whether [from, to), within `v`, touches a thread's stack; `below` is the mapping before
 * `v`. */
bool mv_is_stack(const struct mv_vma *v, const struct mv_vma *below, uintptr_t from, uintptr_t to);

/* ---- segv.c ---- */

/* Makes `ours` the first function that handles a SIGSEGV, also when the program has installed a
 * handler since the last call. A fault for which it returns false takes the action that the
 * program has set. Call with mv_lock() held. */
void mv_segv_install(bool (*ours)(const siginfo_t *info));

/* ---- guard.c ---- */

enum mv_guard {
	MV_GUARD_UFFD,   /* threads that write wait in the kernel */
	MV_GUARD_SIGNAL, /* threads that write wait in a handler of SIGSEGV */
	MV_GUARD_ALONE,  /* the process has no other threads */
};

/* Finds out, at its first call, which guards the process may use. */
void mv_guard_open(void);
/* Closes the userfaultfd, which is the parent's, in a child of fork(2). */
void mv_guard_forget(void);
/* Returns the guard for a range. `anonymous`: anonymous memory, or memory of a window. */
enum mv_guard mv_guard_kind(bool anonymous);
/* Returns how many bytes move in one step under a guard. */
uint64_t mv_guard_chunk(enum mv_guard kind);
/* Returns whether system calls of other threads wait, too. */
bool mv_guard_full(void);
/* Starts to guard a range: no other thread can write to it, nor touch pages of it that are not
 * present (`shared`: those may be touched, they are in the memfd). This function and the two below
 * write to nothing but the stack. Returns 0 or -errno. */
int mv_guard_begin(enum mv_guard kind, uintptr_t at, uint64_t len, int prot, bool shared);
/* Ends the guard after another mapping has replaced the range: waiting threads continue there. */
void mv_guard_end(enum mv_guard kind, uintptr_t at, uint64_t len);
/* Ends the guard of a range that has not changed. */
void mv_guard_undo(enum mv_guard kind, uintptr_t at, uint64_t len, int prot);

/* ---- copy.c ---- */

/* Moves the pages of [from, to), within `v` and one window, into the window. `pagemap`: a
 * descriptor of /proc/self/pagemap. Returns 0, or -errno with a sentence. */
int mv_copy_in(const struct mv_window *w, const struct mv_vma *v, uintptr_t from, uintptr_t to,
	int pagemap);
/* Replaces [off, off + len) of the window, which the program sees at `at` as part of `v`, with
 * private memory of the same content. Returns 0, or -errno: the rest stays in the window. */
int mv_copy_out(const struct mv_window *w, const struct mv_vma *v, uintptr_t at, uint64_t off,
	uint64_t len);
/* Copies [off, off + len) of the window to private memory on the stage: to the program's own
 * mapping there (`waits`), or to a new one. *known: 0, or the end of the run of data that an
 * earlier call with a smaller offset found. Returns 0 or -errno. */
int mv_stage_fill(
	const struct mv_window *w, uint64_t off, uint64_t len, bool waits, uint64_t *known);
/* Makes a part of the stage an empty reservation again. */
void mv_stage_clear(const struct mv_window *w, uint64_t off, uint64_t len);
/* Frees the window's pages in a range. */
void mv_punch(const struct mv_window *w, uint64_t off, uint64_t len);

/* ---- fork.c ---- */

/* Registers the handlers of fork(2) at its first call, which is that of a constructor. */
void mv_fork_watch(void);
/* Opens, unless it is open, the descriptor that a child of fork(2) may need. It is called before
 * memory moves, with the lock held. */
void mv_fork_reserve(void);

#endif
