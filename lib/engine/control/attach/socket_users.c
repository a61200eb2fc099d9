/* SPDX-License-Identifier: BSD-3-Clause */
#include "socket_users.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../../base/bucket.h"

int
ctl_users_init(struct sock_users *t, uint32_t conns)
{
	*t = (struct sock_users){.user = calloc(conns, sizeof(*t->user)), .n = conns};
	return t->user != NULL ? 0 : -ENOMEM;
}

void
ctl_users_fini(struct sock_users *t)
{
	for (uint32_t i = 0; t->user != NULL && i < t->n; i++)
		sk_closer_leave(&t->user[i].closer);
	free(t->user);
	t->user = NULL;
}

/* Returns the time at which all buckets of the user are full. */
static uint64_t
users_full_at(const struct sock_user *u)
{
	uint64_t hello = u->full[SOCK_ASK_HELLO], region = u->full[SOCK_ASK_REGION];

	return hello > region ? hello : region;
}

/* Returns the entry of a user, or a free one: an entry without a connection, whose buckets are full
 * the soonest if those of none are. Returns NULL when descriptors of too many users do not close.
 */
static struct sock_user *
users_entry(struct sock_users *t, uid_t uid, uint64_t now)
{
	struct sock_user *found = NULL;

	for (uint32_t i = 0; i < t->n; i++) {
		struct sock_user *u = &t->user[i];

		bool closed = sk_closer_tidy(&u->closer);

		if (u->uid == uid && (u->conns > 0 || users_full_at(u) > now || !closed))
			return u;
		if (u->conns == 0 && closed &&
			(found == NULL || users_full_at(u) < users_full_at(found)))
			found = u;
	}
	if (found != NULL)
		*found = (struct sock_user){.uid = uid};
	return found;
}

/* Returns the user that gives up a place for `u`, or NULL. */
static struct sock_user *
users_loser(const struct sock_users *t, const struct sock_user *u)
{
	struct sock_user *most = &t->user[0];

	for (uint32_t i = 1; i < t->n; i++)
		if (t->user[i].waiting > most->waiting)
			most = &t->user[i];
	return most->waiting >= u->waiting + 2 ? most : NULL;
}

struct sock_user *
ctl_users_join(struct sock_users *t, uid_t uid, uint64_t now, struct sock_user **loser, char *why,
	size_t whylen)
{
	struct sock_user *u = users_entry(t, uid, now);
	bool full = t->waiting >= SOCK_WAITING;

	*loser = full && u != NULL ? users_loser(t, u) : NULL;
	if (u != NULL && u->waiting >= SOCK_WAITING_ONE)
		snprintf(why, whylen,
			"user %u has %u connections that have not attached, the limit", uid,
			u->waiting);
	else if (full && *loser == NULL)
		snprintf(why, whylen, "there are %u connections that have not attached, the limit",
			t->waiting);
	else if (u == NULL || (t->conns == t->n && *loser == NULL))
		snprintf(why, whylen, "all %u connections are in use", t->n);
	else
		goto joined;
	*loser = NULL;
	return NULL;
joined:
	u->conns++;
	t->conns++;
	u->waiting++;
	t->waiting++;
	return u;
}

void
ctl_users_attached(struct sock_users *t, struct sock_user *u)
{
	u->waiting--;
	t->waiting--;
}

void
ctl_users_leave(struct sock_users *t, struct sock_user *u, bool attached)
{
	if (!attached)
		ctl_users_attached(t, u);
	u->conns--;
	t->conns--;
}

bool
ctl_users_turn(struct sock_user *u, enum sock_ask ask, uint64_t now)
{
	return ask == SOCK_ASK_HELLO
		       ? sk_bucket_take(&u->full[ask], now, SOCK_HELLO_GAP, SOCK_HELLOS)
		       : sk_bucket_take(&u->full[ask], now, SOCK_REGION_GAP, SOCK_REGIONS);
}

bool
ctl_users_take(struct sock_user *u, enum sock_ask ask, uint64_t now)
{
	return u->queued[ask] == 0 && ctl_users_turn(u, ask, now);
}
