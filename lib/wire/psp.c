/* SPDX-License-Identifier: BSD-3-Clause */
/* The PSP header. */
#include "falcon.h"

#include "../base/be.h"

#define CRYPT_MASK  0x3f
#define FLAG_SAMPLE 0x80
#define FLAG_DROP   0x40
#define FLAG_VC     0x02
#define FLAG_ONE    0x01 /* always set */
#define EXT_LEN     1    /* in units of 8 bytes, without the first 8 bytes */
#define EXT_LEN_VC  2

/* PSP Architecture Specification, "PSP header"; Falcon Transport Protocol section 7.1. */
struct psp_hdr {
	uint8_t next;
	uint8_t ext_len;
	uint8_t crypt; /* reserved 2, crypt offset 6 */
	uint8_t flags; /* S 1, D 1, version 4, V 1, one 1 */
	be32 spi;
	be64 iv;
} __attribute__((packed));
_Static_assert(sizeof(struct psp_hdr) == PSP_LEN, "PSP header");
_Static_assert(sizeof(struct psp_hdr) + sizeof(be64) == PSP_MAX, "PSP header with VC");

int
wire_psp_parse(struct wire_psp *out, const uint8_t *p, size_t len)
{
	const struct psp_hdr *h = (const struct psp_hdr *)p;
	unsigned n, clear;

	if (len < PSP_LEN)
		return -WIRE_SHORT;
	out->has_vc = h->flags & FLAG_VC;
	if (h->ext_len != (out->has_vc ? EXT_LEN_VC : EXT_LEN) || !(h->flags & FLAG_ONE))
		return -WIRE_PSP_HEADER;
	out->version = h->flags >> 2 & 0xf;
	if (out->version > PSP_GMAC_256 && out->version != PSP_NO_CRYPTO)
		return -WIRE_PSP_VERSION;
	out->crypt_offset = h->crypt & CRYPT_MASK;
	n = out->has_vc ? PSP_MAX : PSP_LEN;
	clear = PSP_LEN + (unsigned)out->crypt_offset * PSP_CRYPT_UNIT;
	if (clear < n)
		return -WIRE_PSP_HEADER;
	if (len < clear + wire_psp_icv_len(out->version))
		return -WIRE_SHORT;
	out->next = h->next;
	out->sample = h->flags & FLAG_SAMPLE;
	out->drop = h->flags & FLAG_DROP;
	out->spi = be32_get(h->spi);
	out->iv = be64_get(h->iv);
	out->vc = out->has_vc ? be64_get(*(const be64 *)(p + PSP_LEN)) : 0;
	return (int)n;
}

unsigned
wire_psp_emit(uint8_t *p, const struct wire_psp *in)
{
	struct psp_hdr *h = (struct psp_hdr *)p;

	h->next = in->next;
	h->ext_len = in->has_vc ? EXT_LEN_VC : EXT_LEN;
	h->crypt = in->crypt_offset & CRYPT_MASK;
	h->flags = (uint8_t)((in->sample ? FLAG_SAMPLE : 0) | (in->drop ? FLAG_DROP : 0) |
			     (in->version & 0xf) << 2 | (in->has_vc ? FLAG_VC : 0) | FLAG_ONE);
	h->spi = be32_of(in->spi);
	h->iv = be64_of(in->iv);
	if (!in->has_vc)
		return PSP_LEN;
	*(be64 *)(p + PSP_LEN) = be64_of(in->vc);
	return PSP_MAX;
}
