/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Detection of thread stacks. /proc/self/maps names the first thread's only. A stack that libc
 * creates lies above a guard page without access rights, and ends with the thread control block,
 * which begins with its own address, the address of the DTV, and its own address again. This file
 * searches for such a block. glibc's heaps for threads may also lie above memory without access
 * rights, but they begin at multiples of their maximum size, with the address of their arena. A
 * stack without a guard page, which a program created by itself, cannot be distinguished from other
 * memory, except the one that the calling thread uses.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "move_priv.h"

#define STACK_MOST (64ull << 20) /* of larger mappings only the last page is searched */
#define HEAP_ALIGN (64ull << 20)
#define TCB_ALIGN  64
#define STEP       (16 * MV_PAGE)
/* The part of its stack that this thread may use while it moves memory, from here. */
#define NEAR_BELOW (64ull << 10)
#define NEAR_ABOVE (16ull << 10)

static uint8_t *scan; /* STEP bytes */

/* Returns the first page of [from, to) with a thread control block, or 0. It reads through
 * /proc/self/mem, because another thread may unmap the memory meanwhile. */
static uintptr_t
tcb_find(int mem, uintptr_t from, uintptr_t to)
{
	for (; from < to; from += STEP) {
		size_t len = to - from < STEP ? to - from : STEP;

		if (pread(mem, scan, len, (off_t)from) != (ssize_t)len)
			return 0;
		for (size_t i = 0; i + 3 * sizeof(uint64_t) <= len; i += TCB_ALIGN) {
			uint64_t word[3];

			memcpy(word, scan + i, sizeof(word));
			if (word[0] == from + i && word[2] == word[0] && word[1] != 0 &&
				word[1] != word[0])
				return (from + i) & ~(uintptr_t)(MV_PAGE - 1);
		}
	}
	return 0;
}

/* Returns whether a heap of glibc starts here: it begins with the address of its arena, which
 * follows the header of the arena's first heap. */
static bool
is_heap(int mem, uintptr_t start)
{
	uint64_t arena;

	return start % HEAP_ALIGN == 0 &&
	       pread(mem, &arena, sizeof(arena), (off_t)start) == (ssize_t)sizeof(arena) &&
	       arena != 0 && arena % HEAP_ALIGN < MV_PAGE;
}

/* Returns the end of the thread's stack in `v`, or `v->start` when there is none. */
static uintptr_t
stack_end(const struct mv_vma *v)
{
	uintptr_t most = v->end - v->start < STACK_MOST ? v->end : v->start + STACK_MOST, at = 0;
	int mem;

	if (scan == NULL)
		scan = mv_own_map(STEP, PROT_READ | PROT_WRITE);
	mem = scan != NULL ? open("/proc/self/mem", O_RDONLY | O_CLOEXEC) : -1;
	if (mem < 0)
		return v->start;
	if (!is_heap(mem, v->start)) {
		at = tcb_find(mem, v->end - MV_PAGE, v->end);
		if (at == 0)
			at = tcb_find(mem, v->start, most);
	}
	close(mem);
	return at != 0 ? at + MV_PAGE : v->start;
}

bool
mv_is_stack(const struct mv_vma *v, const struct mv_vma *below, uintptr_t from, uintptr_t to)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (here >= v->start && here < v->end && from < here + NEAR_ABOVE && to > here - NEAR_BELOW)
		return true;
	if (below->end != v->start || below->prot != PROT_NONE || below->shared)
		return false;
	return from < stack_end(v);
}
