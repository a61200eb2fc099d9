/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables whose size is fixed at start come straight from the kernel: zeroed without a pass over
 * them, and, when they are large, aligned so that the kernel can back them with huge pages.
 */
#include "mem.h"

#include <stdint.h>
#include <sys/mman.h>

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

void *
sk_mem_alloc(size_t len)
{
	void *p;

	if (len == 0 || len > SIZE_MAX / 2)
		return NULL;
	len = round_up(len);
	if (len >= HUGE_PAGE)
		return alloc_huge(len);
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

void
sk_mem_free(void *p, size_t len)
{
	if (p != NULL)
		munmap(p, round_up(len));
}
