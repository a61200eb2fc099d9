/* SPDX-License-Identifier: BSD-3-Clause */
/* The flags that both sides access: one doorbell per burst, one event per arm. */
#include <criterion/criterion.h>

#include "../../../lib/shm/shm_ring.h"

Test(shm_flags, a_queue_rings_once_until_the_engine_looks)
{
	uint32_t pending = 0;

	cr_assert(shm_pend(&pending));
	cr_assert_not(shm_pend(&pending));
	cr_assert_not(shm_pend(&pending));
	shm_pend_clear(&pending);
	cr_assert(shm_pend(&pending));
}

Test(shm_flags, an_unarmed_queue_raises_no_event)
{
	uint32_t arm = SHM_ARM_NONE;

	cr_assert_not(shm_arm_fire(&arm, false));
	cr_assert_not(shm_arm_fire(&arm, true));
}

Test(shm_flags, an_arm_gives_one_event)
{
	uint32_t arm = SHM_ARM_NONE;

	shm_arm(&arm, false);
	cr_assert(shm_arm_fire(&arm, false));
	cr_assert_not(shm_arm_fire(&arm, true));
	cr_assert_eq(arm, SHM_ARM_NONE);
}

Test(shm_flags, a_solicited_arm_waits_for_a_solicited_completion)
{
	uint32_t arm = SHM_ARM_NONE;

	shm_arm(&arm, true);
	cr_assert_not(shm_arm_fire(&arm, false));
	cr_assert_eq(arm, SHM_ARM_SOLICITED);
	cr_assert(shm_arm_fire(&arm, true));
	cr_assert_eq(arm, SHM_ARM_NONE);
}

Test(shm_flags, the_stronger_of_two_arms_stays)
{
	uint32_t arm = SHM_ARM_NONE;

	shm_arm(&arm, false);
	shm_arm(&arm, true);
	cr_assert(shm_arm_fire(&arm, false), "armed for any, then for solicited: any");
	shm_arm(&arm, true);
	shm_arm(&arm, false);
	cr_assert(shm_arm_fire(&arm, false), "armed for solicited, then for any: any");
}

Test(shm_flags, an_arm_that_makes_no_sense_raises_no_event)
{
	uint32_t arm = 77;

	cr_assert_not(shm_arm_fire(&arm, true));
	cr_assert_eq(arm, 77);
}
