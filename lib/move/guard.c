/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Guards: they keep other threads of the program from writing to pages that move.
 *
 * With userfaultfd a thread that writes waits in the kernel until the pages are in their new place,
 * in a system call as well as in user mode. A process without the right to that
 * (vm.unprivileged_userfaultfd = 0, and neither CAP_SYS_PTRACE nor access to /dev/userfaultfd) runs
 * in the degraded mode: only threads in user mode wait, and a system call of another thread that
 * touches the pages at that time fails with EFAULT. No store is lost. Chunks are small, so that the
 * time is short.
 *
 * Without userfaultfd, and for private pages of a file, which it does not support, the pages become
 * read-only, and a thread that writes waits in a handler of SIGSEGV. The effects are those of the
 * degraded mode. The handler stays installed, because a thread may have faulted whose signal is not
 * delivered yet. It repeats an access once, and passes a second fault on to the program's handler
 * (segv.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <time.h>
#include <unistd.h>

#include "move_priv.h"
#include "sys_priv.h"

#define SMALL_CHUNK (64ull << 10)
#define FEATURES    (UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM)
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0)
#endif

static int uffd = -1;
static bool opened, full;

/* Enables the features that a guard needs. Returns `fd`, or -1 after closing it. */
static int
uffd_agree(int fd)
{
	struct uffdio_api api = {.api = UFFD_API, .features = FEATURES};

	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static int
uffd_by_device(void)
{
	int dev = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC), fd = -1;

	if (dev >= 0) {
		fd = ioctl(dev, USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK);
		close(dev);
	}
	return fd;
}

void
mv_guard_open(void)
{
	const char *env = getenv("SAKER_MOVE");
	const int flags = O_CLOEXEC | O_NONBLOCK;

	if (opened)
		return;
	opened = true;
	if (env != NULL && strcmp(env, "signal") == 0)
		return;
	if (env == NULL || strcmp(env, "user") != 0) {
		uffd = uffd_agree((int)syscall(SYS_userfaultfd, flags));
		if (uffd < 0)
			uffd = uffd_agree(uffd_by_device());
		full = uffd >= 0;
	}
	if (uffd < 0)
		uffd = uffd_agree((int)syscall(SYS_userfaultfd, flags | UFFD_USER_MODE_ONLY));
}

void
mv_guard_forget(void)
{
	if (uffd >= 0)
		close(uffd);
	uffd = -1;
	opened = full = false;
}

bool
mv_guard_full(void)
{
	return full;
}

enum mv_guard
mv_guard_kind(bool anonymous)
{
	if (uffd >= 0 && anonymous)
		return MV_GUARD_UFFD;
	return __libc_single_threaded ? MV_GUARD_ALONE : MV_GUARD_SIGNAL;
}

uint64_t
mv_guard_chunk(enum mv_guard kind)
{
	return (kind == MV_GUARD_UFFD && full) || kind == MV_GUARD_ALONE ? MV_CHUNK : SMALL_CHUNK;
}

/* ---- userfaultfd ---- */

static long
uffd_protect(uintptr_t at, uint64_t len, bool on)
{
	struct uffdio_writeprotect wp = {
		.range = {at, len}, .mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0};

	return mv_sys_ioctl(uffd, UFFDIO_WRITEPROTECT, &wp);
}

static void
uffd_wake(uintptr_t at, uint64_t len)
{
	struct uffdio_range r = {at, len};

	mv_sys_ioctl(uffd, UFFDIO_WAKE, &r);
}

static void
uffd_undo(uintptr_t at, uint64_t len)
{
	struct uffdio_range r = {at, len};

	uffd_protect(at, len, false);
	mv_sys_ioctl(uffd, UFFDIO_UNREGISTER, &r);
	uffd_wake(at, len);
}

static int
uffd_begin(uintptr_t at, uint64_t len, bool shared)
{
	struct uffdio_register r = {.range = {at, len},
		.mode = UFFDIO_REGISTER_MODE_WP | (shared ? 0 : UFFDIO_REGISTER_MODE_MISSING)};
	long rc = mv_sys_ioctl(uffd, UFFDIO_REGISTER, &r);

	if (rc < 0)
		return (int)rc;
	rc = uffd_protect(at, len, true);
	if (rc < 0)
		uffd_undo(at, len);
	return (int)rc;
}

/* ---- SIGSEGV ---- */

#define NAP_NS 20000

/* Atomic: twice the number of the ranges that have moved, plus 1 while a range moves. */
static uint64_t moves;

/* Waits, in the handler of SIGSEGV, until no range moves. Returns whether the thread is to repeat
 * the access: the kernel may have delivered the signal long after the page of the fault has moved,
 * behind any number of other ranges. Returns false for a fault of the program's own: one at the
 * same address as the last fault of this thread, without a range having moved since. */
static bool
fault_wait(const siginfo_t *info)
{
	static __thread uintptr_t last __attribute__((tls_model("initial-exec")));
	static __thread uint64_t when __attribute__((tls_model("initial-exec")));
	const struct timespec nap = {.tv_nsec = NAP_NS};
	uintptr_t addr = (uintptr_t)info->si_addr;
	uint64_t now;
	bool again;

	if (info->si_code != SEGV_ACCERR)
		return false;
	/* This thread's variables may be on the pages that move, so it writes to none of them
	 * before the move is over. */
	while (((now = __atomic_load_n(&moves, __ATOMIC_ACQUIRE)) & 1) != 0)
		mv_sys(SYS_nanosleep, (uintptr_t)&nap, 0, 0, 0, 0, 0);
	again = addr == last && now == when;
	last = addr;
	when = now;
	return !again;
}

/* No page is protected yet, so this function may write to variables. */
static void
signal_begin(void)
{
	mv_segv_install(fault_wait);
	__atomic_fetch_add(&moves, 1, __ATOMIC_ACQ_REL);
}

static void
signal_over(void)
{
	__atomic_fetch_add(&moves, 1, __ATOMIC_RELEASE);
}

/* ---- All kinds ---- */

int
mv_guard_begin(enum mv_guard kind, uintptr_t at, uint64_t len, int prot, bool shared)
{
	long rc;

	switch (kind) {
	case MV_GUARD_UFFD:
		return uffd_begin(at, len, shared);
	case MV_GUARD_SIGNAL:
		signal_begin();
		rc = mv_sys_mprotect(at, len, prot & ~PROT_WRITE);
		if (rc < 0)
			signal_over();
		return (int)rc;
	default:
		return 0;
	}
}

void
mv_guard_end(enum mv_guard kind, uintptr_t at, uint64_t len)
{
	if (kind == MV_GUARD_UFFD)
		uffd_wake(at, len);
	else if (kind == MV_GUARD_SIGNAL)
		signal_over();
}

void
mv_guard_undo(enum mv_guard kind, uintptr_t at, uint64_t len, int prot)
{
	if (kind == MV_GUARD_UFFD) {
		uffd_undo(at, len);
	} else if (kind == MV_GUARD_SIGNAL) {
		mv_sys_mprotect(at, len, prot);
		signal_over();
	}
}
