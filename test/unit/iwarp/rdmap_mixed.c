/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random mixtures: both ends post Sends, Writes and Reads of all shapes at once, over a wire that
 * is cut at random, with and without markers, with little send space, while buffers and the ring
 * are refused now and then. A model computes what both targets must contain at the end. Each
 * signaled request completes once, in posting order.
 */
#include "rdmap_pair.h"

#include "../../../lib/base/mem.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS  200
#define OPS    60
#define SOURCE 50000
#define TARGET (1 << 20)

struct model {
	struct rd_mr *source, *target;
	uint8_t *image; /* the expected contents of the target */
	uint32_t next;  /* first byte of the target that no request has used */
	uint64_t want_send[OPS];
	uint32_t want_len[OPS];
	unsigned nwant;
	uint32_t want_recv[OPS];
	unsigned nrecv;
};

static struct pair p;
static struct model m[2];

static uint32_t
rnd(uint32_t n)
{
	return rng_below(&p.rng, n);
}

static uint32_t
random_len(void)
{
	switch (rnd(8)) {
	case 0:
		return 0;
	case 1:
		return 1400 + rnd(100);
	case 2:
		return rnd(30000);
	default:
		return rnd(300);
	}
}

static void
setup(uint64_t seed)
{
	struct iw_params params = end_params();
	bool marked[2];

	p.rng = seed;
	params.crc = rnd(4) > 0;
	params.ird = params.ord = (uint16_t)(1 + rnd(8));
	params.emss = 256 + rnd(9000);
	params.send_space = rnd(2) ? 1 + rnd(20000) : 1 << 20;
	marked[0] = rnd(3) == 0;
	marked[1] = rnd(3) == 0;
	for (int k = 0; k < 2; k++) {
		params.tx_markers = marked[k];
		params.rx_markers = marked[1 - k];
		end_init(&p.e[k], &params, k == 0);
		p.e[k].rd.sig_all = rnd(4) == 0;
		m[k] = (struct model){0};
		m[k].source = end_mr(&p.e[k], rnd(2) ? 0 : 0x7f1234567000 + rnd(4096), SOURCE,
			RD_ACC_REMOTE_READ, 1 + rnd(4), (uint8_t)(1 + k));
		m[k].target = end_mr(&p.e[k], rnd(2) ? 0 : 0x12345678 + rnd(4096), TARGET,
			RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE, 1 + rnd(5), (uint8_t)(11 + k));
		m[k].image = malloc(TARGET);
		mr_get(m[k].target, 0, m[k].image, TARGET);
	}
}

/* Reserves a part of the target for one request, with a gap behind it that must not change. */
static uint32_t
reserve(struct model *t, uint32_t len)
{
	uint32_t at = t->next;

	t->next += len + 1 + rnd(9);
	cr_assert_lt(t->next, TARGET);
	return at;
}

/* Describes `len` bytes of the source at `off` in random elements; copies the model's bytes to
 * `bytes`. */
static void
gather_from(struct rd_wr *wr, const struct model *s, int k, uint8_t *bytes, uint32_t len)
{
	uint32_t left = len;

	if (len <= RD_MAX_INLINE && rnd(4) == 0) {
		wr->flags |= RD_INLINE;
		wr->inline_len = len;
		for (uint32_t i = 0; i < len; i++)
			wr->inl[i] = bytes[i] = (uint8_t)rnd(256);
		return;
	}
	while (left > 0 || (wr->nsge == 0 && rnd(2))) {
		uint32_t n = wr->nsge < 5 ? rnd(left + 1) : left;
		uint32_t off = rnd(SOURCE - n);

		if (rnd(2))
			n = left;
		off = rnd(SOURCE - n);
		wr_sge(wr, s->source, off, n);
		for (uint32_t i = 0; i < n; i++)
			*bytes++ = pattern((uint8_t)(1 + k), off + i);
		left -= n;
	}
}

/* Scatters `bytes` over parts of the target, in a random number of elements with `room` bytes more
 * than needed. */
static void
scatter_to(struct rd_wr *wr, struct model *t, const uint8_t *bytes, uint32_t len, uint32_t room)
{
	uint32_t left = len + room;

	while (left > 0) {
		uint32_t n = wr->nsge < 4 && rnd(2) ? 1 + rnd(left) : left;
		uint32_t at = reserve(t, n);
		uint32_t used = SK_MIN(n, len);

		wr_sge(wr, t->target, at, n);
		memcpy(t->image + at, bytes, used);
		bytes += used;
		len -= used;
		left -= n;
	}
}

static void
post_random(int k, uint64_t id)
{
	static const uint8_t opcodes[] = {RD_SEND, RD_WRITE, RD_READ};
	struct model *mine = &m[k], *peer = &m[1 - k];
	struct rd_wr *wr = end_post(&p.e[k], opcodes[rnd(3)], id);
	uint32_t len = random_len(), at;
	uint8_t *bytes = malloc(len + 1);

	wr->flags = rnd(3) ? RD_SIGNALED : 0;
	if (rnd(8) == 0)
		wr->flags |= RD_FENCE;
	if (wr->opcode == RD_READ) {
		at = rnd(SOURCE - len);
		for (uint32_t i = 0; i < len; i++)
			bytes[i] = pattern((uint8_t)(2 - k), at + i);
		wr->rkey = peer->source->stag;
		wr->remote_addr = peer->source->base + at;
		scatter_to(wr, mine, bytes, len, 0);
	} else {
		gather_from(wr, mine, k, bytes, len);
		if (wr->opcode == RD_SEND) {
			scatter_to(end_recv(&p.e[1 - k], 1000 + id), peer, bytes, len, rnd(20));
			peer->want_recv[peer->nrecv++] = len;
		} else {
			at = reserve(peer, len);
			wr->rkey = peer->target->stag;
			wr->remote_addr = peer->target->base + at;
			memcpy(peer->image + at, bytes, len);
		}
	}
	if ((wr->flags & RD_SIGNALED) || p.e[k].rd.sig_all) {
		mine->want_send[mine->nwant] = id;
		mine->want_len[mine->nwant++] = len;
	}
	free(bytes);
}

static void
verify(int k, unsigned long seed)
{
	struct end *e = &p.e[k];
	uint8_t *got = malloc(TARGET);

	cr_assert_eq(e->errors, 0, "seed %lu: error %d", seed, e->error_code);
	cr_assert_eq(
		e->nsend, m[k].nwant, "seed %lu: %u of %u completions", seed, e->nsend, m[k].nwant);
	for (unsigned i = 0; i < e->nsend; i++) {
		cr_assert_eq(e->send_wc[i].wr_id, m[k].want_send[i], "seed %lu", seed);
		cr_assert_eq(e->send_wc[i].status, RD_SUCCESS, "seed %lu", seed);
		cr_assert_eq(e->send_wc[i].byte_len, m[k].want_len[i], "seed %lu", seed);
	}
	cr_assert_eq(e->nrecv, m[k].nrecv, "seed %lu", seed);
	for (unsigned i = 0; i < e->nrecv; i++) {
		cr_assert_eq(e->recv_wc[i].status, RD_SUCCESS, "seed %lu", seed);
		cr_assert_eq(e->recv_wc[i].byte_len, m[k].want_recv[i], "seed %lu", seed);
	}
	mr_get(m[k].target, 0, got, TARGET);
	cr_assert(
		memcmp(got, m[k].image, TARGET) == 0, "seed %lu: end %d has wrong bytes", seed, k);
	free(got);
	free(m[k].image);
}

Test(rdmap_mixed, every_byte_and_every_completion_is_right, .timeout = 300)
{
	for (unsigned long seed = 1; seed <= SEEDS; seed++) {
		setup(seed);
		for (unsigned i = 0; i < OPS; i++) {
			for (int k = 0; k < 2; k++) {
				post_random(k, i);
				if (rnd(4) == 0)
					p.e[k].refuse_rec = rnd(4);
				if (rnd(4) == 0)
					p.e[k].refuse_send = rnd(4);
			}
			if (rnd(5) == 0)
				cr_assert(pair_run(&p), "seed %lu", seed);
		}
		cr_assert(pair_run(&p), "seed %lu: it never ends", seed);
		verify(0, seed);
		verify(1, seed);
		cr_assert(pair_fini(&p), "seed %lu: a record or slice is missing", seed);
	}
}
