/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of statuses, events and reasons. */
#include <criterion/criterion.h>

#include <stdint.h>
#include <string.h>

#include <saker/saker.h>

#include "../../../lib/iwarp/iwarp.h"
#include "../../../lib/rof/rof.h"

static const int statuses[] = {RD_SUCCESS, RD_LOC_LEN_ERR, RD_LOC_QP_OP_ERR, RD_LOC_PROT_ERR,
	RD_WR_FLUSH_ERR, RD_MW_BIND_ERR, RD_BAD_RESP_ERR, RD_LOC_ACCESS_ERR, RD_REM_INV_REQ_ERR,
	RD_REM_ACCESS_ERR, RD_REM_OP_ERR, RD_RETRY_EXC_ERR, RD_RNR_RETRY_EXC_ERR, RD_REM_ABORT_ERR,
	RD_FATAL_ERR, RD_RESP_TIMEOUT_ERR, RD_GENERAL_ERR};
#define NSTATUSES (sizeof(statuses) / sizeof(statuses[0]))

Test(client_names, each_status_has_a_text_of_its_own)
{
	for (size_t i = 0; i < NSTATUSES; i++) {
		cr_assert_str_neq(saker_status_str(statuses[i]), "unknown status");
		for (size_t k = 0; k < i; k++)
			cr_assert_str_neq(
				saker_status_str(statuses[i]), saker_status_str(statuses[k]));
	}
	cr_assert_str_eq(saker_status_str(RD_REM_ACCESS_ERR), "remote access error");
}

Test(client_names, other_numbers_are_unknown_statuses)
{
	static const int others[] = {-1, 3, 14, 22, 255, INT32_MAX, INT32_MIN};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		cr_assert_str_eq(saker_status_str(others[i]), "unknown status");
}

Test(client_names, each_event_has_a_name_of_its_own)
{
	for (int i = SAKER_EV_CONNECT_REQUEST; i <= SAKER_EV_ENGINE_GONE; i++) {
		cr_assert_str_neq(saker_event_str((enum saker_event_type)i), "unknown event");
		for (int k = 0; k < i; k++)
			cr_assert_str_neq(saker_event_str((enum saker_event_type)i),
				saker_event_str((enum saker_event_type)k));
	}
	cr_assert_str_eq(saker_event_str((enum saker_event_type)99), "unknown event");
}

Test(client_names, a_reason_is_named_by_its_transport)
{
	cr_assert_str_eq(saker_reason_str(SAKER_IWARP, IW_DDP_T_BOUNDS), "IW_DDP_T_BOUNDS");
	cr_assert_str_eq(saker_reason_str(SAKER_FALCON, ROF_REMOTE_ERROR), "ROF_REMOTE_ERROR");
	cr_assert_str_eq(saker_reason_str(SAKER_IWARP, 0), "none");
	cr_assert_str_eq(saker_reason_str(SAKER_FALCON, 0), "none");
	cr_assert_str_eq(saker_reason_str(SAKER_IWARP, iw_reason_count), "unknown");
	cr_assert_str_eq(saker_reason_str(SAKER_FALCON, rof_reason_count), "unknown");
}

/* Falcon's vendor_err describes the transaction in its higher bytes. */
Test(client_names, only_the_lowest_byte_of_falcons_number_is_the_reason)
{
	cr_assert_str_eq(
		saker_reason_str(SAKER_FALCON, ROF_VENDOR(3, ROF_NAK_QP) | ROF_REMOTE_ERROR),
		"ROF_REMOTE_ERROR");
	cr_assert_str_eq(saker_reason_str(SAKER_FALCON, ROF_VENDOR_PULL), "none");
}
