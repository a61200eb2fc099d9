/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The numbers of clients and of their users. A client's id consists of its number and of a
 * generation, so that an old id never means a new client. A user is a user ID, or the name of a
 * flat client; its clients have one share of each pool together, the places for clients included.
 * The address space of this process for the memory that clients pass is a pool, too. Any thread may
 * call these functions.
 */
#ifndef SAKER_ENGINE_PLACE_H
#define SAKER_ENGINE_PLACE_H

#include "../core/core.h"

/* Returns a table for limits->clients clients, or NULL. ctl_places_free() frees it. */
struct ctl_places *ctl_places_new(const struct eng_limits *limits);
void ctl_places_free(struct ctl_places *p);
/* Gives the client a number, an id and the user number of cl->tenant. Returns the id; -EUSERS when
 * no place is left that this user may take, or -EDQUOT when the user has as many clients as one
 * user may have. */
int ctl_place_take(struct ctl_places *p, struct ctl_client *cl);
/* Frees the client's number. The caller frees the client. */
void ctl_place_give(struct ctl_places *p, const struct ctl_client *cl);
/* Takes address space for a region of `bytes` bytes. Returns false when the client's user may not
 * have so much of it. */
bool ctl_space_take(struct ctl_places *p, const struct ctl_client *cl, uint64_t bytes);
void ctl_space_give(struct ctl_places *p, const struct ctl_client *cl, uint64_t bytes);
/* Returns whether a client with that id exists. `id` may have any value. */
bool ctl_place_holds(struct ctl_places *p, int id);
/* Returns the client that holds that number, or NULL. All other threads have ended. */
struct ctl_client *ctl_place_client(const struct ctl_places *p, uint32_t number);

#endif
