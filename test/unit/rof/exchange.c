/* SPDX-License-Identifier: BSD-3-Clause */
/* The exchange of doc/falcon-cm.md on a stream in clear: its course, its ends, its timers. */
#include "exchange_pair.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static void
assert_mirrored(const struct rofx_agreed *a, const struct rofx_agreed *b)
{
	cr_assert_eq(a->mtu, b->mtu);
	cr_assert_eq(a->flows, b->flows);
	cr_assert_eq(a->ordering, b->ordering);
	cr_assert_eq(a->errors, b->errors);
	cr_assert_eq(a->psp, b->psp);
	cr_assert_eq(a->ird, b->ord);
	cr_assert_eq(a->ord, b->ird);
	cr_assert_eq(a->tx.spi, b->rx.spi);
	cr_assert_eq(a->rx.spi, b->tx.spi);
	cr_assert_eq(a->peer.cid, b->ours.cid);
	cr_assert_eq(a->ours.cid, b->peer.cid);
	cr_assert_eq(memcmp(a->tx.key, b->rx.key, PSP_KEY_MAX), 0);
	cr_assert_eq(memcmp(a->rx.key, b->tx.key, PSP_KEY_MAX), 0);
}

Test(exchange, request_accept_ready_make_a_connection)
{
	struct rofx_side s1 = xp_side(1), s2 = xp_side(2);
	struct xpair p = {0};

	xp_establish(&p, &s1, &s2);
	assert_mirrored(lone_agreed(p.a), lone_agreed(p.b));
	cr_assert_eq(lone_agreed(p.a)->peer.qpn, s2.qpn);
	cr_assert_eq(lone_agreed(p.b)->peer.qpn, s1.qpn);
	cr_assert_str_eq((const char *)lone_agreed(p.a)->private_data, "welcome");
	cr_assert_eq(lone_agreed(p.a)->private_len, 8);
	cr_assert_str_eq((const char *)lone_agreed(p.b)->private_data, "hello");
	cr_assert_eq(lone_deadline(p.a), UINT64_MAX);
	cr_assert_eq(lone_deadline(p.b), UINT64_MAX);
	xp_end(&p);
}

Test(exchange, bytes_may_come_one_by_one)
{
	struct rofx_side s1 = xp_side(1), s2 = xp_side(2);
	struct xpair p = {.chunk = 1};

	xp_establish(&p, &s1, &s2);
	assert_mirrored(lone_agreed(p.a), lone_agreed(p.b));
	xp_end(&p);
}
