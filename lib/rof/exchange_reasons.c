/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of reasons why an exchange ends: read by telemetry, the prompt and the documentation.
 */
#include "exchange.h"

SK_REASONS_DEFINE(rofx, ROFX_NONE, ROFX_REASONS)
