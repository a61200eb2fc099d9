/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs of small Writes against the general path. The same random work, with requests of all kinds
 * between the Writes, with wrong requests and with damaged bytes on the wire, runs twice: once with
 * iw_stage.general. Both runs put the same bytes into the same records, and have the same
 * completions, counters, memory and end.
 */
#include "rdmap_pair.h"

#include "../../../lib/base/mem.h"
#include "../../../lib/iwarp/iw_priv.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS   250
#define ROUNDS  25
#define REGIONS 5
#define LEN     20000 /* bytes of a region */

struct outcome {
	uint64_t wire[2]; /* a hash of the records of an end */
	uint64_t memory[2];
	uint64_t completions[2];
	unsigned nsend[2], nrecv[2], records[2], taken[2];
	struct iw_info info[2];
	uint64_t counters[2][64], mpa_counters[2][mpa_reason_count];
	struct rd_latency latency[2];
	uint64_t consumed[2];
	int error[2];
	unsigned errors[2], closes[2], phase[2], kicks[2];
	int64_t space[2];
};

static struct pair p;
static struct outcome out;
static unsigned general_writes, single_requests; /* calls of the general functions */
static uint64_t seen[2];                         /* bytes of the wire that are hashed */

/* ---- Functions in the place of those of the library: the linker's option --wrap ---- */

int __real_iw_rx_write(
	struct iw_qp *q, const struct mpa_fpdu *f, const struct wire_ddp *d, const uint8_t *head);
int __wrap_iw_rx_write(
	struct iw_qp *q, const struct mpa_fpdu *f, const struct wire_ddp *d, const uint8_t *head);
bool __real_iw_tx_fast(struct iw_qp *q, struct iw_op *op);
bool __wrap_iw_tx_fast(struct iw_qp *q, struct iw_op *op);

int
__wrap_iw_rx_write(
	struct iw_qp *q, const struct mpa_fpdu *f, const struct wire_ddp *d, const uint8_t *head)
{
	general_writes++;
	return __real_iw_rx_write(q, f, d, head);
}

bool
__wrap_iw_tx_fast(struct iw_qp *q, struct iw_op *op)
{
	single_requests++;
	return __real_iw_tx_fast(q, op);
}

/* ---- The work ---- */

static uint32_t
rnd(uint32_t n)
{
	return rng_below(&p.rng, n);
}

static void
hash(uint64_t *h, const void *data, size_t len)
{
	const uint8_t *b = data;

	for (size_t i = 0; i < len; i++)
		*h = (*h ^ b[i]) * 0x100000001b3ull;
}

/* Makes the regions of an end: 0 to 2 with one extent, 3 with three, 4 without remote rights. */
static void
run_regions(struct end *e, uint8_t seed)
{
	for (unsigned i = 0; i < REGIONS; i++)
		end_mr(e, i == 0 ? 0 : 0x10000 * i + rnd(16), LEN,
			RD_ACC_LOCAL_WRITE |
				(i == 4 ? 0 : RD_ACC_REMOTE_READ | RD_ACC_REMOTE_WRITE),
			i == 3 ? 3 : 1, (uint8_t)(seed + i));
}

static void
run_setup(uint64_t seed, bool general)
{
	struct iw_params params = end_params();

	p.rng = seed;
	params.crc = rnd(10) > 0;
	params.tx_markers = params.rx_markers = rnd(10) == 0;
	params.emss = 256 + rnd(4) * 400;
	params.send_space = rnd(3) ? 1 << 20 : 1 + rnd(4000);
	for (int k = 0; k < 2; k++) {
		end_init(&p.e[k], &params, k == 0);
		p.e[k].st.general = general;
		p.e[k].rd.sig_all = rnd(4) == 0;
		p.e[k].rd.caps.sq_depth = rnd(4) ? 64 : 4;
		run_regions(&p.e[k], (uint8_t)(1 + 10 * k));
		for (unsigned i = 0; i < 64; i++)
			wr_sge(end_recv(&p.e[k], 5000 + i), p.e[k].mr[1], 0, LEN);
		seen[k] = 0;
	}
}

/* Changes a request into one that is wrong. */
static void
spoil(struct rd_wr *wr, const struct end *peer)
{
	switch (rnd(7)) {
	case 0:
		wr->rkey ^= 1u << rnd(32);
		break;
	case 1:
		wr->sge[0].lkey ^= 1u << rnd(32);
		break;
	case 2:
		wr->remote_addr += LEN - rnd(300);
		break;
	case 3:
		wr->sge[0].addr += LEN - rnd(300);
		break;
	case 4:
		wr->remote_addr = UINT64_MAX - rnd(10);
		break;
	case 5:
		wr->rkey = peer->mr[4]->stag;
		break;
	default:
		wr->sge[0].addr = UINT64_MAX - rnd(10);
	}
}

static void
run_post(int k, uint64_t id, bool may_spoil)
{
	static const uint8_t others[] = {
		RD_WRITE, RD_SEND, RD_READ, RD_WRITE_IMM, RD_WRITE, RD_WRITE};
	struct end *e = &p.e[k], *peer = &p.e[!k];
	bool plain = rnd(8) != 0;
	uint8_t opcode = plain ? RD_WRITE : others[rnd(SK_ARRAY_LEN(others))];
	struct rd_wr *wr = end_post(e, opcode, id);
	struct rd_mr *to = peer->mr[rnd(4)];
	uint32_t len = rnd(4) ? 8 : rnd(20) ? rnd(300) : rnd(3000);

	wr->flags = rnd(3) ? 0 : RD_SIGNALED;
	if (rnd(8) == 0)
		wr->flags |= RD_SOLICITED;
	if (!plain && rnd(4) == 0)
		wr->flags |= RD_FENCE;
	wr->rkey = to->stag;
	wr->remote_addr = to->base + rnd(LEN - len);
	wr->imm = id;
	if (!plain && opcode == RD_WRITE && rnd(2) == 0) {
		wr->flags |= RD_INLINE;
		wr->inline_len = SK_MIN(len, 60u);
		memset(wr->inl, (int)id, wr->inline_len);
		return;
	}
	for (unsigned n = plain ? 1 : 1 + rnd(2); n > 0; n--)
		wr_sge(wr, e->mr[rnd(4) ? 0 : rnd(4)], rnd(LEN / 2), len / n);
	if (may_spoil && rnd(200) == 0)
		spoil(wr, peer);
}

/* Sends, and hashes what was sent. */
static void
run_send(int k)
{
	struct end *e = &p.e[k];
	enum iw_tx_result r = iw_tx(e->q, 0, 1 + rnd(64));

	hash(&out.wire[k], &r, sizeof(r));
	hash(&out.wire[k], e->wire + seen[k], e->wire_len - seen[k]);
	hash(&out.wire[k], &e->records, sizeof(e->records));
	seen[k] = e->wire_len;
}

/* Delivers all or a part of the bytes that one end has sent. */
static void
run_deliver(int k, bool damage)
{
	static const uint32_t cuts[] = {0, 0, 60, 1448};
	struct end *e = &p.e[k];
	uint32_t n = (uint32_t)e->wire_len;

	if (n > 0 && rnd(3) == 0)
		n = 1 + rnd(n);
	if (n == 0)
		return;
	if (damage && rnd(60) == 0)
		e->wire[rnd(n)] ^= (uint8_t)(1u << rnd(8));
	end_feed(&p.e[!k], e->wire, n, cuts[rnd(SK_ARRAY_LEN(cuts))], &p.rng);
	memmove(e->wire, e->wire + n, e->wire_len - n);
	e->wire_len -= n;
	seen[k] = e->wire_len;
	out.kicks[k] += iw_space(e->q, n);
}

static void
run_collect(int k)
{
	struct end *e = &p.e[k];
	uint8_t *bytes = malloc(LEN);

	for (unsigned i = 0; i < REGIONS; i++) {
		mr_get(e->mr[i], 0, bytes, LEN);
		hash(&out.memory[k], bytes, LEN);
	}
	free(bytes);
	hash(&out.completions[k], e->send_wc, SK_MIN(e->nsend, END_WCS) * sizeof(e->send_wc[0]));
	hash(&out.completions[k], e->recv_wc, SK_MIN(e->nrecv, END_WCS) * sizeof(e->recv_wc[0]));
	out.nsend[k] = e->nsend;
	out.nrecv[k] = e->nrecv;
	out.records[k] = e->records;
	out.taken[k] = e->sq_head;
	iw_get_info(e->q, &out.info[k]);
	memcpy(out.counters[k], e->st.counters, sizeof(out.counters[k]));
	memcpy(out.mpa_counters[k], e->st.mpa_counters, sizeof(out.mpa_counters[k]));
	out.latency[k] = e->st.latency;
	out.consumed[k] = e->consumed;
	out.errors[k] = e->errors;
	out.error[k] = e->error_code;
	out.closes[k] = e->closes;
	out.phase[k] = e->q->phase;
	out.space[k] = e->q->space;
}

/* Returns how many requests are posted: none while many wait. */
static unsigned
run_posts(int k)
{
	unsigned n = rnd(40);

	return p.e[k].sq_tail - p.e[k].sq_head < END_WRS - 100 ? n : 0;
}

static struct outcome
run_outcome(uint64_t seed, bool general)
{
	bool spoils, damage;
	uint64_t id = 0;

	memset(&out, 0, sizeof(out));
	general_writes = single_requests = 0;
	run_setup(seed, general);
	spoils = rnd(3) == 0;
	damage = rnd(3) == 0;
	for (unsigned i = 0; i < ROUNDS; i++) {
		for (int k = 0; k < 2; k++)
			for (unsigned n = run_posts(k); n > 0; n--)
				run_post(k, id++, spoils);
		for (int k = 0; k < 2; k++)
			run_send(k);
		for (int k = 0; k < 2; k++)
			run_deliver(k, damage);
	}
	for (int k = 0; k < 2; k++)
		run_collect(k);
	cr_assert(pair_fini(&p), "seed %lu: a record or slice is missing", seed);
	return out;
}

Test(rdmap_run, a_run_of_writes_equals_the_general_path, .timeout = 300)
{
	unsigned run_writes = 0, run_requests = 0, writes = 0, requests = 0, failed = 0;
	static struct outcome a, b;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		a = run_outcome(seed, false);
		run_writes += general_writes;
		run_requests += single_requests;
		b = run_outcome(seed, true);
		writes += general_writes;
		requests += single_requests;
		for (int k = 0; k < 2; k++) {
			cr_assert_eq(
				a.wire[k], b.wire[k], "seed %lu: the bytes of end %d", seed, k);
			cr_assert_eq(a.completions[k], b.completions[k], "seed %lu", seed);
			cr_assert_eq(a.memory[k], b.memory[k], "seed %lu", seed);
		}
		cr_assert_eq(memcmp(&a, &b, sizeof(a)), 0, "seed %lu", seed);
		failed += a.errors[0] > 0;
	}
	/* Markers, connections without CRCs, cut FPDUs and several extents need the general
	 * path. */
	cr_assert_lt(run_writes, writes / 3 * 2, "%u of %u", run_writes, writes);
	cr_assert_lt(run_requests, requests / 3 * 2, "%u of %u", run_requests, requests);
	cr_assert_gt(failed, SEEDS / 20);
	cr_assert_lt(failed, SEEDS / 2);
}
