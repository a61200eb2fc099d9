/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ready-to-receive messages of a running Saker (RFC 6581 5, 9.2), against a scripted peer. An
 * initiator sends the message that both sides agreed on before any other. A responder holds its
 * send queue until that message has arrived. Neither program receives a completion for it.
 */
#include <string.h>

#include <criterion/criterion.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/engine/common/instance.h"
#include "negative.h"

TestSuite(engine_rtr, .init = neg_start, .fini = neg_stop);

#define OPEN_PORT 7500
#define DEPTH     4
#define WORK      50 /* the request that the program has posted */

static const struct neg_mode mode = {.sq = SQ_EMPTY};

static const struct row {
	const char *name;
	uint8_t rtr;            /* enum saker_rtr */
	uint16_t first, second; /* the word of depths and flags */
	uint8_t opcode;
	uint32_t len; /* bytes of its ULPDU */
} rows[] = {
	{"Send", SAKER_RTR_SEND, 0xc000 | DEPTH, DEPTH, RDMAP_SEND, 18},
	{"Write", SAKER_RTR_WRITE, 0x8000 | DEPTH, 0x8000 | DEPTH, RDMAP_WRITE, 14},
	{"Read", SAKER_RTR_READ, 0x8000 | DEPTH, 0x4000 | DEPTH, RDMAP_READ_REQUEST, 46},
};

static uint32_t
frame(uint8_t *buf, bool reply, const struct row *r)
{
	const struct wire_mpa_startup su = {
		.reply = reply, .crc = true, .enhanced = true, .revision = 2, .private_len = 4};
	const uint8_t word[] = {(uint8_t)(r->first >> 8), (uint8_t)r->first,
		(uint8_t)(r->second >> 8), (uint8_t)r->second};

	return neg_startup(buf, &su, word);
}

static struct saker_conn_param
wish(uint8_t rtr)
{
	return (struct saker_conn_param){
		.ird = DEPTH, .ord = DEPTH, .revision = 2, .crc = 1, .rtr = rtr};
}

static void
post_work(void)
{
	struct rd_sge sge = {neg_base(LOCAL), 8, neg_stag(LOCAL)};
	struct saker_wr wr = {
		.wr_id = WORK, .opcode = RD_SEND, .flags = RD_SIGNALED, .nsge = 1, .sge = &sge};

	cr_assert_eq(saker_post_send(neg.qp, &wr, 1), 1);
}

static void
put_fpdu(const uint8_t *ulpdu, uint32_t len)
{
	uint8_t fpdu[256];

	raw_send(&neg.conn, fpdu, neg_frame(fpdu, ulpdu, len), RAW_MSS);
}

/* Checks that the program's Send is the next message on queue number 0. */
static void
expect_work(const char *name, uint8_t msn)
{
	uint8_t ulpdu[256];

	cr_assert_eq(neg_take(ulpdu), 18 + 8, "%s", name);
	cr_assert_eq(ulpdu[1] & 15, RDMAP_SEND, "%s: opcode %u", name, ulpdu[1] & 15);
	cr_assert_eq(ulpdu[13], msn, "%s: MSN %u", name, ulpdu[13]);
}

/* Checks that the peer's Send completes the first receive request: no other message has used it. */
static void
expect_receive(const char *name, uint32_t msn)
{
	const struct neg_msg hello = {
		RDMAP_SEND, .msn = msn, .len = 8, .empty_stag = true, .stag = WRITABLE};
	uint8_t ulpdu[64];

	put_fpdu(ulpdu, neg_build(ulpdu, &hello, true));
	neg_expect_wc(name, neg.recv_cq, 100, RD_SUCCESS);
	neg_silence(name);
}

static void
initiate(const struct row *r)
{
	struct saker_conn_param p = wish(r->rtr);
	bool send = r->rtr == SAKER_RTR_SEND, read = r->rtr == SAKER_RTR_READ;
	uint8_t ulpdu[256], response[14] = {0xc1, 0x42};
	uint8_t buf[64];

	neg_make_qp(&mode);
	post_work();
	raw_accept(&neg.sw, &neg.conn, OPEN_PORT);
	cr_assert_eq(
		saker_connect(neg.qp, NULL, &neg.sw.addr, OPEN_PORT, &p), 0, "%s", saker_error());
	NEG_UNTIL(neg.conn.got >= 24, "%s: no request", r->name);
	neg.conn.taken = 24;
	raw_send(&neg.conn, buf, frame(buf, true, r), RAW_MSS);
	cr_assert_eq(neg_event(r->name, SAKER_EV_ESTABLISHED).cm.rtr, r->rtr, "%s", r->name);
	cr_assert_eq((uint32_t)neg_take(ulpdu), r->len, "%s", r->name);
	cr_assert_eq(ulpdu[1] & 15, r->opcode, "%s: opcode %u first", r->name, ulpdu[1] & 15);
	expect_work(r->name, send ? 2 : 1);
	if (read) { /* it asks for nothing, and is answered by nothing */
		cr_assert_eq(memcmp(ulpdu + 18 + 12, "\0\0\0\0", 4), 0);
		memcpy(response + 2, ulpdu + 18, 12);
		put_fpdu(response, sizeof(response));
	}
	neg_expect_wc(r->name, neg.send_cq, WORK, RD_SUCCESS);
	expect_receive(r->name, 1);
	raw_fin(&neg.conn);
	neg_end(r->name, false);
}

Test(engine_rtr, it_is_the_initiators_first_message_6581_9_2)
{
	for (unsigned i = 0; i < SK_ARRAY_LEN(rows); i++)
		initiate(&rows[i]);
}

/* The peer sends the ready-to-receive message: it has no payload, and its other fields are not
 * checked. */
static void
announce(const struct row *r)
{
	uint8_t ulpdu[46] = {r->opcode == RDMAP_WRITE ? 0xc1 : 0x41, (uint8_t)(0x40 | r->opcode)};

	if (r->opcode != RDMAP_WRITE)
		ulpdu[13] = 1; /* message sequence number */
	if (r->opcode == RDMAP_READ_REQUEST)
		ulpdu[9] = 1; /* queue number */
	put_fpdu(ulpdu, r->len);
}

/* The program accepts the peer's request, and has posted a Send before. */
static void
accept_with_work(const struct row *r)
{
	struct saker_conn_param p = wish(r->rtr);
	struct saker_event ev;
	uint8_t buf[64];

	neg_make_qp(&mode);
	post_work();
	raw_connect(&neg.sw, &neg.conn, NEG_PORT);
	NEG_UNTIL(neg.conn.up, "%s: nobody listens", r->name);
	raw_send(&neg.conn, buf, frame(buf, false, r), RAW_MSS);
	ev = neg_event(r->name, SAKER_EV_CONNECT_REQUEST);
	cr_assert_eq(saker_accept(neg.s, ev.request, neg.qp, &p), 0, "%s", saker_error());
	cr_assert_eq(neg_event(r->name, SAKER_EV_ESTABLISHED).cm.rtr, r->rtr, "%s", r->name);
	NEG_UNTIL(neg.conn.got >= 24, "%s: no reply", r->name);
	neg.conn.taken = 24;
}

static void
respond(const struct row *r)
{
	uint8_t ulpdu[256];
	unsigned seen = 0;

	accept_with_work(r);
	neg_silence(r->name);
	cr_assert_eq(neg.conn.got, 24, "%s: the responder spoke first", r->name);
	announce(r);
	/* The Read Response and the Send may arrive in either order. */
	for (unsigned n = r->rtr == SAKER_RTR_READ ? 2 : 1; n > 0; n--) {
		cr_assert_gt(neg_take(ulpdu), 0);
		seen |= 1u << (ulpdu[1] & 15);
	}
	cr_assert_eq(seen,
		r->rtr == SAKER_RTR_READ ? 1u << RDMAP_SEND | 1u << RDMAP_READ_RESPONSE
					 : 1u << RDMAP_SEND,
		"%s", r->name);
	neg_expect_wc(r->name, neg.send_cq, WORK, RD_SUCCESS);
	expect_receive(r->name, r->rtr == SAKER_RTR_SEND ? 2 : 1);
	raw_fin(&neg.conn);
	neg_end(r->name, false);
}

Test(engine_rtr, the_responder_waits_for_it_and_reports_nothing_6581_5)
{
	for (unsigned i = 0; i < SK_ARRAY_LEN(rows); i++)
		respond(&rows[i]);
}

static const struct row none = {"none", SAKER_RTR_NONE, DEPTH, DEPTH, RDMAP_WRITE, 14};

/* In the client-server model, the responder waits for the first FPDU of any kind (RFC 5044
 * 7.1.2). */
Test(engine_rtr, without_one_the_first_fpdu_does_5044_7_1_2)
{
	respond(&none);
}

/* The configuration can limit the wait, for peers that do not send first. It does not limit the
 * wait for a ready-to-receive message that the peer has agreed on. */
Test(engine_rtr, without_one_a_bounded_wait_does_where_configured_5044_7_1_2)
{
	neg.eng[0]->cfg.mpa_first_fpdu_ns = 1;
	accept_with_work(&none);
	expect_work(none.name, 1);
	neg_expect_wc(none.name, neg.send_cq, WORK, RD_SUCCESS);
	expect_receive(none.name, 1);
	raw_fin(&neg.conn);
	neg_end(none.name, false);
	for (unsigned i = 0; i < SK_ARRAY_LEN(rows); i++)
		respond(&rows[i]);
}
