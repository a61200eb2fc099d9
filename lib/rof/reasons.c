/* SPDX-License-Identifier: BSD-3-Clause */
#include "rof.h"

SK_REASONS_DEFINE(rof, ROF_NONE, ROF_REASONS)
