/* SPDX-License-Identifier: BSD-3-Clause */
/* The transaction sublayer's part of a connection and of a stack (section 8). */
#ifndef SAKER_TL_PRIV_H
#define SAKER_TL_PRIV_H

#include "falcon_priv.h"

struct tl_conn {
	uint32_t next_rsn; /* the one that the ULP's next request gets */
};

struct tl_stack {
	uint32_t waiting; /* connections with deliveries that the ULP's way could not take */
};

#endif
