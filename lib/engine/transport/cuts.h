/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mbufs of the rests of records that TCP has cut, and the share that each user has of them.
 * They come from the pool that also supplies the headers of all frames of a transport stage, and
 * the peers decide how much TCP cuts. So all cuts together hold at most a part of the pool, and a
 * user whose peers acknowledge nothing leaves the minimums of the other users.
 *
 * lib/tcp frees records of all kinds alike, and the mbuf of a rest only counts that it was freed.
 * The share gets back what was freed when a user would otherwise be refused.
 */
#ifndef SAKER_ENGINE_CUTS_H
#define SAKER_ENGINE_CUTS_H

#include <stdbool.h>
#include <sys/queue.h>

#include "../../base/share.h"
#include "../common/mbuf.h"

struct eng_cut_user;

struct eng_cuts {
	struct sk_share share;
	struct eng_cut_user *users;        /* [share.nusers] */
	LIST_HEAD(, eng_cut_user) holders; /* users of which the share has counted cuts */
	uint64_t collected;                /* time of the last search for freed mbufs */
};

/* Initializes the shares of at most `mbufs` cuts. Returns 0 or -ENOMEM. */
int eng_cuts_init(struct eng_cuts *c, const struct eng_limits *l, uint32_t mbufs, uint64_t now);
/* Frees what eng_cuts_init() allocated, after all records were freed. Allowed when all is 0. */
void eng_cuts_fini(struct eng_cuts *c);
/* Does the work of eng_rec_split() at the expense of a user. Returns NULL when the user has no more
 * of the share, or when the pool `mp` is empty. */
struct tcp_rec *eng_cuts_split(struct eng_cuts *c, uint32_t user, uint64_t now,
	struct rte_mempool *mp, struct tcp_rec *rec, uint32_t at);
/* Returns the number of mbufs that the cuts of all users hold. For tests. */
uint32_t eng_cuts_live(const struct eng_cuts *c);

#endif
