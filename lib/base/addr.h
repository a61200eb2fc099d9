/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses. The type and its functions sk_addr_...() belong to libsaker's interface. */
#ifndef SAKER_BASE_ADDR_H
#define SAKER_BASE_ADDR_H

#include "../saker/addr.h"

/* Returns whether an address begins with the first `bits` bits, 0 to 128, of `prefix`. */
bool sk_in_prefix(const struct sk_addr *a, const struct sk_addr *prefix, unsigned bits);

#endif
