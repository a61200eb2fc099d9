/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Falcon packets. The specification numbers bits from the most significant bit of a 32-bit word, so
 * the functions read whole words and take them apart by shifts.
 */
#include "falcon.h"

#include <stddef.h>

#include "../base/be.h"

#define FALCON_VERSION 1

/* word 0 */
#define W0(cid)       ((uint32_t)FALCON_VERSION << 28 | ((cid)&0xffffff))
#define W0_VERSION(w) ((w) >> 28)
#define W0_CID(w)     ((w)&0xffffff)
/* word 1 */
#define W1_FUNCTION(w) ((w) >> 8)
#define W1_PROTO(w)    ((w) >> 5 & 7)
#define W1_TYPE(w)     ((w) >> 1 & 0xf)
#define W1_AR(w)       ((w)&1)

/* Section 7.2 */
struct base_hdr {
	be32 version_cid;
	be32 function_type;
	be32 dbpsn, rbpsn;
	be32 psn, rsn;
} __attribute__((packed));
_Static_assert(sizeof(struct base_hdr) == FALCON_BASE_LEN, "Falcon base header");

/* Section 7.3 */
struct pull_request_hdr {
	struct base_hdr base;
	be16 reserved, request_len;
	be32 reserved2;
} __attribute__((packed));
_Static_assert(sizeof(struct pull_request_hdr) == FALCON_PULL_REQUEST_LEN, "Pull Request");

/* Section 7.5 */
struct push_data_hdr {
	struct base_hdr base;
	be16 reserved, request_len;
} __attribute__((packed));
_Static_assert(sizeof(struct push_data_hdr) == FALCON_PUSH_DATA_LEN, "Push Data");
_Static_assert(offsetof(struct push_data_hdr, request_len) ==
		       offsetof(struct pull_request_hdr, request_len),
	"wire_falcon_plain_parse()");

/* Section 7.6 */
struct resync_hdr {
	struct base_hdr base;
	uint8_t code;
	uint8_t type; /* packet type 4, reserved 4 */
	be16 reserved;
	be32 vendor;
} __attribute__((packed));
_Static_assert(sizeof(struct resync_hdr) == FALCON_RESYNC_LEN, "Resync");

/* Section 7.7.1; a NACK begins with it. */
struct ack_hdr {
	be32 version_cid;
	be32 type; /* reserved 27, packet type 4, reserved 1 */
	be32 dbpsn, rbpsn;
	be32 t1, t2;
	be32 path; /* hops 4, receive level 5, ECN count 14, reserved 9 */
	be32 rue;  /* BACK, EACK: reserved 9, RUE info 21, OWN 2; NACK: reserved 9, RUE info 23 */
} __attribute__((packed));
_Static_assert(sizeof(struct ack_hdr) == FALCON_BACK_LEN, "BACK");

/* Section 7.7.2. The most significant word of a bitmap comes first. */
struct eack_hdr {
	struct ack_hdr ack;
	be64 data_ack[2];
	be64 data_rx[2];
	be64 req_map;
} __attribute__((packed));
_Static_assert(sizeof(struct eack_hdr) == FALCON_EACK_LEN, "EACK");

/* Section 7.8 */
struct nack_hdr {
	struct ack_hdr ack;
	be32 psn;
	uint8_t code;
	uint8_t rnr;    /* reserved 3, timeout 5 */
	uint8_t window; /* W 1, reserved 7 */
	uint8_t ulp_code;
} __attribute__((packed));
_Static_assert(sizeof(struct nack_hdr) == FALCON_NACK_LEN, "NACK");

#define OWN_REQUEST   0x1
#define OWN_DATA      0x2
#define RUE_SHIFT     2        /* BACK, EACK */
#define NACK_RUE_MASK 0x7fffff /* NACK: 23 bits */
#define NACK_WINDOW   0x80

static const uint8_t lengths[16] = {
	[FALCON_PULL_REQUEST] = FALCON_PULL_REQUEST_LEN,
	[FALCON_PULL_DATA] = FALCON_PULL_DATA_LEN,
	[FALCON_PUSH_DATA] = FALCON_PUSH_DATA_LEN,
	[FALCON_RESYNC] = FALCON_RESYNC_LEN,
	[FALCON_NACK] = FALCON_NACK_LEN,
	[FALCON_BACK] = FALCON_BACK_LEN,
	[FALCON_EACK] = FALCON_EACK_LEN,
};

unsigned
wire_falcon_len(uint8_t type)
{
	return type < sizeof(lengths) ? lengths[type] : 0;
}

int
wire_falcon_cid(const uint8_t *p, size_t len)
{
	uint32_t w;

	if (len < FALCON_CLEAR_LEN)
		return -WIRE_SHORT;
	w = be32_get(*(const be32 *)p);
	return W0_VERSION(w) == FALCON_VERSION ? (int)W0_CID(w) : -WIRE_FALCON_VERSION;
}

static int
parse_resync(struct wire_falcon *out, const struct resync_hdr *h)
{
	out->resync_code = h->code;
	out->resync_type = h->type >> 4;
	out->vendor = be32_get(h->vendor);
	if (out->resync_type != FALCON_PULL_REQUEST && out->resync_type != FALCON_PULL_DATA &&
		out->resync_type != FALCON_PUSH_DATA)
		return -WIRE_FALCON_RESYNC;
	return FALCON_RESYNC_LEN;
}

/* `payload`: the number of bytes behind the header. */
static int
parse_base(struct wire_falcon *out, const uint8_t *p, size_t payload)
{
	const struct base_hdr *h = (const struct base_hdr *)p;
	uint32_t w = be32_get(h->function_type);

	out->ar = W1_AR(w);
	out->proto = W1_PROTO(w);
	out->function = W1_FUNCTION(w);
	out->psn = be32_get(h->psn);
	out->rsn = be32_get(h->rsn);
	if (out->proto != FALCON_RDMA && out->proto != FALCON_NVME)
		return -WIRE_FALCON_PROTOCOL;
	switch (out->type) {
	case FALCON_PULL_REQUEST:
		out->request_len = be16_get(((const struct pull_request_hdr *)p)->request_len);
		return FALCON_PULL_REQUEST_LEN;
	case FALCON_PUSH_DATA:
		out->request_len = be16_get(((const struct push_data_hdr *)p)->request_len);
		return out->request_len == payload ? FALCON_PUSH_DATA_LEN : -WIRE_FALCON_LENGTH;
	case FALCON_RESYNC:
		if (payload != 0)
			return -WIRE_FALCON_LENGTH;
		return parse_resync(out, (const struct resync_hdr *)p);
	default:
		return FALCON_PULL_DATA_LEN;
	}
}

static void
parse_eack(struct wire_falcon *out, const struct eack_hdr *h)
{
	out->data_ack[1] = be64_get(h->data_ack[0]);
	out->data_ack[0] = be64_get(h->data_ack[1]);
	out->data_rx[1] = be64_get(h->data_rx[0]);
	out->data_rx[0] = be64_get(h->data_rx[1]);
	out->req_map = be64_get(h->req_map);
}

static void
parse_nack(struct wire_falcon *out, const struct nack_hdr *h)
{
	out->psn = be32_get(h->psn);
	out->nack_code = h->code;
	out->rnr_timeout = h->rnr & 0x1f;
	out->nack_request = h->window & NACK_WINDOW;
	out->ulp_code = h->ulp_code;
}

static int
parse_ack(struct wire_falcon *out, const uint8_t *p, size_t payload)
{
	const struct ack_hdr *h = (const struct ack_hdr *)p;
	uint32_t path = be32_get(h->path), rue = be32_get(h->rue);

	if (payload != 0)
		return -WIRE_FALCON_LENGTH;
	out->t1 = be32_get(h->t1);
	out->t2 = be32_get(h->t2);
	out->hops = (uint8_t)(path >> 28);
	out->rx_level = path >> 23 & 0x1f;
	out->ecn = path >> 9 & FALCON_ECN_MASK;
	if (out->type == FALCON_NACK) {
		out->rue = rue & NACK_RUE_MASK;
		parse_nack(out, (const struct nack_hdr *)p);
		return FALCON_NACK_LEN;
	}
	out->rue = rue >> RUE_SHIFT & FALCON_RUE_MASK;
	out->own_request = rue & OWN_REQUEST;
	out->own_data = rue & OWN_DATA;
	if (out->type == FALCON_EACK)
		parse_eack(out, (const struct eack_hdr *)p);
	return lengths[out->type];
}

int
wire_falcon_parse(struct wire_falcon *out, const uint8_t *p, size_t len)
{
	const struct base_hdr *h = (const struct base_hdr *)p;
	unsigned n;
	uint32_t w;

	if (len < FALCON_BASE_LEN)
		return -WIRE_SHORT;
	w = be32_get(h->version_cid);
	if (W0_VERSION(w) != FALCON_VERSION)
		return -WIRE_FALCON_VERSION;
	*out = (struct wire_falcon){.cid = W0_CID(w)};
	out->type = W1_TYPE(be32_get(h->function_type));
	n = lengths[out->type];
	if (n == 0)
		return -WIRE_FALCON_TYPE;
	if (len < n)
		return -WIRE_SHORT;
	out->dbpsn = be32_get(h->dbpsn);
	out->rbpsn = be32_get(h->rbpsn);
	return out->type >= FALCON_NACK ? parse_ack(out, p, len - n) : parse_base(out, p, len - n);
}

bool
wire_falcon_plain_parse(struct wire_falcon_plain *out, const uint8_t *p, size_t len)
{
	const struct push_data_hdr *h = (const struct push_data_hdr *)p;
	uint32_t w;

	if (len <= FALCON_PULL_DATA_LEN)
		return false;
	w = be32_get(h->base.function_type);
	out->type = W1_TYPE(w);
	out->proto = W1_PROTO(w);
	if (out->type != FALCON_PUSH_DATA && out->type != FALCON_PULL_REQUEST &&
		out->type != FALCON_PULL_DATA)
		return false;
	out->head = lengths[out->type];
	if (len <= out->head || (out->proto != FALCON_RDMA && out->proto != FALCON_NVME))
		return false;
	out->len = (uint32_t)len - out->head;
	/* A Pull Request has its length at the same place as a push. */
	out->request_len = out->type == FALCON_PULL_DATA ? 0 : be16_get(h->request_len);
	if (out->type == FALCON_PUSH_DATA && out->request_len != out->len)
		return false;
	out->ar = W1_AR(w);
	out->function = W1_FUNCTION(w);
	out->dbpsn = be32_get(h->base.dbpsn);
	out->rbpsn = be32_get(h->base.rbpsn);
	out->psn = be32_get(h->base.psn);
	out->rsn = be32_get(h->base.rsn);
	return true;
}

static void
emit_base(uint8_t *p, const struct wire_falcon *in)
{
	struct base_hdr *h = (struct base_hdr *)p;
	struct pull_request_hdr *pull = (struct pull_request_hdr *)p;
	struct push_data_hdr *push = (struct push_data_hdr *)p;
	struct resync_hdr *resync = (struct resync_hdr *)p;

	h->function_type = be32_of(
		in->function << 8 | (in->proto & 7u) << 5 | (in->type & 0xfu) << 1 | in->ar);
	h->psn = be32_of(in->psn);
	h->rsn = be32_of(in->rsn);
	switch (in->type) {
	case FALCON_PULL_REQUEST:
		pull->reserved = be16_of(0);
		pull->request_len = be16_of(in->request_len);
		pull->reserved2 = be32_of(0);
		break;
	case FALCON_PUSH_DATA:
		push->reserved = be16_of(0);
		push->request_len = be16_of(in->request_len);
		break;
	case FALCON_RESYNC:
		resync->code = in->resync_code;
		resync->type = (uint8_t)(in->resync_type << 4);
		resync->reserved = be16_of(0);
		resync->vendor = be32_of(in->vendor);
		break;
	}
}

static void
emit_eack(struct eack_hdr *h, const struct wire_falcon *in)
{
	h->data_ack[0] = be64_of(in->data_ack[1]);
	h->data_ack[1] = be64_of(in->data_ack[0]);
	h->data_rx[0] = be64_of(in->data_rx[1]);
	h->data_rx[1] = be64_of(in->data_rx[0]);
	h->req_map = be64_of(in->req_map);
}

static void
emit_nack(struct nack_hdr *h, const struct wire_falcon *in)
{
	h->ack.rue = be32_of(in->rue & FALCON_RUE_MASK);
	h->psn = be32_of(in->psn);
	h->code = in->nack_code;
	h->rnr = in->rnr_timeout & 0x1f;
	h->window = in->nack_request ? NACK_WINDOW : 0;
	h->ulp_code = in->ulp_code;
}

static void
emit_ack(uint8_t *p, const struct wire_falcon *in)
{
	struct ack_hdr *h = (struct ack_hdr *)p;

	h->type = be32_of((in->type & 0xfu) << 1);
	h->t1 = be32_of(in->t1);
	h->t2 = be32_of(in->t2);
	h->path = be32_of((in->hops & 0xfu) << 28 | (in->rx_level & 0x1fu) << 23 |
			  (in->ecn & (uint32_t)FALCON_ECN_MASK) << 9);
	h->rue = be32_of((in->rue & FALCON_RUE_MASK) << RUE_SHIFT |
			 (in->own_request ? OWN_REQUEST : 0u) | (in->own_data ? OWN_DATA : 0u));
	if (in->type == FALCON_EACK)
		emit_eack((struct eack_hdr *)p, in);
	else if (in->type == FALCON_NACK)
		emit_nack((struct nack_hdr *)p, in);
}

unsigned
wire_falcon_emit(uint8_t *p, const struct wire_falcon *in)
{
	struct base_hdr *h = (struct base_hdr *)p;

	h->version_cid = be32_of(W0(in->cid));
	h->dbpsn = be32_of(in->dbpsn);
	h->rbpsn = be32_of(in->rbpsn);
	if (in->type >= FALCON_NACK)
		emit_ack(p, in);
	else
		emit_base(p, in);
	return wire_falcon_len(in->type);
}

#define RNR_UNIT_NS 10000
/* Section 7.8: the column of delays in ms, in RNR_UNIT_NS. */
static const uint32_t rnr_delay[FALCON_RNR_CODES] = {65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48,
	64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
	16384, 24576, 32768, 49152};

uint64_t
wire_rnr_ns(uint8_t code)
{
	return (uint64_t)rnr_delay[code % FALCON_RNR_CODES] * RNR_UNIT_NS;
}

uint8_t
wire_rnr_code(uint64_t ns)
{
	for (uint8_t code = 1; code < FALCON_RNR_CODES; code++) {
		if (wire_rnr_ns(code) >= ns)
			return code;
	}
	return 0;
}
