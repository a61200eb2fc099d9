/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routes: a table in the order of prefix lengths, searched from the front. It is read when a
 * connection begins or the state of a neighbour changes, and never per frame; so a plain table
 * suffices.
 */
#include "net_priv.h"

static bool
is_connected(const struct net_route *r)
{
	return sk_addr_is_any(&r->gateway);
}

static struct sk_addr
masked(const struct sk_addr *addr, unsigned prefix)
{
	struct sk_addr m = *addr;

	for (unsigned i = 0; i < 16; i++) {
		if (i * 8 >= prefix)
			m.b[i] = 0;
		else if (i * 8 + 8 > prefix)
			m.b[i] &= (uint8_t)(0xff00 >> (prefix & 7));
	}
	return m;
}

static int
insert(struct net_stack *n, const struct net_route *r)
{
	unsigned at = 0;

	if (n->nroutes == NET_MAX_ROUTES)
		return -ENOSPC;
	while (at < n->nroutes && n->routes[at].prefix >= r->prefix)
		at++;
	memmove(&n->routes[at + 1], &n->routes[at], (n->nroutes - at) * sizeof(*r));
	n->routes[at] = *r;
	n->nroutes++;
	return 0;
}

int
net_route_connect(struct net_stack *n, int ifindex, const struct sk_addr *addr, unsigned prefix)
{
	struct net_route r = {.dst = masked(addr, prefix), .ifindex = (int16_t)ifindex};

	r.prefix = (uint8_t)prefix;
	return insert(n, &r);
}

void
net_route_disconnect(struct net_stack *n, int ifindex, const struct sk_addr *addr, unsigned prefix)
{
	struct sk_addr dst = masked(addr, prefix);

	for (unsigned i = 0; i < n->nroutes; i++) {
		struct net_route *r = &n->routes[i];

		if (r->prefix != prefix || !is_connected(r) || r->ifindex != ifindex ||
			!sk_addr_eq(&r->dst, &dst))
			continue;
		n->nroutes--;
		memmove(r, r + 1, (n->nroutes - i) * sizeof(*r));
		return;
	}
}

/* RFC 1122 3.2.1.3 (c), (d): the network's number and its broadcast address belong to no host. */
static bool
is_broadcast(const struct net_route *r, const struct sk_addr *dst)
{
	uint32_t host_mask, host;

	if (!sk_addr_is_v4(dst) || r->prefix < 96 || r->prefix >= 127)
		return false;
	host_mask = UINT32_MAX >> (r->prefix - 96);
	host = (uint32_t)dst->b[12] << 24 | (uint32_t)dst->b[13] << 16 | (uint32_t)dst->b[14] << 8 |
	       dst->b[15];
	return (host & host_mask) == 0 || (host & host_mask) == host_mask;
}

/* Returns the best connected route to `dst`, or NULL. `src` decides between equal routes, and
 * always for link-local addresses, which have no meaning without an interface. */
static const struct net_route *
find_connected(const struct net_stack *n, const struct sk_addr *dst, const struct sk_addr *src)
{
	const struct net_route *best = NULL;
	bool choose = sk_addr_is_any(src);

	for (unsigned i = 0; i < n->nroutes; i++) {
		const struct net_route *r = &n->routes[i];

		if (best != NULL && r->prefix < best->prefix)
			break;
		if (!is_connected(r) || !sk_in_prefix(dst, &r->dst, r->prefix))
			continue;
		if (choose || net_if_has(n, r->ifindex, src))
			return r;
		if (best == NULL && !sk_is_link_local(dst))
			best = r;
	}
	return best;
}

int
net_route_find(const struct net_stack *n, const struct sk_addr *dst, const struct sk_addr *src,
	struct net_hop *hop)
{
	static const struct sk_addr any;
	const struct net_route *direct;

	if (net_if_owner(n, dst) >= 0) {
		*hop = (struct net_hop){.ifindex = n->loop};
		return n->loop >= 0 ? 0 : -ENETUNREACH;
	}
	if (!net_addr_is_host(dst))
		return -ENETUNREACH;
	direct = find_connected(n, dst, src);
	if (direct != NULL && is_broadcast(direct, dst))
		return -ENETUNREACH;
	for (unsigned i = 0; i < n->nroutes; i++) {
		const struct net_route *r = &n->routes[i];
		const struct net_route *via;

		if (direct != NULL && r->prefix <= direct->prefix)
			break;
		if (is_connected(r) || !sk_in_prefix(dst, &r->dst, r->prefix))
			continue;
		if (sk_addr_is_v4(&r->gateway) != sk_addr_is_v4(dst))
			continue;
		via = find_connected(n, &r->gateway, sk_is_link_local(&r->gateway) ? &any : src);
		if (via == NULL)
			continue;
		*hop = (struct net_hop){.ifindex = via->ifindex, .addr = r->gateway};
		return 0;
	}
	if (direct == NULL)
		return -ENETUNREACH;
	*hop = (struct net_hop){.ifindex = direct->ifindex, .addr = *dst};
	return 0;
}

/* Fills in *r with a route as the table has it. Returns 0 or -EINVAL. */
static int
make_route(struct net_route *r, const struct sk_addr *dst, unsigned prefix,
	const struct sk_addr *gateway)
{
	bool v4 = sk_addr_is_v4(gateway);

	/* The default route may be written as :: for both families. */
	if (prefix > (v4 ? 32 : 128) || !net_addr_is_host(gateway))
		return -EINVAL;
	if (v4 != sk_addr_is_v4(dst) && prefix != 0)
		return -EINVAL;
	if (v4)
		prefix += 96;
	*r = (struct net_route){.gateway = *gateway, .ifindex = -1};
	r->dst = masked(v4 && !sk_addr_is_v4(dst) ? gateway : dst, prefix);
	r->prefix = (uint8_t)prefix;
	return 0;
}

/* Returns the route through a gateway to the same destination, or NULL. */
static struct net_route *
find_via(struct net_stack *n, const struct net_route *r)
{
	for (unsigned i = 0; i < n->nroutes; i++)
		if (n->routes[i].prefix == r->prefix && !is_connected(&n->routes[i]) &&
			sk_addr_eq(&n->routes[i].dst, &r->dst) &&
			sk_addr_is_v4(&n->routes[i].gateway) == sk_addr_is_v4(&r->gateway))
			return &n->routes[i];
	return NULL;
}

int
net_route_add(struct net_stack *n, const struct sk_addr *dst, unsigned prefix,
	const struct sk_addr *gateway)
{
	static const struct sk_addr any;
	struct net_route r;
	int rc = make_route(&r, dst, prefix, gateway);

	if (rc != 0)
		return rc;
	if (net_if_owner(n, gateway) >= 0 || find_connected(n, gateway, &any) == NULL)
		return -ENETUNREACH;
	if (find_via(n, &r) != NULL)
		return -EEXIST;
	rc = insert(n, &r);
	if (rc == 0)
		net_nb_touch_all(n);
	return rc;
}

int
net_route_del(struct net_stack *n, const struct sk_addr *dst, unsigned prefix,
	const struct sk_addr *gateway)
{
	struct net_route r, *found;
	int rc = make_route(&r, dst, prefix, gateway);

	if (rc != 0)
		return rc;
	found = find_via(n, &r);
	if (found == NULL || !sk_addr_eq(&found->gateway, gateway))
		return -ESRCH;
	n->nroutes--;
	memmove(found, found + 1, (size_t)(&n->routes[n->nroutes] - found) * sizeof(*found));
	net_nb_touch_all(n);
	return 0;
}
