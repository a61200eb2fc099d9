/* SPDX-License-Identifier: BSD-3-Clause */
/* The checksum of a datagram that a test builds. */
#ifndef TEST_UDP_SUM_H
#define TEST_UDP_SUM_H

#include <string.h>

#include "../../lib/wire/wire.h"

/* Sets the checksum of the UDP header and the payload at `p`, whose UDP length is `len`. */
static inline void
udp_sum_set(uint8_t *p, uint32_t len, const struct sk_addr *src, const struct sk_addr *dst)
{
	uint16_t sum = 0;

	memcpy(p + UDP_CKSUM_OFFSET, &sum, sizeof(sum));
	sum = wire_sum_fold(wire_sum(wire_pseudo_sum(src, dst, IP_UDP, len), p, len));
	if (sum == 0)
		sum = 0xffff; /* 0 means "no checksum" (RFC 768) */
	memcpy(p + UDP_CKSUM_OFFSET, &sum, sizeof(sum));
}

#endif
