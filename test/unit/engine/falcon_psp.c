/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both sides agree on the protection of a connection's packets: the strongest version that is on
 * both lists, and never one that is missing on a list (doc/falcon-cm.md, section 6).
 */
#include <criterion/criterion.h>
#include <rte_mbuf.h>
#include <string.h>

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

Test(engine_falcon_psp, nothing_only_if_both_lists_say_so)
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

Test(engine_falcon_psp, nobody_goes_below_what_is_on_his_list)
{
	no_agreement(GCM256, GCM128 | GMAC256 | NONE);
}

Test(engine_falcon_psp, a_peer_without_protection_is_refused)
{
	no_agreement(NONE, GCM128);
}
