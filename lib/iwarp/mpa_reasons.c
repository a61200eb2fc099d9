/* SPDX-License-Identifier: BSD-3-Clause */
/* Defines the table of names, severities and help lines behind enum mpa_reason. */
#include "mpa.h"

SK_REASONS_DEFINE(mpa, MPA_NONE, MPA_REASONS)
