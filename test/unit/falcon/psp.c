/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PSP's cryptography. Keys are compared with those that Google's reference implementation derives
 * from the device keys in its configuration files; packets are compared with OpenSSL's, in all
 * versions.
 */
#include <criterion/criterion.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/falcon/psp.h"
#include "../../support/upper.h"

#define MAX_LEN 9000

static const uint8_t versions[] = {PSP_AES_GCM_128, PSP_AES_GCM_256, PSP_GMAC_128, PSP_GMAC_256};

static const uint8_t device_keys[2][PSP_DEVICE_KEY_LEN] = {
	{0x34, 0x44, 0x8a, 0x06, 0x42, 0x92, 0x60, 0x1b, 0x11, 0xa0, 0x97, 0x8f, 0x56, 0xa2, 0xd3,
		0x4c, 0xf3, 0xfc, 0x35, 0xed, 0xe1, 0xa6, 0xbc, 0x04, 0xf8, 0xdb, 0x3e, 0x52, 0x43,
		0xa2, 0xb0, 0xca},
	{0x56, 0x39, 0x52, 0x56, 0x5d, 0x3a, 0x78, 0xae, 0x77, 0x3e, 0xc1, 0xb7, 0x79, 0xf2, 0xf2,
		0xd9, 0x9f, 0x4a, 0x7f, 0x53, 0xa6, 0xfb, 0xb9, 0xb0, 0x7d, 0x5b, 0x71, 0xf3, 0x93,
		0x64, 0xd7, 0x39},
};

static struct psp_crypto *crypto;
static unsigned seed = 1;

static void
setup(void)
{
	crypto = psp_crypto_create();
	cr_assert_not_null(crypto);
}

static void
teardown(void)
{
	psp_crypto_destroy(crypto);
}

TestSuite(psp, .init = setup, .fini = teardown);

static void
fill(uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(rand_r(&seed) >> 7);
}

Test(psp, key_derivation_gives_the_keys_of_the_reference)
{
	static const uint8_t small[16] = {0x96, 0xc2, 0x2d, 0xc7, 0x99, 0x19, 0x80, 0x90, 0xb7,
		0x4b, 0x70, 0xae, 0x46, 0x8e, 0x4e, 0x30};
	static const uint8_t second[16] = {0x39, 0x46, 0xda, 0x25, 0x54, 0xea, 0xe4, 0x6a, 0xd1,
		0xef, 0x77, 0xa6, 0x43, 0x72, 0xed, 0xc4};
	static const uint8_t large[32] = {0x2b, 0x7d, 0x72, 0x07, 0x4e, 0x42, 0xca, 0x33, 0x44,
		0x87, 0xf2, 0x99, 0x0e, 0x3f, 0x8c, 0x40, 0x37, 0xe4, 0x36, 0xf3, 0x82, 0x83, 0x44,
		0x9b, 0x76, 0x46, 0x3e, 0x9b, 0x7f, 0xb2, 0xe3, 0xde};
	uint8_t key[PSP_KEY_MAX + 1];

	memset(key, 0xa5, sizeof(key));
	psp_derive_key(crypto, key, device_keys[0], 0x12345678, PSP_AES_GCM_128);
	cr_assert_arr_eq(key, small, 16);
	cr_assert_eq(key[16], 0xa5);
	psp_derive_key(crypto, key, device_keys[1], 0x9a345678, PSP_AES_GCM_128);
	cr_assert_arr_eq(key, second, 16);
	psp_derive_key(crypto, key, device_keys[0], 0x12345678, PSP_AES_GCM_256);
	cr_assert_arr_eq(key, large, 32);
	cr_assert_eq(key[32], 0xa5);
	psp_derive_key(crypto, key, device_keys[0], 0x12345678, PSP_GMAC_128);
	cr_assert_arr_eq(key, small, 16);
	psp_derive_key(crypto, key, device_keys[0], 0x12345678, PSP_GMAC_256);
	cr_assert_arr_eq(key, large, 32);
}

Test(psp, key_lengths_by_version)
{
	cr_assert_eq(psp_key_len(PSP_AES_GCM_128), 16);
	cr_assert_eq(psp_key_len(PSP_AES_GCM_256), 32);
	cr_assert_eq(psp_key_len(PSP_GMAC_128), 16);
	cr_assert_eq(psp_key_len(PSP_GMAC_256), 32);
	cr_assert_eq(psp_key_len(PSP_NO_CRYPTO), 0);
	cr_assert_null(psp_sa_create(crypto, 4, 1, device_keys[0]));
}

/* A datagram from the PSP header to the end of the ICV, and its inputs. */
struct sample {
	uint8_t key[PSP_KEY_MAX];
	struct wire_psp h;
	struct psp_sa *sa;
	uint32_t hdr_len, text_len, len;
	uint8_t plain[MAX_LEN + 512]; /* without the ICV */
	uint8_t sealed[MAX_LEN + 512];
};

static struct sample *
sample(uint8_t version, uint8_t crypt_offset, bool vc, uint32_t text_len)
{
	struct sample *s = calloc(1, sizeof(*s));

	cr_assert_not_null(s);
	fill(s->key, sizeof(s->key));
	fill(s->plain, sizeof(s->plain));
	fill((uint8_t *)&s->h.iv, 8);
	fill((uint8_t *)&s->h.spi, 4);
	s->h.next = PSP_NEXT_FALCON;
	s->h.crypt_offset = crypt_offset;
	s->h.version = version;
	s->h.has_vc = vc;
	s->h.vc = 0x1122334455667788;
	s->sa = psp_sa_create(crypto, version, s->h.spi, s->key);
	cr_assert_not_null(s->sa);
	cr_assert_eq(psp_sa_spi(s->sa), s->h.spi);
	cr_assert_eq(psp_sa_version(s->sa), version);
	wire_psp_emit(s->plain, &s->h);
	s->hdr_len = PSP_LEN + crypt_offset * 4u;
	s->text_len = text_len;
	s->len = s->hdr_len + text_len + wire_psp_icv_len(version);
	memcpy(s->sealed, s->plain, s->len);
	return s;
}

static void
sample_free(struct sample *s)
{
	psp_sa_destroy(s->sa);
	free(s);
}

static bool
open_in_place(const struct sample *s, uint8_t *datagram)
{
	struct psp_part part;
	struct psp_pkt pkt;
	unsigned good;

	psp_pkt_in_place(&pkt, &part, s->sa, datagram, s->len, &s->h);
	good = psp_open(crypto, &pkt, 1);
	cr_assert_eq(good, pkt.ok);
	return pkt.ok;
}

static void
seal_in_place(struct sample *s)
{
	struct psp_part part;
	struct psp_pkt pkt;

	psp_pkt_in_place(&pkt, &part, s->sa, s->sealed, s->len, &s->h);
	psp_seal(crypto, &pkt, 1);
}

/* Seals the same packet with OpenSSL. */
static void
oracle(const struct sample *s, uint8_t *out)
{
	bool gmac = s->h.version >= PSP_GMAC_128;
	uint32_t aad = gmac ? s->hdr_len + s->text_len : s->hdr_len;
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int n, last;

	memcpy(out, s->plain, s->hdr_len + s->text_len);
	cr_assert(EVP_EncryptInit_ex(ctx,
		psp_key_len(s->h.version) == 16 ? EVP_aes_128_gcm() : EVP_aes_256_gcm(), NULL,
		s->key, s->plain + 4));
	cr_assert(EVP_EncryptUpdate(ctx, NULL, &n, s->plain, (int)aad));
	if (!gmac) {
		cr_assert(EVP_EncryptUpdate(
			ctx, out + s->hdr_len, &n, s->plain + s->hdr_len, (int)s->text_len));
		cr_assert_eq(n, (int)s->text_len);
	}
	cr_assert(EVP_EncryptFinal_ex(ctx, out, &last));
	cr_assert(
		EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_GET_TAG, 16, out + s->hdr_len + s->text_len));
	EVP_CIPHER_CTX_free(ctx);
}

/* Checks that a packet is sealed as by OpenSSL, and opens to its first bytes. */
static void
against_oracle(uint8_t version, uint8_t offset, bool vc, uint32_t len)
{
	struct sample *s = sample(version, offset, vc, len);
	uint8_t *want = malloc(s->len + 1);

	oracle(s, want);
	seal_in_place(s);
	cr_assert_arr_eq(s->sealed, want, s->len, "version %u, %u bytes", version, len);
	cr_assert(open_in_place(s, s->sealed));
	cr_assert_arr_eq(s->sealed, s->plain, s->hdr_len + s->text_len);
	free(want);
	sample_free(s);
}

Test(psp, packets_are_those_of_openssl)
{
	static const uint32_t lengths[] = {0, 1, 15, 16, 17, 40, 64, 255, 256, 1024, 4124, 8220};

	for (unsigned v = 0; v < SK_ARRAY_LEN(versions); v++) {
		for (unsigned i = 0; i < SK_ARRAY_LEN(lengths); i++) {
			against_oracle(versions[v], 1, false, lengths[i]);
			against_oracle(versions[v], 3, true, lengths[i]);
		}
		for (unsigned i = 0; i < 100; i++)
			against_oracle(versions[v], (uint8_t)(rand_r(&seed) % 64), false,
				(uint32_t)rand_r(&seed) % 2000);
	}
}

Test(psp, sealing_and_opening_leave_no_upper_halves_in_use)
{
	static const uint32_t lengths[] = {1, 40, 255, 1024, 8220};

	if (!upper_is_reported())
		cr_skip_test("the processor does not report upper halves in use");
	for (unsigned i = 0; i < SK_ARRAY_LEN(versions) * SK_ARRAY_LEN(lengths); i++) {
		uint8_t version = versions[i % SK_ARRAY_LEN(versions)];
		uint32_t len = lengths[i / SK_ARRAY_LEN(versions)];
		struct sample *s = sample(version, 1, false, len);

		upper_clear();
		seal_in_place(s);
		cr_assert_not(upper_in_use(), "sealed, version %u, %u bytes", version, len);
		cr_assert(open_in_place(s, s->sealed));
		cr_assert_not(upper_in_use(), "opened, version %u, %u bytes", version, len);
		sample_free(s);
	}
}

Test(psp, pieces_make_the_same_packet_as_one)
{
	for (unsigned round = 0; round < 800; round++) {
		/* Both kinds: those that psp.c moves into one piece, and longer ones. */
		uint32_t len = (uint32_t)rand_r(&seed) % (round & 4 ? 600 : 3000);
		struct sample *s = sample(versions[round % 4], 1, false, len);
		uint8_t *want = malloc(s->len + 1), out[MAX_LEN];
		struct psp_part parts[6];
		uint32_t n = 0, at = 0;
		struct psp_pkt pkt;

		/* some pieces in place, some from elsewhere, some empty */
		while (n < 5) {
			uint32_t piece =
				n == 4 ? len - at : (uint32_t)rand_r(&seed) % (len - at + 1);

			parts[n] = (struct psp_part){s->plain + s->hdr_len + at, out + at, piece};
			if (n % 2) {
				memcpy(out + at, parts[n].src, piece);
				parts[n].src = out + at;
			}
			at += piece;
			n++;
		}
		oracle(s, want);
		pkt = (struct psp_pkt){
			s->sa, s->plain, s->hdr_len, parts, n, s->sealed + s->hdr_len + len, false};
		psp_seal(crypto, &pkt, 1);
		cr_assert_arr_eq(out, want + s->hdr_len, len);
		cr_assert_arr_eq(pkt.icv, want + s->hdr_len + len, PSP_ICV_LEN);
		for (uint32_t i = 0; i < n; i++)
			parts[i].src = parts[i].dst;
		cr_assert_eq(psp_open(crypto, &pkt, 1), 1);
		cr_assert_arr_eq(out, s->plain + s->hdr_len, len);
		free(want);
		sample_free(s);
	}
}

Test(psp, pieces_may_go_to_places_that_are_not_adjacent)
{
	for (unsigned v = 0; v < SK_ARRAY_LEN(versions); v++) {
		struct sample *s = sample(versions[v], 1, false, 100);
		uint8_t want[200], first[40], second[60];
		struct psp_part parts[2] = {{s->plain + s->hdr_len, first, 40},
			{s->plain + s->hdr_len + 40, second, 60}};
		struct psp_pkt pkt = {
			s->sa, s->plain, s->hdr_len, parts, 2, s->sealed + s->hdr_len + 100, false};

		oracle(s, want);
		psp_seal(crypto, &pkt, 1);
		cr_assert_arr_eq(first, want + s->hdr_len, 40);
		cr_assert_arr_eq(second, want + s->hdr_len + 40, 60);
		cr_assert_arr_eq(pkt.icv, want + s->hdr_len + 100, PSP_ICV_LEN);
		sample_free(s);
	}
}

Test(psp, source_stays_as_it_is_when_sealed_elsewhere)
{
	for (unsigned v = 0; v < SK_ARRAY_LEN(versions); v++) {
		struct sample *s = sample(versions[v], 1, false, 1000);
		uint8_t want[2000], out[1000], before[2000];
		struct psp_part part = {s->plain + s->hdr_len, out, 1000};
		struct psp_pkt pkt = {s->sa, s->plain, s->hdr_len, &part, 1, s->sealed, false};

		oracle(s, want);
		memcpy(before, s->plain, sizeof(before));
		psp_seal(crypto, &pkt, 1);
		cr_assert_arr_eq(out, want + s->hdr_len, 1000);
		cr_assert_arr_eq(s->plain, before, sizeof(before));
		sample_free(s);
	}
}

Test(psp, each_flipped_bit_is_found_falcon_9_2_2_1)
{
	for (unsigned v = 0; v < SK_ARRAY_LEN(versions); v++) {
		struct sample *s = sample(versions[v], 3, true, 70);
		uint8_t copy[256];

		seal_in_place(s);
		for (uint32_t bit = 0; bit < s->len * 8; bit++) {
			memcpy(copy, s->sealed, s->len);
			copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
			cr_assert_not(
				open_in_place(s, copy), "version %u bit %u", versions[v], bit);
		}
		memcpy(copy, s->sealed, s->len);
		cr_assert(open_in_place(s, copy));
		sample_free(s);
	}
}

Test(psp, another_key_does_not_open)
{
	struct sample *s = sample(PSP_AES_GCM_256, 1, false, 100);
	struct psp_sa *right = s->sa;

	seal_in_place(s);
	s->key[31] ^= 1;
	s->sa = psp_sa_create(crypto, PSP_AES_GCM_256, s->h.spi, s->key);
	cr_assert_not(open_in_place(s, s->sealed));
	psp_sa_destroy(right);
	sample_free(s);
}

#define BURST 16

Test(psp, a_burst_is_each_of_its_packets)
{
	struct sample *s[BURST];
	struct psp_part parts[BURST];
	struct psp_pkt pkts[BURST];

	for (unsigned i = 0; i < BURST; i++) {
		s[i] = sample(versions[i % 4], 1, false, i * 50);
		psp_pkt_in_place(pkts + i, parts + i, s[i]->sa, s[i]->sealed, s[i]->len, &s[i]->h);
	}
	psp_seal(crypto, pkts, BURST);
	s[3]->sealed[s[3]->len - 1] ^= 0x40;
	s[8]->sealed[0] ^= 0x01;
	cr_assert_eq(psp_open(crypto, pkts, BURST), BURST - 2);
	for (unsigned i = 0; i < BURST; i++) {
		cr_assert_eq(pkts[i].ok, i != 3 && i != 8, "packet %u", i);
		if (pkts[i].ok)
			cr_assert_arr_eq(s[i]->sealed, s[i]->plain, s[i]->hdr_len + s[i]->text_len);
		sample_free(s[i]);
	}
}

Test(psp, without_crypto_parts_are_copied_and_no_icv_is_written)
{
	struct sample *s = sample(PSP_NO_CRYPTO, 1, false, 100);
	uint8_t out[101] = {0}, icv[PSP_ICV_LEN] = {0}, none[PSP_ICV_LEN] = {0};
	struct psp_part parts[2] = {
		{s->plain + s->hdr_len, out, 60}, {s->plain + s->hdr_len + 60, out + 60, 40}};
	struct psp_pkt pkt = {s->sa, s->plain, s->hdr_len, parts, 2, icv, false};

	psp_seal(crypto, &pkt, 1);
	cr_assert_arr_eq(out, s->plain + s->hdr_len, 100);
	cr_assert_arr_eq(icv, none, PSP_ICV_LEN);
	cr_assert_eq(out[100], 0);
	cr_assert_eq(psp_open(crypto, &pkt, 1), 1);
	cr_assert(pkt.ok);
	sample_free(s);
}

Test(psp, an_association_takes_its_own_spi_and_version_only)
{
	struct sample *s = sample(PSP_AES_GCM_128, 1, false, 10);

	cr_assert_eq(psp_sa_check(s->sa, &s->h), 0);
	s->h.version = PSP_NO_CRYPTO;
	cr_assert_eq(psp_sa_check(s->sa, &s->h), -PSP_WRONG_VERSION);
	s->h.version = PSP_GMAC_128;
	cr_assert_eq(psp_sa_check(s->sa, &s->h), -PSP_WRONG_VERSION);
	s->h.version = PSP_AES_GCM_128;
	s->h.spi ^= PSP_SPI_PHASE;
	cr_assert_eq(psp_sa_check(s->sa, &s->h), -PSP_WRONG_SPI);
	sample_free(s);
}

/* ---- The processor ---- */

Test(psp, the_ciphers_are_those_of_the_kind_of_processor)
{
	for (int k = SK_VECTORS_NONE; k < SK_VECTORS_KINDS; k++) {
		enum sk_vectors kind = SK_MIN((enum sk_vectors)k, sk_vectors_best());
		struct psp_crypto *c;

		sk_vectors_set(kind);
		c = psp_crypto_create();
		cr_assert_not_null(c);
		if (kind < sk_vectors_best())
			cr_assert_eq(psp_crypto_vectors(c), kind, "%s", sk_vectors_name(kind));
		else
			cr_assert_geq(psp_crypto_vectors(c), kind);
		psp_crypto_destroy(c);
	}
	sk_vectors_set(SK_VECTORS_UNKNOWN);
	if (sk_vectors() < sk_vectors_best())
		cr_assert_eq(psp_crypto_vectors(crypto), sk_vectors(), "SAKER_VECTORS");
}
