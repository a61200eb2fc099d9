/* SPDX-License-Identifier: BSD-3-Clause */
#include "falcon.h"

SK_REASONS_DEFINE(fa, FA_NONE, FA_REASONS)
