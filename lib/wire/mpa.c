/* SPDX-License-Identifier: BSD-3-Clause */
/* MPA: start-up frames, the fields around the ULPDU in an FPDU, and markers. */
#include "wire_priv.h"

#define KEY_LEN       16
#define FLAG_MARKERS  0x80
#define FLAG_CRC      0x40
#define FLAG_REJECT   0x20
#define FLAG_ENHANCED 0x10 /* RFC 6581 section 6 */
#define FLAG_RESERVED 0x0f

/* RFC 5044 section 7.1.1, RFC 6581 section 6 */
struct startup_hdr {
	uint8_t key[KEY_LEN];
	uint8_t flags;
	uint8_t revision;
	be16 private_len;
} __attribute__((packed));
_Static_assert(sizeof(struct startup_hdr) == MPA_STARTUP_LEN, "MPA start-up frame");

static const char key_request[KEY_LEN + 1] = "MPA ID Req Frame";
static const char key_reply[KEY_LEN + 1] = "MPA ID Rep Frame";

int
wire_mpa_startup_parse(struct wire_mpa_startup *out, const uint8_t *p, size_t len)
{
	const struct startup_hdr *h = (const struct startup_hdr *)p;

	if (len < MPA_STARTUP_LEN)
		return -WIRE_SHORT;
	out->reply = memcmp(h->key, key_reply, KEY_LEN) == 0;
	if (!out->reply && memcmp(h->key, key_request, KEY_LEN) != 0)
		return -WIRE_MPA_KEY;
	out->markers = h->flags & FLAG_MARKERS;
	out->crc = h->flags & FLAG_CRC;
	out->reject = h->flags & FLAG_REJECT;
	out->enhanced = h->flags & FLAG_ENHANCED;
	out->reserved = h->flags & FLAG_RESERVED;
	out->revision = h->revision;
	out->private_len = be16_get(h->private_len);
	if (out->private_len > MPA_PRIVATE_MAX)
		return -WIRE_MPA_LENGTH;
	return MPA_STARTUP_LEN;
}

unsigned
wire_mpa_startup_emit(uint8_t *p, const struct wire_mpa_startup *in)
{
	struct startup_hdr *h = (struct startup_hdr *)p;

	memcpy(h->key, in->reply ? key_reply : key_request, KEY_LEN);
	h->flags = (uint8_t)((in->markers ? FLAG_MARKERS : 0) | (in->crc ? FLAG_CRC : 0) |
			     (in->reject ? FLAG_REJECT : 0) | (in->enhanced ? FLAG_ENHANCED : 0));
	h->revision = in->revision;
	h->private_len = be16_of(in->private_len);
	return MPA_STARTUP_LEN;
}

#define DEPTH_MASK 0x3fff
#define HIGH_FLAG  0x8000
#define LOW_FLAG   0x4000

/* RFC 6581 section 9 */
struct ird_ord_hdr {
	be16 ird; /* A, B, IRD 14 */
	be16 ord; /* C, D, ORD 14 */
} __attribute__((packed));
_Static_assert(sizeof(struct ird_ord_hdr) == MPA_IRD_ORD_LEN, "MPA IRD/ORD word");

int
wire_mpa_ird_ord_parse(struct wire_mpa_ird_ord *out, const uint8_t *p, size_t len)
{
	const struct ird_ord_hdr *h = (const struct ird_ord_hdr *)p;
	uint16_t ird, ord;

	if (len < MPA_IRD_ORD_LEN)
		return -WIRE_SHORT;
	ird = be16_get(h->ird);
	ord = be16_get(h->ord);
	out->a = ird & HIGH_FLAG;
	out->b = ird & LOW_FLAG;
	out->c = ord & HIGH_FLAG;
	out->d = ord & LOW_FLAG;
	out->ird = ird & DEPTH_MASK;
	out->ord = ord & DEPTH_MASK;
	return MPA_IRD_ORD_LEN;
}

static be16
depth_field(bool high, bool low, uint16_t depth)
{
	return be16_of(
		(uint16_t)((high ? HIGH_FLAG : 0) | (low ? LOW_FLAG : 0) | (depth & DEPTH_MASK)));
}

unsigned
wire_mpa_ird_ord_emit(uint8_t *p, const struct wire_mpa_ird_ord *in)
{
	struct ird_ord_hdr *h = (struct ird_ord_hdr *)p;

	h->ird = depth_field(in->a, in->b, in->ird);
	h->ord = depth_field(in->c, in->d, in->ord);
	return MPA_IRD_ORD_LEN;
}

/* RFC 5044 section 4.3 */
struct marker_hdr {
	be16 reserved;
	be16 fpdu_ptr;
} __attribute__((packed));
_Static_assert(sizeof(struct marker_hdr) == MPA_MARKER_LEN, "MPA marker");

void
wire_mpa_marker_emit(uint8_t *p, uint16_t fpdu_ptr)
{
	struct marker_hdr *h = (struct marker_hdr *)p;

	h->reserved = be16_of(0);
	h->fpdu_ptr = be16_of(fpdu_ptr);
}

uint16_t
wire_mpa_marker_parse(const uint8_t *p)
{
	return be16_get(((const struct marker_hdr *)p)->fpdu_ptr);
}

/* RFC 5044 section 4.1 */
uint16_t
wire_mpa_len_parse(const uint8_t *p)
{
	return be16_get(*(const be16 *)p);
}

void
wire_mpa_len_emit(uint8_t *p, uint16_t ulpdu_len)
{
	*(be16 *)p = be16_of(ulpdu_len);
}

/* RFC 5044 section 4.4 takes the byte order of the CRC from iSCSI (RFC 3720 appendix B.4): the
 * low-order byte comes first. */
uint32_t
wire_mpa_crc_parse(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

void
wire_mpa_crc_emit(uint8_t *p, uint32_t crc)
{
	p[0] = (uint8_t)crc;
	p[1] = (uint8_t)(crc >> 8);
	p[2] = (uint8_t)(crc >> 16);
	p[3] = (uint8_t)(crc >> 24);
}
