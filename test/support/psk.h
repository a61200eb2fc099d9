/* SPDX-License-Identifier: BSD-3-Clause */
/* Pre-shared keys of Falcon's exchange. */
#ifndef TEST_PSK_H
#define TEST_PSK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../../lib/rof/exchange.h"

/* Gives *t the pre-shared key of 32 bytes `fill`, and creates it if it is NULL. Returns false when
 * OpenSSL cannot use the key. */
static inline bool
psk_load(struct rofx_tls **t, uint8_t fill)
{
	uint8_t key[32];
	const struct rofx_tls_config cfg = {.psk = key, .psk_len = sizeof(key)};
	char err[128];

	memset(key, fill, sizeof(key));
	if (*t != NULL)
		return rofx_tls_load(*t, &cfg, err, sizeof(err)) == 0;
	*t = rofx_tls_create(&cfg, err, sizeof(err));
	return *t != NULL;
}

#endif
