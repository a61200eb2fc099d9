/* SPDX-License-Identifier: BSD-3-Clause */
/* The reasons why an exchange ends, for telemetry, the prompt and the documentation. */
#include "exchange.h"

SK_REASONS_DEFINE(rofx, ROFX_NONE, ROFX_REASONS)
