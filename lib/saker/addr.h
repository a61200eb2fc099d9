/* SPDX-License-Identifier: BSD-3-Clause */
/* An IPv4 or IPv6 address as a value: 16 bytes in network order, never a number in host order. */
#ifndef SAKER_ADDR_H
#define SAKER_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An IPv4 address has the form of an IPv4-mapped IPv6 address (::ffff:a.b.c.d, RFC 4291 2.5.5.2),
 * so that one comparison serves both families. All bytes zero, or ::ffff:0.0.0.0, is the
 * unspecified address. */
struct sk_addr {
	uint8_t b[16];
};

#define SK_ADDR_STRLEN 46 /* bytes of the longest text form, with its NUL */

/* Returns whether two addresses are equal. */
static inline bool
sk_addr_eq(const struct sk_addr *a, const struct sk_addr *b)
{
	return memcmp(a->b, b->b, 16) == 0;
}

/* Returns whether an address is an IPv4 address. */
static inline bool
sk_addr_is_v4(const struct sk_addr *a)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

	return memcmp(a->b, mapped, 12) == 0;
}

/* Returns whether an address is unspecified: :: or 0.0.0.0. */
bool sk_addr_is_any(const struct sk_addr *a);
/* Returns whether an address is a multicast address: ff00::/8 or 224.0.0.0/4. */
bool sk_addr_is_multicast(const struct sk_addr *a);
/* Returns the address whose 4 bytes, in network order as in an IPv4 header, `v4` points to. */
struct sk_addr sk_addr_v4(const uint8_t v4[4]);
/* Converts the text form of either family (RFC 4291 2.2, dotted decimal). Returns 0, or -EINVAL
 * when `s` is neither: *out is unchanged. */
int sk_addr_parse(const char *s, struct sk_addr *out);
/* Writes the text form (RFC 5952, dotted decimal) to `buf`, and returns `buf`. */
const char *sk_addr_str(const struct sk_addr *a, char buf[SK_ADDR_STRLEN]);

#ifdef __cplusplus
}
#endif

#endif
