/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of Unix sockets with descriptors from senders that are not trusted. */
#ifndef SAKER_BASE_DESCRIPTORS_H
#define SAKER_BASE_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SK_DESCRIPTORS 253 /* the kernel allows no more in a message (SCM_MAX_FD) */

/* Receives a message of at most `len` bytes, and all of its descriptors, *nfds of them, which the
 * caller closes whatever the result is: a message without bytes may have some, too. Never blocks.
 * Returns the number of bytes, 0 also when the peer has closed; or -errno, -EPROTO when the message
 * is longer, or this process has no room for all its descriptors. */
ssize_t sk_descriptors_recv(
	int sock, void *buf, size_t len, int fds[SK_DESCRIPTORS], unsigned *nfds);

#endif
