/* SPDX-License-Identifier: BSD-3-Clause */
/* Defines the table of names, severities and help lines behind enum rdma_reason. */
#include "rdma.h"

SK_REASONS_DEFINE(rdma, RDMA_NONE, RDMA_REASONS)
