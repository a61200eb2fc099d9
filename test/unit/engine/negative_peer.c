/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scripted peer. It writes its messages field by field and byte by byte, and compares the
 * victim's answers in the same way, without lib/wire: an error in lib/wire would otherwise cancel
 * itself out.
 */
#include <string.h>

#include <criterion/criterion.h>

#include "../../../lib/base/mem.h"
#include "negative.h"

static uint8_t *
put(uint8_t *p, uint64_t v, unsigned bytes)
{
	while (bytes-- > 0)
		*p++ = (uint8_t)(v >> 8 * bytes);
	return p;
}

/* ---- MPA (RFC 5044) ---- */

/* Computes the CRC bit by bit (RFC 3720 B.4). */
uint32_t
neg_crc32c(const uint8_t *p, size_t len)
{
	uint32_t crc = ~0u;

	while (len-- > 0) {
		crc ^= *p++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

uint32_t
neg_frame(uint8_t *fpdu, const uint8_t *ulpdu, uint32_t len)
{
	uint32_t n = 2 + len, crc;

	put(fpdu, len, 2);
	memcpy(fpdu + 2, ulpdu, len);
	while (n % 4)
		fpdu[n++] = 0;
	crc = neg_crc32c(fpdu, n);
	for (unsigned i = 0; i < 4; i++)
		fpdu[n++] = (uint8_t)(crc >> 8 * i);
	return n;
}

int
neg_take(uint8_t *ulpdu)
{
	struct raw_conn *c = &neg.conn;
	const uint8_t *p = c->stream + c->taken;
	uint32_t n, whole;

	NEG_UNTIL(c->got - c->taken >= 2 || c->fin_in || c->rst, "the victim sends nothing");
	if (c->got - c->taken < 2)
		return -1;
	n = (uint32_t)p[0] << 8 | p[1];
	whole = (2 + n + 3) / 4 * 4 + 4;
	NEG_UNTIL(c->got - c->taken >= whole, "the victim sends a piece of an FPDU");
	cr_assert_eq(neg_crc32c(p, whole - 4),
		(uint32_t)p[whole - 4] | (uint32_t)p[whole - 3] << 8 |
			(uint32_t)p[whole - 2] << 16 | (uint32_t)p[whole - 1] << 24);
	memcpy(ulpdu, p + 2, n);
	c->taken += whole;
	return (int)n;
}

uint32_t
neg_startup(uint8_t *buf, const struct wire_mpa_startup *su, const void *private_data)
{
	memcpy(buf, su->reply ? "MPA ID Rep Frame" : "MPA ID Req Frame", 16);
	buf[16] = (uint8_t)(su->markers << 7 | su->crc << 6 | su->reject << 5 | su->enhanced << 4 |
			    (su->reserved & 15));
	buf[17] = su->revision;
	put(buf + 18, su->private_len, 2);
	if (private_data != NULL)
		memcpy(buf + 20, private_data, su->private_len);
	return 20u + su->private_len;
}

/* ---- DDP and RDMAP ---- */

static uint8_t *
body_put(uint8_t *p, const struct neg_msg *m)
{
	uint8_t body[64] = {0}, *at = body;

	switch (m->op) {
	case RDMAP_READ_REQUEST: /* RFC 5040 4.4 */
		at = put(at, 0x1234, 4);
		at = put(at, m->sink_to, 8);
		at = put(at, m->read_len, 4);
		at = put(at, neg_stag(m->stag), 4);
		put(at, neg_base(m->stag) + (uint64_t)m->to, 8);
		break;
	case RDMAP_ATOMIC_REQUEST: /* RFC 7306 5.2.1: FetchAdd of 1, CmpSwap to all ones */
		at = put(at, m->atomic_op, 4);
		at = put(at, m->id, 4);
		at = put(at, neg_stag(m->stag), 4);
		at = put(at, neg_base(m->stag) + (uint64_t)m->to, 8);
		at = put(at, m->atomic_op == 0 ? 1 : ~0ull, 8);
		at = put(at, m->atomic_op == 0 ? 0 : ~0ull, 8);
		at = put(at, 0, 8);
		put(at, m->atomic_op == 0 ? ~0ull : 0, 8);
		break;
	default: /* RFC 7306 5.2.2 */
		at = put(at, m->id, 4);
		put(at, 0x0102030405060708, 8);
		break;
	}
	memcpy(p, body, SK_MIN(m->len, (uint32_t)sizeof(body)));
	if (m->len > sizeof(body))
		memset(p + sizeof(body), 0, m->len - sizeof(body));
	return p + m->len;
}

/* Returns where the victim would place the payload, as an offset in its memory. */
static uint64_t
place_of(const struct neg_msg *m)
{
	return neg_base(m->tagged ? m->stag : WRITABLE) - (uintptr_t)neg.mem +
	       (m->tagged ? (uint64_t)m->to : m->mo);
}

uint32_t
neg_build(uint8_t *ulpdu, const struct neg_msg *m, bool right)
{
	bool send = m->op >= RDMAP_SEND && m->op <= RDMAP_SEND_SE_INV;
	uint64_t off = place_of(m);
	uint8_t *p = ulpdu;

	*p++ = (uint8_t)(m->tagged << 7 | !m->more << 6 | (m->dv ? m->dv & 3 : 1));
	*p++ = (uint8_t)((m->rv ? m->rv & 3 : 1) << 6 | m->op);
	if (m->tagged) {
		p = put(p, neg_stag(m->stag), 4);
		p = put(p, neg_base(m->stag) + (uint64_t)m->to, 8);
	} else {
		p = put(p, send && !m->empty_stag ? neg_stag(m->stag) : 0, 4);
		p = put(p, m->qn, 4);
		p = put(p, m->msn, 4);
		p = put(p, m->mo, 4);
	}
	if (m->op == RDMAP_READ_REQUEST || m->op == RDMAP_ATOMIC_REQUEST ||
		m->op == RDMAP_ATOMIC_RESPONSE)
		return (uint32_t)(body_put(p, m) - ulpdu);
	for (uint32_t i = 0; i < m->len; i++)
		*p++ = right ? neg_pattern(off + i) : (uint8_t)~neg_pattern(off + i);
	return (uint32_t)(p - ulpdu);
}

uint32_t
neg_terminate(uint8_t *ulpdu, const struct neg_term *t, const uint8_t *seg, uint32_t seg_len)
{
	static const uint8_t hdrct[] = {[NOTHING] = 0, [DDP_HEAD] = 0xc0, [BOTH_HEADS] = 0xe0};
	uint32_t head = seg != NULL && (seg[0] & 0x80) ? 14 : 18;
	uint8_t *p = ulpdu;

	*p++ = 0x41; /* untagged, last, DDP version 1 */
	*p++ = 0x47; /* RDMAP version 1, Terminate */
	p = put(p, 0, 4);
	p = put(p, 2, 4); /* queue number */
	p = put(p, 1, 4); /* message sequence number */
	p = put(p, 0, 4); /* message offset */
	*p++ = (uint8_t)(t->layer << 4 | t->etype);
	*p++ = t->code;
	*p++ = hdrct[t->quote];
	*p++ = 0;
	if (t->quote == NOTHING)
		return (uint32_t)(p - ulpdu);
	p = put(p, seg_len, 2);
	memcpy(p, seg, head);
	p += head;
	if (t->quote == BOTH_HEADS) {
		memcpy(p, seg + head, 28);
		p += 28;
	}
	return (uint32_t)(p - ulpdu);
}

void
neg_expect_terminate(
	const char *name, const struct neg_term *t, const uint8_t *seg, uint32_t seg_len)
{
	uint8_t want[128], got[2048];
	uint32_t len = neg_terminate(want, t, seg, seg_len);
	int n = neg_take(got);

	cr_assert_gt(n, 0, "%s: the stream ended without a Terminate", name);
	cr_assert(n >= 22 && got[1] == 0x47, "%s: opcode %u instead of a Terminate", name,
		got[1] & 15);
	cr_assert(got[18] == want[18] && got[19] == want[19] && got[20] == want[20],
		"%s: layer %u, type %u, code %u, HdrCt %02x", name, got[18] >> 4, got[18] & 15,
		got[19], got[20]);
	cr_assert_eq((uint32_t)n, len, "%s: %d bytes of Terminate instead of %u", name, n, len);
	for (uint32_t i = 0; i < len; i++)
		cr_assert_eq(got[i], want[i], "%s: byte %u of the Terminate: %02x, not %02x", name,
			i, got[i], want[i]);
	cr_assert_eq(neg_take(got), -1, "%s: something follows the Terminate", name);
	cr_assert(neg.conn.fin_in && !neg.conn.rst, "%s: no orderly end behind it", name);
}

void
neg_expect_no_terminate(const char *name)
{
	uint8_t got[2048];
	int n;

	while ((n = neg_take(got)) > 0)
		cr_assert_neq(got[1], 0x47, "%s: layer %u, type %u, code %u", name, got[18] >> 4,
			got[18] & 15, got[19]);
}

/* ---- Connections ---- */

void
neg_make_qp(const struct neg_mode *mode)
{
	struct saker_qp_attr attr = {.send_cq = neg.send_cq,
		.recv_cq = neg.recv_cq,
		.sq_depth = 8,
		.rq_depth = 8,
		.max_send_sge = 2,
		.max_recv_sge = 2,
		.access = mode->access};

	cr_assert_eq(saker_qp_create(neg.pd, &attr, &neg.qp), 0, "%s", saker_error());
	for (uint64_t i = 0; i < 2; i++) {
		enum neg_stag where = mode->bad_recv && i == 0 ? GONE : WRITABLE;
		struct rd_sge sge = {neg_base(where), NEG_RECV, neg_stag(where)};
		struct saker_wr wr = {.wr_id = 100 + i, .nsge = 1, .sge = &sge};

		cr_assert_eq(saker_post_recv(neg.qp, &wr, 1), 1);
	}
}

static void
sq_fill(enum neg_sq sq)
{
	for (uint64_t i = 0; i < 2 && sq != SQ_EMPTY; i++) {
		struct rd_sge sge = {neg_base(LOCAL) + 8 * i, 8, neg_stag(LOCAL)};
		struct saker_wr wr = {.wr_id = 200 + i,
			.opcode = RD_FETCH_ADD,
			.flags = RD_SIGNALED,
			.nsge = 1,
			.rkey = 0xabcdef01,
			.remote_addr = 64,
			.sge = &sge};

		if (sq == SQ_READ) {
			wr.opcode = i == 0 ? RD_READ : RD_WRITE;
			sge.addr = neg_base(LOCAL) + 8;
			sge.len = 64;
		}
		cr_assert_eq(saker_post_send(neg.qp, &wr, 1), 1);
	}
}

static void
reply_check(bool markers)
{
	const uint8_t *p = neg.conn.stream;

	NEG_UNTIL(neg.conn.got >= 20, "no reply");
	cr_assert_eq(memcmp(p, "MPA ID Rep Frame", 16), 0);
	cr_assert_eq(p[16] & 0xe0, 0x40 | (markers ? 0x80 : 0), "flags %02x", p[16]);
	cr_assert_eq(p[17], 1);
	neg.conn.taken = 20u + ((unsigned)p[18] << 8 | p[19]);
}

/* Sends an RDMA Write of 0 bytes, after which the responder may send (RFC 5044 7.1.2). */
static void
first_fpdu(bool markers)
{
	static const uint8_t write[14] = {0xc1, 0x40};
	uint8_t fpdu[64] = {0}; /* the first marker points to the FPDU that follows it */
	uint32_t n = neg_frame(fpdu + 4, write, sizeof(write)), crc;

	if (markers) {
		crc = neg_crc32c(fpdu, n);
		for (unsigned i = 0; i < 4; i++)
			fpdu[n + i] = (uint8_t)(crc >> 8 * i);
	}
	raw_send(&neg.conn, fpdu + (markers ? 0 : 4), n + (markers ? 4 : 0), RAW_MSS);
}

void
neg_victim(const struct neg_mode *mode)
{
	struct wire_mpa_startup su = {.crc = true, .revision = 1};
	struct saker_conn_param p = {
		.ird = NEG_IRD, .ord = NEG_IRD, .crc = 1, .markers = mode->markers};
	uint8_t buf[2048];
	struct saker_event ev;

	neg_make_qp(mode);
	sq_fill(mode->sq);
	raw_connect(&neg.sw, &neg.conn, NEG_PORT);
	NEG_UNTIL(neg.conn.up, "the victim does not listen");
	raw_send(&neg.conn, buf, neg_startup(buf, &su, NULL), RAW_MSS);
	ev = neg_event("request", SAKER_EV_CONNECT_REQUEST);
	cr_assert_eq(saker_accept(neg.s, ev.request, neg.qp, &p), 0, "%s", saker_error());
	neg_event("accept", SAKER_EV_ESTABLISHED);
	reply_check(mode->markers);
	first_fpdu(mode->markers);
	for (int i = 0; i < 2 && mode->sq != SQ_EMPTY; i++) {
		cr_assert_gt(neg_take(buf), 0);
		cr_assert_eq(buf[1] & 15, mode->sq == SQ_ATOMIC ? RDMAP_ATOMIC_REQUEST
					  : i == 0              ? RDMAP_READ_REQUEST
								: RDMAP_WRITE);
	}
}

struct rd_wc
neg_wc(const char *name, struct saker_cq *cq)
{
	struct rd_wc wc;

	NEG_UNTIL(saker_cq_poll(cq, &wc, 1) == 1, "%s: a completion does not come", name);
	return wc;
}

void
neg_expect_wc(const char *name, struct saker_cq *cq, uint64_t wr_id, enum rd_status status)
{
	struct rd_wc wc = neg_wc(name, cq);

	cr_assert(wc.wr_id == wr_id && wc.status == status,
		"%s: request %lu ended with %u, not %lu with %u", name, wc.wr_id, wc.status, wr_id,
		status);
}

void
neg_silence(const char *name)
{
	struct saker_event ev;
	struct rd_wc wc;

	for (int i = 0; i < 200; i++)
		neg_turn();
	cr_assert_eq(
		saker_cq_poll(neg.send_cq, &wc, 1), 0, "%s: request %lu once more", name, wc.wr_id);
	cr_assert_eq(
		saker_cq_poll(neg.recv_cq, &wc, 1), 0, "%s: receive %lu once more", name, wc.wr_id);
	cr_assert_eq(saker_event(neg.s, &ev), 0, "%s: event %d", name, ev.type);
}

void
neg_gone(const char *name)
{
	cr_assert_eq(saker_qp_destroy(neg.qp), 0, "%s: %s", name, saker_error());
	neg_silence(name);
	raw_forget(&neg.conn);
	neg_neighbours(name);
}

void
neg_end(const char *name, bool fin)
{
	struct rd_wc wc;

	if (fin)
		raw_fin(&neg.conn);
	neg_event(name, SAKER_EV_DISCONNECTED);
	while (saker_cq_poll(neg.recv_cq, &wc, 1) == 1)
		cr_assert_eq(wc.status, RD_WR_FLUSH_ERR, "%s", name);
	neg_gone(name);
}
