/* SPDX-License-Identifier: BSD-3-Clause */
/* The mappings of the process in /proc, and memory of certain kinds, for tests. */
#ifndef TEST_MOVE_MAPPINGS_H
#define TEST_MOVE_MAPPINGS_H

#include <stddef.h>

enum map_is { MAP_IS_SHARED, MAP_IS_PRIVATE, MAP_IS_WRITABLE, MAP_IS_EXEC };

/* Returns how many mappings of that kind overlap [p, p + len). */
int map_count(const void *p, size_t len, enum map_is what);
/* Returns the value of a line of /proc/self/status ("VmRSS", "VmLck"), in KiB. */
long status_kib(const char *name);
/* Maps private anonymous memory of `len` bytes, at most half of MV_WINDOW, that lies in one window.
 * `flags` are added to those of mmap(2). */
void *map_in_one_window(size_t len, int flags);
/* Opens the program's own file for reading. */
int open_self(void);
/* Returns the address of the kernel's vDSO. */
void *vdso(void);

#endif
