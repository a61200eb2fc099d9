/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables whose size is fixed at start come straight from the kernel: zeroed without a pass over
 * them, and, when they are large, aligned so that the kernel can back them with huge pages.
 */
#include "mem.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif
#define PAGE      4096ul
#define HUGE_PAGE (2ul << 20)

static size_t
round_up(size_t len)
{
	return (len + PAGE - 1) & ~(PAGE - 1);
}

/* Maps more than `len` bytes, and unmaps the parts before and behind the aligned region. */
static void *
alloc_huge(size_t len)
{
	size_t room = len + HUGE_PAGE;
	uint8_t *p = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t before;

	if (p == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)p & (HUGE_PAGE - 1);
	if (before > 0)
		munmap(p, before);
	munmap(p + before + len, room - before - len);
	/* Advice only: the memory is usable without huge pages. */
	(void)madvise(p + before, len, MADV_HUGEPAGE);
	return p + before;
}

/* Of this thread; see sk_mem_populates(). */
static __thread bool populates;

bool
sk_mem_populates(bool on)
{
	bool was = populates;

	populates = on;
	return was;
}

/* Writes each page, for a kernel that does not populate memory. */
static void
touch_pages(uintptr_t from, uintptr_t end)
{
	/* Other threads may use other bytes of the first and of the last page. */
	for (; from < end; from += PAGE)
		__atomic_fetch_or((uint8_t *)from, 0, __ATOMIC_RELAXED);
}

bool
sk_mem_populate(void *p, size_t len)
{
	uintptr_t from = (uintptr_t)p & ~(PAGE - 1), end = round_up((uintptr_t)p + len);

	if (len == 0 || madvise((void *)from, end - from, MADV_POPULATE_WRITE) == 0)
		return true;
	if (errno != EINVAL)
		return false;
	touch_pages(from, end);
	return true;
}

static void *
alloc_small(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void *
sk_mem_alloc(size_t len)
{
	void *p;

	if (len == 0 || len > SIZE_MAX / 2)
		return NULL;
	len = round_up(len);
	p = len >= HUGE_PAGE ? alloc_huge(len) : alloc_small(len);
	if (p == NULL || !populates || sk_mem_populate(p, len))
		return p;
	munmap(p, len);
	return NULL;
}

void
sk_mem_free(void *p, size_t len)
{
	if (p != NULL)
		munmap(p, round_up(len));
}
