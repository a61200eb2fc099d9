/* SPDX-License-Identifier: BSD-3-Clause */
/* Unix sockets with the group and the mode that a configuration names. */
#ifndef SAKER_BASE_LISTEN_H
#define SAKER_BASE_LISTEN_H

#include <stddef.h>
#include <stdint.h>

/* Creates the socket file `path` and listens there without blocking. `type` is SOCK_STREAM or
 * SOCK_SEQPACKET. The file gets the group `group`, a name or a number ("": the process's own), and
 * the permissions `mode`, and exists from the moment on when a process can connect. Replaces a
 * socket at which nobody listens. Returns the descriptor, which the caller closes, or -errno with
 * one sentence in `err`. */
int sk_listen(
	const char *path, int type, const char *group, uint32_t mode, char *err, size_t errlen);

/* Removes the socket file that a process left at `path` when it ended, for a library that creates
 * the file itself. Returns 0, also without a file, or -errno with one sentence in `err` when there
 * is another kind of file, or when a process listens there. */
int sk_listen_clear(const char *path, int type, char *err, size_t errlen);

#endif
