/* SPDX-License-Identifier: BSD-3-Clause */
/* Defines the table of names, severities and help lines behind enum iw_reason. */
#include "iwarp.h"

SK_REASONS_DEFINE(iw, IW_NONE, IW_REASONS)

_Static_assert(iw_reason_count <= 64, "struct iw_stage has 64 counters");
