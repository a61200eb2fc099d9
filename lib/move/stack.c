/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stacks of threads. The kernel names the first one only. Those that libc makes stand above a guard
 * of no access and end with the thread's control block, which begins with its own address, the
 * DTV's, and its own once more: that is looked for. (glibc's heaps for threads may also stand above
 * memory of no access, but begin at multiples of their greatest size, with the address of their
 * arena.) A stack that a program made by itself without a guard cannot be told from other memory,
 * but for the one in use here and now.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "move_priv.h"

#define STACK_MOST (64ull << 20) /* larger ones are found by their last page only */
#define HEAP_ALIGN (64ull << 20)
#define TCB_ALIGN  64
#define STEP       (16 * MV_PAGE)
/* How far from here this thread may come while it moves memory. */
#define NEAR_BELOW (64ull << 10)
#define NEAR_ABOVE (16ull << 10)

static uint8_t *scan; /* STEP bytes */

/* The page with a control block on it in [from, to), or 0. Read through the file, since another
 * thread may unmap it now. */
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

/* An arena stands behind the header of the first of its heaps. */
static bool
is_heap(int mem, uintptr_t start)
{
	uint64_t arena;

	return start % HEAP_ALIGN == 0 &&
	       pread(mem, &arena, sizeof(arena), (off_t)start) == (ssize_t)sizeof(arena) &&
	       arena != 0 && arena % HEAP_ALIGN < MV_PAGE;
}

/* Where a thread's stack in `v` ends; `v->start`: there is none. */
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
