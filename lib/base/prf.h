/* SPDX-License-Identifier: BSD-3-Clause */
/* Keyed functions for values that an attacker must not guess: ISNs, STags, QPNs, hash seeds. */
#ifndef SAKER_BASE_PRF_H
#define SAKER_BASE_PRF_H

#include <stddef.h>
#include <stdint.h>

struct sk_key {
	uint64_t k[2];
};

/* Fills `buf` with `len` bytes of the kernel's random source; aborts the process when it fails. Not
 * for the data path: it is a system call. */
void sk_random(void *buf, size_t len);
/* Returns SipHash-2-4 (Aumasson, Bernstein) of `len` bytes at `data`. */
uint64_t sk_siphash(const struct sk_key *key, const void *data, size_t len);
/* Return a permutation of the 24-bit numbers under `key`, and its inverse (a four-round Feistel
 * network). */
uint32_t sk_perm24(const struct sk_key *key, uint32_t v);
uint32_t sk_perm24_inv(const struct sk_key *key, uint32_t v);

#endif
