/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The neighbour table, for ARP and neighbour discovery: reachability states (RFC 4861 7.3), frames
 * that wait, and the removal of neighbours when the table is full. Paths compare a neighbour's
 * `generation`: it changes whenever they have to be resolved again, and is 0 while nothing may be
 * sent to the neighbour.
 *
 * Any station can create neighbours: it claims addresses, or makes us solicit them. So the
 * neighbours are in lists by how much they deserve to stay, and the creation of one never costs a
 * search.
 */
#include "net_priv.h"

static uint32_t
next_generation(struct net_stack *n)
{
	if (++n->generation == 0)
		n->generation = 1;
	return n->generation;
}

static void
list_remove(struct net_stack *n, struct neighbor *nb)
{
	struct nb_list *l = &n->lists[nb->class];

	*(nb->prev != 0 ? &n->neighbors[nb->prev - 1].next : &l->head) = nb->next;
	*(nb->next != 0 ? &n->neighbors[nb->next - 1].prev : &l->tail) = nb->prev;
	l->count--;
}

static void
list_append(struct net_stack *n, struct neighbor *nb, enum nb_class class)
{
	struct nb_list *l = &n->lists[class];
	uint16_t id = (uint16_t)(net_nb_index(n, nb) + 1);

	nb->class = class;
	nb->next = 0;
	nb->prev = l->tail;
	*(l->tail != 0 ? &n->neighbors[l->tail - 1].next : &l->head) = id;
	l->tail = id;
	l->count++;
}

static void
set_class(struct net_stack *n, struct neighbor *nb, enum nb_class class)
{
	list_remove(n, nb);
	list_append(n, nb, class);
}

static uint16_t
neighbor_bucket_of(const struct net_stack *n, int ifindex, const struct sk_addr *addr)
{
	struct {
		struct sk_addr addr;
		uint64_t ifindex;
	} k = {*addr, (uint64_t)ifindex};

	return (uint16_t)(sk_siphash(&n->key, &k, sizeof(k)) >> (64 - NET_HASH_BITS));
}

struct neighbor *
net_nb_find(struct net_stack *n, int ifindex, const struct sk_addr *addr)
{
	uint16_t at = n->buckets[neighbor_bucket_of(n, ifindex, addr)];

	while (at != 0) {
		struct neighbor *nb = &n->neighbors[at - 1];

		if (nb->ifindex == ifindex && sk_addr_eq(&nb->addr, addr))
			return nb;
		at = nb->hash_next;
	}
	return NULL;
}

static void
neighbor_release_held(struct net_stack *n, struct neighbor *nb, const uint8_t *mac)
{
	unsigned count = nb->nheld;

	nb->nheld = 0;
	for (unsigned i = 0; i < count; i++)
		n->ops.release(n->ctx, n->ifs[nb->ifindex].port, nb->held[i], mac);
	if (mac == NULL)
		sk_count_n(n->counters, NET_HELD_DROPPED, count);
}

void
net_nb_drop_held(struct net_stack *n, struct neighbor *nb)
{
	neighbor_release_held(n, nb, NULL);
}

static void
nb_free(struct net_stack *n, struct neighbor *nb)
{
	uint16_t *at = &n->buckets[nb->bucket];
	uint16_t id = (uint16_t)(net_nb_index(n, nb) + 1);

	while (*at != id)
		at = &n->neighbors[*at - 1].hash_next;
	*at = nb->hash_next;
	sk_timer_stop(&n->wheel, &nb->timer);
	nb->generation = 0;
	nb->state = NB_FREE;
	set_class(n, nb, NB_SPARE);
	net_nb_drop_held(n, nb);
}

static struct neighbor *
oldest(struct net_stack *n, enum nb_class class)
{
	uint16_t id = n->lists[class].head;

	return id != 0 ? &n->neighbors[id - 1] : NULL;
}

static void
evict(struct net_stack *n, struct neighbor *nb)
{
	sk_count(n->counters, NET_NEIGHBOR_FULL);
	nb_free(n, nb);
}

/* Makes sure that NB_SPARE has an entry. A neighbour that no path uses may be removed for any
 * other; a used one only for a path or the user. Returns false when there is no entry. */
static bool
neighbor_make_room(struct net_stack *n, enum nb_class class)
{
	struct neighbor *nb;

	if (class == NB_RESOLVING && n->lists[NB_RESOLVING].count >= NET_MAX_RESOLVING)
		evict(n, oldest(n, NB_RESOLVING));
	if (n->lists[NB_SPARE].count != 0)
		return true;
	nb = oldest(n, NB_LEARNED);
	if (nb == NULL && class != NB_LEARNED) {
		nb = oldest(n, NB_RESOLVING);
		if (nb == NULL)
			nb = oldest(n, NB_USED);
	}
	if (nb == NULL) {
		sk_count(n->counters, NET_NEIGHBOR_FULL);
		return false;
	}
	evict(n, nb);
	return true;
}

static struct neighbor *
nb_new(struct net_stack *n, int ifindex, const struct sk_addr *addr, enum nb_class class)
{
	struct neighbor *nb;

	if (!neighbor_make_room(n, class))
		return NULL;
	nb = oldest(n, NB_SPARE);
	nb->incarnation += NET_MAX_NEIGHBORS;
	nb->ifindex = (int16_t)ifindex;
	nb->addr = *addr;
	nb->state = NB_INCOMPLETE;
	nb->solicits = 0;
	memset(nb->mac, 0, sizeof(nb->mac));
	nb->bucket = neighbor_bucket_of(n, ifindex, addr);
	nb->hash_next = n->buckets[nb->bucket];
	n->buckets[nb->bucket] = (uint16_t)(net_nb_index(n, nb) + 1);
	set_class(n, nb, class);
	return nb;
}

void
net_nb_init(struct net_stack *n)
{
	for (unsigned i = 0; i < NET_MAX_NEIGHBORS; i++)
		list_append(n, &n->neighbors[i], NB_SPARE);
}

static void
neighbor_solicit(struct net_stack *n, struct neighbor *nb, uint64_t now)
{
	const uint8_t *mac = nb->state == NB_PROBE ? nb->mac : NULL;

	nb->solicits++;
	sk_timer_set(&n->wheel, &nb->timer, now + NET_RETRANS_TIMER);
	if (sk_addr_is_v4(&nb->addr))
		net_arp_solicit(n, nb->ifindex, &nb->addr, mac);
	else
		net_nd_solicit(n, nb->ifindex, &nb->addr, mac);
}

/* The MAC address is valid, and was confirmed now. */
static void
become_reachable(struct net_stack *n, struct neighbor *nb, uint64_t now)
{
	if (nb->generation == 0)
		nb->generation = next_generation(n);
	nb->state = NB_REACHABLE;
	nb->confirmed = now;
	sk_timer_set(&n->wheel, &nb->timer, now + NET_REACHABLE_TIME);
}

/* The MAC address is valid, but has to be confirmed soon after its next use. */
static void
become_stale(struct net_stack *n, struct neighbor *nb)
{
	nb->generation = next_generation(n);
	nb->state = NB_STALE;
	sk_timer_stop(&n->wheel, &nb->timer);
}

static void
become_failed(struct net_stack *n, struct neighbor *nb, uint64_t now)
{
	sk_count(n->counters, NET_NEIGHBOR_FAILED);
	nb->generation = 0;
	nb->state = NB_FAILED;
	sk_timer_set(&n->wheel, &nb->timer, now + NET_FAILED_TIME);
	net_nb_drop_held(n, nb);
}

/* RFC 4861 7.3.3: the next packet begins a new resolution. */
static void
neighbor_lose(struct net_stack *n, struct neighbor *nb)
{
	sk_count(n->counters, NET_NEIGHBOR_FAILED);
	nb_free(n, nb);
}

void
net_nb_fire(void *ctx, struct sk_timer *t, uint64_t now)
{
	struct net_stack *n = ctx;
	struct neighbor *nb = SK_CONTAINER(t, struct neighbor, timer);

	switch ((enum nb_state)nb->state) {
	case NB_INCOMPLETE:
		if (nb->solicits < NET_MAX_SOLICIT)
			neighbor_solicit(n, nb, now);
		else
			become_failed(n, nb, now);
		break;
	case NB_REACHABLE:
		if (nb->confirmed + NET_REACHABLE_TIME > now) {
			sk_timer_set(&n->wheel, t, nb->confirmed + NET_REACHABLE_TIME);
			set_class(n, nb, (enum nb_class)nb->class);
		} else {
			become_stale(n, nb);
		}
		break;
	case NB_DELAY:
		nb->state = NB_PROBE;
		nb->solicits = 0;
		neighbor_solicit(n, nb, now);
		break;
	case NB_PROBE:
		if (nb->solicits < NET_MAX_SOLICIT)
			neighbor_solicit(n, nb, now);
		else
			neighbor_lose(n, nb);
		break;
	case NB_FAILED:
		nb_free(n, nb);
		break;
	case NB_FREE:
	case NB_STALE:
	case NB_STATIC:
		break;
	}
}

struct neighbor *
net_nb_get(struct net_stack *n, int ifindex, const struct sk_addr *addr)
{
	struct neighbor *nb = net_nb_find(n, ifindex, addr);

	return nb != NULL ? nb : nb_new(n, ifindex, addr, NB_RESOLVING);
}

int
net_nb_use(struct net_stack *n, struct neighbor *nb, uint64_t now)
{
	if (nb->state == NB_FAILED)
		return -EHOSTUNREACH;
	if (nb->state == NB_INCOMPLETE) {
		if (nb->solicits == 0)
			neighbor_solicit(n, nb, now);
		return 1;
	}
	if (nb->state == NB_STATIC)
		return 0;
	if (nb->state == NB_STALE) {
		nb->state = NB_DELAY;
		sk_timer_set(&n->wheel, &nb->timer, now + NET_DELAY_FIRST_PROBE);
	}
	set_class(n, nb, NB_USED);
	return 0;
}

/* Stores the first MAC address of a neighbour, and sends the waiting frames. */
static void
resolved(struct net_stack *n, struct neighbor *nb, const uint8_t *mac, bool solicited, uint64_t now)
{
	bool wanted = nb->solicits != 0;

	memcpy(nb->mac, mac, 6);
	if (solicited)
		become_reachable(n, nb, now);
	else
		become_stale(n, nb);
	set_class(n, nb, wanted ? NB_USED : NB_LEARNED);
	if (nb->nheld == 0)
		return;
	net_nb_use(n, nb, now);
	neighbor_release_held(n, nb, nb->mac);
}

static bool
is_unresolved(const struct neighbor *nb)
{
	return nb->state == NB_INCOMPLETE || nb->state == NB_FAILED;
}

static void
move_to(struct net_stack *n, struct neighbor *nb, const uint8_t *mac)
{
	memcpy(nb->mac, mac, 6);
	become_stale(n, nb);
}

void
net_nb_learn(struct net_stack *n, int ifindex, const struct sk_addr *addr, const uint8_t mac[6],
	uint64_t now)
{
	struct neighbor *nb = net_nb_find(n, ifindex, addr);

	if (nb == NULL)
		nb = nb_new(n, ifindex, addr, NB_LEARNED);
	if (nb == NULL || nb->state == NB_STATIC)
		return;
	if (is_unresolved(nb))
		resolved(n, nb, mac, false, now);
	else if (memcmp(nb->mac, mac, 6) != 0)
		move_to(n, nb, mac);
}

void
net_nb_answer(struct net_stack *n, struct neighbor *nb, const struct nb_news *news, uint64_t now)
{
	bool differs = news->mac != NULL && memcmp(nb->mac, news->mac, 6) != 0;

	if (nb->state == NB_STATIC)
		return;
	if (is_unresolved(nb)) {
		if (news->mac != NULL)
			resolved(n, nb, news->mac, news->solicited, now);
		return;
	}
	if (differs && !news->override) {
		if (nb->state == NB_REACHABLE)
			become_stale(n, nb);
		return;
	}
	if (differs)
		move_to(n, nb, news->mac);
	if (news->solicited)
		become_reachable(n, nb, now);
}

void
net_nb_confirm(struct net_stack *n, struct neighbor *nb, uint64_t now)
{
	if (nb->state == NB_REACHABLE)
		nb->confirmed = now;
	else if (nb->state == NB_DELAY || nb->state == NB_PROBE)
		become_reachable(n, nb, now);
}

void
net_nb_touch_all(struct net_stack *n)
{
	for (unsigned i = 0; i < NET_MAX_NEIGHBORS; i++)
		if (n->neighbors[i].generation != 0)
			n->neighbors[i].generation = next_generation(n);
}

void
net_port_forget(struct net_stack *n, uint16_t port)
{
	for (unsigned i = 0; i < NET_MAX_NEIGHBORS; i++) {
		struct neighbor *nb = &n->neighbors[i];

		if (nb->state != NB_FREE && nb->state != NB_STATIC &&
			n->ifs[nb->ifindex].port == port)
			nb_free(n, nb);
	}
}

int
net_neighbor_add(struct net_stack *n, int ifindex, const struct sk_addr *addr, const uint8_t mac[6])
{
	struct neighbor *nb;

	if (ifindex < 0 || (unsigned)ifindex >= n->nifs || net_mac_is_multicast(mac) ||
		sk_addr_is_multicast(addr))
		return -EINVAL;
	nb = net_nb_find(n, ifindex, addr);
	if ((nb == NULL || nb->state != NB_STATIC) &&
		n->lists[NB_PINNED].count >= NET_MAX_NEIGHBORS / 2)
		return -ENOSPC;
	if (nb == NULL)
		nb = nb_new(n, ifindex, addr, NB_PINNED);
	sk_timer_stop(&n->wheel, &nb->timer);
	set_class(n, nb, NB_PINNED);
	memcpy(nb->mac, mac, 6);
	nb->state = NB_STATIC;
	nb->generation = next_generation(n);
	neighbor_release_held(n, nb, nb->mac);
	return 0;
}

unsigned
net_neighbors(const struct net_stack *n, struct net_neighbor_view *out, unsigned max)
{
	static const char *const names[] = {
		[NB_INCOMPLETE] = "probing",
		[NB_REACHABLE] = "reachable",
		[NB_STALE] = "stale",
		[NB_DELAY] = "stale",
		[NB_PROBE] = "probing",
		[NB_FAILED] = "failed",
		[NB_STATIC] = "static",
	};

	unsigned found = 0;

	for (unsigned i = 0; i < NET_MAX_NEIGHBORS && found < max; i++) {
		const struct neighbor *nb = &n->neighbors[i];
		struct net_neighbor_view *v = &out[found];

		if (nb->state == NB_FREE || nb->ifindex == n->loop)
			continue;
		v->port = n->ifs[nb->ifindex].port;
		v->vlan = n->ifs[nb->ifindex].vlan;
		memcpy(v->mac, nb->mac, 6);
		v->addr = nb->addr;
		v->state = names[nb->state];
		found++;
	}
	return found;
}

bool
net_nb_may_answer(struct net_stack *n, int ifindex, const struct sk_addr *from, uint64_t now)
{
	const struct neighbor *nb = net_nb_find(n, ifindex, from);
	bool used = nb != NULL && (nb->class == NB_USED || nb->class == NB_PINNED);

	return sk_bucket_take(
		&n->answers_full[used], now, NET_S / NET_ANSWER_RATE, NET_ANSWER_BURST);
}
