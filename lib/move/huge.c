/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Private memory on huge pages (MAP_HUGETLB). The windows have small pages, so it cannot move there
 * page by page. Instead the whole mapping becomes a mapping of a memfd on huge pages of the same
 * size, and stays so until the program unmaps it. One huge page more than before is needed while it
 * moves. The descriptors stay open, because a later registration needs one, until the program has
 * unmapped the memory.
 *
 * A child of fork(2) gets a copy on ordinary pages, as of other registered memory.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "move_priv.h"
#include "sys_priv.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define MFD_HUGE_SHIFT_ 26
#define MEMFDS          256 /* mappings on huge pages that a process can register */
#define COPIES          1024

static struct huge_memfd {
	int fd; /* 0: the entry is free */
	uint64_t dev, ino;
} memfds[MEMFDS];

static struct huge_copy {
	uintptr_t at;
	uint64_t len;
	int prot;
	void *copy; /* NULL: memory was exhausted */
} copies[COPIES];
static unsigned ncopies;

bool
mv_is_huge(const struct mv_vma *v)
{
	return !v->shared && strncmp(v->name, "/anon_hugepage", 14) == 0;
}

static struct huge_memfd *
memfd_of_vma(const struct mv_vma *v)
{
	for (unsigned i = 0; v->shared && i < MEMFDS; i++)
		if (memfds[i].fd != 0 && memfds[i].ino == v->ino && memfds[i].dev == v->dev)
			return &memfds[i];
	return NULL;
}

/* Closes the memfds that the program has unmapped. The mappings have been read. */
static void
memfds_sweep(void)
{
	bool used[MEMFDS] = {false};
	struct mv_vma v;
	size_t at = 0;

	while (mv_maps_next(&at, &v)) {
		const struct huge_memfd *m = memfd_of_vma(&v);

		if (m != NULL)
			used[m - memfds] = true;
	}
	for (unsigned i = 0; i < MEMFDS; i++) {
		if (memfds[i].fd != 0 && !used[i]) {
			close(memfds[i].fd);
			memfds[i].fd = 0;
		}
	}
}

/* Creates a memfd of `len` bytes with such pages. Returns NULL with errno. */
static struct huge_memfd *
memfd_make(uint64_t len, uint64_t page)
{
	unsigned size = (unsigned)__builtin_ctzll(page) << MFD_HUGE_SHIFT_;
	struct huge_memfd *m = memfds;
	struct stat st;

	while (m < memfds + MEMFDS && m->fd != 0)
		m++;
	if (m == memfds + MEMFDS) {
		errno = EMFILE;
		return NULL;
	}
	m->fd = memfd_create("saker-huge", MFD_CLOEXEC | MFD_HUGETLB | size);
	if (m->fd > 0 && ftruncate(m->fd, (off_t)len) == 0 && fstat(m->fd, &st) == 0) {
		m->dev = st.st_dev;
		m->ino = st.st_ino;
		return m;
	}
	if (m->fd > 0)
		close(m->fd);
	m->fd = 0;
	return NULL;
}

/* Moves the pages of `v`, one at a time. Returns 0 or -errno; pages that have moved stay there. */
static int
pages_share(const struct mv_vma *v, uint64_t page, uint8_t *there, int fd)
{
	struct mv_vma as = *v;
	uint64_t signals;
	int rc = 0;

	as.ino = 0; /* anonymous memory, which userfaultfd serves */
	for (uint64_t off = 0; off < v->end - v->start && rc == 0; off += page) {
		/* Without this call, a lack of huge pages would raise SIGBUS. */
		if (madvise(there + off, page, MADV_POPULATE_WRITE) < 0)
			return -ENOMEM;
		mv_sys_signals_off(&signals);
		rc = mv_piece_in(&as, v->start + off, page, there + off, fd, off);
		mv_sys_signals_back(&signals);
	}
	return rc;
}

/* Makes one mapping of the pages, which are all in the memfd: the kernel does not join mappings on
 * huge pages. Returns 0 or -errno. */
static int
pages_join(const struct mv_vma *v, int fd)
{
	long rc = mv_sys_mmap(v->start, v->end - v->start, v->prot, MAP_SHARED | MAP_FIXED, fd, 0);

	return rc < 0 ? (int)rc : 0;
}

/* Returns the size of the pages of `v`, or 0. */
static uint64_t
page_of(const struct mv_vma *v)
{
	struct mv_vma now = {.page = 0};

	if (mv_maps_load_all() < 0 || !mv_maps_find(v->start, &now) || now.start != v->start)
		return 0;
	return now.page;
}

int
mv_huge_share(const struct mv_vma *v)
{
	const uint64_t len = v->end - v->start;
	uint64_t page = page_of(v);
	struct huge_memfd *m;
	uint8_t *there;
	int rc;

	memfds_sweep();
	mv_fork_reserve();
	m = page > MV_PAGE && len % page == 0 ? memfd_make(len, page) : NULL;
	if (m == NULL)
		return mv_fail(-ENOMEM, "no memfd for the huge pages at %#llx: %s",
			(unsigned long long)v->start, strerror(errno));
	there = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, m->fd, 0);
	if (there == MAP_FAILED)
		return mv_fail(-ENOMEM, "no address space for the huge pages at %#llx",
			(unsigned long long)v->start);
	rc = pages_share(v, page, there, m->fd);
	munmap(there, len);
	if (rc == 0)
		rc = pages_join(v, m->fd);
	if (rc < 0)
		return mv_fail(rc,
			"the huge pages at %#llx cannot be shared, which needs one free page: %s",
			(unsigned long long)v->start, strerror(-rc));
	return 0;
}

/* ---- fork(2) ---- */

static bool
any_memfd(void)
{
	for (unsigned i = 0; i < MEMFDS; i++)
		if (memfds[i].fd != 0)
			return true;
	return false;
}

bool
mv_huge_fork(void)
{
	struct mv_vma v;
	size_t at = 0;

	ncopies = 0;
	if (!any_memfd())
		return true;
	if (mv_maps_load() < 0)
		return false;
	while (mv_maps_next(&at, &v)) {
		struct huge_copy *c = &copies[ncopies];

		if (memfd_of_vma(&v) == NULL)
			continue;
		if (ncopies == COPIES)
			return false;
		*c = (struct huge_copy){.at = v.start, .len = v.end - v.start, .prot = v.prot};
		c->copy = mv_own_map(c->len, PROT_READ | PROT_WRITE);
		if (c->copy != NULL && (v.prot & PROT_READ) != 0)
			memcpy(c->copy, (const void *)v.start, c->len);
		ncopies++;
	}
	return true;
}

void
mv_huge_in_parent(void)
{
	for (unsigned i = 0; i < ncopies; i++)
		if (copies[i].copy != NULL)
			munmap(copies[i].copy, copies[i].len);
	ncopies = 0;
}

void
mv_huge_in_child(void)
{
	for (unsigned i = 0; i < ncopies; i++) {
		const struct huge_copy *c = &copies[i];

		if (c->copy != NULL && mv_sys_mremap((uintptr_t)c->copy, c->len,
					       MREMAP_MAYMOVE | MREMAP_FIXED, c->at) >= 0)
			mv_sys_mprotect(c->at, c->len, c->prot);
		else /* the child must not write to the parent's memory */
			mv_sys_mmap(c->at, c->len, PROT_NONE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	}
	ncopies = 0;
	for (unsigned i = 0; i < MEMFDS; i++)
		if (memfds[i].fd != 0)
			close(memfds[i].fd);
	memset(memfds, 0, sizeof(memfds));
}
