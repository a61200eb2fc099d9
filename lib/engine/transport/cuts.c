/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../common/instance.h"

struct eng_cut_user {
	struct eng_returned back; /* rests that were freed */
	uint32_t taken, given; /* units that the user took from the share, and that it returned */
	LIST_ENTRY(eng_cut_user) next;
};

int
eng_cuts_init(struct eng_cuts *c, const struct eng_limits *l, uint32_t mbufs, uint64_t now)
{
	size_t bytes;

	LIST_INIT(&c->holders);
	c->collected = now;
	if (eng_share_init(&c->share, l, mbufs, 1) < 0)
		return -ENOMEM;
	bytes = c->share.nusers * sizeof(c->users[0]);
	c->users = aligned_alloc(_Alignof(struct eng_cut_user), bytes);
	if (c->users == NULL)
		return -ENOMEM;
	memset(c->users, 0, bytes);
	return 0;
}

void
eng_cuts_fini(struct eng_cuts *c)
{
	sk_share_fini(&c->share);
	free(c->users);
}

/* Returns to the share what was freed since the last call. */
static void
cuts_collect(struct eng_cuts *c)
{
	struct eng_cut_user *u, *next;

	for (u = LIST_FIRST(&c->holders); u != NULL; u = next) {
		next = LIST_NEXT(u, next);
		sk_share_give(&c->share, (uint32_t)(u - c->users), u->back.n - u->given);
		u->given = u->back.n;
		if (u->given == u->taken)
			LIST_REMOVE(u, next);
	}
}

/* The time changes with each turn: however many cuts are refused, one search is made in a turn. */
static bool
cut_take(struct eng_cuts *c, uint32_t user, uint64_t now)
{
	if (sk_share_take(&c->share, user, 1) == SK_SHARE_OK)
		return true;
	if (c->collected == now)
		return false;
	c->collected = now;
	cuts_collect(c);
	return sk_share_take(&c->share, user, 1) == SK_SHARE_OK;
}

struct tcp_rec *
eng_cuts_split(struct eng_cuts *c, uint32_t user, uint64_t now, struct rte_mempool *mp,
	struct tcp_rec *rec, uint32_t at)
{
	struct eng_cut_user *u = &c->users[user];
	struct tcp_rec *rest;

	if (!cut_take(c, user, now))
		return NULL;
	rest = eng_rec_split(mp, rec, at);
	if (rest == NULL) {
		sk_share_give(&c->share, user, 1);
		return NULL;
	}
	if (u->taken == u->given)
		LIST_INSERT_HEAD(&c->holders, u, next);
	u->taken++;
	*eng_rec_returned(rest) = &u->back;
	return rest;
}

uint32_t
eng_cuts_live(const struct eng_cuts *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->share.nusers; i++)
		n += c->users[i].taken - c->users[i].back.n;
	return n;
}
