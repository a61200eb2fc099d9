/* SPDX-License-Identifier: BSD-3-Clause */
/* The Terminate of a failed start-up: RFC 6581 8 (codes), 9.1 and 9.2 (conditions). */
#include <criterion/criterion.h>

#include "mpa_util.h"

static const struct mpa_offer wish = {.revision = 2, .crc = true, .ird = 4, .ord = 4};

/* Length 22; L, DV 1; RV 1, Terminate; no STag; QN 2, MSN 1, MO 0; LLP, MPA, code; no quoted
 * header. */
#define TERMINATE(code)                                                                            \
	0, 22, 0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0x20, code, 0, 0

static void
check_said(const struct mpa_startup *s, uint8_t code)
{
	const uint8_t want[] = {TERMINATE(code)};
	uint8_t buf[MPA_TERMINATE_FPDU + 4];

	memset(buf, 0xaa, sizeof(buf));
	cr_assert_eq(mpa_terminate_emit(s, buf), sizeof(want) + 4);
	cr_assert_arr_eq(buf, want, sizeof(want));
	cr_assert_eq(wire_mpa_crc_parse(buf + sizeof(want)),
		sk_crc32c_final(sk_crc32c(SK_CRC32C_INIT, want, sizeof(want))));
	cr_assert_eq(buf[sizeof(want) + 4], 0xaa);
}

Test(mpa_terminate, insufficient_ird_is_code_6_6581_9_1)
{
	struct mpa_startup s;

	cr_assert_eq(replied(&s, &wish, 0x50, 2, 4, 5), -MPA_NO_IRD);
	cr_assert_eq((int)s.why, MPA_NO_IRD);
	check_said(&s, 6);
}

Test(mpa_terminate, no_common_rtr_is_code_7_6581_9_2)
{
	struct mpa_offer o = wish;
	struct mpa_startup s;

	o.rtr_send = true;
	cr_assert_eq(replied(&s, &o, 0x50, 2, 0x8004, 0xc004), -MPA_NO_RTR);
	check_said(&s, 7);
}

Test(mpa_terminate, all_else_is_code_5_6581_9_3)
{
	struct mpa_startup s;

	/* The reply declines the CRC; lacks the word; uses another model. */
	cr_assert_eq(replied(&s, &wish, 0x10, 2, 4, 4), -MPA_PARAMETERS);
	check_said(&s, 5);
	cr_assert_eq(replied(&s, &wish, 0x40, 2, 0, 0), -MPA_PARAMETERS);
	check_said(&s, 5);
	cr_assert_eq(replied(&s, &wish, 0x50, 2, 0x8004, 0x8004), -MPA_PARAMETERS);
	check_said(&s, 5);
	/* The reply is correct, but this side cannot continue. */
	cr_assert_eq(replied(&s, &wish, 0x50, 2, 4, 4), 24);
	mpa_startup_abandon(&s);
	cr_assert_eq(s.state, MPA_FAILED);
	cr_assert_eq((int)s.why, MPA_LOCAL);
	check_said(&s, 5);
}

Test(mpa_terminate, a_terminate_is_not_sent_before_fpdu_mode_5044_7_1_2)
{
	uint8_t buf[MPA_TERMINATE_FPDU], out[MPA_STARTUP_MAX];
	struct mpa_startup s;

	/* No failure. */
	cr_assert_eq(replied(&s, &wish, 0x50, 2, 4, 4), 24);
	cr_assert_eq(mpa_terminate_emit(&s, buf), 0);
	/* No valid frame. */
	cr_assert_eq(replied(&s, &wish, 0x50, 3, 4, 4), -MPA_BAD_REVISION);
	cr_assert_eq(mpa_terminate_emit(&s, buf), 0);
	/* A rejection. */
	cr_assert_eq(replied(&s, &wish, 0x70, 2, 4, 4), 24);
	mpa_startup_abandon(&s);
	cr_assert_eq(mpa_terminate_emit(&s, buf), 0);
	/* No reply yet. */
	mpa_startup_init(&s, true, &wish);
	mpa_request_emit(&s, out, NULL, 0);
	mpa_startup_abandon(&s);
	cr_assert_eq(mpa_terminate_emit(&s, buf), 0);
	/* A responder: the initiator sends first. */
	mpa_startup_init(&s, false, &wish);
	mpa_startup_abandon(&s);
	cr_assert_eq(mpa_terminate_emit(&s, buf), 0);
}

/* Uses the negotiated parameters: no CRC, and markers if the peer requires them. Saker's own
 * receiver reads the FPDU. */
static void
read_back(uint8_t flags, bool crc, bool markers)
{
	struct mpa_offer o = {.revision = 2, .ird = 1, .crc = crc};
	uint8_t buf[MPA_TERMINATE_FPDU], ulpdu[64];
	struct wire_terminate t;
	struct mpa_startup s;
	struct mpa_fpdu f;
	struct wire_ddp d;
	struct mpa_rx rx;
	unsigned len;

	cr_assert_eq(replied(&s, &o, flags, 2, 0, 2), -MPA_NO_IRD);
	len = mpa_terminate_emit(&s, buf);
	cr_assert_eq(len, markers ? 32 : 28);
	mpa_rx_init(&rx, crc, markers, slices_free, NULL);
	mpa_rx_add(&rx, slice_new(buf, len));
	cr_assert_eq(mpa_rx_next(&rx, &f), 1);
	cr_assert_eq(f.ulpdu_len, DDP_UNTAGGED_LEN + RDMAP_TERMINATE_LEN);
	mpa_fpdu_copy(&f, 0, ulpdu, f.ulpdu_len);
	cr_assert_eq(wire_ddp_parse(&d, ulpdu, f.ulpdu_len), DDP_UNTAGGED_LEN);
	cr_assert(d.last && !d.tagged && d.opcode == RDMAP_TERMINATE && d.qn == DDP_QN_TERMINATE);
	cr_assert_gt(wire_terminate_parse(&t, ulpdu + DDP_UNTAGGED_LEN, RDMAP_TERMINATE_LEN), 0);
	cr_assert(t.layer == 2 && t.etype == 0 && t.code == 6 && !t.m && !t.d && !t.r);
	mpa_rx_done(&rx, &f);
	mpa_rx_clear(&rx);
	cr_assert_eq(slices_live, 0);
}

Test(mpa_terminate, it_goes_out_as_negotiated_5044_4)
{
	read_back(0x10, false, false);
	read_back(0x50, true, false);
	read_back(0x90, false, true);
	read_back(0xd0, true, true);
}
