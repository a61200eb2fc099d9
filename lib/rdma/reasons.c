/* SPDX-License-Identifier: BSD-3-Clause */
/* The table behind enum rdma_reason. */
#include "rdma.h"

SK_REASONS_DEFINE(rdma, RDMA_NONE, RDMA_REASONS)
