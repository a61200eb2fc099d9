/* SPDX-License-Identifier: BSD-3-Clause */
/* See falcon_storm.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "falcon_storm.h"

#define OLD 0xee /* the value of bytes that nothing was placed in */
#define ALL (RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE)

const char *const storm_op_name[STORM_OPS + 1] = {"send", "send_inv", "send_imm", "write",
	"write_imm", "read", "solicited", "cmp_swap", "fetch_add"};
static const uint8_t opcodes[STORM_OPS] = {RD_SEND, RD_SEND_INV, RD_SEND_IMM, RD_WRITE,
	RD_WRITE_IMM, RD_READ, RD_SEND, RD_CMP_SWAP, RD_FETCH_ADD};
enum { INV = 1, READ = 5, SOLICITED = 6, CMP_SWAP = 7 };

static void wrong(struct storm *st, const struct storm_request *r, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void
wrong(struct storm *st, const struct storm_request *r, const char *fmt, ...)
{
	va_list ap;

	if (st->failed++ > 20)
		return;
	printf("request %u, %s of %u bytes: ", r->number, storm_op_name[r->op], r->len);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

static uint32_t
pick(struct storm *st, uint32_t n)
{
	uint64_t x = st->rng += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return (uint32_t)((x >> 32) * n >> 32);
}

static uint8_t *
slot(const struct storm_end *e, uint32_t number)
{
	return e->mem + (size_t)(number % STORM_WINDOW) * STORM_SLOT;
}

static uint8_t *
receive_slot(const struct storm_end *e, uint32_t n)
{
	return slot(e, n) + (size_t)STORM_WINDOW * STORM_SLOT;
}

static uint8_t
byte_of(const struct storm_request *r, uint32_t i)
{
	return (uint8_t)((r->number * 2654435761u + (i + 1) * 2246822519u) >> 19);
}

static uint64_t
immediate(const struct storm_request *r)
{
	return (uint32_t)(r->number * 2654435761u + 1); /* 32 bits on Falcon's wire */
}

static void
fill(uint8_t *p, const struct storm_request *r)
{
	for (uint32_t i = 0; i < r->len; i++)
		p[i] = byte_of(r, i);
}

/* Checks the message and the unchanged bytes behind it. */
static bool
right(const uint8_t *p, const struct storm_request *r)
{
	for (uint32_t i = 0; i < r->len; i++)
		if (p[i] != byte_of(r, i))
			return false;
	for (uint32_t i = r->len; i < STORM_SLOT; i++)
		if (p[i] != OLD)
			return false;
	return true;
}

static bool
atomic(const struct storm_request *r)
{
	return r->op >= CMP_SWAP;
}

static bool
takes_receive(const struct storm_request *r)
{
	return opcodes[r->op] <= RD_WRITE_IMM && opcodes[r->op] != RD_WRITE;
}

static int
post_receive(struct storm *st, const struct storm_request *r)
{
	uint8_t *p = receive_slot(&st->to, st->receives);
	struct rd_sge sge[2] = {{(uintptr_t)p, 1000, saker_mr_stag(st->to.mr)},
		{(uintptr_t)p + 1000, STORM_MSG - 1000, saker_mr_stag(st->to.mr)}};
	struct saker_wr wr = {.wr_id = st->receives, .nsge = 2, .sge = sge};

	memset(p, OLD, STORM_SLOT);
	st->receive_of[st->receives++ % STORM_WINDOW] = r->number;
	return saker_post_recv(st->to.qp, &wr, 1) == 1 ? 0 : -1;
}

static void
prepare(struct storm *st, struct storm_request *r, struct saker_wr *wr)
{
	uint8_t *near = slot(&st->from, r->number), *there = slot(&st->to, r->number);

	memset(near, OLD, STORM_SLOT);
	memset(there, OLD, STORM_SLOT);
	wr->rkey = saker_mr_stag(st->to.mr);
	wr->remote_addr = (uintptr_t)there;
	wr->imm = immediate(r);
	if (atomic(r)) {
		r->word = (uint64_t)pick(st, UINT32_MAX) << 32 | r->number;
		memcpy(there, &r->word, 8);
		wr->data = 0x1234567800000001ull;
		wr->compare = r->number % 2 ? r->word : ~r->word;
		wr->data_mask = r->op == CMP_SWAP ? ~0ull : 0;
		wr->compare_mask = ~0ull;
	} else {
		fill(r->op == READ ? there : near, r);
	}
	if (r->op == SOLICITED)
		wr->flags |= RD_SOLICITED;
	if (r->op != INV)
		return;
	if (saker_mr_create(st->to.pd, there, STORM_MSG, ALL, &r->window))
		wrong(st, r, "saker_mr_create: %s", saker_error());
	else
		wr->imm = saker_mr_stag(r->window);
}

static void
start(struct storm *st, struct storm_request *r)
{
	uint8_t *near = slot(&st->from, st->posted);
	uint32_t lkey = saker_mr_stag(st->from.mr), cut;
	struct rd_sge sge[2];
	struct saker_wr wr = {.wr_id = st->posted, .nsge = 2, .sge = sge, .flags = RD_SIGNALED};

	*r = (struct storm_request){.number = st->posted++, .busy = true};
	r->op = (uint8_t)(st->only >= 0 ? (uint32_t)st->only : pick(st, STORM_OPS));
	if (atomic(r))
		r->len = 8;
	else
		r->len = pick(st, 1 + (takes_receive(r)     ? st->send_max
					      : pick(st, 2) ? STORM_MSG
							    : 64));
	wr.opcode = opcodes[r->op];
	prepare(st, r, &wr);
	cut = atomic(r) ? 8 : pick(st, r->len + 1);
	sge[0] = (struct rd_sge){(uintptr_t)near, cut, lkey};
	sge[1] = (struct rd_sge){(uintptr_t)near + cut, r->len - cut, lkey};
	wr.nsge = atomic(r) ? 1 : 2;
	r->received = !takes_receive(r);
	st->count[r->op]++;
	if ((takes_receive(r) && post_receive(st, r)) || saker_post_send(st->from.qp, &wr, 1) != 1)
		wrong(st, r, "posting: %s", saker_error());
}

void
storm_post(struct storm *st)
{
	while (st->posted < st->limit && st->failed == 0) {
		struct storm_request *r = &st->req[st->posted % STORM_WINDOW];

		if (r->busy)
			return;
		start(st, r);
	}
}

static void
check_atomic(struct storm *st, const struct storm_request *r)
{
	bool add = r->op != CMP_SWAP, hit = r->number % 2;
	uint64_t was, is, want = r->word;

	memcpy(&was, slot(&st->from, r->number), 8);
	memcpy(&is, slot(&st->to, r->number), 8);
	if (add)
		want += 0x1234567800000001ull;
	else if (hit)
		want = 0x1234567800000001ull;
	if (was != r->word || is != want)
		wrong(st, r, "brought %016lx for %016lx and left %016lx for %016lx", was, r->word,
			is, want);
}

static void
leave(struct storm *st, struct storm_request *r)
{
	if (!r->done || !r->received)
		return;
	if (r->window != NULL && saker_mr_destroy(r->window))
		wrong(st, r, "saker_mr_destroy: %s", saker_error());
	r->busy = false;
	st->bytes += r->len;
}

static void
sent(struct storm *st, const struct rd_wc *wc)
{
	struct storm_request *r = &st->req[wc->wr_id % STORM_WINDOW];

	if (!r->busy || r->done || r->number != wc->wr_id || wc->opcode != opcodes[r->op])
		wrong(st, r, "a completion of %lu, opcode %u, that is not owed", wc->wr_id,
			wc->opcode);
	r->done = true;
	st->completed++;
	if (r->number < st->highest)
		st->late++;
	st->highest = r->number > st->highest ? r->number : st->highest;
	if (st->ordered && st->late > 0)
		wrong(st, r, "completed behind %u", st->highest);
	if (atomic(r))
		check_atomic(st, r);
	else if (!takes_receive(r) || opcodes[r->op] == RD_WRITE_IMM)
		if (!right(slot(r->op == READ ? &st->from : &st->to, r->number), r))
			wrong(st, r, "placed wrong bytes");
	leave(st, r);
}

static void
check_receive(struct storm *st, const struct storm_request *r, const struct rd_wc *wc)
{
	bool write = opcodes[r->op] == RD_WRITE_IMM;
	bool imm = write || opcodes[r->op] == RD_SEND_IMM;

	if (wc->byte_len != r->len || !!(wc->flags & RD_WC_IMM) != imm ||
		!!(wc->flags & RD_WC_INV) != (r->op == INV) ||
		!!(wc->flags & RD_WC_SOLICITED) != (r->op == SOLICITED))
		wrong(st, r, "came with flags %u, %u bytes", wc->flags, wc->byte_len);
	if (imm && wc->imm != immediate(r))
		wrong(st, r, "came with Immediate Data %016lx", wc->imm);
	if (r->op == INV && wc->inv_stag != saker_mr_stag(r->window))
		wrong(st, r, "invalidated %08x", wc->inv_stag);
	/* The data of a Write must be placed before its Immediate Data completes. */
	if (!right(write ? slot(&st->to, r->number) : receive_slot(&st->to, (uint32_t)wc->wr_id),
		    r))
		wrong(st, r, "brought wrong bytes");
}

static void
received(struct storm *st, const struct rd_wc *wc)
{
	uint32_t n = st->receive_of[wc->wr_id % STORM_WINDOW];
	struct storm_request *r = &st->req[n % STORM_WINDOW];

	if (wc->wr_id >= st->receives || !r->busy || r->received || r->number != n) {
		wrong(st, r, "receive %lu is not owed", wc->wr_id);
		return;
	}
	if (st->ordered && wc->wr_id != st->received)
		wrong(st, r, "receive %lu completed as number %u", wc->wr_id, st->received);
	r->received = true;
	st->received++;
	check_receive(st, r, wc);
	leave(st, r);
}

void
storm_completion(struct storm *st, const struct rd_wc *wc)
{
	if (wc->status != RD_SUCCESS)
		wrong(st, &st->req[wc->wr_id % STORM_WINDOW], "status %u, reason %u", wc->status,
			wc->vendor_err);
	else if (wc->opcode >= RD_RECV)
		received(st, wc);
	else
		sent(st, wc);
}
