/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The folders in which programs look for devices: /sys/class/infiniband,
 * /sys/class/infiniband_verbs and /dev/infiniband. The library writes a small tree of ordinary
 * files, when the program first names one of these folders, and gives the C library's functions a
 * path in that tree instead. The tree ends with the process.
 */
#ifndef SAKER_SYSFS_PRIV_H
#define SAKER_SYSFS_PRIV_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#define SYSFS_NODES "/dev/infiniband"

/* ---- tree.c ---- */

/* Returns the path that a function of the C library is to use for `path`: `path` itself, or one in
 * the tree, which it writes to `place`. Without a saker there is no tree. */
const char *vb_sysfs_path(const char *path, char place[PATH_MAX]);
/* Returns the device number of a node in the tree; 0: the path is no node. */
dev_t vb_sysfs_node(const char *path);

/* ---- files.c ---- */

/* Returns the C library's function, which *cache keeps. */
void *vb_sysfs_next(void **cache, const char *name);

#endif
