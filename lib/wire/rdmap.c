/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMAP headers behind the DDP header: Read Request, Terminate, and the atomic operations and
 * Immediate Data of RFC 7306. */
#include "wire_priv.h"

/* RFC 5040 section 4.4 */
struct read_request_hdr {
	be32 sink_stag;
	be64 sink_to;
	be32 len;
	be32 src_stag;
	be64 src_to;
} __attribute__((packed));
_Static_assert(sizeof(struct read_request_hdr) == RDMAP_READ_REQUEST_LEN, "RDMA Read Request");

int
wire_read_request_parse(struct wire_read_request *out, const uint8_t *p, size_t len)
{
	const struct read_request_hdr *h = (const struct read_request_hdr *)p;

	if (len < RDMAP_READ_REQUEST_LEN)
		return -WIRE_SHORT;
	out->sink_stag = be32_get(h->sink_stag);
	out->sink_to = be64_get(h->sink_to);
	out->len = be32_get(h->len);
	out->src_stag = be32_get(h->src_stag);
	out->src_to = be64_get(h->src_to);
	return RDMAP_READ_REQUEST_LEN;
}

unsigned
wire_read_request_emit(uint8_t *p, const struct wire_read_request *in)
{
	struct read_request_hdr *h = (struct read_request_hdr *)p;

	h->sink_stag = be32_of(in->sink_stag);
	h->sink_to = be64_of(in->sink_to);
	h->len = be32_of(in->len);
	h->src_stag = be32_of(in->src_stag);
	h->src_to = be64_of(in->src_to);
	return RDMAP_READ_REQUEST_LEN;
}

#define HDRCT_M    0x80
#define HDRCT_D    0x40
#define HDRCT_R    0x20
#define DDP_TAGGED 0x80

/* RFC 5040 section 4.8. The DDP segment length (2 bytes), the DDP header and the RDMAP header
 * follow if present. */
struct terminate_hdr {
	uint8_t layer_etype; /* layer 4, error type 4 */
	uint8_t code;
	uint8_t hdrct; /* M, D, R, reserved 5 */
	uint8_t reserved;
} __attribute__((packed));
_Static_assert(sizeof(struct terminate_hdr) == RDMAP_TERMINATE_LEN, "RDMAP Terminate");

/* Copies `n` bytes from *p, where *len bytes remain, and advances both. Returns false when they do
 * not suffice. */
static bool
rdmap_take(void *to, const uint8_t **p, size_t *len, size_t n)
{
	if (*len < n)
		return false;
	memcpy(to, *p, n);
	*p += n;
	*len -= n;
	return true;
}

int
wire_terminate_parse(struct wire_terminate *out, const uint8_t *p, size_t len)
{
	const uint8_t *start = p;
	struct terminate_hdr h;
	be16 seg_len;

	memset(out, 0, sizeof(*out));
	if (!rdmap_take(&h, &p, &len, sizeof(h)))
		return -WIRE_SHORT;
	out->layer = h.layer_etype >> 4;
	out->etype = h.layer_etype & 0xf;
	out->code = h.code;
	out->m = h.hdrct & HDRCT_M;
	out->d = h.hdrct & HDRCT_D;
	out->r = h.hdrct & HDRCT_R;
	if (out->m) {
		if (!rdmap_take(&seg_len, &p, &len, sizeof(seg_len)))
			return -WIRE_SHORT;
		out->ddp_seg_len = be16_get(seg_len);
	}
	if (out->d) {
		if (len == 0)
			return -WIRE_SHORT;
		out->ddp_len = *p & DDP_TAGGED ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;
		if (!rdmap_take(out->ddp_header, &p, &len, out->ddp_len))
			return -WIRE_SHORT;
	}
	if (out->r && !rdmap_take(out->rdmap_header, &p, &len, RDMAP_READ_REQUEST_LEN))
		return -WIRE_SHORT;
	return (int)(p - start);
}

unsigned
wire_terminate_emit(uint8_t *p, const struct wire_terminate *in)
{
	struct terminate_hdr *h = (struct terminate_hdr *)p;
	unsigned at = RDMAP_TERMINATE_LEN;

	h->layer_etype = (uint8_t)(in->layer << 4 | (in->etype & 0xf));
	h->code = in->code;
	h->hdrct = (uint8_t)((in->m ? HDRCT_M : 0) | (in->d ? HDRCT_D : 0) | (in->r ? HDRCT_R : 0));
	h->reserved = 0;
	if (in->m) {
		*(be16 *)(p + at) = be16_of(in->ddp_seg_len);
		at += 2;
	}
	if (in->d) {
		memcpy(p + at, in->ddp_header, in->ddp_len);
		at += in->ddp_len;
	}
	if (in->r) {
		memcpy(p + at, in->rdmap_header, RDMAP_READ_REQUEST_LEN);
		at += RDMAP_READ_REQUEST_LEN;
	}
	return at;
}

/* RFC 7306 section 5.2.1, figure 4 */
struct atomic_request_hdr {
	be32 op; /* 28 bits reserved, AOpCode 4 */
	be32 request_id;
	be32 stag;
	be64 to;
	be64 data, data_mask;
	be64 compare, compare_mask;
} __attribute__((packed));
_Static_assert(sizeof(struct atomic_request_hdr) == RDMAP_ATOMIC_REQUEST_LEN, "Atomic Request");

/* RFC 7306 section 5.2.2, figure 6 */
struct atomic_response_hdr {
	be32 request_id;
	be64 original;
} __attribute__((packed));
_Static_assert(sizeof(struct atomic_response_hdr) == RDMAP_ATOMIC_RESPONSE_LEN, "Atomic Response");

int
wire_atomic_request_parse(struct wire_atomic_request *out, const uint8_t *p, size_t len)
{
	const struct atomic_request_hdr *h = (const struct atomic_request_hdr *)p;

	if (len < RDMAP_ATOMIC_REQUEST_LEN)
		return -WIRE_SHORT;
	out->op = be32_get(h->op) & 0xf;
	out->request_id = be32_get(h->request_id);
	out->stag = be32_get(h->stag);
	out->to = be64_get(h->to);
	out->data = be64_get(h->data);
	out->data_mask = be64_get(h->data_mask);
	out->compare = be64_get(h->compare);
	out->compare_mask = be64_get(h->compare_mask);
	return RDMAP_ATOMIC_REQUEST_LEN;
}

unsigned
wire_atomic_request_emit(uint8_t *p, const struct wire_atomic_request *in)
{
	struct atomic_request_hdr *h = (struct atomic_request_hdr *)p;

	h->op = be32_of(in->op & 0xf);
	h->request_id = be32_of(in->request_id);
	h->stag = be32_of(in->stag);
	h->to = be64_of(in->to);
	h->data = be64_of(in->data);
	h->data_mask = be64_of(in->data_mask);
	h->compare = be64_of(in->compare);
	h->compare_mask = be64_of(in->compare_mask);
	return RDMAP_ATOMIC_REQUEST_LEN;
}

int
wire_atomic_response_parse(struct wire_atomic_response *out, const uint8_t *p, size_t len)
{
	const struct atomic_response_hdr *h = (const struct atomic_response_hdr *)p;

	if (len < RDMAP_ATOMIC_RESPONSE_LEN)
		return -WIRE_SHORT;
	out->request_id = be32_get(h->request_id);
	out->original = be64_get(h->original);
	return RDMAP_ATOMIC_RESPONSE_LEN;
}

unsigned
wire_atomic_response_emit(uint8_t *p, const struct wire_atomic_response *in)
{
	struct atomic_response_hdr *h = (struct atomic_response_hdr *)p;

	h->request_id = be32_of(in->request_id);
	h->original = be64_of(in->original);
	return RDMAP_ATOMIC_RESPONSE_LEN;
}

/* RFC 7306 section 6.2, figure 7 */
struct immediate_hdr {
	be64 data;
} __attribute__((packed));
_Static_assert(sizeof(struct immediate_hdr) == RDMAP_IMMEDIATE_LEN, "Immediate Data");

int
wire_immediate_parse(uint64_t *imm, const uint8_t *p, size_t len)
{
	if (len < RDMAP_IMMEDIATE_LEN)
		return -WIRE_SHORT;
	*imm = be64_get(((const struct immediate_hdr *)p)->data);
	return RDMAP_IMMEDIATE_LEN;
}

unsigned
wire_immediate_emit(uint8_t *p, uint64_t imm)
{
	((struct immediate_hdr *)p)->data = be64_of(imm);
	return RDMAP_IMMEDIATE_LEN;
}
