/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that the program shares with other processes or with a file. It does not move: it would
 * have to move for all who share it. The engine maps the same object instead, and this file finds a
 * descriptor of it:
 *
 *  - /proc/self/map_files, which shows each mapping as a file, to processes with CAP_SYS_ADMIN or
 *    CAP_CHECKPOINT_RESTORE;
 *  - a descriptor of the process that is open already, such as that of a memfd;
 *  - the name, of a file that has one still.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "move_priv.h"

#define OPEN_FLAGS (O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

/* The first System V segment of a machine has inode 0. */
static bool
is_object(const struct mv_vma *v)
{
	return v->shared && mv_vma_window(v) == NULL;
}

/* Returns the number of bytes from `at` on, at most `len`, that are no object. */
static size_t
plain_part(uintptr_t at, size_t len)
{
	struct mv_vma v;
	size_t pos = 0;

	while (mv_maps_next(&pos, &v) && v.start < at + len)
		if (v.end > at && (is_object(&v) || mv_is_huge(&v)))
			return v.start - at;
	return len;
}

static int
look(uintptr_t at, size_t len, bool write, struct mv_object *o, size_t *part)
{
	struct mv_vma v;
	int rc = mv_maps_load();

	if (rc == 0 && mv_maps_find(at, &v) && mv_is_huge(&v)) {
		rc = mv_huge_share(&v);
		if (rc == 0)
			rc = mv_maps_load();
	}
	if (rc < 0)
		return rc;
	if (!mv_maps_find(at, &v) || !is_object(&v)) {
		*part = plain_part(at, len);
		return 0;
	}
	if ((v.prot & PROT_READ) == 0 || (write && (v.prot & PROT_WRITE) == 0))
		return mv_fail(-EACCES, "the memory at %#llx is %s", (unsigned long long)at,
			(v.prot & PROT_READ) == 0
				? "not readable"
				: "read-only, but registered with a right to write");
	*o = (struct mv_object){.dev = v.dev, .ino = v.ino, .offset = v.offset + (at - v.start)};
	*part = v.end - at < len ? v.end - at : len;
	return 1;
}

int
mv_look(const void *addr, size_t len, bool write, struct mv_object *o, size_t *part)
{
	int rc;

	*part = len;
	if (len == 0 || len - 1 > (uintptr_t)-1 - (uintptr_t)addr)
		return 0;
	mv_lock();
	mv_fork_watch();
	rc = look((uintptr_t)addr, len, write, o, part);
	mv_unlock();
	return rc;
}

/* ---- Descriptors ---- */

/* Returns `fd` if it is the object, or -1 after closing it. */
static int
same_or_close(int fd, const struct mv_object *o)
{
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == o->dev && st.st_ino == o->ino)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static int
open_mapping(const struct mv_vma *v, const struct mv_object *o)
{
	char path[80];

	snprintf(path, sizeof(path), "/proc/self/map_files/%llx-%llx", (unsigned long long)v->start,
		(unsigned long long)v->end);
	return same_or_close(open(path, OPEN_FLAGS), o);
}

static int
open_descriptor(const struct mv_object *o)
{
	DIR *d = opendir("/proc/self/fd");
	int fd = -1;

	if (d == NULL)
		return -1;
	for (const struct dirent *e; fd < 0 && (e = readdir(d)) != NULL;) {
		char path[300];
		struct stat st;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
		if (stat(path, &st) == 0 && st.st_dev == o->dev && st.st_ino == o->ino)
			fd = same_or_close(open(path, OPEN_FLAGS), o);
	}
	closedir(d);
	return fd;
}

static int
open_name(const struct mv_vma *v, const struct mv_object *o)
{
	char *path = strndup(v->path, strcspn(v->path, "\n"));
	struct stat st;
	int fd = -1;

	if (path != NULL && stat(path, &st) == 0 && st.st_dev == o->dev && st.st_ino == o->ino)
		fd = same_or_close(open(path, OPEN_FLAGS), o);
	free(path);
	return fd;
}

static int
object_open(uintptr_t at, const struct mv_object *o)
{
	struct mv_vma v;
	int fd, rc = mv_maps_load();

	if (rc < 0)
		return rc;
	if (!mv_maps_find(at, &v) || v.dev != o->dev || v.ino != o->ino)
		return mv_fail(-EFAULT, "the program has unmapped %#llx meanwhile",
			(unsigned long long)at);
	fd = open_mapping(&v, o);
	if (fd < 0)
		fd = open_descriptor(o);
	if (fd < 0)
		fd = open_name(&v, o);
	if (fd >= 0)
		return fd;
	return mv_fail(-EOPNOTSUPP,
		"the memory at %#llx is shared with others (%.*s), and the process has neither a "
		"descriptor of it that is open for writing nor the right to open it",
		(unsigned long long)at, (int)strcspn(v.path, "\n"), v.path);
}

int
mv_object_open(const void *addr, const struct mv_object *o, uint64_t *size)
{
	uint64_t page = MV_PAGE;
	struct statfs fs;
	struct stat st;
	int fd;

	mv_lock();
	fd = object_open((uintptr_t)addr, o);
	mv_unlock();
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0 ||
		(fs.f_type != TMPFS_MAGIC && fs.f_type != HUGETLBFS_MAGIC)) {
		close(fd);
		return mv_fail(-EOPNOTSUPP,
			"the memory at %p is a shared mapping of a file that is neither on tmpfs "
			"nor on hugetlbfs, and access to it may wait for a disk",
			addr);
	}
	if (fs.f_type == HUGETLBFS_MAGIC)
		page = (uint64_t)fs.f_bsize;
	*size = ((uint64_t)st.st_size + page - 1) / page * page;
	return fd;
}
