/* SPDX-License-Identifier: BSD-3-Clause */
/* The cipher of the floor: direct calls of libIPSec_MB, one for each packet. */
#ifndef SAKER_PERF_FLOOR_SEAL_H
#define SAKER_PERF_FLOOR_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a sealed packet that stay clear: PSP's header (16 bytes; the last 12 are the nonce), and
 * the first 4 bytes of Falcon's. */
#define PERF_SEAL_CLEAR 20u

struct perf_seal;

/* Creates the cipher `psp` (the index of --psp, from 1) with a fixed key. Returns NULL when
 * libIPSec_MB cannot be used. */
struct perf_seal *perf_seal_create(unsigned psp);
void perf_seal_destroy(struct perf_seal *s);
/* Seals `len` bytes of `text` to the place behind the clear bytes `clear`, and writes an ICV of 16
 * bytes behind them. Each call uses a new nonce. */
void perf_seal_packet(struct perf_seal *s, uint8_t *clear, const uint8_t *text, size_t len);
/* Opens a packet whose text has `len` bytes, to `text`. Returns whether the ICV is right. */
bool perf_seal_open(struct perf_seal *s, const uint8_t *clear, uint8_t *text, size_t len);

#endif
