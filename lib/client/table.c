/* SPDX-License-Identifier: BSD-3-Clause */
/* A hash table from the engine's numbers to objects. It is chained and grows; its nodes are part of
 * the objects. */
#include <errno.h>
#include <stdlib.h>

#include "client_priv.h"

#define FIRST_BUCKETS 64

static uint32_t
table_bucket_of(uint64_t key, uint32_t buckets)
{
	return (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 32) & (buckets - 1);
}

static int
table_grow(struct cl_table *t)
{
	uint32_t buckets = t->buckets != 0 ? t->buckets * 2 : FIRST_BUCKETS;
	struct cl_node **bucket = calloc(buckets, sizeof(*bucket));

	if (bucket == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->buckets; i++) {
		struct cl_node *node, *next;

		for (node = t->bucket[i]; node != NULL; node = next) {
			uint32_t b = table_bucket_of(node->key, buckets);

			next = node->next;
			node->next = bucket[b];
			bucket[b] = node;
		}
	}
	free(t->bucket);
	t->bucket = bucket;
	t->buckets = buckets;
	return 0;
}

int
cl_table_add(struct cl_table *t, struct cl_node *node, uint64_t key, void *owner)
{
	uint32_t b;

	sk_own(&t->lock, 0);
	/* Without memory an existing table goes on with longer chains. */
	if (t->count >= t->buckets && table_grow(t) < 0 && t->buckets == 0) {
		sk_disown(&t->lock);
		return -ENOMEM;
	}
	b = table_bucket_of(key, t->buckets);
	node->key = key;
	node->owner = owner;
	node->next = t->bucket[b];
	t->bucket[b] = node;
	t->count++;
	sk_disown(&t->lock);
	return 0;
}

void
cl_table_del(struct cl_table *t, struct cl_node *node)
{
	struct cl_node **at;

	sk_own(&t->lock, 0);
	at = &t->bucket[table_bucket_of(node->key, t->buckets)];
	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	t->count--;
	sk_disown(&t->lock);
}

/* The caller holds the lock. */
static void *
table_find(const struct cl_table *t, uint64_t key)
{
	if (t->buckets == 0)
		return NULL;
	for (const struct cl_node *n = t->bucket[table_bucket_of(key, t->buckets)]; n != NULL;
		n = n->next)
		if (n->key == key)
			return n->owner;
	return NULL;
}

void *
cl_table_find(struct cl_table *t, uint64_t key)
{
	void *owner;

	sk_own(&t->lock, 0);
	owner = table_find(t, key);
	sk_disown(&t->lock);
	return owner;
}

bool
cl_table_with(struct cl_table *t, uint64_t key, unsigned tries, void (*each)(void *owner))
{
	void *owner;

	if (!sk_own(&t->lock, tries))
		return false;
	owner = table_find(t, key);
	if (owner != NULL)
		each(owner);
	sk_disown(&t->lock);
	return true;
}

void
cl_table_free(struct cl_table *t)
{
	free(t->bucket);
}
