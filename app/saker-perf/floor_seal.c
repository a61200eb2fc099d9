/* SPDX-License-Identifier: BSD-3-Clause */
/* GCM takes the text from its memory to the frame in one call. GMAC copies it and then reads it. */
#include "floor_seal.h"

#include <intel-ipsec-mb.h>
#include <stdlib.h>
#include <string.h>

#include "floor_pass.h"

#define NONCE_AT  4u
#define NONCE_LEN 12u
#define ICV_LEN   16u

struct perf_seal {
	struct gcm_key_data key; /* aligned by its type */
	IMB_MGR *mgr;
	aes_gcm_enc_dec_t seal, open;
	aes_gmac_init_t mac_init;
	aes_gmac_update_t mac_update;
	aes_gmac_finalize_t mac_finalize;
	uint64_t packets;
	bool mac; /* GMAC */
};

static void
seal_choose(struct perf_seal *s, bool small)
{
	static const uint8_t key[IMB_KEY_256_BYTES] = "the floor has a fixed key";

	if (small) {
		IMB_AES128_GCM_PRE(s->mgr, key, &s->key);
		s->seal = s->mgr->gcm128_enc;
		s->open = s->mgr->gcm128_dec;
		s->mac_init = s->mgr->gmac128_init;
		s->mac_update = s->mgr->gmac128_update;
		s->mac_finalize = s->mgr->gmac128_finalize;
		return;
	}
	IMB_AES256_GCM_PRE(s->mgr, key, &s->key);
	s->seal = s->mgr->gcm256_enc;
	s->open = s->mgr->gcm256_dec;
	s->mac_init = s->mgr->gmac256_init;
	s->mac_update = s->mgr->gmac256_update;
	s->mac_finalize = s->mgr->gmac256_finalize;
}

struct perf_seal *
perf_seal_create(unsigned psp)
{
	size_t size = (sizeof(struct perf_seal) + 63) / 64 * 64;
	struct perf_seal *s = aligned_alloc(64, size);
	IMB_ARCH arch = IMB_ARCH_NONE;

	if (s == NULL)
		return NULL;
	memset(s, 0, size);
	s->mgr = alloc_mb_mgr(0);
	if (s->mgr != NULL)
		init_mb_mgr_auto(s->mgr, &arch);
	if (arch == IMB_ARCH_NONE) {
		perf_seal_destroy(s);
		return NULL;
	}
	s->mac = psp >= 3;
	seal_choose(s, psp % 2 == 1);
	return s;
}

void
perf_seal_destroy(struct perf_seal *s)
{
	if (s == NULL)
		return;
	if (s->mgr != NULL)
		free_mb_mgr(s->mgr);
	free(s);
}

static void
seal_mac(struct perf_seal *s, const uint8_t *clear, size_t len, uint8_t icv[ICV_LEN])
{
	struct gcm_context_data ctx;

	s->mac_init(&s->key, &ctx, clear + NONCE_AT, NONCE_LEN);
	s->mac_update(&s->key, &ctx, clear, PERF_SEAL_CLEAR + len);
	s->mac_finalize(&s->key, &ctx, icv, ICV_LEN);
}

void
perf_seal_packet(struct perf_seal *s, uint8_t *clear, const uint8_t *text, size_t len)
{
	uint8_t *to = clear + PERF_SEAL_CLEAR;
	struct gcm_context_data ctx;
	struct perf_sums none;

	s->packets++;
	memcpy(clear + NONCE_AT, &s->packets, sizeof(s->packets));
	if (s->mac) {
		perf_pass_copy(&none, to, text, len, 0);
		seal_mac(s, clear, len, to + len);
		return;
	}
	s->seal(&s->key, &ctx, to, text, len, clear + NONCE_AT, clear, PERF_SEAL_CLEAR, to + len,
		ICV_LEN);
}

bool
perf_seal_open(struct perf_seal *s, const uint8_t *clear, uint8_t *text, size_t len)
{
	const uint8_t *from = clear + PERF_SEAL_CLEAR;
	struct gcm_context_data ctx;
	struct perf_sums none;
	uint8_t icv[ICV_LEN];

	if (s->mac) {
		seal_mac(s, clear, len, icv);
		perf_pass_copy(&none, text, from, len, 0);
	} else {
		s->open(&s->key, &ctx, text, from, len, clear + NONCE_AT, clear, PERF_SEAL_CLEAR,
			icv, ICV_LEN);
	}
	return memcmp(icv, from + len, ICV_LEN) == 0;
}
