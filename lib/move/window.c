/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows of the address space (move_priv.h). A window is created when memory in it first moves,
 * and stays until the process ends, because an empty one uses nothing but address space. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "move_priv.h"

/* A page has the same offset in a huge page on the stage as in the program. */
#define STAGE_ALIGN MV_CHUNK

static struct mv_window windows[MV_WINDOWS_MAX];
static unsigned nwindows;

void *
mv_own_map(uint64_t len, int prot)
{
	void *p = mmap(NULL, len, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* mlockall(MCL_FUTURE) of the program must not lock the library's memory. */
	munlock(p, len);
	return p;
}

static int
window_fd(struct mv_window *w)
{
	struct stat st;

	w->fd = memfd_create("saker-window", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (w->fd < 0)
		return -errno;
	if (ftruncate(w->fd, (off_t)MV_WINDOW) < 0 ||
		fcntl(w->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0 ||
		fstat(w->fd, &st) < 0) {
		int rc = -errno;

		close(w->fd);
		return rc;
	}
	w->dev = st.st_dev;
	w->ino = st.st_ino;
	return 0;
}

static int
window_make(struct mv_window *w, uintptr_t base)
{
	const uint64_t table = MV_WINDOW / MV_PAGE * sizeof(w->page[0]);
	uint8_t *stage = mv_own_map(MV_WINDOW + STAGE_ALIGN, PROT_NONE);
	int rc = stage != NULL ? window_fd(w) : -ENOMEM;

	w->base = base;
	w->page = rc == 0 ? mv_own_map(table, PROT_READ | PROT_WRITE) : NULL;
	if (w->page != NULL) {
		w->stage = ((uintptr_t)stage + STAGE_ALIGN - 1) & ~(uintptr_t)(STAGE_ALIGN - 1);
		return 0;
	}
	if (stage != NULL)
		munmap(stage, MV_WINDOW + STAGE_ALIGN);
	if (rc == 0)
		close(w->fd);
	return mv_fail(rc < 0 ? rc : -ENOMEM,
		"moving memory lacks memory, a descriptor or %llu bytes of address space",
		(unsigned long long)MV_WINDOW);
}

struct mv_window *
mv_window_find(uintptr_t addr)
{
	for (unsigned i = 0; i < nwindows; i++)
		if (addr - windows[i].base < MV_WINDOW)
			return &windows[i];
	return NULL;
}

struct mv_window *
mv_window_at(unsigned i)
{
	return i < nwindows ? &windows[i] : NULL;
}

int
mv_window_get(uintptr_t addr, unsigned *out)
{
	struct mv_window *w = mv_window_find(addr);

	if (w == NULL) {
		int rc;

		if (nwindows == MV_WINDOWS_MAX)
			return mv_fail(-ENOMEM,
				"memory is registered in all of %u windows of %llu bytes", nwindows,
				(unsigned long long)MV_WINDOW);
		w = &windows[nwindows];
		rc = window_make(w, addr & ~(uintptr_t)(MV_WINDOW - 1));
		if (rc < 0)
			return rc;
		nwindows++;
	}
	*out = (unsigned)(w - windows);
	return 0;
}

void
mv_window_forget(void)
{
	for (unsigned i = 0; i < nwindows; i++) {
		close(windows[i].fd);
		munmap((void *)windows[i].stage, MV_WINDOW);
		munmap(windows[i].page, MV_WINDOW / MV_PAGE * sizeof(windows[i].page[0]));
	}
	nwindows = 0;
}
