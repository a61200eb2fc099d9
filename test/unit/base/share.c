/* SPDX-License-Identifier: BSD-3-Clause */
/* The shares of a pool: a minimum for each user, common units for the first that asks. */
#include <criterion/criterion.h>

#include "../../../lib/base/share.h"

#define USERS 5

static struct sk_share s;

static void
share_of(uint32_t size, uint32_t reserved, uint32_t minimum, uint32_t most)
{
	cr_assert_eq(sk_share_init(&s, size, USERS, reserved, minimum, most), 0);
}

static uint32_t
take_all(uint32_t user)
{
	uint32_t n = 0;

	while (sk_share_take(&s, user, 1) == SK_SHARE_OK)
		n++;
	return n;
}

Test(share, one_user_leaves_the_minimum_of_every_other_user)
{
	share_of(100, 4, 10, 0);
	cr_expect_eq(sk_share_room(&s, 1), 70);
	cr_expect_eq(take_all(1), 70);
	cr_expect_eq(sk_share_take(&s, 1, 1), SK_SHARE_NONE);
	cr_expect_eq(take_all(0), 10);
	cr_expect_eq(take_all(2), 10);
	cr_expect_eq(take_all(3), 10);
	cr_expect_eq(s.held, 100);
	sk_share_fini(&s);
}

Test(share, a_user_without_a_minimum_gets_common_units_only)
{
	share_of(100, 4, 10, 0);
	cr_expect_eq(sk_share_room(&s, 4), 60);
	cr_expect_eq(take_all(4), 60);
	cr_expect_eq(take_all(1), 10);
	sk_share_fini(&s);
}

Test(share, returned_units_are_common_before_they_are_the_users_own)
{
	share_of(100, 4, 10, 0);
	cr_assert_eq(take_all(1), 70);
	sk_share_give(&s, 1, 60);
	cr_expect_eq(sk_share_room(&s, 2), 70, "60 common ones, and 10 of its own");
	sk_share_give(&s, 1, 10);
	cr_expect_eq(sk_share_room(&s, 0), 70);
	cr_expect_eq(s.held, 0);
	sk_share_fini(&s);
}

Test(share, no_user_holds_more_than_the_most)
{
	share_of(100, 2, 10, 30);
	cr_expect_eq(sk_share_room(&s, 1), 30);
	cr_expect_eq(take_all(1), 30);
	cr_expect_eq(sk_share_take(&s, 1, 1), SK_SHARE_MOST);
	cr_expect_eq(sk_share_take(&s, 1, UINT32_MAX), SK_SHARE_MOST);
	sk_share_fini(&s);
}

Test(share, a_request_is_granted_as_a_whole_or_not_at_all)
{
	share_of(100, 4, 10, 0);
	cr_expect_eq(sk_share_take(&s, 1, 71), SK_SHARE_NONE);
	cr_expect_eq(s.held, 0);
	cr_expect_eq(sk_share_take(&s, 1, 70), SK_SHARE_OK);
	sk_share_fini(&s);
}

Test(share, the_minimums_fit_into_half_of_the_pool)
{
	share_of(8, 4, 100, 0);
	cr_expect_eq(s.minimum, 1);
	cr_expect_eq(sk_share_room(&s, 0), 5, "4 common ones, and its own");
	sk_share_fini(&s);
	share_of(3, 4, 100, 0);
	cr_expect_eq(s.minimum, 0);
	cr_expect_eq(take_all(1), 3);
	sk_share_fini(&s);
	share_of(5, 0, 100, 0);
	cr_expect_eq(take_all(2), 5);
	sk_share_fini(&s);
}

Test(share, a_percentage_has_a_least_value_unless_it_is_0)
{
	cr_expect_eq(sk_share_percent(16384, 1, 1), 163);
	cr_expect_eq(sk_share_percent(64, 1, 3), 3);
	cr_expect_eq(sk_share_percent(64, 0, 3), 0);
	cr_expect_eq(sk_share_percent(UINT32_MAX, 100, 1), UINT32_MAX);
}

Test(share, a_pool_that_is_too_large_counts_as_a_smaller_one)
{
	share_of(UINT32_MAX, 4, 10, 0);
	cr_expect_eq(s.size, SK_SHARE_SIZE_MAX);
	cr_expect_eq(sk_share_take(&s, 1, SK_SHARE_SIZE_MAX - 30), SK_SHARE_OK);
	cr_expect_eq(sk_share_take(&s, 1, UINT32_MAX - 10), SK_SHARE_MOST);
	cr_expect_eq(sk_share_take(&s, 1, 1), SK_SHARE_NONE);
	cr_expect_eq(sk_share_take(&s, 2, 10), SK_SHARE_OK);
	sk_share_fini(&s);
}
