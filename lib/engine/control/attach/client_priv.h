/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients: how they come, what their home region looks like, how they go. */
#ifndef SAKER_ENGINE_CLIENT_PRIV_H
#define SAKER_ENGINE_CLIENT_PRIV_H

#include "../registry/registry_priv.h"

struct client_home { /* where and how a home region is mapped */
	void *base;
	uint64_t size, mem_len;
	int fd;      /* -1: flat */
	int wake_fd; /* or -1 */
	uint64_t tenant;
};

/* Fills in the offsets of a home region. 0, or -EINVAL when `size` is too small for the limits. */
int client_layout(
	const struct eng_config *cfg, uint64_t size, uint64_t mem_len, struct shm_header *out);
/* Any thread: takes a free number, writes the header, and hands the client to the control stage.
 * Returns the number, or -EINVAL (too small), -EUSERS (too many clients), -ENOMEM. On success the
 * mapping and the descriptors are the client's. */
int client_create(struct eng_control *c, const char *name, const struct client_home *home,
	void *socket, struct ctl_client **out);
/* Unmaps and frees; the client is in no list any more. Any thread. */
void client_free(struct eng_control *c, struct ctl_client *cl);

/* The control stage's: */
void client_add(struct eng_control *c, struct ctl_client *cl);
/* It is dead: `why` for the log. Its reaping goes on in client_reap_poll(). */
void client_put_out(struct eng_control *c, struct ctl_client *cl, const char *why);
bool client_reap_poll(struct eng_control *c, struct ctl_client *cl);
/* Puts out whom a signal handler marked. */
void client_check_sigbus(struct eng_control *c);

#endif
