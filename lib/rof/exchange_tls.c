/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TLS 1.3 beneath the frames, by OpenSSL over memory: bytes in, bytes out. Both sides prove their
 * identity, either by the same pre-shared key or by certificates of the same CA. There are no
 * session tickets, no early data and no renegotiation. The key exchange is ephemeral with the
 * pre-shared key, too: an attacker that gets the key later cannot decrypt a recording.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "../base/mem.h"
#include "exchange_priv.h"

#define PSK_MIN 16
#define PSK_MAX 64

static const char psk_identity[] = "saker";
static const unsigned char psk_suite[] = {0x13, 0x02}; /* TLS_AES_256_GCM_SHA384 */

struct rofx_tls {
	SSL_CTX *ctx;
	uint8_t psk[PSK_MAX];
	size_t psk_len; /* 0: certificates */
};

struct rofx_link {
	SSL *ssl;
	BIO *in, *out; /* owned by `ssl` */
};

/* ---- Pre-shared key ---- */

/* Returns the key in the form that OpenSSL requires: a session to resume. */
static SSL_SESSION *
psk_session(SSL *ssl)
{
	const struct rofx_tls *t = SSL_get_app_data(ssl);
	const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, psk_suite);
	SSL_SESSION *s = SSL_SESSION_new();

	if (s == NULL || cipher == NULL || !SSL_SESSION_set1_master_key(s, t->psk, t->psk_len) ||
		!SSL_SESSION_set_cipher(s, cipher) ||
		!SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION)) {
		SSL_SESSION_free(s);
		return NULL;
	}
	return s;
}

static int
psk_use(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_len, SSL_SESSION **sess)
{
	/* One cipher suite is configured, so `md` is its digest. */
	*id = (const unsigned char *)psk_identity;
	*id_len = sizeof(psk_identity) - 1;
	*sess = psk_session(ssl);
	return *sess != NULL;
}

static int
psk_find(SSL *ssl, const unsigned char *id, size_t id_len, SSL_SESSION **sess)
{
	*sess = NULL;
	if (id_len != sizeof(psk_identity) - 1 || memcmp(id, psk_identity, id_len) != 0)
		return 1; /* unknown: no certificate is configured, so the handshake fails */
	*sess = psk_session(ssl);
	return *sess != NULL;
}

static const char *
use_psk(struct rofx_tls *t, const struct rofx_tls_config *cfg)
{
	if (cfg->psk == NULL || cfg->psk_len < PSK_MIN || cfg->psk_len > PSK_MAX)
		return "a pre-shared key has 16 to 64 bytes";
	memcpy(t->psk, cfg->psk, cfg->psk_len);
	t->psk_len = cfg->psk_len;
	SSL_CTX_set_psk_use_session_callback(t->ctx, psk_use);
	SSL_CTX_set_psk_find_session_callback(t->ctx, psk_find);
	return NULL;
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
use_certificates(struct rofx_tls *t, const struct rofx_tls_config *cfg)
{
	if (!load(t->ctx, cfg->certificate, load_chain))
		return "the certificate cannot be used";
	if (!load(t->ctx, cfg->private_key, load_key))
		return "the private key cannot be used, or is not the certificate's";
	if (!load(t->ctx, cfg->ca, load_ca))
		return "the CA's certificate cannot be used";
	SSL_CTX_set_verify(t->ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	return NULL;
}

/* ---- Contexts ---- */

static const char *
exchange_tls_configure(struct rofx_tls *t, const struct rofx_tls_config *cfg)
{
	t->ctx = SSL_CTX_new(TLS_method());
	if (t->ctx == NULL || !SSL_CTX_set_min_proto_version(t->ctx, TLS1_3_VERSION) ||
		!SSL_CTX_set_max_proto_version(t->ctx, TLS1_3_VERSION) ||
		!SSL_CTX_set_ciphersuites(t->ctx, "TLS_AES_256_GCM_SHA384") ||
		!SSL_CTX_set_num_tickets(t->ctx, 0))
		return "OpenSSL has no TLS 1.3 with AES-256-GCM";
	SSL_CTX_set_session_cache_mode(t->ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_mode(t->ctx, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_options(t->ctx, SSL_OP_NO_TICKET);
	return cfg->psk_len > 0 ? use_psk(t, cfg) : use_certificates(t, cfg);
}

struct rofx_tls *
rofx_tls_create(const struct rofx_tls_config *cfg, char *err, size_t err_len)
{
	struct rofx_tls *t = calloc(1, sizeof(*t));
	const char *why = t != NULL ? exchange_tls_configure(t, cfg) : "no memory";

	ERR_clear_error();
	if (why == NULL)
		return t;
	snprintf(err, err_len, "%s", why);
	rofx_tls_destroy(t);
	return NULL;
}

void
rofx_tls_destroy(struct rofx_tls *t)
{
	if (t == NULL)
		return;
	SSL_CTX_free(t->ctx);
	explicit_bzero(t, sizeof(*t));
	free(t);
}

/* ---- Links ---- */

/* Requires the peer's certificate to be issued for `a`. A certificate has IPv4 addresses as such,
 * and not mapped into IPv6. */
static bool
expect_address(SSL *ssl, const struct sk_addr *a)
{
	bool v4 = sk_addr_is_v4(a);

	return X509_VERIFY_PARAM_set1_ip(SSL_get0_param(ssl), v4 ? a->b + 12 : a->b, v4 ? 4 : 16) ==
	       1;
}

static bool
set_up(struct rofx_link *l, const struct rofx_tls *t, bool initiator, const struct sk_addr *peer)
{
	l->ssl = SSL_new(t->ctx);
	l->in = BIO_new(BIO_s_mem());
	l->out = BIO_new(BIO_s_mem());
	if (l->ssl == NULL || l->in == NULL || l->out == NULL) {
		BIO_free(l->in);
		BIO_free(l->out);
		return false;
	}
	SSL_set_bio(l->ssl, l->in, l->out);
	SSL_set_app_data(l->ssl, (void *)(uintptr_t)t);
	if (peer != NULL && t->psk_len == 0 && !expect_address(l->ssl, peer))
		return false;
	if (initiator)
		SSL_set_connect_state(l->ssl);
	else
		SSL_set_accept_state(l->ssl);
	SSL_do_handshake(l->ssl); /* the initiator's first message; the responder waits */
	return true;
}

struct rofx_link *
rofx_link_create(const struct rofx_tls *t, bool initiator, const struct sk_addr *peer)
{
	struct rofx_link *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	ERR_clear_error();
	if (!set_up(l, t, initiator, peer)) {
		rofx_link_destroy(l);
		return NULL;
	}
	return l;
}

void
rofx_link_destroy(struct rofx_link *l)
{
	if (l == NULL)
		return;
	SSL_free(l->ssl);
	free(l);
}

/* Converts OpenSSL's return value: 0 means "later". */
static int
exchange_tls_verdict(struct rofx_link *l, int ret)
{
	int err = SSL_get_error(l->ssl, ret);

	ERR_clear_error();
	if (err == SSL_ERROR_WANT_READ || err == SSL_ERROR_WANT_WRITE ||
		err == SSL_ERROR_ZERO_RETURN)
		/* After SSL_ERROR_ZERO_RETURN the peer sends nothing more, and its FIN follows. */
		return 0;
	return -ROFX_TLS;
}

int
rofx_link_feed(struct rofx_link *l, const uint8_t *data, size_t len)
{
	while (len > 0) {
		int n = BIO_write(l->in, data, (int)SK_MIN(len, (size_t)INT32_MAX));

		if (n <= 0)
			return -ROFX_NO_RESOURCE;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

int
rofx_link_read(struct rofx_link *l, uint8_t *buf, size_t room)
{
	int n;

	ERR_clear_error();
	n = SSL_read(l->ssl, buf, (int)room);
	return n > 0 ? n : exchange_tls_verdict(l, n);
}

int
rofx_link_write(struct rofx_link *l, const uint8_t *data, size_t len)
{
	int n;

	if (!SSL_is_init_finished(l->ssl))
		return 0;
	ERR_clear_error();
	n = SSL_write(l->ssl, data, (int)len);
	return n > 0 ? n : exchange_tls_verdict(l, n);
}

size_t
rofx_link_pending(const struct rofx_link *l)
{
	return BIO_ctrl_pending(l->out);
}

size_t
rofx_link_take(struct rofx_link *l, uint8_t *buf, size_t room)
{
	int n = room > 0 ? BIO_read(l->out, buf, (int)SK_MIN(room, (size_t)INT32_MAX)) : 0;

	return n > 0 ? (size_t)n : 0;
}
