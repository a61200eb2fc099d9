/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each opcode in sizes around the MTU, in several elements, over a lossy wire, with scarce
 * resources: rings between the stages for a few messages, credits for one packet, receives that are
 * posted late.
 */
#include "pair.h"

#include "../../../lib/base/mem.h"

#include <criterion/criterion.h>
#include <string.h>

#define MTU    1024
#define SLOT   0x2000
#define LANDED 0x80000 /* offset of the receives */
#define LATE   300000  /* ns between two receives */

static const uint8_t ops[] = {
	RD_SEND, RD_SEND_INV, RD_SEND_IMM, RD_WRITE, RD_WRITE_IMM, RD_READ, RD_READ_INV};
static const uint32_t sizes[] = {0, 1, 47, MTU - 1, MTU, MTU + 1, 5 * MTU + 3};
#define COUNT (SK_ARRAY_LEN(ops) * SK_ARRAY_LEN(sizes))

static struct pair p;
static struct rd_mr mr[COUNT]; /* to be invalidated */
static struct rd_extent extents[COUNT];
static unsigned sends[COUNT], receives, posted;
static uint64_t next_receive;

static uint8_t
op_of(unsigned id)
{
	return ops[id % SK_ARRAY_LEN(ops)];
}

static uint32_t
size_of(unsigned id)
{
	return sizes[id / SK_ARRAY_LEN(ops)];
}

static bool
takes_receive(uint8_t op)
{
	return op <= RD_SEND_IMM || op == RD_WRITE_IMM;
}

static bool
is_read(uint8_t op)
{
	return op == RD_READ || op == RD_READ_INV;
}

static uint8_t
byte_of(unsigned id, uint32_t i)
{
	return (uint8_t)(id * 31 + i * 7 + (i >> 8) * 3);
}

/* Posts three elements, one of them without bytes; short requests are inline. */
static void
post(unsigned id)
{
	struct end *a = &p.e[0], *b = &p.e[1];
	uint8_t op = op_of(id);
	uint32_t len = size_of(id), part = len / 3;
	uint64_t off = (uint64_t)id * SLOT;
	struct end *src = is_read(op) ? b : a;
	struct rd_wr *wr;

	for (uint32_t i = 0; i < len; i++)
		src->mem[off + i] = byte_of(id, i);
	wr = end_msg(a, op, id, off, part);
	wr->flags = id % 2 ? RD_SOLICITED : 0;
	wr_sge(a, wr, off + part, 0);
	wr_sge(a, wr, off + part, len - part);
	if (op == RD_SEND_INV) {
		end_region(b, &mr[id], &extents[id], 0, 16, 31);
		wr->imm = mr[id].stag;
	} else if (op == RD_READ_INV) {
		end_region(a, &mr[id], &extents[id], off, SLOT, 31);
		wr->nsge = 1;
		wr->sge[0] = (struct rd_sge){END_BASE + off, len, mr[id].stag};
	} else if (!is_read(op) && len <= 64) {
		wr->flags |= RD_INLINE;
		wr->inline_len = len;
		memcpy(wr->inl, a->mem + off, len);
	}
	if (takes_receive(op))
		sends[receives++] = id;
}

static bool
late_receives(struct pair *pair)
{
	struct end *b = &pair->e[1];

	while (posted < receives && pair->now >= next_receive) {
		uint64_t off = LANDED + (uint64_t)posted * SLOT;
		struct rd_wr *wr = end_recv(b, posted++);

		wr_sge(b, wr, off, 1000);
		wr_sge(b, wr, off + 1000, 0);
		wr_sge(b, wr, off + 1000, SLOT - 1000);
		next_receive += LATE;
	}
	return pair_sent(pair) && b->nrecv == receives;
}

static void
check_receive(const struct rd_wc *wc)
{
	unsigned id = sends[wc->wr_id];
	uint8_t op = op_of(id);
	const uint8_t *at = p.e[1].mem + LANDED + wc->wr_id * SLOT;

	cr_assert_eq(wc->status, RD_SUCCESS);
	cr_assert_eq(wc->byte_len, size_of(id), "%u", id);
	cr_assert_eq(wc->opcode, op == RD_WRITE_IMM ? RD_RECV_IMM : RD_RECV);
	cr_assert_eq(!!(wc->flags & RD_WC_IMM), op == RD_SEND_IMM || op == RD_WRITE_IMM);
	cr_assert_eq(!!(wc->flags & RD_WC_INV), op == RD_SEND_INV);
	cr_assert_eq(!!(wc->flags & RD_WC_SOLICITED), id % 2);
	if (wc->flags & RD_WC_IMM)
		cr_assert_eq(wc->imm, id);
	if (wc->flags & RD_WC_INV)
		cr_assert_eq(wc->inv_stag, mr[id].stag);
	for (uint32_t i = 0; op != RD_WRITE_IMM && i < size_of(id); i++)
		cr_assert_eq(at[i], byte_of(id, i), "%u, byte %u", id, i);
}

static void
check(unsigned id)
{
	uint8_t op = op_of(id);
	struct end *dst = &p.e[!is_read(op)];
	const uint8_t *at = dst->mem + (uint64_t)id * SLOT;
	uint32_t len = op == RD_SEND || op == RD_SEND_IMM || op == RD_SEND_INV ? 0 : size_of(id);

	for (uint32_t i = 0; i < len; i++)
		cr_assert_eq(at[i], byte_of(id, i), "%u, byte %u", id, i);
	for (uint32_t i = len; i < SLOT; i++)
		cr_assert_eq(at[i], 0xee, "%u, behind it", id);
	if (op == RD_SEND_INV || (op == RD_READ_INV && size_of(id) > 0)) {
		cr_assert_not(mr[id].valid, "%u is invalid", id);
		rd_mr_del((op == RD_SEND_INV ? &p.e[1] : &p.e[0])->mrs, &mr[id]);
	}
}

static void
run(uint8_t ordering, uint8_t errors, unsigned room, uint32_t noise)
{
	struct pair_options o = {
		.chan = {.ordering = ordering, .errors = errors, .credits = {1, 17, 1, 3, 1, 17}}};
	bool seen[COUNT] = {false};

	receives = posted = 0;
	pair_init_with(&p, &o, 77 + ordering + errors + room);
	p.loss = p.dup = noise;
	p.reorder = 4 * noise;
	p.e[0].room = p.e[1].room = room;
	next_receive = p.now;
	memset(p.e[0].mem, 0xee, END_MEM);
	memset(p.e[1].mem, 0xee, END_MEM);
	for (unsigned id = 0; id < COUNT; id++)
		if (ordering != ROF_ORDER_NONE || !takes_receive(op_of(id)) || size_of(id) <= MTU)
			post(id);
	pair_run(&p, 60000000000ull, late_receives);
	cr_assert(late_receives(&p), "%u of %u, %u of %u", p.e[0].nsend, p.e[0].sq_tail,
		p.e[1].nrecv, receives);
	for (unsigned i = 0; i < p.e[0].nsend; i++) {
		const struct rd_wc *wc = &p.e[0].send_wc[i];

		cr_assert_eq(wc->status, RD_SUCCESS);
		cr_assert_not(seen[wc->wr_id]);
		seen[wc->wr_id] = true;
		check((unsigned)wc->wr_id);
		if (ordering != ROF_ORDER_NONE && i > 0)
			cr_assert_gt(wc->wr_id, wc[-1].wr_id);
	}
	for (unsigned i = 0; i < receives; i++) {
		check_receive(&p.e[1].recv_wc[i]);
		if (ordering != ROF_ORDER_NONE)
			cr_assert_eq(p.e[1].recv_wc[i].wr_id, i);
	}
	cr_assert(pair_fini(&p), "every buffer comes home");
}

Test(rof_sizes, strongly_ordered_verbs_rof_6_7)
{
	for (unsigned room = 1; room <= 4; room++)
		run(ROF_ORDER_STRONG, ROF_ERRORS_VERBS, room, room % 2 * 300);
}

Test(rof_sizes, strongly_ordered_complete_in_error_rof_6_7)
{
	run(ROF_ORDER_STRONG, ROF_ERRORS_COMPLETE, 2, 300);
}

Test(rof_sizes, weakly_ordered_rof_6_7)
{
	run(ROF_ORDER_WEAK, ROF_ERRORS_VERBS, 1, 300);
	run(ROF_ORDER_WEAK, ROF_ERRORS_COMPLETE, 3, 300);
}

Test(rof_sizes, unordered_rof_6_7)
{
	for (unsigned room = 1; room <= 4; room++)
		run(ROF_ORDER_NONE, ROF_ERRORS_COMPLETE, room, 300);
}

/* 6.5: with credits for less than a packet, a queue would stop for ever. */
Test(rof_sizes, credits_must_suffice_for_one_packet_rof_6_5)
{
	struct rof_stage st = {.users = 0};
	struct rof_chan_params cp = {.transport = ROF_RC,
		.mtu = MTU,
		.pools = {.tx_cell = 64, .rx_cell = 512},
		.credits = {1, 17, 1, 3, 1, 17}};
	struct rof_chan *c = rof_chan_create(&st, &cp, NULL);

	cr_assert_not_null(c);
	rof_chan_destroy(c);
	for (unsigned i = 0; i < 4; i++) {
		struct rof_chan_params few = cp;

		few.credits.req_pkt_tx -= i == 0;
		few.credits.req_buf_tx -= i == 1;
		few.credits.req_pkt_rx -= i == 2;
		few.credits.req_buf_rx -= i == 3;
		cr_assert_null(rof_chan_create(&st, &few, NULL), "%u", i);
	}
}
