/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copying, one chunk at a time, so that no more than one chunk exists twice. Inwards, the pages are
 * written to the window's memfd, the program's mapping moves to the stage without them, and the
 * memfd is mapped in its place. Outwards, the mapping on the stage gets the content and moves back.
 * Each change of a mapping is one system call, so no thread finds an address without its content.
 * Inwards there are two such calls; between them a thread that touches the range waits
 * (MV_GUARD_UFFD), or there is no other thread (MV_GUARD_ALONE).
 *
 * While the guard is active, this thread writes to its stack only, and blocks all signals.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "move_priv.h"
#include "sys_priv.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define SWAP_PLACES (MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP)
#define THERE       (3ull << 62) /* bits in a page's word of pagemap: present or swapped */

#define CHUNK_PAGES (MV_CHUNK / MV_PAGE)

void
mv_punch(const struct mv_window *w, uint64_t off, uint64_t len)
{
	mv_sys(SYS_fallocate, (uint64_t)w->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, len,
		0, 0);
}

static int
write_all(int fd, uintptr_t from, uint64_t len, uint64_t off)
{
	while (len > 0) {
		long n = mv_sys_pwrite(fd, from, len, off);

		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		from += (uint64_t)n;
		off += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return 0;
}

static int
copy_read_all(int fd, uintptr_t to, uint64_t len, uint64_t off)
{
	while (len > 0) {
		long n = mv_sys_pread(fd, to, len, off);

		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		to += (uint64_t)n;
		off += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return 0;
}

/* ---- Inwards ---- */

/* One chunk that moves. It is on the thread's stack, because the library's own variables may lie on
 * the pages that move, which cannot be accessed meanwhile. */
struct chunk {
	int fd; /* of the window */
	uint64_t off;
	uintptr_t at, stage;
	uint64_t len;
	int prot;
	enum mv_guard guard;
	bool whole;  /* all pages are written, also those that are not present */
	bool staged; /* the program's mapping is on the stage */
	int pagemap;
};

/* Writes the present pages to the memfd. Pages that the program has never touched stay holes. */
static int
pages_write(const struct chunk *c)
{
	uint64_t word[CHUNK_PAGES], n = c->len / MV_PAGE;
	int rc = 0;

	if (c->whole)
		return write_all(c->fd, c->at, c->len, c->off);
	rc = copy_read_all(c->pagemap, (uintptr_t)word, n * sizeof(word[0]),
		c->at / MV_PAGE * sizeof(word[0]));
	for (uint64_t i = 0, run; i < n && rc == 0; i += run) {
		bool there = (word[i] & THERE) != 0;

		for (run = 1; i + run < n && ((word[i + run] & THERE) != 0) == there; run++)
			;
		if (there)
			rc = write_all(
				c->fd, c->at + i * MV_PAGE, run * MV_PAGE, c->off + i * MV_PAGE);
	}
	return rc;
}

/* Maps the memfd in the place of the program's mapping. */
static int
place_take(struct chunk *c)
{
	long rc;

	/* MV_GUARD_SIGNAL stops threads that write, but not threads that read. */
	c->staged = c->guard != MV_GUARD_SIGNAL && !c->whole &&
		    mv_sys_mremap(c->at, c->len, SWAP_PLACES, c->stage) >= 0;
	rc = mv_sys_mmap(c->at, c->len, c->prot, MAP_SHARED | MAP_FIXED, c->fd, c->off);
	if (rc < 0 && c->staged)
		mv_sys_mremap(c->stage, c->len, SWAP_PLACES, c->at);
	return rc < 0 ? (int)rc : 0;
}

static int
chunk_in(struct chunk *c)
{
	uint64_t signals;
	int rc;

	mv_sys_signals_off(&signals);
	rc = mv_guard_begin(c->guard, c->at, c->len, c->prot, false);
	if (rc == 0) {
		rc = pages_write(c);
		if (rc == 0)
			rc = place_take(c);
		if (rc == 0)
			mv_guard_end(c->guard, c->at, c->len);
		else
			mv_guard_undo(c->guard, c->at, c->len, c->prot);
	}
	mv_sys_signals_back(&signals);
	if (c->staged)
		mv_sys_madvise(c->stage, c->len, MADV_DONTNEED);
	return rc;
}

/* Populates the pages that have data, so that the program's next access does not fault. */
static void
populate(const struct mv_window *w, uint64_t off, uint64_t len)
{
	off_t data = (off_t)off, hole;

	for (; (uint64_t)data < off + len; data = hole) {
		data = lseek(w->fd, data, SEEK_DATA);
		if (data < 0 || (uint64_t)data >= off + len)
			return;
		hole = lseek(w->fd, data, SEEK_HOLE);
		if (hole < 0 || (uint64_t)hole > off + len)
			hole = (off_t)(off + len);
		mv_sys_madvise(
			w->base + (uint64_t)data, (uint64_t)(hole - data), MADV_POPULATE_WRITE);
	}
}

static uint64_t
chunk_len(uint64_t at, uint64_t end, uint64_t most)
{
	uint64_t len = most - at % most;

	return len < end - at ? len : end - at;
}

int
mv_copy_in(const struct mv_window *w, const struct mv_vma *v, uintptr_t from, uintptr_t to,
	int pagemap)
{
	struct chunk c = {.fd = w->fd,
		.prot = v->prot,
		.guard = mv_guard_kind(v->ino == 0),
		.whole = v->ino != 0,
		.pagemap = pagemap};
	int rc;

	if (v->locked)
		munlock((void *)from, to - from);
	for (c.at = from; c.at < to; c.at += c.len) {
		c.len = chunk_len(c.at, to, mv_guard_chunk(c.guard));
		c.off = c.at - w->base;
		c.stage = mv_stage(w, c.at);
		mv_punch(w, c.off, c.len);
		rc = chunk_in(&c);
		if (rc < 0)
			return mv_fail(rc, "the memory at %#llx cannot be moved: %s",
				(unsigned long long)c.at, strerror(-rc));
	}
	if (v->locked)
		mlock((void *)from, to - from);
	else
		populate(w, from - w->base, to - from);
	return 0;
}

/* ---- Outwards ---- */

/* Finds the first run of data of the memfd in [off, end): *data to *hole, which is at most `end`.
 * *data == end: there is none. Up to *known the memfd had data at an earlier call, and is not
 * searched again, because a search takes as long as the run; a hole that was made meanwhile reads
 * as zeros. */
static int
run_find(const struct mv_window *w, uint64_t off, uint64_t end, uint64_t *known, uint64_t *data,
	uint64_t *hole)
{
	long rc;

	*data = *hole = off;
	if (off >= *known) {
		rc = mv_sys(SYS_lseek, (uint64_t)w->fd, off, SEEK_DATA, 0, 0, 0);
		*data = rc < 0 || (uint64_t)rc > end ? end : (uint64_t)rc;
		if (rc < 0 || *data == end)
			return rc < 0 && rc != -ENXIO ? (int)rc : 0;
		rc = mv_sys(SYS_lseek, (uint64_t)w->fd, *data, SEEK_HOLE, 0, 0, 0);
		if (rc < 0)
			return (int)rc;
		*known = (uint64_t)rc;
	}
	*hole = *known < end ? *known : end;
	return 0;
}

int
mv_stage_fill(const struct mv_window *w, uint64_t off, uint64_t len, bool waits, uint64_t *known)
{
	const int rw = PROT_READ | PROT_WRITE;
	uintptr_t stage = w->stage + off;
	uint64_t end = off + len, data, hole;
	long rc =
		waits ? mv_sys_mprotect(stage, len, rw)
		      : mv_sys_mmap(stage, len, rw, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	for (rc = rc < 0 ? rc : 0; rc == 0 && off < end; off = hole) {
		rc = run_find(w, off, end, known, &data, &hole);
		if (rc < 0 || data == end)
			break;
		rc = copy_read_all(w->fd, w->stage + data, hole - data, data);
	}
	return (int)rc;
}

void
mv_stage_clear(const struct mv_window *w, uint64_t off, uint64_t len)
{
	mv_sys_mmap(w->stage + off, len, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static int
chunk_out(const struct mv_window *w, uintptr_t at, uint64_t off, uint64_t len, int prot, bool waits,
	uint64_t *known)
{
	enum mv_guard guard = mv_guard_kind(true);
	uint64_t signals;
	int rc;

	mv_sys_signals_off(&signals);
	rc = mv_guard_begin(guard, at, len, prot, true);
	if (rc == 0) {
		rc = mv_stage_fill(w, off, len, waits, known);
		if (rc == 0)
			rc = (int)mv_sys_mprotect(w->stage + off, len, prot);
		if (rc == 0 && mv_sys_mremap(w->stage + off, len, SWAP_PLACES, at) < 0)
			rc = -ENOMEM;
		if (rc == 0)
			mv_guard_end(guard, at, len);
		else
			mv_guard_undo(guard, at, len, prot);
	}
	mv_sys_signals_back(&signals);
	if (rc == 0)
		mv_stage_clear(w, off, len);
	else
		mv_sys_madvise(w->stage + off, len, MADV_DONTNEED);
	return rc;
}

int
mv_copy_out(
	const struct mv_window *w, const struct mv_vma *v, uintptr_t at, uint64_t off, uint64_t len)
{
	const uint64_t most = mv_guard_chunk(mv_guard_kind(true)), end = off + len;
	const uintptr_t first = at;
	struct mv_vma s = {.end = 0};
	uint64_t known = 0;

	while (off < end) {
		uint64_t n = chunk_len(off, end, most);
		int rc;

		/* A mapping on the stage may begin and end at any page. */
		if (w->stage + off >= s.end && !mv_maps_find(w->stage + off, &s))
			return -EFAULT;
		if (s.end - (w->stage + off) < n)
			n = s.end - (w->stage + off);
		rc = chunk_out(w, at, off, n, v->prot, s.prot != PROT_NONE, &known);
		if (rc < 0)
			return rc;
		mv_punch(w, off, n);
		off += n;
		at += n;
	}
	if (v->locked)
		mlock((void *)first, len);
	return 0;
}
