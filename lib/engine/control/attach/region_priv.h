/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that clients bring, and home regions that the engine makes for them. The socket's thread
 * calls these. */
#ifndef SAKER_ENGINE_REGION_PRIV_H
#define SAKER_ENGINE_REGION_PRIV_H

#include "../core/core.h"

/* A sealed memfd of at least `size` bytes, mapped and zero, on huge pages if `huge` and there are
 * some. 0 or -errno. */
int ctl_region_make_home(const char *name, uint64_t size, bool huge, struct eng_region *out);
/* Maps a memfd that a client has sent: it must be sealed against shrinking and exactly `size` bytes
 * long, `sparse` no longer than SHM_SPARSE_MAX. 0, or -errno with one sentence. The descriptor
 * remains the caller's. */
int ctl_region_map_fd(
	int fd, uint64_t size, bool sparse, struct eng_region *out, char *why, size_t whylen);
/* Takes a number for it, within the quota, guards it against SIGBUS. The number, or -errno with one
 * sentence. */
int ctl_region_take(struct eng_control *c, struct ctl_client *cl, const struct eng_region *r,
	char *why, size_t whylen);
void ctl_region_unmap(struct ctl_client *cl, uint32_t number);

#endif
