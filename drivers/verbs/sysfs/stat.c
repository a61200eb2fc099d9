/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of the C library that describe files. A file of the tree in the place of a device
 * node is described as the character device that it stands for. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "sysfs_priv.h"

#define EXPORT   __attribute__((visibility("default")))
#define NODE     (S_IFCHR | 0666)
#define AT_LINKS (AT_SYMLINK_NOFOLLOW)

int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat(int version, const char *path, struct stat *st);
int __lxstat64(int version, const char *path, struct stat64 *st);

static void *next_fstatat, *next_statx, *next_getxattr, *next_lgetxattr;

static int
stat_at(int dir, const char *path, struct stat *st, int flags)
{
	__typeof__(&fstatat) next = vb_sysfs_next(&next_fstatat, "fstatat");
	char place[PATH_MAX];
	int rc = next(dir, vb_sysfs_path(path, place), st, flags);
	dev_t node = rc == 0 && S_ISREG(st->st_mode) ? vb_sysfs_node(path) : 0;

	if (node != 0) {
		st->st_mode = NODE;
		st->st_rdev = node;
	}
	return rc;
}

/* Both structures have one layout on this machine. */
static int
stat64_at(int dir, const char *path, struct stat64 *to, int flags)
{
	_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one layout");
	struct stat st;
	int rc = stat_at(dir, path, &st, flags);

	if (rc == 0)
		memcpy(to, &st, sizeof(st));
	return rc;
}

EXPORT int
stat(const char *path, struct stat *st)
{
	return stat_at(AT_FDCWD, path, st, 0);
}

EXPORT int
stat64(const char *path, struct stat64 *st)
{
	return stat64_at(AT_FDCWD, path, st, 0);
}

EXPORT int
lstat(const char *path, struct stat *st)
{
	return stat_at(AT_FDCWD, path, st, AT_LINKS);
}

EXPORT int
lstat64(const char *path, struct stat64 *st)
{
	return stat64_at(AT_FDCWD, path, st, AT_LINKS);
}

EXPORT int
fstatat(int dir, const char *path, struct stat *st, int flags)
{
	return stat_at(dir, path, st, flags);
}

EXPORT int
fstatat64(int dir, const char *path, struct stat64 *st, int flags)
{
	return stat64_at(dir, path, st, flags);
}

/* Programs that were linked with a C library before 2.33. */

EXPORT int
__xstat(int version, const char *path, struct stat *st)
{
	return stat_at(AT_FDCWD, path, st, 0);
}

EXPORT int
__xstat64(int version, const char *path, struct stat64 *st)
{
	return stat64_at(AT_FDCWD, path, st, 0);
}

EXPORT int
__lxstat(int version, const char *path, struct stat *st)
{
	return stat_at(AT_FDCWD, path, st, AT_LINKS);
}

EXPORT int
__lxstat64(int version, const char *path, struct stat64 *st)
{
	return stat64_at(AT_FDCWD, path, st, AT_LINKS);
}

EXPORT int
statx(int dir, const char *path, int flags, unsigned int mask, struct statx *st)
{
	__typeof__(&statx) next = vb_sysfs_next(&next_statx, "statx");
	char place[PATH_MAX];
	int rc = next(dir, vb_sysfs_path(path, place), flags, mask, st);
	dev_t node = rc == 0 && S_ISREG(st->stx_mode) ? vb_sysfs_node(path) : 0;

	if (node != 0) {
		st->stx_mode = NODE;
		st->stx_rdev_major = major(node);
		st->stx_rdev_minor = minor(node);
	}
	return rc;
}

/* ls(1) asks for access control lists. */

EXPORT ssize_t
getxattr(const char *path, const char *name, void *value, size_t size)
{
	__typeof__(&getxattr) next = vb_sysfs_next(&next_getxattr, "getxattr");
	char place[PATH_MAX];

	return next(vb_sysfs_path(path, place), name, value, size);
}

EXPORT ssize_t
lgetxattr(const char *path, const char *name, void *value, size_t size)
{
	__typeof__(&lgetxattr) next = vb_sysfs_next(&next_lgetxattr, "lgetxattr");
	char place[PATH_MAX];

	return next(vb_sysfs_path(path, place), name, value, size);
}
