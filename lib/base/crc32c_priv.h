/* SPDX-License-Identifier: BSD-3-Clause */
/* The pass over 512-bit registers, which only some processors have. */
#ifndef SAKER_BASE_CRC32C_PRIV_H
#define SAKER_BASE_CRC32C_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CRC32C_FOLD_MIN 256u /* bytes: fewer do not fill the registers */

/* Returns whether this processor has the instructions; the result is constant for a process. */
bool sk_crc32c_can_fold(void);

/* Copies `len` bytes, rounded down to a multiple of 64, and returns the running value after them.
 * The caller has checked sk_crc32c_can_fold(), and that `len` is at least CRC32C_FOLD_MIN. */
uint32_t sk_crc32c_fold_copy(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t len);

#endif
