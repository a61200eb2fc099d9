/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The exchange in TLS 1.3 (doc/falcon-cm.md, section 3): which peers may connect, and that keys
 * arrive and never appear in clear.
 */
#include "exchange_pair.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/rof/exchange_priv.h"
#include "../../support/psk.h"
#include "exchange_certs.h"

static struct rofx_side s1, s2;
static struct xpair p;
static struct rofx_tls *one, *other;
static struct xp_ca *ca;
static struct xp_cert cert1, cert2;

static struct rofx_tls *
psk(uint8_t fill)
{
	struct rofx_tls *t = NULL;

	cr_assert(psk_load(&t, fill));
	return t;
}

static struct rofx_tls *
certified(const struct xp_cert *c, const char *ca_pem)
{
	struct rofx_tls_config cfg = {
		.certificate = c->certificate, .private_key = c->private_key, .ca = ca_pem};
	char err[128];
	struct rofx_tls *t = rofx_tls_create(&cfg, err, sizeof(err));

	cr_assert_not_null(t, "%s", err);
	return t;
}

static void
init(void)
{
	s1 = xp_side(1);
	s2 = xp_side(2);
	s1.psp = s2.psp = ROFX_PSP_KEYED | ROFX_PSP(PSP_NO_CRYPTO);
	memset(&p, 0, sizeof(p));
	one = other = NULL;
	ca = NULL;
}

static void
fini(void)
{
	xp_end(&p);
	rofx_tls_destroy(one);
	rofx_tls_destroy(other);
	if (ca != NULL) {
		xp_cert_free(&cert1);
		xp_cert_free(&cert2);
		xp_ca_free(ca);
	}
}

TestSuite(exchange_tls, .init = init, .fini = fini);

static void
use(struct rofx_tls *a, struct rofx_tls *b)
{
	one = a;
	other = b;
	p.cfg_a.tls = a;
	p.cfg_b.tls = b;
}

static void
assert_keys(uint8_t version)
{
	const struct rofx_agreed *a = lone_agreed(p.a), *b = lone_agreed(p.b);
	unsigned len = psp_key_len(version);

	cr_assert_eq(a->psp, version);
	cr_assert_eq(b->psp, version);
	cr_assert_eq(a->tx.version, version);
	cr_assert_eq(memcmp(a->tx.key, len == 16 ? s2.key128 : s2.key256, len), 0);
	cr_assert_eq(memcmp(b->tx.key, len == 16 ? s1.key128 : s1.key256, len), 0);
	cr_assert_eq(memcmp(a->rx.key, b->tx.key, len), 0);
	cr_assert_eq(a->tx.spi, s2.spi);
	cr_assert_eq(b->tx.spi, s1.spi);
}

/* ---- Pre-shared key ---- */

Test(exchange_tls, same_key_on_both_sides)
{
	use(psk(7), psk(7));
	xp_establish(&p, &s1, &s2);
	cr_assert(lone_request(p.b)->secure);
	assert_keys(PSP_AES_GCM_256);
}

Test(exchange_tls, byte_by_byte)
{
	use(psk(7), psk(7));
	p.chunk = 1;
	xp_establish(&p, &s1, &s2);
	assert_keys(PSP_AES_GCM_256);
}

Test(exchange_tls, output_into_small_buffers)
{
	uint8_t buf[7];
	size_t n, m;

	use(psk(7), psk(7));
	xp_start(&p, &s1);
	do {
		n = lone_output(p.a, buf, sizeof(buf));
		cr_assert_eq(lone_input(p.b, 0, buf, n), (int)n);
		m = lone_output(p.b, buf, sizeof(buf));
		cr_assert_eq(lone_input(p.a, 0, buf, m), (int)m);
	} while (n + m > 0);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST);
}

Test(exchange_tls, another_key)
{
	use(psk(7), psk(8));
	xp_refuse(&p, &s1, ROFX_TLS, ROFX_TLS);
}

Test(exchange_tls, responder_without_tls)
{
	use(psk(7), NULL);
	xp_refuse(&p, &s1, ROFX_NO_TLS, ROFX_NO_TLS);
}

Test(exchange_tls, initiator_in_clear)
{
	use(NULL, psk(7));
	xp_refuse(&p, &s1, ROFX_TLS_NEEDED, ROFX_TLS_NEEDED);
}

Test(exchange_tls, a_changed_byte_ends_it)
{
	uint8_t buf[4096];
	size_t n;

	use(psk(7), psk(7));
	xp_establish(&p, &s1, &s2);
	cr_assert_eq(
		lone_rekey(p.a, 0, &(struct rofx_sa){.version = PSP_AES_GCM_256, .spi = 5}), 0);
	n = lone_output(p.a, buf, sizeof(buf));
	buf[n - 1] ^= 1;
	cr_assert_eq(lone_input(p.b, 0, buf, n), -ROFX_TLS);
	cr_assert_eq(lone_event(p.b), ROFX_EV_FAILED);
}

Test(exchange_tls, keys_never_show_on_the_stream)
{
	uint8_t buf[4096];
	size_t n;
	int turns = 0;

	use(psk(7), psk(7));
	xp_start(&p, &s1);
	for (struct lone *from = p.a, *to = p.b; turns < 12; turns++) {
		struct lone *next = to;

		n = lone_output(from, buf, sizeof(buf));
		cr_assert_null(memmem(buf, n, s1.key256, 8));
		cr_assert_null(memmem(buf, n, s2.key256, 8));
		cr_assert_null(memmem(buf, n, s1.key128, 8));
		cr_assert_eq(lone_input(to, 0, buf, n), (int)n);
		if (lone_event(p.b) == ROFX_EV_REQUEST)
			lone_accept(p.b, 0, &s2, NULL, 0);
		if (lone_event(p.a) == ROFX_EV_AGREED)
			lone_ready(p.a);
		to = from;
		from = next;
	}
	assert_keys(PSP_AES_GCM_256);
}

Test(exchange_tls, keys_that_were_sent_are_wiped)
{
	use(psk(7), psk(7));
	xp_establish(&p, &s1, &s2);
	cr_assert_not(lone_holds(p.a, s1.key256, 8));
	cr_assert_not(lone_holds(p.b, s2.key256, 8));
	cr_assert_not(lone_holds(p.a, s2.key256, 8));
	cr_assert_not(lone_holds(p.b, s1.key256, 8));
}

/* ---- PSP versions ---- */

Test(exchange_tls, strongest_version_that_both_can)
{
	static const struct {
		uint16_t a, b;
		uint8_t version;
	} cases[] = {
		{0xf | 0x8000, ROFX_PSP(0) | ROFX_PSP(1), PSP_AES_GCM_256},
		{ROFX_PSP(0) | ROFX_PSP(3), 0xf, PSP_AES_GCM_128},
		{ROFX_PSP(2) | ROFX_PSP(3), 0xf | 0x8000, PSP_GMAC_256},
		{ROFX_PSP(2) | 0x8000, 0xf | 0x8000, PSP_GMAC_128},
		{ROFX_PSP(0) | 0x8000, ROFX_PSP(1) | 0x8000, PSP_NO_CRYPTO},
	};

	use(psk(7), psk(7));
	for (unsigned i = 0; i < SK_ARRAY_LEN(cases); i++) {
		s1.psp = cases[i].a;
		s2.psp = cases[i].b;
		xp_establish(&p, &s1, &s2);
		assert_keys(cases[i].version);
		xp_end(&p);
	}
}

Test(exchange_tls, without_crypto_only_if_both_allow)
{
	use(psk(7), psk(7));
	s1.psp = ROFX_PSP(PSP_NO_CRYPTO);
	s2.psp = ROFX_PSP_KEYED;
	xp_start(&p, &s1);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST);
	cr_assert_eq(lone_accept(p.b, 0, &s2, NULL, 0), -EPROTO);
	cr_assert_eq(lone_why(p.b), ROFX_NO_PSP);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_REJECTED);
	cr_assert_eq(lone_why(p.a), ROFX_NO_PSP);
}

Test(exchange_tls, another_key_on_the_way)
{
	struct rofx_sa sa = {.version = PSP_AES_GCM_256, .spi = 0x80000001};

	memset(sa.key, 0xee, sizeof(sa.key));
	use(psk(7), psk(7));
	xp_establish(&p, &s1, &s2);
	lone_trim(p.a);
	lone_trim(p.b);
	cr_assert_eq(lone_rekey(p.b, 0, &sa), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_REKEY);
	cr_assert_eq(lone_agreed(p.a)->tx.spi, 0x80000001);
	cr_assert_eq(memcmp(lone_agreed(p.a)->tx.key, sa.key, 32), 0);
	cr_assert_eq(lone_rekeyed(p.a), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REKEYED);
}

/* ---- Certificates ---- */

static void
issue(const char *address)
{
	ca = xp_ca_new();
	xp_ca_issue(ca, &cert1, "IP:10.0.0.1");
	xp_ca_issue(ca, &cert2, address);
}

Test(exchange_tls, certificates_of_one_ca)
{
	issue("IP:10.0.0.2");
	use(certified(&cert1, xp_ca_pem(ca)), certified(&cert2, xp_ca_pem(ca)));
	xp_establish(&p, &s1, &s2);
	assert_keys(PSP_AES_GCM_256);
}

Test(exchange_tls, certificates_name_the_addresses)
{
	struct sk_addr a1, a2;

	sk_addr_parse("10.0.0.1", &a1);
	sk_addr_parse("fd00::2", &a2);
	issue("IP:fd00::2");
	use(certified(&cert1, xp_ca_pem(ca)), certified(&cert2, xp_ca_pem(ca)));
	p.cfg_a.peer = &a2;
	p.cfg_b.peer = &a1;
	xp_establish(&p, &s1, &s2);
}

Test(exchange_tls, certificate_of_another_address_at_the_responder)
{
	struct sk_addr a2;

	sk_addr_parse("10.0.0.3", &a2);
	issue("IP:10.0.0.2");
	use(certified(&cert1, xp_ca_pem(ca)), certified(&cert2, xp_ca_pem(ca)));
	p.cfg_a.peer = &a2;
	xp_refuse(&p, &s1, ROFX_TLS_NAME, ROFX_TLS);
}

Test(exchange_tls, certificate_of_another_address_at_the_initiator)
{
	struct sk_addr a1;

	sk_addr_parse("10.0.0.3", &a1);
	issue("IP:10.0.0.2");
	use(certified(&cert1, xp_ca_pem(ca)), certified(&cert2, xp_ca_pem(ca)));
	p.cfg_b.peer = &a1;
	xp_refuse(&p, &s1, ROFX_TLS, ROFX_TLS_NAME);
}

Test(exchange_tls, certificate_of_another_ca)
{
	struct xp_ca *stranger = xp_ca_new();
	struct xp_cert c;

	issue("IP:10.0.0.2");
	xp_ca_issue(stranger, &c, "IP:10.0.0.1");
	use(certified(&c, xp_ca_pem(ca)), certified(&cert2, xp_ca_pem(ca)));
	xp_cert_free(&c);
	xp_ca_free(stranger);
	xp_refuse(&p, &s1, ROFX_TLS, ROFX_TLS_CA);
}

Test(exchange_tls, certificate_against_a_pre_shared_key)
{
	issue("IP:10.0.0.2");
	use(psk(7), certified(&cert2, xp_ca_pem(ca)));
	xp_refuse(&p, &s1, ROFX_TLS, ROFX_TLS);
}

/* ---- Configuration ---- */

Test(exchange_tls, configurations_that_cannot_be)
{
	static const uint8_t key[80];
	struct rofx_tls_config cfg = {.psk = key, .psk_len = 15};
	char err[64];

	cr_assert_null(rofx_tls_create(&cfg, err, sizeof(err)));
	cr_assert_not_null(strstr(err, "16 to 64"));
	cfg.psk_len = 65;
	cr_assert_null(rofx_tls_create(&cfg, err, sizeof(err)));
	issue("IP:10.0.0.2");
	cfg = (struct rofx_tls_config){.certificate = cert1.certificate,
		.private_key = cert2.private_key,
		.ca = xp_ca_pem(ca)};
	cr_assert_null(rofx_tls_create(&cfg, err, sizeof(err)));
	cr_assert_not_null(strstr(err, "private key"));
	cfg.private_key = cert1.private_key;
	cfg.ca = "nothing";
	cr_assert_null(rofx_tls_create(&cfg, err, sizeof(err)));
	cr_assert_not_null(strstr(err, "CA"));
	cfg.certificate = NULL;
	cr_assert_null(rofx_tls_create(&cfg, err, sizeof(err)));
	cr_assert_not_null(strstr(err, "certificate"));
}
