/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moving memory that a program already has into shared memory, and back: what the files move*.c
 * share.
 *
 * The address space is cut into *windows* of SHM_SPARSE_MAX bytes. A window that a program
 * registers memory in has one memfd, in which each page stands at the offset that it has in the
 * window. So whatever is registered is one extent (two across the border of windows), however
 * registrations overlap, nest or touch; nothing is allocated and nothing fragments; pages that
 * nobody registered are holes. Windows belong to the process, and each attachment brings those
 * that it needs.
 *
 * To a window belongs as much address space of the library's own, the *stage*. What stood at an
 * address before, its mapping without its pages, waits there until the pages are given back, so
 * that the program finds the mapping that it made, not a lookalike that does not join its
 * neighbours.
 */
#ifndef SAKER_MOVE_PRIV_H
#define SAKER_MOVE_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client_priv.h"

#define MV_PAGE  4096ull
#define MV_CHUNK (2ull << 20) /* what is moved in one step: a huge page */

/* ---- move_window.c ---- */

struct mv_window {
	uintptr_t base; /* address of its first byte, a multiple of its size */
	uint64_t dev, ino;
	int fd;
	uintptr_t stage;
	uint32_t *page; /* for each page: MV_WHOLE | how many registrations hold it */
};
#define MV_WHOLE 0x80000000u /* a registration has all of the page, so nothing else is on it */

/* The window of an address, made if there is none; -ENOMEM with a reason. */
int mv_window_get(uintptr_t addr, unsigned *out);
/* The same without making one; NULL: there is none. */
struct mv_window *mv_window_find(uintptr_t addr);
struct mv_window *mv_window_at(unsigned i); /* NULL: there are no more */
/* In a child: forgets all, closes what was inherited. */
void mv_window_forget(void);
/* `len` bytes of the library's own, never locked. NULL: no memory. */
void *mv_own_map(uint64_t len, int prot);

static inline uintptr_t
mv_stage(const struct mv_window *w, uintptr_t addr)
{
	return w->stage + (addr - w->base);
}

/* ---- move_maps.c ---- */

/* One line of /proc/self/maps. */
struct mv_vma {
	uintptr_t start, end;
	uint64_t offset, dev, ino;
	int prot;
	bool shared;
	bool locked; /* in memory, mlock(2) */
	char name[32];
};

/* Reads the process' mappings as they are now; -errno with a reason. */
int mv_maps_load(void);
/* Walks through what was read: *at is 0 at first. false: no more. */
bool mv_maps_next(size_t *at, struct mv_vma *v);
/* The mapping with `addr` in it; false: none. */
bool mv_maps_find(uintptr_t addr, struct mv_vma *v);
/* The window whose memory `v` shows the program, or NULL. (An engine in the same process maps all
 * of a window at once.) */
struct mv_window *mv_vma_window(const struct mv_vma *v);
/* Whether [from, to) may be moved for registration with or without a right to write: 0, or -errno
 * with a reason. */
int mv_judge(uintptr_t from, uintptr_t to, bool write);

/* ---- move_stack.c ---- */

/* Whether [from, to), within `v`, touches the stack of a thread; `below`: the mapping before. */
bool mv_is_stack(const struct mv_vma *v, const struct mv_vma *below, uintptr_t from, uintptr_t to);

/* ---- move_guard.c ---- */

enum mv_guard {
	MV_GUARD_UFFD,   /* threads that write wait in the kernel */
	MV_GUARD_SIGNAL, /* they wait in a handler of SIGSEGV */
	MV_GUARD_ALONE,  /* there are no other threads */
};

/* Finds out once what the process may use. */
void mv_guard_open(void);
/* In a child: the descriptor is the parent's. */
void mv_guard_forget(void);
/* Which guard [from, to) of kind `anonymous` (or the library's own shared memory) is moved under.
 */
enum mv_guard mv_guard_kind(bool anonymous);
/* How much to move in one step. */
uint64_t mv_guard_chunk(enum mv_guard kind);
/* Whether also system calls of other threads wait. */
bool mv_guard_full(void);
/* From here on nobody writes to the range, and nobody touches pages of it that are not there
 * (`shared`: that is not needed, they are in the memfd). Writes only to the stack, as the others
 * below. -errno. */
int mv_guard_begin(enum mv_guard kind, uintptr_t at, uint64_t len, int prot, bool shared);
/* Another mapping has taken the range's place: whoever waits goes on there. */
void mv_guard_end(enum mv_guard kind, uintptr_t at, uint64_t len);
/* The range is still as it was: whoever waits goes on. */
void mv_guard_undo(enum mv_guard kind, uintptr_t at, uint64_t len, int prot);

/* ---- move_copy.c ---- */

/* Moves the pages of [from, to), within `v` and one window, into the window. -errno. */
int mv_copy_in(const struct mv_window *w, const struct mv_vma *v, uintptr_t from, uintptr_t to,
	int pagemap);
/* Gives back [off, off + len) of the window, which stands at `at` as part of `v`: private memory
 * with the same content takes its place. -errno: it stays. */
int mv_copy_out(const struct mv_window *w, const struct mv_vma *v, uintptr_t at, uint64_t off,
	uint64_t len);
/* Copies [off, off + len) of the window to private memory on the stage, where the program's own
 * mapping waits or a new one is made. -errno. *known: up to where there were pages, seen by an
 * earlier call with a smaller offset, or 0. */
int mv_stage_fill(
	const struct mv_window *w, uint64_t off, uint64_t len, bool waits, uint64_t *known);
/* The stage is bare again. */
void mv_stage_clear(const struct mv_window *w, uint64_t off, uint64_t len);
/* Gives the window's pages there back to the system. */
void mv_punch(const struct mv_window *w, uint64_t off, uint64_t len);

/* ---- move_fork.c ---- */

/* Prepares for fork(2), once; the library's constructor has done so already. */
void mv_fork_watch(void);

/* ---- move.c ---- */

void mv_lock(void);
void mv_unlock(void);

#endif
