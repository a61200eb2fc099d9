/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA over Falcon headers, compared with bytes from the figures of its section 8. */
#include "vector.h"

#include "../../../lib/wire/rof_pull.h"

/* Pieces of packets, in hex. Each row gives its RBTH: version 1; SE and padding differ. */
#define QP_SN     "77889900 00000005"
#define RETH      "0102030405060708 a1a2a3a4 00002000"
#define SETH      "00000009"
#define OETH      "00001000"
#define STETH     "1112131415161718 b1b2b3b4"
#define IMMDT     "c1c2c3c4"
#define IETH      "d1d2d3d4"
#define ATOMICETH "0102030405060708 a1a2a3a4 2122232425262728 3132333435363738"
#define ATOMICACK "4142434445464748"
#define XRCETH    "51525300"
#define DETH      "61626364 71727300"

static const struct row {
	uint8_t opcode;
	uint8_t falcon_type;
	const char *rest; /* behind RBTH */
} rows[] = {
	{0x00, FALCON_PUSH_DATA, SETH OETH},
	{0x01, FALCON_PUSH_DATA, SETH OETH},
	{0x02, FALCON_PUSH_DATA, SETH OETH},
	{0x03, FALCON_PUSH_DATA, SETH OETH IMMDT},
	{0x04, FALCON_PUSH_DATA, SETH OETH},
	{0x05, FALCON_PUSH_DATA, SETH OETH IMMDT},
	{0x06, FALCON_PUSH_DATA, RETH},
	{0x07, FALCON_PUSH_DATA, RETH},
	{0x08, FALCON_PUSH_DATA, RETH},
	{0x09, FALCON_PUSH_DATA, RETH SETH IMMDT},
	{0x0a, FALCON_PUSH_DATA, RETH},
	{0x0b, FALCON_PUSH_DATA, RETH SETH IMMDT},
	{0x0c, FALCON_PULL_REQUEST, RETH SETH STETH},
	{0x0d, FALCON_PULL_DATA, STETH},
	{0x0e, FALCON_PULL_DATA, STETH},
	{0x0f, FALCON_PULL_DATA, STETH},
	{0x10, FALCON_PULL_DATA, STETH},
	{0x12, FALCON_PULL_DATA, ATOMICACK STETH},
	{0x13, FALCON_PULL_REQUEST, ATOMICETH SETH STETH},
	{0x14, FALCON_PULL_REQUEST, ATOMICETH SETH STETH},
	{0x16, FALCON_PUSH_DATA, SETH OETH IETH},
	{0x17, FALCON_PUSH_DATA, SETH OETH IETH},
	{0x64, FALCON_PUSH_DATA, DETH},
	{0x65, FALCON_PUSH_DATA, DETH IMMDT},
	{0xa0, FALCON_PUSH_DATA, XRCETH SETH OETH},
	{0xa5, FALCON_PUSH_DATA, XRCETH SETH OETH IMMDT},
	{0xa6, FALCON_PUSH_DATA, XRCETH RETH},
	{0xa9, FALCON_PUSH_DATA, XRCETH RETH SETH IMMDT},
	{0xac, FALCON_PULL_REQUEST, XRCETH RETH SETH STETH},
	{0xad, FALCON_PULL_DATA, STETH},
	{0xb2, FALCON_PULL_DATA, ATOMICACK STETH},
	{0xb3, FALCON_PULL_REQUEST, XRCETH ATOMICETH SETH STETH},
	{0xb7, FALCON_PUSH_DATA, XRCETH SETH OETH IETH},
};
#define NROWS (sizeof(rows) / sizeof(rows[0]))

static struct bytes
packet(const struct row *row)
{
	char text[512];

	snprintf(text, sizeof(text), "100000%02x" QP_SN "%s", row->opcode, row->rest);
	return hex(text);
}

/* Checks the fields against the pieces: a field whose header is not in the packet is 0. */
static void
check_fields(const struct wire_rof *h, const struct row *row)
{
	bool reth = strstr(row->rest, RETH) != NULL, seth = strstr(row->rest, SETH) != NULL;
	bool atomic = strstr(row->rest, ATOMICETH) != NULL;
	bool steth = strstr(row->rest, STETH) != NULL, deth = strstr(row->rest, DETH) != NULL;

	cr_assert_eq(h->va, reth || atomic ? 0x0102030405060708 : 0);
	cr_assert_eq(h->rkey, reth || atomic ? 0xa1a2a3a4 : 0);
	cr_assert_eq(h->length, reth ? 0x2000 : 0);
	cr_assert_eq(h->swap_add, atomic ? 0x2122232425262728 : 0);
	cr_assert_eq(h->compare, atomic ? 0x3132333435363738 : 0);
	cr_assert_eq(h->original, strstr(row->rest, ATOMICACK) ? 0x4142434445464748 : 0);
	cr_assert_eq(h->rmsn, seth ? 9 : 0);
	cr_assert_eq(h->offset, strstr(row->rest, OETH) ? 0x1000 : 0);
	cr_assert_eq(h->sink_va, steth ? 0x1112131415161718 : 0);
	cr_assert_eq(h->sink_lkey, steth ? 0xb1b2b3b4 : 0);
	cr_assert_eq(h->imm, strstr(row->rest, IMMDT) ? 0xc1c2c3c4 : 0);
	cr_assert_eq(h->inv_rkey, strstr(row->rest, IETH) ? 0xd1d2d3d4 : 0);
	cr_assert_eq(h->xrc_srq, strstr(row->rest, XRCETH) ? 0x515253 : 0);
	cr_assert_eq(h->qkey, deth ? 0x61626364 : 0);
	cr_assert_eq(h->src_qp, deth ? 0x717273 : 0);
}

Test(rof, each_opcode_has_its_headers_rof_8_1_3)
{
	for (unsigned i = 0; i < NROWS; i++) {
		struct bytes v = packet(rows + i);
		struct wire_rof h;

		ASSERT_REFUSES_SHORT(wire_rof_parse, h, v, v.len, WIRE_SHORT);
		cr_assert_eq(h.opcode, rows[i].opcode);
		cr_assert_eq(h.dest_qp, 0x778899);
		cr_assert_eq(h.sn, 5);
		cr_assert(!h.ce && !h.se && h.pad == 0);
		check_fields(&h, rows + i);
		ASSERT_EMITS(wire_rof_emit, h, v);
		cr_assert_eq(wire_rof_len(h.opcode), v.len);
		cr_assert_leq(v.len, ROF_MAX);
		cr_assert_eq(wire_rof_falcon_type(h.opcode), rows[i].falcon_type, "opcode %02x",
			h.opcode);
	}
}

Test(rof, opcodes_are_infinibands_rof_8_2)
{
	cr_assert_eq(ROF_SEND_ONLY_IMM, 0x05);
	cr_assert_eq(ROF_WRITE_ONLY_IMM, 0x0b);
	cr_assert_eq(ROF_READ_REQUEST, 0x0c);
	cr_assert_eq(ROF_READ_RESPONSE_ONLY, 0x10);
	cr_assert_eq(ROF_ATOMIC_RESPONSE, 0x12);
	cr_assert_eq(ROF_CMP_SWAP, 0x13);
	cr_assert_eq(ROF_FETCH_ADD, 0x14);
	cr_assert_eq(ROF_SEND_ONLY_INV, 0x17);
	cr_assert_eq(ROF_UD | ROF_SEND_ONLY, 0x64);
	cr_assert_eq(ROF_XRC | ROF_SEND_FIRST, 0xa0);
}

/* Opcodes that the table reserves, or of a transport that does not exist. */
static bool
reserved(unsigned opcode)
{
	unsigned transport = opcode >> 5, op = opcode & 31;

	if (transport == 3)
		return op != 4 && op != 5;
	if (transport != 0 && transport != 5)
		return true;
	return op == 0x11 || op == 0x15 || op > 0x17;
}

Test(rof, reserved_opcodes_are_refused_rof_8_1_3)
{
	struct bytes v = {.len = 100, .b = {0x10}};
	struct wire_rof h;
	uint8_t out[ROF_MAX];

	for (unsigned op = 0; op < 256; op++) {
		v.b[3] = (uint8_t)op;
		cr_assert_eq(wire_rof_parse(&h, v.b, v.len) == -WIRE_ROF_OPCODE, reserved(op),
			"opcode %02x", op);
		cr_assert_eq(wire_rof_headers((uint8_t)op) < 0, reserved(op));
		cr_assert_eq(wire_rof_falcon_type((uint8_t)op) < 0, reserved(op));
		h.opcode = (uint8_t)op;
		cr_assert_eq(wire_rof_emit(out, &h) == 0, reserved(op));
	}
}

Test(rof, version_is_1_rof_8_2)
{
	struct bytes v = packet(rows);
	struct wire_rof h;

	for (unsigned byte = 0; byte < 256; byte++) {
		v.b[0] = (uint8_t)byte;
		cr_assert_eq(wire_rof_parse(&h, v.b, v.len) == -WIRE_ROF_VERSION, byte >> 4 != 1);
	}
}

Test(rof, ce_pad_and_se_of_rbth_rof_8_2)
{
	struct bytes v = hex("10001104 77889900 00000005 00000009 00001000"); /* CE, SE */
	struct wire_rof h;

	cr_assert_eq(wire_rof_parse(&h, v.b, v.len), 20);
	cr_assert(h.ce && h.se && h.pad == 0);
	ASSERT_EMITS(wire_rof_emit, h, v);
	v.b[2] = 0x0c; /* pad 3 */
	for (size_t payload = 0; payload < 5; payload++)
		cr_assert_eq(wire_rof_parse(&h, v.b, v.len + payload),
			payload < 3 ? -WIRE_ROF_PAD : 20, "%zu bytes behind", payload);
	cr_assert(!h.ce && !h.se && h.pad == 3);
	ASSERT_EMITS(wire_rof_emit, h, v);
	v.b[2] = 0x01;
	cr_assert_eq(wire_rof_parse(&h, v.b, v.len), 20);
	cr_assert(!h.ce && h.se);
	ASSERT_EMITS(wire_rof_emit, h, v);
}

Test(rof, reserved_bits_are_ignored_and_written_as_0_rof_8_2)
{
	struct bytes noisy = hex("1fffe204 778899ff 00000005 00000009 00001000");
	struct bytes clean = hex("10000004 77889900 00000005 00000009 00001000");
	struct wire_rof h;

	cr_assert_eq(wire_rof_parse(&h, noisy.b, noisy.len), 20);
	ASSERT_EMITS(wire_rof_emit, h, clean);
	h.dest_qp |= 0xff000000;
	h.pad = 4;
	ASSERT_EMITS(wire_rof_emit, h, clean);
}

Test(rof, padding_aligns_a_payload_to_4_bytes_rof_8_2)
{
	cr_assert_eq(wire_rof_pad(0), 0);
	cr_assert_eq(wire_rof_pad(1), 3);
	cr_assert_eq(wire_rof_pad(2), 2);
	cr_assert_eq(wire_rof_pad(3), 1);
	cr_assert_eq(wire_rof_pad(4), 0);
	cr_assert_eq(wire_rof_pad(0xffffffff), 1);
}

Test(rof, composed_headers_are_the_bytes_that_emit_writes)
{
	uint64_t rng = 1;
	uint8_t emitted[ROF_MAX], put[ROF_MAX];

	for (unsigned i = 0; i < 1000; i++) {
		struct wire_rof h = {.opcode = ROF_WRITE_ONLY, .pad = i & 3};

		rng = rng * 6364136223846793005ull + 1442695040888963407ull;
		h.dest_qp = rng >> 30 & ROF_QPN_MAX;
		h.sn = (uint32_t)(rng >> 7);
		h.va = rng ^ rng << 31;
		h.rkey = (uint32_t)(rng >> 11);
		h.length = (uint32_t)(rng >> 19);
		h.rmsn = (uint32_t)(rng >> 23);
		cr_assert_eq(wire_rof_emit(emitted, &h), ROF_WRITE_ONLY_LEN);
		wire_rof_write_put(put, &h);
		cr_assert_arr_eq(put, emitted, ROF_WRITE_ONLY_LEN);
		h.opcode = ROF_SEND_ONLY;
		h.se = i & 4;
		cr_assert_eq(wire_rof_emit(emitted, &h), ROF_SEND_ONLY_LEN);
		wire_rof_send_put(put, &h);
		cr_assert_arr_eq(put, emitted, ROF_SEND_ONLY_LEN);
	}
}

/* Returns random headers of `opcode`. */
static struct wire_rof
random_headers(uint64_t *rng, uint8_t opcode)
{
	uint64_t v[6];

	for (unsigned i = 0; i < 6; i++) {
		*rng = *rng * 6364136223846793005ull + 1442695040888963407ull;
		v[i] = *rng ^ *rng >> 32;
	}
	return (struct wire_rof){.opcode = opcode,
		.dest_qp = v[0] & ROF_QPN_MAX,
		.sn = (uint32_t)(v[0] >> 32),
		.va = v[1],
		.rkey = (uint32_t)v[2],
		.rmsn = (uint32_t)(v[2] >> 32),
		.sink_va = v[3],
		.sink_lkey = (uint32_t)v[4],
		.swap_add = v[5],
		.compare = v[5] * 3,
		.original = v[5] * 5,
		.length = (uint32_t)(v[4] >> 32)};
}

Test(rof, composed_requests_of_pulls_are_the_bytes_that_emit_writes)
{
	static const uint8_t opcodes[] = {ROF_READ_REQUEST, ROF_FETCH_ADD, ROF_CMP_SWAP};
	uint8_t emitted[ROF_MAX], put[ROF_MAX];
	uint64_t rng = 1;

	for (unsigned i = 0; i < 1000; i++) {
		struct wire_rof h = random_headers(&rng, opcodes[i % 3]);
		struct wire_rof parsed = {.dest_qp = h.dest_qp};
		unsigned len = wire_rof_emit(emitted, &h);

		cr_assert_eq(len, i % 3 ? ROF_ATOMIC_LEN : ROF_READ_REQUEST_LEN);
		if (i % 3)
			wire_rof_atomic_put(put, &h);
		else
			wire_rof_read_put(put, &h);
		cr_assert_arr_eq(put, emitted, len);
		cr_assert(wire_rof_pull_parse(&parsed, put, len));
		cr_assert_eq(parsed.opcode, h.opcode);
		cr_assert_eq(parsed.sn, h.sn);
		cr_assert_eq(parsed.va, h.va);
		cr_assert_eq(parsed.rkey, h.rkey);
		cr_assert_eq(parsed.sink_va, h.sink_va);
		cr_assert_eq(parsed.sink_lkey, h.sink_lkey);
		cr_assert_eq(
			i % 3 ? parsed.swap_add : parsed.length, i % 3 ? h.swap_add : h.length);
		cr_assert(i % 3 == 0 || parsed.compare == h.compare);
		/* Another QP, other lengths, and any other bit of the first word. */
		parsed.dest_qp ^= 1;
		cr_assert_not(wire_rof_pull_parse(&parsed, put, len));
		parsed.dest_qp ^= 1;
		cr_assert_not(wire_rof_pull_parse(&parsed, put, len - 1));
		cr_assert_not(wire_rof_pull_parse(&parsed, put, len + 1));
		put[i % 8] ^= (uint8_t)(1u << i / 8 % 8);
		/* One bit makes an Atomic the other one. */
		cr_assert(!wire_rof_pull_parse(&parsed, put, len) ||
			  (i % 8 == 3 && parsed.opcode == put[3] && i % 3));
	}
}

Test(rof, composed_responses_are_the_bytes_that_emit_writes)
{
	static const uint8_t opcodes[] = {ROF_READ_RESPONSE_ONLY, ROF_ATOMIC_RESPONSE};
	uint8_t emitted[ROF_MAX], put[ROF_MAX];
	uint64_t rng = 1;

	for (unsigned i = 0; i < 1000; i++) {
		struct wire_rof h = random_headers(&rng, opcodes[i % 2]);
		unsigned len, flip = i % (8 * ROF_READ_RESPONSE_LEN);

		h.pad = i % 2 ? 0 : i / 2 % 4;
		len = wire_rof_emit(emitted, &h);
		if (i % 2) {
			cr_assert_eq(len, ROF_ATOMIC_RESPONSE_LEN);
			wire_rof_atomic_response_put(put, &h);
			cr_assert(wire_rof_atomic_response_is(put, &h));
			cr_assert_eq(wire_rof_atomic_original(put), h.original);
		} else {
			cr_assert_eq(len, ROF_READ_RESPONSE_LEN);
			wire_rof_read_response_put(put, &h);
			cr_assert(wire_rof_read_response_is(put, &h));
		}
		cr_assert_arr_eq(put, emitted, len);
		/* Any bit but those of the value of an Atomic makes another response. */
		put[flip / 8] ^= (uint8_t)(1u << flip % 8);
		if (i % 2)
			cr_assert_eq(wire_rof_atomic_response_is(put, &h),
				flip / 8 >= 12 && flip / 8 < 20);
		else
			cr_assert_not(wire_rof_read_response_is(put, &h));
	}
}
