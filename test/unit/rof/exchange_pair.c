/* SPDX-License-Identifier: BSD-3-Clause */
#include "exchange_pair.h"

#include <criterion/criterion.h>
#include <string.h>

#include "../../../lib/base/mem.h"

struct rofx_side
xp_side(unsigned n)
{
	struct rofx_side s = {
		.transport = ROF_RC,
		.ordering = ROF_ORDER_STRONG,
		.errors = ROF_ERRORS_VERBS,
		.cid = 0xc1d000 + n,
		.qpn = 0x100000 + n,
		.gid = {{0xfd, [15] = (uint8_t)n}},
		.request_psn = 0x10203040 + n,
		.data_psn = 0x50607080 + n,
		.rsn = 0x90a0b0c0 + n,
		.mtu = (uint16_t)(4096 + n),
		.ird = (uint16_t)(16 + n),
		.ord = (uint16_t)(32 + n),
		.request_window = FA_REQUEST_WINDOW,
		.data_window = FA_DATA_WINDOW,
		.flows = FA_FLOWS_MAX,
		.rnr_retry = (uint8_t)(n % 8),
		.rnr_code = (uint8_t)(12 + n % 8),
		.ttl = 64,
		.function = 0xf00000 + n,
		.outer = {{0xfd, 7, [15] = (uint8_t)n}}, /* in tunnel mode only */
		.psp = ROFX_PSP(PSP_NO_CRYPTO),
		.spi = 0x51000000 + n,
	};

	memset(s.key128, (int)(0x10 + n), sizeof(s.key128));
	memset(s.key256, (int)(0x20 + n), sizeof(s.key256));
	return s;
}

int
xp_move(struct lone *from, struct lone *to, size_t chunk)
{
	uint8_t buf[16384];
	size_t n = lone_output(from, buf, sizeof(buf)), step = chunk ? chunk : n;
	int got = 0;

	for (size_t at = 0; at < n && got >= 0; at += step)
		got = lone_input(to, 0, buf + at, SK_MIN(step, n - at));
	return got < 0 ? got : (int)n;
}

void
xp_start(struct xpair *p, const struct rofx_side *ours)
{
	int err;

	p->a = lone_connect(&p->cfg_a, 0, ours, "hello", 6, &err);
	p->b = lone_listen(&p->cfg_b, 0);
	cr_assert_not_null(p->a, "%d", err);
	cr_assert_not_null(p->b);
}

void
xp_run(struct xpair *p)
{
	int there, back;

	do {
		there = xp_move(p->a, p->b, p->chunk);
		back = xp_move(p->b, p->a, p->chunk);
	} while (there > 0 || back > 0);
}

void
xp_establish(struct xpair *p, const struct rofx_side *ours, const struct rofx_side *theirs)
{
	xp_start(p, ours);
	xp_run(p);
	cr_assert_eq(lone_event(p->b), ROFX_EV_REQUEST);
	cr_assert_eq(lone_event(p->b), ROFX_EV_NONE);
	cr_assert_eq(lone_accept(p->b, 0, theirs, "welcome", 8), 0);
	xp_run(p);
	cr_assert_eq(lone_event(p->a), ROFX_EV_AGREED);
	cr_assert_eq(lone_event(p->b), ROFX_EV_NONE);
	cr_assert_eq(lone_ready(p->a), 0);
	xp_run(p);
	cr_assert_eq(lone_event(p->b), ROFX_EV_ESTABLISHED);
	cr_assert_eq(lone_event(p->a), ROFX_EV_NONE);
}

void
xp_refuse(struct xpair *p, const struct rofx_side *ours, enum rofx_reason a, enum rofx_reason b)
{
	xp_start(p, ours);
	xp_run(p);
	cr_assert_eq(lone_event(p->b), ROFX_EV_FAILED);
	cr_assert_eq(lone_why(p->b), b, "%d", lone_why(p->b));
	cr_assert_eq(lone_event(p->a), ROFX_EV_FAILED);
	cr_assert_eq(lone_why(p->a), a, "%d", lone_why(p->a));
}

void
xp_end(struct xpair *p)
{
	lone_destroy(p->a);
	lone_destroy(p->b);
	p->a = p->b = NULL;
}

void
xp_times_out(struct lone *x, uint64_t at)
{
	cr_assert_eq(lone_deadline(x), at);
	lone_timeout(x, at - 1);
	cr_assert_eq(lone_event(x), ROFX_EV_NONE);
	lone_timeout(x, at);
	cr_assert_eq(lone_event(x), ROFX_EV_FAILED);
	cr_assert_eq(lone_why(x), ROFX_TIMEOUT);
	cr_assert_eq(lone_deadline(x), UINT64_MAX);
}
