/* SPDX-License-Identifier: BSD-3-Clause */
/* An IPv4 or IPv6 address as a value: bytes in network order, never a host-order number. */
#ifndef SAKER_BASE_ADDR_H
#define SAKER_BASE_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* IPv4 is kept as an IPv4-mapped IPv6 address (::ffff:a.b.c.d): one compare serves both. */
struct sk_addr {
	uint8_t b[16];
};

#define SK_ADDR_STRLEN 46 /* with the closing NUL */

static inline bool
sk_addr_eq(const struct sk_addr *a, const struct sk_addr *b)
{
	return memcmp(a->b, b->b, 16) == 0;
}

static inline bool
sk_addr_is_v4(const struct sk_addr *a)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

	return memcmp(a->b, mapped, 12) == 0;
}

/* :: or 0.0.0.0 */
bool sk_addr_is_any(const struct sk_addr *a);
bool sk_addr_is_multicast(const struct sk_addr *a);
/* `v4` points to the 4 bytes as they stand in an IPv4 header. */
struct sk_addr sk_addr_v4(const uint8_t v4[4]);
/* Text form of either family to `out`; returns 0, or -EINVAL when `s` is neither. */
int sk_addr_parse(const char *s, struct sk_addr *out);
/* Writes at most SK_ADDR_STRLEN bytes to `buf` and returns `buf`. */
const char *sk_addr_str(const struct sk_addr *a, char buf[SK_ADDR_STRLEN]);

#endif
