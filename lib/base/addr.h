/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses. The type and its functions are part of libsaker's interface, and declared there. */
#ifndef SAKER_BASE_ADDR_H
#define SAKER_BASE_ADDR_H

#include "../saker/addr.h"

#endif
