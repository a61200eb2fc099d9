/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exchanges of Falcon before their first request: they take no place among the connections, whoever
 * holds them open, and their handshakes of TLS take turns. A raw peer has the TCP connections; one
 * of them may be an honest host, whose exchange the test runs.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "../../../lib/base/log.h"
#include "../../../lib/base/mem.h"
#include "../../support/lone.h"
#include "../rof/exchange_certs.h"
#include "pair.h"
#include "rawpeer.h"

#include "../../../lib/engine/common/instance.h"

#define PEER_ADDR "10.0.0.66"
#define PORT      4795 /* [falcon] port */
#define PLACES    2    /* Falcon connections of the victim */
#define HALVES    6
#define TURNS     2000u
#define STEP      1000u /* ns */

static struct raw_switch sw;
static struct eng *victim;
static struct eng_config cfg;
static struct raw_conn half[HALVES], host;
static uint64_t now;
static struct rofx_tls *ours; /* the identity of the peer */

TestSuite(engine_falcon_halves, .init = pair_eal);

static uint64_t
virtual_clock(void)
{
	return now;
}

static void
turn(void)
{
	now += STEP;
	eng_poll(victim, 0, now);
	raw_switch_turn(&sw);
}

static void
turns(unsigned n)
{
	while (n-- > 0)
		turn();
}

static void
start(struct rofx_tls *theirs)
{
	char err[256];

	raw_switch_init(&sw);
	sw.addr = addr(PEER_ADDR);
	sw.victim = addr(PAIR_ADDR_A);
	eng_config_default(&cfg);
	cfg.nports = cfg.nifs = 1;
	cfg.ports[0] = (struct eng_port_config){
		.port_id = sw.port[0], .mtu = 1500, .rxd = 512, .txd = 512};
	cfg.ifs[0] = (struct eng_if_config){
		.vlan = ETH_NO_VLAN, .addr = addr(PAIR_ADDR_A), .prefix = 24};
	cfg.limits.rx_mbufs = cfg.limits.tx_mbufs = 1024;
	cfg.limits.conns = 64;
	cfg.falcon.enabled = true;
	cfg.falcon.stack.max_conns = PLACES;
	cfg.falcon.tls = theirs;
	victim = eng_create(&cfg, err, sizeof(err));
	cr_assert_not_null(victim, "%s", err);
	now = eng_clock();
	victim->clock = virtual_clock;
	raw_switch_greet(&sw);
	turns(5);
}

static struct eng_falcon_view
look(void)
{
	struct eng_falcon_view v;

	eng_falcon_look(victim, &v);
	return v;
}

static void
stop(void)
{
	struct eng_totals t;

	while (sw.conns != NULL) {
		raw_reset(sw.conns);
		raw_forget(sw.conns);
	}
	turns(20);
	eng_totals(victim, &t);
	cr_assert_eq(t.conns, 0, "%u connections are left", t.conns);
	cr_assert_eq(look().reserved + look().starting + look().waiting, 0);
	eng_destroy(victim);
	raw_switch_fini(&sw);
	cr_assert_eq(eng_pools_waiting(), 0, "mbufs are still out");
}

static void
open_conn(struct raw_conn *c)
{
	raw_connect(&sw, c, PORT);
	for (unsigned i = 0; i < TURNS && !c->up; i++)
		turn();
	cr_assert(c->up);
}

static const struct rofx_side request = {.transport = ROF_RC,
	.addressing = ROFX_ADDRESS,
	.qpn = 5,
	.to_qpn = 77,
	.mtu = 1024,
	.request_window = FA_REQUEST_WINDOW,
	.data_window = FA_DATA_WINDOW,
	.flows = 1,
	.ttl = 64,
	.psp = ROFX_PSP(PSP_NO_CRYPTO),
	.spi = 9};

/* Begins an exchange of the peer, with `ours` or in clear. */
static struct lone *
ask(void)
{
	struct rofx_config c = {.tls = ours, .local = &sw.addr, .peer = &sw.victim};
	struct rofx_side s = request;
	struct lone *x;
	int err;

	s.gid = sw.addr;
	s.to_gid = sw.victim;
	x = lone_connect(&c, now, &s, NULL, 0, &err);
	cr_assert_not_null(x, "%d", err);
	return x;
}

/* Moves the bytes of an exchange for one turn. */
static void
carry(struct lone *x, struct raw_conn *c)
{
	uint8_t buf[8192];
	size_t n = lone_output(x, buf, sizeof(buf));

	if (n > 0 && !c->rst)
		raw_send(c, buf, n, RAW_MSS);
	turn();
	if (c->got > c->taken)
		lone_input(x, now, c->stream + c->taken, c->got - c->taken);
	c->taken = c->got;
}

/* Runs an exchange of the peer to its end. Returns the reason for which it ended. */
static enum rofx_reason
outcome(struct raw_conn *c)
{
	enum rofx_event ev = ROFX_EV_NONE;
	enum rofx_reason why;
	struct lone *x = ask();

	open_conn(c);
	for (unsigned i = 0; i < TURNS && ev == ROFX_EV_NONE; i++) {
		carry(x, c);
		if (c->fin_in || c->rst)
			lone_lost(x);
		ev = lone_event(x);
	}
	cr_assert(ev == ROFX_EV_REJECTED || ev == ROFX_EV_FAILED, "event %d", ev);
	why = lone_why(x);
	lone_destroy(x);
	return why;
}

/* Sends the first `len` bytes of an exchange, or all but the last -len. */
static void
begin_half(struct raw_conn *c, int len)
{
	struct lone *x = ask();
	uint8_t buf[8192];
	size_t n = lone_output(x, buf, sizeof(buf));

	lone_destroy(x);
	open_conn(c);
	raw_send(c, buf, len > 0 ? (size_t)len : n - (size_t)-len, RAW_MSS);
	turns(20);
}

/* ---- Places ---- */

static void
places_stay_free(void)
{
	static const int sent[HALVES] = {1, 1, 16, 20, 40, -1};

	for (unsigned i = 0; i < HALVES; i++)
		begin_half(&half[i], sent[i]);
	cr_assert_eq(look().most, PLACES);
	cr_assert_eq(look().reserved, 0, "%u places are taken", look().reserved);
	cr_assert_eq(look().starting, HALVES);
	/* No QP 77 exists, and the request arrived where that is found out. */
	cr_assert_eq(outcome(&host), ROFX_NO_QP);
	cr_assert_eq(pair_counter(victim, "rofx", "ROFX_NO_RESOURCE"), 0);
	/* The peer has not closed its direction. */
	turns(20);
	cr_assert_eq(look().reserved, 0);
	cr_assert_eq(look().starting, HALVES);
	stop();
}

Test(engine_falcon_halves, half_done_exchanges_take_no_place)
{
	ours = pair_tls('k');
	start(pair_tls('k'));
	places_stay_free();
}

Test(engine_falcon_halves, half_done_exchanges_in_clear_take_no_place)
{
	ours = NULL;
	start(NULL);
	places_stay_free();
}

Test(engine_falcon_halves, half_done_exchanges_end_after_their_time)
{
	ours = pair_tls('k');
	start(pair_tls('k'));
	for (unsigned i = 0; i < HALVES; i++)
		begin_half(&half[i], i % 2 ? 1 : 60);
	cr_assert_eq(look().starting, HALVES);
	now += 9000000000;
	turns(100);
	cr_assert_eq(look().starting, HALVES);
	for (unsigned i = 0; i < 3000; i++) {
		now += 1000000;
		turn();
	}
	cr_assert_eq(look().starting, 0);
	stop();
}

/* ---- Versions ---- */

static char told[256];

static void
listen_to_log(enum sk_log_level level, const char *line)
{
	if (level == SK_LOG_WARNING && strstr(line, "version") != NULL)
		snprintf(told, sizeof(told), "%s", line);
}

/* A peer of the version that had a TCP connection for each Falcon connection. */
Test(engine_falcon_halves, a_peer_of_the_old_version_is_refused_with_a_sentence)
{
	static const uint8_t old[] = "RoF ID Req Frame\1\0\0", answer[] = "RoF ID Rep Frame\2\0\20";

	ours = NULL;
	start(NULL);
	sk_log_set(SK_LOG_INFO, listen_to_log);
	open_conn(&host);
	raw_send(&host, old, sizeof(old), RAW_MSS);
	for (unsigned i = 0; i < TURNS && !host.fin_in; i++)
		turn();
	cr_assert(host.fin_in);
	cr_assert_eq(host.got, 20);
	cr_assert_arr_eq(host.stream, answer, 20);
	cr_assert_eq(pair_counter(victim, "rofx", "ROFX_BAD_VERSION"), 1);
	cr_assert_not_null(strstr(told, "makes connections by version 1 of the exchange, and this "
					"saker by version 2: install the same release on both"),
		"%s", told);
	sk_log_set(SK_LOG_INFO, NULL);
	stop();
}

/* ---- Identities ---- */

static struct rofx_tls *
one_peer(const char *text, uint8_t fill)
{
	uint8_t key[32];
	struct rofx_peer peer = {.prefix = 32, .psk = key, .psk_len = sizeof(key)};
	struct rofx_tls_config c = {.peers = &peer, .npeers = 1};
	struct rofx_tls *t;
	char err[128];

	memset(key, fill, sizeof(key));
	peer.addr = addr(text);
	t = rofx_tls_create(&c, err, sizeof(err));
	cr_assert_not_null(t, "%s", err);
	return t;
}

Test(engine_falcon_halves, the_key_belongs_to_the_peers_address)
{
	struct rofx_tls *right = one_peer(PEER_ADDR, 'r'), *other = one_peer("10.0.0.67", 'k');

	ours = pair_tls('k');
	start(right);
	cr_assert_eq(outcome(&host), ROFX_TLS);
	cr_assert_eq(pair_counter(victim, "rofx", "ROFX_TLS"), 1);
	ours = pair_tls('r');
	cr_assert_eq(outcome(&half[0]), ROFX_NO_QP);
	ours = NULL;
	cr_assert_eq(outcome(&half[1]), ROFX_TLS_NEEDED);
	cr_assert_eq(pair_counter(victim, "rofx", "ROFX_TLS_NEEDED"), 1);
	stop();
	rofx_tls_destroy(right);
	rofx_tls_destroy(other);
}

Test(engine_falcon_halves, a_peer_without_a_key_is_refused)
{
	struct rofx_tls *other = one_peer("10.0.0.67", 'k');

	ours = pair_tls('k');
	start(other);
	cr_assert_eq(outcome(&host), ROFX_NO_KEY);
	cr_assert_eq(pair_counter(victim, "rofx", "ROFX_NO_KEY"), 1);
	stop();
	rofx_tls_destroy(other);
}

static struct rofx_tls *
certified(struct xp_ca *ca, const char *name)
{
	struct xp_cert cert;
	struct rofx_tls_config c = {.ca = xp_ca_pem(ca)};
	struct rofx_tls *t;
	char err[128];

	xp_ca_issue(ca, &cert, name);
	c.certificate = cert.certificate;
	c.private_key = cert.private_key;
	t = rofx_tls_create(&c, err, sizeof(err));
	cr_assert_not_null(t, "%s", err);
	xp_cert_free(&cert);
	return t;
}

Test(engine_falcon_halves, the_certificate_has_the_peers_address)
{
	struct xp_ca *ca = xp_ca_new();
	struct rofx_tls *theirs = certified(ca, "IP:" PAIR_ADDR_A);

	ours = certified(ca, "IP:10.0.0.67");
	start(theirs);
	cr_assert_eq(outcome(&host), ROFX_TLS);
	cr_assert_eq(pair_counter(victim, "rofx", "ROFX_TLS_NAME"), 1);
	rofx_tls_destroy(ours);
	ours = certified(ca, "IP:" PEER_ADDR);
	cr_assert_eq(outcome(&half[0]), ROFX_NO_QP);
	stop();
	rofx_tls_destroy(ours);
	rofx_tls_destroy(theirs);
	xp_ca_free(ca);
}

/* ---- Turns ---- */

/* Leaves a ClientHello of each half at the victim, which has not polled since. */
static void
flood(void)
{
	uint8_t buf[8192];

	for (unsigned i = 0; i < HALVES; i++)
		open_conn(&half[i]);
	for (unsigned i = 0; i < HALVES; i++) {
		struct lone *x = ask();
		size_t n = lone_output(x, buf, sizeof(buf));

		raw_send(&half[i], buf, n, RAW_MSS);
		lone_destroy(x);
	}
}

static unsigned
answered(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < HALVES; i++)
		n += half[i].got > 100; /* more than the opening */
	return n;
}

Test(engine_falcon_halves, handshakes_take_turns_and_tls_pauses_between_them)
{
	ours = pair_tls('k');
	start(pair_tls('k'));
	flood();
	for (unsigned i = 0; i < HALVES; i++) {
		/* One handshake, which takes 100 us. */
		turn();
		cr_assert_eq(look().waiting, HALVES - 1 - i);
		now += 100000 - STEP;
		turns(3);
		cr_assert_eq(answered(), i + 1);
		/* No other one for three times as long. */
		for (unsigned k = 0; k < 296; k++) {
			turn();
			cr_assert_eq(look().waiting, HALVES - 1 - i, "after %u us", k);
		}
		now += 2 * STEP;
	}
	cr_assert_eq(answered(), HALVES);
	stop();
}

Test(engine_falcon_halves, one_that_ends_while_it_waits_leaves_the_queue)
{
	ours = pair_tls('k');
	start(pair_tls('k'));
	flood();
	turn();
	cr_assert_eq(look().waiting, HALVES - 1);
	now += 2000000; /* the pause is long */
	turn();
	raw_reset(&half[2]);
	raw_reset(&half[3]);
	turns(3);
	cr_assert_eq(look().waiting, HALVES - 3);
	cr_assert_eq(look().starting, HALVES - 2);
	stop();
}
