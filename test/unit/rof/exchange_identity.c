/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The identity of a peer (doc/falcon-cm.md, section 3): the key or the certificate belongs to the
 * address from which it is used; identities may be replaced while streams use them. Host 1 is the
 * initiator, host 2 the responder.
 */
#include "exchange_pair.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <malloc.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <string.h>

#include "../../../lib/base/mem.h"
#include "exchange_certs.h"

static struct rofx_side s1, s2;
static struct xpair p;
static struct rofx_tls *one, *two;
static struct sk_addr a1, a2, a3;
static uint8_t key[256][32]; /* key i has 32 bytes of the value i */
static struct xp_ca *ca;
static struct xp_cert cert1, cert2;
static char err[256];

static void
init(void)
{
	s1 = xp_side(1);
	s2 = xp_side(2);
	s1.psp = s2.psp = ROFX_PSP_KEYED | ROFX_PSP(PSP_NO_CRYPTO);
	sk_addr_parse("10.0.0.1", &a1);
	sk_addr_parse("10.0.0.2", &a2);
	sk_addr_parse("10.0.0.3", &a3);
	p.cfg_a.local = p.cfg_b.peer = &a1;
	p.cfg_a.peer = p.cfg_b.local = &a2;
	for (unsigned i = 0; i < 256; i++)
		memset(key[i], (int)i, sizeof(key[i]));
}

static void
fini(void)
{
	xp_end(&p);
	rofx_tls_destroy(one);
	rofx_tls_destroy(two);
	if (ca == NULL)
		return;
	xp_cert_free(&cert1);
	xp_cert_free(&cert2);
	xp_ca_free(ca);
}

TestSuite(exchange_identity, .init = init, .fini = fini);

static struct rofx_peer
peer(const char *addr, unsigned prefix, uint8_t fill)
{
	struct rofx_peer r = {.prefix = prefix, .psk = key[fill], .psk_len = 32};

	cr_assert_eq(sk_addr_parse(addr, &r.addr), 0);
	return r;
}

/* Returns the identities of a host with a key for all peers (0: none) and `n` entries. */
static struct rofx_tls *
host(uint8_t fill, const struct rofx_peer *peers, unsigned n)
{
	struct rofx_tls_config cfg = {
		.psk = key[fill], .psk_len = fill ? 32 : 0, .peers = peers, .npeers = n};
	struct rofx_tls *t = rofx_tls_create(&cfg, err, sizeof(err));

	cr_assert_not_null(t, "%s", err);
	return t;
}

static void
use(struct rofx_tls *a, struct rofx_tls *b)
{
	p.cfg_a.tls = one = a;
	p.cfg_b.tls = two = b;
}

static void
connects(void)
{
	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_agreed(p.a)->psp, PSP_AES_GCM_256);
	cr_assert(lone_request(p.b)->secure);
}

static size_t
heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* ---- Keys of peers ---- */

Test(exchange_identity, each_pair_of_hosts_has_a_key_of_its_own)
{
	struct rofx_peer of1[] = {peer("10.0.0.3", 32, 13), peer("10.0.0.2", 32, 12)};
	struct rofx_peer of2[] = {peer("10.0.0.1", 32, 12), peer("10.0.0.3", 32, 23)};

	use(host(0, of1, 2), host(0, of2, 2));
	connects();
}

Test(exchange_identity, a_host_with_its_own_key_cannot_be_another_address)
{
	/* Host 3 has its key with host 2, and uses the address of host 1. */
	struct rofx_peer of3[] = {peer("10.0.0.2", 32, 23)};
	struct rofx_peer of2[] = {peer("10.0.0.1", 32, 12), peer("10.0.0.3", 32, 23)};

	use(host(0, of3, 1), host(0, of2, 2));
	xp_refuse(&p, &s1, ROFX_TLS, ROFX_TLS);
	xp_end(&p);
	p.cfg_a.local = p.cfg_b.peer = &a3;
	connects();
}

Test(exchange_identity, the_key_of_all_does_not_serve_a_peer_with_an_entry)
{
	struct rofx_peer of2[] = {peer("10.0.0.1", 32, 12)};

	use(host(9, NULL, 0), host(9, of2, 1));
	xp_refuse(&p, &s1, ROFX_TLS, ROFX_TLS);
	xp_end(&p);
	p.cfg_a.local = p.cfg_b.peer = &a3;
	connects();
}

Test(exchange_identity, the_longest_prefix_chooses_the_key)
{
	struct rofx_peer of1[] = {peer("10.0.0.2", 32, 1)};
	struct rofx_peer of2[] = {peer("0.0.0.0", 0, 4), peer("10.0.0.0", 8, 3),
		peer("10.0.0.0", 31, 1), peer("10.0.0.0", 29, 2), peer("fd00::", 8, 5)};

	use(host(0, of1, 1), host(9, of2, 5));
	connects();
	xp_end(&p);
	rofx_tls_destroy(one);
	of1[0] = peer("10.0.0.2", 32, 2); /* 10.0.0.3 is outside of 10.0.0.0/31 */
	use(host(0, of1, 1), two);
	p.cfg_a.local = p.cfg_b.peer = &a3;
	connects();
}

Test(exchange_identity, a_key_is_bound_to_the_addresses_of_both_ends)
{
	use(host(7, NULL, 0), host(7, NULL, 0));
	/* The ClientHello is for host 3, and an attacker sends it on to host 2. */
	p.cfg_a.peer = &a3;
	xp_refuse(&p, &s1, ROFX_TLS, ROFX_TLS_NAME);
	xp_end(&p);
	/* The attacker sends it back to host 1 from the address of host 2. */
	p.cfg_a.peer = p.cfg_b.peer = &a2;
	p.cfg_b.local = &a1;
	xp_refuse(&p, &s1, ROFX_TLS, ROFX_TLS_NAME);
}

Test(exchange_identity, a_peer_without_a_key_is_refused_and_not_served_in_clear)
{
	struct rofx_peer of1[] = {peer("10.0.0.2", 32, 12)}, of2[] = {peer("10.0.0.3", 32, 23)};
	int rc;

	use(host(0, of1, 1), host(0, of2, 1));
	xp_refuse(&p, &s1, ROFX_NO_KEY, ROFX_NO_KEY);
	xp_end(&p);
	p.cfg_a.tls = NULL;
	xp_refuse(&p, &s1, ROFX_TLS_NEEDED, ROFX_TLS_NEEDED);
	p.cfg_a.tls = one;
	p.cfg_a.peer = &a3;
	cr_assert_null(lone_connect(&p.cfg_a, 0, &s1, NULL, 0, &rc));
	cr_assert_eq(rc, -ENOKEY);
	cr_assert_null(lone_lookup(&p.cfg_a, 0, &(struct rofx_question){.service = 1}, &rc));
	cr_assert_eq(rc, -ENOKEY);
}

Test(exchange_identity, a_part_beyond_those_of_the_host_is_refused)
{
	struct rofx_config cfg = p.cfg_a;
	int rc;

	for (unsigned stages = 0; stages <= ROFX_STAGES + 1; stages++) {
		unsigned most = stages > 1 ? stages - 1 : 0;

		cfg.stages = (uint8_t)stages;
		cfg.stage = (uint8_t)(most + 1);
		cr_assert_null(lone_connect(&cfg, 0, &s1, NULL, 0, &rc));
		cr_assert_eq(rc, -EINVAL, "%u", stages);
		cfg.stage = (uint8_t)most;
		if (stages > ROFX_STAGES) {
			cr_assert_null(lone_connect(&cfg, 0, &s1, NULL, 0, &rc));
			cr_assert_eq(rc, -EINVAL, "%u", stages);
		} else {
			struct lone *x = lone_connect(&cfg, 0, &s1, NULL, 0, &rc);

			cr_assert_not_null(x, "%u", stages);
			lone_destroy(x);
		}
	}
}

/* ---- Certificates ---- */

static struct rofx_tls_config
certified(const struct xp_cert *c)
{
	return (struct rofx_tls_config){
		.certificate = c->certificate, .private_key = c->private_key, .ca = xp_ca_pem(ca)};
}

static struct rofx_tls *
create(const struct rofx_tls_config *cfg)
{
	struct rofx_tls *t = rofx_tls_create(cfg, err, sizeof(err));

	cr_assert_not_null(t, "%s", err);
	return t;
}

static void
issue(const char *name1, const char *name2)
{
	ca = xp_ca_new();
	xp_ca_issue(ca, &cert1, name1);
	xp_ca_issue(ca, &cert2, name2);
}

Test(exchange_identity, a_certificate_has_the_address_of_its_host)
{
	struct rofx_tls_config c1, c2;

	issue("IP:10.0.0.1", "IP:10.0.0.2");
	c1 = certified(&cert1);
	c2 = certified(&cert2);
	use(create(&c1), create(&c2));
	connects();
	xp_end(&p);
	p.cfg_a.local = p.cfg_b.peer = &a3; /* host 1 uses the address of host 3 */
	xp_refuse(&p, &s1, ROFX_TLS, ROFX_TLS_NAME);
}

Test(exchange_identity, a_configured_name_replaces_the_address)
{
	struct rofx_tls_config c1, c2;
	struct rofx_peer entry = {.addr = a1, .prefix = 32, .name = "one.fabric.test"};

	issue("DNS:one.fabric.test", "DNS:two.fabric.test");
	c1 = certified(&cert1);
	c2 = certified(&cert2);
	c1.peer_name = ".fabric.test"; /* any host of the domain */
	c2.peers = &entry;
	c2.npeers = 1;
	use(create(&c1), create(&c2));
	connects();
	xp_end(&p);
	entry.name = "three.fabric.test";
	cr_assert_eq(rofx_tls_load(two, &c2, err, sizeof(err)), 0);
	xp_refuse(&p, &s1, ROFX_TLS, ROFX_TLS_NAME);
	xp_end(&p);
	c2.npeers = 0; /* the address is not in the certificate */
	cr_assert_eq(rofx_tls_load(two, &c2, err, sizeof(err)), 0);
	xp_refuse(&p, &s1, ROFX_TLS, ROFX_TLS_NAME);
	xp_end(&p);
	c1.peer_name = ".other.test";
	cr_assert_eq(rofx_tls_load(one, &c1, err, sizeof(err)), 0);
	xp_refuse(&p, &s1, ROFX_TLS_NAME, ROFX_TLS);
}

/* The common name of each certificate is "node". */
Test(exchange_identity, a_common_name_is_not_a_name)
{
	struct rofx_tls_config c1, c2;

	issue("IP:10.0.0.1", "IP:10.0.0.2");
	c1 = certified(&cert1);
	c2 = certified(&cert2);
	c2.peer_name = "node";
	use(create(&c1), create(&c2));
	xp_refuse(&p, &s1, ROFX_TLS, ROFX_TLS_NAME);
}

static void
out_of_time(bool future)
{
	struct rofx_tls_config c1, c2;
	struct rofx_tls_view v;

	ca = xp_ca_new();
	xp_ca_issue_invalid(ca, &cert1, "IP:10.0.0.1", future);
	xp_ca_issue(ca, &cert2, "IP:10.0.0.2");
	c1 = certified(&cert1);
	c2 = certified(&cert2);
	use(create(&c1), create(&c2));
	xp_refuse(&p, &s1, ROFX_TLS, ROFX_TLS_EXPIRED);
	rofx_tls_look(one, &v);
	cr_assert_not_null(strstr(v.subject, "CN=node"), "%s", v.subject);
	cr_assert(future ? v.not_before > 253000000000 : v.not_after == 946684799);
}

Test(exchange_identity, an_expired_certificate_is_refused)
{
	out_of_time(false);
}

Test(exchange_identity, a_certificate_of_the_future_is_refused)
{
	out_of_time(true);
}

Test(exchange_identity, a_certificate_beside_keys_of_single_peers)
{
	struct rofx_peer of2 = peer("10.0.0.3", 32, 23);
	struct rofx_peer of3 = peer("10.0.0.2", 32, 23);
	struct rofx_tls_config c1, c2;

	issue("IP:10.0.0.1", "IP:10.0.0.2");
	c1 = certified(&cert1);
	c2 = certified(&cert2);
	c2.peers = &of2;
	c2.npeers = 1;
	use(create(&c1), create(&c2));
	connects();
	xp_end(&p);
	/* A host with a key cannot use a certificate instead. */
	p.cfg_a.local = p.cfg_b.peer = &a3;
	xp_refuse(&p, &s1, ROFX_TLS, ROFX_TLS);
	xp_end(&p);
	rofx_tls_destroy(one);
	use(host(0, &of3, 1), two);
	connects();
}

/* ---- Reload ---- */

static void
load(struct rofx_tls *t, uint8_t fill, int rc)
{
	struct rofx_tls_config cfg = {.psk = key[fill], .psk_len = fill == 255 ? 15 : 32};

	cr_assert_eq(rofx_tls_load(t, &cfg, err, sizeof(err)), rc, "%s", err);
}

Test(exchange_identity, a_stream_ends_its_handshake_with_the_keys_of_its_beginning)
{
	struct rofx_tls_view v;

	use(host(1, NULL, 0), host(1, NULL, 0));
	xp_start(&p, &s1);
	xp_move(p.a, p.b, 0); /* the ClientHello */
	load(one, 2, 0);
	load(two, 2, 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST);
	cr_assert_eq(lone_accept(p.b, 0, &s2, NULL, 0), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_AGREED);
	cr_assert_eq(lone_ready(p.a), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_ESTABLISHED);
	lone_trim(p.a);
	lone_trim(p.b);
	load(two, 3, 0);
	/* The connection lives on, and its keys change. */
	cr_assert_eq(
		lone_rekey(p.a, 0, &(struct rofx_sa){.version = PSP_AES_GCM_256, .spi = 5}), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REKEY);
	xp_end(&p);
	xp_refuse(&p, &s1, ROFX_TLS, ROFX_TLS); /* 2 and 3 */
	xp_end(&p);
	load(one, 3, 0);
	connects();
	rofx_tls_look(two, &v);
	cr_assert_eq(v.loads, 3);
	cr_assert_eq(v.others, ROFX_BY_PSK);
}

Test(exchange_identity, a_reload_that_fails_changes_nothing)
{
	use(host(1, NULL, 0), host(1, NULL, 0));
	load(two, 255, -EINVAL);
	cr_assert_str_eq(err, "a pre-shared key has 16 to 64 bytes");
	connects();
}

/* OpenSSL and the allocator keep some memory; an identity has more than 10 KB. */
Test(exchange_identity, a_reload_leaves_no_memory_behind)
{
	size_t before, after;

	use(host(1, NULL, 0), host(1, NULL, 0));
	load(two, 255, -EINVAL);
	load(two, 2, 0);
	before = heap_bytes();
	for (unsigned i = 0; i < 300; i++) {
		load(two, 255, -EINVAL);
		load(two, 2, 0);
	}
	after = heap_bytes();
	cr_assert_lt(after, before + (1 << 20));
}

Test(exchange_identity, streams_outlive_the_context)
{
	use(host(1, NULL, 0), host(1, NULL, 0));
	xp_start(&p, &s1);
	rofx_tls_destroy(one);
	rofx_tls_destroy(two);
	one = two = NULL;
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST);
}

static bool stop;

static void *
reload_again_and_again(void *arg)
{
	struct rofx_tls_config cfg = {.psk = key[1], .psk_len = 32};
	char why[64];

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		if (rofx_tls_load(arg, &cfg, why, sizeof(why)) != 0)
			return arg;
	return NULL;
}

Test(exchange_identity, streams_begin_while_another_thread_reloads)
{
	pthread_t thread;
	void *bad;

	use(host(1, NULL, 0), host(1, NULL, 0));
	stop = false;
	cr_assert_eq(pthread_create(&thread, NULL, reload_again_and_again, two), 0);
	for (unsigned i = 0; i < 200; i++) {
		connects();
		xp_end(&p);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	cr_assert_eq(pthread_join(thread, &bad), 0);
	cr_assert_null(bad);
}

/* ---- What costs time ---- */

Test(exchange_identity, work_for_tls_is_announced)
{
	uint8_t buf[4096];
	size_t n;

	use(host(1, NULL, 0), host(1, NULL, 0));
	xp_start(&p, &s1);
	cr_assert(lone_handshakes(p.a), "the ClientHello has not been made");
	cr_assert(lone_handshakes(p.b), "it will arrive with the opening");
	n = lone_output(p.a, buf, sizeof(buf));
	cr_assert_gt(n, 100);
	cr_assert_eq(lone_input(p.b, 0, buf, n), (int)n);
	cr_assert(lone_handshakes(p.b), "Finished has not arrived");
	xp_run(&p);
	cr_assert_not(lone_handshakes(p.a));
	cr_assert_not(lone_handshakes(p.b));
	xp_end(&p);
	p.cfg_a.tls = p.cfg_b.tls = NULL;
	xp_start(&p, &s1);
	cr_assert_not(lone_handshakes(p.a));
	cr_assert_not(lone_handshakes(p.b));
}

/* ---- Messages that TLS permits and the exchange does not ---- */

static int
client_psk(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_len, SSL_SESSION **out)
{
	static const unsigned char suite[] = {0x13, 0x02};
	static uint8_t name[38] = "saker1";

	memcpy(name + 6, a1.b, 16);
	memcpy(name + 22, a2.b, 16);
	*id = name;
	*id_len = sizeof(name);
	*out = SSL_SESSION_new();
	return SSL_SESSION_set1_master_key(*out, key[7], 32) &&
	       SSL_SESSION_set_cipher(*out, SSL_CIPHER_find(ssl, suite)) &&
	       SSL_SESSION_set_protocol_version(*out, TLS1_3_VERSION);
}

/* Passes what OpenSSL has written to `x`. */
static int
pass(SSL *ssl, struct lone *x)
{
	uint8_t buf[4096];
	int n = BIO_read(SSL_get_wbio(ssl), buf, sizeof(buf));

	return n > 0 ? lone_input(x, 0, buf, (size_t)n) : 0;
}

/* Passes the output of `x` to OpenSSL. Returns the number of bytes. */
static size_t
pass_back(struct lone *x, SSL *ssl)
{
	uint8_t buf[4096];
	size_t n = lone_output(x, buf, sizeof(buf));

	if (n > 0)
		cr_assert_eq(BIO_write(SSL_get_rbio(ssl), buf, (int)n), (int)n);
	return n;
}

/* Returns an end of TLS without a socket. */
static SSL *
loose_end(SSL_CTX *ctx)
{
	SSL *ssl = SSL_new(ctx);

	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	return ssl;
}

/* Lets a client of OpenSSL authenticate itself to p.b. */
static SSL *
client_connect(SSL_CTX *ctx)
{
	static const uint8_t opening[20] = "RoF ID Req Frame\2\1\0";
	uint8_t buf[20];
	SSL *ssl;

	use(NULL, host(7, NULL, 0));
	p.b = lone_listen(&p.cfg_b, 0);
	cr_assert_eq(lone_input(p.b, 0, opening, sizeof(opening)), 20);
	cr_assert_eq(lone_output(p.b, buf, sizeof(buf)), 20);
	SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
	cr_assert(SSL_CTX_set_ciphersuites(ctx, "TLS_AES_256_GCM_SHA384"));
	SSL_CTX_set_psk_use_session_callback(ctx, client_psk);
	ssl = loose_end(ctx);
	SSL_set_connect_state(ssl);
	while (SSL_do_handshake(ssl) != 1) {
		cr_assert_gt(pass(ssl, p.b), 0);
		cr_assert_gt(pass_back(p.b, ssl), 0);
	}
	cr_assert_gt(pass(ssl, p.b), 0); /* Finished */
	cr_assert_not(lone_handshakes(p.b));
	return ssl;
}

/* The client makes the responder compute new keys. */
Test(exchange_identity, key_updates_are_refused)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl = client_connect(ctx);

	cr_assert_eq(SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
	SSL_do_handshake(ssl);
	cr_assert_eq(pass(ssl, p.b), -ROFX_TLS);
	cr_assert_eq(lone_event(p.b), ROFX_EV_FAILED);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
}

/* The alert says that the client sends nothing more. The end of the stream is that of TCP. Bytes
 * after the alert are ignored, and take no memory (RFC 8446, section 6.1). */
Test(exchange_identity, an_end_of_tls_is_no_failure)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl = client_connect(ctx);
	uint8_t noise[4096] = {23, 3, 3, 15};
	size_t before;

	SSL_shutdown(ssl);
	cr_assert_gt(pass(ssl, p.b), 0);
	cr_assert_eq(lone_event(p.b), ROFX_EV_NONE);
	before = heap_bytes();
	for (unsigned i = 0; i < 1024; i++)
		cr_assert_eq(lone_input(p.b, 0, noise, sizeof(noise)), sizeof(noise));
	cr_assert_leq(heap_bytes(), before + 65536);
	cr_assert_eq(lone_event(p.b), ROFX_EV_NONE);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
}

Test(exchange_identity, bytes_beside_the_end_of_tls_are_ignored)
{
	static const uint8_t noise[4096] = {23, 3, 3, 15};
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl = client_connect(ctx);

	SSL_shutdown(ssl);
	cr_assert_eq(BIO_write(SSL_get_wbio(ssl), noise, 2048), 2048);
	cr_assert_gt(pass(ssl, p.b), 2048);
	cr_assert_eq(lone_event(p.b), ROFX_EV_NONE);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
}

/* ---- Servers that ignore the initiator's key ---- */

/* RFC 8446, section 2.2: a server that selects no pre-shared key proves its identity by a
 * certificate, which an initiator with a key has no reason to trust. */
Test(exchange_identity, an_initiator_with_a_key_accepts_no_certificate)
{
	struct rofx_tls_config c2;

	issue("IP:10.0.0.1", "IP:10.0.0.2");
	c2 = certified(&cert2);
	use(host(7, NULL, 0), create(&c2));
	xp_refuse(&p, &s1, ROFX_TLS, ROFX_TLS);
}

/* An impostor at the responder's address, with a certificate of its own. */
Test(exchange_identity, an_impostor_without_the_key_receives_no_frame)
{
	static const uint8_t reply[20] = "RoF ID Rep Frame\2\1\0";
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	uint8_t buf[4096];
	BIO *bio;
	X509 *cert;
	EVP_PKEY *pkey;
	SSL *ssl;
	int err_no;

	issue("IP:10.0.0.1", "IP:10.0.0.2");
	bio = BIO_new_mem_buf(cert2.certificate, -1);
	cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	BIO_free(bio);
	bio = BIO_new_mem_buf(cert2.private_key, -1);
	pkey = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
	BIO_free(bio);
	cr_assert_eq(SSL_CTX_use_certificate(ctx, cert), 1);
	cr_assert_eq(SSL_CTX_use_PrivateKey(ctx, pkey), 1);
	cr_assert(SSL_CTX_set_ciphersuites(ctx, "TLS_AES_256_GCM_SHA384"));
	ssl = loose_end(ctx);
	SSL_set_accept_state(ssl);
	use(host(7, NULL, 0), NULL);
	p.a = lone_connect(&p.cfg_a, 0, &s1, "hello", 6, &err_no);
	cr_assert_eq(lone_output(p.a, buf, 20), 20);
	cr_assert_eq(lone_input(p.a, 0, reply, sizeof(reply)), 20);
	while (lone_event(p.a) == ROFX_EV_NONE) {
		cr_assert_gt(pass_back(p.a, ssl), 0);
		SSL_do_handshake(ssl);
		if (pass(ssl, p.a) < 0)
			break;
	}
	cr_assert_eq(lone_why(p.a), ROFX_TLS);
	pass_back(p.a, ssl);
	cr_assert_leq(SSL_read(ssl, buf, sizeof(buf)), 0);
	X509_free(cert);
	EVP_PKEY_free(pkey);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
}

/* ---- PSP that is required ---- */

Test(exchange_identity, required_psp_refuses_streams_in_clear)
{
	p.cfg_b.require_psp = true;
	xp_refuse(&p, &s1, ROFX_TLS_NEEDED, ROFX_TLS_NEEDED);
}

Test(exchange_identity, required_psp_refuses_requests_without_crypto)
{
	use(host(1, NULL, 0), host(1, NULL, 0));
	p.cfg_b.require_psp = true;
	s1.psp = ROFX_PSP(PSP_NO_CRYPTO);
	s2.psp = ROFX_PSP_KEYED;
	xp_start(&p, &s1);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST);
	cr_assert_eq(lone_accept(p.b, 0, &s2, NULL, 0), -EPROTO);
	cr_assert_eq(lone_why(p.b), ROFX_PSP_REQUIRED);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_REJECTED);
	cr_assert_eq(lone_why(p.a), ROFX_PSP_REQUIRED);
}

/* ---- Configuration ---- */

static void
impossible(const struct rofx_tls_config *cfg, const char *sentence)
{
	cr_assert_null(rofx_tls_create(cfg, err, sizeof(err)));
	cr_assert_str_eq(err, sentence);
}

Test(exchange_identity, configurations_that_cannot_be)
{
	struct rofx_peer twice[] = {peer("10.0.0.0", 24, 1), peer("10.0.0.77", 24, 2)};
	struct rofx_peer bad = peer("10.0.0.1", 33, 1);
	struct rofx_tls_config cfg = {.peers = &bad, .npeers = 1};

	impossible(&cfg, "peer 10.0.0.1/33: the prefix is longer than the address");
	bad = peer("::", 0, 1);
	impossible(&cfg, "peer ::/0: a prefix of no bits means all peers");
	bad = peer("10.0.0.1", 32, 1);
	bad.psk_len = 15;
	impossible(&cfg, "peer 10.0.0.1/32: a pre-shared key has 16 to 64 bytes");
	bad.psk_len = 0;
	impossible(&cfg, "peer 10.0.0.1/32: there is neither a pre-shared key nor a certificate");
	bad.psk_len = 32;
	bad.name = "a";
	impossible(
		&cfg, "peer 10.0.0.1/32: a name belongs to a certificate, not to a pre-shared key");
	cfg.peers = twice;
	cfg.npeers = 2;
	impossible(&cfg, "peer 10.0.0.77/24: there are two entries for it");
	cfg.npeers = 0;
	impossible(&cfg, "there is neither a pre-shared key nor a certificate");
	issue("IP:10.0.0.1", "IP:10.0.0.2");
	cfg = certified(&cert1);
	cfg.psk = key[1];
	cfg.psk_len = 32;
	impossible(&cfg, "a pre-shared key for all peers and a certificate exclude each other");
}
