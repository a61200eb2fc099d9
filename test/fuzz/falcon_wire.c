/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The headers behind UDP port 1000, from any bytes. Each parser reads only the bytes that it was
 * given; a header that it accepts is emitted with its length, and parses to the same record again.
 * The target compares records and not bytes, since reserved bits are not kept.
 */
#include "fuzz.h"

#include "../../lib/wire/rof.h"

static void
try_psp(const uint8_t *p, size_t len)
{
	struct wire_psp a, b;
	uint8_t again[PSP_MAX + 64 * PSP_CRYPT_UNIT + PSP_ICV_LEN];
	int n = wire_psp_parse(&a, p, len);

	if (n < 0)
		return;
	CLAIM(n == PSP_LEN || n == PSP_MAX);
	CLAIM((size_t)PSP_LEN + a.crypt_offset * PSP_CRYPT_UNIT + wire_psp_icv_len(a.version) <=
		len);
	CLAIM(wire_psp_emit(again, &a) == (unsigned)n);
	CLAIM(wire_psp_parse(&b, again, sizeof(again)) == n);
	CLAIM(a.next == b.next && a.crypt_offset == b.crypt_offset && a.version == b.version);
	CLAIM(a.sample == b.sample && a.drop == b.drop && a.has_vc == b.has_vc);
	CLAIM(a.spi == b.spi && a.iv == b.iv && a.vc == b.vc);
}

static void
try_rof(const uint8_t *p, size_t len)
{
	struct wire_rof a, b;
	uint8_t again[ROF_MAX], third[ROF_MAX];
	int n = wire_rof_parse(&a, p, len);

	if (n < 0)
		return;
	CLAIM((unsigned)n == wire_rof_len(a.opcode) && n <= ROF_MAX);
	CLAIM((size_t)n + a.pad <= len);
	CLAIM(wire_rof_falcon_type(a.opcode) >= 0);
	CLAIM(wire_rof_emit(again, &a) == (unsigned)n);
	CLAIM(wire_rof_parse(&b, again, (size_t)n + a.pad) == n);
	CLAIM(wire_rof_emit(third, &b) == (unsigned)n && memcmp(again, third, (size_t)n) == 0);
	/* all but RBTH and the queue numbers have no reserved bits */
	CLAIM(memcmp(again + 8, p + 8, 4) == 0 && (again[0] ^ p[0]) >> 4 == 0 && again[3] == p[3]);
}

static void
try_falcon(const uint8_t *p, size_t len)
{
	struct wire_falcon a, b;
	uint8_t again[FALCON_MAX], third[FALCON_MAX];
	int n = wire_falcon_parse(&a, p, len), cid = wire_falcon_cid(p, len);

	if (n < 0)
		return;
	CLAIM(cid >= 0 && (uint32_t)cid == a.cid);
	CLAIM((unsigned)n == wire_falcon_len(a.type) && (size_t)n <= len);
	if (a.type == FALCON_PUSH_DATA)
		CLAIM(a.request_len == len - (size_t)n);
	if (a.type >= FALCON_RESYNC)
		CLAIM((size_t)n == len);
	CLAIM(wire_falcon_emit(again, &a) == (unsigned)n);
	/* the payload of a push is counted, not read */
	CLAIM(wire_falcon_parse(&b, again, len) == n);
	CLAIM(wire_falcon_emit(third, &b) == (unsigned)n && memcmp(again, third, (size_t)n) == 0);
	CLAIM(memcmp(again + 8, p + 8, 16) == 0);
	try_rof(p + n, len - (size_t)n);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *p = exact_copy(data, size);

	try_psp(p, size);
	try_falcon(p, size);
	try_rof(p, size);
	free(p);
	return 0;
}
