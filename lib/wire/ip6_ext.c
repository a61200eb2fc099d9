/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IPv6 extension headers (RFC 8200 section 4). A host passes over the headers that it may ignore,
 * and refuses those that it must not ignore. Headers that require more work are refused as well.
 */
#include "wire_priv.h"

#define HOP_BY_HOP  0
#define ROUTING     43
#define FRAGMENT    44
#define DESTINATION 60
#define MAX_HEADERS 8 /* far more than RFC 8200 section 4.1 recommends to send */

#define OPTION_PAD1 0
/* Section 4.2: without these bits, a host skips an option that it does not implement. */
#define OPTION_MUST 0xc0

/* The first four bytes of each header that is passed over (sections 4.3, 4.4 and 4.6). */
struct ext_hdr {
	uint8_t next;
	uint8_t len; /* in units of 8 bytes, without the first 8 bytes */
	uint8_t routing_type;
	uint8_t segments_left;
} __attribute__((packed));
_Static_assert(sizeof(struct ext_hdr) == 4, "IPv6 extension header");

/* Checks that all options may be skipped (section 4.2). Only padding is implemented. */
static bool
options_may_be_skipped(const uint8_t *p, size_t len)
{
	size_t at = 0;

	while (at < len) {
		if (p[at] == OPTION_PAD1) {
			at++;
			continue;
		}
		if (p[at] & OPTION_MUST || len - at < 2 || p[at + 1] > len - at - 2)
			return false;
		at += 2u + p[at + 1];
	}
	return true;
}

static bool
may_be_passed(uint8_t proto, const uint8_t *p, size_t len)
{
	const struct ext_hdr *h = (const struct ext_hdr *)p;

	/* Section 4.4: with segments left, the packet is on its way to another host. */
	if (proto == ROUTING)
		return h->segments_left == 0;
	return options_may_be_skipped(p + 2, len - 2);
}

int
wire_ip6_skip_extensions(uint8_t *proto, const uint8_t *p, size_t held, bool strict)
{
	size_t at = 0;

	for (unsigned n = 0; n < MAX_HEADERS; n++) {
		const struct ext_hdr *h = (const struct ext_hdr *)(p + at);
		size_t len;

		if (*proto == FRAGMENT)
			return -WIRE_IP_FRAGMENT;
		if (*proto != HOP_BY_HOP && *proto != ROUTING && *proto != DESTINATION)
			return (int)at;
		/* Section 4.3: hop-by-hop options come first or not at all. */
		if (*proto == HOP_BY_HOP && at > 0)
			return -WIRE_IP6_EXTENSION;
		if (held - at < 8)
			return -WIRE_SHORT;
		len = (h->len + 1u) * 8;
		if (len > held - at)
			return -WIRE_SHORT;
		if (strict && !may_be_passed(*proto, p + at, len))
			return -WIRE_IP6_EXTENSION;
		*proto = h->next;
		at += len;
	}
	return -WIRE_IP6_EXTENSION;
}
