/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Local ports by destination. A destination with few connections has no set of ports: most ports
 * are free. With more connections, it has a bitmap, in which a search passes 64 used ports with one
 * comparison.
 */
#include "lports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/mem.h"

#define FEW 14 /* connections of a destination without a bitmap */
/* Of eng_lports_jump(): 65536 divided by the golden ratio, and odd. The first n multiples of it
 * divide the range into parts of which none is much shorter than the n-th part of the range. */
#define JUMP 40503u

struct eng_lports_dest {
	struct eng_lports_dest *next; /* in its bucket */
	struct tcp_tuple tuple;       /* lport 0 */
	uint32_t n;                   /* connections */
	uint16_t few[FEW];            /* their ports while `map` is NULL */
	/* A bit for each port of the range: a connection uses it, or its home is another stage.
	 * NULL: there were at most FEW connections, or no memory. */
	uint64_t *map;
};

static uint32_t
range_of(const struct eng_lports *l)
{
	return l->max - l->min + 1u;
}

static uint64_t
hash_of(const struct eng_lports *l, const struct tcp_tuple *tuple)
{
	struct tcp_tuple k = *tuple;

	k.lport = 0;
	return sk_siphash(&l->key, &k, sizeof(k));
}

static bool
same_dest(const struct tcp_tuple *a, const struct tcp_tuple *b)
{
	return sk_addr_eq(&a->raddr, &b->raddr) && sk_addr_eq(&a->laddr, &b->laddr) &&
	       a->rport == b->rport && a->vlan == b->vlan && a->port == b->port;
}

/* Returns the link to the destination of the tuple, or to NULL. */
static struct eng_lports_dest **
dest_at(const struct eng_lports *l, uint64_t hash, const struct tcp_tuple *tuple)
{
	struct eng_lports_dest **at = &l->bucket[hash >> 32 & l->mask];

	while (*at != NULL && !same_dest(&(*at)->tuple, tuple))
		at = &(*at)->next;
	return at;
}

static void
map_set(uint64_t *map, uint32_t at, bool on)
{
	uint64_t bit = 1ull << at % 64;

	map[at / 64] = on ? map[at / 64] | bit : map[at / 64] & ~bit;
}

int
eng_lports_init(struct eng_lports *l, uint16_t min, uint16_t max, uint32_t conns)
{
	*l = (struct eng_lports){.min = min, .max = max, .mask = 63};
	sk_random(&l->key, sizeof(l->key));
	while (l->mask < conns / 8)
		l->mask = l->mask * 2 + 1;
	l->bucket = calloc(l->mask + 1u, sizeof(struct eng_lports_dest *));
	return l->bucket != NULL ? 0 : -ENOMEM;
}

static void
dest_free(struct eng_lports_dest *d)
{
	free(d->map);
	free(d);
}

void
eng_lports_fini(struct eng_lports *l)
{
	for (uint32_t i = 0; l->bucket != NULL && i <= l->mask; i++) {
		struct eng_lports_dest *d = l->bucket[i], *next;

		for (; d != NULL; d = next) {
			next = d->next;
			dest_free(d);
		}
	}
	free(l->bucket);
	l->bucket = NULL;
}

/* Gives the destination a bitmap of its FEW ports. */
static void
make_map(const struct eng_lports *l, struct eng_lports_dest *d)
{
	d->map = calloc((range_of(l) + 63) / 64, sizeof(*d->map));
	for (uint32_t i = 0; d->map != NULL && i < FEW; i++)
		map_set(d->map, d->few[i] - l->min, true);
}

void
eng_lports_add(struct eng_lports *l, const struct tcp_tuple *tuple)
{
	struct eng_lports_dest **at, *d;

	if (tuple->lport < l->min || tuple->lport > l->max)
		return;
	at = dest_at(l, hash_of(l, tuple), tuple);
	if (*at == NULL) {
		*at = calloc(1, sizeof(**at));
		if (*at == NULL)
			return;
		(*at)->tuple = *tuple;
	}
	d = *at;
	if (d->map == NULL && d->n == FEW)
		make_map(l, d);
	if (d->map != NULL)
		map_set(d->map, tuple->lport - l->min, true);
	else if (d->n < FEW)
		d->few[d->n] = tuple->lport;
	else
		return; /* no memory: the search does not avoid this port */
	d->n++;
}

/* Removes a port. Returns false when the destination does not have it. */
static bool
dest_remove(const struct eng_lports *l, struct eng_lports_dest *d, uint16_t lport)
{
	uint32_t at = lport - l->min;

	if (d->map != NULL) {
		bool had = d->map[at / 64] >> at % 64 & 1;

		map_set(d->map, at, false);
		return had;
	}
	for (uint32_t i = 0; i < d->n; i++) {
		if (d->few[i] == lport) {
			d->few[i] = d->few[d->n - 1];
			return true;
		}
	}
	return false;
}

void
eng_lports_del(struct eng_lports *l, const struct tcp_tuple *tuple)
{
	struct eng_lports_dest **at, *d;

	if (tuple->lport < l->min || tuple->lport > l->max)
		return;
	at = dest_at(l, hash_of(l, tuple), tuple);
	d = *at;
	if (d == NULL || !dest_remove(l, d, tuple->lport) || --d->n > 0)
		return;
	*at = d->next;
	dest_free(d);
}

/* Returns the first place from `at` on that is not in the bitmap, or the size of the range. */
static uint32_t
map_next(const uint64_t *map, uint32_t at, uint32_t range)
{
	uint64_t word;

	for (; at < range; at = (at / 64 + 1) * 64) {
		word = ~map[at / 64] >> at % 64;
		if (word != 0)
			return SK_MIN(at + (uint32_t)__builtin_ctzll(word), range);
	}
	return range;
}

/* The algorithm of RFC 6056, section 3.3.3: a keyed offset for each destination, plus a counter. */
uint16_t
eng_lports_choose(
	struct eng_lports *l, const struct tcp_tuple *tuple, eng_lports_free *is_free, void *ctx)
{
	uint64_t hash = hash_of(l, tuple);
	struct eng_lports_dest *d = *dest_at(l, hash, tuple);
	uint32_t range = range_of(l), from = ((uint32_t)hash + l->next) % range, left = range;
	struct tcp_tuple k = *tuple;
	bool home;

	while (left > 0) {
		uint32_t at = d != NULL && d->map != NULL ? map_next(d->map, from, range) : from;
		uint32_t passed = SK_MIN(SK_MIN(at, range - 1) - from + 1, left);

		left -= passed;
		l->next = (uint16_t)(l->next + passed);
		from = at + 1 < range ? at + 1 : 0;
		if (at == range)
			continue;
		k.lport = (uint16_t)(l->min + at);
		if (is_free(ctx, &k, &home))
			return k.lport;
		if (!home && d != NULL && d->map != NULL)
			map_set(d->map, at, true);
	}
	return 0;
}

void
eng_lports_jump(struct eng_lports *l)
{
	l->next = (uint16_t)((uint16_t)(++l->jumps * JUMP) * range_of(l) >> 16);
}
