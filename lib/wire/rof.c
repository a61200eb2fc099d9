/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA over Falcon. A table gives the headers of each opcode; one walk over the headers, in their
 * order on the wire, reads or writes them. The table in section 8.1.3 of the specification gives
 * AtomicETH to the response and AtomicAckETH to the requests. Sections 8.3.6 and 8.3.7 have the
 * right order, and so has the table here.
 */
#include "rof.h"

#include "../base/be.h"

#define ROF_VERSION 1
/* Queue numbers are the upper 24 bits of a word (sections 8.2, 8.3.9 and 8.3.10). */
#define QPN_GET(w) (be32_get(w) >> 8)
#define QPN_OF(n)  be32_of((n) << 8)

/* Bits of RBTH's third byte: CE, pad 2, R, SE. */
#define RBTH_CE        0x10
#define RBTH_PAD_SHIFT 2
#define RBTH_SE        0x01

/* Section 8.2 */
struct rbth {
	uint8_t version; /* version 4, reserved 4 */
	uint8_t reserved;
	uint8_t flags;
	uint8_t opcode;
	be32 dest_qp; /* dest_qp 24, reserved 8 */
	be32 sn;
} __attribute__((packed));
_Static_assert(sizeof(struct rbth) == ROF_RBTH_LEN, "RBTH");

/* Section 8.3.1 */
struct reth {
	be64 va;
	be32 rkey, length;
} __attribute__((packed));
_Static_assert(sizeof(struct reth) == 16, "RETH");

/* Section 8.3.4 */
struct steth {
	be64 va;
	be32 lkey;
} __attribute__((packed));
_Static_assert(sizeof(struct steth) == 12, "STETH");

/* Section 8.3.6 */
struct atomiceth {
	be64 va;
	be32 rkey;
	be64 swap_add, compare;
} __attribute__((packed));
_Static_assert(sizeof(struct atomiceth) == 28, "AtomicETH");

/* Section 8.3.10 */
struct deth {
	be32 qkey;
	be32 src_qp; /* src_qp 24, reserved 8 */
} __attribute__((packed));
_Static_assert(sizeof(struct deth) == 8, "DETH");

struct row {
	uint16_t headers;
	uint8_t len; /* bytes of all headers but XRCETH; 0: a reserved opcode */
	uint8_t falcon_type;
};

#define LEN(headers)                                                                               \
	(ROF_RBTH_LEN + ((headers)&ROF_DETH ? 8 : 0) + ((headers)&ROF_RETH ? 16 : 0) +             \
		((headers)&ROF_ATOMICETH ? 28 : 0) + ((headers)&ROF_ATOMICACKETH ? 8 : 0) +        \
		((headers)&ROF_SETH ? 4 : 0) + ((headers)&ROF_OETH ? 4 : 0) +                      \
		((headers)&ROF_STETH ? 12 : 0) + ((headers)&ROF_IMMDT ? 4 : 0) +                   \
		((headers)&ROF_IETH ? 4 : 0))
#define ROW(type, headers)                                                                         \
	{                                                                                          \
		headers, LEN(headers), type                                                        \
	}
#define SEND   (ROF_SETH | ROF_OETH)
#define WRITE  ROF_RETH
#define READ   (ROF_RETH | ROF_SETH | ROF_STETH)
#define ATOMIC (ROF_ATOMICETH | ROF_SETH | ROF_STETH)

/* Section 8.1.3 */
static const struct row rc[ROF_OPERATION + 1] = {
	[ROF_SEND_FIRST] = ROW(FALCON_PUSH_DATA, SEND),
	[ROF_SEND_MIDDLE] = ROW(FALCON_PUSH_DATA, SEND),
	[ROF_SEND_LAST] = ROW(FALCON_PUSH_DATA, SEND),
	[ROF_SEND_LAST_IMM] = ROW(FALCON_PUSH_DATA, SEND | ROF_IMMDT),
	[ROF_SEND_ONLY] = ROW(FALCON_PUSH_DATA, SEND),
	[ROF_SEND_ONLY_IMM] = ROW(FALCON_PUSH_DATA, SEND | ROF_IMMDT),
	[ROF_WRITE_FIRST] = ROW(FALCON_PUSH_DATA, WRITE),
	[ROF_WRITE_MIDDLE] = ROW(FALCON_PUSH_DATA, WRITE),
	[ROF_WRITE_LAST] = ROW(FALCON_PUSH_DATA, WRITE),
	[ROF_WRITE_LAST_IMM] = ROW(FALCON_PUSH_DATA, WRITE | ROF_SETH | ROF_IMMDT),
	[ROF_WRITE_ONLY] = ROW(FALCON_PUSH_DATA, WRITE),
	[ROF_WRITE_ONLY_IMM] = ROW(FALCON_PUSH_DATA, WRITE | ROF_SETH | ROF_IMMDT),
	[ROF_READ_REQUEST] = ROW(FALCON_PULL_REQUEST, READ),
	[ROF_READ_RESPONSE_FIRST] = ROW(FALCON_PULL_DATA, ROF_STETH),
	[ROF_READ_RESPONSE_MIDDLE] = ROW(FALCON_PULL_DATA, ROF_STETH),
	[ROF_READ_RESPONSE_LAST] = ROW(FALCON_PULL_DATA, ROF_STETH),
	[ROF_READ_RESPONSE_ONLY] = ROW(FALCON_PULL_DATA, ROF_STETH),
	[ROF_ATOMIC_RESPONSE] = ROW(FALCON_PULL_DATA, ROF_ATOMICACKETH | ROF_STETH),
	[ROF_CMP_SWAP] = ROW(FALCON_PULL_REQUEST, ATOMIC),
	[ROF_FETCH_ADD] = ROW(FALCON_PULL_REQUEST, ATOMIC),
	[ROF_SEND_LAST_INV] = ROW(FALCON_PUSH_DATA, SEND | ROF_IETH),
	[ROF_SEND_ONLY_INV] = ROW(FALCON_PUSH_DATA, SEND | ROF_IETH),
};

static const struct row ud[ROF_OPERATION + 1] = {
	[ROF_SEND_ONLY] = ROW(FALCON_PUSH_DATA, ROF_DETH),
	[ROF_SEND_ONLY_IMM] = ROW(FALCON_PUSH_DATA, ROF_DETH | ROF_IMMDT),
};

static const struct row *
rof_find(uint8_t opcode)
{
	const struct row *r = rc + (opcode & ROF_OPERATION);
	uint8_t transport = opcode & ROF_TRANSPORT;

	if (transport == ROF_UD)
		r = ud + (opcode & ROF_OPERATION);
	else if (transport != ROF_RC && transport != ROF_XRC)
		return NULL;
	return r->len > 0 ? r : NULL;
}

/* Only requests have XRCETH (section 8.3.9). */
static bool
has_xrceth(uint8_t opcode, const struct row *r)
{
	return (opcode & ROF_TRANSPORT) == ROF_XRC && r->falcon_type != FALCON_PULL_DATA;
}

int
wire_rof_headers(uint8_t opcode)
{
	const struct row *r = rof_find(opcode);

	if (r == NULL)
		return -WIRE_ROF_OPCODE;
	return r->headers | (has_xrceth(opcode, r) ? ROF_XRCETH : 0);
}

unsigned
wire_rof_len(uint8_t opcode)
{
	const struct row *r = rof_find(opcode);

	if (r == NULL)
		return 0;
	return r->len + (has_xrceth(opcode, r) ? (unsigned)sizeof(be32) : 0);
}

int
wire_rof_falcon_type(uint8_t opcode)
{
	const struct row *r = rof_find(opcode);

	return r == NULL ? -WIRE_ROF_OPCODE : r->falcon_type;
}

static const uint8_t *
take32(const uint8_t *p, uint32_t *v)
{
	*v = be32_get(*(const be32 *)p);
	return p + sizeof(be32);
}

static const uint8_t *
parse_addressing(struct wire_rof *out, const uint8_t *p, int headers)
{
	const struct deth *d = (const struct deth *)p;
	const struct reth *r = (const struct reth *)p;
	const struct atomiceth *a = (const struct atomiceth *)p;

	if (headers & ROF_DETH) {
		out->qkey = be32_get(d->qkey);
		out->src_qp = QPN_GET(d->src_qp);
		p += sizeof(*d);
	} else if (headers & ROF_RETH) {
		out->va = be64_get(r->va);
		out->rkey = be32_get(r->rkey);
		out->length = be32_get(r->length);
		p += sizeof(*r);
	} else if (headers & ROF_ATOMICETH) {
		out->va = be64_get(a->va);
		out->rkey = be32_get(a->rkey);
		out->swap_add = be64_get(a->swap_add);
		out->compare = be64_get(a->compare);
		p += sizeof(*a);
	} else if (headers & ROF_ATOMICACKETH) {
		out->original = be64_get(*(const be64 *)p);
		p += sizeof(be64);
	}
	return p;
}

static void
parse_extended(struct wire_rof *out, const uint8_t *p, int headers)
{
	if (headers & ROF_XRCETH) {
		out->xrc_srq = QPN_GET(*(const be32 *)p);
		p += sizeof(be32);
	}
	p = parse_addressing(out, p, headers);
	if (headers & ROF_SETH)
		p = take32(p, &out->rmsn);
	if (headers & ROF_OETH)
		p = take32(p, &out->offset);
	if (headers & ROF_STETH) {
		out->sink_va = be64_get(((const struct steth *)p)->va);
		out->sink_lkey = be32_get(((const struct steth *)p)->lkey);
		p += sizeof(struct steth);
	}
	if (headers & ROF_IMMDT)
		p = take32(p, &out->imm);
	if (headers & ROF_IETH)
		take32(p, &out->inv_rkey);
}

int
wire_rof_parse(struct wire_rof *out, const uint8_t *p, size_t len)
{
	const struct rbth *h = (const struct rbth *)p;
	unsigned n;

	if (len < ROF_RBTH_LEN)
		return -WIRE_SHORT;
	if (h->version >> 4 != ROF_VERSION)
		return -WIRE_ROF_VERSION;
	n = wire_rof_len(h->opcode);
	if (n == 0)
		return -WIRE_ROF_OPCODE;
	if (len < n)
		return -WIRE_SHORT;
	*out = (struct wire_rof){.opcode = h->opcode};
	out->ce = h->flags & RBTH_CE;
	out->pad = h->flags >> RBTH_PAD_SHIFT & 3;
	out->se = h->flags & RBTH_SE;
	out->dest_qp = QPN_GET(h->dest_qp);
	out->sn = be32_get(h->sn);
	if (out->pad > len - n)
		return -WIRE_ROF_PAD;
	parse_extended(out, p + ROF_RBTH_LEN, wire_rof_headers(h->opcode));
	return (int)n;
}

bool
wire_rof_write_parse(struct wire_rof_write *out, const uint8_t *p, size_t len)
{
	const uint32_t writes = 1u << (ROF_WRITE_FIRST & 31) | 1u << (ROF_WRITE_MIDDLE & 31) |
				1u << (ROF_WRITE_LAST & 31) | 1u << (ROF_WRITE_ONLY & 31);
	const struct rbth *h = (const struct rbth *)p;
	const struct reth *r = (const struct reth *)(p + ROF_RBTH_LEN);

	_Static_assert(ROF_RBTH_LEN + sizeof(*r) == ROF_WRITE_LEN, "headers of a Write");
	_Static_assert(ROF_RC == 0, "the opcodes are below 32");
	if (len < ROF_WRITE_LEN || h->version >> 4 != ROF_VERSION || h->opcode >= 32 ||
		!(writes >> h->opcode & 1) || (h->flags & RBTH_CE))
		return false;
	out->pad = h->flags >> RBTH_PAD_SHIFT & 3;
	out->opcode = h->opcode;
	out->dest_qp = QPN_GET(h->dest_qp);
	out->sn = be32_get(h->sn);
	out->va = be64_get(r->va);
	out->rkey = be32_get(r->rkey);
	out->length = be32_get(r->length);
	return out->pad <= len - ROF_WRITE_LEN;
}

static uint8_t *
put32(uint8_t *p, be32 v)
{
	*(be32 *)p = v;
	return p + sizeof(v);
}

static uint8_t *
emit_addressing(uint8_t *p, const struct wire_rof *in, int headers)
{
	if (headers & ROF_DETH) {
		*(struct deth *)p = (struct deth){be32_of(in->qkey), QPN_OF(in->src_qp)};
		p += sizeof(struct deth);
	} else if (headers & ROF_RETH) {
		*(struct reth *)p =
			(struct reth){be64_of(in->va), be32_of(in->rkey), be32_of(in->length)};
		p += sizeof(struct reth);
	} else if (headers & ROF_ATOMICETH) {
		*(struct atomiceth *)p = (struct atomiceth){be64_of(in->va), be32_of(in->rkey),
			be64_of(in->swap_add), be64_of(in->compare)};
		p += sizeof(struct atomiceth);
	} else if (headers & ROF_ATOMICACKETH) {
		*(be64 *)p = be64_of(in->original);
		p += sizeof(be64);
	}
	return p;
}

unsigned
wire_rof_emit(uint8_t *p, const struct wire_rof *in)
{
	struct rbth *h = (struct rbth *)p;
	int headers = wire_rof_headers(in->opcode);

	if (headers < 0)
		return 0;
	h->version = ROF_VERSION << 4;
	h->reserved = 0;
	h->flags = (uint8_t)((in->ce ? RBTH_CE : 0) | (in->pad & 3) << RBTH_PAD_SHIFT |
			     (in->se ? RBTH_SE : 0));
	h->opcode = in->opcode;
	h->dest_qp = QPN_OF(in->dest_qp);
	h->sn = be32_of(in->sn);
	p += ROF_RBTH_LEN;
	if (headers & ROF_XRCETH)
		p = put32(p, QPN_OF(in->xrc_srq));
	p = emit_addressing(p, in, headers);
	if (headers & ROF_SETH)
		p = put32(p, be32_of(in->rmsn));
	if (headers & ROF_OETH)
		p = put32(p, be32_of(in->offset));
	if (headers & ROF_STETH) {
		*(struct steth *)p = (struct steth){be64_of(in->sink_va), be32_of(in->sink_lkey)};
		p += sizeof(struct steth);
	}
	if (headers & ROF_IMMDT)
		p = put32(p, be32_of(in->imm));
	if (headers & ROF_IETH)
		put32(p, be32_of(in->inv_rkey));
	return wire_rof_len(in->opcode);
}
