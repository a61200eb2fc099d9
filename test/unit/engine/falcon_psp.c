/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both sides agree on the protection of a connection's packets: the strongest version that is on
 * both lists, and never one that is missing on a list (doc/falcon-cm.md, section 6).
 */
#include <criterion/criterion.h>
#include <rte_mbuf.h>
#include <string.h>

#include "../../support/psk.h"
#include "falcon_rig.h"

#define FLAGS   (ETH_LEN + IP4_LEN + UDP_LEN + 3) /* of PSP: S, D, version, V, 1 */
#define GCM128  ROFX_PSP(PSP_AES_GCM_128)
#define GCM256  ROFX_PSP(PSP_AES_GCM_256)
#define GMAC128 ROFX_PSP(PSP_GMAC_128)
#define GMAC256 ROFX_PSP(PSP_GMAC_256)
#define NONE    ROFX_PSP(PSP_NO_CRYPTO)

TestSuite(engine_falcon_psp, .init = pair_eal);

static uint16_t lists[2];

static void
listed(struct eng_config *cfg, int node)
{
	cfg->falcon.psps = lists[node];
	cfg->falcon.tls = pair_tls('k');
}

/* Checks the PSP version of all Falcon packets that arrive at a node during a Write. */
static void
sealed_by(int node, uint8_t version)
{
	unsigned packets = 0;

	frig.keep = node;
	frig_works();
	frig.keep = -1;
	while (frig.nkept > 0) {
		struct rte_mbuf *m = frig.kept[--frig.nkept];
		const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);

		if (p[ETH_LEN + 9] == IP_UDP) {
			cr_assert_eq(p[FLAGS] >> 2 & 15, version);
			packets++;
		}
		rte_pktmbuf_free(m);
	}
	cr_assert_gt(packets, 10);
}

static void
agree(uint16_t first, uint16_t second, uint8_t version)
{
	lists[0] = first;
	lists[1] = second;
	frig_start(listed);
	frig_connect();
	sealed_by(0, version);
	sealed_by(1, version);
	frig_stop();
}

Test(engine_falcon_psp, the_strongest_that_both_have_is_taken)
{
	agree(GCM128 | GCM256 | GMAC128 | GMAC256 | NONE, GCM128 | GCM256, PSP_AES_GCM_256);
}

Test(engine_falcon_psp, encryption_goes_before_authentication)
{
	agree(GCM128 | GMAC256, GMAC256 | GCM128 | NONE, PSP_AES_GCM_128);
}

Test(engine_falcon_psp, a_list_of_one_decides)
{
	agree(GMAC128, GCM128 | GCM256 | GMAC128 | NONE, PSP_GMAC_128);
}

Test(engine_falcon_psp, no_encryption_only_if_both_lists_have_it)
{
	agree(GCM256 | NONE, GMAC128 | NONE, PSP_NO_CRYPTO);
}

static void
no_agreement(uint16_t first, uint16_t second)
{
	struct saker_conn_param p = {0};
	struct saker_event ev;

	lists[0] = first;
	lists[1] = second;
	frig_start(listed);
	frig_listen(1);
	frig_qp(0, SAKER_FALCON);
	frig_qp(1, SAKER_FALCON);
	frig_ask(&p);
	ev = frig_event(1, SAKER_EV_CONNECT_REQUEST);
	cr_assert_eq(saker_accept(frig.n[1].s, ev.request, frig.n[1].qp, &p), 0);
	cr_assert_lt(frig_event(0, SAKER_EV_UNREACHABLE).status, 0);
	cr_assert_eq(frig_count(0, "rofx", "ROFX_NO_PSP"), 1);
	cr_assert_eq(frig_count(1, "rofx", "ROFX_NO_PSP"), 1);
	frig_stop();
}

Test(engine_falcon_psp, no_side_uses_a_version_that_its_list_lacks)
{
	no_agreement(GCM256, GCM128 | GMAC256 | NONE);
}

Test(engine_falcon_psp, a_peer_without_protection_is_refused)
{
	no_agreement(NONE, GCM128);
}

/* ---- require-psp ---- */

static void
required(struct eng_config *cfg, int node)
{
	listed(cfg, node);
	cfg->falcon.require_psp = node == 1;
}

Test(engine_falcon_psp, required_psp_never_agrees_on_none)
{
	struct eng_falcon_view v;

	lists[0] = lists[1] = GCM128 | NONE;
	frig_start(required);
	frig_connect();
	sealed_by(1, PSP_AES_GCM_128);
	eng_falcon_look(frig.n[1].e, &v);
	cr_assert_eq(v.open[PSP_AES_GCM_128], 1);
	cr_assert_eq(v.open[PSP_NO_CRYPTO], 0);
	cr_assert_eq(v.reserved, 1);
	frig_stop();
}

Test(engine_falcon_psp, required_psp_refuses_a_peer_without_keys)
{
	struct saker_conn_param p = {0};
	struct saker_listener *l;
	struct saker_event ev;

	lists[0] = NONE;
	lists[1] = GCM128 | NONE;
	frig_start(required);
	l = frig_listen(1);
	frig_qp(0, SAKER_FALCON);
	frig_qp(1, SAKER_FALCON);
	frig_ask(&p);
	ev = frig_event(1, SAKER_EV_CONNECT_REQUEST);
	cr_assert_eq(saker_accept(frig.n[1].s, ev.request, frig.n[1].qp, &p), 0);
	frig_event(0, SAKER_EV_UNREACHABLE);
	cr_assert_eq(frig_count(1, "rofx", "ROFX_PSP_REQUIRED"), 1);
	cr_assert_eq(saker_unlisten(l), 0);
	frig_stop();
}

Test(engine_falcon_psp, required_psp_needs_keys_and_an_identity)
{
	struct eng_config cfg;
	char err[256];

	eng_config_default(&cfg);
	cfg.falcon.enabled = cfg.falcon.require_psp = true;
	cr_assert_null(eng_create(&cfg, err, sizeof(err)));
	cr_assert_str_eq(err, "Falcon: require-psp = yes, but psp lists no version with keys");
	cfg.falcon.psps = GCM128;
	cr_assert_null(eng_create(&cfg, err, sizeof(err)));
	cr_assert_str_eq(err,
		"Falcon: PSP with keys needs a pre-shared key or a certificate, under "
		"which the exchange transfers them");
}

/* ---- Reload ---- */

static struct rofx_tls *tls[2];

static void
loaded(struct eng_config *cfg, int node)
{
	cr_assert(psk_load(&tls[node], 1));
	cfg->falcon.psps = GCM256;
	cfg->falcon.rekey_ns = 100000000;
	cfg->falcon.tls = tls[node];
}

Test(engine_falcon_psp, a_reload_serves_later_connections_and_ends_none)
{
	struct saker_qp *first[2];
	struct saker_conn_param p = {0};
	struct saker_listener *l;

	frig_start(loaded);
	frig_connect();
	cr_assert(psk_load(&tls[1], 2));
	frig_works();
	for (int i = 0; i < 2; i++)
		first[i] = frig.n[i].qp;
	/* The peer has the old key. */
	l = frig_listen(1);
	frig_qp(0, SAKER_FALCON);
	frig_ask(&p);
	frig_event(0, SAKER_EV_UNREACHABLE);
	cr_assert_eq(frig_count(1, "rofx", "ROFX_TLS"), 1);
	cr_assert_eq(saker_unlisten(l), 0);
	cr_assert(psk_load(&tls[0], 2));
	frig_connect();
	frig_works();
	/* The first connection changes its keys as before. */
	for (int i = 0; i < 2; i++)
		frig.n[i].qp = first[i];
	frig_sleep(150000000);
	frig_works();
	cr_assert_geq(frig_count(0, "eng", "ENG_FALCON_REKEYED"), 1);
	frig_stop();
	rofx_tls_destroy(tls[0]);
	rofx_tls_destroy(tls[1]);
}
