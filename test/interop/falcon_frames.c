/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * falcon_frames FOLDER SEED: frames of Falcon as Saker builds them, for an independent decoder.
 * Each packet type and each opcode of RDMA over Falcon, over IPv4 and IPv6, in transport and in
 * tunnel mode, with each PSP version, with random fields. Writes three files: frames.pcap; `meant`,
 * with a line of FIELD=VALUE for each frame, derived from the records and not from the bytes; and
 * `options`, the keys in tshark's format.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/base/mem.h"
#include "../../lib/falcon/psp.h"
#include "../../lib/wire/rof.h"
#include "../support/rng.h"
#include "../support/udp_sum.h"

#define FRAME_MAX 2048

static const uint8_t device_keys[2][PSP_DEVICE_KEY_LEN] = {
	{0x34, 0x44, 0x8a, 0x06, 0x42, 0x92, 0x60, 0x1b}, {0x56, 0x39, 0x52, 0x56, 0x5d, 0x3a}};

/* The key of one SPI is stated explicitly, as a sender has it; the others are derived from the
 * device keys. */
#define NAMED_SPI 0x12345678
static const uint8_t named_key[16] = {0xfe, 0xed, 0xfa, 0xce, 1, 2, 3, 4, 5, 6, 7, 8};

/* The encapsulation of a packet. */
struct wrap {
	uint8_t version; /* PSP version */
	uint32_t spi;
	int outer, inner; /* 4 or 6; inner 0: transport mode */
	bool cookie;
};

static FILE *pcap, *meant;
static struct psp_crypto *crypto;
static struct psp_sa *sa;
static struct psp_iv ivs;
static uint64_t now = 1000000000, seed;
static unsigned frames;

static void
say(const char *field, uint64_t v)
{
	fprintf(meant, " %s=%llu", field, (unsigned long long)v);
}

static void
say_bytes(const char *field, const uint8_t *p, unsigned n)
{
	if (n == 0)
		return;
	fprintf(meant, " %s=x", field);
	for (unsigned i = 0; i < n; i++)
		fprintf(meant, "%02x", p[i]);
}

static void
say_map(const char *field, uint64_t high, uint64_t low)
{
	fprintf(meant, " %s=x%016llx%016llx", field, (unsigned long long)high,
		(unsigned long long)low);
}

/* ---- Expected fields ---- */

static void
say_psp(const struct wire_psp *h)
{
	say("psp.next", h->next);
	say("psp.ext_len", h->has_vc ? 2 : 1);
	say("psp.crypt_offset", h->crypt_offset);
	say("psp.sample", h->sample);
	say("psp.drop", h->drop);
	say("psp.version", h->version);
	say("psp.has_vc", h->has_vc);
	say("psp.spi", h->spi);
	say("psp.iv", h->iv);
	say("psp.time", wire_psp_iv_ticks(h->iv));
	say("psp.counter", h->iv & 0xffff);
	if (h->has_vc)
		say("psp.vc", h->vc);
}

static void
say_ack(const struct wire_falcon *h)
{
	say("falcon.t1", h->t1);
	say("falcon.t2", h->t2);
	say("falcon.hops", h->hops);
	say("falcon.rx_level", h->rx_level);
	say("falcon.ecn", h->ecn);
	if (h->type == FALCON_NACK) {
		say("falcon.nack.rue", h->rue);
		say("falcon.nack.psn", h->psn);
		say("falcon.nack.code", h->nack_code);
		say("falcon.nack.rnr", h->rnr_timeout);
		say("falcon.nack.request", h->nack_request);
		say("falcon.nack.ulp_code", h->ulp_code);
		return;
	}
	say("falcon.rue", h->rue);
	say("falcon.own.data", h->own_data);
	say("falcon.own.request", h->own_request);
	if (h->type == FALCON_EACK) {
		say_map("falcon.data_ack", h->data_ack[1], h->data_ack[0]);
		say_map("falcon.data_rx", h->data_rx[1], h->data_rx[0]);
		fprintf(meant, " falcon.req_map=x%016llx", (unsigned long long)h->req_map);
	}
}

static void
say_falcon(const struct wire_falcon *h, unsigned payload_len)
{
	say("falcon.version", 1);
	say("falcon.cid", h->cid);
	say("falcon.type", h->type);
	say("falcon.dbpsn", h->dbpsn);
	say("falcon.rbpsn", h->rbpsn);
	if (h->type >= FALCON_NACK) {
		say_ack(h);
		return;
	}
	say("falcon.function", h->function);
	say("falcon.proto", h->proto);
	say("falcon.ar", h->ar);
	say("falcon.psn", h->psn);
	say("falcon.rsn", h->rsn);
	say("falcon.payload_len", payload_len);
	if (h->type == FALCON_PULL_REQUEST || h->type == FALCON_PUSH_DATA)
		say("falcon.request_len", h->request_len);
	if (h->type == FALCON_RESYNC) {
		say("falcon.resync.code", h->resync_code);
		say("falcon.resync.type", h->resync_type);
		say("falcon.resync.vendor", h->vendor);
	}
}

static void
say_if(int there, const char *field, uint64_t v)
{
	if (there)
		say(field, v);
}

static void
say_rof(const struct wire_rof *h, const uint8_t *payload, unsigned len)
{
	int with = wire_rof_headers(h->opcode);

	say("rof.version", 1);
	say("rof.ce", h->ce);
	say("rof.pad", h->pad);
	say("rof.se", h->se);
	say("rof.opcode", h->opcode);
	say("rof.dest_qp", h->dest_qp);
	say("rof.sn", h->sn);
	say_if(with & ROF_XRCETH, "rof.xrc_srq", h->xrc_srq);
	say_if(with & ROF_DETH, "rof.qkey", h->qkey);
	say_if(with & ROF_DETH, "rof.src_qp", h->src_qp);
	say_if(with & (ROF_RETH | ROF_ATOMICETH), "rof.va", h->va);
	say_if(with & (ROF_RETH | ROF_ATOMICETH), "rof.rkey", h->rkey);
	say_if(with & ROF_RETH, "rof.length", h->length);
	say_if(with & ROF_ATOMICETH, "rof.swap_add", h->swap_add);
	say_if(with & ROF_ATOMICETH, "rof.compare", h->compare);
	say_if(with & ROF_ATOMICACKETH, "rof.original", h->original);
	say_if(with & ROF_SETH, "rof.rmsn", h->rmsn);
	say_if(with & ROF_OETH, "rof.offset", h->offset);
	say_if(with & ROF_STETH, "rof.sink_va", h->sink_va);
	say_if(with & ROF_STETH, "rof.sink_lkey", h->sink_lkey);
	say_if(with & ROF_IMMDT, "rof.imm", h->imm);
	say_if(with & ROF_IETH, "rof.inv_rkey", h->inv_rkey);
	say("rof.payload_len", len);
	say_bytes("rof.payload", payload, len);
}

/* ---- Frames ---- */

static void
put32(FILE *f, uint32_t v)
{
	fwrite(&v, sizeof(v), 1, f); /* a pcap file's magic states its byte order */
}

static void
write_frame(const uint8_t *frame, uint32_t len)
{
	put32(pcap, frames);
	put32(pcap, 0);
	put32(pcap, len);
	put32(pcap, len);
	fwrite(frame, len, 1, pcap);
	fprintf(meant, "\n");
	frames++;
}

static struct wire_ip
ip_header(int family, uint8_t proto, uint32_t payload_len)
{
	struct wire_ip ip = {
		.proto = proto, .ttl = 64, .ecn = IP_ECN_ECT0, .payload_len = payload_len};

	sk_addr_parse(family == 4 ? "192.0.2.1" : "2001:db8::1", &ip.src);
	sk_addr_parse(family == 4 ? "192.0.2.2" : "2001:db8::2", &ip.dst);
	ip.flow = family == 6 ? 0x12344 + frames % 4 : 0;
	return ip;
}

/* Encrypts the bytes behind the PSP header and adds the outer headers. */
static void
send_datagram(const struct wrap *w, uint8_t *frame, uint8_t *datagram, uint32_t len,
	const struct wire_psp *h)
{
	struct wire_eth eth = {.type = w->outer == 4 ? ETH_IPV4 : ETH_IPV6, .vlan = ETH_NO_VLAN};
	struct wire_udp udp = {.sport = (uint16_t)(49152 + frames % 1000),
		.dport = PSP_UDP_PORT,
		.payload_len = (uint16_t)len};
	struct wire_ip ip = ip_header(w->outer, IP_UDP, UDP_LEN + len);
	struct psp_part part;
	struct psp_pkt pkt;
	uint8_t *p = frame;

	psp_pkt_in_place(&pkt, &part, sa, datagram, len, h);
	psp_seal(crypto, &pkt, 1);
	p += wire_eth_emit(p, &eth);
	p += wire_ip_emit(p, &ip);
	wire_udp_emit(p, &udp);
	udp_sum_set(p, UDP_LEN + len, &ip.src, &ip.dst);
	fprintf(meant, "%u eth.type=%u", frames + 1, eth.type);
	say("udp.srcport", udp.sport);
	if (w->outer == 6 || w->inner == 6)
		say("ipv6.flow", 0x12344 + frames % 4); /* of the outer header, if both are IPv6 */
	say("udp.checksum.status", 1);                  /* good */
	say_psp(h);
	if (h->version != PSP_NO_CRYPTO)
		say_bytes("psp.icv", pkt.icv, PSP_ICV_LEN);
	if (h->version != PSP_NO_CRYPTO)
		say("psp.icv_good", 1);
	p += UDP_LEN;
	if (p != datagram)
		abort();
}

static void
send_packet(const struct wrap *w, const struct wire_falcon *f, const struct wire_rof *r,
	const uint8_t *payload, unsigned len)
{
	uint8_t frame[FRAME_MAX] = {0};
	uint8_t *datagram = frame + ETH_LEN + (w->outer == 4 ? IP4_LEN : IP6_LEN) + UDP_LEN;
	uint8_t *p = datagram;
	unsigned inner_len = w->inner == 0 ? 0 : w->inner == 4 ? IP4_LEN : IP6_LEN;
	unsigned ulp_len = r == NULL ? 0 : wire_rof_len(r->opcode) + len + r->pad;
	struct wire_psp h = {.version = w->version,
		.spi = w->spi,
		.has_vc = w->cookie,
		.vc = 0xc0ffee0000000000 + frames,
		.sample = frames % 3 == 0,
		.drop = frames % 5 == 0,
		.crypt_offset = wire_psp_crypt_offset(w->cookie, inner_len)};
	struct wire_ip ip =
		ip_header(w->inner, PSP_NEXT_FALCON, wire_falcon_len(f->type) + ulp_len);

	now += 777;
	psp_iv_next(&ivs, now, &h.iv);
	h.next = w->inner == 0 ? PSP_NEXT_FALCON : w->inner == 4 ? PSP_NEXT_IP4 : PSP_NEXT_IP6;
	p += wire_psp_emit(p, &h);
	if (inner_len > 0)
		p += wire_ip_emit(p, &ip);
	p += wire_falcon_emit(p, f);
	if (r != NULL) {
		p += wire_rof_emit(p, r);
		memcpy(p, payload, len);
		p += len + r->pad;
	}
	p += wire_psp_icv_len(h.version);
	send_datagram(w, frame, datagram, (uint32_t)(p - datagram), &h);
	say_falcon(f, ulp_len);
	if (r != NULL)
		say_rof(r, payload, len);
	write_frame(frame, (uint32_t)(p - frame));
}

/* ---- Contents ---- */

static uint64_t
noise(void)
{
	return rng_next(&seed);
}

static struct wire_falcon
falcon_header(uint8_t type)
{
	return (struct wire_falcon){.type = type,
		.ar = noise() & 1,
		.proto = type == FALCON_RESYNC && noise() & 1 ? FALCON_NVME : FALCON_RDMA,
		.cid = (uint32_t)noise() & FALCON_CID_MAX,
		.function = (uint32_t)noise() & 0xffffff,
		.dbpsn = (uint32_t)noise(),
		.rbpsn = (uint32_t)noise(),
		.psn = (uint32_t)noise(),
		.rsn = (uint32_t)noise()};
}

static void
send_opcode(const struct wrap *w, uint8_t opcode)
{
	uint8_t type = (uint8_t)wire_rof_falcon_type(opcode), payload[64];
	unsigned len = type == FALCON_PULL_REQUEST ? 0 : (unsigned)noise() % sizeof(payload);
	struct wire_falcon f = falcon_header(type);
	struct wire_rof r = {.opcode = opcode,
		.ce = noise() & 1,
		.se = noise() & 1,
		.pad = wire_rof_pad(len),
		.dest_qp = (uint32_t)noise() & ROF_QPN_MAX,
		.sn = (uint32_t)noise(),
		.va = noise(),
		.rkey = (uint32_t)noise(),
		.length = (uint32_t)noise(),
		.swap_add = noise(),
		.compare = noise(),
		.original = noise(),
		.rmsn = (uint32_t)noise(),
		.offset = (uint32_t)noise(),
		.sink_va = noise(),
		.sink_lkey = (uint32_t)noise(),
		.imm = (uint32_t)noise(),
		.inv_rkey = (uint32_t)noise(),
		.xrc_srq = (uint32_t)noise() & ROF_QPN_MAX,
		.qkey = (uint32_t)noise(),
		.src_qp = (uint32_t)noise() & ROF_QPN_MAX};

	for (unsigned i = 0; i < len; i++)
		payload[i] = (uint8_t)noise();
	f.request_len =
		(uint16_t)(type == FALCON_PUSH_DATA ? wire_rof_len(opcode) + len + r.pad : noise());
	if (type == FALCON_PULL_DATA)
		f.request_len = 0;
	send_packet(w, &f, &r, payload, len);
}

static void
send_control(const struct wrap *w, uint8_t type)
{
	static const uint8_t nacks[] = {FALCON_NACK_RESOURCES, FALCON_NACK_RNR, FALCON_NACK_XLR,
		FALCON_NACK_CIE, FALCON_NACK_NON_RECOVERABLE, FALCON_NACK_INVALID_CID};
	static const uint8_t replaced[] = {FALCON_PUSH_DATA, FALCON_PULL_REQUEST, FALCON_PULL_DATA};
	struct wire_falcon f = falcon_header(type);

	f.resync_code = (uint8_t)(1 + noise() % 7);
	f.resync_type = replaced[rng_below(&seed, SK_ARRAY_LEN(replaced))];
	f.vendor = (uint32_t)noise();
	f.t1 = (uint32_t)noise();
	f.t2 = (uint32_t)noise();
	f.hops = noise() & 0xf;
	f.rx_level = noise() & 0x1f;
	f.ecn = noise() & FALCON_ECN_MASK;
	f.rue = (uint32_t)noise() & FALCON_RUE_MASK;
	f.own_request = noise() & 1;
	f.own_data = noise() & 1;
	for (unsigned i = 0; i < 2; i++) {
		f.data_ack[i] = noise();
		f.data_rx[i] = noise();
	}
	f.req_map = noise();
	f.nack_code = nacks[rng_below(&seed, SK_ARRAY_LEN(nacks))];
	f.rnr_timeout = noise() & 0x1f;
	f.nack_request = noise() & 1;
	f.ulp_code = (uint8_t)noise();
	send_packet(w, &f, NULL, NULL, 0);
}

static void
send_all(const struct wrap *w)
{
	static const uint8_t controls[] = {FALCON_RESYNC, FALCON_NACK, FALCON_BACK, FALCON_EACK};
	uint8_t key[PSP_KEY_MAX];

	psp_derive_key(crypto, key, device_keys[w->spi >> 31], w->spi, w->version);
	sa = psp_sa_create(crypto, w->version, w->spi, w->spi == NAMED_SPI ? named_key : key);
	if (sa == NULL)
		exit(1);
	for (unsigned i = 0; i < sizeof(controls); i++)
		send_control(w, controls[i]);
	for (unsigned op = 0; op < 256; op++) {
		if (wire_rof_len((uint8_t)op) > 0)
			send_opcode(w, (uint8_t)op);
	}
	psp_sa_destroy(sa);
}

static FILE *
open_in(const char *folder, const char *name)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "wb");
	if (f == NULL) {
		perror(path);
		exit(1);
	}
	return f;
}

static void
write_options(const char *folder)
{
	FILE *f = open_in(folder, "options");

	fprintf(f, "-o\npsp.keys:1=00 %08x=", NAMED_SPI);
	for (unsigned i = 0; i < sizeof(named_key); i++)
		fprintf(f, "%02x", named_key[i]);
	for (unsigned k = 0; k < 2; k++) {
		fprintf(f, "\n-o\npsp.device_key_%u:", k);
		for (unsigned i = 0; i < PSP_DEVICE_KEY_LEN; i++)
			fprintf(f, "%02x", device_keys[k][i]);
	}
	fprintf(f, "\n");
	fclose(f);
}

int
main(int argc, char **argv)
{
	static const struct wrap kinds[] = {{PSP_AES_GCM_128, NAMED_SPI, 0, 0, false},
		{PSP_AES_GCM_256, 0x92345679, 0, 0, true}, {PSP_GMAC_128, 0x1234567a, 0, 0, true},
		{PSP_GMAC_256, 0x9234567b, 0, 0, false}, {PSP_NO_CRYPTO, 12, 0, 0, false}};

	if (argc != 3)
		return 2;
	seed = strtoull(argv[2], NULL, 0);
	crypto = psp_crypto_create();
	if (crypto == NULL)
		return 1;
	pcap = open_in(argv[1], "frames.pcap");
	meant = open_in(argv[1], "meant");
	put32(pcap, 0xa1b2c3d4);
	put32(pcap, 2 | 4 << 16); /* version 2.4 */
	put32(pcap, 0);
	put32(pcap, 0);
	put32(pcap, FRAME_MAX);
	put32(pcap, 1); /* Ethernet */
	for (unsigned i = 0; i < SK_ARRAY_LEN(kinds) * 6; i++) {
		struct wrap w = kinds[i / 6];

		w.outer = i % 2 ? 6 : 4;
		w.inner = i % 6 / 2 == 0 ? 0 : i % 6 / 2 == 1 ? 4 : 6;
		send_all(&w);
	}
	write_options(argv[1]);
	psp_crypto_destroy(crypto);
	fclose(meant);
	return fclose(pcap) == 0 && frames > 0 ? 0 : 1;
}
