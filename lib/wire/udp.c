/* SPDX-License-Identifier: BSD-3-Clause */
/* The UDP header. */
#include "wire_priv.h"

/* RFC 768, "Format" */
struct udp_hdr {
	be16 sport, dport;
	be16 len; /* header and payload */
	uint16_t checksum;
} __attribute__((packed));
_Static_assert(sizeof(struct udp_hdr) == UDP_LEN, "UDP header");

int
wire_udp_parse_part(struct wire_udp *out, const uint8_t *p, size_t held, size_t len)
{
	const struct udp_hdr *h = (const struct udp_hdr *)p;
	unsigned total;

	if (held < UDP_LEN)
		return -WIRE_SHORT;
	total = be16_get(h->len);
	if (total < UDP_LEN || total > len)
		return -WIRE_UDP_HEADER;
	out->sport = be16_get(h->sport);
	out->dport = be16_get(h->dport);
	out->payload_len = (uint16_t)(total - UDP_LEN);
	out->checksum = h->checksum;
	return UDP_LEN;
}

unsigned
wire_udp_emit(uint8_t *p, const struct wire_udp *in)
{
	struct udp_hdr *h = (struct udp_hdr *)p;

	h->sport = be16_of(in->sport);
	h->dport = be16_of(in->dport);
	h->len = be16_of((uint16_t)(UDP_LEN + in->payload_len));
	h->checksum = in->checksum;
	return UDP_LEN;
}
