/* SPDX-License-Identifier: BSD-3-Clause */
/* Text forms and classes of addresses. libc converts the text forms of RFC 4291 and RFC 5952. */
#include "addr.h"

#include <arpa/inet.h>
#include <errno.h>

bool
sk_addr_is_any(const struct sk_addr *a)
{
	static const uint8_t zero[16];

	if (sk_addr_is_v4(a))
		return memcmp(a->b + 12, zero, 4) == 0;
	return memcmp(a->b, zero, 16) == 0;
}

bool
sk_addr_is_multicast(const struct sk_addr *a)
{
	if (sk_addr_is_v4(a))
		return (a->b[12] & 0xf0) == 0xe0; /* 224.0.0.0/4 */
	return a->b[0] == 0xff;
}

bool
sk_in_prefix(const struct sk_addr *a, const struct sk_addr *prefix, unsigned bits)
{
	unsigned bytes = bits / 8, rest = bits % 8;

	if (memcmp(a->b, prefix->b, bytes) != 0)
		return false;
	return rest == 0 || ((a->b[bytes] ^ prefix->b[bytes]) >> (8 - rest)) == 0;
}

unsigned
sk_prefix_common(const struct sk_addr *a, const struct sk_addr *b)
{
	for (unsigned i = 0; i < 16; i++) {
		unsigned diff = a->b[i] ^ b->b[i];

		if (diff != 0)
			return i * 8 + (unsigned)__builtin_clz(diff) - 24;
	}
	return 128;
}

struct sk_addr
sk_link_local_of_mac(const uint8_t mac[6])
{
	return (struct sk_addr){{0xfe, 0x80, 0, 0, 0, 0, 0, 0, mac[0] ^ 0x02, mac[1], mac[2], 0xff,
		0xfe, mac[3], mac[4], mac[5]}};
}

struct sk_addr
sk_addr_v4(const uint8_t v4[4])
{
	struct sk_addr a = {.b = {[10] = 0xff, [11] = 0xff}};

	memcpy(a.b + 12, v4, 4);
	return a;
}

int
sk_addr_parse(const char *s, struct sk_addr *out)
{
	uint8_t v4[4];
	uint8_t v6[16];

	if (inet_pton(AF_INET, s, v4) == 1) {
		*out = sk_addr_v4(v4);
		return 0;
	}
	if (inet_pton(AF_INET6, s, v6) == 1) {
		memcpy(out->b, v6, sizeof(v6));
		return 0;
	}
	return -EINVAL;
}

const char *
sk_addr_str(const struct sk_addr *a, char buf[SK_ADDR_STRLEN])
{
	if (sk_addr_is_v4(a))
		inet_ntop(AF_INET, a->b + 12, buf, SK_ADDR_STRLEN);
	else
		inet_ntop(AF_INET6, a->b, buf, SK_ADDR_STRLEN);
	return buf;
}
