/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hash table from the engine's numbers to objects. It is chained and grows; its nodes are part of
 * the objects.
 *
 * A poll that finds a failed completion marks its QP through the table. It must neither wait for
 * the lock nor return without the completion: the handler of the thread that holds the lock may
 * wait for the queue that is polled, and the program may sleep until the next event. It leaves the
 * hash of the key in `late`, and the thread that holds the lock marks each owner with that hash
 * when it releases it.
 */
#include <errno.h>
#include <stdlib.h>

#include "client_priv.h"

#define FIRST_BUCKETS 64
#define MARK_TRIES    64 /* attempts to take the lock before a mark becomes a late one */

static uint32_t
table_bucket_of(uint64_t key, uint32_t buckets)
{
	return (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 32) & (buckets - 1);
}

/* Marks the owners whose hashes are late. The caller holds the lock. */
static void
table_mark_late(struct cl_table *t)
{
	uint64_t late[CL_TABLE_LATE / 64];

	__atomic_store_n(&t->any_late, 0, __ATOMIC_RELAXED);
	shm_fence();
	for (uint32_t i = 0; i < CL_TABLE_LATE / 64; i++)
		late[i] = __atomic_exchange_n(&t->late[i], 0, __ATOMIC_ACQUIRE);
	for (uint32_t b = 0; b < t->buckets; b++) {
		for (const struct cl_node *n = t->bucket[b]; n != NULL; n = n->next) {
			uint32_t bit = table_bucket_of(n->key, CL_TABLE_LATE);

			if (n->key >> 32 == CL_QPN && (late[bit / 64] >> bit % 64 & 1) != 0)
				t->mark(n->owner);
		}
	}
}

static void
table_unlock(struct cl_table *t)
{
	sk_disown(&t->lock);
	shm_fence();
	while (__builtin_expect(__atomic_load_n(&t->any_late, __ATOMIC_RELAXED) != 0, 0) &&
		sk_own(&t->lock, 1)) {
		table_mark_late(t);
		sk_disown(&t->lock);
		shm_fence();
	}
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
		table_unlock(t);
		return -ENOMEM;
	}
	b = table_bucket_of(key, t->buckets);
	node->key = key;
	node->owner = owner;
	node->next = t->bucket[b];
	t->bucket[b] = node;
	t->count++;
	table_unlock(t);
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
	table_unlock(t);
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
	table_unlock(t);
	return owner;
}

void
cl_table_mark(struct cl_table *t, uint32_t qpn)
{
	uint64_t key = cl_key(CL_QPN, qpn);
	uint32_t bit = table_bucket_of(key, CL_TABLE_LATE);
	void *owner;

	if (sk_own(&t->lock, MARK_TRIES)) {
		owner = table_find(t, key);
		if (owner != NULL)
			t->mark(owner);
	} else {
		__atomic_fetch_or(&t->late[bit / 64], 1ull << bit % 64, __ATOMIC_RELAXED);
		__atomic_store_n(&t->any_late, 1, __ATOMIC_RELEASE);
		shm_fence();
		/* The thread that held the lock may have released it before it could see that. */
		if (!sk_own(&t->lock, 1))
			return;
	}
	table_unlock(t);
}

void
cl_table_free(struct cl_table *t)
{
	free(t->bucket);
}
