/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the reasons that wire.h lists. */
#include "wire.h"

SK_REASONS_DEFINE(wire, WIRE_NONE, WIRE_REASONS)
