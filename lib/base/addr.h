/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses. The type and its functions are part of libsaker's interface, and declared there. */
#ifndef SAKER_BASE_ADDR_H
#define SAKER_BASE_ADDR_H

#include "../saker/addr.h"

/* Returns whether an address begins with the first `bits` bits, 0 to 128, of `prefix`. */
bool sk_addr_within(const struct sk_addr *a, const struct sk_addr *prefix, unsigned bits);

#endif
