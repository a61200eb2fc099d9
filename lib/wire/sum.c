/* SPDX-License-Identifier: BSD-3-Clause */
/* The Internet checksum of pseudo headers, and its final form. lib/base/check.c adds the bytes. */
#include "wire_priv.h"

uint32_t
wire_pseudo_sum(const struct sk_addr *src, const struct sk_addr *dst, uint8_t proto, uint32_t len)
{
	/* RFC 9293 section 3.1 for IPv4, RFC 8200 section 8.1 for IPv6: the sums differ only in the
	 * addresses. */
	struct {
		be32 len;
		uint8_t zero[3];
		uint8_t proto;
	} __attribute__((packed)) tail = {be32_of(len), {0}, proto};
	unsigned from = sk_addr_is_v4(dst) ? 12 : 0;
	uint32_t sum = wire_sum(0, &tail, sizeof(tail));

	sum = wire_sum(sum, src->b + from, 16 - from);
	return wire_sum(sum, dst->b + from, 16 - from);
}

uint16_t
wire_sum_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}
