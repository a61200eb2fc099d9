/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TLS 1.3 beneath the frames, by OpenSSL over memory: bytes in, bytes out. Both sides prove their
 * identity, either by a pre-shared key or by certificates (exchange_identity.c). There are no
 * session tickets, no early data, no renegotiation and no key updates. The key exchange is
 * ephemeral with a pre-shared key, too: an attacker that gets the key later cannot decrypt a
 * recording.
 *
 * A pre-shared key belongs to the addresses of its peer, and so does its use: the PSK identity of
 * the ClientHello contains the addresses of both ends. A ClientHello that an attacker sends on to
 * another host, or back to its sender, has the wrong addresses there (RFC 9257).
 */
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "../base/mem.h"
#include "exchange_priv.h"

/* The PSK identity: a label, the initiator's address, the responder's address. */
#define PSK_LABEL     "saker1"
#define PSK_LABEL_LEN 6
#define PSK_ID_LEN    (PSK_LABEL_LEN + 2 * 16)

static const unsigned char psk_suite[] = {0x13, 0x02}; /* TLS_AES_256_GCM_SHA384 */

struct rofx_link {
	SSL *ssl;
	BIO *in, *out; /* owned by `ssl` */
	/* Valid until the end of the handshake. */
	const struct rofx_member *member;
	uint8_t psk_id[PSK_ID_LEN];
	bool psk;       /* by pre-shared key, not by certificate */
	bool starts;    /* the initiator's first message has not been made yet */
	bool misnamed;  /* the peer used a PSK identity with other addresses */
	bool forbidden; /* the peer sent a message that is valid in TLS, but not here */
	bool ended;     /* the peer sent close_notify */
};

/* ---- Pre-shared key ---- */

/* Returns the key in the form that OpenSSL requires: a session to resume. */
static SSL_SESSION *
psk_session(SSL *ssl)
{
	const struct rofx_link *l = SSL_get_app_data(ssl);
	const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, psk_suite);
	SSL_SESSION *s = SSL_SESSION_new();

	if (s == NULL || cipher == NULL ||
		!SSL_SESSION_set1_master_key(s, l->member->psk, l->member->psk_len) ||
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
	const struct rofx_link *l = SSL_get_app_data(ssl);

	/* One cipher suite is configured, so `md` is its digest. */
	*id = l->psk_id;
	*id_len = PSK_ID_LEN;
	*sess = psk_session(ssl);
	return *sess != NULL;
}

static int
psk_find(SSL *ssl, const unsigned char *id, size_t id_len, SSL_SESSION **sess)
{
	struct rofx_link *l = SSL_get_app_data(ssl);

	*sess = NULL;
	if (id_len != PSK_ID_LEN || memcmp(id, l->psk_id, PSK_ID_LEN) != 0) {
		l->misnamed = true;
		return 1; /* unknown: there is no certificate, so the handshake fails */
	}
	*sess = psk_session(ssl);
	return *sess != NULL;
}

static void
psk_name(struct rofx_link *l, bool initiator, const struct sk_addr *local,
	const struct sk_addr *peer)
{
	static const struct sk_addr unknown;
	const struct sk_addr *from = initiator ? local : peer, *to = initiator ? peer : local;

	memcpy(l->psk_id, PSK_LABEL, PSK_LABEL_LEN);
	memcpy(l->psk_id + PSK_LABEL_LEN, from != NULL ? from->b : unknown.b, 16);
	memcpy(l->psk_id + PSK_LABEL_LEN + 16, to != NULL ? to->b : unknown.b, 16);
}

/* ---- Messages ---- */

/* Notes a message that costs this side work and that no exchange needs. */
static void
on_message(int sent, int version, int type, const void *buf, size_t len, SSL *ssl, void *arg)
{
	struct rofx_link *l = SSL_get_app_data(ssl);
	const uint8_t *message = buf;

	if (!sent && type == SSL3_RT_HANDSHAKE && len > 0 &&
		(message[0] == SSL3_MT_KEY_UPDATE || message[0] == SSL3_MT_NEWSESSION_TICKET))
		l->forbidden = true;
}

void
rofx_link_prepare(SSL_CTX *ctx)
{
	SSL_CTX_set_msg_callback(ctx, on_message);
}

/* ---- Links ---- */

/* Requires the peer's certificate to have the name, or the address `a` if there is no name. A
 * certificate has IPv4 addresses as such, and not mapped into IPv6. */
static bool
expect_name(SSL *ssl, const char *name, const struct sk_addr *a)
{
	X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
	bool v4 = a != NULL && sk_addr_is_v4(a);

	X509_VERIFY_PARAM_set_hostflags(
		param, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (name[0] != '\0')
		return X509_VERIFY_PARAM_set1_host(param, name, 0) == 1;
	if (a == NULL)
		return true;
	return X509_VERIFY_PARAM_set1_ip(param, v4 ? a->b + 12 : a->b, v4 ? 4 : 16) == 1;
}

static bool
set_up(struct rofx_link *l, const struct rofx_identity *id, bool initiator,
	const struct sk_addr *local, const struct sk_addr *peer)
{
	l->psk = l->member->psk_len > 0;
	l->ssl = SSL_new(l->psk ? id->psk_ctx : id->cert_ctx);
	l->in = BIO_new(BIO_s_mem());
	l->out = BIO_new(BIO_s_mem());
	if (l->ssl == NULL || l->in == NULL || l->out == NULL) {
		BIO_free(l->in);
		BIO_free(l->out);
		return false;
	}
	SSL_set_bio(l->ssl, l->in, l->out);
	SSL_set_app_data(l->ssl, l);
	l->starts = initiator;
	if (initiator)
		SSL_set_connect_state(l->ssl);
	else
		SSL_set_accept_state(l->ssl);
	if (!l->psk)
		return expect_name(l->ssl, l->member->name, peer);
	psk_name(l, initiator, local, peer);
	/* A server may ignore the pre-shared key and send a certificate instead (RFC 8446, section
	 * 2.2). The initiator has no CA here, so it refuses each of them. */
	if (initiator)
		SSL_set_verify(l->ssl, SSL_VERIFY_PEER, NULL);
	SSL_set_psk_use_session_callback(l->ssl, psk_use);
	SSL_set_psk_find_session_callback(l->ssl, psk_find);
	return true;
}

int
rofx_link_create(struct rofx_link **out, const struct rofx_identity *id, bool initiator,
	const struct sk_addr *local, const struct sk_addr *peer)
{
	const struct rofx_member *member = rofx_identity_member(id, peer);
	struct rofx_link *l;

	*out = NULL;
	if (member == NULL)
		return -ROFX_NO_KEY;
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return -ROFX_NO_RESOURCE;
	l->member = member;
	ERR_clear_error();
	if (!set_up(l, id, initiator, local, peer)) {
		rofx_link_destroy(l);
		return -ROFX_NO_RESOURCE;
	}
	*out = l;
	return 0;
}

bool
rofx_link_busy(const struct rofx_link *l)
{
	return !SSL_is_init_finished(l->ssl);
}

void
rofx_link_destroy(struct rofx_link *l)
{
	if (l == NULL)
		return;
	SSL_free(l->ssl);
	free(l);
}

/* Returns why the handshake failed. */
static enum rofx_reason
exchange_tls_reason(const struct rofx_link *l)
{
	if (l->misnamed)
		return ROFX_TLS_NAME;
	if (l->psk)
		return ROFX_TLS;
	switch (SSL_get_verify_result(l->ssl)) {
	case X509_V_OK:
		return ROFX_TLS;
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
	case X509_V_ERR_HOSTNAME_MISMATCH:
		return ROFX_TLS_NAME;
	case X509_V_ERR_CERT_HAS_EXPIRED:
	case X509_V_ERR_CERT_NOT_YET_VALID:
		return ROFX_TLS_EXPIRED;
	default:
		return ROFX_TLS_CA;
	}
}

/* Returns whether the peer has what this side requires of it. OpenSSL calls a session resumed when
 * both sides have used the pre-shared key. */
static bool
peer_is_proven(const struct rofx_link *l)
{
	if (!SSL_is_init_finished(l->ssl))
		return false;
	return l->psk ? SSL_session_reused(l->ssl) : SSL_get_verify_result(l->ssl) == X509_V_OK;
}

/* Converts OpenSSL's return value: 0 means "later". */
static int
exchange_tls_verdict(struct rofx_link *l, int ret)
{
	int err = SSL_get_error(l->ssl, ret);

	ERR_clear_error();
	if (l->forbidden)
		return -ROFX_TLS;
	if (err == SSL_ERROR_ZERO_RETURN) {
		/* The peer sends nothing more, and its FIN follows. Bytes after the alert are
		 * ignored (RFC 8446, section 6.1): OpenSSL leaves them in the BIO. */
		l->ended = true;
		BIO_reset(l->in);
		return 0;
	}
	if (err == SSL_ERROR_WANT_READ || err == SSL_ERROR_WANT_WRITE)
		return 0;
	return -(int)exchange_tls_reason(l);
}

int
rofx_link_feed(struct rofx_link *l, const uint8_t *data, size_t len)
{
	while (len > 0 && !l->ended) {
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
	if (n > 0 && !peer_is_proven(l))
		return -ROFX_TLS;
	return n > 0 && !l->forbidden ? n : exchange_tls_verdict(l, n);
}

bool
rofx_link_unread(const struct rofx_link *l)
{
	return BIO_ctrl_pending(l->in) > 0;
}

int
rofx_link_write(struct rofx_link *l, const uint8_t *data, size_t len)
{
	int n;

	if (!SSL_is_init_finished(l->ssl))
		return 0;
	if (!peer_is_proven(l))
		return -ROFX_TLS;
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
	int n;

	if (l->starts) {
		ERR_clear_error();
		SSL_do_handshake(l->ssl);
		ERR_clear_error();
		l->starts = false;
	}
	n = room > 0 ? BIO_read(l->out, buf, (int)SK_MIN(room, (size_t)INT32_MAX)) : 0;
	return n > 0 ? (size_t)n : 0;
}
