/* SPDX-License-Identifier: BSD-3-Clause */
/* The Unix socket at which client processes attach, and its thread. */
#ifndef SAKER_ENGINE_SOCKET_H
#define SAKER_ENGINE_SOCKET_H

#include "../../../shm/shm_sock.h"
#include "../core/core.h"

/* Time (ns) after which the socket's thread closes a connection without a HELLO. */
#define SOCK_HELLO_NS (5ull * 1000 * 1000 * 1000)

/* Do the work of eng_socket_start() and eng_socket_stop(), which engine.h describes. */
int ctl_socket_start(struct eng_control *c, const char *path, char *err, size_t errlen);
void ctl_socket_stop(struct eng_control *c);

/* Checks one message of `len` bytes with `nfds` descriptors. `attached`: the sender has received
 * SHM_WELCOME. Returns 0, and *out is a HELLO (`text` is a printable, terminated name) or a REGION;
 * or -errno, and *why is a sentence. Performs no I/O. */
int ctl_socket_parse(const void *buf, size_t len, unsigned nfds, bool attached,
	struct shm_sock_msg *out, const char **why);

#endif
