/* SPDX-License-Identifier: BSD-3-Clause */
#include "share.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "mem.h"

int
sk_share_init(struct sk_share *s, uint32_t size, uint32_t nusers, uint32_t reserved,
	uint32_t minimum, uint32_t most)
{
	*s = (struct sk_share){.size = size, .nusers = nusers};
	s->reserved = SK_MIN(reserved, nusers);
	s->minimum = s->reserved ? SK_MIN(minimum, size / 2 / s->reserved) : 0;
	s->most = most ? SK_MIN(most, size) : size;
	s->minimum = SK_MIN(s->minimum, s->most);
	s->common = size - s->reserved * s->minimum;
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

/* Returns how many of `used` units of a user exceed its minimum, and so are common ones. */
static uint32_t
share_common(const struct sk_share *s, uint32_t user, uint32_t used)
{
	uint32_t minimum = user < s->reserved ? s->minimum : 0;

	return used > minimum ? used - minimum : 0;
}

enum sk_share_result
sk_share_take(struct sk_share *s, uint32_t user, uint32_t n)
{
	uint32_t used = s->used[user], over;

	if (n > s->most - used)
		return SK_SHARE_MOST;
	over = share_common(s, user, used + n) - share_common(s, user, used);
	if (over > s->common)
		return SK_SHARE_NONE;
	s->common -= over;
	s->used[user] += n;
	s->held += n;
	return SK_SHARE_OK;
}

void
sk_share_give(struct sk_share *s, uint32_t user, uint32_t n)
{
	uint32_t used = s->used[user];

	assert(n <= used);
	s->common += share_common(s, user, used) - share_common(s, user, used - n);
	s->used[user] -= n;
	s->held -= n;
}

uint32_t
sk_share_room(const struct sk_share *s, uint32_t user)
{
	uint32_t used = s->used[user], minimum = user < s->reserved ? s->minimum : 0;
	uint32_t own = used < minimum ? minimum - used : 0;

	return SK_MIN(own + s->common, s->most - used);
}
