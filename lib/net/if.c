/* SPDX-License-Identifier: BSD-3-Clause */
/* Interfaces and their addresses, and the choice of a source address. */
#include "net_priv.h"

static const struct sk_addr any;

int
net_if_index(const struct net_stack *n, uint16_t port, uint16_t vlan)
{
	uint32_t key = (uint32_t)port << 16 | vlan;

	for (unsigned i = 0; i < n->nifs; i++)
		if (n->if_keys[i] == key)
			return (int)i;
	return -1;
}

unsigned
net_if_room(const struct net_stack *n)
{
	return NET_MAX_IFS - n->nifs;
}

static const struct net_ifaddr *
find_addr(const struct net_if *ifp, const struct sk_addr *addr)
{
	for (unsigned i = 0; i < ifp->naddrs; i++)
		if (sk_addr_eq(&ifp->addrs[i].addr, addr))
			return &ifp->addrs[i];
	return NULL;
}

static bool
if_is_own(const struct net_if *ifp, const struct sk_addr *addr)
{
	const struct net_ifaddr *a = find_addr(ifp, addr);

	return a != NULL && !a->shared;
}

int
net_if_owner(const struct net_stack *n, const struct sk_addr *addr)
{
	for (unsigned i = 0; i < n->nifs; i++)
		if (if_is_own(&n->ifs[i], addr))
			return (int)i;
	return -1;
}

bool
net_if_owns(const struct net_stack *n, int ifindex, const struct sk_addr *addr)
{
	if (n->ifs[ifindex].loop)
		return net_if_owner(n, addr) >= 0;
	return if_is_own(&n->ifs[ifindex], addr);
}

bool
net_if_has(const struct net_stack *n, int ifindex, const struct sk_addr *addr)
{
	return net_if_owns(n, ifindex, addr) || find_addr(&n->ifs[ifindex], addr) != NULL;
}

bool
net_has(const struct net_stack *n, const struct sk_addr *addr)
{
	for (unsigned i = 0; i < n->nifs; i++)
		if (find_addr(&n->ifs[i], addr) != NULL)
			return true;
	return false;
}

static int
new_if(struct net_stack *n, uint16_t port, uint16_t vlan, uint32_t mtu)
{
	if (net_if_index(n, port, vlan) >= 0)
		return -EEXIST;
	if (mtu < 1280 || mtu > 65535 || (vlan > 4094 && vlan != ETH_NO_VLAN))
		return -EINVAL;
	if (n->nifs == NET_MAX_IFS)
		return -ENOSPC;
	n->ifs[n->nifs] = (struct net_if){.port = port, .vlan = vlan, .mtu = mtu};
	n->if_keys[n->nifs] = (uint32_t)port << 16 | vlan;
	return (int)n->nifs++;
}

/* Appends an address; the caller has checked that there is room. */
static void
push_addr(struct net_if *ifp, const struct sk_addr *addr, unsigned prefix)
{
	ifp->addrs[ifp->naddrs++] = (struct net_ifaddr){.addr = *addr, .prefix = (uint8_t)prefix};
}

int
net_if_add(struct net_stack *n, uint16_t port, uint16_t vlan, const uint8_t mac[6], uint32_t mtu)
{
	static const uint8_t zero[6];
	struct sk_addr ll;
	int ifindex;

	if (net_mac_is_multicast(mac) || memcmp(mac, zero, 6) == 0)
		return -EINVAL;
	if (n->nroutes == NET_MAX_ROUTES)
		return -ENOSPC;
	ifindex = new_if(n, port, vlan, mtu);
	if (ifindex < 0)
		return ifindex;
	memcpy(n->ifs[ifindex].mac, mac, 6);
	ll = sk_link_local_of_mac(mac);
	push_addr(&n->ifs[ifindex], &ll, 64);
	net_route_connect(n, ifindex, &ll, 64);
	return ifindex;
}

int
net_if_add_loop(struct net_stack *n, uint16_t port, uint32_t mtu)
{
	static const uint8_t zero[6];
	int ifindex;

	if (n->loop >= 0)
		return -EEXIST;
	ifindex = new_if(n, port, ETH_NO_VLAN, mtu);
	if (ifindex < 0)
		return ifindex;
	n->ifs[ifindex].loop = true;
	n->loop = ifindex;
	/* The one neighbour of every path over the interface. */
	net_neighbor_add(n, ifindex, &any, zero);
	net_nb_touch_all(n);
	return ifindex;
}

static int
addr_add(struct net_stack *n, int ifindex, const struct sk_addr *addr, unsigned prefix, bool shared)
{
	bool v4 = sk_addr_is_v4(addr);
	struct net_if *ifp;
	int rc;

	if (ifindex < 0 || (unsigned)ifindex >= n->nifs || n->ifs[ifindex].loop)
		return -EINVAL;
	if (prefix > (v4 ? 32 : 128) || !net_addr_is_host(addr))
		return -EINVAL;
	if (v4)
		prefix += 96;
	ifp = &n->ifs[ifindex];
	if (find_addr(ifp, addr) != NULL)
		return -EEXIST;
	if (ifp->naddrs == NET_MAX_ADDRS)
		return -ENOSPC;
	rc = net_route_connect(n, ifindex, addr, prefix);
	if (rc != 0)
		return rc;
	push_addr(ifp, addr, prefix);
	ifp->addrs[ifp->naddrs - 1].shared = shared;
	net_nb_touch_all(n);
	return 0;
}

int
net_addr_add(
	struct net_stack *n, int ifindex, const struct sk_addr *addr, unsigned prefix, uint64_t now)
{
	int rc = addr_add(n, ifindex, addr, prefix, false);

	if (rc != 0)
		return rc;
	if (sk_addr_is_v4(addr))
		net_arp_announce(n, ifindex, addr);
	else
		net_nd_announce(n, ifindex, addr);
	return 0;
}

int
net_addr_share(struct net_stack *n, int ifindex, const struct sk_addr *addr, unsigned prefix)
{
	return addr_add(n, ifindex, addr, prefix, true);
}

int
net_addr_del(struct net_stack *n, int ifindex, const struct sk_addr *addr)
{
	const struct net_ifaddr *a;
	struct net_if *ifp;
	unsigned i, prefix;

	if (ifindex < 0 || (unsigned)ifindex >= n->nifs)
		return -EINVAL;
	ifp = &n->ifs[ifindex];
	a = find_addr(ifp, addr);
	if (a == NULL)
		return -EADDRNOTAVAIL;
	prefix = a->prefix;
	i = (unsigned)(a - ifp->addrs);
	ifp->naddrs--;
	memmove(&ifp->addrs[i], &ifp->addrs[i + 1], (ifp->naddrs - i) * sizeof(ifp->addrs[0]));
	net_route_disconnect(n, ifindex, addr, prefix);
	net_nb_touch_all(n);
	return 0;
}

const struct sk_addr *
net_if_source(const struct net_stack *n, int ifindex, const struct sk_addr *dst)
{
	const struct net_if *ifp = &n->ifs[ifindex];
	const struct sk_addr *best = NULL;
	unsigned best_score = 0;

	for (unsigned i = 0; i < ifp->naddrs; i++) {
		const struct sk_addr *a = &ifp->addrs[i].addr;
		unsigned score;

		if (sk_addr_is_v4(a) != sk_addr_is_v4(dst) || ifp->addrs[i].shared)
			continue;
		/* The scope of the source is at least that of the destination. */
		if (sk_is_link_local(a) && !sk_is_link_local(dst))
			continue;
		score = 1 + sk_prefix_common(a, dst);
		if (score > best_score) {
			best_score = score;
			best = a;
		}
	}
	return best;
}

struct sk_addr
net_solicited_node(const struct sk_addr *addr)
{
	struct sk_addr a = {{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0xff}};

	memcpy(a.b + 13, addr->b + 13, 3);
	return a;
}

void
net_multicast_mac(uint8_t mac[6], const struct sk_addr *group)
{
	mac[0] = mac[1] = 0x33;
	memcpy(mac + 2, group->b + 12, 4);
}
