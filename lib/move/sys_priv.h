/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * System calls, and copying, without libc. While pages of the program are protected, the thread
 * that moves them may write to its stack only. libc's wrappers write errno and the cancellation
 * state, which may lie on these pages; the thread would then wait for itself.
 */
#ifndef SAKER_MOVE_SYS_PRIV_H
#define SAKER_MOVE_SYS_PRIV_H

#include <stdint.h>
#include <sys/syscall.h>

#ifndef __x86_64__
#error "the calling convention of system calls is that of x86-64"
#endif

/* Returns the result of a system call, or -errno. */
static inline long
mv_sys(long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	register uint64_t r10 __asm__("r10") = d;
	register uint64_t r8 __asm__("r8") = e;
	register uint64_t r9 __asm__("r9") = f;
	long rc;

	__asm__ volatile("syscall"
			 : "=a"(rc)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return rc;
}

static inline long
mv_sys_mmap(uintptr_t at, uint64_t len, int prot, int flags, int fd, uint64_t off)
{
	return mv_sys(SYS_mmap, at, len, (uint64_t)prot, (uint64_t)flags, (uint64_t)fd, off);
}

static inline long
mv_sys_mremap(uintptr_t from, uint64_t len, int flags, uintptr_t to)
{
	return mv_sys(SYS_mremap, from, len, len, (uint64_t)flags, to, 0);
}

static inline long
mv_sys_mprotect(uintptr_t at, uint64_t len, int prot)
{
	return mv_sys(SYS_mprotect, at, len, (uint64_t)prot, 0, 0, 0);
}

static inline long
mv_sys_madvise(uintptr_t at, uint64_t len, int advice)
{
	return mv_sys(SYS_madvise, at, len, (uint64_t)advice, 0, 0, 0);
}

static inline long
mv_sys_pread(int fd, uintptr_t to, uint64_t len, uint64_t off)
{
	return mv_sys(SYS_pread64, (uint64_t)fd, to, len, off, 0, 0);
}

static inline long
mv_sys_pwrite(int fd, uintptr_t from, uint64_t len, uint64_t off)
{
	return mv_sys(SYS_pwrite64, (uint64_t)fd, from, len, off, 0, 0);
}

static inline long
mv_sys_ioctl(int fd, unsigned long request, void *arg)
{
	return mv_sys(SYS_ioctl, (uint64_t)fd, request, (uintptr_t)arg, 0, 0, 0);
}

/* Copies without a call of libc. */
static inline void
mv_copy_bytes(void *to, const void *from, uint64_t len)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(len) : : "memory");
}

/* Blocks all signals. *old: the former mask, 8 bytes. */
static inline void
mv_sys_signals_off(uint64_t *old)
{
	uint64_t all = UINT64_MAX;

	mv_sys(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, (uintptr_t)&all, (uintptr_t)old, 8, 0, 0);
}

static inline void
mv_sys_signals_back(const uint64_t *old)
{
	mv_sys(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, (uintptr_t)old, 0, 8, 0, 0);
}

#endif
