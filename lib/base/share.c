/* SPDX-License-Identifier: BSD-3-Clause */
#include "share.h"

#include <errno.h>
#include <stdlib.h>

#include "mem.h"

int
sk_share_init(struct sk_share *s, uint32_t size, uint32_t nusers, uint32_t reserved,
	uint32_t minimum, uint32_t most)
{
	size = SK_MIN(size, SK_SHARE_SIZE_MAX);
	*s = (struct sk_share){.size = size, .nusers = nusers};
	s->reserved = SK_MIN(reserved, nusers);
	s->minimum = s->reserved ? SK_MIN(minimum, size / 2 / s->reserved) : 0;
	s->most = most ? SK_MIN(most, size) : size;
	s->minimum = SK_MIN(s->minimum, s->most);
	s->easy = size - s->reserved * s->minimum;
	s->used = calloc(nusers, sizeof(*s->used));
	return s->used != NULL ? 0 : -ENOMEM;
}

void
sk_share_fini(struct sk_share *s)
{
	free(s->used);
	s->used = NULL;
}

uint32_t
sk_share_percent(uint32_t size, uint32_t percent, uint32_t least)
{
	uint32_t n = (uint32_t)((uint64_t)size * percent / 100);

	return percent != 0 ? SK_MAX(n, least) : 0;
}

/* Returns the units that belong to no user's minimum, and that nobody holds. */
static uint32_t
share_common(const struct sk_share *s)
{
	uint32_t kept = 0; /* units of minimums that their users do not hold */

	for (uint32_t i = 0; i < s->reserved; i++)
		kept += s->minimum - SK_MIN(s->used[i], s->minimum);
	return s->size - s->held - kept;
}

/* Returns the units of its minimum that the user does not hold. */
static uint32_t
share_own(const struct sk_share *s, uint32_t user)
{
	uint32_t minimum = user < s->reserved ? s->minimum : 0;

	return minimum - SK_MIN(s->used[user], minimum);
}

enum sk_share_result
sk_share_check(const struct sk_share *s, uint32_t user, uint32_t n)
{
	uint32_t own = share_own(s, user);

	if (n > s->most - s->used[user])
		return SK_SHARE_MOST;
	return n <= own || n - own <= share_common(s) ? SK_SHARE_OK : SK_SHARE_NONE;
}

uint32_t
sk_share_room(const struct sk_share *s, uint32_t user)
{
	return SK_MIN(share_own(s, user) + share_common(s), s->most - s->used[user]);
}
