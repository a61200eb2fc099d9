/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of reasons why MPA refuses something: read by telemetry, the prompt and the
 * documentation. */
#include "mpa.h"

SK_REASONS_DEFINE(mpa, MPA_NONE, MPA_REASONS)
