/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lookup of connections and listeners. A lookup of a connection first tries a table of recent
 * results, which costs one cache line, and then the hash table of all tuples, which costs several.
 * A lookup of a listener prefers a listener with the packet's destination address to one with the
 * unspecified address.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_hash.h>

#include "../../base/mem.h"
#include "../../base/prf.h"
#include "handoff_priv.h"
#include "transport_priv.h"

#define HITS_LOG2 8 /* the least number of slots, as a power of two */

_Static_assert(sizeof(struct tcp_tuple) == 40, "a key without padding");

/* Peers choose tuples: they must not know which ones collide. Those of a CRC do, whatever its
 * initial value is, since it is linear. */
uint32_t
eng_tuple_hash(const struct eng_transport *t, const struct tcp_tuple *key)
{
	return (uint32_t)sk_siphash(&t->tuple_key, key, sizeof(*key));
}

static size_t
hits_size(const struct eng_transport *t)
{
	return sizeof(t->hits[0]) << (64 - t->hit_shift);
}

/* Creates the table of recent results, with a slot for each of `conns` connections. */
static int
hits_create(struct eng_transport *t, uint32_t conns)
{
	unsigned log2 = HITS_LOG2;

	while (log2 < 31 && 1u << log2 < conns)
		log2++;
	t->hit_shift = 64 - log2;
	sk_random(&t->hit_key, sizeof(t->hit_key));
	t->hit_key |= 1;
	t->hits = sk_mem_alloc(hits_size(t));
	return t->hits == NULL ? -ENOMEM : 0;
}

int
eng_tuples_create(struct eng_transport *t, uint32_t conns)
{
	char name[RTE_HASH_NAMESIZE];
	struct rte_hash_parameters p = {.name = name,
		.entries = conns < 64 ? 64 : conns,
		.key_len = sizeof(struct tcp_tuple),
		.socket_id = t->e->cfg.socket_id,
		/* With the extended table, an insertion does not fail. */
		.extra_flag = RTE_HASH_EXTRA_FLAGS_EXT_TABLE};

	snprintf(name, sizeof(name), "sk%u_tuples%u", t->e->id, t->index);
	sk_random(&t->tuple_key, sizeof(t->tuple_key));
	t->tuples = rte_hash_create(&p);
	if (t->tuples == NULL || hits_create(t, t->e->cfg.tcp.max_conns) < 0)
		return -ENOMEM;
	return eng_lports_init(&t->lports, t->e->cfg.port_min, t->e->cfg.port_max, conns);
}

void
eng_tuples_destroy(struct eng_transport *t)
{
	rte_hash_free(t->tuples);
	t->tuples = NULL;
	eng_lports_fini(&t->lports);
	if (t->hits != NULL)
		sk_mem_free(t->hits, hits_size(t));
	t->hits = NULL;
}

/* Returns the last four bytes of both addresses, and the ports, as they lie in an IPv4 frame of the
 * peer. */
static uint64_t
frame_addrs(const struct tcp_tuple *key)
{
	uint64_t addrs;

	memcpy(&addrs, key->raddr.b + 12, 4);
	memcpy((uint8_t *)&addrs + 4, key->laddr.b + 12, 4);
	return addrs;
}

static uint32_t
frame_ports(const struct tcp_tuple *key)
{
	return htobe32((uint32_t)key->rport << 16 | key->lport);
}

static struct eng_hits *
hits_of(const struct eng_transport *t, const struct tcp_tuple *key)
{
	return eng_hits_of(t, frame_addrs(key), frame_ports(key));
}

/* Replaces the older result of a slot. */
static void
hit_fill(const struct eng_transport *t, struct eng_hits *hits, const struct tcp_tuple *key,
	struct tcp_conn *conn)
{
	struct eng_hit *hit = &hits->way[0];

	hits->way[1] = *hit;
	*hit = (struct eng_hit){.conn = conn,
		.addrs = frame_addrs(key),
		.ports = frame_ports(key),
		.port = key->port,
		.plain = sk_addr_is_v4(&key->laddr) && key->vlan == ETH_NO_VLAN &&
			 key->port != t->loop_port};
}

struct tcp_conn *
eng_conn_find(struct eng_transport *t, const struct tcp_tuple *key)
{
	struct eng_hits *hits = hits_of(t, key);
	void *found;

	for (unsigned i = 0; i < ENG_HIT_WAYS; i++) {
		struct tcp_conn *conn = hits->way[i].conn;

		if (conn != NULL && memcmp(tcp_tuple(conn), key, sizeof(*key)) == 0)
			return conn;
	}
	if (rte_hash_lookup_with_hash_data(t->tuples, key, eng_tuple_hash(t, key), &found) < 0)
		return NULL;
	hit_fill(t, hits, key, found);
	return found;
}

void
eng_tcp_conn_added(void *ctx, struct tcp_conn *conn, struct tcp_listener *l)
{
	struct eng_transport *t = ctx;

	/* This cannot fail: the table has a place for each connection that TCP can have. */
	rte_hash_add_key_with_hash_data(
		t->tuples, tcp_tuple(conn), eng_tuple_hash(t, tcp_tuple(conn)), conn);
	if (l == NULL)
		eng_lports_add(&t->lports, tcp_tuple(conn));
}

void
eng_tcp_conn_removed(void *ctx, struct tcp_conn *conn)
{
	struct eng_transport *t = ctx;
	const struct tcp_tuple *key = tcp_tuple(conn);
	struct eng_hits *hits = hits_of(t, key);

	for (unsigned i = 0; i < ENG_HIT_WAYS; i++)
		if (hits->way[i].conn == conn)
			hits->way[i] = (struct eng_hit){0};
	rte_hash_del_key_with_hash(t->tuples, key, eng_tuple_hash(t, key));
	if (tcp_conn_listener(conn) == NULL)
		eng_lports_del(&t->lports, key);
	eng_conn_left_end(t, conn);
}

struct eng_listener *
eng_listener_find(struct eng_transport *t, const struct sk_addr *addr, uint16_t port)
{
	struct eng_listener *l, *any = NULL;

	LIST_FOREACH (l, &t->listeners[port % ENG_LISTENER_BUCKETS], next) {
		if (l->port != port)
			continue;
		if (sk_addr_eq(&l->addr, addr))
			return l;
		if (eng_listens_at(&l->addr, l->v6only, addr))
			any = l;
	}
	return any;
}

static bool
lport_is_free(void *ctx, const struct tcp_tuple *tuple, bool *home)
{
	struct eng_transport *t = ctx;

	*home = eng_home(t->e, tuple) == t->index;
	return *home && eng_conn_find(t, tuple) == NULL;
}

uint16_t
eng_lport_choose(struct eng_transport *t, const struct tcp_tuple *key)
{
	return eng_lports_choose(&t->lports, key, lport_is_free, t);
}
