/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of tests. */
#ifndef TEST_ADDR_H
#define TEST_ADDR_H

#include "../../lib/base/addr.h"
#include "need.h"

/* Returns the address of a text, which must be one. */
static inline struct sk_addr
addr(const char *text)
{
	struct sk_addr a;

	need(sk_addr_parse(text, &a) == 0);
	return a;
}

#endif
