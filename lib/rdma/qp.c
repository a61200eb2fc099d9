/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of the QP states, which all transports share. */
#include "rdma.h"

#include "../base/mem.h"

const char *
rd_qp_state_name(enum rd_qp_state s)
{
	static const char *const names[] = {
		[RD_QP_RESET] = "reset",
		[RD_QP_INIT] = "init",
		[RD_QP_RTR] = "rtr",
		[RD_QP_RTS] = "rts",
		[RD_QP_SQD] = "sqd",
		[RD_QP_SQE] = "sqe",
		[RD_QP_ERR] = "err",
	};

	return (unsigned)s < SK_ARRAY_LEN(names) ? names[s] : "unknown";
}
