/* SPDX-License-Identifier: BSD-3-Clause */
/* The TCP header with the options that Saker implements; the parser skips others. */
#include "wire_priv.h"

#define OPT_END       0
#define OPT_NOP       1
#define OPT_MSS       2 /* RFC 9293 section 3.7.1 */
#define OPT_WSCALE    3 /* RFC 7323 section 2.2 */
#define OPT_SACK_OK   4 /* RFC 2018 section 2 */
#define OPT_SACK      5 /* RFC 2018 section 3 */
#define OPT_TIMESTAMP 8 /* RFC 7323 section 3.2 */
#define MSS_LEN       4
#define WSCALE_LEN    3
#define SACK_OK_LEN   2
#define TIMESTAMP_LEN 10
#define SACK_BLOCK    8
#define OPTIONS_MAX   (TCP_MAX - TCP_LEN)

/* RFC 9293 section 3.1 */
struct tcp_hdr {
	be16 sport, dport;
	be32 seq, ack;
	uint8_t offset; /* data offset in 32-bit words 4, reserved 4 */
	uint8_t flags;
	be16 window;
	uint16_t checksum;
	be16 urgent;
} __attribute__((packed));
_Static_assert(sizeof(struct tcp_hdr) == TCP_LEN, "TCP header");
_Static_assert(offsetof(struct tcp_hdr, checksum) == TCP_CKSUM_OFFSET, "TCP checksum");

/* RFC 7323 appendix A: two NOPs before the option align the timestamp values. */
struct ts_aligned {
	uint8_t nop[2];
	uint8_t kind, len;
	be32 val, ecr;
} __attribute__((packed));
_Static_assert(sizeof(struct ts_aligned) == 12, "TCP timestamp option");

struct sack_block {
	be32 left, right;
} __attribute__((packed));
_Static_assert(sizeof(struct sack_block) == SACK_BLOCK, "TCP SACK block");

static void
parse_sack(struct wire_tcp *out, const uint8_t *p, unsigned blocks)
{
	const struct sack_block *b = (const struct sack_block *)p;

	out->nsack = (uint8_t)blocks;
	for (unsigned i = 0; i < blocks; i++) {
		out->sack[i].left = be32_get(b[i].left);
		out->sack[i].right = be32_get(b[i].right);
	}
}

static void
parse_timestamp(struct wire_tcp *out, const uint8_t *p)
{
	const struct {
		be32 val, ecr;
	} *h = (const void *)p;

	out->ts = true;
	out->ts_val = be32_get(h->val);
	out->ts_ecr = be32_get(h->ecr);
}

/* Parses an option of `len` bytes, with kind and length. Returns false when an implemented option
 * has a wrong length. */
static bool
parse_option(struct wire_tcp *out, const uint8_t *p, unsigned len)
{
	switch (p[0]) {
	case OPT_MSS:
		if (len != MSS_LEN)
			return false;
		out->mss = be16_get(*(const be16 *)(p + 2));
		return true;
	case OPT_WSCALE:
		if (len != WSCALE_LEN)
			return false;
		out->wscale = p[2] > TCP_WSCALE_MAX ? TCP_WSCALE_MAX : p[2];
		return true;
	case OPT_SACK_OK:
		out->sack_ok = true;
		return len == SACK_OK_LEN;
	case OPT_SACK:
		/* 40 bytes of options hold four blocks at most. */
		if (len < 2 + SACK_BLOCK || (len - 2) % SACK_BLOCK != 0)
			return false;
		parse_sack(out, p + 2, (len - 2) / SACK_BLOCK);
		return true;
	case OPT_TIMESTAMP:
		if (len != TIMESTAMP_LEN)
			return false;
		parse_timestamp(out, p + 2);
		return true;
	default:
		return true;
	}
}

static int
parse_options(struct wire_tcp *out, const uint8_t *p, unsigned len)
{
	unsigned at = 0;

	/* Nearly every segment of an established connection has exactly these options. */
	if (len == sizeof(struct ts_aligned) && p[0] == OPT_NOP && p[1] == OPT_NOP &&
		p[2] == OPT_TIMESTAMP && p[3] == TIMESTAMP_LEN) {
		parse_timestamp(out, p + 4);
		return 0;
	}
	while (at < len && p[at] != OPT_END) {
		if (p[at] == OPT_NOP) {
			at++;
			continue;
		}
		if (len - at < 2 || p[at + 1] < 2 || p[at + 1] > len - at)
			return -WIRE_TCP_OPTION;
		if (!parse_option(out, p + at, p[at + 1]))
			return -WIRE_TCP_OPTION;
		at += p[at + 1];
	}
	return 0;
}

int
wire_tcp_parse(struct wire_tcp *out, const uint8_t *p, size_t len)
{
	const struct tcp_hdr *h = (const struct tcp_hdr *)p;
	unsigned hdr_len;
	int r;

	if (len < TCP_LEN)
		return -WIRE_SHORT;
	hdr_len = (h->offset >> 4) * 4u;
	if (hdr_len < TCP_LEN || hdr_len > len)
		return -WIRE_TCP_HEADER;
	out->sport = be16_get(h->sport);
	out->dport = be16_get(h->dport);
	out->seq = be32_get(h->seq);
	out->ack = be32_get(h->ack);
	out->flags = h->flags;
	out->hdr_len = (uint8_t)hdr_len;
	out->window = be16_get(h->window);
	out->mss = 0;
	out->wscale = TCP_NO_WSCALE;
	out->sack_ok = false;
	out->ts = false;
	out->nsack = 0;
	out->ts_val = 0;
	out->ts_ecr = 0;
	if (hdr_len > TCP_LEN) {
		r = parse_options(out, p + TCP_LEN, hdr_len - TCP_LEN);
		if (r < 0)
			return r;
	}
	return (int)hdr_len;
}

/* Writes the timestamps; SACK-permitted takes the place of the two NOPs when both are present. */
static unsigned
emit_ts_and_sack_ok(uint8_t *o, const struct wire_tcp *in)
{
	struct ts_aligned *ts = (struct ts_aligned *)o;

	o[0] = in->sack_ok ? OPT_SACK_OK : OPT_NOP;
	o[1] = in->sack_ok ? SACK_OK_LEN : OPT_NOP;
	if (!in->ts) {
		o[2] = OPT_NOP;
		o[3] = OPT_NOP;
		return 4;
	}
	ts->kind = OPT_TIMESTAMP;
	ts->len = TIMESTAMP_LEN;
	ts->val = be32_of(in->ts_val);
	ts->ecr = be32_of(in->ts_ecr);
	return sizeof(*ts);
}

static unsigned
emit_sack(uint8_t *o, const struct wire_tcp *in, unsigned room)
{
	struct sack_block *b = (struct sack_block *)(o + 4);
	unsigned n = in->nsack;

	if (n > (room - 4) / SACK_BLOCK)
		n = (room - 4) / SACK_BLOCK;
	o[0] = OPT_NOP;
	o[1] = OPT_NOP;
	o[2] = OPT_SACK;
	o[3] = (uint8_t)(2 + n * SACK_BLOCK);
	for (unsigned i = 0; i < n; i++) {
		b[i].left = be32_of(in->sack[i].left);
		b[i].right = be32_of(in->sack[i].right);
	}
	return 4 + n * SACK_BLOCK;
}

/* Writes the options. Each piece has a multiple of 4 bytes: MSS 4, timestamps 12, window scale 4,
 * and SACK in the rest. */
static unsigned
emit_options(uint8_t *o, const struct wire_tcp *in)
{
	unsigned at = 0;

	if (in->mss != 0) {
		o[0] = OPT_MSS;
		o[1] = MSS_LEN;
		*(be16 *)(o + 2) = be16_of(in->mss);
		at = MSS_LEN;
	}
	if (in->ts || in->sack_ok)
		at += emit_ts_and_sack_ok(o + at, in);
	if (in->wscale != TCP_NO_WSCALE) {
		o[at] = OPT_NOP;
		o[at + 1] = OPT_WSCALE;
		o[at + 2] = WSCALE_LEN;
		o[at + 3] = in->wscale;
		at += 4;
	}
	if (in->nsack > 0)
		at += emit_sack(o + at, in, OPTIONS_MAX - at);
	return at;
}

unsigned
wire_tcp_emit(uint8_t *p, const struct wire_tcp *in)
{
	struct tcp_hdr *h = (struct tcp_hdr *)p;
	unsigned len = TCP_LEN + emit_options(p + TCP_LEN, in);

	h->sport = be16_of(in->sport);
	h->dport = be16_of(in->dport);
	h->seq = be32_of(in->seq);
	h->ack = be32_of(in->ack);
	h->offset = (uint8_t)(len / 4 << 4);
	h->flags = in->flags;
	h->window = be16_of(in->window);
	h->checksum = 0;
	h->urgent = be16_of(0);
	return len;
}
