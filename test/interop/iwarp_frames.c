/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * iwarp_frames SEED CONNECTIONS FILE: random valid packets of iWARP for an independent reader. Each
 * connection has an MPA request and a reply, then FPDUs of each opcode of RFC 5040 and RFC 7306 in
 * both directions. Writes the frames to FILE, and prints a line with the expected fields of each
 * start-up frame and FPDU, by tshark's names, derived from the records and not from the bytes
 * (wire_ext.py compares them).
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/base/crc32c.h"
#include "../../lib/base/mem.h"
#include "../../lib/wire/wire.h"
#include "../support/rng.h"

#define PORT     7900
#define FPDUS    120 /* of a connection */
#define BODY_MAX 300
#define SEG_MAX  1400

static const char *const way_name[2] = {"out", "back"};
static uint64_t seed;
static FILE *pcap;
static struct sk_addr address[2];
static uint16_t client_port;

/* One direction: the segment that is being filled, and what DDP counts. */
struct way {
	uint8_t seg[SEG_MAX];
	uint32_t len, seq;
	uint32_t msn[4]; /* the next of each queue */
};
static struct way way[2];

static uint64_t
noise(void)
{
	return rng_next(&seed);
}

static bool
coin(void)
{
	return noise() & 1;
}

/* Returns a random value that is small, large or of any size, so that each byte of a field is
 * sometimes zero and sometimes not. */
static uint64_t
value(void)
{
	return noise() >> rng_below(&seed, 64);
}

static void
noise_bytes(uint8_t *p, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		p[i] = (uint8_t)noise();
}

static void
field(const char *name, uint64_t v)
{
	printf(" %s=%" PRIx64, name, v);
}

static void
field_bytes(const char *name, const uint8_t *p, uint32_t len)
{
	if (len == 0)
		return;
	printf(" %s=", name);
	for (uint32_t i = 0; i < len; i++)
		printf("%02x", p[i]);
}

/* ---- Frames ---- */

static uint32_t
tcp_segment(unsigned to, uint8_t *p, const struct wire_ip *ip)
{
	struct way *w = &way[to];
	struct wire_tcp tcp = {.sport = to == 0 ? client_port : PORT,
		.dport = to == 0 ? PORT : client_port,
		.seq = w->seq,
		.ack = way[!to].seq,
		.flags = TCP_ACK | TCP_PSH,
		.window = 65535,
		.wscale = TCP_NO_WSCALE,
		.ts = coin(),
		.ts_val = (uint32_t)noise(),
		.ts_ecr = (uint32_t)noise()};
	unsigned head = wire_tcp_emit(p, &tcp);
	uint32_t sum;

	memcpy(p + head, w->seg, w->len);
	sum = wire_pseudo_sum(&ip->src, &ip->dst, IP_TCP, head + w->len);
	*(uint16_t *)(p + TCP_CKSUM_OFFSET) = wire_sum_fold(wire_sum(sum, p, head + w->len));
	return head + w->len;
}

/* Sends what the direction's segment holds. */
static void
flush(unsigned to)
{
	static uint32_t frames;
	bool v6 = !sk_addr_is_v4(&address[0]);
	uint8_t frame[SEG_MAX + 200], segment[SEG_MAX + TCP_MAX], *p = frame;
	struct wire_eth eth = {.type = v6 ? ETH_IPV6 : ETH_IPV4, .vlan = ETH_NO_VLAN};
	struct wire_ip ip = {.src = address[to], .dst = address[!to], .proto = IP_TCP, .ttl = 64};
	uint32_t head[4] = {++frames};

	if (way[to].len == 0)
		return;
	ip.payload_len = tcp_segment(to, segment, &ip);
	p += wire_eth_emit(p, &eth);
	p += wire_ip_emit(p, &ip);
	memcpy(p, segment, ip.payload_len);
	head[2] = head[3] = (uint32_t)(p - frame) + ip.payload_len;
	fwrite(head, sizeof(head), 1, pcap);
	fwrite(frame, head[2], 1, pcap);
	way[to].seq += way[to].len;
	way[to].len = 0;
}

static void
add(unsigned to, const void *p, uint32_t len)
{
	memcpy(way[to].seg + way[to].len, p, len);
	way[to].len += len;
}

/* ---- Start-up frames ---- */

static void
startup(unsigned to, bool crc)
{
	struct wire_mpa_startup s = {.reply = to == 1,
		.crc = crc,
		.enhanced = coin(),
		.private_len = (uint16_t)rng_below(&seed, MPA_PRIVATE_MAX + 1)};
	struct wire_mpa_ird_ord depths = {.a = coin(),
		.b = coin(),
		.c = coin(),
		.d = coin(),
		.ird = noise() & 0x3fff,
		.ord = noise() & 0x3fff};
	uint8_t head[MPA_STARTUP_LEN], data[MPA_PRIVATE_MAX] = {0};

	s.revision = s.enhanced ? 2 : 1;
	noise_bytes(data, s.private_len);
	if (s.enhanced && s.private_len < MPA_IRD_ORD_LEN)
		s.private_len = MPA_IRD_ORD_LEN;
	if (s.enhanced)
		wire_mpa_ird_ord_emit(data, &depths);
	wire_mpa_startup_emit(head, &s);
	add(to, head, sizeof(head));
	add(to, data, s.private_len);
	flush(to);
	printf("%s", way_name[to]);
	field("iwarp_mpa.marker_flag", 0);
	field("iwarp_mpa.crc_flag", s.crc);
	field("iwarp_mpa.rej_flag", 0);
	field("iwarp_mpa.rev", s.revision);
	field("iwarp_mpa.pdlength", s.private_len);
	if (s.enhanced) {
		printf(" iwarp_mpa.privatedata=%04x%04x",
			depths.a << 15 | depths.b << 14 | depths.ird,
			depths.c << 15 | depths.d << 14 | depths.ord);
		for (unsigned i = MPA_IRD_ORD_LEN; i < s.private_len; i++)
			printf("%02x", data[i]);
	} else {
		field_bytes("iwarp_mpa.privatedata", data, s.private_len);
	}
	printf("\n");
}

/* ---- FPDUs ---- */

/* Adds an FPDU with this header and body, and prints the fields of the header. */
static void
fpdu(unsigned to, const struct wire_ddp *d, const uint8_t *body, uint32_t len)
{
	uint8_t buf[MPA_LEN_FIELD + DDP_MAX + BODY_MAX + 3 + MPA_CRC_LEN] = {0};
	unsigned head = wire_ddp_emit(buf + MPA_LEN_FIELD, d);
	uint32_t at = MPA_LEN_FIELD + head + len;

	wire_mpa_len_emit(buf, (uint16_t)(head + len));
	memcpy(buf + MPA_LEN_FIELD + head, body, len);
	at = (at + 3) / 4 * 4;
	wire_mpa_crc_emit(buf + at, sk_crc32c_final(sk_crc32c(SK_CRC32C_INIT, buf, at)));
	at += MPA_CRC_LEN;
	if (way[to].len + at > SEG_MAX || rng_below(&seed, 3) == 0)
		flush(to);
	add(to, buf, at);
	printf("%s", way_name[to]);
	field("iwarp_mpa.ulpdulength", head + len);
	field("iwarp_ddp.tagged_flag", d->tagged);
	field("iwarp_ddp.last_flag", d->last);
	field("iwarp_ddp.rsvd", 0);
	field("iwarp_ddp.dv", 1);
	field("iwarp_rdma.version", 1);
	field("iwarp_rdma.rsv", 0);
	field("iwarp_rdma.opcode", d->opcode);
	if (d->tagged) {
		field("iwarp_ddp.stag", d->stag);
		field("iwarp_ddp.tagged_offset", d->to);
		return;
	}
	field("iwarp_ddp.qn", d->qn);
	field("iwarp_ddp.msn", d->msn);
	field("iwarp_ddp.mo", d->mo);
}

static struct wire_ddp
untagged(unsigned to, uint8_t opcode, uint32_t qn)
{
	return (struct wire_ddp){
		.last = true, .opcode = opcode, .qn = qn, .msn = way[to].msn[qn]++};
}

static void
tagged(unsigned to, uint8_t opcode)
{
	uint8_t body[BODY_MAX] = {0};
	uint32_t len = rng_below(&seed, BODY_MAX + 1);
	struct wire_ddp d = {.tagged = true,
		.last = coin(),
		.opcode = opcode,
		.stag = (uint32_t)value(),
		.to = value()};

	noise_bytes(body, len);
	fpdu(to, &d, body, len);
	field_bytes("body", body, len);
	printf("\n");
}

static void
send(unsigned to, uint8_t opcode)
{
	uint8_t body[BODY_MAX] = {0};
	struct wire_ddp d = untagged(to, opcode, DDP_QN_SEND);
	uint32_t segments = 1 + rng_below(&seed, 3), len;

	if (opcode == RDMAP_SEND_INV || opcode == RDMAP_SEND_SE_INV)
		d.inv_stag = (uint32_t)value();
	for (uint32_t i = 0; i < segments; i++) {
		d.last = i == segments - 1;
		len = rng_below(&seed, BODY_MAX) + !d.last;
		noise_bytes(body, len);
		fpdu(to, &d, body, len);
		if (opcode == RDMAP_SEND_INV || opcode == RDMAP_SEND_SE_INV)
			field("iwarp_rdma.inval_stag", d.inv_stag);
		field_bytes("body", body, len);
		printf("\n");
		d.mo += len;
	}
}

static void
read_request(unsigned to)
{
	struct wire_ddp d = untagged(to, RDMAP_READ_REQUEST, DDP_QN_READ);
	struct wire_read_request rr = {.sink_stag = (uint32_t)value(),
		.sink_to = value(),
		.len = (uint32_t)value(),
		.src_stag = (uint32_t)value(),
		.src_to = value()};
	uint8_t body[RDMAP_READ_REQUEST_LEN];

	fpdu(to, &d, body, wire_read_request_emit(body, &rr));
	field("iwarp_rdma.sinkstag", rr.sink_stag);
	field("iwarp_rdma.sinkto", rr.sink_to);
	field("iwarp_rdma.rdmardsz", rr.len);
	field("iwarp_rdma.srcstag", rr.src_stag);
	field("iwarp_rdma.srcto", rr.src_to);
	printf("\n");
}

static void
immediate(unsigned to, uint8_t opcode)
{
	struct wire_ddp d = untagged(to, opcode, DDP_QN_SEND);
	uint8_t body[RDMAP_IMMEDIATE_LEN];
	uint64_t imm = value();

	fpdu(to, &d, body, wire_immediate_emit(body, imm));
	field("body", imm);
	printf("\n");
}

static void
atomic_request(unsigned to)
{
	struct wire_ddp d = untagged(to, RDMAP_ATOMIC_REQUEST, DDP_QN_READ);
	struct wire_atomic_request r = {.op = coin() ? RDMAP_FETCH_ADD : RDMAP_CMP_SWAP,
		.request_id = (uint32_t)value(),
		.stag = (uint32_t)value(),
		.to = value(),
		.data = value(),
		.data_mask = value(),
		.compare = value(),
		.compare_mask = value()};
	uint8_t body[RDMAP_ATOMIC_REQUEST_LEN];
	bool adds = r.op == RDMAP_FETCH_ADD;

	fpdu(to, &d, body, wire_atomic_request_emit(body, &r));
	field("iwarp_rdma.atomic.reserved", 0);
	field("iwarp_rdma.atomic.opcode", r.op);
	field("iwarp_rdma.atomic.request_identifier", r.request_id);
	field("iwarp_rdma.atomic.remote_stag", r.stag);
	field("iwarp_rdma.atomic.remote_tagged_offset", r.to);
	field(adds ? "iwarp_rdma.atomic.add_data" : "iwarp_rdma.atomic.swap_data", r.data);
	field(adds ? "iwarp_rdma.atomic.add_mask" : "iwarp_rdma.atomic.swap_mask", r.data_mask);
	field("iwarp_rdma.atomic.compare_data", r.compare);
	field("iwarp_rdma.atomic.compare_mask", r.compare_mask);
	printf("\n");
}

static void
atomic_response(unsigned to)
{
	struct wire_ddp d = untagged(to, RDMAP_ATOMIC_RESPONSE, DDP_QN_ATOMIC);
	struct wire_atomic_response r = {.request_id = (uint32_t)value(), .original = value()};
	uint8_t body[RDMAP_ATOMIC_RESPONSE_LEN];

	fpdu(to, &d, body, wire_atomic_response_emit(body, &r));
	field("iwarp_rdma.atomic.original_request_identifier", r.request_id);
	field("iwarp_rdma.atomic.original_remote_data_value", r.original);
	printf("\n");
}

/* In tshark, type and code have a field for each layer, and the type determines the length of the
 * quoted header: a tagged one's for type 1, which stands for a bad STag or address. */
static void
terminate(unsigned to)
{
	static const struct {
		uint8_t layer, etype, codes;
		const char *etype_field, *code_field;
	} kinds[] = {
		{0, 1, 6, "iwarp_rdma.term_etype_rdma", "iwarp_rdma.term_errcode_rdma"},
		{0, 2, 8, "iwarp_rdma.term_etype_rdma", "iwarp_rdma.term_errcode_rdma"},
		{1, 1, 5, "iwarp_rdma.term_etype_ddp", "iwarp_rdma.term_errcode_ddp_tagged"},
		{1, 2, 6, "iwarp_rdma.term_etype_ddp", "iwarp_rdma.term_errcode_ddp_untagged"},
		{2, 0, 5, "iwarp_rdma.term_etype_llp", "iwarp_rdma.term_errcode_llp"},
	};
	unsigned kind = rng_below(&seed, SK_ARRAY_LEN(kinds));
	struct wire_ddp d = untagged(to, RDMAP_TERMINATE, DDP_QN_TERMINATE);
	struct wire_terminate t = {.layer = kinds[kind].layer,
		.etype = kinds[kind].etype,
		.code = (uint8_t)rng_below(&seed, kinds[kind].codes),
		.m = coin(),
		.ddp_seg_len = (uint16_t)noise()};
	struct wire_ddp quoted = {.tagged = kinds[kind].etype == 1,
		.last = coin(),
		.stag = (uint32_t)noise(),
		.to = noise(),
		.qn = DDP_QN_READ,
		.msn = (uint32_t)noise()};
	uint8_t body[RDMAP_TERMINATE_MAX];

	t.d = t.m;
	t.r = t.d && !quoted.tagged && coin();
	quoted.opcode = quoted.tagged ? RDMAP_WRITE : RDMAP_READ_REQUEST;
	t.ddp_len = (uint8_t)wire_ddp_emit(t.ddp_header, &quoted);
	noise_bytes(t.rdmap_header, RDMAP_READ_REQUEST_LEN);
	fpdu(to, &d, body, wire_terminate_emit(body, &t));
	field("iwarp_rdma.term_layer", t.layer);
	field(kinds[kind].etype_field, t.etype);
	field(kinds[kind].code_field, t.code);
	field("iwarp_rdma.term_hdrct_m", t.m);
	field("iwarp_rdma.hdrct_d", t.d);
	field("iwarp_rdma.hdrct_r", t.r);
	if (t.m)
		field("iwarp_rdma.term_ddp_seg_len", t.ddp_seg_len);
	if (t.d)
		field_bytes("iwarp_rdma.term_ddp_h", t.ddp_header, t.ddp_len);
	if (t.r)
		field_bytes("iwarp_rdma.term_rdma_h", t.rdmap_header, RDMAP_READ_REQUEST_LEN);
	printf("\n");
}

static void
message(unsigned to, uint8_t opcode)
{
	switch (opcode) {
	case RDMAP_WRITE:
	case RDMAP_READ_RESPONSE:
		tagged(to, opcode);
		break;
	case RDMAP_READ_REQUEST:
		read_request(to);
		break;
	case RDMAP_TERMINATE:
		terminate(to);
		break;
	case RDMAP_IMMEDIATE:
	case RDMAP_IMMEDIATE_SE:
		immediate(to, opcode);
		break;
	case RDMAP_ATOMIC_REQUEST:
		atomic_request(to);
		break;
	case RDMAP_ATOMIC_RESPONSE:
		atomic_response(to);
		break;
	default:
		send(to, opcode);
	}
}

/* The messages of a direction stand in one capture in the order in which they are printed: the
 * direction changes only with an empty segment. */
static void
connection(unsigned n)
{
	bool v6 = coin();
	unsigned to = 0;

	client_port = (uint16_t)(20000 + n);
	sk_addr_parse(v6 ? "2001:db8::1" : "192.0.2.1", &address[0]);
	sk_addr_parse(v6 ? "2001:db8::2" : "192.0.2.2", &address[1]);
	for (unsigned i = 0; i < 2; i++) {
		memset(&way[i], 0, sizeof(way[i]));
		way[i].seq = (uint32_t)noise();
		for (unsigned q = 0; q < SK_ARRAY_LEN(way[i].msn); q++)
			way[i].msn[q] = (uint32_t)value();
	}
	startup(0, coin());
	startup(1, true); /* one of them is enough (RFC 5044 7.1.2) */
	for (unsigned i = 0; i < FPDUS; i++) {
		if (i > 0 && rng_below(&seed, 4) == 0) { /* the initiator sends first */
			flush(to);
			to = !to;
		}
		message(to, i < 12 ? (uint8_t)i : (uint8_t)rng_below(&seed, 12));
	}
	flush(to);
}

int
main(int argc, char **argv)
{
	/* Version 2.4, Ethernet; the magic states the byte order. */
	static const uint32_t head[6] = {0xa1b2c3d4, 2 | 4 << 16, 0, 0, 65535, 1};

	pcap = argc == 4 ? fopen(argv[3], "wb") : NULL;
	if (pcap == NULL) {
		fprintf(stderr, "iwarp_frames SEED CONNECTIONS FILE\n");
		return 2;
	}
	fwrite(head, sizeof(head), 1, pcap);
	seed = strtoull(argv[1], NULL, 0);
	for (unsigned n = 0; n < strtoul(argv[2], NULL, 0); n++)
		connection(n);
	return fclose(pcap) == 0 ? 0 : 1;
}
