/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ULPDU: the DDP header and the header that its opcode announces. When written again, a header
 * must have the same bytes but for reserved bits and versions, which are compared separately.
 */
#include "fuzz.h"

#include "../../lib/wire/wire.h"

static void
again_ddp(const struct wire_ddp *h, const uint8_t *was, unsigned len)
{
	uint8_t out[DDP_MAX];

	CLAIM(wire_ddp_emit(out, h) == len);
	CLAIM((out[0] & 0xc0) == (was[0] & 0xc0) && (out[0] & 0x3f) == 1);
	CLAIM((out[1] & 0x0f) == (was[1] & 0x0f) && (out[1] & 0xf0) == 0x40);
	CLAIM(memcmp(out + 2, was + 2, len - 2) == 0);
}

static void
again_read_request(const uint8_t *p, size_t len)
{
	struct wire_read_request r;
	uint8_t out[RDMAP_READ_REQUEST_LEN];

	if (wire_read_request_parse(&r, p, len) < 0)
		return;
	CLAIM(wire_read_request_emit(out, &r) == sizeof(out));
	CLAIM(memcmp(out, p, sizeof(out)) == 0);
}

static void
again_terminate(const uint8_t *p, size_t len)
{
	struct wire_terminate t;
	uint8_t out[RDMAP_TERMINATE_MAX];
	int n = wire_terminate_parse(&t, p, len);

	if (n < 0)
		return;
	CLAIM((size_t)n <= len && n <= RDMAP_TERMINATE_MAX);
	CLAIM(wire_terminate_emit(out, &t) == (unsigned)n);
	CLAIM(out[2] == (p[2] & 0xe0) && out[3] == 0);
	CLAIM(memcmp(out, p, 2) == 0 && memcmp(out + 4, p + 4, (size_t)n - 4) == 0);
}

static void
again_atomic(const uint8_t *p, size_t len)
{
	struct wire_atomic_request a;
	struct wire_atomic_response b;
	uint8_t out[RDMAP_ATOMIC_REQUEST_LEN];

	if (wire_atomic_request_parse(&a, p, len) >= 0) {
		CLAIM(wire_atomic_request_emit(out, &a) == sizeof(out));
		CLAIM(out[3] == (p[3] & 0x0f) && memcmp(out + 4, p + 4, sizeof(out) - 4) == 0);
	}
	if (wire_atomic_response_parse(&b, p, len) >= 0) {
		CLAIM(wire_atomic_response_emit(out, &b) == RDMAP_ATOMIC_RESPONSE_LEN);
		CLAIM(memcmp(out, p, RDMAP_ATOMIC_RESPONSE_LEN) == 0);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_ddp h;
	int n = wire_ddp_parse(&h, data, size);
	const uint8_t *body;
	size_t left;

	if (n < 0)
		return 0;
	CLAIM(n == (h.tagged ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN));
	again_ddp(&h, data, (unsigned)n);
	body = data + n;
	left = size - (size_t)n;
	if (h.opcode == RDMAP_READ_REQUEST)
		again_read_request(body, left);
	else if (h.opcode == RDMAP_TERMINATE)
		again_terminate(body, left);
	else if (h.opcode >= RDMAP_ATOMIC_REQUEST)
		again_atomic(body, left);
	return 0;
}
