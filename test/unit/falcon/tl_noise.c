/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer and a ULP that violate every rule: all calls that either may make, with random RSNs,
 * lengths and verdicts, in any state. Nothing may be delivered or completed twice, an ordered
 * connection stays in order or fails, and nothing is left in the end.
 */
#include "../../support/rng.h"
#include "tl_fake.h"

#include <string.h>

#define SPAN  32768 /* RSNs around the first one */
#define STEPS 1000

static uint64_t rng;
static uint32_t first;
static bool done[2][SPAN];          /* of the requests of this side */
static bool judged[2][SPAN];        /* of the peer's requests: they have a verdict */
static uint32_t next_done[2];       /* ordered */
static struct fa_buf *has[2][SPAN]; /* requests with the ULP */
static bool with_ulp[2][SPAN];

static uint32_t
rnd(uint32_t n)
{
	return rng_below(&rng, n);
}

static void
tiny(struct fa_config *cfg, struct fa_params *p)
{
	cfg->pools = (struct fa_pools){.tx_pkt_req = 10,
		.tx_buf_req = 640,
		.rx_pkt_ulp = 10,
		.rx_buf_ulp = 80,
		.tx_pkt_data = 2,
		.tx_buf_data = rnd(2) ? 64 : 128,
		.rx_pkt_net = 12,
		.rx_buf_net = 64,
		.rx_pkt_red = 1,
		.rx_buf_red = 8,
		.pulls = 6,
		.tx_cell = 64,
		.rx_cell = 512};
	cfg->shares = (struct fa_shares){
		.users = rnd(3), .reserved = rnd(3), .minimum = (uint8_t)rnd(40)};
	cfg->conn_requests = rnd(2) ? 8 : 0;
	cfg->push_reoffer = rnd(2);
	cfg->conn_waiting = rnd(2) * 4;
	cfg->reclaim_ns = rnd(2) ? 10000000 : 1000000000;
	p->tx_rsn = p->rx_rsn = first;
}

/* Returns an RSN of the peer: mostly one that is next to be delivered, sometimes any. */
static uint32_t
some_rsn(unsigned i)
{
	uint32_t base = fk.c[i].params.ordered ? fk.c[i].tl.rx_rsn : first + 20;

	return rnd(20) ? base + rnd(16) - 6 : (uint32_t)rng;
}

static bool
known(uint32_t rsn)
{
	return rsn - first < SPAN;
}

static void
react(struct fa_conn *c, const struct fa_delivery *d)
{
	unsigned i = (unsigned)(c - fk.c);
	uint32_t at = d->rsn - first;

	if (d->type == FA_COMPLETION || d->type == FA_PULL_DATA) {
		cr_assert_lt(at, SPAN);
		cr_assert(!done[i][at], "completed twice");
		done[i][at] = true;
		if (c->params.ordered)
			cr_assert_eq(at, next_done[i], "completed out of order");
		next_done[i]++;
		return;
	}
	if (!known(d->rsn))
		return;
	cr_assert(!with_ulp[i][at], "delivered while the ULP has it");
	if (c->params.ordered)
		cr_assert(!judged[i][at], "delivered though a verdict was given");
	with_ulp[i][at] = true;
	has[i][at] = d->buf;
}

/* Gives a verdict, often an invalid one. */
static void
verdict(unsigned i)
{
	struct fa_conn *c = &fk.c[i];
	uint32_t rsn = some_rsn(i), at = rsn - first;
	struct fa_outcome o = {.rsn = rsn, .verdict = (uint8_t)rnd(7), .rnr = (uint8_t)rnd(256)};
	bool mine = known(rsn) && with_ulp[i][at];
	unsigned k;

	if (!mine && rnd(4))
		return;
	if (o.verdict > FA_WRONG_CID && mine)
		o.verdict = FA_TAKEN;
	/* Requests behind a refusal are refused, else the connection ends too soon. */
	if (mine && c->params.ordered && (int32_t)(rsn - c->tl.rx_rsn) >= 0 && rnd(50))
		o.verdict = FA_RNR;
	if (mine && c->params.ordered && (int32_t)(rsn - c->tl.judged) < 0 && rnd(50))
		o.verdict = FA_TAKEN;
	if (mine) {
		struct fa_buf *b = has[i][at];

		for (k = 0; k < fk.count; k++)
			if (fk.log[k].buf == b)
				fk.log[k].buf = NULL;
		o.buf = b; /* TL frees it if it does not need it */
		has[i][at] = NULL;
		with_ulp[i][at] = false;
		if (o.verdict != FA_RNR)
			judged[i][at] = true;
	}
	fa_outcome(c, fk.now, &o);
}

static void
peer(unsigned i)
{
	static const uint8_t types[] = {FALCON_PUSH_DATA, FALCON_PULL_REQUEST, FALCON_PULL_DATA};
	uint32_t rsn = some_rsn(i);

	if (fk.c[i].dead)
		return;
	switch (rnd(6)) {
	case 0:
		fake_rx_again(i, rsn, rsn + 7, rnd(600));
		break;
	case 1:
		fake_resync(i, types[rnd(3)], rsn, rsn + 7);
		break;
	case 2:
		fake_rx_pull(i, rsn, rsn + 7, rnd(5000));
		break;
	case 3:
		fake_rx(i, FALCON_PULL_DATA, fk.c[i].tl.tx_rsn - rnd(12), 0, rnd(600));
		break;
	default:
		fake_rx(i, FALCON_PUSH_DATA, rsn, rsn + (rnd(10) ? 7 : 8), rnd(600));
	}
}

static void
network(void)
{
	static const enum fa_completion hows[] = {
		FA_DONE, FA_DONE, FA_TARGET_CIE, FA_TARGET_FATAL, FA_LOCAL_TIMEOUT};
	unsigned k;

	if (!fk.sent_count)
		return;
	k = rnd(fk.sent_count);
	if (fk.sent_by[k]->dead)
		return;
	fake_sent((unsigned)(fk.sent_by[k] - fk.c), fk.sent[k]->type, fk.sent[k]->rsn, hows[rnd(5)],
		1);
}

static void
step(void)
{
	unsigned i = rnd(2);

	fk.room = rnd(8) ? UINT32_MAX : rnd(3);
	fk.withdraw = !fk.c[i].params.ordered && rnd(2);
	switch (rnd(12)) {
	case 0:
		if (fk.s.tl.xoff && rnd(fk.c[i].params.ordered ? 30 : 2))
			break;
		fa_push(&fk.c[i], fk.now, fake_buf(rnd(1000) ? rnd(600) : 5000));
		break;
	case 1:
		if (fk.s.tl.xoff && rnd(fk.c[i].params.ordered ? 30 : 2))
			break;
		fa_pull(&fk.c[i], fk.now, fake_buf(28), rnd(1000) ? rnd(600) : 5000);
		break;
	case 2:
	case 3:
		if (fk.c[i].params.ordered || rnd(2)) /* slower than the ULP */
			network();
		break;
	case 4:
	case 5:
		verdict(i);
		break;
	case 6:
		fa_pull_data(&fk.c[i], fk.now, some_rsn(i), rnd(2) ? fake_buf(rnd(600)) : NULL);
		break;
	case 7:
		fake_wait(rnd(3000000));
		break;
	case 8:
		fa_deliver_resume(&fk.c[i], fk.now);
		break;
	default:
		peer(i);
	}
	for (i = 0; i < 2; i++)
		if (fk.c[i].dead && !fk.c[i].tl.dead)
			fake_bury(i);
}

static uint64_t steps;
static uint64_t counted[fa_reason_count];

/* Checks the causes of failed connections: on an ordered one, a ULP that violated the order, or a
 * gap of the peer that never closed; on any, an invalid request of this side. */
static void
check_deaths(bool ordered)
{
	unsigned i;

	for (i = 0; i < fk.count; i++) {
		if (fk.log[i].kind != F_FAIL)
			continue;
		cr_assert(fk.log[i].a == FA_LOCAL_RESOURCE || fk.log[i].a == FA_OPERATION_ERROR ||
				  (ordered && fk.log[i].a == FA_DEAD_CONNECTION),
			"code %u", fk.log[i].a);
	}
}

static void
noise(uint64_t seed, bool ordered)
{
	unsigned i, k;

	rng = seed * 0x9e3779b97f4a7c15ull + 1;
	first = rnd(2) ? UINT32_MAX - 20 : 1;
	memset(done, 0, sizeof(done));
	memset(judged, 0, sizeof(judged));
	memset(with_ulp, 0, sizeof(with_ulp));
	memset(next_done, 0, sizeof(next_done));
	fake_start(ordered, tiny);
	fk.react = react;
	for (k = 0; k < STEPS && !(fk.c[0].dead && fk.c[1].dead); k++)
		step();
	steps += k;
	check_deaths(ordered);
	for (i = 0; i < 2; i++) {
		/* In the end all requests complete, after any noise. */
		if (!fk.c[i].dead)
			fa_conn_fail(&fk.c[i], fk.now, FA_DEAD_CONNECTION);
		if (!fk.c[i].tl.dead)
			fake_bury(i);
		fk.room = UINT32_MAX;
		fa_deliver_resume(&fk.c[i], fk.now);
		cr_assert_eq(next_done[i], fk.c[i].tl.tx_rsn - first,
			"seed %lu: %u of %u requests have completed", seed, next_done[i],
			fk.c[i].tl.tx_rsn - first);
		cr_assert(fk.c[i].tl.dead_sent);
	}
	for (k = 0; k < fa_reason_count; k++)
		counted[k] += fk.s.counters[k];
	fake_stop();
}

/* Checks that the noise has triggered every check. */
static void
all_happened(void)
{
	static const enum fa_reason r[] = {FA_RSN, FA_LENGTH, FA_NO_REQUEST, FA_NO_RESOURCE,
		FA_BAD_OUTCOME, FA_RECLAIMED, FA_DELIVER_BUSY, FA_POOL_EMPTY};
	unsigned i;

	for (i = 0; i < SK_ARRAY_LEN(r); i++)
		cr_assert_gt(counted[r[i]], 0, "%s never happened", fa_reasons.reasons[r[i]].name);
}

Test(falcon_tl_noise, ordered_connections)
{
	unsigned seed;

	for (seed = 1; seed <= 300; seed++)
		noise(seed, true);
	all_happened();
	cr_assert_gt(counted[FA_EVICTED], 0);
	cr_assert_gt(steps, 150000, "it ends too soon: %lu", steps);
}

Test(falcon_tl_noise, unordered_connections)
{
	unsigned seed;

	for (seed = 1; seed <= 300; seed++)
		noise(seed, false);
	all_happened();
	cr_assert_gt(steps, 150000, "it ends too soon: %lu", steps);
}
