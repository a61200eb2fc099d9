/* SPDX-License-Identifier: BSD-3-Clause */
/* A certificate authority for tests: keys are fresh, certificates are valid from 1970 to 9999. */
#ifndef TEST_ROF_EXCHANGE_CERTS_H
#define TEST_ROF_EXCHANGE_CERTS_H

struct xp_ca;

/* PEM texts on the heap. */
struct xp_cert {
	char *certificate, *private_key;
};

struct xp_ca *xp_ca_new(void);
void xp_ca_free(struct xp_ca *ca);
const char *xp_ca_pem(const struct xp_ca *ca);
/* `address`: the subject's alternative name, as "IP:10.0.0.1". */
void xp_ca_issue(struct xp_ca *ca, struct xp_cert *out, const char *address);
void xp_cert_free(struct xp_cert *c);

#endif
