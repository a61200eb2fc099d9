/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface between mpa_rx.c (FPDUs), mpa_gather.c (the slices that hold them) and mpa_store.c
 * (their limits). */
#ifndef SAKER_MPA_RX_PRIV_H
#define SAKER_MPA_RX_PRIV_H

#include "mpa_priv.h"

/* Advances by `len` held bytes from (head, off) and frees the slices that are used up. */
void mpa_rx_release(struct mpa_rx *r, uint32_t len);
/* Returns the stream bytes of the next FPDU, or 0 while its length has not arrived. */
uint32_t mpa_rx_expected(const struct mpa_rx *r);
/* Copies the held slices into buffers of this library and frees them. Returns false when there is
 * no memory (r->no_memory) or no share of it (r->starved): the slices stay. */
bool mpa_gather(struct mpa_rx *r);
/* Take and return bytes of the receiver's share. mpa_store_take() returns false, and sets
 * r->starved, when the share is used up. */
bool mpa_store_take(struct mpa_rx *r, uint32_t bytes);
void mpa_store_give(struct mpa_rx *r, uint32_t bytes);
/* Returns the shares of a receiver that holds nothing any more. */
void mpa_store_leave(struct mpa_rx *r);

#endif
