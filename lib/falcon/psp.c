/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PSP's cryptography, by libIPSec_MB. GCM needs no batching there: one packet fills the processor's
 * pipelines, so a burst is a loop. A contiguous packet takes the library's single call; a packet in
 * several pieces (an mbuf chain, or headers apart from the payload) takes one call for each piece,
 * and two more. A short packet whose pieces are to be adjacent is moved there first, since to copy
 * it costs less than these calls.
 */
#include "psp.h"

#include <intel-ipsec-mb.h>
#include <stdlib.h>
#include <string.h>

#include "../base/be.h"
#include "../base/secret.h"
#include "../base/vectors.h"

#define NONCE_LEN 12
#define SHORT_MAX 512 /* bytes of text that are moved for a single call */

struct psp_crypto {
	IMB_MGR *mgr;
	void *mem; /* the memory of mgr, which keeps copies of keys */
};

struct psp_sa {
	struct gcm_key_data *key; /* in secret memory; NULL with PSP_NO_CRYPTO */
	uint32_t spi;
	uint8_t version;
};
_Static_assert(_Alignof(struct gcm_key_data) <= SK_SECRET_ALIGN, "alignment of a key");

/* Chooses the code for this processor, or for the lesser one that the process is bound to. */
static void
mgr_init(IMB_MGR *mgr)
{
	IMB_ARCH arch;

	if (sk_vectors() == sk_vectors_best())
		init_mb_mgr_auto(mgr, &arch);
	else if (sk_vectors() == SK_VECTORS_AVX2)
		init_mb_mgr_avx2(mgr);
	else
		init_mb_mgr_sse(mgr);
}

struct psp_crypto *
psp_crypto_create(void)
{
	struct psp_crypto *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->mem = sk_secret_alloc(imb_get_mb_mgr_size());
	if (c->mem != NULL)
		c->mgr = imb_set_pointers_mb_mgr(c->mem, 0, 1);
	if (c->mgr == NULL) {
		psp_crypto_destroy(c);
		return NULL;
	}
	mgr_init(c->mgr);
	if (c->mgr->used_arch == IMB_ARCH_NONE) {
		psp_crypto_destroy(c);
		return NULL;
	}
	return c;
}

enum sk_vectors
psp_crypto_vectors(const struct psp_crypto *c)
{
	if (c->mgr->used_arch >= IMB_ARCH_AVX512)
		return SK_VECTORS_FOLD;
	return c->mgr->used_arch == IMB_ARCH_AVX2 ? SK_VECTORS_AVX2 : SK_VECTORS_NONE;
}

void
psp_crypto_destroy(struct psp_crypto *c)
{
	sk_secret_free(c->mem, imb_get_mb_mgr_size());
	free(c);
}

unsigned
psp_key_len(uint8_t version)
{
	switch (version) {
	case PSP_AES_GCM_128:
	case PSP_GMAC_128:
		return IMB_KEY_128_BYTES;
	case PSP_AES_GCM_256:
	case PSP_GMAC_256:
		return IMB_KEY_256_BYTES;
	default:
		return 0;
	}
}

/* The input block of CMAC: a counter, a label "Pv0" or "Pv1" and a zero, the SPI, and the key's
 * length in bits (NIST SP 800-108, counter mode). */
struct derivation {
	be32 counter;
	uint8_t label[4];
	be32 spi;
	be32 bits;
} __attribute__((packed));
_Static_assert(sizeof(struct derivation) == 16, "key derivation block");

struct cmac_key {
	DECLARE_ALIGNED(uint32_t enc[15 * 4], 16);
	DECLARE_ALIGNED(uint32_t dec[15 * 4], 16);
	uint8_t sub1[16], sub2[16];
};

static void
cmac(IMB_MGR *mgr, const struct cmac_key *k, const struct derivation *in, uint8_t out[16])
{
	IMB_JOB *job = IMB_GET_NEXT_JOB(mgr);

	memset(job, 0, sizeof(*job));
	job->cipher_mode = IMB_CIPHER_NULL;
	job->hash_alg = IMB_AUTH_AES_CMAC_256;
	job->chain_order = IMB_ORDER_HASH_CIPHER;
	job->cipher_direction = IMB_DIR_ENCRYPT;
	job->u.CMAC._key_expanded = k->enc;
	job->u.CMAC._skey1 = k->sub1;
	job->u.CMAC._skey2 = k->sub2;
	job->src = (const uint8_t *)in;
	job->msg_len_to_hash_in_bytes = sizeof(*in);
	job->auth_tag_output = out;
	job->auth_tag_output_len_in_bytes = 16;
	if (IMB_SUBMIT_JOB(mgr) == NULL)
		IMB_FLUSH_JOB(mgr);
}

void
psp_derive_key(struct psp_crypto *c, uint8_t *key, const uint8_t device_key[PSP_DEVICE_KEY_LEN],
	uint32_t spi, uint8_t version)
{
	unsigned len = psp_key_len(version);
	struct derivation in = {.label = {'P', 'v', len == IMB_KEY_256_BYTES ? '1' : '0', 0},
		.spi = be32_of(spi),
		.bits = be32_of(len * 8)};
	struct cmac_key k;

	IMB_AES_KEYEXP_256(c->mgr, device_key, k.enc, k.dec);
	IMB_AES_CMAC_SUBKEY_GEN_256(c->mgr, k.enc, k.sub1, k.sub2);
	for (unsigned i = 0; i < len / sizeof(in); i++) {
		in.counter = be32_of(i + 1);
		cmac(c->mgr, &k, &in, key + i * sizeof(in));
	}
	explicit_bzero(&k, sizeof(k));
}

struct psp_sa *
psp_sa_create(struct psp_crypto *c, uint8_t version, uint32_t spi, const uint8_t *key)
{
	unsigned len = psp_key_len(version);
	struct psp_sa *sa;

	if (len == 0 && version != PSP_NO_CRYPTO)
		return NULL;
	sa = calloc(1, sizeof(*sa));
	if (sa == NULL)
		return NULL;
	if (len != 0) {
		sa->key = sk_secret_alloc(sizeof(*sa->key));
		if (sa->key == NULL) {
			free(sa);
			return NULL;
		}
	}
	sa->spi = spi;
	sa->version = version;
	if (len == IMB_KEY_128_BYTES)
		IMB_AES128_GCM_PRE(c->mgr, key, sa->key);
	else if (len == IMB_KEY_256_BYTES)
		IMB_AES256_GCM_PRE(c->mgr, key, sa->key);
	return sa;
}

void
psp_sa_destroy(struct psp_sa *sa)
{
	if (sa == NULL)
		return;
	sk_secret_free(sa->key, sizeof(*sa->key));
	free(sa);
}

uint32_t
psp_sa_spi(const struct psp_sa *sa)
{
	return sa->spi;
}

uint8_t
psp_sa_version(const struct psp_sa *sa)
{
	return sa->version;
}

int
psp_sa_check(const struct psp_sa *sa, const struct wire_psp *h)
{
	if (h->spi != sa->spi)
		return -PSP_WRONG_SPI;
	return h->version == sa->version ? 0 : -PSP_WRONG_VERSION;
}

/* Returns the nonce: SPI and IV are adjacent in the header. */
static const uint8_t *
nonce(const struct psp_pkt *p)
{
	_Static_assert(PSP_LEN == 4 + NONCE_LEN, "SPI and IV are the last fields");
	return p->hdr + PSP_LEN - NONCE_LEN;
}

struct gcm {
	aes_gcm_enc_dec_t one;
	aes_gcm_init_t init;
	aes_gcm_enc_dec_update_t update;
	aes_gcm_enc_dec_finalize_t finalize;
};

static struct gcm
gcm_of(const IMB_MGR *m, uint8_t version, bool seal)
{
	if (version == PSP_AES_GCM_128)
		return (struct gcm){seal ? m->gcm128_enc : m->gcm128_dec, m->gcm128_init,
			seal ? m->gcm128_enc_update : m->gcm128_dec_update,
			seal ? m->gcm128_enc_finalize : m->gcm128_dec_finalize};
	return (struct gcm){seal ? m->gcm256_enc : m->gcm256_dec, m->gcm256_init,
		seal ? m->gcm256_enc_update : m->gcm256_dec_update,
		seal ? m->gcm256_enc_finalize : m->gcm256_dec_finalize};
}

static void
copy_parts(const struct psp_pkt *p)
{
	for (uint32_t i = 0; i < p->nparts; i++) {
		if (p->parts[i].dst != p->parts[i].src)
			memcpy(p->parts[i].dst, p->parts[i].src, p->parts[i].len);
	}
}

/* Sets *one to the text as one part, of a packet that is contiguous or short. A short text is
 * copied to its place. Returns false when the text is long, or its pieces go to several places. */
static inline bool
one_part(const struct psp_pkt *p, struct psp_part *one)
{
	uint32_t len = p->parts[0].len;

	if (p->nparts == 1) {
		*one = p->parts[0];
		return true;
	}
	for (uint32_t i = 1; i < p->nparts; i++) {
		if (len > SHORT_MAX || p->parts[i].len > SHORT_MAX - len ||
			p->parts[i].dst != p->parts[0].dst + len)
			return false;
		len += p->parts[i].len;
	}
	copy_parts(p);
	*one = (struct psp_part){p->parts[0].dst, p->parts[0].dst, len};
	return true;
}

static void
run_gcm(const struct gcm *f, const struct psp_pkt *p, uint8_t icv[PSP_ICV_LEN])
{
	struct gcm_context_data ctx;
	struct psp_part one;

	if (one_part(p, &one)) {
		f->one(p->sa->key, &ctx, one.dst, one.src, one.len, nonce(p), p->hdr, p->hdr_len,
			icv, PSP_ICV_LEN);
		return;
	}
	f->init(p->sa->key, &ctx, nonce(p), p->hdr, p->hdr_len);
	for (uint32_t i = 0; i < p->nparts; i++)
		f->update(p->sa->key, &ctx, p->parts[i].dst, p->parts[i].src, p->parts[i].len);
	f->finalize(p->sa->key, &ctx, icv, PSP_ICV_LEN);
}

/* Computes the ICV of a packet whose parts were copied. */
static void
run_gmac(const IMB_MGR *m, const struct psp_pkt *p, uint8_t icv[PSP_ICV_LEN])
{
	const struct gcm_key_data *key = p->sa->key;
	bool small = p->sa->version == PSP_GMAC_128;
	aes_gmac_update_t update = small ? m->gmac128_update : m->gmac256_update;
	struct gcm_context_data ctx;

	(small ? m->gmac128_init : m->gmac256_init)(key, &ctx, nonce(p), NONCE_LEN);
	update(key, &ctx, p->hdr, p->hdr_len);
	for (uint32_t i = 0; i < p->nparts; i++)
		update(key, &ctx, p->parts[i].dst, p->parts[i].len);
	(small ? m->gmac128_finalize : m->gmac256_finalize)(key, &ctx, icv, PSP_ICV_LEN);
}

static void
psp_run(const IMB_MGR *m, const struct psp_pkt *p, bool seal, uint8_t icv[PSP_ICV_LEN])
{
	uint8_t version = p->sa->version;
	struct gcm f;

	if (version <= PSP_AES_GCM_256) {
		f = gcm_of(m, version, seal);
		run_gcm(&f, p, icv);
		return;
	}
	copy_parts(p);
	if (version != PSP_NO_CRYPTO)
		run_gmac(m, p, icv);
}

void
psp_seal(struct psp_crypto *c, const struct psp_pkt *pkts, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		psp_run(c->mgr, pkts + i, true, pkts[i].icv);
}

/* Compares in constant time. */
static bool
same_icv(const uint8_t *a, const uint8_t *b)
{
	uint64_t x[2], y[2];

	memcpy(x, a, PSP_ICV_LEN);
	memcpy(y, b, PSP_ICV_LEN);
	return ((x[0] ^ y[0]) | (x[1] ^ y[1])) == 0;
}

unsigned
psp_open(struct psp_crypto *c, struct psp_pkt *pkts, unsigned n)
{
	uint8_t icv[PSP_ICV_LEN];
	unsigned good = 0;

	for (unsigned i = 0; i < n; i++) {
		psp_run(c->mgr, pkts + i, false, icv);
		pkts[i].ok = pkts[i].sa->version == PSP_NO_CRYPTO || same_icv(icv, pkts[i].icv);
		good += pkts[i].ok;
	}
	return good;
}
