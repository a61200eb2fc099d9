/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Errors that need more than one segment, or another kind of peer. Each causes the right Terminate,
 * the first error wins, and an incoming Terminate is obeyed.
 */
#include "rdmap_victim.h"

#include <criterion/criterion.h>
#include <string.h>

Test(rdmap_refuse, a_region_that_reaches_the_last_address_is_usable)
{
	struct wire_ddp d = {.tagged = true, .last = true, .opcode = RDMAP_WRITE};
	uint8_t got[4];

	victim_start();
	d.stag = high->stag;
	d.to = ~0ull - 3;
	end_fpdu(&e, &d, "wxyz", 4);
	mr_get(high, VICTIM_LEN - 4, got, 4);
	cr_assert_arr_eq(got, "wxyz", 4);
	cr_assert_eq(e.errors, 0);
	cr_assert(end_fini(&e));
}

/* IRD is 8: a ninth unanswered request has no buffer. */
Test(rdmap_refuse, more_read_requests_than_ird_rfc5040_7_2)
{
	struct wire_read_request rr = {0x1234, 0, 8, 0, 0x20000};
	struct iw_info info;
	uint8_t seg[46];

	victim_start();
	rr.src_stag = readable->stag;
	for (uint32_t msn = 1; msn <= 8; msn++) {
		read_request_seg(seg, msn, &rr);
		cr_assert_eq(e.errors, 0, "request %u", msn);
	}
	iw_get_info(e.q, &info);
	cr_assert_eq(info.ird_used, 8);
	read_request_seg(seg, 9, &rr);
	iw_get_info(e.q, &info);
	cr_assert_eq(info.ird_used, 0);
	cr_assert_eq(e.st.counters[IW_IRD_EXCEEDED], 1);
	expect_terminate("ird", 1, 2, 2, M_D, seg, 46);
	expect_end("ird", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
}

/* The source is destroyed between the request and its response. */
Test(rdmap_refuse, source_invalidated_before_the_response_quotes_the_request)
{
	struct wire_read_request rr = {0x1234, 0x99, 8, 0, 0x20000};
	uint8_t seg[46];

	victim_start();
	rr.src_stag = readable->stag;
	read_request_seg(seg, 1, &rr);
	readable->valid = false;
	expect_terminate("late", 0, 1, 0, M_D_R, seg, 46);
	expect_end("late", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
}

/* ---- Send ---- */

static void
send_seg(uint32_t msn, uint32_t mo, bool last, uint8_t opcode, uint32_t inv, uint32_t len)
{
	struct wire_ddp d = {.last = last, .opcode = opcode, .msn = msn, .mo = mo, .inv_stag = inv};
	uint8_t body[256];

	for (unsigned i = 0; i < sizeof(body); i++)
		body[i] = pattern(1, mo + i); /* the contents of the receive's region */
	end_fpdu(&e, &d, body, len);
}

static void
expect_send_terminate(const char *name, uint8_t layer, uint8_t etype, uint8_t code, uint32_t msn,
	uint32_t mo, bool last, uint8_t opcode, uint32_t inv, uint32_t len, int quote)
{
	struct wire_ddp d = {.last = last, .opcode = opcode, .msn = msn, .mo = mo, .inv_stag = inv};
	uint8_t seg[DDP_MAX];

	wire_ddp_emit(seg, &d);
	expect_terminate(name, layer, etype, code, quote, seg, DDP_UNTAGGED_LEN + len);
}

Test(rdmap_refuse, send_without_a_receive_rfc5041_7_1)
{
	victim_start();
	send_seg(1, 0, true, RDMAP_SEND, 0, 8);
	send_seg(2, 0, true, RDMAP_SEND, 0, 8);
	cr_assert_eq(e.nrecv, 2);
	send_seg(3, 0, true, RDMAP_SEND, 0, 8);
	cr_assert_eq(e.st.counters[IW_DDP_U_NO_BUFFER], 1);
	expect_send_terminate("no buffer", 1, 2, 2, 3, 0, true, RDMAP_SEND, 0, 8, M_D);
	cr_assert_eq(e.nrecv, 2);
	cr_assert_eq(e.nsend, 2);
	cr_assert(end_fini(&e));
}

Test(rdmap_refuse, second_segment_with_another_offset_or_opcode_rfc5041_5_2)
{
	victim_start();
	send_seg(1, 0, false, RDMAP_SEND, 0, 8);
	send_seg(1, 12, true, RDMAP_SEND, 0, 8);
	expect_send_terminate("gap", 1, 2, 4, 1, 12, true, RDMAP_SEND, 0, 8, M_D);
	expect_end("gap", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);

	victim_start();
	send_seg(1, 0, false, RDMAP_SEND, 0, 8);
	send_seg(1, 8, true, RDMAP_SEND_SE, 0, 8);
	expect_send_terminate("opcode", 0, 2, 6, 1, 8, true, RDMAP_SEND_SE, 0, 8, M_D);
	expect_end("opcode", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);

	victim_start();
	send_seg(1, 0, false, RDMAP_SEND, 0, 8);
	send_seg(2, 0, true, RDMAP_SEND, 0, 8);
	expect_send_terminate("next message", 1, 2, 3, 2, 0, true, RDMAP_SEND, 0, 8, M_D);
	expect_end("next message", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
}

Test(rdmap_refuse, invalidation_that_is_refused_rfc5040_7_2)
{
	static const struct {
		const char *name;
		enum stag stag;
		uint8_t code;
	} rows[] = {
		{"unknown", UNKNOWN, 0},
		{"already invalid", GONE, 0},
		{"other protection domain", FOREIGN, 3},
		{"never granted", LOCAL, 9},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint32_t inv;

		victim_start();
		inv = stag_of(rows[i].stag);
		send_seg(1, 0, true, RDMAP_SEND_INV, inv, 8);
		cr_assert(end_untouched(&e), "%s", rows[i].name);
		cr_assert_eq(e.invalidations, 0, "%s", rows[i].name);
		expect_send_terminate(
			rows[i].name, 0, 1, rows[i].code, 1, 0, true, RDMAP_SEND_INV, inv, 8, M_D);
		expect_end(rows[i].name, RD_REM_INV_REQ_ERR, RD_WR_FLUSH_ERR);
	}
}

Test(rdmap_refuse, a_receive_into_memory_that_is_gone_is_a_local_error_rfc5041_7_1)
{
	victim_start();
	writable->valid = false;
	send_seg(1, 0, true, RDMAP_SEND, 0, 8);
	cr_assert_eq(e.st.counters[IW_DDP_LOCAL], 1);
	expect_send_terminate("local", 1, 0, 0, 1, 0, true, RDMAP_SEND, 0, 8, NONE);
	expect_end("local", RD_LOC_PROT_ERR, RD_WR_FLUSH_ERR);
}

/* ---- The stream ---- */

Test(rdmap_refuse, wrong_crc_rfc5044_8)
{
	struct wire_ddp d = {.last = true, .opcode = RDMAP_SEND, .msn = 1};
	uint8_t buf[64];
	struct mpa_writer w;
	struct mpa_tx t;
	uint32_t n;

	victim_start();
	mpa_tx_init(&t, true, false, 1448);
	mpa_write_begin(&w, &t, buf, DDP_UNTAGGED_LEN + 4);
	wire_ddp_emit(buf + MPA_LEN_FIELD, &d);
	w.at += DDP_UNTAGGED_LEN;
	w.left -= DDP_UNTAGGED_LEN;
	mpa_write_put(&w, "abcd", 4);
	n = mpa_write_end(&w);
	buf[MPA_LEN_FIELD + DDP_UNTAGGED_LEN] ^= 1;
	end_feed(&e, buf, n, 0, NULL);
	cr_assert(end_untouched(&e), "crc");
	cr_assert_eq(e.st.counters[IW_LLP_CRC], 1);
	cr_assert_eq(e.st.mpa_counters[MPA_CRC], 1);
	expect_terminate("crc", 2, 0, 2, NONE, NULL, 0);
	expect_end("crc", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
}

/* An FPDU shorter than the DDP header that every ULPDU has. */
Test(rdmap_refuse, a_ulpdu_shorter_than_its_header)
{
	struct wire_ddp d = {.last = true, .opcode = RDMAP_SEND, .msn = 1};

	for (uint32_t n = 0; n < DDP_UNTAGGED_LEN; n++) {
		uint8_t hdr[DDP_MAX], buf[64];
		struct mpa_writer w;
		struct mpa_tx t;

		victim_start();
		wire_ddp_emit(hdr, &d);
		mpa_tx_init(&t, true, false, 1448);
		mpa_write_begin(&w, &t, buf, n);
		mpa_write_put(&w, hdr, n);
		end_feed(&e, buf, mpa_write_end(&w), 0, NULL);
		cr_assert_eq(e.st.mpa_counters[MPA_SHORT_ULPDU], n < DDP_TAGGED_LEN, "%u", n);
		cr_assert_eq(e.st.counters[IW_RDMAP_UNSPECIFIED], 1, "%u", n);
		expect_terminate("short", 0, 2, 0xff, NONE, NULL, 0);
		expect_end("short", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
	}
}

/* The QP receives markers; the first marker of an FPDU has a wrong pointer. */
Test(rdmap_refuse, wrong_marker_rfc5044_8)
{
	struct wire_ddp d = {.last = true, .opcode = RDMAP_SEND, .msn = 1};
	struct iw_params params = end_params();
	uint8_t buf[64], body[64];
	struct mpa_writer w;
	struct mpa_tx t;
	uint32_t n;

	params.rx_markers = true;
	params.crc = false;
	end_init(&e, &params, true);
	wire_ddp_emit(body, &d);
	mpa_tx_init(&t, false, true, 1448);
	mpa_write_begin(&w, &t, buf, DDP_UNTAGGED_LEN);
	mpa_write_put(&w, body, DDP_UNTAGGED_LEN);
	n = mpa_write_end(&w);
	wire_mpa_marker_emit(buf, 8);
	end_feed(&e, buf, n, 0, NULL);
	cr_assert_eq(e.st.counters[IW_LLP_MARKER], 1);
	end_tx(&e);
	cr_assert_eq(e.closes, 1);
	cr_assert_eq(wire_mpa_len_parse(e.wire), DDP_UNTAGGED_LEN + RDMAP_TERMINATE_LEN);
	cr_assert_eq(e.wire[MPA_LEN_FIELD + DDP_UNTAGGED_LEN], 0x20, "layer LLP, type MPA");
	cr_assert_eq(e.wire[MPA_LEN_FIELD + DDP_UNTAGGED_LEN + 1], 3);
	cr_assert(end_fini(&e));
}

/* No Read is outstanding, or its request has not been sent yet. */
Test(rdmap_refuse, a_read_response_without_a_request_rfc5040_7_2)
{
	struct wire_ddp d = {.tagged = true, .last = true, .opcode = RDMAP_READ_RESPONSE};
	uint8_t seg[DDP_MAX], body[64] = {0};

	for (int held = 0; held < 2; held++) {
		struct rd_wr *wr;

		end_init(&e, NULL, true);
		local = end_mr(&e, 0x50000, VICTIM_LEN, RD_ACC_LOCAL_WRITE, 1, 1);
		d.stag = local->stag;
		d.to = 0x50000;
		if (held) {
			wr = end_post(&e, RD_READ, 1);
			wr_sge(wr, local, 0, 64);
			e.refuse_send = 1;
			cr_assert_eq(iw_tx(e.q, 0, 9), IW_TX_NOBUF);
			e.refuse_send = 1;
		}
		wire_ddp_emit(seg, &d);
		end_fpdu(&e, &d, body, 64);
		cr_assert(end_untouched(&e), "unasked");
		cr_assert_eq(e.st.counters[IW_READ_RESPONSE_BAD], 1);
		if (held) { /* the request that was refused before is sent ahead of the Terminate */
			struct wire_ddp first;
			uint32_t n;

			end_tx(&e);
			cr_assert(end_sent(&e, &first, body, &n));
			cr_assert_eq(first.opcode, RDMAP_READ_REQUEST);
			cr_assert_eq(e.nsend, 1);
			cr_assert_eq(e.send_wc[0].status, RD_WR_FLUSH_ERR);
		}
		expect_terminate("unasked", 0, 2, 6, M_D, seg, DDP_TAGGED_LEN + 64);
		cr_assert(end_fini(&e));
	}
}

/* The first segment of a Read Response is already too long, though another would follow. */
Test(rdmap_refuse, a_read_response_that_overruns_before_its_end)
{
	struct wire_ddp d = {.tagged = true, .opcode = RDMAP_READ_RESPONSE, .to = 0x50008};
	uint8_t seg[DDP_MAX], body[65] = {0};

	victim_start();
	d.stag = local->stag;
	wire_ddp_emit(seg, &d);
	end_fpdu(&e, &d, body, 65);
	cr_assert(end_untouched(&e), "overrun");
	expect_terminate("overrun", 1, 1, 1, M_D, seg, DDP_TAGGED_LEN + 65);
	expect_end("overrun", RD_WR_FLUSH_ERR, RD_BAD_RESP_ERR);
}

/* The second segment is refused: the bytes of the first stay, and no other byte is placed. */
Test(rdmap_refuse, a_write_that_leaves_its_region_in_the_second_segment)
{
	struct wire_ddp d = {
		.tagged = true, .opcode = RDMAP_WRITE, .to = 0x10000 + VICTIM_LEN - 12};
	uint8_t seg[DDP_MAX], got[12];

	victim_start();
	d.stag = writable->stag;
	end_fpdu(&e, &d, "12345678", 8);
	d.to += 8;
	d.last = true;
	wire_ddp_emit(seg, &d);
	end_fpdu(&e, &d, "abcde", 5);
	mr_get(writable, VICTIM_LEN - 12, got, 12);
	cr_assert_arr_eq(got, "12345678", 8);
	for (int i = 8; i < 12; i++)
		cr_assert_eq(got[i], pattern(1, VICTIM_LEN - 12 + (uint64_t)i));
	expect_terminate("second", 1, 1, 1, M_D, seg, DDP_TAGGED_LEN + 5);
	expect_end("second", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
}

/* The QP itself grants nothing, whatever rights its regions grant. */
Test(rdmap_refuse, a_qp_without_remote_rights_refuses_rfc5040_7_2)
{
	struct wire_ddp d = {.tagged = true, .last = true, .opcode = RDMAP_WRITE, .to = 0x10000};
	struct wire_read_request rr = {0x1234, 0, 8, 0, 0x20000};
	uint8_t seg[46];

	victim_start();
	e.rd.access = RD_ACC_REMOTE_READ;
	d.stag = writable->stag;
	wire_ddp_emit(seg, &d);
	end_fpdu(&e, &d, "abcd", 4);
	cr_assert(end_untouched(&e), "write");
	expect_terminate("write", 0, 1, 2, M_D, seg, DDP_TAGGED_LEN + 4);
	expect_end("write", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);

	victim_start();
	e.rd.access = RD_ACC_REMOTE_WRITE;
	rr.src_stag = readable->stag;
	read_request_seg(seg, 1, &rr);
	expect_terminate("read", 0, 1, 2, M_D_R, seg, 46);
	expect_end("read", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
}

/* A region bound to another stream (RFC 5040 7.2: "STag not associated with the stream"). */
Test(rdmap_refuse, a_region_of_another_stream)
{
	struct wire_ddp d = {.tagged = true, .last = true, .opcode = RDMAP_WRITE, .to = 0x10000};
	uint8_t seg[DDP_MAX];

	victim_start();
	writable->bound_qpn = e.rd.qpn + 1;
	d.stag = writable->stag;
	wire_ddp_emit(seg, &d);
	end_fpdu(&e, &d, "abcd", 4);
	cr_assert(end_untouched(&e), "stream");
	expect_terminate("stream", 1, 1, 2, M_D, seg, DDP_TAGGED_LEN + 4);
	expect_end("stream", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
}

Test(rdmap_refuse, the_first_error_wins_and_placement_stops_rfc5040_7)
{
	struct wire_ddp bad = {.last = true, .opcode = RDMAP_SEND, .msn = 7};
	struct wire_ddp write = {
		.tagged = true, .last = true, .opcode = RDMAP_WRITE, .to = 0x10000};
	uint8_t seg[DDP_MAX];
	uint64_t before;

	victim_start();
	before = e.consumed;
	write.stag = writable->stag;
	wire_ddp_emit(seg, &bad);
	end_fpdu(&e, &bad, "a", 1);
	end_fpdu(&e, &write, "bbbb", 4);
	bad.qn = 9;
	end_fpdu(&e, &bad, "a", 1);
	cr_assert(end_untouched(&e), "after");
	cr_assert_eq(e.st.counters[IW_AFTER_TERMINATE], 2);
	cr_assert_eq(e.consumed - before, 28 + 24 + 28, "the window must stay open");
	expect_terminate("first", 1, 2, 3, M_D, seg, DDP_UNTAGGED_LEN + 1);
	cr_assert_eq(e.st.counters[IW_TERMINATE_OUT], 1);
	expect_end("first", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
}

Test(rdmap_refuse, a_terminate_waits_for_a_buffer_and_for_the_ring)
{
	struct wire_ddp bad = {.last = true, .opcode = RDMAP_SEND, .msn = 7};
	uint8_t seg[DDP_MAX];

	victim_start();
	wire_ddp_emit(seg, &bad);
	end_fpdu(&e, &bad, "a", 1);
	e.refuse_rec = 1;
	e.refuse_send = 1;
	cr_assert_eq(iw_tx(e.q, 0, 1), IW_TX_NOBUF);
	cr_assert_eq(iw_tx(e.q, 0, 1), IW_TX_NOBUF);
	cr_assert_eq(e.closes, 0);
	expect_terminate("late", 1, 2, 3, M_D, seg, DDP_UNTAGGED_LEN + 1);
	expect_end("late", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
}

/* ---- Incoming Terminates ---- */

static void
terminate_in(uint8_t layer, uint8_t etype, uint8_t code, const uint8_t *head, uint32_t head_len)
{
	struct wire_ddp d = {.last = true, .opcode = RDMAP_TERMINATE, .qn = 2, .msn = 1};
	struct wire_terminate t = {.layer = layer, .etype = etype, .code = code};
	uint8_t body[RDMAP_TERMINATE_MAX];

	if (head_len) {
		t.m = t.d = true;
		t.ddp_seg_len = 46;
		t.ddp_len = DDP_UNTAGGED_LEN;
		memcpy(t.ddp_header, head, DDP_UNTAGGED_LEN);
	}
	if (head_len > DDP_UNTAGGED_LEN) {
		t.r = true;
		memcpy(t.rdmap_header, head + DDP_UNTAGGED_LEN, RDMAP_READ_REQUEST_LEN);
	}
	end_fpdu(&e, &d, body, wire_terminate_emit(body, &t));
}

Test(rdmap_refuse, a_terminate_about_a_read_fails_that_read_rfc5040_7_1)
{
	struct wire_ddp d = {.last = true, .opcode = RDMAP_READ_REQUEST, .qn = 1, .msn = 1};
	uint8_t head[46] = {0}, body[64];
	uint32_t n;

	victim_start();
	wire_ddp_emit(head, &d);
	terminate_in(0, 1, 2, head, sizeof(head));
	end_tx(&e);
	cr_assert_not(end_sent(&e, &d, body, &n), "a Terminate is not answered by another");
	cr_assert_eq(e.st.counters[IW_TERMINATE_IN], 1);
	expect_end("access", RD_WR_FLUSH_ERR, RD_REM_ACCESS_ERR);

	victim_start();
	terminate_in(1, 2, 2, head, DDP_UNTAGGED_LEN);
	end_tx(&e);
	expect_end("operation", RD_WR_FLUSH_ERR, RD_REM_OP_ERR);

	victim_start();
	d.msn = 2; /* no such Read */
	wire_ddp_emit(head, &d);
	terminate_in(0, 1, 2, head, sizeof(head));
	end_tx(&e);
	expect_end("other", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);

	victim_start();
	terminate_in(0, 2, 7, NULL, 0);
	end_tx(&e);
	expect_end("bare", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
}
