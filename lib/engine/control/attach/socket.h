/* SPDX-License-Identifier: BSD-3-Clause */
/* The Unix socket at which client processes attach. */
#ifndef SAKER_ENGINE_SOCKET_H
#define SAKER_ENGINE_SOCKET_H

#include "../core/core.h"

#define SOCK_HELLO_NS                                                                              \
	(5ull * 1000 * 1000 * 1000) /* who has not said HELLO by then is shown out                 \
				     */

/* As eng_socket_start() and eng_socket_stop(). */
int ctl_socket_start(struct eng_control *c, const char *path, char *err, size_t errlen);
void ctl_socket_stop(struct eng_control *c);

/* Judges one message of `len` bytes with `nfds` descriptors; `attached`: its sender has been
 * welcomed. 0: *out is a HELLO (text: a printable, terminated name) or a REGION; else -errno, and
 * *why is a sentence. No I/O. */
int ctl_socket_parse(const void *buf, size_t len, unsigned nfds, bool attached,
	struct shm_sock_msg *out, const char **why);

/* A listening socket at `path`, mode 0660. What a dead saker has left there is replaced. Its
 * descriptor, or -errno with one sentence. */
int ctl_socket_listen(const char *path, char *err, size_t errlen);
/* A message with what came along; *nfds at most `maxfds`. Bytes, 0 at the end, or -errno. */
int ctl_socket_recv(int fd, void *buf, size_t len, int *fds, unsigned maxfds, unsigned *nfds);
/* Never blocks. 0 or -errno. */
int ctl_socket_send(int fd, const struct shm_sock_msg *m, const int *fds, unsigned nfds);

#endif
