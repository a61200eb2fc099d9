/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that a client shares with the engine may lack pages: the client never touched them, has
 * punched a hole, or has truncated the file.
 *
 * A *watched* mapping is registered with userfaultfd(2): the kernel does not allocate a page when
 * the engine touches a hole, but raises SIGBUS. The stages probe the memory before each access
 * (base/probe.h); after a probe that fails, the QP waits while a thread fetches the pages
 * (pages.h).
 *
 * Any other access to a missing page, and each one to a mapping that is not watched and cannot be
 * filled, ends the client: the handler maps zero pages in place of the region and marks the client.
 * The processor repeats the access, which reads zeros. An exception is a small page that a client
 * removes between the probe and the access, as programs may do at any time: the handler fills it,
 * up to 128 times a second for each mapping.
 */
#ifndef SAKER_ENGINE_SIGBUS_H
#define SAKER_ENGINE_SIGBUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Installs the handler for the whole process; further calls have no effect. The handler passes a
 * fault outside of guarded memory to the handler that was installed before. eng_guard() calls this
 * function, too. Returns 0, or -errno of sigaction(2). */
int eng_sigbus_install(void);
/* Returns the number of faults that the handler has repaired; it never decreases. Any thread. */
uint32_t eng_sigbus_count(void);
/* Returns whether this process may watch memory: 0, or -errno of userfaultfd(2). */
int eng_watch_permitted(void);
/* Watches the first `len` bytes of the mapping of guard `guard`, whose missing pages, of `page`
 * bytes, eng_fetch() fetches. `page` is 0 for memory all of whose pages are present: its client is
 * ended when it removes one. Returns 0, or -errno when the memory is not watched: the thread that
 * touches a missing page then allocates it. Any thread. */
int eng_watch(int guard, size_t len, size_t page);
/* Returns the name of the guarded mapping that contains `at`, which no later mapping has, or 0. Any
 * thread, while the mapping exists. */
uint64_t eng_guard_name(const void *at);
/* Fetches the missing pages of the `len` bytes at `at`, as far as ENG_FETCH_MAX bytes or one page.
 * If there is no memory for them, or the client removes them at once, the mapping is replaced by
 * zero pages and the client marked. The pages are present on return. It may take milliseconds. Does
 * nothing when the memory is not watched, or when the mapping `name` has gone, whatever is at its
 * address now. Any thread but a loop. */
void eng_fetch(uint64_t name, const uint8_t *at, size_t len);

#define ENG_FETCH_MAX (2u << 20)

#endif
