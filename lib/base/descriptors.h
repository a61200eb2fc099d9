/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors that come from programs which are not trusted, in messages of Unix sockets: see
 * sk_sock_take(). To drop such a descriptor may take as long as its sender likes, in two ways:
 *
 *  - When the last reference of a socket ends, the kernel waits until its data is sent, for the
 *    time of SO_LINGER. This happens in close(2), but also when the kernel drops a descriptor from
 *    a message: one for which there is no room, or in a connection that is closed unread. A signal
 *    ends the wait. Between sk_hurry_begin() and sk_hurry_end(), the thread receives one each few
 *    milliseconds.
 *  - close(2) of a file waits for its file system, which may be a program of the sender's (FUSE),
 *    and no signal ends that. This concerns only descriptors that this process has received. A
 *    struct sk_closer closes them on a thread of its own. If each sender has one, it delays nobody
 *    else.
 */
#ifndef SAKER_BASE_DESCRIPTORS_H
#define SAKER_BASE_DESCRIPTORS_H

#include <stdbool.h>
#include <time.h>

/* ---- Waits that signals end ---- */

struct sk_hurry {
	timer_t timer;
	bool ready;
};

/* Prepares the calling thread, which alone may use `h`. Installs a handler of SIGURG that does
 * nothing, unless the process has a handler. Returns 0 or -errno. */
int sk_hurry_init(struct sk_hurry *h);
void sk_hurry_fini(struct sk_hurry *h);
/* Do nothing without sk_hurry_init(). System calls in between may fail with EINTR. */
void sk_hurry_begin(const struct sk_hurry *h);
void sk_hurry_end(const struct sk_hurry *h);
/* Closes a socket between the two: its unread messages may have descriptors. */
void sk_hurry_close(const struct sk_hurry *h, int fd);

/* ---- Closing on another thread ---- */

#define SK_CLOSER_MAX 8 /* descriptors that may wait */

struct sk_closer;

/* Closes `fd` on a thread that runs as long as there are descriptors to close. *c is NULL at first.
 * The caller ensures that the closer is not full, and excludes other calls for the same *c. */
void sk_closer_put(struct sk_closer **c, int fd);
bool sk_closer_is_full(const struct sk_closer *c);
/* Frees *c if nothing is left to close. Returns whether *c is NULL now. */
bool sk_closer_tidy(struct sk_closer **c);
/* Leaves *c to its thread, which closes the rest. Never waits. */
void sk_closer_leave(struct sk_closer **c);

#endif
