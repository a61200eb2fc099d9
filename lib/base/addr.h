/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses. The type and its functions sk_addr_...() belong to libsaker's interface. */
#ifndef SAKER_BASE_ADDR_H
#define SAKER_BASE_ADDR_H

#include "../saker/addr.h"

/* Returns whether an address begins with the first `bits` bits, 0 to 128, of `prefix`. */
bool sk_in_prefix(const struct sk_addr *a, const struct sk_addr *prefix, unsigned bits);
/* Returns the number of leading bits that two addresses have in common, 0 to 128. */
unsigned sk_prefix_common(const struct sk_addr *a, const struct sk_addr *b);
/* Returns the link-local address of a MAC address: the modified EUI-64 (RFC 4291 appendix A) behind
 * fe80::/64. */
struct sk_addr sk_link_local_of_mac(const uint8_t mac[6]);

/* Returns how many bytes of an address name its network, for limits of each network: a host may
 * have all addresses of an IPv6 prefix of 64 bits, but of IPv4 only one. */
static inline size_t
sk_network_len(const struct sk_addr *a)
{
	return sk_addr_is_v4(a) ? sizeof(*a) : 8;
}

/* Returns whether an address is a link-local address of IPv6: fe80::/10. */
static inline bool
sk_is_link_local(const struct sk_addr *a)
{
	return a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80;
}

/* Returns whether an address is a loopback address: ::1 or 127.0.0.0/8. */
static inline bool
sk_is_loopback(const struct sk_addr *a)
{
	static const struct sk_addr one = {.b = {[15] = 1}};

	return sk_addr_eq(a, &one) || (sk_addr_is_v4(a) && a->b[12] == 127);
}

#endif
