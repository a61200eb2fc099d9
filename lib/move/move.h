/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moves private memory of the process into shared memory at the same addresses, and back, so that
 * another process can be given what a program has allocated already. doc/memory.md describes what
 * moves, what is refused, and what other threads see meanwhile.
 *
 * Pages move into one of two kinds of shared memory:
 *
 *  - Windows: memfds that this library creates. The address space is cut into windows of MV_WINDOW
 *    bytes, and a page has the same offset in its window's memfd as in its window. mv_in(),
 *    mv_out(), mv_extent() and mv_window_fd() serve them, and may be called by any thread.
 *  - Memory of the caller, at offsets that the caller chooses (the memory of an ivshmem device).
 *    The caller keeps account of its pages and calls mv_piece_in() and mv_piece_out(), with the
 *    library's lock held.
 *
 * Functions that return int return 0 or -errno; mv_error() then has one sentence about the failure.
 */
#ifndef SAKER_MOVE_H
#define SAKER_MOVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define MV_PAGE        4096ull
#define MV_WINDOW      (4ull << 30) /* size and alignment of a window, bytes */
#define MV_WINDOWS_MAX 63           /* windows of a process */

/* Returns the sentence about the calling thread's last failure in this library. */
const char *mv_error(void);

/* ---- Windows ---- */

/*
 * Moves the pages that [addr, addr + len) touches into their windows, unless they are there
 * already, and counts one hold for each. `write`: the memory must be writable.
 *
 * On failure nothing has changed: -EFAULT: no memory is mapped at some address; -EOPNOTSUPP: memory
 * that cannot move (a stack, memory of mv_look(), a read-only file mapping, the kernel's);
 * -EACCES: not readable, or not writable with `write`; -EBUSY: memory that mremap(2) took elsewhere
 * still has its place in a window; -ENOMEM; or what a system call reported.
 */
int mv_in(const void *addr, size_t len, bool write);
/* Releases one hold of each of the pages. Pages without a hold become private memory again. */
void mv_out(const void *addr, size_t len);
/* Returns the number of the window (0 to MV_WINDOWS_MAX - 1) that `addr`, which is held, lies in.
 * *off: the offset of `addr` in the window; *part: how many of the `len` bytes lie in it. */
unsigned mv_extent(const void *addr, size_t len, uint64_t *off, uint64_t *part);
/* Returns the memfd of a window, MV_WINDOW bytes. It stays open, and belongs to the library. */
int mv_window_fd(unsigned window);

/* ---- Memory that the program shares with others ---- */

/* A mapping of an object that other processes may map as well, or that has a name: memory that must
 * not move. The engine can map the same object. */
struct mv_object {
	uint64_t dev, ino;
	uint64_t offset; /* of the address in the object, bytes */
};

/* Finds out what begins at `addr`. Returns 1 and *o for a mapping of an object, which is not one of
 * this library's windows, or 0 for any other memory, which mv_in() judges. *part: how many of the
 * `len` bytes are alike. On failure -errno: -EACCES: not readable, or not writable with `write`.
 * Private memory on huge pages (MAP_HUGETLB) becomes shared memory of the process, once for all, so
 * that it is an object, too. */
int mv_look(const void *addr, size_t len, bool write, struct mv_object *o, size_t *part);
/* Opens the object of mv_look() at `addr` for reading and writing. *size: its bytes in whole pages.
 * Returns a descriptor, which belongs to the caller, or -errno: -EOPNOTSUPP: the process has no way
 * to open it, or it is on a file system whose pages the engine does not map. */
int mv_object_open(const void *addr, const struct mv_object *o, uint64_t *size);

/* ---- fork(2) ---- */

/* The lock of the library. The thread that forks holds it from before the fork until the parent and
 * the child have their memory in order; so what a caller changes under the lock, `fn` finds
 * consistent. */
void mv_lock(void);
void mv_unlock(void);
/* Sets a function that a child of fork(2) calls, with the lock held, after all pages that have
 * moved have become the child's private memory and the windows have been forgotten. */
void mv_on_child(void (*fn)(void));

/* Memory of the caller to which pages move (mv_piece_in()), and which is mapped as a whole at
 * `base`, from its offset 0 on. No page moves to offset 0. A child of fork(2) gets copies of the
 * pages, with the content at the time of the copy, which may be later than the fork. */
struct mv_device {
	LIST_ENTRY(mv_device) next;
	uintptr_t base;
};
void mv_device_add(struct mv_device *d);
void mv_device_remove(struct mv_device *d);

/* ---- Pieces: memory of the caller. All with the lock held ---- */

/* A mapping of the process: one line of /proc/self/maps. */
struct mv_vma {
	uintptr_t start, end;
	uint64_t offset, dev, ino;
	int prot;
	bool shared;
	bool locked;   /* by mlock(2) */
	uint64_t page; /* after mv_maps_load_all(): bytes of its pages */
	char name[32];
	const char *path; /* all of the name, up to the newline; until the next mv_maps_load() */
};

/* Reads the mappings of the process. */
int mv_maps_load(void);
/* Sets *v to the next mapping, in ascending order of addresses. *at: 0 for the first. Returns false
 * after the last one. */
bool mv_maps_next(size_t *at, struct mv_vma *v);
/* Checks that [from, to), whole pages, can move, as mv_in() does. mv_maps_load() comes before. */
int mv_judge(uintptr_t from, uintptr_t to, bool write);

/* Copies [at, at + len), whole pages within `v`, to `there` and maps `fd` from `off` on in their
 * place. `there` is a mapping of the same bytes of `fd`. The caller has blocked all signals.
 * Returns 0, or -errno without a sentence: the memory is as it was. */
int mv_piece_in(
	const struct mv_vma *v, uintptr_t at, uint64_t len, uint8_t *there, int fd, uint64_t off);
/* Puts private memory with the content of `there` in the place of [at, at + len). The other terms
 * are those of mv_piece_in(). */
int mv_piece_out(const struct mv_vma *v, uintptr_t at, uint64_t len, const uint8_t *there);

#endif
