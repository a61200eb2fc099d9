/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The DDP header. It includes the control bytes of the ULP (RFC 5041 section 4: 8 bits in a tagged
 * segment, 40 in an untagged one). RDMAP is the only ULP here, so the functions read and write both
 * control fields.
 */
#include "wire_priv.h"

#define CTRL_TAGGED   0x80
#define CTRL_LAST     0x40
#define CTRL_DV       0x03
#define DDP_VERSION   1
#define RDMAP_VERSION 1

/* RFC 5041 section 4.2, RFC 5040 section 4.1 */
struct tagged_hdr {
	uint8_t ddp;   /* T 1, L 1, reserved 4, DV 2 */
	uint8_t rdmap; /* RV 2, reserved 2, opcode 4 */
	be32 stag;
	be64 to;
} __attribute__((packed));
_Static_assert(sizeof(struct tagged_hdr) == DDP_TAGGED_LEN, "DDP tagged header");

/* RFC 5041 section 4.3, RFC 5040 section 4.1 */
struct untagged_hdr {
	uint8_t ddp;
	uint8_t rdmap;
	be32 inv_stag;
	be32 qn, msn, mo;
} __attribute__((packed));
_Static_assert(sizeof(struct untagged_hdr) == DDP_UNTAGGED_LEN, "DDP untagged header");

int
wire_ddp_parse(struct wire_ddp *out, const uint8_t *p, size_t len)
{
	const struct tagged_hdr *t = (const struct tagged_hdr *)p;
	const struct untagged_hdr *u = (const struct untagged_hdr *)p;

	if (len < DDP_TAGGED_LEN)
		return -WIRE_SHORT;
	out->tagged = t->ddp & CTRL_TAGGED;
	out->last = t->ddp & CTRL_LAST;
	out->dv = t->ddp & CTRL_DV;
	out->rv = t->rdmap >> 6;
	out->opcode = t->rdmap & 0xf;
	if (out->tagged) {
		out->stag = be32_get(t->stag);
		out->to = be64_get(t->to);
		out->inv_stag = 0;
		out->qn = 0;
		out->msn = 0;
		out->mo = 0;
		return DDP_TAGGED_LEN;
	}
	if (len < DDP_UNTAGGED_LEN)
		return -WIRE_SHORT;
	out->stag = 0;
	out->to = 0;
	out->inv_stag = be32_get(u->inv_stag);
	out->qn = be32_get(u->qn);
	out->msn = be32_get(u->msn);
	out->mo = be32_get(u->mo);
	return DDP_UNTAGGED_LEN;
}

unsigned
wire_ddp_emit(uint8_t *p, const struct wire_ddp *in)
{
	struct tagged_hdr *t = (struct tagged_hdr *)p;
	struct untagged_hdr *u = (struct untagged_hdr *)p;

	t->ddp = (uint8_t)((in->tagged ? CTRL_TAGGED : 0) | (in->last ? CTRL_LAST : 0) |
			   DDP_VERSION);
	t->rdmap = (uint8_t)(RDMAP_VERSION << 6 | (in->opcode & 0xf));
	if (in->tagged) {
		t->stag = be32_of(in->stag);
		t->to = be64_of(in->to);
		return DDP_TAGGED_LEN;
	}
	u->inv_stag = be32_of(in->inv_stag);
	u->qn = be32_of(in->qn);
	u->msn = be32_of(in->msn);
	u->mo = be32_of(in->mo);
	return DDP_UNTAGGED_LEN;
}
