/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of what a program finds in completions and events. */
#include "../base/mem.h"
#include "../iwarp/iwarp.h"
#include "../rof/rof.h"
#include "client_priv.h"

const char *
saker_status_str(int status)
{
	static const char *const names[] = {
		[RD_SUCCESS] = "success",
		[RD_LOC_LEN_ERR] = "local length error",
		[RD_LOC_QP_OP_ERR] = "local QP operation error",
		[RD_LOC_PROT_ERR] = "local protection error",
		[RD_WR_FLUSH_ERR] = "work request flushed",
		[RD_MW_BIND_ERR] = "memory window bind error",
		[RD_BAD_RESP_ERR] = "bad response",
		[RD_LOC_ACCESS_ERR] = "local access error",
		[RD_REM_INV_REQ_ERR] = "remote invalid request",
		[RD_REM_ACCESS_ERR] = "remote access error",
		[RD_REM_OP_ERR] = "remote operation error",
		[RD_RETRY_EXC_ERR] = "retries exceeded",
		[RD_RNR_RETRY_EXC_ERR] = "receiver-not-ready retries exceeded",
		[RD_REM_ABORT_ERR] = "remote abort",
		[RD_FATAL_ERR] = "fatal error",
		[RD_RESP_TIMEOUT_ERR] = "response timeout",
		[RD_GENERAL_ERR] = "general error",
	};

	if (status < 0 || status >= (int)SK_ARRAY_LEN(names) || names[status] == NULL)
		return "unknown status";
	return names[status];
}

const char *
saker_event_str(enum saker_event_type type)
{
	static const char *const names[] = {
		[SAKER_EV_CONNECT_REQUEST] = "connect request",
		[SAKER_EV_ESTABLISHED] = "established",
		[SAKER_EV_REJECTED] = "rejected",
		[SAKER_EV_UNREACHABLE] = "unreachable",
		[SAKER_EV_DISCONNECTED] = "disconnected",
		[SAKER_EV_QP_FATAL] = "QP fatal",
		[SAKER_EV_CQ_OVERFLOW] = "CQ overflow",
		[SAKER_EV_SRQ_LIMIT] = "SRQ limit",
		[SAKER_EV_ENGINE_GONE] = "engine gone",
	};

	return (unsigned)type < SK_ARRAY_LEN(names) ? names[type] : "unknown event";
}

const char *
saker_reason_str(enum saker_transport transport, uint32_t code)
{
	const struct sk_reason_list *list = transport == SAKER_FALCON ? &rof_reasons : &iw_reasons;
	uint32_t reason = transport == SAKER_FALCON ? ROF_VENDOR_REASON(code) : code;

	if (reason == 0)
		return "none";
	return reason < list->count ? list->reasons[reason].name : "unknown";
}
