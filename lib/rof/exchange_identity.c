/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Identities: what this side proves itself with, and what each peer has to prove
 * (doc/falcon-cm.md, section 3). A context holds one generation of keys and certificates at a time.
 * Each stream takes a reference to the current generation when it begins, and a reload replaces the
 * generation for later streams only. The last stream that ends its handshake frees the old one.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "../base/mem.h"
#include "../base/secret.h"
#include "exchange_priv.h"

#define V4_BITS   96    /* bits of an IPv4-mapped address before the IPv4 address */
#define CHAIN_MAX 16384 /* most bytes of certificates that a peer may send */
#define DEPTH_MAX 4     /* most certificates between a peer's and the CA's */
#define SUITE     "TLS_AES_256_GCM_SHA384"
#define KEY_ARENA (2u << 20) /* bytes of OpenSSL's heap for private keys, a power of two */
#define KEY_MIN   32         /* bytes of its smallest object */

struct rofx_tls {
	struct rofx_identity *now; /* atomic */
	uint32_t readers;          /* atomic: threads between the load of `now` and the reference */
	uint64_t loads;            /* atomic */
};

/* ---- Peers ---- */

const struct rofx_member *
rofx_identity_member(const struct rofx_identity *id, const struct sk_addr *peer)
{
	for (unsigned i = 0; i < id->nmembers; i++)
		if (id->members[i].bits == 0 ||
			(peer != NULL &&
				sk_in_prefix(peer, &id->members[i].addr, id->members[i].bits)))
			return &id->members[i];
	return NULL;
}

static bool
member_same(const struct rofx_member *a, const struct rofx_member *b)
{
	return a->bits == b->bits && sk_in_prefix(&a->addr, &b->addr, b->bits);
}

/* Sorts the longest prefixes first. */
static int
by_bits(const void *x, const void *y)
{
	const struct rofx_member *a = x, *b = y;

	return a->bits < b->bits ? 1 : a->bits > b->bits ? -1 : 0;
}

/* Adds a member with what it has to prove. Returns NULL, or the rest of a sentence. */
static const char *
member_add(struct rofx_identity *id, const uint8_t *psk, size_t psk_len, const char *name)
{
	struct rofx_member *m = &id->members[id->nmembers];

	if (psk_len > 0 && (psk == NULL || psk_len < ROFX_PSK_MIN || psk_len > ROFX_PSK_MAX))
		return "a pre-shared key has 16 to 64 bytes";
	if (psk_len > 0 && name != NULL)
		return "a name belongs to a certificate, not to a pre-shared key";
	if (psk_len == 0 && id->cert_ctx == NULL)
		return "there is neither a pre-shared key nor a certificate";
	if (name != NULL && (name[0] == '\0' || strlen(name) > ROFX_NAME_MAX))
		return "a name has 1 to 253 characters";
	m->psk_len = psk_len;
	if (psk_len > 0)
		memcpy(m->psk, psk, psk_len);
	if (name != NULL)
		strcpy(m->name, name);
	id->nmembers++;
	return NULL;
}

static int
identity_refuse_peer(char *err, size_t err_len, const struct rofx_peer *p, const char *why)
{
	char text[SK_ADDR_STRLEN];

	snprintf(err, err_len, "peer %s/%u: %s", sk_addr_str(&p->addr, text), p->prefix, why);
	return -EINVAL;
}

static int
add_peers(struct rofx_identity *id, const struct rofx_tls_config *cfg, char *err, size_t err_len)
{
	for (unsigned i = 0; i < cfg->npeers; i++) {
		const struct rofx_peer *p = &cfg->peers[i];
		struct rofx_member *m = &id->members[id->nmembers];
		bool v4 = sk_addr_is_v4(&p->addr);
		const char *why = member_add(id, p->psk, p->psk_len, p->name);

		if (p->prefix > (v4 ? 32u : 128u))
			why = "the prefix is longer than the address";
		else if (!v4 && p->prefix == 0)
			why = "a prefix of no bits means all peers";
		if (why != NULL)
			return identity_refuse_peer(err, err_len, p, why);
		m->addr = p->addr;
		m->bits = p->prefix + (v4 ? V4_BITS : 0);
		for (struct rofx_member *o = id->members; o < m; o++)
			if (member_same(o, m))
				return identity_refuse_peer(
					err, err_len, p, "there are two entries for it");
	}
	return 0;
}

/* Makes the list of members. Returns 0, or -EINVAL with a sentence in `err`. */
static int
make_members(struct rofx_identity *id, const struct rofx_tls_config *cfg, char *err, size_t err_len)
{
	const char *why = NULL;
	int rc;

	id->members = sk_secret_alloc((cfg->npeers + 1) * sizeof(id->members[0]));
	id->room = cfg->npeers + 1;
	if (id->members == NULL) {
		snprintf(err, err_len, "no memory");
		return -ENOMEM;
	}
	rc = add_peers(id, cfg, err, err_len);
	if (rc != 0)
		return rc;
	if (cfg->psk_len > 0 || id->cert_ctx != NULL)
		why = member_add(id, cfg->psk, cfg->psk_len, cfg->peer_name);
	if (why == NULL && id->nmembers == 0)
		why = "there is neither a pre-shared key nor a certificate";
	if (why != NULL) {
		snprintf(err, err_len, "%s", why);
		return -EINVAL;
	}
	qsort(id->members, id->nmembers, sizeof(id->members[0]), by_bits);
	return 0;
}

/* ---- Certificates ---- */

/* Refuses PEM texts with a password, instead of a prompt for it. */
static int
no_password(char *buf, int size, int rw, void *ctx)
{
	return 0;
}

/* Loads this side's certificate, then those between it and the CA. */
static bool
load_chain(SSL_CTX *ctx, BIO *bio)
{
	X509 *cert = PEM_read_bio_X509(bio, NULL, no_password, NULL);
	bool ok = cert != NULL && SSL_CTX_use_certificate(ctx, cert) == 1;

	X509_free(cert);
	while (ok && (cert = PEM_read_bio_X509(bio, NULL, no_password, NULL)) != NULL) {
		ok = SSL_CTX_add0_chain_cert(ctx, cert) == 1;
		if (!ok)
			X509_free(cert);
	}
	return ok;
}

static bool
load_key(SSL_CTX *ctx, BIO *bio)
{
	EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
	bool ok = key != NULL && SSL_CTX_use_PrivateKey(ctx, key) == 1;

	EVP_PKEY_free(key);
	return ok && SSL_CTX_check_private_key(ctx) == 1;
}

static bool
load_ca(SSL_CTX *ctx, BIO *bio)
{
	X509_STORE *store = SSL_CTX_get_cert_store(ctx);
	unsigned n = 0;
	X509 *cert;

	for (; (cert = PEM_read_bio_X509(bio, NULL, no_password, NULL)) != NULL; n++) {
		bool ok = X509_STORE_add_cert(store, cert) == 1;

		X509_free(cert);
		if (!ok)
			return false;
	}
	return n > 0;
}

static bool
load(SSL_CTX *ctx, const char *pem, bool (*how)(SSL_CTX *ctx, BIO *bio))
{
	BIO *bio = pem != NULL ? BIO_new_mem_buf(pem, -1) : NULL;
	bool ok = bio != NULL && how(ctx, bio);

	BIO_free(bio);
	ERR_clear_error(); /* the end of a PEM text leaves an error, too */
	return ok;
}

static const char *
use_certificates(SSL_CTX *ctx, const struct rofx_tls_config *cfg)
{
	if (!load(ctx, cfg->certificate, load_chain))
		return "the certificate cannot be used";
	if (!load(ctx, cfg->private_key, load_key))
		return "the private key cannot be used, or is not the certificate's";
	if (!load(ctx, cfg->ca, load_ca))
		return "the CA's certificate cannot be used";
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_verify_depth(ctx, DEPTH_MAX);
	SSL_CTX_set_max_cert_list(ctx, CHAIN_MAX);
	return NULL;
}

/* ---- Generations ---- */

/* Returns a context without a key or certificate, or NULL. */
static SSL_CTX *
new_ctx(void)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_method());

	if (ctx == NULL || !SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) ||
		!SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) ||
		!SSL_CTX_set_ciphersuites(ctx, SUITE) || !SSL_CTX_set_num_tickets(ctx, 0)) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
	rofx_link_prepare(ctx);
	return ctx;
}

static void
identity_free(struct rofx_identity *id)
{
	SSL_CTX_free(id->psk_ctx);
	SSL_CTX_free(id->cert_ctx);
	sk_secret_free(id->members, id->room * sizeof(id->members[0]));
	free(id);
}

static bool
certified(const struct rofx_tls_config *cfg)
{
	return cfg->certificate != NULL || cfg->private_key != NULL || cfg->ca != NULL;
}

static int
identity_fill(
	struct rofx_identity *id, const struct rofx_tls_config *cfg, char *err, size_t err_len)
{
	const char *why = NULL;

	id->psk_ctx = new_ctx();
	if (certified(cfg))
		id->cert_ctx = new_ctx();
	if (id->psk_ctx == NULL || (certified(cfg) && id->cert_ctx == NULL))
		why = "OpenSSL has no TLS 1.3 with AES-256-GCM";
	else if (certified(cfg) && cfg->psk_len > 0)
		why = "a pre-shared key for all peers and a certificate exclude each other";
	else if (certified(cfg))
		why = use_certificates(id->cert_ctx, cfg);
	if (why != NULL) {
		snprintf(err, err_len, "%s", why);
		return -EINVAL;
	}
	return make_members(id, cfg, err, err_len);
}

static struct rofx_identity *
identity_create(const struct rofx_tls_config *cfg, char *err, size_t err_len)
{
	struct rofx_identity *id = calloc(1, sizeof(*id));
	int rc;

	snprintf(err, err_len, "no memory");
	if (id == NULL)
		return NULL;
	id->refs = 1;
	rc = identity_fill(id, cfg, err, err_len);
	ERR_clear_error();
	if (rc == 0)
		return id;
	identity_free(id);
	return NULL;
}

void
rofx_identity_release(struct rofx_identity *id)
{
	if (id != NULL && __atomic_sub_fetch(&id->refs, 1, __ATOMIC_ACQ_REL) == 0)
		identity_free(id);
}

/* A thread that replaces the generation waits until `readers` is 0, so that none of them is between
 * the load and the reference. A reader never waits. */
struct rofx_identity *
rofx_identity_hold(struct rofx_tls *t)
{
	struct rofx_identity *id;

	__atomic_add_fetch(&t->readers, 1, __ATOMIC_SEQ_CST);
	id = __atomic_load_n(&t->now, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&id->refs, 1, __ATOMIC_RELAXED);
	__atomic_sub_fetch(&t->readers, 1, __ATOMIC_SEQ_CST);
	return id;
}

uint64_t
rofx_identity_loads(const struct rofx_tls *t)
{
	return __atomic_load_n(&t->loads, __ATOMIC_RELAXED);
}

/* ---- Contexts ---- */

struct rofx_tls *
rofx_tls_create(const struct rofx_tls_config *cfg, char *err, size_t err_len)
{
	struct rofx_tls *t;

	/* OpenSSL then keeps private keys on pages that no core dump contains. Without such pages
	 * it keeps them in ordinary memory. */
	if (!CRYPTO_secure_malloc_initialized())
		CRYPTO_secure_malloc_init(KEY_ARENA, KEY_MIN);
	ERR_clear_error();
	t = calloc(1, sizeof(*t));
	snprintf(err, err_len, "no memory");
	if (t == NULL)
		return NULL;
	t->now = identity_create(cfg, err, err_len);
	t->loads = 1;
	if (t->now != NULL)
		return t;
	free(t);
	return NULL;
}

int
rofx_tls_load(struct rofx_tls *t, const struct rofx_tls_config *cfg, char *err, size_t err_len)
{
	struct rofx_identity *id = identity_create(cfg, err, err_len), *old;

	if (id == NULL)
		return -EINVAL;
	old = __atomic_exchange_n(&t->now, id, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&t->readers, __ATOMIC_SEQ_CST) != 0)
		sched_yield();
	rofx_identity_release(old);
	__atomic_add_fetch(&t->loads, 1, __ATOMIC_RELAXED);
	return 0;
}

void
rofx_tls_destroy(struct rofx_tls *t)
{
	if (t == NULL)
		return;
	rofx_identity_release(t->now);
	free(t);
}

/* ---- Views ---- */

static void
view_certificate(SSL_CTX *ctx, struct rofx_tls_view *out)
{
	X509 *cert = SSL_CTX_get0_certificate(ctx);
	struct tm tm;

	X509_NAME_oneline(X509_get_subject_name(cert), out->subject, sizeof(out->subject));
	if (ASN1_TIME_to_tm(X509_get0_notBefore(cert), &tm))
		out->not_before = timegm(&tm);
	if (ASN1_TIME_to_tm(X509_get0_notAfter(cert), &tm))
		out->not_after = timegm(&tm);
}

void
rofx_tls_look(struct rofx_tls *t, struct rofx_tls_view *out)
{
	struct rofx_identity *id = rofx_identity_hold(t);

	memset(out, 0, sizeof(*out));
	out->loads = __atomic_load_n(&t->loads, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < id->nmembers; i++) {
		const struct rofx_member *m = &id->members[i];

		if (m->bits == 0)
			out->others = m->psk_len > 0 ? ROFX_BY_PSK : ROFX_BY_CERTIFICATE;
		else if (m->psk_len > 0)
			out->psk_peers++;
		else
			out->certificate_peers++;
	}
	if (id->cert_ctx != NULL)
		view_certificate(id->cert_ctx, out);
	rofx_identity_release(id);
}
