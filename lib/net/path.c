/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Paths: the Ethernet and IP headers of a connection, made once and copied before each segment. One
 * comparison per frame checks that they are still valid.
 *
 * The field of the IPv4 checksum in the template holds the folded sum of the template itself
 * (length, identification, ECN and checksum 0), so that a frame adds three words to it.
 */
#include "net_priv.h"

#define IP4_PROTO  9
#define IP4_SRC    12
#define IP4_DST    16
#define IP6_LENGTH 4
#define IP6_NEXT   6
#define IP6_SRC    8
#define IP6_DST    24

static inline uint16_t
swap16(uint16_t v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap16(v);
#else
	return v;
#endif
}

static inline uint16_t
load16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, 2);
	return v;
}

static inline void
store16(uint8_t *p, uint16_t v)
{
	memcpy(p, &v, 2);
}

/* Writes the IP header behind the Ethernet header. */
static void
path_fill_ip(struct net_path *p, const struct wire_ip *ip)
{
	uint8_t *l3 = p->head + p->l2_len;

	p->l3_len = (uint8_t)wire_ip_emit(l3, ip);
	if (p->l3_len == IP4_LEN) {
		store16(l3 + IP4_TOTAL_OFFSET, 0);
		store16(l3 + IP4_CKSUM_OFFSET, 0);
		store16(l3 + IP4_CKSUM_OFFSET, (uint16_t)~wire_sum_fold(wire_sum(0, l3, IP4_LEN)));
	}
}

static void
path_fill(struct net_stack *n, struct net_path *p, int ifindex, const struct wire_ip *ip)
{
	const struct net_if *ifp = &n->ifs[ifindex];
	struct wire_eth eth = {.vlan = ifp->vlan, .pcp = p->class.pcp};

	eth.type = sk_addr_is_v4(&ip->dst) ? ETH_IPV4 : ETH_IPV6;
	memcpy(eth.src, ifp->mac, 6);
	p->ifindex = (int16_t)ifindex;
	p->port = ifp->port;
	p->mtu = ifp->mtu;
	p->l2_len = (uint8_t)wire_eth_emit(p->head, &eth);
	path_fill_ip(p, ip);
}

/* Reads the IP header back that path_fill() wrote. */
static struct wire_ip
path_ip(const struct net_path *p)
{
	const uint8_t *l3 = p->head + p->l2_len;
	struct wire_ip ip = {.ttl = NET_TTL, .dscp = p->class.dscp, .flow = p->class.flow};

	if (p->l3_len == IP4_LEN) {
		ip.proto = l3[IP4_PROTO];
		ip.src = sk_addr_v4(l3 + IP4_SRC);
		ip.dst = sk_addr_v4(l3 + IP4_DST);
	} else {
		ip.proto = l3[IP6_NEXT];
		memcpy(ip.src.b, l3 + IP6_SRC, 16);
		memcpy(ip.dst.b, l3 + IP6_DST, 16);
	}
	return ip;
}

int
net_path_init(struct net_stack *n, struct net_path *p, struct sk_addr *src,
	const struct sk_addr *dst, uint8_t proto, uint64_t now)
{
	struct wire_ip ip = {.dst = *dst, .proto = proto, .ttl = NET_TTL};
	const struct sk_addr *choice;
	struct net_hop hop;
	int rc;

	if (!sk_addr_is_any(src) && (!net_has(n, src) || sk_addr_is_v4(src) != sk_addr_is_v4(dst)))
		return -EADDRNOTAVAIL;
	rc = net_route_find(n, dst, src, &hop);
	if (rc != 0)
		return rc;
	if (sk_addr_is_any(src)) {
		choice = hop.ifindex == n->loop ? dst : net_if_source(n, hop.ifindex, dst);
		if (choice == NULL)
			return -EADDRNOTAVAIL;
		*src = *choice;
	}
	ip.src = *src;
	/* RFC 6437: a flow label that an attacker cannot guess, one per path. */
	n->flow++;
	ip.flow = (uint32_t)sk_siphash(&n->key, &n->flow, sizeof(n->flow)) & 0xfffff;
	memset(p, 0, sizeof(*p));
	p->class.flow = ip.flow;
	path_fill(n, p, hop.ifindex, &ip);
	return 0;
}

void
net_path_set_class(struct net_path *p, const struct net_class *class)
{
	uint32_t flow = class->flow != 0 ? class->flow : p->class.flow;
	struct wire_eth eth;
	struct wire_ip ip;

	p->class = *class;
	p->class.flow = flow;
	wire_eth_parse(&eth, p->head, p->l2_len);
	eth.pcp = class->pcp;
	wire_eth_emit(p->head, &eth);
	ip = path_ip(p);
	path_fill_ip(p, &ip);
}

static int
path_resolve(struct net_stack *n, struct net_path *p, uint64_t now)
{
	struct wire_ip ip = path_ip(p);
	struct neighbor *nb;
	struct net_hop hop;
	int rc;

	p->generation = 0;
	if (!net_has(n, &ip.src) || net_route_find(n, &ip.dst, &ip.src, &hop) != 0)
		return -EHOSTUNREACH;
	if (hop.ifindex != p->ifindex)
		path_fill(n, p, hop.ifindex, &ip);
	nb = net_nb_get(n, hop.ifindex, &hop.addr);
	p->neighbor = net_nb_handle(n, nb);
	rc = net_nb_use(n, nb, now);
	if (rc == 0) {
		p->generation = nb->generation;
		memcpy(p->head, nb->mac, 6);
	}
	return rc;
}

int
net_path_check(struct net_stack *n, struct net_path *p, uint64_t now)
{
	const struct neighbor *nb = &n->neighbors[p->neighbor % NET_MAX_NEIGHBORS];

	if (__builtin_expect(p->generation == nb->generation && p->generation != 0, 1))
		return 0;
	return path_resolve(n, p, now);
}

void
net_hold(struct net_stack *n, const struct net_path *p, void *frame)
{
	struct neighbor *nb = net_nb_of_handle(n, p->neighbor);

	if (nb != NULL && nb->generation != 0) {
		n->ops.release(n->ctx, p->port, frame, nb->mac);
		return;
	}
	if (nb == NULL || nb->state != NB_INCOMPLETE) {
		sk_count(n->counters, NET_HELD_DROPPED);
		n->ops.release(n->ctx, p->port, frame, NULL);
		return;
	}
	if (nb->nheld == NET_NEIGHBOR_HELD) {
		void *first = nb->held[0];

		nb->nheld--;
		memmove(&nb->held[0], &nb->held[1], nb->nheld * sizeof(nb->held[0]));
		sk_count(n->counters, NET_HELD_DROPPED);
		n->ops.release(n->ctx, p->port, first, NULL);
	}
	nb->held[nb->nheld++] = frame;
}

void
net_path_confirm(struct net_stack *n, const struct net_path *p, uint64_t now)
{
	struct neighbor *nb = &n->neighbors[p->neighbor % NET_MAX_NEIGHBORS];

	/* A changed generation may mean a changed MAC address, which the peer's data does not
	 * confirm. */
	if (p->generation == nb->generation && p->generation != 0)
		net_nb_confirm(n, nb, now);
}

static inline void
copy_head(uint8_t *at, const struct net_path *p)
{
	/* With constant lengths, each copy becomes a few moves. */
	switch (p->l2_len + p->l3_len) {
	case ETH_LEN + IP4_LEN:
		memcpy(at, p->head, ETH_LEN + IP4_LEN);
		break;
	case ETH_MAX + IP4_LEN:
		memcpy(at, p->head, ETH_MAX + IP4_LEN);
		break;
	case ETH_LEN + IP6_LEN:
		memcpy(at, p->head, ETH_LEN + IP6_LEN);
		break;
	default:
		memcpy(at, p->head, ETH_MAX + IP6_LEN);
		break;
	}
}

unsigned
net_head_emit(uint8_t *at, const struct net_path *p, uint32_t payload_len, uint8_t ecn,
	uint16_t ip_id, bool hw_cksum)
{
	uint8_t *l3 = at + p->l2_len;
	uint16_t total, id;
	uint32_t sum;

	copy_head(at, p);
	if (p->l3_len == IP6_LEN) {
		l3[1] |= (uint8_t)(ecn << 4);
		store16(l3 + IP6_LENGTH, swap16((uint16_t)payload_len));
		return (unsigned)p->l2_len + IP6_LEN;
	}
	total = swap16((uint16_t)(IP4_LEN + payload_len));
	id = swap16(ip_id);
	sum = load16(p->head + p->l2_len + IP4_CKSUM_OFFSET);
	l3[IP4_TOS_OFFSET] |= ecn;
	store16(l3 + IP4_TOTAL_OFFSET, total);
	store16(l3 + IP4_ID_OFFSET, id);
	sum += (uint32_t)total + id + swap16(ecn);
	store16(l3 + IP4_CKSUM_OFFSET, hw_cksum ? 0 : wire_sum_fold(sum));
	return (unsigned)p->l2_len + IP4_LEN;
}
