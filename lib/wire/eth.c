/* SPDX-License-Identifier: BSD-3-Clause */
/* Ethernet II with at most one 802.1Q tag. */
#include "wire_priv.h"

#define TPID_C 0x8100 /* customer tag (IEEE 802.1Q-2018 table 9-1) */
#define TPID_S 0x88a8 /* service tag */

/* IEEE 802.3-2018 section 3.1.1 */
struct eth_hdr {
	uint8_t dst[6];
	uint8_t src[6];
	be16 type;
} __attribute__((packed));
_Static_assert(sizeof(struct eth_hdr) == ETH_LEN, "Ethernet header");

/* Header behind the TPID, which takes the place of `type` above (IEEE 802.1Q-2018 section 9.6). */
struct vlan_hdr {
	be16 tci; /* PCP 3, DEI 1, VID 12 */
	be16 type;
} __attribute__((packed));
_Static_assert(sizeof(struct eth_hdr) + sizeof(struct vlan_hdr) == ETH_MAX, "VLAN tag");

int
wire_eth_parse(struct wire_eth *out, const uint8_t *p, size_t len)
{
	const struct eth_hdr *h = (const struct eth_hdr *)p;
	const struct vlan_hdr *v = (const struct vlan_hdr *)(p + ETH_LEN);

	if (len < ETH_LEN)
		return -WIRE_SHORT;
	memcpy(out->dst, h->dst, 6);
	memcpy(out->src, h->src, 6);
	out->type = be16_get(h->type);
	out->vlan = ETH_NO_VLAN;
	out->pcp = 0;
	if (out->type != TPID_C)
		return ETH_LEN;

	if (len < ETH_MAX)
		return -WIRE_SHORT;
	out->vlan = be16_get(v->tci) & 0xfff;
	out->pcp = be16_get(v->tci) >> 13;
	out->type = be16_get(v->type);
	if (out->type == TPID_C || out->type == TPID_S)
		return -WIRE_VLAN_DEPTH;
	return ETH_MAX;
}

unsigned
wire_eth_emit(uint8_t *p, const struct wire_eth *in)
{
	struct eth_hdr *h = (struct eth_hdr *)p;
	struct vlan_hdr *v = (struct vlan_hdr *)(p + ETH_LEN);

	memcpy(h->dst, in->dst, 6);
	memcpy(h->src, in->src, 6);
	if (in->vlan == ETH_NO_VLAN) {
		h->type = be16_of(in->type);
		return ETH_LEN;
	}
	h->type = be16_of(TPID_C);
	v->tci = be16_of((uint16_t)(in->pcp << 13 | (in->vlan & 0xfff)));
	v->type = be16_of(in->type);
	return ETH_MAX;
}
