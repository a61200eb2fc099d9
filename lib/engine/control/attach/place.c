/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "place.h"

#define PLACES_MIN 3 /* least minimum of a user: a program and its tools */
/* The pool of address space: half of what a process has (47 bits), in MiB. */
#define SPACE_UNIT (1ull << 20)
#define SPACE      ((uint32_t)((1ull << 46) / SPACE_UNIT))

struct place {
	struct ctl_client *client; /* NULL: the number is free */
	uint32_t generation;       /* of the client, or of the next one */
	uint16_t user;             /* number of the client's user */
};

struct place_user {
	uint64_t tenant;
	uint32_t clients; /* 0: the user number is free */
};

struct ctl_places {
	pthread_mutex_t lock;
	uint32_t n;
	struct place *place;     /* [n] */
	struct place_user *user; /* [n]; user number i + 1 */
	struct sk_share share, space;
};

struct ctl_places *
ctl_places_new(const struct eng_limits *limits)
{
	struct ctl_places *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	p->n = limits->clients;
	p->place = calloc(p->n, sizeof(*p->place));
	p->user = calloc(p->n, sizeof(*p->user));
	if (p->place != NULL && p->user != NULL &&
		eng_share_init(&p->share, limits, limits->clients, PLACES_MIN) == 0 &&
		eng_share_init(&p->space, limits, SPACE, 1) == 0)
		return p;
	ctl_places_free(p);
	return NULL;
}

void
ctl_places_free(struct ctl_places *p)
{
	if (p == NULL)
		return;
	sk_share_fini(&p->share);
	sk_share_fini(&p->space);
	free(p->place);
	free(p->user);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* Returns the index of the tenant's user, or of the first free one. There are as many users as
 * clients, so there is one of them. */
static uint32_t
user_of(const struct ctl_places *p, uint64_t tenant)
{
	uint32_t unused = p->n;

	for (uint32_t i = 0; i < p->n; i++) {
		if (p->user[i].clients && p->user[i].tenant == tenant)
			return i;
		if (p->user[i].clients == 0 && unused == p->n)
			unused = i;
	}
	return unused;
}

static int
place_take_locked(struct ctl_places *p, struct ctl_client *cl)
{
	uint32_t n = 0, user;

	while (n < p->n && p->place[n].client != NULL)
		n++;
	if (n == p->n)
		return -EUSERS;
	user = user_of(p, cl->tenant);
	switch (sk_share_take(&p->share, user + 1, 1)) {
	case SK_SHARE_MOST:
		return -EDQUOT;
	case SK_SHARE_NONE:
		return -EUSERS;
	case SK_SHARE_OK:
		break;
	}
	p->user[user].tenant = cl->tenant;
	p->user[user].clients++;
	p->place[n].client = cl;
	p->place[n].user = (uint16_t)(user + 1);
	cl->eng.index = n;
	cl->eng.user = p->place[n].user;
	cl->id = CTL_ID(n, p->place[n].generation);
	return (int)cl->id;
}

int
ctl_place_take(struct ctl_places *p, struct ctl_client *cl)
{
	int id;

	pthread_mutex_lock(&p->lock);
	id = place_take_locked(p, cl);
	pthread_mutex_unlock(&p->lock);
	return id;
}

void
ctl_place_give(struct ctl_places *p, const struct ctl_client *cl)
{
	struct place *at = &p->place[cl->eng.index];

	pthread_mutex_lock(&p->lock);
	at->client = NULL;
	at->generation++;
	p->user[at->user - 1].clients--;
	sk_share_give(&p->share, at->user, 1);
	pthread_mutex_unlock(&p->lock);
}

static uint32_t
space_units(uint64_t bytes)
{
	uint64_t n = bytes / SPACE_UNIT + (bytes % SPACE_UNIT > 0);

	return (uint32_t)SK_MIN(n, SPACE + 1);
}

bool
ctl_space_take(struct ctl_places *p, const struct ctl_client *cl, uint64_t bytes)
{
	bool taken;

	pthread_mutex_lock(&p->lock);
	taken = sk_share_take(&p->space, cl->eng.user, space_units(bytes)) == SK_SHARE_OK;
	pthread_mutex_unlock(&p->lock);
	return taken;
}

void
ctl_space_give(struct ctl_places *p, const struct ctl_client *cl, uint64_t bytes)
{
	pthread_mutex_lock(&p->lock);
	sk_share_give(&p->space, cl->eng.user, space_units(bytes));
	pthread_mutex_unlock(&p->lock);
}

bool
ctl_place_holds(struct ctl_places *p, int id)
{
	uint32_t n = CTL_ID_NUMBER((uint32_t)id);
	bool holds;

	if (id < 0 || n >= p->n)
		return false;
	pthread_mutex_lock(&p->lock);
	holds = p->place[n].client != NULL && p->place[n].client->id == (uint32_t)id;
	pthread_mutex_unlock(&p->lock);
	return holds;
}

struct ctl_client *
ctl_place_client(const struct ctl_places *p, uint32_t number)
{
	return p->place[number].client;
}
