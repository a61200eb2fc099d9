/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses: the conversion from and to socket addresses, and the choice of a local address.
 *
 * Saker's interfaces are not interfaces of the kernel, so that the scope of a link-local address
 * cannot be the kernel's index. Scope n names the n-th link-local address of the device; a scope
 * without such an address names the first.
 */
#include <string.h>

#include "cm_priv.h"

/* Returns the unspecified address of the same family. */
static struct sk_addr
any_like(const struct sk_addr *a)
{
	static const uint8_t zero[4];
	struct sk_addr any;

	if (sk_addr_is_v4(a))
		return sk_addr_v4(zero);
	memset(&any, 0, sizeof(any));
	return any;
}

int
vb_cm_addr_from(const struct sockaddr *sa, struct sk_addr *a, uint16_t *port)
{
	if (sa == NULL)
		return EINVAL;
	if (sa->sa_family == AF_INET) {
		struct sockaddr_in in;
		uint8_t v4[4];

		memcpy(&in, sa, sizeof(in));
		memcpy(v4, &in.sin_addr, sizeof(v4));
		*a = sk_addr_v4(v4);
		*port = ntohs(in.sin_port);
	} else if (sa->sa_family == AF_INET6) {
		struct sockaddr_in6 in6;

		memcpy(&in6, sa, sizeof(in6));
		memcpy(a->b, &in6.sin6_addr, sizeof(a->b));
		*port = ntohs(in6.sin6_port);
	} else {
		return EAFNOSUPPORT;
	}
	if (sk_is_loopback(a))
		*a = any_like(a);
	return 0;
}

void
vb_cm_addr_to(const struct sk_addr *a, uint16_t port, uint32_t scope, struct sockaddr_storage *sa)
{
	memset(sa, 0, sizeof(*sa));
	if (sk_addr_is_v4(a)) {
		struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

		memcpy(&in.sin_addr, a->b + 12, 4);
		memcpy(sa, &in, sizeof(in));
	} else {
		struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

		memcpy(&in6.sin6_addr, a->b, sizeof(a->b));
		in6.sin6_scope_id = sk_is_link_local(a) ? scope : 0;
		memcpy(sa, &in6, sizeof(in6));
	}
}

uint32_t
vb_cm_addr_scope(const struct sockaddr *sa)
{
	struct sockaddr_in6 in6;

	if (sa->sa_family != AF_INET6)
		return 0;
	memcpy(&in6, sa, sizeof(in6));
	return in6.sin6_scope_id;
}

uint16_t
vb_cm_addr_port(const struct sockaddr *sa)
{
	struct sk_addr a;
	uint16_t port = 0;

	return vb_cm_addr_from(sa, &a, &port) == 0 ? port : 0;
}

void
vb_cm_addr_set_port(struct sockaddr *sa, uint16_t port)
{
	/* Both families have the port at the same offset. */
	_Static_assert(
		offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port),
		"the port has one offset in both families");
	uint16_t be = htons(port);

	memcpy((uint8_t *)sa + offsetof(struct sockaddr_in, sin_port), &be, sizeof(be));
}

bool
vb_cm_addr_is_local(const struct saker_device *d, const struct sk_addr *a)
{
	for (unsigned i = 0; i < d->naddrs && i < 8; i++)
		if (sk_addr_eq(a, &d->addrs[i]))
			return true;
	return false;
}

int
vb_cm_addr_choose(const struct saker_device *d, const struct sk_addr *remote, uint32_t scope,
	struct sk_addr *local)
{
	bool any = sk_addr_is_any(remote), ll = sk_is_link_local(remote);
	unsigned best = 0, nth = 0;
	bool found = false;

	for (unsigned i = 0; i < d->naddrs && i < 8; i++) {
		const struct sk_addr *a = &d->addrs[i];
		unsigned bits;

		if (sk_addr_is_v4(a) != sk_addr_is_v4(remote) ||
			(!any && sk_is_link_local(a) != ll))
			continue;
		nth++;
		/* For a link-local peer the scope decides, else the longest common prefix. */
		bits = ll ? 1 + (nth == scope) : 1 + (any ? 0 : sk_prefix_common(a, remote));
		if (bits <= best)
			continue;
		best = bits;
		*local = *a;
		found = true;
	}
	return found ? 0 : ENETUNREACH;
}
