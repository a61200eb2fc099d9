/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The latencies of requests: a sampled request counts once, from the turn that takes it to the turn
 * that completes it, whichever path sends it, and only if it completes without an error.
 */
#include "rdmap_pair.h"

#include "../../../lib/base/mem.h"

#include <criterion/criterion.h>
#include <string.h>

#define REMOTE (RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_READ | RD_ACC_REMOTE_WRITE)
#define LEN    4096
#define BLOCKS 20 /* of RD_SAMPLE requests */

static struct pair p;
static struct end *const a = &p.e[0], *const b = &p.e[1];
static struct rd_mr *ma, *mb;

static void
start(bool general)
{
	pair_init(&p, NULL, 3);
	a->st.general = general;
	ma = end_mr(a, 0x1000, LEN, REMOTE, 1, 1);
	mb = end_mr(b, 0x1000, LEN, REMOTE, 1, 2);
}

static uint64_t
counted(const struct end *e)
{
	uint64_t n = 0;

	for (unsigned i = 0; i <= RD_LATENCY_BOUNDS; i++)
		n += e->st.latency.bucket[i];
	return n;
}

static struct rd_wr *
post(uint8_t opcode, bool signaled)
{
	struct rd_wr *wr = end_post(a, opcode, 9);

	wr->flags = signaled ? RD_SIGNALED : 0;
	wr_sge(wr, ma, 0, 8);
	wr->rkey = mb->stag;
	wr->remote_addr = 0x1000;
	return wr;
}

/* Posts RD_SAMPLE requests, of which every `every`-th is signaled (0: none), and runs both ends. */
static void
block(const uint8_t *opcodes, unsigned n, unsigned every)
{
	for (unsigned i = 0; i < RD_SAMPLE; i++) {
		uint8_t opcode = opcodes[i % n];

		if (opcode == RD_SEND)
			wr_sge(end_recv(b, 1), mb, 0, LEN);
		post(opcode, every != 0 && i % every == 0);
		cr_assert(i % 16 != 15 || pair_run(&p));
	}
}

static void
blocks(const uint8_t *opcodes, unsigned n, unsigned every, bool general)
{
	start(general);
	for (unsigned i = 1; i <= BLOCKS; i++) {
		block(opcodes, n, every);
		cr_assert_eq(counted(a), i, "block %u: %lu", i, counted(a));
	}
	cr_assert_eq(a->st.latency.bucket[0], BLOCKS, "the time did not pass");
	cr_assert_eq(a->st.latency.sum, 0);
	cr_assert_eq(counted(b), 0, "the peer has no requests");
	cr_assert_eq(a->nsend, every != 0 ? BLOCKS * RD_SAMPLE / every : 0);
	cr_assert(pair_fini(&p));
}

Test(rdmap_latency, one_of_each_64_requests_counts_signaled_or_not_on_each_path)
{
	static const uint8_t writes[] = {RD_WRITE}, sends[] = {RD_SEND}, reads[] = {RD_READ},
			     mixed[] = {RD_WRITE, RD_WRITE, RD_SEND, RD_READ, RD_WRITE};
	static const unsigned signals[] = {0, 1, 16};

	for (unsigned i = 0; i < SK_ARRAY_LEN(signals); i++)
		for (int general = 0; general <= 1; general++) {
			blocks(writes, 1, signals[i], general);
			blocks(sends, 1, signals[i], general);
			blocks(reads, 1, signals[i], general);
			blocks(mixed, SK_ARRAY_LEN(mixed), signals[i], general);
		}
}

/* Posts Writes until the next request is in the sample. */
static void
approach(void)
{
	struct rd_latency l = {.random = 0};
	struct rd_sample s = {0};

	rd_sample_next(&l, &s); /* as iw_qp_create() */
	for (unsigned i = 1; i < s.left; i++)
		post(RD_WRITE, false);
	cr_assert(pair_run(&p));
	cr_assert_eq(counted(a), 0);
}

/* Sets the time of both ends. */
static void
at(uint64_t now)
{
	a->st.latency.now = b->st.latency.now = now;
}

Test(rdmap_latency, a_read_counts_when_its_response_has_arrived)
{
	for (int signaled = 0; signaled <= 1; signaled++) {
		start(false);
		approach();
		at(5000000);
		post(RD_READ, signaled);
		end_tx(a);
		cr_assert_eq(counted(a), 0);
		at(5000000 + 70000);
		cr_assert(pair_run(&p));
		cr_assert_eq(a->st.latency.bucket[7], 1, "65.5 us to 131 us");
		cr_assert_eq(counted(a), 1);
		cr_assert_eq(a->st.latency.sum, 70000);
		cr_assert_eq(a->nsend, (unsigned)signaled);
		cr_assert(pair_fini(&p));
	}
}

/* A Write of a run, and one of the general path. */
Test(rdmap_latency, an_unsignaled_write_counts_when_the_read_before_it_is_done)
{
	for (int general = 0; general <= 1; general++) {
		start(general);
		at(1000);
		for (unsigned i = 0; i < RD_SAMPLE; i++)
			post(i == 0 ? RD_READ : RD_WRITE, false);
		end_tx(a);
		cr_assert_eq(a->sq_head, a->sq_tail);
		cr_assert_eq(counted(a), 0);
		at(1000 + 3000);
		cr_assert(pair_run(&p));
		cr_assert_eq(a->st.latency.bucket[2], 1, "2 us to 4 us");
		cr_assert_eq(counted(a), 1);
		cr_assert_eq(a->nsend, 0, "it has no completion");
		cr_assert(pair_fini(&p));
	}
}

Test(rdmap_latency, a_flushed_request_does_not_count_nor_completes_when_it_was_sent)
{
	start(false);
	at(1000);
	post(RD_READ, true);
	for (unsigned i = 1; i < RD_SAMPLE; i++)
		post(RD_WRITE, false);
	end_tx(a);
	at(9000);
	iw_closed(a->q, 0, 0);
	cr_assert_eq(counted(a), 0);
	cr_assert_eq(a->st.latency.sum, 0);
	cr_assert_eq(a->nsend, 1, "the Read; the Writes had been sent");
	cr_assert_eq(a->send_wc[0].status, RD_WR_FLUSH_ERR);
	cr_assert_eq(a->send_wc[0].opcode, RD_READ);
	cr_assert(pair_fini(&p));
}
