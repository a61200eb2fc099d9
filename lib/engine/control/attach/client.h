/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients: how they come, what their home region looks like, how they go. */
#ifndef SAKER_ENGINE_CLIENT_H
#define SAKER_ENGINE_CLIENT_H

#include "../core/core.h"

struct client_home { /* where and how a home region is mapped */
	void *base;
	uint64_t size, mem_len;
	int fd;      /* -1: flat */
	int wake_fd; /* or -1 */
	uint64_t tenant;
};

/* Fills in the offsets of a home region. 0, or -EINVAL when `size` is too small for the limits. */
int ctl_client_layout(
	const struct eng_config *cfg, uint64_t size, uint64_t mem_len, struct shm_header *out);
/* Any thread: takes a free number, writes the header, and hands the client to the control stage.
 * Returns the number, or -EINVAL (too small), -EUSERS (too many clients), -ENOMEM. On success the
 * mapping and the descriptors are the client's. */
int ctl_client_create(struct eng_control *c, const char *name, const struct client_home *home,
	void *socket, struct ctl_client **out);
/* Unmaps and frees; the client is in no list any more. Any thread. */
void ctl_client_free(struct eng_control *c, struct ctl_client *cl);

/* The control stage's: */
void ctl_client_add(struct eng_control *c, struct ctl_client *cl);
bool ctl_client_reap_poll(struct eng_control *c, struct ctl_client *cl);
/* Puts out whom a signal handler marked. */
void ctl_client_check_sigbus(struct eng_control *c);

/* As eng_attach_flat(), eng_detach(), eng_client_gone(). Any thread. */
int ctl_client_attach_flat(
	struct eng_control *c, const char *name, void *base, size_t size, size_t mem_len);
int ctl_client_detach(struct eng_control *c, int client);
bool ctl_client_gone(struct eng_control *c, int client);
/* SHM_REGION_DROP */
ctl_handler ctl_region_drop;

#endif
