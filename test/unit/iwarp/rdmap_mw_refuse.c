/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Accesses through a memory window that a peer may not make, each with its Terminate and unchanged
 * memory, and binds and invalidations that a client may not make, each with its completion.
 */
#include "rdmap_victim.h"

#include <criterion/criterion.h>
#include <string.h>

#define READ   RD_ACC_REMOTE_READ
#define WRITE  RD_ACC_REMOTE_WRITE
#define ATOMIC RD_ACC_REMOTE_ATOMIC

static struct rd_mw *one, *two;
/* A QP of the victim's protection domain with a stream of its own. */
static struct rd_qp neighbour = {.qpn = 0x999};

static struct rd_bind
bind_to(const struct rd_mw *mw, uint64_t off, uint64_t len, uint32_t access)
{
	return (struct rd_bind){
		.stag = mw->mr.stag ^ 0x80,
		.region = local->stag,
		.addr = local->base + off,
		.len = len,
		.access = access,
	};
}

/* The region `local` grants the peer nothing; the windows grant bytes 64 to 191. */
static void
start(uint32_t access, bool of_neighbour)
{
	struct rd_bind b;

	victim_start();
	neighbour.pd = &e.pd;
	local->access |= RD_ACC_MW_BIND;
	one = end_mw(&e, RD_MW_TYPE_1);
	two = end_mw(&e, RD_MW_TYPE_2);
	b = bind_to(one, 64, 128, access);
	cr_assert_eq(rd_mw_bind(e.mrs, &neighbour, &b), RD_BIND_DONE);
	b = bind_to(two, 64, 128, access);
	cr_assert_eq(rd_mw_bind(e.mrs, of_neighbour ? &neighbour : &e.rd, &b), RD_BIND_DONE);
}

enum what { ONE, TWO };

static const struct row {
	const char *name;
	enum what what;
	uint32_t access;
	bool of_neighbour;
	uint8_t key_off; /* added to the window's key */
	int off;
	uint32_t len;
	uint8_t ddp_code, rdmap_code; /* tagged buffer error, remote protection error */
	/* Access rights are an error of the RDMAP layer in any case. */
	bool rdmap_access;
} rows[] = {
	{"before it", ONE, READ | WRITE, false, 0, 63, 8, 1, 1, false},
	{"beyond it", ONE, READ | WRITE, false, 0, 185, 8, 1, 1, false},
	{"behind it", TWO, READ | WRITE, false, 0, 192, 8, 1, 1, false},
	{"wraps", TWO, READ | WRITE, false, 0, -0x50000 - 4, 8, 4, 4, false},
	{"another key", ONE, READ | WRITE, false, 1, 64, 8, 0, 0, false},
	{"another key, type 2", TWO, READ | WRITE, false, 1, 64, 8, 0, 0, false},
	{"another stream's", TWO, READ | WRITE, true, 0, 64, 8, 2, 3, false},
	{"without rights", TWO, 0, false, 0, 64, 8, 2, 2, true},
};

static uint32_t
stag(const struct row *r)
{
	return (r->what == ONE ? one : two)->mr.stag + r->key_off;
}

Test(rdmap_mw_refuse, writes_that_a_window_does_not_grant_rfc5040_7_2)
{
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *r = &rows[i];
		struct wire_ddp d = {.tagged = true, .last = true, .opcode = RDMAP_WRITE};
		uint8_t seg[DDP_MAX];

		start(r->access == 0 ? READ : r->access, r->of_neighbour);
		d.stag = stag(r);
		d.to = local->base + (uint64_t)(int64_t)r->off;
		wire_ddp_emit(seg, &d);
		end_fpdu(&e, &d, "overrun!", r->len);
		cr_assert(end_untouched(&e), "%s", r->name);
		expect_terminate(r->name, r->rdmap_access ? 0 : 1, 1,
			r->rdmap_access    ? 2
			: r->ddp_code == 4 ? 3
					   : r->ddp_code,
			M_D, seg, DDP_TAGGED_LEN + r->len);
		expect_end(r->name, RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
	}
}

Test(rdmap_mw_refuse, reads_that_a_window_does_not_grant_rfc5040_7_2)
{
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *r = &rows[i];
		struct wire_read_request rr = {.sink_stag = 1, .len = r->len};
		uint8_t seg[46];

		start(r->access == 0 ? WRITE : r->access, r->of_neighbour);
		rr.src_stag = stag(r);
		rr.src_to = local->base + (uint64_t)(int64_t)r->off;
		read_request_seg(seg, 1, &rr);
		expect_terminate(r->name, 0, 1, r->rdmap_code, M_D_R, seg, sizeof(seg));
		expect_end(r->name, RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
	}
}

Test(rdmap_mw_refuse, atomics_that_a_window_does_not_grant_rfc7306_8)
{
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *r = &rows[i];
		struct wire_ddp d = {
			.last = true, .opcode = RDMAP_ATOMIC_REQUEST, .qn = DDP_QN_READ, .msn = 1};
		struct wire_atomic_request ar = {.op = RDMAP_FETCH_ADD, .data = ~0ull};
		uint8_t seg[DDP_MAX], body[RDMAP_ATOMIC_REQUEST_LEN];

		start(r->access == 0 ? READ | WRITE : ATOMIC, r->of_neighbour);
		ar.stag = stag(r);
		ar.to = local->base + (uint64_t)(int64_t)r->off;
		wire_ddp_emit(seg, &d);
		end_fpdu(&e, &d, body, wire_atomic_request_emit(body, &ar));
		cr_assert(end_untouched(&e), "%s", r->name);
		expect_terminate(r->name, 0, 1, r->rdmap_code, M_D, seg,
			DDP_UNTAGGED_LEN + RDMAP_ATOMIC_REQUEST_LEN);
		expect_end(r->name, RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
	}
}

/* The old key of a type 1 window that was bound again or unbound. */
Test(rdmap_mw_refuse, the_key_of_a_bind_that_is_over_is_an_invalid_stag)
{
	for (unsigned i = 0; i < 2; i++) {
		struct wire_ddp d = {.tagged = true, .last = true, .opcode = RDMAP_WRITE};
		struct rd_bind b;
		uint8_t seg[DDP_MAX];

		start(WRITE, false);
		d.stag = one->mr.stag;
		d.to = local->base + 64;
		b = bind_to(one, 64, i ? 128 : 0, WRITE);
		cr_assert_eq(rd_mw_bind(e.mrs, &e.rd, &b), RD_BIND_CHANGED);
		wire_ddp_emit(seg, &d);
		end_fpdu(&e, &d, "overrun!", 8);
		cr_assert(end_untouched(&e), "old key");
		expect_terminate("old key", 1, 1, 0, M_D, seg, DDP_TAGGED_LEN + 8);
		expect_end("old key", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
	}
}

/* The window is invalidated between the request and its response. */
Test(rdmap_mw_refuse, a_window_that_goes_before_the_read_response_quotes_the_request)
{
	struct wire_read_request rr = {.sink_stag = 1, .len = 8};
	uint8_t seg[46];

	start(READ, false);
	rr.src_stag = two->mr.stag;
	rr.src_to = local->base + 64;
	read_request_seg(seg, 1, &rr);
	rd_mr_invalidate(&two->mr);
	expect_terminate("late", 0, 1, 0, M_D_R, seg, sizeof(seg));
	expect_end("late", RD_WR_FLUSH_ERR, RD_WR_FLUSH_ERR);
}

Test(rdmap_mw_refuse, remote_invalidations_that_are_refused_rfc5040_7_2)
{
	static const struct {
		const char *name;
		enum { TYPE_1, OF_NEIGHBOUR, OLD_KEY, UNBOUND, REGION } what;
		uint8_t code;
	} inv_rows[] = {
		{"type 1", TYPE_1, 9},
		{"another stream's", OF_NEIGHBOUR, 3},
		{"another key", OLD_KEY, 0},
		{"not bound", UNBOUND, 0},
		{"a region with windows", REGION, 9},
	};

	for (unsigned i = 0; i < sizeof(inv_rows) / sizeof(*inv_rows); i++) {
		struct wire_ddp d = {.last = true, .opcode = RDMAP_SEND_INV, .msn = 1};
		uint8_t seg[DDP_MAX], body = pattern(1, 0);

		start(READ, inv_rows[i].what == OF_NEIGHBOUR);
		local->access |= READ;
		d.inv_stag = inv_rows[i].what == TYPE_1    ? one->mr.stag
			     : inv_rows[i].what == OLD_KEY ? two->mr.stag ^ 0x80
			     : inv_rows[i].what == REGION  ? local->stag
							   : two->mr.stag;
		if (inv_rows[i].what == UNBOUND)
			rd_mr_invalidate(&two->mr);
		wire_ddp_emit(seg, &d);
		end_fpdu(&e, &d, &body, 1);
		cr_assert_eq(e.invalidations, 0, "%s", inv_rows[i].name);
		cr_assert(local->valid && one->mr.valid, "%s", inv_rows[i].name);
		expect_terminate(
			inv_rows[i].name, 0, 1, inv_rows[i].code, M_D, seg, DDP_UNTAGGED_LEN + 1);
		expect_end(inv_rows[i].name, RD_REM_INV_REQ_ERR, RD_WR_FLUSH_ERR);
	}
}

/* ---- Refused local requests ---- */

/* Each refused request ends the connection: ERR, a Terminate "local catastrophic error", and later
 * requests are flushed. */
static void
expect_refused(const char *name, uint8_t opcode, enum rd_status status)
{
	end_post(&e, RD_WRITE, 301);
	cr_assert_eq(e.nsend, 0);
	expect_terminate(name, 0, 0, 0, NONE, NULL, 0);
	cr_assert_eq(e.rd.state, RD_QP_ERR, "%s", name);
	/* The victim's Read and Write are flushed before it. */
	cr_assert_eq(e.nsend, 4, "%s", name);
	cr_assert(e.send_wc[2].wr_id == 300 && e.send_wc[2].opcode == opcode, "%s", name);
	cr_assert_eq(e.send_wc[2].status, status, "%s: %u", name, e.send_wc[2].status);
	cr_assert(e.send_wc[3].wr_id == 301 && e.send_wc[3].status == RD_WR_FLUSH_ERR, "%s", name);
	cr_assert(end_fini(&e), "%s", name);
}

Test(rdmap_mw_refuse, a_bind_that_is_refused_takes_the_qp_down_verbs)
{
	static const char *const names[] = {"bound already", "rights of the region",
		"outside of the region", "another domain", "no window", "no bytes"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct rd_wr *wr;

		start(READ, false);
		if (i > 0)
			rd_mr_invalidate(&two->mr);
		wr = end_bind(&e, 300, two, local, 0, 64, READ);
		if (i == 1)
			wr->imm = readable->stag;
		if (i == 2)
			wr->remote_addr = local->base + VICTIM_LEN;
		if (i == 3)
			wr->imm = foreign->stag;
		if (i == 4)
			wr->rkey = local->stag;
		if (i == 5)
			wr->data = 0;
		expect_refused(names[i], RD_BIND_MW, RD_MW_BIND_ERR);
	}
}

Test(rdmap_mw_refuse, local_invalidations_that_are_refused)
{
	static const char *const names[] = {
		"type 1", "another stream's", "not bound", "a region with windows"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct rd_wr *wr;

		start(READ, i == 1);
		wr = end_post(&e, RD_LOCAL_INV, 300);
		/* The victim's own Read fills `local`, so this row binds to another region. */
		if (i == 3) {
			struct rd_bind b = bind_to(one, 0, 64, READ);

			readable->access |= RD_ACC_MW_BIND;
			b.region = readable->stag;
			b.addr = readable->base;
			cr_assert_eq(rd_mw_bind(e.mrs, &e.rd, &b), RD_BIND_CHANGED);
		}
		if (i == 2)
			rd_mr_invalidate(&two->mr);
		wr->imm = i == 0 ? one->mr.stag : i == 3 ? readable->stag : two->mr.stag;
		expect_refused(names[i], RD_LOCAL_INV, RD_LOC_PROT_ERR);
	}
}

Test(rdmap_mw_refuse, a_window_is_no_local_element)
{
	for (unsigned i = 0; i < 2; i++) {
		struct rd_wr *wr;

		start(READ | WRITE, false);
		wr = end_post(&e, i ? RD_READ : RD_WRITE, 300);
		wr->sge[0] = (struct rd_sge){local->base + 64, 8, two->mr.stag};
		wr->nsge = 1;
		expect_refused("element", i ? RD_READ : RD_WRITE, RD_LOC_PROT_ERR);
	}
}
