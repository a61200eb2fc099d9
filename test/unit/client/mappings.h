/* SPDX-License-Identifier: BSD-3-Clause */
/* What /proc says about the process, for tests. */
#ifndef TEST_CLIENT_MAPPINGS_H
#define TEST_CLIENT_MAPPINGS_H

#include <stddef.h>

enum map_is { MAP_IS_SHARED, MAP_IS_PRIVATE, MAP_IS_WRITABLE, MAP_IS_EXEC };

/* How many mappings of that kind have a part in [p, p + len). */
int map_count(const void *p, size_t len, enum map_is what);
/* A line of /proc/self/status: "VmRSS", "VmLck"; KiB. */
long status_kib(const char *name);
/* Private anonymous memory of `len` bytes, at most half a window (SHM_SPARSE_MAX, the size that
 * libsaker's windows have), that lies in one window; `flags` are added to mmap()'s. */
void *map_in_one_window(size_t len, int flags);
/* The program's own file, for reading. */
int open_self(void);
void *vdso(void);

#endif
