/* SPDX-License-Identifier: BSD-3-Clause */
/* The table behind the list in wire.h. */
#include "wire.h"

SK_REASONS_DEFINE(wire, WIRE_NONE, WIRE_REASONS)
