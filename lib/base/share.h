/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shares of a pool. Each user has a minimum that no other user can take; what is left over is
 * common, and the first user that asks for it gets it. A user may hold at most `most` units. The
 * pool itself (mbufs, numbers, slots) is elsewhere: a share only counts.
 *
 * User 0 is the instance itself. Only the first `reserved` users have a minimum, so that the sum of
 * all minimums is known when the pool is created. One thread uses a share.
 */
#ifndef SAKER_BASE_SHARE_H
#define SAKER_BASE_SHARE_H

#include <assert.h>
#include <stdint.h>

#include "mem.h"

#define SK_USER_INSTANCE  0 /* objects that no client owns */
#define SK_SHARE_SIZE_MAX (UINT32_MAX / 2)

struct sk_share {
	uint32_t size;     /* units of the pool */
	uint32_t most;     /* units that one user may hold */
	uint32_t minimum;  /* units that only the user itself can take */
	uint32_t reserved; /* users that have a minimum */
	uint32_t easy;     /* `held` up to which no user can touch the minimum of another one */
	uint32_t held;     /* units that all users hold */
	uint32_t nusers;
	uint32_t *used; /* [nusers]: units that each user holds */
};

enum sk_share_result {
	SK_SHARE_OK,
	SK_SHARE_MOST, /* the user would hold more than `most` units */
	SK_SHARE_NONE, /* the common units are used up, and so is the user's minimum */
};

/* Initializes a share for a pool of `size` units and users 0 to nusers - 1. `minimum` is reduced
 * until the minimums of `reserved` users fit into half of the pool. `most` 0 stands for `size`. A
 * pool of more than SK_SHARE_SIZE_MAX units counts as one of that size. Returns 0 or -ENOMEM.
 * sk_share_fini() frees what the share holds. */
int sk_share_init(struct sk_share *s, uint32_t size, uint32_t nusers, uint32_t reserved,
	uint32_t minimum, uint32_t most);
void sk_share_fini(struct sk_share *s);
/* Returns `percent` percent of a pool of `size` units, but at least `least`; 0 stays 0. For the
 * arguments `minimum` and `most` of sk_share_init(). */
uint32_t sk_share_percent(uint32_t size, uint32_t percent, uint32_t least);
/* Returns the units that the user can take at this moment. */
uint32_t sk_share_room(const struct sk_share *s, uint32_t user);
/* Returns the reason for which the user cannot take `n` units, or SK_SHARE_OK. */
enum sk_share_result sk_share_check(const struct sk_share *s, uint32_t user, uint32_t n);

/* Takes `n` units for the user: all of them, or none when the result is not SK_SHARE_OK. The cost
 * grows with `reserved` only when so many units are held that the minimums matter. */
static inline enum sk_share_result
sk_share_take(struct sk_share *s, uint32_t user, uint32_t n)
{
	enum sk_share_result rc;

	if (n > s->most - s->used[user] || s->held + n > s->easy) {
		rc = sk_share_check(s, user, n);
		if (rc != SK_SHARE_OK)
			return rc;
	}
	s->used[user] += n;
	s->held += n;
	return SK_SHARE_OK;
}

/* Returns units that the user can take at this moment: all of them, unless so many are held that
 * the minimums matter. */
static inline uint32_t
sk_share_some(const struct sk_share *s, uint32_t user)
{
	uint32_t easy = s->easy - SK_MIN(s->held, s->easy), own = s->most - s->used[user];

	return SK_MIN(easy, own);
}

/* Returns `n` units that the user holds. */
static inline void
sk_share_give(struct sk_share *s, uint32_t user, uint32_t n)
{
	assert(n <= s->used[user]);
	s->used[user] -= n;
	s->held -= n;
}

#endif
