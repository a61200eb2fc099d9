/* SPDX-License-Identifier: BSD-3-Clause */
/* The frames of doc/falcon-cm.md byte by byte, and invalid frames. */
#include "exchange_pair.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "../../../lib/base/mem.h"

#define OPENING 20
#define HEADER  12
#define BODY    (OPENING + HEADER)

/* The names of no exchange, of the initiator's and of the responder's. */
#define NONE 0, 0, 0, 0
#define OF_A 0x01, 0xc1, 0xd0, 0x01
#define OF_B 0x02, 0xc1, 0xd0, 0x02

/* "RoF ID Req Frame", version 2, in clear */
#define OPENING_REQ                                                                                \
	'R', 'o', 'F', ' ', 'I', 'D', ' ', 'R', 'e', 'q', ' ', 'F', 'r', 'a', 'm', 'e', 2
#define OPENING_REP                                                                                \
	'R', 'o', 'F', ' ', 'I', 'D', ' ', 'R', 'e', 'p', ' ', 'F', 'r', 'a', 'm', 'e', 2

/* clang-format off */
static const uint8_t connect_bytes[] = {
	OPENING_REQ, 0, 0, 0, /* clear, status, stage */
	2, 1, 0, 106, NONE, OF_A, /* version, CONNECT, length, names */
	0x00, 0, 0, 0, /* RC, listener, strong, verbs */
	0x00, 0xc1, 0xd0, 0x01, /* CID */
	0x00, 0x10, 0x00, 0x01, /* QPN */
	0x00, 0x00, 0x00, 0x00, /* requested QPN */
	0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, /* GID */
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* requested GID */
	0x10, 0x20, 0x30, 0x41, /* request PSN */
	0x50, 0x60, 0x70, 0x81, /* data PSN */
	0x90, 0xa0, 0xb0, 0xc1, /* RSN */
	0x10, 0x01, /* MTU 4097 */
	0x00, 0x11, 0x00, 0x21, /* IRD 17, ORD 33 */
	64, 128, 4, /* windows, flows */
	1, 13, 64, /* rnr_retry, RNR code, TTL */
	0x00, 0xf0, 0x00, 0x01, /* function */
	0, 0, /* transport mode, no PCID */
	0x80, 0x00, /* without crypto */
	0, 0, 0, 0, 0, 0, 0, 0, /* PCID */
	0x51, 0x00, 0x00, 0x01, /* SPI */
	0x00, 0x06, 0x01, 0x00, /* private data, lists of ports are known, reserved */
	0x1b, 0x58, 0xc3, 0x50, /* ports 7000, 50000 */
	'h', 'e', 'l', 'l', 'o', 0,
};

static const uint8_t accept_bytes[] = {
	OPENING_REP, 0, 0, 0,
	2, 2, 0, 136, OF_A, OF_B,
	0x00, 0, 0, 0,
	0x00, 0xc1, 0xd0, 0x02,
	0x00, 0x10, 0x00, 0x02,
	0x00, 0x10, 0x00, 0x01, /* the initiator's QPN */
	0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02,
	0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01,
	0x10, 0x20, 0x30, 0x42,
	0x50, 0x60, 0x70, 0x82,
	0x90, 0xa0, 0xb0, 0xc2,
	0x10, 0x01, /* the smaller MTU */
	0x00, 0x12, 0x00, 0x11, /* IRD 18; ORD 34, reduced to the initiator's IRD */
	64, 128, 4,
	2, 14, 64,
	0x00, 0xf0, 0x00, 0x02,
	0, 0,
	0x80, 0x00,
	0, 0, 0, 0, 0, 0, 0, 0,
	0x51, 0x00, 0x00, 0x02,
	0x00, 0x08, 0, 1, /* private data, key length, lists of ports are known */
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	'w', 'e', 'l', 'c', 'o', 'm', 'e', 0,
};
/* clang-format on */

static void
assert_output(struct lone *x, const uint8_t *want, size_t len)
{
	uint8_t buf[2048];
	size_t n = lone_output(x, buf, sizeof(buf));

	cr_assert_eq(n, len, "%zu bytes instead of %zu", n, len);
	for (size_t i = 0; i < n; i++)
		cr_assert_eq(buf[i], want[i], "byte %zu: %02x instead of %02x", i, buf[i], want[i]);
}

static struct lone *
initiator(void)
{
	struct rofx_config cfg = {0};
	struct rofx_side s1 = xp_side(1);
	int err;

	return lone_connect(&cfg, 0, &s1, "hello", 6, &err);
}

static struct lone *
responder(void)
{
	struct rofx_config cfg = {0};

	return lone_listen(&cfg, 0);
}

/* ---- Byte by byte ---- */

Test(exchange_frames, section_4_1_connect)
{
	struct lone *a = initiator();

	assert_output(a, connect_bytes, sizeof(connect_bytes));
	lone_destroy(a);
}

Test(exchange_frames, section_4_2_accept_and_4_3_ready)
{
	static const uint8_t ready[48] = {2, 3, 0, 36, OF_B, OF_A, 0, 1};
	struct rofx_side s2 = xp_side(2);
	struct lone *a = initiator(), *b = responder();
	uint8_t buf[256];

	lone_output(a, buf, sizeof(buf));
	cr_assert_eq(lone_input(b, 0, connect_bytes, sizeof(connect_bytes)), sizeof(connect_bytes));
	cr_assert_eq(lone_accept(b, 0, &s2, "welcome", 8), 0);
	assert_output(b, accept_bytes, sizeof(accept_bytes));
	cr_assert_eq(lone_input(a, 0, accept_bytes, sizeof(accept_bytes)), sizeof(accept_bytes));
	cr_assert_eq(lone_ready(a), 0);
	assert_output(a, ready, sizeof(ready));
	lone_destroy(a);
	lone_destroy(b);
}

/* ---- Lists of ports ---- */

#define LIST_LEN  (2 * ROFX_PORTS)
#define ACCEPT_AT (BODY + 128)  /* a list in an ACCEPT in transport mode */
#define READY_AT  (HEADER + 36) /* a list in a READY */

/* Fills in a valid list. `n` distinguishes two of them. */
static void
fill_list(uint16_t list[ROFX_PORTS], unsigned n)
{
	for (unsigned i = 0; i < ROFX_PORTS; i++)
		list[i] = (uint16_t)(ROFX_PORT_BASE + n * 0x100 + i * 4 + i % 4);
}

static void
assert_list(const uint8_t *at, const uint16_t list[ROFX_PORTS])
{
	for (unsigned i = 0; i < ROFX_PORTS; i++)
		cr_assert_eq(at[2 * i] << 8 | at[2 * i + 1], list[i], "entry %u", i);
}

/* Lets `b` accept `request` with `list`. Writes its bytes to `buf`. Returns their number. */
static size_t
answer(struct lone *b, const uint8_t *request, const uint16_t *list, uint8_t *buf, size_t room)
{
	struct rofx_side s2 = xp_side(2);

	cr_assert_eq(lone_input(b, 0, request, sizeof(connect_bytes)), sizeof(connect_bytes));
	cr_assert_eq(lone_event(b), ROFX_EV_REQUEST);
	lone_list_ports(b, list);
	cr_assert_eq(lone_accept(b, 0, &s2, "welcome", 8), 0);
	return lone_output(b, buf, room);
}

Test(exchange_frames, section_4_8_lists_of_ports)
{
	uint16_t la[ROFX_PORTS], lb[ROFX_PORTS];
	struct lone *a = initiator(), *b = responder();
	struct fa_params p = {0};
	uint8_t buf[512];
	size_t n;

	fill_list(la, 1);
	fill_list(lb, 2);
	lone_output(a, buf, sizeof(buf));
	n = answer(b, connect_bytes, lb, buf, sizeof(buf));
	cr_assert_eq(n, sizeof(accept_bytes) + LIST_LEN);
	cr_assert_eq(buf[OPENING + 3], 136 + LIST_LEN);
	cr_assert_eq(buf[BODY + 95], 2);
	assert_list(buf + ACCEPT_AT, lb);
	cr_assert_arr_eq(buf + ACCEPT_AT + LIST_LEN, "welcome", 8);
	cr_assert_eq((size_t)lone_input(a, 0, buf, n), n);
	cr_assert_eq(lone_event(a), ROFX_EV_AGREED);
	cr_assert(lone_agreed(a)->listed);
	cr_assert_arr_eq(lone_agreed(a)->tx_ports, lb, sizeof(lb));
	rofx_fill_falcon(lone_agreed(a), &p);
	cr_assert_eq(p.paths, lone_agreed(a)->tx_ports);
	lone_list_ports(a, la);
	cr_assert_eq(lone_ready(a), 0);
	n = lone_output(a, buf, sizeof(buf));
	cr_assert_eq(n, READY_AT + LIST_LEN);
	cr_assert_eq(buf[HEADER + 1], 2);
	assert_list(buf + READY_AT, la);
	rofx_fill_falcon(lone_agreed(b), &p);
	cr_assert_null(p.paths); /* it sends nothing yet */
	cr_assert_eq((size_t)lone_input(b, 0, buf, n), n);
	cr_assert_eq(lone_event(b), ROFX_EV_ESTABLISHED);
	lone_trim(b);
	cr_assert(lone_agreed(b)->listed);
	cr_assert_arr_eq(lone_agreed(b)->tx_ports, la, sizeof(la));
	lone_destroy(a);
	lone_destroy(b);
}

/* The address of tunnel mode comes first. */
Test(exchange_frames, section_4_8_a_list_behind_the_outer_address)
{
	struct rofx_side s1 = xp_side(1), s2 = xp_side(2);
	uint16_t list[ROFX_PORTS];
	struct xpair p = {0};
	uint8_t buf[512];
	size_t n;

	s1.tunnel = s2.tunnel = true;
	fill_list(list, 3);
	xp_start(&p, &s1);
	xp_run(&p);
	cr_assert_eq(lone_event(p.b), ROFX_EV_REQUEST);
	lone_list_ports(p.b, list);
	cr_assert_eq(lone_accept(p.b, 0, &s2, "welcome", 8), 0);
	n = lone_output(p.b, buf, sizeof(buf));
	cr_assert_arr_eq(buf + n - 8, "welcome", 8);
	assert_list(buf + n - 8 - LIST_LEN, list);
	cr_assert_arr_eq(buf + n - 8 - LIST_LEN - 16, s2.outer.b, 16);
	cr_assert_eq((size_t)lone_input(p.a, 0, buf, n), n);
	cr_assert_arr_eq(lone_agreed(p.a)->tx_ports, list, sizeof(list));
	cr_assert_arr_eq(lone_agreed(p.a)->private_data, "welcome", 8);
	xp_end(&p);
}

/* An earlier release sends 0 in the field, and refuses a frame with a list. */
Test(exchange_frames, section_4_8_an_earlier_release_gets_no_list)
{
	uint8_t old[sizeof(connect_bytes)], old_accept[sizeof(accept_bytes)], buf[512];
	struct lone *a = initiator(), *b = responder();
	uint16_t list[ROFX_PORTS];

	fill_list(list, 1);
	memcpy(old, connect_bytes, sizeof(old));
	old[BODY + 94] = 0;
	cr_assert_eq(answer(b, old, list, buf, sizeof(buf)), sizeof(accept_bytes));
	memcpy(old_accept, accept_bytes, sizeof(old_accept));
	old_accept[BODY + 95] = 0;
	cr_assert_arr_eq(buf, old_accept, sizeof(old_accept));
	lone_output(a, buf, sizeof(buf));
	cr_assert_eq(lone_input(a, 0, old_accept, sizeof(old_accept)), sizeof(old_accept));
	cr_assert_eq(lone_event(a), ROFX_EV_AGREED);
	cr_assert_not(lone_agreed(a)->listed);
	lone_list_ports(a, list);
	cr_assert_eq(lone_ready(a), 0);
	cr_assert_eq(lone_output(a, buf, sizeof(buf)), READY_AT);
	cr_assert_eq(buf[HEADER + 1], 0);
	cr_assert_eq(lone_input(b, 0, buf, READY_AT), READY_AT);
	cr_assert_eq(lone_event(b), ROFX_EV_ESTABLISHED);
	cr_assert_not(lone_agreed(b)->listed);
	lone_destroy(a);
	lone_destroy(b);
}

/* Writes a READY with a valid list. */
static void
listed_ready(uint8_t ready[READY_AT + LIST_LEN])
{
	static const uint8_t head[READY_AT] = {2, 3, 0, 36 + LIST_LEN, OF_B, OF_A, 0, 2};
	uint16_t list[ROFX_PORTS];

	fill_list(list, 1);
	memcpy(ready, head, sizeof(head));
	for (unsigned i = 0; i < ROFX_PORTS; i++) {
		ready[READY_AT + 2 * i] = (uint8_t)(list[i] >> 8);
		ready[READY_AT + 2 * i + 1] = (uint8_t)list[i];
	}
}

Test(exchange_frames, section_4_8_a_list_from_a_peer_without_lists_is_a_contradiction)
{
	uint8_t old[sizeof(connect_bytes)], ready[READY_AT + LIST_LEN], buf[512];
	struct lone *b = responder();
	uint16_t list[ROFX_PORTS];

	fill_list(list, 1);
	memcpy(old, connect_bytes, sizeof(old));
	old[BODY + 94] = 0;
	answer(b, old, list, buf, sizeof(buf));
	listed_ready(ready);
	cr_assert_eq(lone_input(b, 0, ready, sizeof(ready)), -ROFX_CONTRADICTION);
	lone_destroy(b);
}

Test(exchange_frames, section_4_8_a_list_whose_ports_cannot_be)
{
	static const struct {
		uint16_t at;
		uint8_t value;
		int reason;
	} bad[] = {
		{3, 36, ROFX_MALFORMED}, /* the length of a READY without a list */
		{3, 36 + LIST_LEN - 1, ROFX_MALFORMED},
		{3, 36 + LIST_LEN + 1, ROFX_BAD_FRAME},
		{HEADER + 1, 1, ROFX_MALFORMED}, /* bytes that are no list */
		{HEADER + 1, 3, ROFX_MALFORMED},
		{READY_AT, 0xbf, ROFX_MALFORMED}, /* below 49152 */
		{READY_AT + LIST_LEN - 2, 0, ROFX_MALFORMED},
		{READY_AT + 1, 1, ROFX_MALFORMED}, /* low bits of another flow */
		{READY_AT + LIST_LEN - 1, 0, ROFX_MALFORMED},
	};

	for (size_t i = 0; i < SK_ARRAY_LEN(bad); i++) {
		uint8_t ready[READY_AT + LIST_LEN], buf[512];
		struct lone *b = responder();
		uint16_t list[ROFX_PORTS];

		fill_list(list, 1);
		answer(b, connect_bytes, list, buf, sizeof(buf));
		listed_ready(ready);
		ready[bad[i].at] = bad[i].value;
		cr_assert_eq(lone_input(b, 0, ready, sizeof(ready)), -bad[i].reason, "case %zu", i);
		lone_destroy(b);
	}
}

/* 16 bytes follow the fixed part. */
Test(exchange_frames, section_4_1_the_outer_address_of_tunnel_mode)
{
	const size_t at = BODY + 100;
	struct rofx_side s1 = xp_side(1), s2 = xp_side(2);
	struct rofx_config cfg = {0};
	uint8_t buf[256], reply[256];
	struct lone *a, *b = responder();
	size_t n;
	int err;

	s1.tunnel = s2.tunnel = true;
	a = lone_connect(&cfg, 0, &s1, "hello", 6, &err);
	cr_assert_eq(lone_output(a, buf, sizeof(buf)), sizeof(connect_bytes) + 16);
	cr_assert_eq(buf[OPENING + 3], 106 + 16);
	cr_assert_arr_eq(buf + at, s1.outer.b, 16);
	cr_assert_arr_eq(buf + at + 16, "hello", 6);
	cr_assert_eq(lone_input(b, 0, buf, sizeof(connect_bytes) + 16), sizeof(connect_bytes) + 16);
	cr_assert_eq(lone_event(b), ROFX_EV_REQUEST);
	cr_assert_arr_eq(lone_request(b)->peer.outer.b, s1.outer.b, 16);
	cr_assert_eq(lone_accept(b, 0, &s2, "welcome", 8), 0);
	n = lone_output(b, reply, sizeof(reply));
	cr_assert_eq(n, sizeof(accept_bytes) + 16);
	cr_assert_eq((size_t)lone_input(a, 0, reply, n), n);
	cr_assert_eq(lone_event(a), ROFX_EV_AGREED);
	cr_assert_arr_eq(lone_agreed(a)->peer.outer.b, s2.outer.b, 16);
	cr_assert_eq(lone_agreed(a)->private_len, 8);
	lone_destroy(a);
	lone_destroy(b);
	a = initiator(); /* this initiator requested transport mode */
	cr_assert_eq(lone_input(a, 0, reply, n), -ROFX_CONTRADICTION);
	/* The unspecified address is invalid, and so is a frame without the address. */
	b = responder();
	memset(buf + at, 0, 16);
	cr_assert_eq(lone_input(b, 0, buf, sizeof(connect_bytes) + 16), -ROFX_MALFORMED);
	lone_destroy(b);
	b = responder();
	buf[OPENING + 3] = 100 + 15;
	cr_assert_eq(lone_input(b, 0, buf, at + 15), -ROFX_MALFORMED);
	lone_destroy(a);
	lone_destroy(b);
	memset(&s1.outer, 0, sizeof(s1.outer));
	cr_assert_null(lone_connect(&cfg, 0, &s1, "hello", 6, &err));
	cr_assert_eq(err, -EINVAL);
}

Test(exchange_frames, section_4_4_reject_and_4_5_later)
{
	static const uint8_t later[] = {
		OPENING_REP, 0, 0, 0, 2, 5, 0, 4, OF_A, OF_B, 0, 0, 0x03, 0xe8};
	static const uint8_t reject[] = {2, 4, 0, 6, OF_A, OF_B, 3, 0, 0, 2, 'n', 'o'};
	struct lone *b = responder();

	lone_input(b, 0, connect_bytes, sizeof(connect_bytes));
	cr_assert_eq(lone_later(b, 0, 1000), 0);
	assert_output(b, later, sizeof(later));
	lone_input(b, 0, connect_bytes + OPENING, sizeof(connect_bytes) - OPENING);
	cr_assert_eq(lone_reject(b, ROFX_NO_QP, "no", 2), 0);
	assert_output(b, reject, sizeof(reject));
	lone_destroy(b);
}

Test(exchange_frames, section_4_6_lookup_and_found)
{
	static const uint8_t lookup[] = {OPENING_REQ, 0, 0, 0, 2, 6, 0, 38, NONE, OF_A, 0x1b, 0x58,
		0, 2, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, /* from */
		0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,       /* to */
		'?', '!'};
	static const uint8_t found[] = {OPENING_REP, 0, 0, 0, 2, 7, 0, 13, OF_A, OF_B, 0, 0xab,
		0xcd, 0xef, 0x80, 0x01, 0x02, 0x03, 0, 1, 0, 0, '.'};
	struct rofx_question q = {.service = 7000,
		.gid = xp_side(1).gid,
		.to_gid = xp_side(2).gid,
		.private_len = 2,
		.private_data = "?!"};
	struct rofx_config cfg = {0};
	int err;
	struct lone *a = lone_lookup(&cfg, 0, &q, &err), *b = responder();
	struct lone *c = lone_lookup(&cfg, 0, &q, &err);
	uint8_t wide[sizeof(found)];

	assert_output(a, lookup, sizeof(lookup));
	cr_assert_eq(lone_input(b, 0, lookup, sizeof(lookup)), sizeof(lookup));
	cr_assert_eq(lone_event(b), ROFX_EV_LOOKUP);
	cr_assert_eq(lone_question(b)->service, 7000);
	cr_assert_eq(lone_question(b)->private_len, 2);
	cr_assert_eq(lone_found(b, 0xabcdef, 0x80010203, ".", 1), 0);
	assert_output(b, found, sizeof(found));
	memcpy(wide, found, sizeof(found));
	wide[BODY] = 1; /* 25 bits */
	cr_assert_eq(lone_input(c, 0, wide, sizeof(wide)), -ROFX_MALFORMED);
	cr_assert_eq(lone_input(a, 0, found, sizeof(found)), sizeof(found));
	cr_assert_eq(lone_event(a), ROFX_EV_FOUND);
	cr_assert_eq(lone_answer(a)->qpn, 0xabcdef);
	cr_assert_eq(lone_answer(a)->qkey, 0x80010203);
	cr_assert_eq(lone_answer(a)->private_data[0], '.');
	lone_destroy(a);
	lone_destroy(c);
	lone_destroy(b);
}

Test(exchange_frames, section_4_7_rekey_and_rekeyed)
{
	static const uint8_t rekey[52] = {2, 8, 0, 40, OF_B, OF_A, 0x52, 0, 0, 9, 15};
	static const uint8_t rekeyed[] = {2, 9, 0, 4, OF_A, OF_B, 0x52, 0, 0, 9};
	struct rofx_sa sa = {.version = PSP_NO_CRYPTO, .spi = 0x52000009};
	struct rofx_side s1 = xp_side(1), s2 = xp_side(2);
	struct xpair p = {0};

	xp_establish(&p, &s1, &s2);
	cr_assert_eq(lone_rekey(p.a, 0, &sa), 0);
	assert_output(p.a, rekey, sizeof(rekey));
	lone_input(p.b, 0, rekey, sizeof(rekey));
	cr_assert_eq(lone_event(p.b), ROFX_EV_REKEY);
	cr_assert_eq(lone_agreed(p.b)->tx.spi, 0x52000009);
	cr_assert_eq(lone_rekeyed(p.b), 0);
	assert_output(p.b, rekeyed, sizeof(rekeyed));
	xp_end(&p);
}

Test(exchange_frames, section_2_key_distinguishes_it_from_mpa)
{
	cr_assert_eq(rofx_match(connect_bytes, sizeof(connect_bytes)), 1);
	cr_assert_eq(rofx_match(connect_bytes, 16), 1);
	cr_assert_eq(rofx_match(connect_bytes, 15), -1);
	cr_assert_eq(rofx_match((const uint8_t *)"MPA ID Req Frame", 16), 0);
	cr_assert_eq(rofx_match((const uint8_t *)"M", 1), 0);
	cr_assert_eq(rofx_match(accept_bytes, 16), 0);
}

/* ---- Invalid frames ---- */

Test(exchange_frames, a_truncated_request_is_no_request)
{
	for (size_t len = 1; len < sizeof(connect_bytes); len++) {
		struct lone *b = responder();

		cr_assert_eq(lone_input(b, 0, connect_bytes, len), (int)len);
		cr_assert_eq(lone_event(b), ROFX_EV_NONE, "%zu bytes", len);
		lone_lost(b);
		cr_assert_eq(lone_event(b), ROFX_EV_FAILED);
		cr_assert_eq(lone_why(b), ROFX_CLOSED);
		lone_destroy(b);
	}
}

struct patch {
	uint16_t at;
	uint8_t value;
	enum rofx_reason why;
};

static void
refuses(struct lone *x, const uint8_t *good, size_t len, const struct patch *patch)
{
	uint8_t bad[512];

	memcpy(bad, good, len);
	bad[patch->at] = patch->value;
	cr_assert_eq(lone_input(x, 0, bad, len), -(int)patch->why, "byte %u = %02x: %d", patch->at,
		patch->value, lone_why(x));
	cr_assert_eq(lone_event(x), ROFX_EV_FAILED);
	cr_assert_eq(lone_why(x), patch->why);
	/* and the error persists */
	cr_assert_eq(lone_input(x, 0, good, len), -(int)patch->why);
}

Test(exchange_frames, a_request_whose_fields_cannot_be)
{
	static const struct patch bad[] = {
		{0, 'M', ROFX_BAD_KEY}, {15, 'E', ROFX_BAD_KEY},
		{9, 'p', ROFX_BAD_KEY}, /* the key of a reply */
		{16, 1, ROFX_BAD_VERSION}, {17, 1, ROFX_NO_TLS}, {17, 2, ROFX_MALFORMED},
		{OPENING, 1, ROFX_BAD_VERSION}, {OPENING + 1, 0, ROFX_BAD_FRAME},
		{OPENING + 1, 12, ROFX_BAD_FRAME}, {OPENING + 1, 255, ROFX_BAD_FRAME},
		{OPENING + 2, 3, ROFX_BAD_FRAME},   /* longer than any frame */
		{OPENING + 3, 99, ROFX_BAD_FRAME},  /* shorter than its fixed part */
		{OPENING + 3, 105, ROFX_MALFORMED}, /* a length that contradicts its private data */
		{BODY + 0, 0x20, ROFX_MALFORMED}, {BODY + 1, 2, ROFX_MALFORMED},
		{BODY + 2, 3, ROFX_MALFORMED},
		{BODY + 2, ROFX_ANY, ROFX_MALFORMED}, /* a request must name its ordering mode */
		{BODY + 3, 2, ROFX_MALFORMED}, {BODY + 3, ROFX_ANY, ROFX_MALFORMED},
		{BODY + 4, 1, ROFX_MALFORMED}, {BODY + 8, 1, ROFX_MALFORMED},
		{BODY + 12, 1, ROFX_MALFORMED}, {BODY + 60, 0, ROFX_MALFORMED}, /* MTU 1 */
		{BODY + 60, 0x20, ROFX_MALFORMED},                              /* 8193 */
		{BODY + 62, 0x40, ROFX_MALFORMED}, {BODY + 64, 0x40, ROFX_MALFORMED},
		{BODY + 66, 0, ROFX_MALFORMED}, {BODY + 66, 65, ROFX_MALFORMED},
		{BODY + 67, 0, ROFX_MALFORMED}, {BODY + 67, 129, ROFX_MALFORMED},
		{BODY + 68, 0, ROFX_MALFORMED}, {BODY + 68, 2, ROFX_MALFORMED},
		{BODY + 69, 8, ROFX_MALFORMED}, {BODY + 70, 32, ROFX_MALFORMED},
		{BODY + 71, 0, ROFX_MALFORMED}, {BODY + 72, 1, ROFX_MALFORMED},
		{BODY + 76, 2, ROFX_MALFORMED}, {BODY + 77, 2, ROFX_MALFORMED},
		{BODY + 93, 5, ROFX_MALFORMED},
		{BODY + 94, 2, ROFX_MALFORMED}, /* a list of ports */
	};

	for (size_t i = 0; i < SK_ARRAY_LEN(bad); i++) {
		struct lone *b = responder();

		refuses(b, connect_bytes, sizeof(connect_bytes), &bad[i]);
		lone_destroy(b);
	}
}

Test(exchange_frames, section_6_a_reply_that_contradicts_the_request)
{
	static const struct patch bad[] = {
		{0, 'M', ROFX_BAD_KEY},
		{9, 'q', ROFX_BAD_KEY},
		{16, 1, ROFX_BAD_VERSION},
		{17, 1, ROFX_CONTRADICTION},
		{18, 18, ROFX_TLS_NEEDED},
		{OPENING + 1, 1, ROFX_UNEXPECTED},
		{OPENING + 1, 3, ROFX_BAD_FRAME},
		{BODY + 0, ROF_XRC, ROFX_CONTRADICTION},
		{BODY + 1, 1, ROFX_CONTRADICTION},
		{BODY + 2, 1, ROFX_CONTRADICTION},
		{BODY + 3, 1, ROFX_CONTRADICTION},
		{BODY + 15, 2, ROFX_CONTRADICTION},    /* the QPN of another QP */
		{BODY + 47, 2, ROFX_CONTRADICTION},    /* the GID of another host */
		{BODY + 61, 2, ROFX_CONTRADICTION},    /* a larger MTU */
		{BODY + 63, 34, ROFX_CONTRADICTION},   /* an IRD beyond the initiator's ORD */
		{BODY + 65, 18, ROFX_CONTRADICTION},   /* an ORD beyond the initiator's IRD */
		{BODY + 76, 1, ROFX_MALFORMED},        /* tunnel mode without an outer address */
		{BODY + 78, 0x00, ROFX_CONTRADICTION}, /* no PSP version */
		{BODY + 78, 0xc0, ROFX_CONTRADICTION}, /* two PSP versions */
		{BODY + 78, 0x40, ROFX_CONTRADICTION}, /* a version that was not offered */
		{BODY + 94, 16, ROFX_CONTRADICTION},   /* a key in the mode without crypto */
		{BODY + 94, 1, ROFX_MALFORMED},
		{BODY + 95, 2, ROFX_MALFORMED}, /* a list of ports that is missing */
		{BODY + 95, 3, ROFX_MALFORMED},
	};

	for (size_t i = 0; i < SK_ARRAY_LEN(bad); i++) {
		struct lone *a = initiator();

		refuses(a, accept_bytes, sizeof(accept_bytes), &bad[i]);
		lone_destroy(a);
	}
}

Test(exchange_frames, section_2_other_version_is_answered_with_ours)
{
	static const uint8_t answer[] = {OPENING_REP, 0, 16, 0};
	uint8_t other[sizeof(connect_bytes)];
	struct lone *a = initiator(), *b = responder();

	memcpy(other, connect_bytes, sizeof(other));
	other[16] = 9;
	cr_assert_eq(lone_input(b, 0, other, sizeof(other)), -ROFX_BAD_VERSION);
	cr_assert_eq(lone_peer_version(b), 9);
	assert_output(b, answer, sizeof(answer));
	cr_assert_eq(lone_input(a, 0, answer, sizeof(answer)), -ROFX_BAD_VERSION);
	cr_assert_eq(lone_peer_version(a), 2);
	lone_destroy(a);
	lone_destroy(b);
}

Test(exchange_frames, a_stranger_gets_no_answer)
{
	uint8_t buf[64];
	struct lone *b = responder();

	cr_assert_eq(lone_input(b, 0, (const uint8_t *)"GET / HTTP/1.0\r\n\r\n\r\n\r\n", 22),
		-ROFX_BAD_KEY);
	cr_assert_eq(lone_output(b, buf, sizeof(buf)), 0);
	lone_destroy(b);
}

Test(exchange_frames, reserved_bytes_are_not_looked_at)
{
	static const uint16_t at[] = {18, BODY + 95};
	uint8_t odd[sizeof(connect_bytes)];
	struct lone *b = responder();

	memcpy(odd, connect_bytes, sizeof(odd));
	for (size_t i = 0; i < SK_ARRAY_LEN(at); i++)
		odd[at[i]] = 0xff;
	cr_assert_eq(lone_input(b, 0, odd, sizeof(odd)), sizeof(odd));
	cr_assert_eq(lone_event(b), ROFX_EV_REQUEST);
	lone_destroy(b);
}
