/* SPDX-License-Identifier: BSD-3-Clause */
/* The pass over wide registers, which only some processors have. */
#ifndef SAKER_BASE_CRC32C_PRIV_H
#define SAKER_BASE_CRC32C_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CRC32C_FOLD_MIN 256u /* bytes: less does not fill the registers */

/* Whether this processor can; constant for a process. */
bool sk_crc32c_can_fold(void);

/* Copies and sums len / 64 * 64 bytes; len at least CRC32C_FOLD_MIN, and only if
 * sk_crc32c_can_fold().
 */
uint32_t sk_crc32c_fold_copy(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t len);

#endif
