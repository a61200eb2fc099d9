/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures the cost to seal and open a packet, in all versions, and compares it with direct calls
 * of libIPSec_MB. The packet is a Falcon write: PSP header, 4 bytes in clear, then the text. It is
 * sealed in place one by one; 32 at once, after all their headers were written (to read a header
 * while its write is still on its way to the cache costs more than the rest of the call); from two
 * other pieces (headers here, payload there); and opened in place. The program prints figures and
 * makes no verdict. Each figure is the best of several turns, since the machine may be busy.
 */
#include <intel-ipsec-mb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/base/mem.h"
#include "../../lib/falcon/psp.h"
#include "../support/clock.h"

#define TURNS   9
#define HEADERS 52 /* of a first write segment after the clear part: Falcon 24, RBTH, RETH */
#define MAX_LEN 9000
#define BURST   32

static struct psp_crypto *crypto;
static struct psp_sa *sa;
static IMB_MGR *mgr;
static struct gcm_key_data key;
static uint8_t packet[MAX_LEN], elsewhere[MAX_LEN];
static struct wire_psp hdr = {.next = PSP_NEXT_FALCON, .crypt_offset = 1, .spi = 1};
static struct psp_iv ivs;
static uint32_t text; /* number of encrypted bytes */

static void
bare(void)
{
	struct gcm_context_data ctx;
	uint8_t *at = packet + PSP_LEN + FALCON_CLEAR_LEN;
	aes_gcm_enc_dec_t f = hdr.version == PSP_AES_GCM_128 ? mgr->gcm128_enc : mgr->gcm256_enc;

	f(&key, &ctx, at, at, text, packet + 4, packet, PSP_LEN + FALCON_CLEAR_LEN, at + text, 16);
}

static void
seal_in_place(void)
{
	struct psp_part part;
	struct psp_pkt pkt;

	psp_iv_next(&ivs, 1, &hdr.iv);
	wire_psp_emit(packet, &hdr);
	psp_pkt_in_place(&pkt, &part, sa, packet,
		PSP_LEN + FALCON_CLEAR_LEN + text + wire_psp_icv_len(hdr.version), &hdr);
	psp_seal(crypto, &pkt, 1);
}

static void
seal_burst(void)
{
	static uint8_t packets[BURST][MAX_LEN];
	static struct psp_part parts[BURST];
	static struct psp_pkt pkts[BURST];
	static unsigned n;

	psp_iv_next(&ivs, 1, &hdr.iv);
	wire_psp_emit(packets[n], &hdr);
	psp_pkt_in_place(pkts + n, parts + n, sa, packets[n],
		PSP_LEN + FALCON_CLEAR_LEN + text + wire_psp_icv_len(hdr.version), &hdr);
	if (++n == BURST) {
		psp_seal(crypto, pkts, BURST);
		n = 0;
	}
}

static void
seal_from_elsewhere(void)
{
	uint8_t *at = packet + PSP_LEN + FALCON_CLEAR_LEN;
	struct psp_part parts[2] = {{at, at, HEADERS}, {elsewhere, at + HEADERS, text - HEADERS}};
	struct psp_pkt pkt = {sa, packet, PSP_LEN + FALCON_CLEAR_LEN, parts, 2, at + text, false};

	psp_iv_next(&ivs, 1, &hdr.iv);
	wire_psp_emit(packet, &hdr);
	psp_seal(crypto, &pkt, 1);
}

static void
open_in_place(void)
{
	struct psp_part part;
	struct psp_pkt pkt;

	psp_pkt_in_place(&pkt, &part, sa, packet,
		PSP_LEN + FALCON_CLEAR_LEN + text + wire_psp_icv_len(hdr.version), &hdr);
	psp_open(crypto, &pkt, 1);
}

static double
measure(void (*f)(void), unsigned rounds)
{
	uint64_t best = UINT64_MAX;

	for (unsigned turn = 0; turn < TURNS; turn++) {
		uint64_t start = now_ns(), took;

		for (unsigned i = 0; i < rounds; i++)
			f();
		took = now_ns() - start;
		best = SK_MIN(best, took);
	}
	return (double)best / rounds;
}

static void
row(uint8_t version, const char *name, uint32_t payload, unsigned rounds)
{
	static const uint8_t secret[PSP_KEY_MAX] = {1, 2, 3};
	bool gcm = version <= PSP_AES_GCM_256;

	hdr.version = version;
	text = HEADERS + payload;
	sa = psp_sa_create(crypto, version, hdr.spi, secret);
	if (sa == NULL)
		exit(1);
	if (version == PSP_AES_GCM_128)
		IMB_AES128_GCM_PRE(mgr, secret, &key);
	else
		IMB_AES256_GCM_PRE(mgr, secret, &key);
	rounds -= rounds % BURST;
	printf("%-12s %8u %8.1f %8.1f %8.1f %8.1f %8.1f\n", name, payload,
		gcm ? measure(bare, rounds) : 0, measure(seal_in_place, rounds),
		measure(seal_burst, rounds), measure(seal_from_elsewhere, rounds),
		measure(open_in_place, rounds));
	psp_sa_destroy(sa);
}

/* bench_psp [ROUNDS]; under callgrind a few rounds suffice. */
int
main(int argc, char **argv)
{
	static const struct {
		uint8_t version;
		const char *name;
	} kinds[] = {{PSP_AES_GCM_128, "AES-GCM-128"}, {PSP_AES_GCM_256, "AES-GCM-256"},
		{PSP_GMAC_128, "GMAC-128"}, {PSP_GMAC_256, "GMAC-256"}, {PSP_NO_CRYPTO, "none"}};
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 20000;

	crypto = psp_crypto_create();
	mgr = alloc_mb_mgr(0);
	if (crypto == NULL || mgr == NULL || rounds < BURST)
		return 1;
	init_mb_mgr_auto(mgr, NULL);
	printf("ns a packet   payload     bare     seal    burst   gather     open\n");
	for (unsigned i = 0; i < SK_ARRAY_LEN(kinds); i++) {
		row(kinds[i].version, kinds[i].name, 64, rounds);
		row(kinds[i].version, kinds[i].name, 8192, rounds);
	}
	free_mb_mgr(mgr);
	psp_crypto_destroy(crypto);
	return 0;
}
