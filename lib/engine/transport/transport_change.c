/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses and routes of a transport stage, at its start and when eng_change() replaces them
 * while connections run. */
#include <errno.h>

#include "link.h"

int
eng_transport_add_if(struct eng_transport *t, const struct eng_if_config *f, uint64_t now)
{
	const struct eng_port *p = &t->e->ports[f->port];
	int ifindex = net_if_index(t->net, f->port, f->vlan);

	if (ifindex < 0)
		ifindex = net_if_add(t->net, f->port, f->vlan, p->mac, p->mtu);
	if (ifindex >= 0 && f->shared)
		return net_addr_share(t->net, ifindex, &f->addr, f->prefix);
	return ifindex < 0 ? ifindex : net_addr_add(t->net, ifindex, &f->addr, f->prefix, now);
}

static bool
same_place(const struct eng_if_config *a, const struct eng_if_config *b)
{
	return a->port == b->port && a->vlan == b->vlan;
}

/* Returns the entry of the configuration with this address on this interface, or NULL. */
static const struct eng_if_config *
change_find(const struct eng_config *cfg, const struct eng_if_config *f)
{
	for (unsigned i = 0; i < cfg->nifs; i++)
		if (same_place(&cfg->ifs[i], f) && sk_addr_eq(&cfg->ifs[i].addr, &f->addr))
			return &cfg->ifs[i];
	return NULL;
}

/* Returns whether the configuration has exactly this address. */
static bool
change_keeps(const struct eng_config *cfg, const struct eng_if_config *f)
{
	const struct eng_if_config *found = change_find(cfg, f);

	return found != NULL && found->prefix == f->prefix && found->shared == f->shared;
}

static bool
change_routes(const struct eng_config *cfg, const struct eng_route_config *r)
{
	for (unsigned i = 0; i < cfg->nroutes; i++)
		if (sk_addr_eq(&cfg->routes[i].dst, &r->dst) &&
			cfg->routes[i].prefix == r->prefix &&
			sk_addr_eq(&cfg->routes[i].gateway, &r->gateway))
			return true;
	return false;
}

/* Checks that the tables of lib/net have room: for the addresses of each interface, one of which is
 * link-local, and for new interfaces. */
static int
change_check(const struct eng_transport *t, const struct eng_config *next)
{
	unsigned fresh = 0;

	for (unsigned i = 0; i < next->nifs; i++) {
		const struct eng_if_config *f = &next->ifs[i];
		unsigned on = 0, first = i;

		for (unsigned k = 0; k < next->nifs; k++) {
			if (!same_place(&next->ifs[k], f))
				continue;
			first = RTE_MIN(first, k);
			on++;
		}
		if (on >= NET_MAX_ADDRS || change_find(next, f) != f)
			return on >= NET_MAX_ADDRS ? -ENOSPC : -EEXIST;
		fresh += first == i && net_if_index(t->net, f->port, f->vlan) < 0;
	}
	return fresh <= net_if_room(t->net) ? 0 : -ENOSPC;
}

struct change {
	const struct eng_config *was, *next;
};

/* Returns whether the local address of the tuple disappears. */
static bool
change_ends(const void *change, const struct tcp_tuple *ends)
{
	const struct change *ch = change;

	for (unsigned i = 0; i < ch->was->nifs; i++) {
		const struct eng_if_config *f = &ch->was->ifs[i];

		if (sk_addr_eq(&f->addr, &ends->laddr) && change_find(ch->next, f) == NULL)
			return true;
	}
	return false;
}

/* Ends a connection with EADDRNOTAVAIL. */
static void
drop_conn(struct eng_transport *t, struct eng_conn *c)
{
	c->error = -EADDRNOTAVAIL;
	if (c->state == ECONN_BOUND)
		c->link->abort(t, c);
	else if (c->state == ECONN_OPENING || c->state == ECONN_WAITING ||
		 c->state == ECONN_REQUESTED || c->state == ECONN_ESTABLISHED)
		eng_startup_fail(t, c, -EADDRNOTAVAIL);
	else if (c->tcp != NULL)
		tcp_abort(c->tcp, t->now);
}

static uint32_t
change_end_all(struct eng_transport *t, const struct eng_config *was, const struct eng_config *next)
{
	const struct change change = {was, next};
	struct tcp_tuple ends;
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->fresh; i++) {
		struct eng_conn *c = &t->conns[i];

		if (c->state == ECONN_FREE || !eng_conn_alive(c))
			continue;
		ends = eng_conn_ends(t, c);
		if (!change_ends(&change, &ends))
			continue;
		n += c->state == ECONN_BOUND;
		drop_conn(t, c);
	}
	tcp_left_reset(t->tcp, t->now, change_ends, &change);
	return n;
}

/* The check has passed, so only memory that all stages have could be missing; there is none. */
static int
transport_change_net(
	struct eng_transport *t, const struct eng_config *was, const struct eng_config *next)
{
	int rc = 0;

	for (unsigned i = 0; i < was->nroutes; i++)
		if (!change_routes(next, &was->routes[i]))
			net_route_del(t->net, &was->routes[i].dst, was->routes[i].prefix,
				&was->routes[i].gateway);
	for (unsigned i = 0; i < was->nifs; i++)
		if (!change_keeps(next, &was->ifs[i]))
			net_addr_del(t->net,
				net_if_index(t->net, was->ifs[i].port, was->ifs[i].vlan),
				&was->ifs[i].addr);
	for (unsigned i = 0; i < next->nifs && rc == 0; i++)
		if (!change_keeps(was, &next->ifs[i]))
			rc = eng_transport_add_if(t, &next->ifs[i], t->now);
	for (unsigned i = 0; i < next->nroutes && rc == 0; i++)
		if (!change_routes(was, &next->routes[i]))
			rc = net_route_add(t->net, &next->routes[i].dst, next->routes[i].prefix,
				&next->routes[i].gateway);
	return rc;
}

int
eng_transport_change(struct eng_transport *t, struct eng_ctl *m)
{
	const struct eng_config *was = m->change.was, *next = m->change.next;

	switch (m->change.step) {
	case ENG_CHANGE_CHECK:
		return change_check(t, next);
	case ENG_CHANGE_END:
		m->change.ended = change_end_all(t, was, next);
		return 0;
	default:
		change_end_all(t, was, next);
		return transport_change_net(t, was, next);
	}
}
