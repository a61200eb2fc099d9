/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's reader of send queues: requests of every opcode and size in entries of every stride,
 * and entries of a hostile client. The ring ends where a page without access begins, so that a read
 * behind it ends the test.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/engine/stage/stage_priv.h"

#define LOG2       2
#define COUNT      (1u << LOG2)
#define PAGE       4096u
#define BAD_OPCODE 0xff

static struct rig {
	struct eng_stage *s;
	struct eng_qp *qp;
	struct shm_prod sq;
	uint8_t *pages;
	struct shm_cons cons;
} rig;

/* Makes a QP whose entries have `stride` bytes, with the capabilities that the engine derives from
 * that. */
static void
rig_start(uint16_t stride, enum shm_qp_type type)
{
	struct rd_qp_caps *caps;
	struct shm_ring_at at = {.stride = stride, .log2_count = LOG2};
	uint32_t room = stride - SHM_SQE_BASE;

	rig.s = calloc(1, sizeof(*rig.s));
	rig.qp = aligned_alloc(_Alignof(struct eng_qp), sizeof(*rig.qp));
	rig.pages =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert(rig.s != NULL && rig.qp != NULL && rig.pages != MAP_FAILED);
	memset(rig.qp, 0, sizeof(*rig.qp));
	cr_assert_eq(mprotect(rig.pages + PAGE, PAGE, PROT_NONE), 0);
	at.entries = PAGE - shm_ring_bytes(&at);
	memset(rig.pages, 0xee, PAGE);
	shm_prod_start(&rig.sq, rig.pages, &at);
	shm_take_init(&rig.qp->sq, rig.pages, &at);
	rig.sq.cons = &rig.cons;
	rig.qp->sq.cons = &rig.cons;
	rig.qp->type = type;
	caps = &rig.qp->rd.caps;
	caps->max_send_sge = (uint16_t)SK_MIN(room / sizeof(struct rd_sge), RD_MAX_SGE);
	caps->max_inline = (uint16_t)SK_MIN(room, RD_MAX_INLINE);
}

static void
rig_end(void)
{
	munmap(rig.pages, 2 * PAGE);
	free(rig.qp);
	free(rig.s);
}

static bool
take(struct rd_wr *wr)
{
	bool any;

	memset(wr, 0xa5, sizeof(*wr));
	any = eng_sq_next(rig.s, &rig.qp->rd, wr);
	if (any)
		rig.sq.taken = rig.qp->sq.next;
	return any;
}

/* Publishes the next entry. */
static void
sq_push(uint32_t n, uint8_t opcode, uint8_t flags, uint32_t len)
{
	shm_sqe_push(&rig.sq, shm_prod_entry(&rig.sq), n, opcode, flags, len);
}

/* Writes the fixed part of the next entry. */
static struct shm_sqe *
begin(uint64_t id)
{
	struct shm_sqe *e = shm_prod_entry(&rig.sq);

	e->wr_id = id;
	e->remote_addr = id << 32 | 0x1234;
	e->imm = id + 2;
	e->rkey = (uint32_t)id + 3;
	e->remote_srqn = (uint32_t)id + 4;
	return e;
}

/* Compares the requests that eng_sq_writes() copies, at most `n`, with those that eng_sq_next()
 * takes. Returns their number, or -1 when the queue is empty. */
static int
take_writes(unsigned n)
{
	uint32_t first = rig.qp->sq.next;
	struct rd_write w[2 * COUNT];
	uint64_t messages;
	struct rd_wr wr;
	bool more;
	unsigned k = eng_sq_writes(rig.s, &rig.qp->rd, w, n, &more);

	cr_assert_leq(k, n);
	cr_assert_eq(rig.qp->sq.next, first, "the requests stay in the queue");
	for (unsigned i = 0; i < k; i++) {
		cr_assert(eng_sq_next(rig.s, &rig.qp->rd, &wr));
		cr_assert(wr.opcode == RD_WRITE && wr.nsge == 1);
		cr_assert_eq(w[i].flags, wr.flags);
		cr_assert_eq(wr.flags & ~(RD_SIGNALED | RD_SOLICITED), 0);
		cr_assert(w[i].wr_id == wr.wr_id && w[i].remote_addr == wr.remote_addr);
		cr_assert(w[i].rkey == wr.rkey && w[i].lkey == wr.sge[0].lkey);
		cr_assert(w[i].addr == wr.sge[0].addr && w[i].len == wr.sge[0].len);
	}
	cr_assert_eq(more, k == n || eng_sq_pending(rig.s, &rig.qp->rd));
	if (k == 0)
		return more ? 0 : -1;
	rig.qp->sq.next = first;
	messages = rig.s->spent.messages;
	eng_sq_took(rig.s, &rig.qp->rd, k);
	cr_assert_eq(rig.qp->sq.next, first + k);
	cr_assert_eq(rig.s->spent.messages, messages + k);
	rig.sq.taken = rig.qp->sq.next;
	return (int)k;
}

static void
expect_fixed(const struct rd_wr *wr, uint64_t id, uint8_t opcode, uint8_t flags)
{
	cr_assert_eq(wr->wr_id, id);
	cr_assert_eq(wr->opcode, opcode);
	cr_assert_eq(wr->flags, flags);
	cr_assert_eq(wr->remote_addr, id << 32 | 0x1234);
	cr_assert_eq(wr->rkey, (uint32_t)id + 3);
}

static void
expect_bad(void)
{
	struct rd_wr wr;
	uint32_t next = rig.qp->sq.next;

	cr_assert(take(&wr));
	cr_assert_eq(wr.opcode, BAD_OPCODE);
	cr_assert(wr.nsge == 0 && wr.inline_len == 0);
	cr_assert_eq(rig.qp->sq.next, next + 1, "an invalid request uses one entry");
}

/* Every number of elements and of inline bytes that the stride allows, in each place of the
 * ring. */
static void
sizes(uint16_t stride)
{
	const struct rd_qp_caps *caps;
	struct rd_wr wr;
	uint64_t id = 7;

	rig_start(stride, SHM_RC);
	caps = &rig.qp->rd.caps;
	for (unsigned k = 0; k < COUNT * (caps->max_send_sge + 1u); k++, id++) {
		unsigned n = k % (caps->max_send_sge + 1u);
		struct shm_sqe *e = begin(id);

		for (unsigned i = 0; i < n; i++)
			e->sge[i] = (struct rd_sge){id + i, k + i, i};
		sq_push(1, RD_SEND, RD_SIGNALED, n * sizeof(struct rd_sge));
		cr_assert(take(&wr));
		expect_fixed(&wr, id, RD_SEND, RD_SIGNALED);
		cr_assert(wr.nsge == n && wr.inline_len == 0 && wr.imm == id + 2);
		cr_assert_eq(memcmp(wr.sge, e->sge, n * sizeof(struct rd_sge)), 0);
		cr_assert_not(take(&wr));
	}
	for (unsigned n = 0; n <= caps->max_inline; n++, id++) {
		struct shm_sqe *e = begin(id);

		memset(e->inl, (int)n, n);
		sq_push(1, RD_WRITE, RD_INLINE, n);
		cr_assert(take(&wr));
		expect_fixed(&wr, id, RD_WRITE, RD_INLINE);
		cr_assert(wr.inline_len == n && wr.nsge == 0);
		cr_assert_eq(memcmp(wr.inl, e->inl, n), 0);
	}
	rig_end();
}

Test(engine_queue, requests_of_every_size_arrive_from_entries_of_every_stride)
{
	for (uint16_t stride = SHM_SQE_UNIT; stride <= 8 * SHM_SQE_UNIT; stride *= 2)
		sizes(stride);
}

/* The limits of a QP are those of its entries, or of the library. */
Test(engine_queue, a_request_beyond_the_limits_is_invalid_and_the_next_is_not)
{
	for (uint16_t stride = SHM_SQE_UNIT; stride <= 8 * SHM_SQE_UNIT; stride *= 2) {
		struct rd_wr wr;
		uint32_t sges, inl;

		rig_start(stride, SHM_RC);
		sges = rig.qp->rd.caps.max_send_sge;
		inl = rig.qp->rd.caps.max_inline;
		const struct {
			uint8_t flags;
			uint32_t len;
		} bad[] = {
			{0, (sges + 1) * 16},
			{0, 1},
			{0, 15},
			{0, 17},
			{0, 0xffff},
			{0, 0xfff0},
			{RD_INLINE, inl + 1},
			{RD_INLINE, 0xffff},
		};
		for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			begin(i);
			sq_push(1, RD_SEND, bad[i].flags, bad[i].len);
			begin(99);
			sq_push(1, RD_SEND, 0, 0);
			expect_bad();
			cr_assert(take(&wr));
			expect_fixed(&wr, 99, RD_SEND, 0);
		}
		rig_end();
	}
}

/* Posts a Write with one element. */
static void
post_plain(uint64_t id, uint8_t flags)
{
	struct shm_sqe *e = begin(id);

	e->sge[0] = (struct rd_sge){id << 20, (uint32_t)id + 5, (uint32_t)id + 6};
	sq_push(1, RD_WRITE, flags, sizeof(struct rd_sge));
}

/* Every number of Writes from every place of the ring, full or not. */
Test(engine_queue, plain_writes_are_copied_together_and_taken_as_one_by_one)
{
	static const uint8_t flags[] = {0, RD_SIGNALED, RD_SOLICITED, RD_SIGNALED | RD_SOLICITED};
	uint64_t id = 1;

	rig_start(SHM_SQE_UNIT, SHM_RC);
	cr_assert_eq(take_writes(COUNT), -1);
	for (unsigned round = 0; round < 5 * COUNT; round++) {
		unsigned n = 1 + round % COUNT, most = 1 + round / COUNT;

		for (unsigned i = 0; i < n; i++, id++)
			post_plain(id, flags[id % SK_ARRAY_LEN(flags)]);
		cr_assert_eq(take_writes(most), (int)SK_MIN(n, most));
		for (; n > most; n -= SK_MIN(n, most))
			cr_assert_gt(take_writes(most), 0);
		cr_assert_eq(take_writes(COUNT), -1);
	}
	rig_end();
}

Test(engine_queue, another_request_ends_the_writes_and_stays_in_the_queue)
{
	static const struct {
		uint8_t opcode, flags;
		uint32_t len;
	} others[] = {{RD_SEND, 0, 16}, {RD_READ, 0, 16}, {RD_WRITE_IMM, 0, 16},
		{RD_WRITE, RD_FENCE, 16}, {RD_WRITE, RD_INLINE, 16}, {RD_WRITE, 0x80, 16},
		{RD_WRITE, 0, 0}, {RD_WRITE, 0, 32}, {RD_WRITE, 0, 17}, {BAD_OPCODE, 0, 16}};
	struct rd_wr wr;
	bool more;

	for (unsigned i = 0; i < SK_ARRAY_LEN(others); i++) {
		rig_start(2 * SHM_SQE_UNIT, SHM_RC);
		post_plain(1, 0);
		begin(2);
		sq_push(1, others[i].opcode, others[i].flags, others[i].len);
		post_plain(3, 0);
		cr_assert_eq(take_writes(COUNT), 1, "request %u", i);
		cr_assert_eq(take_writes(COUNT), 0, "request %u", i);
		cr_assert(take(&wr));
		cr_assert_eq(take_writes(COUNT), 1, "request %u", i);
		rig_end();
	}
	rig_start(SHM_SQE_UNIT, SHM_XRC_SEND);
	post_plain(1, 0);
	cr_assert_eq(eng_sq_writes(rig.s, &rig.qp->rd, NULL, COUNT, &more), 0,
		"an XRC request names its receiver");
	cr_assert(more);
	rig_end();
}

/* ---- Operands ---- */

static void
post_swap(uint64_t id, bool masked)
{
	struct shm_sqe *e = begin(id);
	uint64_t tail[5] = {0x1000 + id, 8 | 5ull << 32, 21, 22, 23};
	uint32_t len = masked ? sizeof(tail) : 3 * sizeof(uint64_t);
	bool two = len > rig.sq.stride - (uint32_t)SHM_SQE_BASE;

	if (two)
		shm_sqe_tail_long(&rig.sq, tail, len);
	else
		memcpy(e->inl, tail, len);
	sq_push(1 + two, RD_CMP_SWAP, RD_SIGNALED, len);
}

static void
expect_swap(uint64_t id, bool masked)
{
	struct rd_wr wr;

	cr_assert(take(&wr));
	expect_fixed(&wr, id, RD_CMP_SWAP, RD_SIGNALED);
	cr_assert(wr.nsge == 1 && wr.inline_len == 0);
	cr_assert(wr.sge[0].addr == 0x1000 + id && wr.sge[0].len == 8 && wr.sge[0].lkey == 5);
	cr_assert(wr.data == id + 2 && wr.compare == 21);
	cr_assert_eq(wr.data_mask, masked ? 22 : UINT64_MAX);
	cr_assert_eq(wr.compare_mask, masked ? 23 : UINT64_MAX);
}

/* With three entries for each round of the loop, a request of two entries begins at every place of
 * the ring, also at the last. */
Test(engine_queue, a_compare_and_swap_with_masks_uses_two_small_entries_or_one_larger)
{
	for (uint16_t stride = SHM_SQE_UNIT; stride <= 2 * SHM_SQE_UNIT; stride *= 2) {
		uint32_t places = 0;

		rig_start(stride, SHM_RC);
		for (uint64_t id = 1; id < 20; id++) {
			places |= 1u << (rig.sq.next % COUNT);
			post_swap(id, true);
			post_swap(id, false);
			expect_swap(id, true);
			expect_swap(id, false);
			cr_assert_eq(rig.qp->sq.next, rig.sq.next);
		}
		cr_assert_eq(places, stride == SHM_SQE_UNIT ? 15 : 5);
		rig_end();
	}
}

Test(engine_queue, operands_of_the_other_requests)
{
	struct shm_sqe *e;
	struct rd_wr wr;

	rig_start(SHM_SQE_UNIT, SHM_RC);
	e = begin(1);
	e->atomic.sink = (struct rd_sge){9, 8, 7};
	e->atomic.add_mask = 31;
	sq_push(1, RD_FETCH_ADD, 0, 24);
	cr_assert(take(&wr));
	expect_fixed(&wr, 1, RD_FETCH_ADD, 0);
	cr_assert(wr.nsge == 1 && wr.sge[0].addr == 9 && wr.data == 3 && wr.data_mask == 31);
	e = begin(2);
	e->atomic.sink = (struct rd_sge){9, 8, 7};
	sq_push(1, RD_SWAP, 0, 16);
	cr_assert(take(&wr));
	expect_fixed(&wr, 2, RD_SWAP, 0);
	cr_assert(wr.nsge == 1 && wr.sge[0].lkey == 7 && wr.data == 4);
	e = begin(3);
	e->bind.len = 1ull << 40;
	e->bind.access = 6;
	sq_push(1, RD_BIND_MW, RD_FENCE, 16);
	cr_assert(take(&wr));
	expect_fixed(&wr, 3, RD_BIND_MW, RD_FENCE);
	cr_assert(wr.nsge == 0 && wr.imm == 5 && wr.data == 1ull << 40 && wr.compare == 6);
	rig_end();
}

/* Datagrams name an address handle where others have an rkey. */
Test(engine_queue, requests_that_name_their_receiver)
{
	struct rd_wr wr;

	rig_start(SHM_SQE_UNIT, SHM_UD);
	begin(5);
	sq_push(1, RD_SEND, 0, 0);
	cr_assert(take(&wr));
	cr_assert(wr.ah == 8 && wr.remote_qpn == 0x1234 && wr.remote_qkey == 5);
	rig_end();
	rig_start(SHM_SQE_UNIT, SHM_XRC_SEND);
	begin(5);
	sq_push(1, RD_SEND, 0, 16);
	cr_assert(take(&wr));
	cr_assert(wr.remote_srqn == 9 && wr.nsge == 1);
	rig_end();
}

/* ---- Hostile clients ---- */

static void
expect_within_limits(const struct rd_wr *wr)
{
	const struct rd_qp_caps *caps = &rig.qp->rd.caps;

	cr_assert_leq(wr->inline_len, caps->max_inline);
	cr_assert_leq(wr->nsge, caps->max_send_sge);
	cr_assert(wr->inline_len == 0 || (wr->flags & RD_INLINE) != 0);
}

/* All opcodes, all flags that have a meaning, and all lengths near a limit, in all places. */
Test(engine_queue, lengths_that_lie_read_nothing_outside_of_the_ring)
{
	static const uint32_t lens[] = {0, 1, 8, 15, 16, 17, 23, 24, 25, 31, 32, 39, 40, 41, 48, 56,
		64, 88, 89, 216, 448, 449, 472, 473, 512, 0x7fff, 0xfff0, 0xffff};

	for (uint16_t stride = SHM_SQE_UNIT; stride <= 8 * SHM_SQE_UNIT; stride *= 2) {
		rig_start(stride, SHM_RC);
		for (unsigned opcode = 0; opcode <= 0xff; opcode++)
			for (unsigned k = 0; k < 2 * COUNT * SK_ARRAY_LEN(lens); k++) {
				struct rd_wr wr;

				begin(k);
				sq_push(1, (uint8_t)opcode, k & 1 ? RD_INLINE : 0,
					lens[k / 2 % SK_ARRAY_LEN(lens)]);
				cr_assert(take(&wr));
				expect_within_limits(&wr);
				cr_assert_eq(rig.qp->sq.next, rig.sq.next);
			}
		rig_end();
	}
}

/* The entry behind is that of an older queue, or of the lap before. */
Test(engine_queue, a_tail_that_does_not_continue_is_invalid)
{
	rig_start(SHM_SQE_UNIT, SHM_RC);
	for (unsigned k = 0; k < 4 * COUNT; k++) {
		begin(k);
		sq_push(1, RD_CMP_SWAP, 0, 40);
		expect_bad();
	}
	rig_end();
}

static bool stop;

/* Changes the head and the tail of each entry, but not the turns. */
static void *
scribbler(void *arg)
{
	uint8_t *entries = arg;
	uint32_t x = 1;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		for (unsigned i = 0; i < COUNT; i++) {
			uint8_t *e = entries + (size_t)i * rig.sq.stride;

			x = x * 1664525u + 1013904223u;
			__atomic_store_n((uint16_t *)(void *)(e + 4), (uint16_t)(x >> 16 & 0x080f),
				__ATOMIC_RELAXED);
			__atomic_store_n(
				(uint16_t *)(void *)(e + 6), (uint16_t)(x >> 8), __ATOMIC_RELAXED);
			__atomic_store_n(
				(uint64_t *)(void *)(e + 40), (uint64_t)x << 20, __ATOMIC_RELAXED);
		}
	return NULL;
}

Test(engine_queue, an_entry_that_changes_while_it_is_read_stays_within_the_limits)
{
	pthread_t t;

	for (uint16_t stride = SHM_SQE_UNIT; stride <= 8 * SHM_SQE_UNIT; stride *= 8) {
		rig_start(stride, SHM_RC);
		__atomic_store_n(&stop, false, __ATOMIC_RELAXED);
		cr_assert_eq(pthread_create(&t, NULL, scribbler, rig.sq.entries), 0);
		for (unsigned k = 0; k < 200000; k++) {
			struct rd_wr wr;

			sq_push(1, RD_SEND, 0, 16);
			cr_assert(take(&wr));
			expect_within_limits(&wr);
			rig.sq.next = rig.qp->sq.next;
		}
		__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
		pthread_join(t, NULL);
		rig_end();
	}
}
