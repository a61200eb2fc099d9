/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The limits of each user at the socket's thread: how many connections may wait to attach, and how
 * often the user may attach and pass memory. Users do not wait for each other, and a user who
 * passes memory too often still attaches. Performs no I/O. `now` is in ns.
 */
#ifndef SAKER_ENGINE_SOCKET_USERS_H
#define SAKER_ENGINE_SOCKET_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../../../base/descriptors.h"

/* Connections that have not attached: of all users, and of one. */
#define SOCK_WAITING     256
#define SOCK_WAITING_ONE 112

/* Of each user: the messages that the thread takes at once, and the time after which it takes the
 * next one. Mapping memory interrupts the lcores, so that no user may cause it without pause. */
#define SOCK_HELLOS     26
#define SOCK_HELLO_GAP  10000000ull /* ns */
#define SOCK_REGIONS    260
#define SOCK_REGION_GAP 1000000ull /* ns */

enum sock_ask { SOCK_ASK_HELLO, SOCK_ASK_REGION, SOCK_ASKS };

struct sock_user {
	uid_t uid;
	/* Connections. 0: the entry is free once its buckets are full and nothing is left to close.
	 */
	uint32_t conns;
	uint32_t waiting;           /* connections that have not attached */
	uint32_t queued[SOCK_ASKS]; /* connections whose message waits for its turn */
	uint64_t full[SOCK_ASKS];   /* buckets (base/bucket.h) */
	struct sk_closer *closer;   /* of descriptors that the user has sent */
};

struct sock_users {
	struct sock_user *user; /* [n] */
	uint32_t n;             /* connections that there may be */
	uint32_t conns;         /* connections */
	uint32_t waiting;       /* connections that have not attached */
};

/* Prepares a table for `conns` connections. Returns 0 or -ENOMEM. */
int ctl_users_init(struct sock_users *t, uint32_t conns);
void ctl_users_fini(struct sock_users *t);

/* Counts a new connection of a user. Returns the user, until ctl_users_leave(); or NULL, and `why`
 * has a sentence. If *loser is not NULL, the connection takes the place of one of that user's that
 * have not attached, which the caller ends: all such places are in use, and the other user has more
 * of them. */
struct sock_user *ctl_users_join(struct sock_users *t, uid_t uid, uint64_t now,
	struct sock_user **loser, char *why, size_t whylen);
/* The connection of the user has attached. */
void ctl_users_attached(struct sock_users *t, struct sock_user *u);
/* A connection of the user ends. */
void ctl_users_leave(struct sock_users *t, struct sock_user *u, bool attached);

/* Returns whether the thread takes a message of the user now. Messages whose turn has not come are
 * queued, and go first: the caller counts them in `queued`. */
bool ctl_users_take(struct sock_user *u, enum sock_ask ask, uint64_t now);
/* Returns whether the thread takes the first queued message of the user now. */
bool ctl_users_turn(struct sock_user *u, enum sock_ask ask, uint64_t now);

#endif
