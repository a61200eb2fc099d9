/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The exchange in clear with a hostile peer: as responder, as initiator, and on an established
 * connection. The first bytes of the input choose the side, the cuts and the application's answers.
 * The results must be within bounds; an honest initiator must accept the reply to a request that
 * was accepted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../support/lone.h"

static void
check(bool ok)
{
	if (!ok)
		abort();
}

static struct rofx_side
side(unsigned n)
{
	return (struct rofx_side){.ordering = ROFX_ANY,
		.errors = ROFX_ANY,
		.cid = 100 + n,
		.qpn = 200 + n,
		.mtu = 4096,
		.ird = 16,
		.ord = 16,
		.request_window = 64,
		.data_window = 128,
		.flows = FA_FLOWS_MAX,
		.ttl = 64,
		.psp = ROFX_PSP(PSP_NO_CRYPTO) | ROFX_PSP_KEYED,
		.spi = 300 + n};
}

static void
check_agreed(const struct rofx_agreed *a)
{
	check(a->mtu >= ROF_MTU_MIN && a->mtu <= 4096);
	check(a->ird <= 16 && a->ord <= 16);
	check(a->flows == 1 || a->flows == FA_FLOWS_MAX);
	check(a->tx_window <= FA_REQUEST_WINDOW);
	check(a->psp == PSP_NO_CRYPTO);
	check(a->ordering <= ROF_ORDER_NONE && a->errors <= ROF_ERRORS_COMPLETE);
	check(a->peer.cid <= FALCON_CID_MAX && a->peer.qpn <= ROF_QPN_MAX);
	check(a->private_len <= ROFX_PRIVATE_MAX);
	for (unsigned i = 0; i < ROFX_PORTS && a->listed; i++)
		check(a->tx_ports[i] >= ROFX_PORT_BASE && a->tx_ports[i] % 4 == i % 4);
}

/* Gives the exchange a list of ports. */
static void
list_ports(struct lone *x)
{
	uint16_t ports[ROFX_PORTS];

	for (unsigned i = 0; i < ROFX_PORTS; i++)
		ports[i] = (uint16_t)(ROFX_PORT_BASE + 8 * i + i % 4);
	lone_list_ports(x, ports);
}

static void
drain(struct lone *x)
{
	uint8_t buf[100];
	size_t n;

	while ((n = lone_output(x, buf, sizeof(buf))) > 0)
		check(n <= sizeof(buf));
}

static void
answer_request(struct lone *x, uint8_t how)
{
	struct rofx_side s = side(2);

	check(lone_request(x)->private_len <= ROFX_PRIVATE_MAX);
	s.transport = lone_request(x)->peer.transport;
	s.tunnel = lone_request(x)->peer.tunnel;
	s.outer = lone_request(x)->peer.outer;
	s.qpn = lone_request(x)->peer.to_qpn;
	s.gid = lone_request(x)->peer.to_gid;
	s.to_qpn = lone_request(x)->peer.qpn;
	s.to_gid = lone_request(x)->peer.gid;
	if (how & 8)
		list_ports(x);
	if (how & 1)
		lone_later(x, 0, how);
	else if (how & 2)
		lone_reject(x, ROFX_NO_QP, "no", 2);
	else if (lone_accept(x, 0, &s, "yes", 3) == 0)
		check_agreed(lone_agreed(x));
}

/* Answers an event. Returns false when the exchange has ended. */
static bool
react(struct lone *x, uint8_t how)
{
	int rc;

	switch (lone_event(x)) {
	case ROFX_EV_REQUEST:
		answer_request(x, how);
		break;
	case ROFX_EV_LOOKUP:
		check(lone_question(x)->private_len <= ROFX_PRIVATE_MAX);
		check(lone_found(x, 7, 8, "here", 4) == 0);
		break;
	case ROFX_EV_AGREED:
		check_agreed(lone_agreed(x));
		if (how & 8)
			list_ports(x);
		check(lone_ready(x) == 0);
		if (how & 4)
			lone_trim(x);
		break;
	case ROFX_EV_ESTABLISHED:
		check_agreed(lone_agreed(x));
		if (how & 4)
			lone_trim(x);
		break;
	case ROFX_EV_REKEY:
		check(lone_agreed(x)->tx.version == lone_agreed(x)->psp);
		rc = lone_rekeyed(x);
		check(rc == 0 || rc == -ENOBUFS); /* nobody takes the answers */
		break;
	case ROFX_EV_FAILED:
		check(lone_why(x) != ROFX_NONE && lone_why(x) < rofx_reason_count);
		return false;
	case ROFX_EV_REJECTED:
	case ROFX_EV_FOUND:
		return false;
	default:
		break;
	}
	return true;
}

static struct lone *
start(uint8_t kind)
{
	struct rofx_config cfg = {0};
	struct rofx_question q = {.service = 7};
	struct rofx_side s = side(1);
	int err;

	s.ordering = s.errors = 0;
	if (kind == 0)
		return lone_connect(&cfg, 0, &s, "hi", 2, &err);
	if (kind == 1)
		return lone_lookup(&cfg, 0, &q, &err);
	return lone_listen(&cfg, 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct lone *x;
	size_t cut;

	if (len < 3)
		return 0;
	x = start(data[0] & 3);
	check(x != NULL);
	cut = data[1] + 1u;
	for (size_t at = 3; at < len; at += cut) {
		size_t n = len - at < cut ? len - at : cut;
		int took = lone_input(x, at, data + at, n);

		check(took == (int)n || (took < 0 && took == -(int)lone_why(x)));
		if (!react(x, data[2]))
			break;
		if (data[0] & 4)
			drain(x);
		if (data[0] & 8)
			lone_timeout(x, lone_deadline(x));
		if (data[0] & 16 && at < len / 2 && at + cut >= len / 2) {
			drain(x); /* what is lost with the carrier */
			lone_renew(x, &(struct rofx_config){0}, at, (data[0] & 3) < 2);
		}
	}
	lone_lost(x);
	react(x, data[2]);
	drain(x);
	lone_destroy(x);
	return 0;
}
