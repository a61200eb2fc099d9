/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The frame that nearly every segment of a TCP connection is: Ethernet without VLAN tag, IPv4
 * without options, and TCP with ACK, perhaps PSH, and the timestamps option alone. All of its
 * fields lie at constant offsets, so that a few comparisons recognize it. wire_pkt_parse() parses
 * any frame; wire_plain_parse() gives the same result for the frames that it accepts.
 */
#ifndef SAKER_WIRE_PLAIN_H
#define SAKER_WIRE_PLAIN_H

#include <string.h>

#include "wire.h"
#include "word.h"

#define PLAIN_L4  (ETH_LEN + IP4_LEN) /* byte offset of the TCP header */
#define PLAIN_LEN (PLAIN_L4 + 32)     /* bytes of all headers */

struct wire_plain {
	uint64_t addrs; /* IPv4 source and destination as they lie in memory */
	uint32_t ports; /* source and destination port as they lie in memory */
	uint32_t payload_len;
	uint8_t ecn;
	struct wire_tcp tcp;
};

/* Returns whether the checksum of the IPv4 header at `p`, without options, is correct. */
static inline bool
wire_plain_ip4_intact(const uint8_t *p)
{
	uint64_t sum = (uint64_t)wire_word32(p) + wire_word32(p + 4) + wire_word32(p + 8) +
		       wire_word32(p + 12) + wire_word32(p + 16);

	/* The sum of five 32-bit words has at most three bits above them. */
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

/* Reads what the comparison of a frame with a connection needs: `addrs` and `ports`. Returns
 * whether the frame, of which `held` bytes are at `p`, has the constant fields of a plain segment.
 */
static inline bool
wire_plain_match(struct wire_plain *out, const uint8_t *p, size_t held)
{
	/* EtherType, version and header length; flags and fragment offset, without DF and the
	 * reserved bit, and the protocol */
	const uint32_t type = htobe32(ETH_IPV4 << 16 | 0x45 << 8), type_mask = htobe32(0xffffff00);
	const uint32_t whole = htobe32(IP_TCP), whole_mask = htobe32(0x3fff00ff);
	/* Data offset and reserved bits; flags; NOP, NOP, kind and length of the timestamps */
	const uint16_t flags = htobe16(0x8000 | TCP_ACK), flags_mask = htobe16(0xffff ^ TCP_PSH);
	const uint32_t option = htobe32(0x0101080a);

	if (held < PLAIN_LEN || (wire_word32(p + 12) & type_mask) != type ||
		(wire_word32(p + 20) & whole_mask) != whole ||
		(wire_word16(p + PLAIN_L4 + 12) & flags_mask) != flags ||
		wire_word32(p + PLAIN_L4 + TCP_LEN) != option)
		return false;
	out->addrs = wire_word64(p + ETH_LEN + 12);
	out->ports = wire_word32(p + PLAIN_L4);
	return true;
}

/* Fills in the other fields of a frame of `len` bytes with wire_plain_match(). Returns false when
 * the length or the checksum of the IP header is wrong. Does not check the checksum of TCP. Of
 * out->tcp, `sack` is not valid, because there is none. */
static inline bool
wire_plain_parse(struct wire_plain *out, const uint8_t *p, size_t len)
{
	const uint8_t *tcp = p + PLAIN_L4;
	uint32_t total = wire_be16(p + ETH_LEN + 2);
	struct wire_tcp *t = &out->tcp;

	if (total < PLAIN_LEN - ETH_LEN || total > len - ETH_LEN ||
		!wire_plain_ip4_intact(p + ETH_LEN))
		return false;
	out->payload_len = total - (PLAIN_LEN - ETH_LEN);
	out->ecn = p[ETH_LEN + 1] & 3;
	t->sport = wire_be16(tcp);
	t->dport = wire_be16(tcp + 2);
	t->seq = wire_be32(tcp + 4);
	t->ack = wire_be32(tcp + 8);
	t->flags = tcp[13];
	t->hdr_len = PLAIN_LEN - PLAIN_L4;
	t->window = wire_be16(tcp + 14);
	t->mss = 0;
	t->wscale = TCP_NO_WSCALE;
	t->sack_ok = false;
	t->ts = true;
	t->nsack = 0;
	t->ts_val = wire_be32(tcp + TCP_LEN + 4);
	t->ts_ecr = wire_be32(tcp + TCP_LEN + 8);
	return true;
}

/* Returns whether wire_tcp_emit() writes the timestamps option and no other one. */
static inline bool
wire_plain_shape(const struct wire_tcp *in)
{
	return in->ts && in->mss == 0 && in->nsack == 0 && !in->sack_ok &&
	       in->wscale == TCP_NO_WSCALE;
}

/* Writes the TCP header of a record with wire_plain_shape(), as wire_tcp_emit() does: PLAIN_LEN -
 * PLAIN_L4 bytes. */
static inline void
wire_plain_emit(uint8_t *p, const struct wire_tcp *in)
{
	const uint32_t words[] = {
		htobe32((uint32_t)in->sport << 16 | in->dport),
		htobe32(in->seq),
		htobe32(in->ack),
		htobe32(0x80000000 | (uint32_t)in->flags << 16 | in->window),
		0, /* checksum and urgent pointer */
		htobe32(0x0101080a),
		htobe32(in->ts_val),
		htobe32(in->ts_ecr),
	};

	memcpy(p, words, sizeof(words));
}

#endif
