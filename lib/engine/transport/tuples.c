/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lookup of connections and listeners. A lookup of a connection first tries a small direct-mapped
 * table of recent results, and then the hash table of all tuples. A lookup of a listener prefers a
 * listener with the packet's destination address to one with the unspecified address.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_hash.h>
#include <rte_hash_crc.h>

#include "handoff_priv.h"
#include "transport_priv.h"

_Static_assert(sizeof(struct tcp_tuple) == 40, "a key without padding");

int
eng_tuples_create(struct eng_transport *t, uint32_t conns)
{
	char name[RTE_HASH_NAMESIZE];
	struct rte_hash_parameters p = {.name = name,
		.entries = conns < 64 ? 64 : conns,
		.key_len = sizeof(struct tcp_tuple),
		.hash_func = rte_hash_crc,
		.socket_id = t->e->cfg.socket_id,
		/* With the extended table, colliding tuples of an attacker cost time, but an
		 * insertion does not fail. */
		.extra_flag = RTE_HASH_EXTRA_FLAGS_EXT_TABLE};

	snprintf(name, sizeof(name), "sk%u_tuples%u", t->e->id, t->index);
	sk_random(&p.hash_func_init_val, sizeof(p.hash_func_init_val));
	sk_random(&t->port_key, sizeof(t->port_key));
	t->tuples = rte_hash_create(&p);
	return t->tuples == NULL ? -ENOMEM : 0;
}

void
eng_tuples_destroy(struct eng_transport *t)
{
	rte_hash_free(t->tuples);
	t->tuples = NULL;
}

static void
hit_fill(const struct eng_transport *t, struct eng_hit *hit, const struct tcp_tuple *key,
	struct tcp_conn *conn)
{
	*hit = (struct eng_hit){.conn = conn, .port = key->port};
	if (!sk_addr_is_v4(&key->laddr) || key->vlan != ETH_NO_VLAN || key->port == t->loop_port)
		return;
	hit->plain = true;
	memcpy(&hit->addrs, key->raddr.b + 12, 4);
	memcpy((uint8_t *)&hit->addrs + 4, key->laddr.b + 12, 4);
	hit->ports = htobe32((uint32_t)key->rport << 16 | key->lport);
}

struct tcp_conn *
eng_conn_find(struct eng_transport *t, const struct tcp_tuple *key)
{
	struct eng_hit *hit = eng_hit_slot(t, key->lport, key->rport);
	void *found;

	if (hit->conn != NULL && memcmp(tcp_tuple(hit->conn), key, sizeof(*key)) == 0)
		return hit->conn;
	if (rte_hash_lookup_data(t->tuples, key, &found) < 0)
		return NULL;
	hit_fill(t, hit, key, found);
	return found;
}

void
eng_tcp_conn_added(void *ctx, struct tcp_conn *conn, struct tcp_listener *l)
{
	struct eng_transport *t = ctx;

	/* This cannot fail: the table has a place for each connection that TCP can have. */
	rte_hash_add_key_data(t->tuples, tcp_tuple(conn), conn);
}

void
eng_tcp_conn_removed(void *ctx, struct tcp_conn *conn)
{
	struct eng_transport *t = ctx;
	const struct tcp_tuple *key = tcp_tuple(conn);
	struct eng_hit *hit = eng_hit_slot(t, key->lport, key->rport);

	if (hit->conn == conn)
		*hit = (struct eng_hit){0};
	rte_hash_del_key(t->tuples, key);
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
		if (sk_addr_is_any(&l->addr))
			any = l;
	}
	return any;
}

/* The algorithm of RFC 6056, section 3.3.3: a keyed offset for each destination, plus a counter.
 * Ports whose tuple has another home stage are skipped. */
uint16_t
eng_lport_choose(struct eng_transport *t, const struct tcp_tuple *key)
{
	const struct eng_config *cfg = &t->e->cfg;
	struct tcp_tuple k = *key;
	uint32_t n = cfg->port_max - cfg->port_min + 1u;
	uint32_t offset;

	k.lport = 0;
	offset = (uint32_t)sk_siphash(&t->port_key, &k, sizeof(k));
	for (uint32_t i = 0; i < n; i++) {
		k.lport = (uint16_t)(cfg->port_min + (offset + t->next_lport++) % n);
		if (eng_home(t->e, &k) == t->index && eng_conn_find(t, &k) == NULL)
			return k.lport;
	}
	return 0;
}
