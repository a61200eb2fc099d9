/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transactions by connection and RSN: a chained hash table for the whole stack, so that an idle
 * connection needs no memory. The peer chooses the RSNs of its requests, so the multiplier is
 * secret. Chains stay short because a table has at least as many buckets as transactions.
 * Consecutive RSNs have adjacent buckets: a connection's next transactions lie in cache lines that
 * were just used.
 */
#include "conn_priv.h"

#include <errno.h>

#include "../base/mem.h"

#define BITS_MAX 26
#define RUN_BITS 5 /* log2 of the consecutive RSNs whose buckets are adjacent */

static uint64_t
mix(uint64_t v)
{
	v = (v ^ v >> 31) * 0x9fb21c651e98df25ull;
	v = (v ^ v >> 29) * 0xd6e8feb86659fd93ull;
	return v ^ v >> 32;
}

int
tl_table_init(struct tl_table *t, uint32_t entries, uint64_t seed)
{
	for (t->bits = RUN_BITS + 1; t->bits < BITS_MAX && (1u << t->bits) < entries; t->bits++)
		;
	t->key = mix(seed + 1) | 1;
	t->bucket = sk_mem_alloc(sizeof(*t->bucket) << t->bits);
	return t->bucket != NULL ? 0 : -ENOMEM;
}

void
tl_table_fini(struct tl_table *t)
{
	if (t->bucket != NULL)
		sk_mem_free(t->bucket, sizeof(*t->bucket) << t->bits);
	t->bucket = NULL;
}

static struct tl_txn **
tl_table_bucket_of(const struct tl_table *table, const struct fa_conn *c, uint32_t rsn)
{
	uint64_t v = (uint64_t)(uintptr_t)c + ((uint64_t)(rsn >> RUN_BITS) << 20);
	uint64_t run = v * table->key >> (64 - table->bits + RUN_BITS);

	return &table->bucket[run << RUN_BITS | (rsn & ((1u << RUN_BITS) - 1))];
}

struct tl_txn *
tl_find(const struct tl_table *table, const struct fa_conn *c, uint32_t rsn)
{
	struct tl_txn *t = *tl_table_bucket_of(table, c, rsn);

	while (t != NULL && (t->pkt.rsn != rsn || t->c != c))
		t = t->hash_next;
	return t;
}

void
tl_insert(struct tl_table *table, struct tl_txn *t)
{
	struct tl_txn **b = tl_table_bucket_of(table, t->c, t->pkt.rsn);

	t->hash_next = *b;
	*b = t;
	t->hashed = true;
}

void
tl_remove(struct tl_table *table, struct tl_txn *t)
{
	struct tl_txn **p = tl_table_bucket_of(table, t->c, t->pkt.rsn);

	if (!t->hashed)
		return;
	while (*p != t)
		p = &(*p)->hash_next;
	*p = t->hash_next;
	t->hashed = false;
}
