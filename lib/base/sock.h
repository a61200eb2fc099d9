/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connecting end of Unix sockets, and messages that carry descriptors. To close the descriptors
 * of a sender that is not trusted may take as long as it likes: descriptors.h.
 */
#ifndef SAKER_BASE_SOCK_H
#define SAKER_BASE_SOCK_H

#include <stddef.h>
#include <sys/types.h>

#define SK_SOCK_FDS 8 /* descriptors of a message, at most */

/* Connects to the Unix socket `path`. `type` is SOCK_STREAM or SOCK_SEQPACKET. With a `limit_s`
 * that is not 0, neither this nor a later send or receive takes longer. Returns the descriptor,
 * which the caller closes, or -errno; -ENAMETOOLONG when a socket cannot have the path. */
int sk_sock_connect(const char *path, int type, unsigned limit_s);
/* Sends `len` bytes with `n` descriptors, at most SK_SOCK_FDS, in one message. `flags` is 0 or
 * MSG_DONTWAIT. Returns 0 or -errno; -EMSGSIZE when only a part was sent. */
int sk_sock_send(int sock, const void *p, size_t len, const int *fds, unsigned n, int flags);
/* Receives a message of at most `len` bytes and its descriptors, *n of at most `most`. The caller
 * closes them; exec closes them, too. `flags` is 0 or MSG_DONTWAIT. Returns the number of bytes, 0
 * when the peer has closed, or -errno without descriptors; -EPROTO when the message has more bytes
 * or descriptors. */
ssize_t sk_sock_recv(
	int sock, void *p, size_t len, int *fds, unsigned most, unsigned *n, int flags);
/* As sk_sock_recv(), for a sender that is not trusted: closes nothing. The caller closes the *n
 * descriptors whatever the result is; a message without bytes may have some, too. The kernel drops
 * those beyond `most`. Returns -EINTR, too. */
ssize_t sk_sock_take(
	int sock, void *p, size_t len, int *fds, unsigned most, unsigned *n, int flags);

#endif
