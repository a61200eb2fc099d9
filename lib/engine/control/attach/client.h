/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients: attaching, the layout of the home region, and the destruction of all their objects. */
#ifndef SAKER_ENGINE_CLIENT_H
#define SAKER_ENGINE_CLIENT_H

#include "../core/core.h"

/* The mapping of a home region. */
struct client_home {
	void *base;
	uint64_t size, mem_len; /* bytes in all; flat: bytes of the client's own memory in it */
	int fd;                 /* memfd, or -1 for a flat client */
	uint32_t page;          /* bytes of its pages; 0 for a flat client */
	int wake_fd;            /* descriptor that wakes the client, or -1 */
	uint64_t tenant;        /* clients of one tenant may share XRC domains */
	int pid;                /* 0 without a socket, as is `uid` */
	uint32_t uid;
	uint32_t conn; /* number of the connection to the socket; not of a flat client */
};

/* Computes the offsets of a home region of `size` bytes. Returns 0, or -errno when `size` is too
 * small for the configured limits. */
int ctl_client_layout(unsigned nstages, const struct eng_limits *l, uint64_t size, uint64_t mem_len,
	struct shm_header *out);
/* Creates a client: takes a free client number, writes the header of the home region, and passes
 * the client to the control stage. Returns the client's id, an error of ctl_place_take(), -ENOMEM,
 * -ENOSPC when the user may map no more regions, or the error of ctl_client_layout(). On success
 * the mapping and the descriptors belong to *out. Any thread may call this. */
int ctl_client_create(struct eng_control *c, const char *name, const struct client_home *home,
	struct ctl_client **out);
/* Returns a copy of the limits, whose members client_* eng_change() may change at any time. Any
 * thread may call this. */
struct eng_limits ctl_limits(struct eng_control *c);
/* Unmaps the client's memory and frees the client, which is in no list any more. Any thread may
 * call this. */
void ctl_client_free(struct eng_control *c, struct ctl_client *cl);

/* The control stage's thread calls the following functions. */

/* Determines the rates of a client and of its user. */
void ctl_client_rates(const struct eng_control *c, const struct ctl_client *cl,
	struct eng_rates *client, struct eng_rates *user);
/* Sets cl->class. */
void ctl_client_class(const struct eng_control *c, struct ctl_client *cl);
/* Replaces the members client_* of the limits. */
void ctl_limits_set(struct eng_control *c, const struct eng_limits *next);
/* Adds a new client to all engine stages. */
void ctl_client_add(struct eng_control *c, struct ctl_client *cl);
/* Continues to destroy the objects of a removed client, at most *budget, which it reduces. Returns
 * whether there was work. */
bool ctl_client_reap_poll(struct eng_control *c, struct ctl_client *cl, unsigned *budget);
/* Removes the clients that the SIGBUS handler has marked as dead. */
void ctl_client_check_sigbus(struct eng_control *c);

/* As eng_attach_flat(), eng_detach(), eng_client_gone(). Any thread. */
int ctl_client_attach_flat(struct eng_control *c, const char *name, void *base, size_t size,
	size_t mem_len, int wake_fd);
int ctl_client_detach(struct eng_control *c, int id);
bool ctl_client_gone(struct eng_control *c, int id);
/* SHM_REGION_DROP */
ctl_handler ctl_region_drop;

#endif
