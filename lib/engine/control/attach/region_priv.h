/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions of memory: those that clients pass to the engine, and the home regions that the engine
 * creates. The socket's thread calls these functions. */
#ifndef SAKER_ENGINE_REGION_PRIV_H
#define SAKER_ENGINE_REGION_PRIV_H

#include "../../../shm/shm_sock.h"
#include "../core/core.h"

/* Creates and maps a sealed memfd of at least `size` bytes, all 0. If `huge`, it uses huge pages
 * when there are enough. Returns 0 or -errno. */
int ctl_region_make_home(const char *name, uint64_t size, bool huge, struct eng_region *out);
/* Maps a memfd that a client has sent. It must be sealed against shrinking and exactly `size` bytes
 * long; a sparse one has at most SHM_SPARSE_MAX bytes. `flags`: enum shm_region_flags, which has
 * the terms for an object of the program's. Returns 0, or -errno with one sentence in `why`. The
 * descriptor remains the caller's. */
int ctl_region_map_fd(
	int fd, uint64_t size, uint32_t flags, struct eng_region *out, char *why, size_t whylen);
/* Returns whether the last close of a descriptor takes no time: it is a memfd, or a file of tmpfs,
 * with few pages to free. */
bool ctl_region_closes_at_once(int fd);
/* Gives the region a free number of the client, if the client's limits and the shares of its user
 * allow it, and guards it against SIGBUS. Returns the number, or -errno with one sentence in `why`.
 */
int ctl_region_take(struct eng_control *c, struct ctl_client *cl, const struct eng_region *r,
	char *why, size_t whylen);
/* Touches all pages of a home region that a loop uses, and watches them: a client that removes one
 * is ended. Of a home region with small pages, these are the first `rings` bytes; the heap behind
 * them may have pages that nobody has touched. */
void ctl_region_watch_home(const struct eng_region *r, uint64_t rings);
/* Unmaps the region with that number, if there is one. */
void ctl_region_unmap(struct ctl_client *cl, uint32_t number);

#endif
