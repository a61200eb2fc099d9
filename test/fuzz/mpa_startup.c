/* SPDX-License-Identifier: BSD-3-Clause */
/* MPA start-up frames and the small fields of MPA must survive the conversion into a structure and
 * back. */
#include "fuzz.h"

#include "../../lib/wire/wire.h"

static void
again_startup(const uint8_t *data, size_t size)
{
	uint8_t out[MPA_STARTUP_LEN];
	struct wire_mpa_startup s;

	if (wire_mpa_startup_parse(&s, data, size) < 0)
		return;
	CLAIM(s.private_len <= MPA_PRIVATE_MAX);
	CLAIM(wire_mpa_startup_emit(out, &s) == MPA_STARTUP_LEN);
	/* Reserved bits are not written. */
	CLAIM((out[16] | s.reserved) == data[16]);
	out[16] = data[16];
	CLAIM(memcmp(out, data, MPA_STARTUP_LEN) == 0);
}

static void
again_words(const uint8_t *data)
{
	struct wire_mpa_ird_ord w;
	uint8_t out[4];

	CLAIM(wire_mpa_ird_ord_parse(&w, data, 4) == 4);
	CLAIM(w.ird <= 0x3fff && w.ord <= 0x3fff);
	CLAIM(wire_mpa_ird_ord_emit(out, &w) == 4);
	CLAIM(memcmp(out, data, 4) == 0);
	wire_mpa_crc_emit(out, wire_mpa_crc_parse(data));
	CLAIM(memcmp(out, data, 4) == 0);
	wire_mpa_len_emit(out, wire_mpa_len_parse(data));
	CLAIM(memcmp(out, data, 2) == 0);
	wire_mpa_marker_emit(out, wire_mpa_marker_parse(data));
	CLAIM(memcmp(out + 2, data + 2, 2) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	again_startup(data, size);
	if (size >= 4)
		again_words(data);
	return 0;
}
