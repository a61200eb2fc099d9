/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All headers that Saker reads or writes, but for those of Falcon (falcon.h, rof.h). Each protocol
 * has a struct of big-endian fields (private to its .c file, with its size asserted and the
 * specification's section), a record in host order (here), and two functions:
 *
 *	int      X_parse(struct X *out, const uint8_t *p, size_t len);
 *	unsigned X_emit(uint8_t *p, const struct X *in);
 *
 * X_parse reads a header of at most `len` bytes at `p`. It checks lengths first, reads no byte
 * behind p + len, and keeps no pointer. It returns the number of header bytes, or -reason (enum
 * wire_reason). X_emit writes the header at `p`, where the caller has room for X_MAX (or X_LEN)
 * bytes, and returns the number of bytes written. Code above this library uses host order only.
 */
#ifndef SAKER_WIRE_H
#define SAKER_WIRE_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/addr.h"
#include "../base/check.h"
#include "../base/reason.h"

#define WIRE_REASONS(X)                                                                            \
	X(WIRE_SHORT, SK_WARNING, "a frame that ends inside a header")                             \
	X(WIRE_ETHERTYPE, SK_NORMAL, "an EtherType that Saker does not use")                       \
	X(WIRE_VLAN_DEPTH, SK_NOTICE, "more than one VLAN tag")                                    \
	X(WIRE_IP_VERSION, SK_WARNING, "an IP version field that contradicts the EtherType")       \
	X(WIRE_IP_HEADER, SK_WARNING, "an invalid IP header length or total length")               \
	X(WIRE_IP_CHECKSUM, SK_WARNING, "a wrong IPv4 header checksum")                            \
	X(WIRE_IP_FRAGMENT, SK_NOTICE, "an IP fragment (both transports forbid fragmentation)")    \
	X(WIRE_IP_PROTOCOL, SK_NORMAL, "an IP protocol that Saker does not use")                   \
	X(WIRE_IP6_EXTENSION, SK_NOTICE, "an IPv6 extension header that may not be skipped")       \
	X(WIRE_TCP_HEADER, SK_WARNING, "an invalid TCP data offset")                               \
	X(WIRE_TCP_OPTION, SK_WARNING, "a TCP option with an invalid length")                      \
	X(WIRE_TCP_CHECKSUM, SK_WARNING, "a wrong TCP checksum")                                   \
	X(WIRE_UDP_HEADER, SK_WARNING, "an invalid UDP length")                                    \
	X(WIRE_ARP_HEADER, SK_WARNING, "an ARP packet that is not Ethernet/IPv4")                  \
	X(WIRE_ICMP_HEADER, SK_WARNING, "an invalid ICMP message")                                 \
	X(WIRE_ICMP_CHECKSUM, SK_WARNING, "a wrong ICMP checksum")                                 \
	X(WIRE_MPA_KEY, SK_WARNING, "an MPA start-up frame without its key")                       \
	X(WIRE_MPA_LENGTH, SK_WARNING, "an MPA start-up frame whose private data is too long")     \
	X(WIRE_UDP_CHECKSUM, SK_WARNING, "a wrong UDP checksum, or none where it is required")     \
	X(WIRE_PSP_HEADER, SK_WARNING, "a PSP header with a wrong length or fixed bit")            \
	X(WIRE_PSP_VERSION, SK_WARNING, "a PSP version that is not defined")                       \
	X(WIRE_FALCON_VERSION, SK_WARNING, "a Falcon version other than 1")                        \
	X(WIRE_FALCON_TYPE, SK_WARNING, "a reserved Falcon packet type")                           \
	X(WIRE_FALCON_PROTOCOL, SK_WARNING, "a reserved Falcon protocol type")                     \
	X(WIRE_FALCON_LENGTH, SK_WARNING, "a Falcon packet whose length contradicts its header")   \
	X(WIRE_FALCON_RESYNC, SK_WARNING, "a Resync for a packet type that is not reliable")       \
	X(WIRE_ROF_VERSION, SK_WARNING, "an RDMA over Falcon version other than 1")                \
	X(WIRE_ROF_OPCODE, SK_WARNING, "a reserved RDMA over Falcon opcode")                       \
	X(WIRE_ROF_PAD, SK_WARNING, "an RDMA over Falcon packet with less payload than padding")

SK_REASONS_DECLARE(wire, WIRE_NONE, WIRE_REASONS)

/* ---- Ethernet, 802.1Q ---- */

#define ETH_LEN     14
#define ETH_MAX     18 /* with one VLAN tag */
#define ETH_IPV4    0x0800
#define ETH_ARP     0x0806
#define ETH_IPV6    0x86dd
#define ETH_NO_VLAN 0xffff

struct wire_eth {
	uint8_t dst[6], src[6];
	uint16_t type; /* type of the payload, behind the tag */
	uint16_t vlan; /* VLAN id 0 to 4095, or ETH_NO_VLAN */
	uint8_t pcp;   /* priority code point of the tag */
};

int wire_eth_parse(struct wire_eth *out, const uint8_t *p, size_t len);
unsigned wire_eth_emit(uint8_t *p, const struct wire_eth *in);

/* ---- ARP (RFC 826), Ethernet and IPv4 only ---- */

#define ARP_LEN     28
#define ARP_REQUEST 1
#define ARP_REPLY   2

struct wire_arp {
	uint16_t op;
	uint8_t sha[6], tha[6];
	struct sk_addr spa, tpa;
};

int wire_arp_parse(struct wire_arp *out, const uint8_t *p, size_t len);
unsigned wire_arp_emit(uint8_t *p, const struct wire_arp *in);

/* ---- IPv4 (RFC 791), IPv6 (RFC 8200) ---- */

#define IP4_LEN 20
#define IP6_LEN 40
/* Offsets of fields in an IPv4 header. */
#define IP4_TOS_OFFSET   1
#define IP4_TOTAL_OFFSET 2
#define IP4_ID_OFFSET    4
#define IP4_CKSUM_OFFSET 10
#define IP_MAX           40
#define IP_ICMP          1
#define IP_TCP           6
#define IP_UDP           17
#define IP_ICMP6         58
#define IP_ECN_NOT       0 /* RFC 3168 section 5 */
#define IP_ECN_ECT1      1
#define IP_ECN_ECT0      2
#define IP_ECN_CE        3

struct wire_ip {
	struct sk_addr src, dst;
	/* Protocol of the payload, behind IPv6 hop-by-hop, destination and routing options. */
	uint8_t proto;
	uint8_t ttl;       /* or hop limit */
	uint8_t dscp, ecn; /* 6 and 2 bits */
	uint16_t id;       /* IPv4 identification; emit sets DF (RFC 791) */
	uint32_t flow;     /* IPv6 flow label, 20 bits */
	/* Bytes behind the header(s), as the header gives them; at most the bytes received. */
	uint32_t payload_len;
};

/* Parse an IP header of the version that the EtherType gave. They refuse a fragment, a wrong header
 * checksum, a total length that exceeds `len`, and IPv4-mapped addresses in an IPv6 header.
 * payload_len does not include bytes behind the total length (Ethernet padding). */
int wire_ip4_parse(struct wire_ip *out, const uint8_t *p, size_t len);
int wire_ip6_parse(struct wire_ip *out, const uint8_t *p, size_t len);
/* Writes a header of the family of in->dst, and fills in the checksum of IPv4. */
unsigned wire_ip_emit(uint8_t *p, const struct wire_ip *in);
/* Changes the flow label of an IPv6 header that wire_ip_emit() wrote. */
void wire_ip6_flow_set(uint8_t *p, uint32_t flow);

/*
 * The Internet checksum (RFC 1071) is a running 32-bit sum of 16-bit words as they lie in memory.
 * wire_sum() adds `len` bytes, of which only the last piece may have an odd number.
 * wire_pseudo_sum() returns the sum of the pseudo header of either IP version; `len` is the length
 * of the transport header and its payload.
 */
static inline uint32_t
wire_sum(uint32_t sum, const void *data, size_t len)
{
	uint64_t wide = sk_sum(sum, data, len);

	return (uint32_t)((wide + (wide << 32 | wide >> 32)) >> 32); /* adds the carry */
}
uint32_t wire_pseudo_sum(
	const struct sk_addr *src, const struct sk_addr *dst, uint8_t proto, uint32_t len);
/* Folds the sum to 16 bits and complements it. The result is stored without a swap; over received
 * bytes, 0 means that the checksum is correct. */
uint16_t wire_sum_fold(uint32_t sum);

/* Composed in registers, for the data path: adds a 64-bit word of memory to a 64-bit sum. */
static inline uint64_t
wire_sum_word(uint64_t sum, uint64_t word)
{
	sum += word;
	return sum + (sum < word); /* the carry is added at the low end */
}

/* Folds a sum of wire_sum_word() as wire_sum_fold() does. */
static inline uint16_t
wire_sum_word_fold(uint64_t sum)
{
	uint32_t half;

	sum = (sum & 0xffffffff) + (sum >> 32);
	half = (uint32_t)sum + (uint32_t)(sum >> 32);
	half = (half & 0xffff) + (half >> 16);
	return (uint16_t) ~(half + (half >> 16));
}

/* ---- TCP (RFC 9293, 7323, 2018) ---- */

#define TCP_LEN        20
#define TCP_MAX        60
#define TCP_FIN        0x01
#define TCP_SYN        0x02
#define TCP_RST        0x04
#define TCP_PSH        0x08
#define TCP_ACK        0x10
#define TCP_URG        0x20
#define TCP_ECE        0x40
#define TCP_CWR        0x80
#define TCP_MAX_SACK   4
#define TCP_WSCALE_MAX 14
#define TCP_NO_WSCALE  0xff

struct wire_sack {
	uint32_t left, right; /* [left, right) */
};

struct wire_tcp {
	uint16_t sport, dport;
	uint32_t seq, ack;
	uint8_t flags;
	uint8_t hdr_len; /* bytes with options; set by parse only */
	uint16_t window; /* as in the header, not scaled */
	uint16_t mss;    /* 0: option absent */
	/* At most 14 after wire_tcp_parse() (RFC 7323 section 2.3); TCP_NO_WSCALE: absent. */
	uint8_t wscale;
	bool sack_ok; /* SACK permitted */
	bool ts;      /* ts_val and ts_ecr are present */
	uint8_t nsack;
	uint32_t ts_val, ts_ecr;
	/* wire_tcp_emit() writes as many as fit into 40 bytes of options. */
	struct wire_sack sack[TCP_MAX_SACK];
};

/* Parses without a check of the checksum: the port may have checked it, else the caller does it
 * with wire_pseudo_sum() and wire_sum(). */
int wire_tcp_parse(struct wire_tcp *out, const uint8_t *p, size_t len);
/* Writes the header with checksum 0; the data offset includes the options. */
unsigned wire_tcp_emit(uint8_t *p, const struct wire_tcp *in);
/* Byte offset of the checksum field in a TCP header. */
#define TCP_CKSUM_OFFSET 16

/* ---- UDP (RFC 768) ---- */

#define UDP_LEN 8

struct wire_udp {
	uint16_t sport, dport;
	uint16_t payload_len;
	uint16_t checksum; /* as it lies in memory; 0: none */
};

unsigned wire_udp_emit(uint8_t *p, const struct wire_udp *in);
/* Returns the header with checksum 0 as a word in memory order, for the data path. */
static inline uint64_t
wire_udp_word(uint16_t sport, uint16_t dport, uint16_t payload_len)
{
	return htobe64((uint64_t)sport << 48 | (uint64_t)dport << 32 |
		       (uint64_t)(uint16_t)(UDP_LEN + payload_len) << 16);
}
/* Byte offset of the checksum field in a UDP header. */
#define UDP_CKSUM_OFFSET 6

/* ---- ICMP (RFC 792), ICMPv6 (RFC 4443), NDP (RFC 4861) ---- */

enum wire_icmp_kind {
	ICMP_OTHER,
	ICMP_ECHO_REQUEST,
	ICMP_ECHO_REPLY,
	ICMP_TOO_BIG,     /* fragmentation needed, or packet too big: `mtu`, `quote` */
	ICMP_UNREACHABLE, /* `code`, `quote` */
	ICMP_NEIGHBOR_SOLICIT,
	ICMP_NEIGHBOR_ADVERT,
	ICMP_ROUTER_ADVERT,
};

/* The packet that an ICMP error quotes; fields that the quotation does not hold are 0. */
struct wire_quote {
	struct sk_addr src, dst;
	uint8_t proto;
	uint16_t sport, dport;
	uint32_t seq; /* TCP */
};

struct wire_icmp {
	enum wire_icmp_kind kind;
	uint8_t type, code;
	uint16_t echo_id, echo_seq;
	uint16_t body; /* byte offset of the echo data */
	uint32_t mtu;
	struct wire_quote quote;
	/* Neighbour discovery. */
	struct sk_addr target;
	bool has_lladdr, solicited, override, router;
	/* Link-layer address of the source (solicitation) or the target (advertisement). */
	uint8_t lladdr[6];
};

/* Parses a message of `len` bytes behind the header `ip`, and checks its checksum over all
 * bytes. */
int wire_icmp_parse(struct wire_icmp *out, const struct wire_ip *ip, const uint8_t *p, size_t len);
#define ICMP_ECHO_LEN 8
#define ICMP_ND_LEN   32
/* Writes the header of an echo reply (8 bytes; the caller's data follows), or a solicitation or an
 * advertisement (32 bytes, with the link-layer option), with checksum 0. The caller sets the
 * checksum with wire_icmp_checksum() when the body is complete. */
unsigned wire_icmp_emit(uint8_t *p, const struct wire_icmp *in, bool v6);
void wire_icmp_checksum(
	uint8_t *p, size_t len, const struct sk_addr *src, const struct sk_addr *dst);

/* ---- A whole frame ---- */

/* The headers of a frame, each parsed once. */
struct wire_pkt {
	struct wire_eth eth;
	struct wire_ip ip;        /* valid when eth.type is IPv4 or IPv6 */
	uint16_t l3, l4, payload; /* byte offsets in the frame */
	uint32_t payload_len;     /* bytes behind the L4 header, without padding */
	union {
		struct wire_tcp tcp;
		struct wire_udp udp;
		struct wire_arp arp;
		struct wire_icmp icmp;
	};
};

/* Parses a frame of `frame_len` bytes, of which the first `head_len` are at `head`. They must
 * include all headers through L4, and all of an ICMP or ARP packet; the payload may lie elsewhere.
 * Returns 0 or -reason. Does not check the checksum of TCP or UDP. */
int wire_pkt_parse(struct wire_pkt *out, const uint8_t *head, size_t head_len, size_t frame_len);

/* ---- MPA (RFC 5044; enhanced: RFC 6581) ---- */

#define MPA_STARTUP_LEN  20 /* key 16, flags 1, revision 1, private data length 2 */
#define MPA_PRIVATE_MAX  512
#define MPA_LEN_FIELD    2 /* ULPDU length */
#define MPA_CRC_LEN      4
#define MPA_MARKER_LEN   4
#define MPA_MARKER_EVERY 512

struct wire_mpa_startup { /* RFC 5044 section 7.1.1 */
	bool reply;       /* request ("MPA ID Req Frame") or reply ("MPA ID Rep Frame") */
	bool markers;     /* M: the sender of this frame requests markers */
	bool crc;         /* C */
	bool reject;      /* R, replies only */
	bool enhanced;    /* S of RFC 6581: the private data begins with the IRD/ORD word */
	uint8_t revision;
	uint8_t reserved;     /* remaining bits of the flags, as received */
	uint16_t private_len; /* bytes that follow, with the IRD/ORD word */
};

/* Parses the first MPA_STARTUP_LEN bytes of a frame; the private data follows them. */
int wire_mpa_startup_parse(struct wire_mpa_startup *out, const uint8_t *p, size_t len);
unsigned wire_mpa_startup_emit(uint8_t *p, const struct wire_mpa_startup *in);

#define MPA_IRD_ORD_LEN 4
struct wire_mpa_ird_ord {  /* RFC 6581 section 9 */
	bool a, b, c, d;   /* A: peer-to-peer, B: zero-length Send RTR, C: Write RTR, D: Read RTR */
	uint16_t ird, ord; /* 14 bits each; 0x3fff: automatic */
};

int wire_mpa_ird_ord_parse(struct wire_mpa_ird_ord *out, const uint8_t *p, size_t len);
unsigned wire_mpa_ird_ord_emit(uint8_t *p, const struct wire_mpa_ird_ord *in);

/* Write and read a marker (RFC 5044 section 4.3). fpdu_ptr is the number of bytes from the FPDU's
 * length field to the marker; 0: the FPDU begins right behind the marker. */
void wire_mpa_marker_emit(uint8_t *p, uint16_t fpdu_ptr);
uint16_t wire_mpa_marker_parse(const uint8_t *p);
uint16_t wire_mpa_len_parse(const uint8_t *p);
void wire_mpa_len_emit(uint8_t *p, uint16_t ulpdu_len);
/* Read and write the MPA CRC, the one field that is not big-endian: the CRC of "123456789" is 83 92
 * 06 E3 on the wire. */
uint32_t wire_mpa_crc_parse(const uint8_t *p);
void wire_mpa_crc_emit(uint8_t *p, uint32_t crc);

/* ---- DDP (RFC 5041 4), RDMAP (RFC 5040 4), RFC 7306 ---- */

#define DDP_TAGGED_LEN   14 /* control 1, RDMAP control 1, STag 4, TO 8 */
#define DDP_UNTAGGED_LEN 18 /* control 1, RDMAP control 1, RsvdULP 4, QN 4, MSN 4, MO 4 */
#define DDP_MAX          18
#define DDP_QN_SEND      0
#define DDP_QN_READ      1 /* Read Request, Atomic Request (RFC 7306) */
#define DDP_QN_TERMINATE 2
#define DDP_QN_ATOMIC    3 /* Atomic Response (RFC 7306) */

enum rdmap_opcode {
	RDMAP_WRITE = 0,
	RDMAP_READ_REQUEST = 1,
	RDMAP_READ_RESPONSE = 2,
	RDMAP_SEND = 3,
	RDMAP_SEND_INV = 4,
	RDMAP_SEND_SE = 5,
	RDMAP_SEND_SE_INV = 6,
	RDMAP_TERMINATE = 7,
	RDMAP_IMMEDIATE = 8, /* RFC 7306 */
	RDMAP_IMMEDIATE_SE = 9,
	RDMAP_ATOMIC_REQUEST = 10,
	RDMAP_ATOMIC_RESPONSE = 11,
};

struct wire_ddp {
	bool tagged, last;
	uint8_t dv;     /* DDP version; emit writes 1 */
	uint8_t rv;     /* RDMAP version; emit writes 1 */
	uint8_t opcode; /* enum rdmap_opcode; parse returns any value of 4 bits */
	/* Tagged segments. */
	uint32_t stag;
	uint64_t to;
	/* Untagged segments. */
	uint32_t inv_stag; /* the 4 bytes of the ULP: the STag to invalidate */
	uint32_t qn, msn, mo;
};

/* Returns DDP_TAGGED_LEN, DDP_UNTAGGED_LEN or -WIRE_SHORT. The layer above checks versions and
 * opcode, because it determines the Terminate message. */
int wire_ddp_parse(struct wire_ddp *out, const uint8_t *p, size_t len);
unsigned wire_ddp_emit(uint8_t *p, const struct wire_ddp *in);

/*
 * The DDP header and the MPA length field before it, composed in registers for the data path.
 * Together they are 16 bytes (tagged) or 20 bytes (untagged). The functions return them as words in
 * memory order; of the last word of an untagged header, only the first half is used.
 */
static inline void
wire_fpdu_tagged_words(uint64_t word[2], uint32_t ulpdu_len, const struct wire_ddp *in)
{
	uint64_t ctrl = (in->last ? 0xc1u : 0x81u) << 8 | 0x40u | in->opcode;

	word[0] = htobe64((uint64_t)ulpdu_len << 48 | ctrl << 32 | in->stag);
	word[1] = htobe64(in->to);
}

static inline void
wire_fpdu_untagged_words(uint64_t word[3], uint32_t ulpdu_len, const struct wire_ddp *in)
{
	uint64_t ctrl = (in->last ? 0x41u : 0x01u) << 8 | 0x40u | in->opcode;

	word[0] = htobe64((uint64_t)ulpdu_len << 48 | ctrl << 32 | in->inv_stag);
	word[1] = htobe64((uint64_t)in->qn << 32 | in->msn);
	word[2] = htobe64((uint64_t)in->mo << 32);
}

#define RDMAP_READ_REQUEST_LEN 28
struct wire_read_request { /* RFC 5040 section 4.4 */
	uint32_t sink_stag;
	uint64_t sink_to;
	uint32_t len;
	uint32_t src_stag;
	uint64_t src_to;
};
int wire_read_request_parse(struct wire_read_request *out, const uint8_t *p, size_t len);
unsigned wire_read_request_emit(uint8_t *p, const struct wire_read_request *in);

#define RDMAP_TERMINATE_LEN 4
#define RDMAP_TERMINATE_MAX (4 + 2 + DDP_MAX + RDMAP_READ_REQUEST_LEN)
struct wire_terminate {             /* RFC 5040 section 4.8 */
	uint8_t layer, etype, code; /* 4, 4 and 8 bits */
	/* The DDP segment length, the DDP header, the RDMAP header are included. */
	bool m, d, r;
	uint16_t ddp_seg_len;                         /* if `m` */
	uint8_t ddp_len;                              /* bytes of ddp_header if `d`: 14 or 18 */
	uint8_t ddp_header[DDP_MAX];                  /* as received */
	uint8_t rdmap_header[RDMAP_READ_REQUEST_LEN]; /* the Read Request if `r`, as received */
};
int wire_terminate_parse(struct wire_terminate *out, const uint8_t *p, size_t len);
unsigned wire_terminate_emit(uint8_t *p, const struct wire_terminate *in);

#define RDMAP_ATOMIC_REQUEST_LEN  52
#define RDMAP_ATOMIC_RESPONSE_LEN 12
enum rdmap_atomic_op { /* RFC 7306 section 5.2 */
	RDMAP_FETCH_ADD = 0,
	RDMAP_SWAP = 1, /* draft-ietf-storm-rdmap-ext-00 only; reserved in the RFC */
	RDMAP_CMP_SWAP = 2,
};
struct wire_atomic_request {
	uint8_t op; /* 4 bits */
	uint32_t request_id;
	uint32_t stag;
	uint64_t to;
	uint64_t data, data_mask; /* add or swap data, add or swap mask */
	uint64_t compare, compare_mask;
};
struct wire_atomic_response {
	uint32_t request_id;
	uint64_t original;
};
int wire_atomic_request_parse(struct wire_atomic_request *out, const uint8_t *p, size_t len);
unsigned wire_atomic_request_emit(uint8_t *p, const struct wire_atomic_request *in);
int wire_atomic_response_parse(struct wire_atomic_response *out, const uint8_t *p, size_t len);
unsigned wire_atomic_response_emit(uint8_t *p, const struct wire_atomic_response *in);

#define RDMAP_IMMEDIATE_LEN 8 /* RFC 7306 section 6.2 */
int wire_immediate_parse(uint64_t *imm, const uint8_t *p, size_t len);
unsigned wire_immediate_emit(uint8_t *p, uint64_t imm);

#endif
