/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP for Ethernet and IPv4. */
#include "wire_priv.h"

#define HTYPE_ETHERNET 1

/* RFC 826, "Packet format" */
struct arp_hdr {
	be16 htype, ptype;
	uint8_t hlen, plen;
	be16 op;
	uint8_t sha[6], spa[4];
	uint8_t tha[6], tpa[4];
} __attribute__((packed));
_Static_assert(sizeof(struct arp_hdr) == ARP_LEN, "ARP packet");

int
wire_arp_parse(struct wire_arp *out, const uint8_t *p, size_t len)
{
	const struct arp_hdr *h = (const struct arp_hdr *)p;

	if (len < ARP_LEN)
		return -WIRE_SHORT;
	if (be16_get(h->htype) != HTYPE_ETHERNET || be16_get(h->ptype) != ETH_IPV4 ||
		h->hlen != 6 || h->plen != 4)
		return -WIRE_ARP_HEADER;
	out->op = be16_get(h->op);
	memcpy(out->sha, h->sha, 6);
	memcpy(out->tha, h->tha, 6);
	out->spa = sk_addr_v4(h->spa);
	out->tpa = sk_addr_v4(h->tpa);
	return ARP_LEN;
}

unsigned
wire_arp_emit(uint8_t *p, const struct wire_arp *in)
{
	struct arp_hdr *h = (struct arp_hdr *)p;

	h->htype = be16_of(HTYPE_ETHERNET);
	h->ptype = be16_of(ETH_IPV4);
	h->hlen = 6;
	h->plen = 4;
	h->op = be16_of(in->op);
	memcpy(h->sha, in->sha, 6);
	memcpy(h->spa, in->spa.b + 12, 4);
	memcpy(h->tha, in->tha, 6);
	memcpy(h->tpa, in->tpa.b + 12, 4);
	return ARP_LEN;
}
