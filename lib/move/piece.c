/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moving pages to and from shared memory of the caller, one range at a time. Other threads are kept
 * from writing as guard.c describes it; on the way out by the handler of SIGSEGV, because
 * userfaultfd does not serve a device's memory.
 */
#include <errno.h>
#include <sys/mman.h>

#include "move_priv.h"
#include "sys_priv.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

int
mv_piece_in(
	const struct mv_vma *v, uintptr_t at, uint64_t len, uint8_t *there, int fd, uint64_t off)
{
	enum mv_guard kind;
	long rc;

	mv_guard_open();
	kind = mv_guard_kind(v->ino == 0);
	/* A page that is not present could not be read once the range is guarded. */
	rc = mv_sys_madvise(
		at, len, (v->prot & PROT_WRITE) != 0 ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
	if (rc == 0)
		rc = mv_guard_begin(kind, at, len, v->prot, false);
	if (rc < 0)
		return (int)rc;
	mv_copy_bytes(there, (const void *)at, len);
	rc = mv_sys_mmap(at, len, v->prot, MAP_SHARED | MAP_FIXED, fd, off);
	if (rc < 0) {
		mv_guard_undo(kind, at, len, v->prot);
		return (int)rc;
	}
	mv_guard_end(kind, at, len);
	return 0;
}

int
mv_piece_out(const struct mv_vma *v, uintptr_t at, uint64_t len, const uint8_t *there)
{
	enum mv_guard kind = mv_guard_kind(false);
	void *own = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long rc;

	if (own == MAP_FAILED || madvise(own, len, MADV_POPULATE_WRITE) < 0) {
		if (own != MAP_FAILED)
			munmap(own, len);
		return -ENOMEM;
	}
	rc = mv_guard_begin(kind, at, len, v->prot, true);
	if (rc < 0) {
		munmap(own, len);
		return (int)rc;
	}
	mv_copy_bytes(own, there, len);
	mv_sys_mprotect((uintptr_t)own, len, v->prot);
	rc = mv_sys_mremap((uintptr_t)own, len, MREMAP_MAYMOVE | MREMAP_FIXED, at);
	if (rc < 0)
		mv_guard_undo(kind, at, len, v->prot);
	else
		mv_guard_end(kind, at, len);
	return rc < 0 ? (int)rc : 0;
}
