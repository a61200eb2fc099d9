/* SPDX-License-Identifier: BSD-3-Clause */
#include "exchange_certs.h"

#include <criterion/criterion.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#define ALWAYS "19700101000000Z"
#define NEVER  "99991231235959Z"

struct xp_ca {
	EVP_PKEY *key;
	X509 *cert;
	char *pem;
	long serial;
};

static char *
text(BIO *bio)
{
	char *data, *s;
	long len = BIO_get_mem_data(bio, &data);

	s = strndup(data, (size_t)len);
	BIO_free(bio);
	cr_assert_not_null(s);
	return s;
}

static char *
cert_text(X509 *cert)
{
	BIO *bio = BIO_new(BIO_s_mem());

	cr_assert_eq(PEM_write_bio_X509(bio, cert), 1);
	return text(bio);
}

static void
extend(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509_EXTENSION *ext;
	X509V3_CTX ctx;

	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	cr_assert_not_null(ext);
	cr_assert_eq(X509_add_ext(cert, ext, -1), 1);
	X509_EXTENSION_free(ext);
}

static X509 *
new_cert(EVP_PKEY *key, const char *name, long serial)
{
	X509 *cert = X509_new();

	X509_set_version(cert, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), serial);
	ASN1_TIME_set_string(X509_getm_notBefore(cert), ALWAYS);
	ASN1_TIME_set_string(X509_getm_notAfter(cert), NEVER);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
		(const unsigned char *)name, -1, -1, 0);
	X509_set_pubkey(cert, key);
	return cert;
}

struct xp_ca *
xp_ca_new(void)
{
	struct xp_ca *ca = calloc(1, sizeof(*ca));

	cr_assert_not_null(ca);
	ca->serial = 1;
	ca->key = EVP_EC_gen("P-256");
	ca->cert = new_cert(ca->key, "ca", ca->serial);
	X509_set_issuer_name(ca->cert, X509_get_subject_name(ca->cert));
	extend(ca->cert, ca->cert, NID_basic_constraints, "critical,CA:TRUE");
	cr_assert_gt(X509_sign(ca->cert, ca->key, EVP_sha256()), 0);
	ca->pem = cert_text(ca->cert);
	return ca;
}

void
xp_ca_free(struct xp_ca *ca)
{
	EVP_PKEY_free(ca->key);
	X509_free(ca->cert);
	free(ca->pem);
	free(ca);
}

const char *
xp_ca_pem(const struct xp_ca *ca)
{
	return ca->pem;
}

static void
issue(struct xp_ca *ca, struct xp_cert *out, const char *address, const char *from, const char *to)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = new_cert(key, "node", ++ca->serial);
	BIO *bio = BIO_new(BIO_s_mem());

	ASN1_TIME_set_string(X509_getm_notBefore(cert), from);
	ASN1_TIME_set_string(X509_getm_notAfter(cert), to);
	X509_set_issuer_name(cert, X509_get_subject_name(ca->cert));
	extend(cert, ca->cert, NID_subject_alt_name, address);
	cr_assert_gt(X509_sign(cert, ca->key, EVP_sha256()), 0);
	out->certificate = cert_text(cert);
	cr_assert_eq(PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL), 1);
	out->private_key = text(bio);
	X509_free(cert);
	EVP_PKEY_free(key);
}

void
xp_ca_issue(struct xp_ca *ca, struct xp_cert *out, const char *address)
{
	issue(ca, out, address, ALWAYS, NEVER);
}

void
xp_ca_issue_invalid(struct xp_ca *ca, struct xp_cert *out, const char *address, bool future)
{
	issue(ca, out, address, future ? "99900101000000Z" : ALWAYS,
		future ? NEVER : "19991231235959Z");
}

void
xp_cert_free(struct xp_cert *c)
{
	free(c->certificate);
	free(c->private_key);
	c->certificate = c->private_key = NULL;
}
