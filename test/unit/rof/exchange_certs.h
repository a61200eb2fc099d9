/* SPDX-License-Identifier: BSD-3-Clause */
/* A certificate authority for tests: keys are fresh, certificates are valid from 1970 to 9999
 * unless a test asks for others. */
#ifndef TEST_ROF_EXCHANGE_CERTS_H
#define TEST_ROF_EXCHANGE_CERTS_H

#include <stdbool.h>

struct xp_ca;

/* PEM texts on the heap. */
struct xp_cert {
	char *certificate, *private_key;
};

struct xp_ca *xp_ca_new(void);
void xp_ca_free(struct xp_ca *ca);
const char *xp_ca_pem(const struct xp_ca *ca);
/* Issues a certificate. `address` is the subject's alternative name: "IP:10.0.0.1", "DNS:a.test".
 */
void xp_ca_issue(struct xp_ca *ca, struct xp_cert *out, const char *address);
/* Issues one that expired in 1999, or, if `future`, becomes valid in 9990. */
void xp_ca_issue_invalid(struct xp_ca *ca, struct xp_cert *out, const char *address, bool future);
void xp_cert_free(struct xp_cert *c);

#endif
