/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rules by which two sides become one connection, or are refused (doc/falcon-cm.md, section 6).
 */
#include "exchange_pair.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static struct rofx_side s1, s2;
static struct xpair p;

static void
init(void)
{
	s1 = xp_side(1);
	s2 = xp_side(2);
	memset(&p, 0, sizeof(p));
}

static void
fini(void)
{
	xp_end(&p);
}

TestSuite(exchange_rules, .init = init, .fini = fini);

/* ---- Agreed parameters ---- */

Test(exchange_rules, smaller_mtu_wins)
{
	s1.mtu = 1024;
	s2.mtu = 8192;
	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_agreed(p.a)->mtu, 1024);
	cr_assert_eq(lone_agreed(p.b)->mtu, 1024);
	xp_end(&p);
	s1.mtu = 8192;
	s2.mtu = 256;
	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_agreed(p.a)->mtu, 256);
	cr_assert_eq(lone_agreed(p.b)->mtu, 256);
}

Test(exchange_rules, fewer_flows_win)
{
	s2.flows = 1;
	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_agreed(p.a)->flows, 1);
	cr_assert_eq(lone_agreed(p.b)->flows, 1);
}

Test(exchange_rules, responder_reduces_depths)
{
	s1.ird = 3, s1.ord = 40;
	s2.ird = 7, s2.ord = 50;
	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_agreed(p.a)->ird, 3);
	cr_assert_eq(lone_agreed(p.a)->ord, 7);
	cr_assert_eq(lone_agreed(p.b)->ird, 7);
	cr_assert_eq(lone_agreed(p.b)->ord, 3);
}

Test(exchange_rules, responder_holds_no_more_than_the_initiator_reads)
{
	s1.ird = 0, s1.ord = 2;
	s2.ird = ROFX_DEPTH_MAX, s2.ord = ROFX_DEPTH_MAX;
	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_agreed(p.a)->ird, 0);
	cr_assert_eq(lone_agreed(p.a)->ord, 2);
	cr_assert_eq(lone_agreed(p.b)->ird, 2);
	cr_assert_eq(lone_agreed(p.b)->ord, 0);
}

Test(exchange_rules, window_of_a_sender_is_what_the_peer_receives)
{
	s1.request_window = 16, s1.data_window = 32;
	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_agreed(p.b)->tx_window, 16);
	cr_assert_eq(lone_agreed(p.a)->tx_window, 0); /* the full size of the bitmaps */
}

Test(exchange_rules, rnr_wish_is_the_peers_and_code_ours)
{
	s1.rnr_retry = 3, s1.rnr_code = 5;
	s2.rnr_retry = 7, s2.rnr_code = 20;
	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_agreed(p.a)->rnr_retry, 7);
	cr_assert_eq(lone_agreed(p.a)->rnr_code, 5);
	cr_assert_eq(lone_agreed(p.b)->rnr_retry, 3);
	cr_assert_eq(lone_agreed(p.b)->rnr_code, 20);
}

Test(exchange_rules, any_mode_is_the_initiators)
{
	s1.ordering = ROF_ORDER_NONE, s1.errors = ROF_ERRORS_COMPLETE;
	s2.ordering = ROFX_ANY, s2.errors = ROFX_ANY;
	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_agreed(p.a)->ordering, ROF_ORDER_NONE);
	cr_assert_eq(lone_agreed(p.b)->ordering, ROF_ORDER_NONE);
	cr_assert_eq(lone_agreed(p.b)->errors, ROF_ERRORS_COMPLETE);
}

Test(exchange_rules, cookie_goes_to_a_peer_that_requests_it)
{
	s2.has_pcid = true, s2.pcid = 0x0123456789abcdef;
	xp_establish(&p, &s1, &s2);
	cr_assert(lone_agreed(p.a)->peer.has_pcid);
	cr_assert_eq(lone_agreed(p.a)->peer.pcid, 0x0123456789abcdef);
	cr_assert_not(lone_agreed(p.b)->peer.has_pcid);
}

Test(exchange_rules, falcon_and_channel_are_filled_for_both_directions)
{
	struct fa_params a = {0}, b = {0};
	struct rof_chan_params ca = {0}, cb = {0};

	xp_establish(&p, &s1, &s2);
	rofx_fill_falcon(lone_agreed(p.a), &a);
	rofx_fill_falcon(lone_agreed(p.b), &b);
	cr_assert_eq(a.cid, s1.cid);
	cr_assert_eq(a.peer_cid, s2.cid);
	cr_assert_eq(a.peer_function, s2.function);
	cr_assert_eq(a.protocol, 2);
	cr_assert(a.ordered);
	cr_assert_eq(a.tx_request_psn, s1.request_psn);
	cr_assert_eq(a.tx_data_psn, s1.data_psn);
	cr_assert_eq(a.tx_rsn, s1.rsn);
	cr_assert_eq(a.rx_request_psn, b.tx_request_psn);
	cr_assert_eq(a.rx_data_psn, b.tx_data_psn);
	cr_assert_eq(a.rx_rsn, b.tx_rsn);
	cr_assert_eq(b.rx_rsn, s1.rsn);
	cr_assert_eq(b.peer_cid, s1.cid);
	cr_assert_geq(a.mtu, 4097u + ROF_MAX);
	cr_assert_eq(a.mtu, b.mtu);
	cr_assert_eq(a.flows, FA_FLOWS_MAX);
	rofx_fill_channel(lone_agreed(p.a), &ca);
	rofx_fill_channel(lone_agreed(p.b), &cb);
	cr_assert_eq(ca.mtu, 4097);
	cr_assert_eq(ca.tx_rsn, s1.rsn);
	cr_assert_eq(cb.tx_rsn, s2.rsn);
	cr_assert_eq(ca.rnr_code, s1.rnr_code);
	cr_assert_eq(ca.rnr_retry, s2.rnr_retry);
	cr_assert_eq(ca.transport, ROF_RC);
}

Test(exchange_rules, unordered_modes_have_an_unordered_connection)
{
	struct fa_params a = {.ordered = true};

	s1.ordering = s2.ordering = ROF_ORDER_WEAK;
	xp_establish(&p, &s1, &s2);
	rofx_fill_falcon(lone_agreed(p.a), &a);
	cr_assert_not(a.ordered);
}

Test(exchange_rules, private_data_of_any_length_up_to_512)
{
	static uint8_t data[ROFX_PRIVATE_MAX + 1];
	struct rofx_config cfg = {0};
	int err;

	memset(data, 0xa5, sizeof(data));
	cr_assert_null(lone_connect(&cfg, 0, &s1, data, ROFX_PRIVATE_MAX + 1, &err));
	cr_assert_eq(err, -EMSGSIZE);
	p.a = lone_connect(&cfg, 0, &s1, data, ROFX_PRIVATE_MAX, &err);
	p.b = lone_listen(&cfg, 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST);
	cr_assert_eq(lone_request(p.b)->private_len, ROFX_PRIVATE_MAX);
	cr_assert_eq(memcmp(lone_request(p.b)->private_data, data, ROFX_PRIVATE_MAX), 0);
	cr_assert_eq(lone_accept(p.b, 0, &s2, data, ROFX_PRIVATE_MAX + 1), -EMSGSIZE);
	cr_assert_eq(lone_accept(p.b, 0, &s2, data, ROFX_PRIVATE_MAX), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_AGREED);
	cr_assert_eq(lone_agreed(p.a)->private_len, ROFX_PRIVATE_MAX);
}

/* ---- Refusals ---- */

/* The responder accepts with `theirs`, which does not match the request; both sides get the
 * reason. */
static void
assert_refused(enum rofx_reason why)
{
	xp_start(&p, &s1);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST);
	cr_assert_eq(lone_accept(p.b, 0, &s2, NULL, 0), -EPROTO);
	cr_assert_eq(lone_event(p.b), ROFX_EV_FAILED);
	cr_assert_eq(lone_why(p.b), why);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_REJECTED);
	cr_assert_eq(lone_why(p.a), why);
	cr_assert_eq(lone_event(p.a), ROFX_EV_NONE);
}

Test(exchange_rules, refused_for_the_transport)
{
	s2.transport = ROF_XRC;
	assert_refused(ROFX_TRANSPORT);
}

Test(exchange_rules, refused_for_the_ordering)
{
	s2.ordering = ROF_ORDER_WEAK;
	assert_refused(ROFX_ORDERING);
}

Test(exchange_rules, refused_for_the_error_mode)
{
	s1.errors = ROF_ERRORS_COMPLETE;
	assert_refused(ROFX_ERRORS);
}

Test(exchange_rules, refused_for_tunnel_mode)
{
	s1.tunnel = true;
	assert_refused(ROFX_ENCAPSULATION);
}

Test(exchange_rules, refused_when_the_responder_insists_on_keys_in_clear)
{
	s2.psp = ROFX_PSP_KEYED;
	assert_refused(ROFX_CRYPTO_IN_CLEAR);
}

static void
address_each_other(void)
{
	s1.addressing = s2.addressing = ROFX_ADDRESS;
	s1.to_qpn = s2.qpn, s1.to_gid = s2.gid;
	s2.to_qpn = s1.qpn, s2.to_gid = s1.gid;
}

Test(exchange_rules, addressed_qp_waits_for_another_qp)
{
	address_each_other();
	s2.to_qpn++;
	assert_refused(ROFX_NO_QP);
}

Test(exchange_rules, addressed_qp_waits_for_another_host)
{
	address_each_other();
	s2.to_gid.b[1] = 1;
	assert_refused(ROFX_NO_QP);
}

Test(exchange_rules, addressed_qp_is_another)
{
	address_each_other();
	s2.qpn++;
	assert_refused(ROFX_NO_QP);
}

Test(exchange_rules, addressed_host_is_another)
{
	address_each_other();
	s2.gid.b[1] = 1;
	assert_refused(ROFX_NO_QP);
}

Test(exchange_rules, qps_that_address_each_other_connect)
{
	address_each_other();
	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_request(p.b)->peer.addressing, ROFX_ADDRESS);
	cr_assert_eq(lone_request(p.b)->peer.to_qpn, s2.qpn);
}

/* The initiator refuses the responder's ACCEPT with byte `at` of its body changed. */
static void
assert_not_believed(unsigned at, uint8_t value)
{
	uint8_t buf[512];
	size_t n;

	xp_start(&p, &s1);
	xp_run(&p);
	cr_assert_eq(lone_accept(p.b, 0, &s2, NULL, 0), 0);
	n = lone_output(p.b, buf, sizeof(buf));
	cr_assert_neq(buf[12 + at], value);
	buf[12 + at] = value;
	cr_assert_eq(lone_input(p.a, 0, buf, n), -ROFX_CONTRADICTION);
	cr_assert_eq(lone_event(p.a), ROFX_EV_FAILED);
	xp_end(&p);
}

Test(exchange_rules, answer_of_another_qp_or_host_is_refused)
{
	address_each_other();
	assert_not_believed(11, 3);
	assert_not_believed(31, 3);
}

Test(exchange_rules, more_flows_than_offered_are_refused)
{
	s1.flows = 1;
	assert_not_believed(68, FA_FLOWS_MAX);
}

Test(exchange_rules, a_cookie_that_is_not_requested_is_not_sent)
{
	s1.pcid = 0x1122334455667788;
	xp_start(&p, &s1);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST);
	cr_assert_eq(lone_request(p.b)->peer.pcid, 0);
}

Test(exchange_rules, keys_asked_for_in_clear_are_refused)
{
	uint8_t buf[512];
	size_t n;

	xp_start(&p, &s1);
	n = lone_output(p.a, buf, sizeof(buf));
	buf[32 + 79] |= 1 << PSP_AES_GCM_128; /* as a peer that violates the protocol might */
	cr_assert_eq(lone_input(p.b, 0, buf, n), (int)n);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST);
	cr_assert_eq(lone_accept(p.b, 0, &s2, NULL, 0), -EPROTO);
	cr_assert_eq(lone_why(p.b), ROFX_CRYPTO_IN_CLEAR);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_REJECTED);
	cr_assert_eq(lone_why(p.a), ROFX_CRYPTO_IN_CLEAR);
}

Test(exchange_rules, a_clear_stream_never_offers_keys)
{
	struct rofx_config cfg = {0};
	int err;

	s1.psp = ROFX_PSP_KEYED;
	cr_assert_null(lone_connect(&cfg, 0, &s1, NULL, 0, &err));
	cr_assert_eq(err, -EINVAL);
	s1.psp = ROFX_PSP_KEYED | ROFX_PSP(PSP_NO_CRYPTO);
	s2.psp = s1.psp;
	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_request(p.b)->peer.psp, ROFX_PSP(PSP_NO_CRYPTO));
	cr_assert_eq(lone_agreed(p.a)->psp, PSP_NO_CRYPTO);
}

Test(exchange_rules, the_application_refuses_in_its_own_words)
{
	xp_start(&p, &s1);
	xp_run(&p);
	cr_assert_eq(lone_reject(p.b, ROFX_REFUSED, "go away", 8), 0);
	xp_run(&p);
	cr_assert_eq(lone_event(p.a), ROFX_EV_REJECTED);
	cr_assert_eq(lone_why(p.a), ROFX_REFUSED);
	cr_assert_str_eq((const char *)lone_agreed(p.a)->private_data, "go away");
	cr_assert_eq(lone_reject(p.b, ROFX_REFUSED, NULL, 0), -EINVAL);
}

Test(exchange_rules, each_reason_of_the_wire_comes_across)
{
	static const enum rofx_reason whys[] = {ROFX_REFUSED, ROFX_CROSSED, ROFX_NO_QP,
		ROFX_NO_SERVICE, ROFX_NO_RESOURCE, ROFX_TRANSPORT, ROFX_ORDERING, ROFX_ERRORS,
		ROFX_ENCAPSULATION, ROFX_NO_PSP, ROFX_NOT_READY};

	for (unsigned i = 0; i < sizeof(whys) / sizeof(whys[0]); i++) {
		xp_start(&p, &s1);
		xp_run(&p);
		cr_assert_eq(lone_reject(p.b, whys[i], NULL, 0), 0);
		xp_run(&p);
		cr_assert_eq(lone_why(p.a), whys[i]);
		xp_end(&p);
	}
}

Test(exchange_rules, a_side_that_cannot_be_is_not_sent)
{
	struct rofx_config cfg = {0};
	struct rofx_side bad = s1;
	int err;

	bad.cid = 0x1000000;
	cr_assert_null(lone_connect(&cfg, 0, &bad, NULL, 0, &err));
	cr_assert_eq(err, -EINVAL);
	bad = s1;
	bad.ordering = ROFX_ANY;
	cr_assert_null(lone_connect(&cfg, 0, &bad, NULL, 0, &err));
	bad = s1;
	bad.spi = 0;
	cr_assert_null(lone_connect(&cfg, 0, &bad, NULL, 0, &err));
	xp_start(&p, &s1);
	xp_run(&p);
	cr_assert_eq(lone_accept(p.b, 0, &bad, NULL, 0), -EINVAL);
	cr_assert_eq(lone_accept(p.b, 0, &s2, NULL, 0), 0);
	cr_assert_eq(lone_accept(p.b, 0, &s2, NULL, 0), -EINVAL);
}

/* ---- Crossing attempts (section 9) ---- */

Test(exchange_rules, of_two_crossing_attempts_that_of_the_greater_address_survives)
{
	cr_assert_eq(rofx_cross(&s1, &s2), ROFX_THEIRS);
	cr_assert_eq(rofx_cross(&s2, &s1), ROFX_OURS);
	s1.gid.b[0] = 0xfe;
	cr_assert_eq(rofx_cross(&s1, &s2), ROFX_OURS);
	cr_assert_eq(rofx_cross(&s2, &s1), ROFX_THEIRS);
}

Test(exchange_rules, on_one_host_the_greater_qpn_survives)
{
	s1.gid = s2.gid;
	cr_assert_eq(rofx_cross(&s1, &s2), ROFX_THEIRS);
	cr_assert_eq(rofx_cross(&s2, &s1), ROFX_OURS);
	cr_assert_eq(rofx_cross(&s1, &s1), ROFX_SELF);
}

/* Both sides send a request before either receives the other's: exactly one connection results. */
Test(exchange_rules, crossing_attempts_end_in_one_connection)
{
	struct xpair q = {0};

	address_each_other();
	xp_start(&p, &s1); /* host 1 requests host 2 */
	xp_start(&q, &s2); /* host 2 requests host 1 */
	xp_run(&p);
	xp_run(&q);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST);
	cr_assert_eq(lone_event(q.b), ROFX_EV_REQUEST);
	/* at host 2: its own attempt continues */
	cr_assert_eq(rofx_cross(&s2, &lone_request(p.b)->peer), ROFX_OURS);
	cr_assert_eq(lone_reject(p.b, ROFX_CROSSED, NULL, 0), 0);
	/* at host 1 */
	cr_assert_eq(rofx_cross(&s1, &lone_request(q.b)->peer), ROFX_THEIRS);
	cr_assert_eq(lone_accept(q.b, 0, &s1, NULL, 0), 0);
	xp_run(&p);
	xp_run(&q);
	cr_assert_eq(lone_event(p.a), ROFX_EV_REJECTED);
	cr_assert_eq(lone_why(p.a), ROFX_CROSSED);
	cr_assert_eq(lone_event(q.a), ROFX_EV_AGREED);
	cr_assert_eq(lone_ready(q.a), 0);
	xp_run(&q);
	cr_assert_eq(lone_event(q.b), ROFX_EV_ESTABLISHED);
	xp_end(&q);
}
