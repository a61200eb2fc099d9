/* SPDX-License-Identifier: BSD-3-Clause */
/* See rdmap_victim.h. */
#include "rdmap_victim.h"

#include <criterion/criterion.h>
#include <string.h>

struct end e;
struct rd_mr *writable, *readable, *foreign, *gone, *local, *high;
static const struct rd_pd other_pd;

void
victim_start(void)
{
	struct rd_wr *wr;
	uint8_t body[2048];
	struct wire_ddp d;
	uint32_t n;

	end_init(&e, NULL, true);
	writable = end_mr(&e, 0x10000, VICTIM_LEN, RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE, 2, 1);
	readable = end_mr(&e, 0x20000, VICTIM_LEN, RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_READ, 1, 2);
	foreign = end_mr(&e, 0x30000, VICTIM_LEN, RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ, 1, 3);
	foreign->pd = &other_pd;
	gone = end_mr(&e, 0x40000, VICTIM_LEN, RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ, 1, 4);
	gone->valid = false;
	local = end_mr(&e, 0x50000, VICTIM_LEN, RD_ACC_LOCAL_WRITE, 1, 5);
	/* Its last byte is at 2^64 - 1, the end of the address space. */
	high = end_mr(&e, (uint64_t)0 - VICTIM_LEN, VICTIM_LEN,
		RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ, 1, 6);
	wr_sge(end_recv(&e, 100), writable, 0, 100);
	wr_sge(end_recv(&e, 101), writable, 0, 100);
	wr = end_post(&e, RD_READ, 200);
	wr_sge(wr, local, 8, 64);
	wr->rkey = 0xabcdef01;
	wr = end_post(&e, RD_WRITE, 201);
	wr_sge(wr, local, 0, 16);
	end_tx(&e);
	cr_assert(end_sent(&e, &d, body, &n) && d.opcode == RDMAP_READ_REQUEST && d.msn == 1);
	cr_assert(end_sent(&e, &d, body, &n) && d.opcode == RDMAP_WRITE);
	cr_assert_eq(e.nsend, 0, "the Write waits for the Read before it");
}

void
expect_terminate(const char *name, uint8_t layer, uint8_t etype, uint8_t code, enum quote quote,
	const uint8_t *seg, uint32_t seg_len)
{
	uint8_t body[256];
	struct wire_terminate t;
	struct wire_ddp d;
	uint32_t n, want = RDMAP_TERMINATE_LEN;
	uint32_t hdr = seg != NULL && (seg[0] & 0x80) ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;

	end_tx(&e);
	cr_assert(end_sent(&e, &d, body, &n), "%s: nothing was sent", name);
	cr_assert(!d.tagged && d.last && d.opcode == RDMAP_TERMINATE, "%s", name);
	cr_assert(d.qn == DDP_QN_TERMINATE && d.msn == 1 && d.mo == 0, "%s", name);
	cr_assert(wire_terminate_parse(&t, body, n) > 0, "%s", name);
	cr_assert(t.layer == layer && t.etype == etype && t.code == code,
		"%s: layer %u type %u code %u", name, t.layer, t.etype, t.code);
	cr_assert_eq(t.m, quote != NONE, "%s", name);
	cr_assert_eq(t.d, quote != NONE, "%s", name);
	cr_assert_eq(t.r, quote == M_D_R, "%s", name);
	if (quote != NONE) {
		cr_assert_eq(t.ddp_seg_len, seg_len, "%s", name);
		cr_assert_eq(t.ddp_len, hdr, "%s", name);
		cr_assert_arr_eq(t.ddp_header, seg, hdr, "%s", name);
		want += 2 + hdr;
	}
	if (quote == M_D_R) {
		cr_assert_arr_eq(t.rdmap_header, seg + hdr, RDMAP_READ_REQUEST_LEN, "%s", name);
		want += RDMAP_READ_REQUEST_LEN;
	}
	cr_assert_eq(n, want, "%s: %u bytes of Terminate", name, n);
	cr_assert_not(end_sent(&e, &d, body, &n), "%s: something follows the Terminate", name);
}

void
expect_end(const char *name, enum rd_status first_recv, enum rd_status first_read)
{
	cr_assert_eq(e.rd.state, RD_QP_ERR, "%s", name);
	cr_assert_eq(e.errors, 1, "%s", name);
	cr_assert_eq(e.closes, 1, "%s", name);
	cr_assert_eq(e.close_how, IW_CLOSE_ORDERLY, "%s", name);
	cr_assert_eq(e.nrecv, 2, "%s: %u receives", name, e.nrecv);
	cr_assert(e.recv_wc[0].wr_id == 100 && e.recv_wc[1].wr_id == 101, "%s", name);
	cr_assert_eq(e.recv_wc[0].status, first_recv, "%s: %u", name, e.recv_wc[0].status);
	cr_assert_eq(e.recv_wc[1].status, RD_WR_FLUSH_ERR, "%s", name);
	cr_assert_eq(e.nsend, 2, "%s: %u sends", name, e.nsend);
	cr_assert(e.send_wc[0].wr_id == 200 && e.send_wc[1].wr_id == 201, "%s", name);
	cr_assert_eq(e.send_wc[0].status, first_read, "%s: %u", name, e.send_wc[0].status);
	cr_assert_eq(e.send_wc[1].status, RD_WR_FLUSH_ERR, "%s", name);
	cr_assert(end_fini(&e), "%s: a record or slice is missing", name);
}

uint32_t
stag_of(enum stag s)
{
	const struct rd_mr *mr[] = {writable, readable, foreign, gone, local, high};

	return s == UNKNOWN ? writable->stag ^ 0x40 : mr[s]->stag;
}

void
read_request_seg(uint8_t seg[46], uint32_t msn, const struct wire_read_request *rr)
{
	struct wire_ddp d = {
		.last = true, .opcode = RDMAP_READ_REQUEST, .qn = DDP_QN_READ, .msn = msn};

	wire_ddp_emit(seg, &d);
	wire_read_request_emit(seg + DDP_UNTAGGED_LEN, rr);
	end_fpdu(&e, &d, seg + DDP_UNTAGGED_LEN, RDMAP_READ_REQUEST_LEN);
}
