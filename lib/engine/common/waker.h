/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wake-ups of clients. A loop writes to the engine's end of a socket pair whose other end the
 * client holds. The kernel then runs, within write(2), the wait queue of that other end, which the
 * client makes as long as it likes: thousands of registrations with epoll cost a loop milliseconds.
 * So the engine measures wake-ups that take long, and the clients of a user whose wake-ups do so
 * more than once are woken by a thread from then on, for as long as the user has clients and ten
 * minutes beyond. Wake-ups of all others are direct, which saves them a thread's latency.
 */
#ifndef SAKER_ENGINE_WAKER_H
#define SAKER_ENGINE_WAKER_H

#include "objects.h"

/* Creates a table for `clients` clients, without the thread. Returns NULL when memory or
 * descriptors are exhausted. */
struct eng_waker *eng_waker_create(uint32_t clients);
/* Stops the thread. NULL is allowed. */
void eng_waker_destroy(struct eng_waker *w);
/* Adds a client whose wake-ups may take long: it holds the other end of c->wake_fd, and `tenant`
 * names its user. Sets c->waker, and starts the thread. No loop has the client yet. Takes `now`, in
 * ns. Does nothing if `w` is NULL. Returns 0 or -errno. One thread at a time calls this function
 * and eng_waker_del(). */
int eng_waker_add(struct eng_waker *w, struct eng_client *c, uint64_t tenant, uint64_t now);
/* Removes a client, which no loop wakes any more; may wait for a wake-up of it. The caller then
 * closes c->wake_fd. Does nothing if c->waker is NULL. */
void eng_waker_del(struct eng_client *c, uint64_t now);

/* Wakes the client if it sleeps until a reply comes, or an event if `event`. Returns whether the
 * clients of its user are woken by the thread from now on. Any loop. */
bool eng_client_wake(const struct eng_client *c, bool event);
/* Returns whether the thread wakes the clients of this user. */
bool eng_waker_slow(const struct eng_waker *w, uint16_t user);

#endif
