/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface between mpa_rx.c (FPDUs) and mpa_gather.c (the slices that hold them). */
#ifndef SAKER_MPA_RX_PRIV_H
#define SAKER_MPA_RX_PRIV_H

#include "mpa_priv.h"

/* Advances by `len` held bytes from (head, off) and frees the slices that are used up. */
void mpa_rx_release(struct mpa_rx *r, uint32_t len);

#endif
