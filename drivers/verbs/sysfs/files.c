/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of the C library that open files and folders. */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sysfs_priv.h"

#define EXPORT         __attribute__((visibility("default")))
#define NEXT(function) ((__typeof__(&(function)))vb_sysfs_next(&next_##function, #function))

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);
char *__realpath_chk(const char *path, char *to, size_t size);
ssize_t __readlink_chk(const char *path, char *to, size_t n, size_t size);

static void *next_openat, *next_fopen, *next_opendir, *next_scandir, *next_scandir64, *next_access,
	*next_faccessat, *next_readlink, *next_readlinkat, *next_realpath, *next_chdir;

void *
vb_sysfs_next(void **cache, const char *name)
{
	void *f = __atomic_load_n(cache, __ATOMIC_RELAXED);

	if (f == NULL) {
		f = dlsym(RTLD_NEXT, name);
		__atomic_store_n(cache, f, __ATOMIC_RELAXED);
	}
	return f;
}

/* Returns the mode, which a call has when it can create a file. */
#define MODE_OF(flags, mode)                                                                       \
	do {                                                                                       \
		va_list ap;                                                                        \
		(mode) = 0;                                                                        \
		va_start(ap, flags);                                                               \
		if (((flags) & (O_CREAT | O_TMPFILE)) != 0)                                        \
			(mode) = va_arg(ap, mode_t);                                               \
		va_end(ap);                                                                        \
	} while (0)

static int
open_at(int dir, const char *path, int flags, mode_t mode)
{
	char place[PATH_MAX];

	return NEXT(openat)(dir, vb_sysfs_path(path, place), flags, mode);
}

EXPORT int
open(const char *path, int flags, ...)
{
	mode_t mode;

	MODE_OF(flags, mode);
	return open_at(AT_FDCWD, path, flags, mode);
}

EXPORT int
open64(const char *path, int flags, ...)
{
	mode_t mode;

	MODE_OF(flags, mode);
	return open_at(AT_FDCWD, path, flags, mode);
}

EXPORT int
openat(int dir, const char *path, int flags, ...)
{
	mode_t mode;

	MODE_OF(flags, mode);
	return open_at(dir, path, flags, mode);
}

EXPORT int
openat64(int dir, const char *path, int flags, ...)
{
	mode_t mode;

	MODE_OF(flags, mode);
	return open_at(dir, path, flags, mode);
}

EXPORT int
__open_2(const char *path, int flags)
{
	return open_at(AT_FDCWD, path, flags, 0);
}

EXPORT int
__open64_2(const char *path, int flags)
{
	return open_at(AT_FDCWD, path, flags, 0);
}

EXPORT int
__openat_2(int dir, const char *path, int flags)
{
	return open_at(dir, path, flags, 0);
}

EXPORT int
__openat64_2(int dir, const char *path, int flags)
{
	return open_at(dir, path, flags, 0);
}

EXPORT FILE *
fopen(const char *path, const char *mode)
{
	char place[PATH_MAX];

	return NEXT(fopen)(vb_sysfs_path(path, place), mode);
}

EXPORT FILE *
fopen64(const char *path, const char *mode)
{
	return fopen(path, mode);
}

EXPORT DIR *
opendir(const char *path)
{
	char place[PATH_MAX];

	return NEXT(opendir)(vb_sysfs_path(path, place));
}

EXPORT int
scandir(const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
	int (*compare)(const struct dirent **, const struct dirent **))
{
	char place[PATH_MAX];

	return NEXT(scandir)(vb_sysfs_path(path, place), list, filter, compare);
}

EXPORT int
scandir64(const char *path, struct dirent64 ***list, int (*filter)(const struct dirent64 *),
	int (*compare)(const struct dirent64 **, const struct dirent64 **))
{
	char place[PATH_MAX];

	return NEXT(scandir64)(vb_sysfs_path(path, place), list, filter, compare);
}

EXPORT int
access(const char *path, int mode)
{
	char place[PATH_MAX];

	return NEXT(access)(vb_sysfs_path(path, place), mode);
}

EXPORT int
faccessat(int dir, const char *path, int mode, int flags)
{
	char place[PATH_MAX];

	return NEXT(faccessat)(dir, vb_sysfs_path(path, place), mode, flags);
}

EXPORT ssize_t
readlink(const char *path, char *to, size_t n)
{
	char place[PATH_MAX];

	return NEXT(readlink)(vb_sysfs_path(path, place), to, n);
}

EXPORT ssize_t
readlinkat(int dir, const char *path, char *to, size_t n)
{
	char place[PATH_MAX];

	return NEXT(readlinkat)(dir, vb_sysfs_path(path, place), to, n);
}

EXPORT ssize_t
__readlink_chk(const char *path, char *to, size_t n, size_t size)
{
	if (n > size)
		abort();
	return readlink(path, to, n);
}

EXPORT char *
realpath(const char *path, char *to)
{
	char place[PATH_MAX];

	return NEXT(realpath)(vb_sysfs_path(path, place), to);
}

EXPORT char *
__realpath_chk(const char *path, char *to, size_t size)
{
	if (size < PATH_MAX)
		abort();
	return realpath(path, to);
}

EXPORT int
chdir(const char *path)
{
	char place[PATH_MAX];

	return NEXT(chdir)(vb_sysfs_path(path, place));
}
