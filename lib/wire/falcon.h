/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PSP and Falcon headers (Falcon Transport Protocol revision 0.9, section 7): records, and
 * functions to parse and emit them, as in wire.h. The payload of a UDP datagram is
 *
 *	PSP header (16 or 24 bytes) | [inner IP header] | Falcon packet | ICV (16 bytes)
 *
 * doc/falcon-wire.md lists Saker's choices where the specification leaves a field open. Sections
 * below are sections of this specification.
 */
#ifndef SAKER_WIRE_FALCON_H
#define SAKER_WIRE_FALCON_H

#include "wire.h"

/* ---- PSP ---- */

#define PSP_UDP_PORT    1000
#define PSP_LEN         16
#define PSP_VC_LEN      8 /* virtualisation cookie, behind the IV */
#define PSP_MAX         24
#define PSP_ICV_LEN     16
#define PSP_CRYPT_UNIT  4   /* bytes per step of crypt_offset */
#define PSP_CRYPT_MAX   63  /* 6 bits */
#define PSP_NEXT_IP4    4   /* tunnel mode */
#define PSP_NEXT_IP6    41  /* tunnel mode */
#define PSP_NEXT_FALCON 252 /* section 7.1; also the protocol in an inner IP header */

enum psp_version {
	PSP_AES_GCM_128 = 0,
	PSP_AES_GCM_256 = 1,
	PSP_GMAC_128 = 2,
	PSP_GMAC_256 = 3,
	PSP_NO_CRYPTO = 15, /* Saker's own: no ICV, and the UDP checksum is required */
};

struct wire_psp {
	uint8_t next; /* PSP_NEXT_... */
	/* In PSP_CRYPT_UNIT, from the end of the IV. The bytes before it, which include a cookie,
	 * are clear; the bytes behind it are encrypted. */
	uint8_t crypt_offset;
	uint8_t version;   /* enum psp_version */
	bool sample, drop; /* S and D */
	bool has_vc;
	uint32_t spi; /* most significant bit: number of the device master key */
	uint64_t iv;  /* transmit time and counter: wire_psp_iv_ticks() */
	uint64_t vc;  /* virtualisation cookie, if `has_vc` */
};

/* Parses the header of a UDP payload of `len` bytes; reads its first PSP_MAX bytes only. Refuses,
 * beyond a truncated header, a datagram without room for its clear part and its ICV, and an
 * encrypted cookie. */
int wire_psp_parse(struct wire_psp *out, const uint8_t *p, size_t len);
unsigned wire_psp_emit(uint8_t *p, const struct wire_psp *in);

static inline unsigned
wire_psp_icv_len(uint8_t version)
{
	return version == PSP_NO_CRYPTO ? 0 : PSP_ICV_LEN;
}

/* Returns the crypt offset that keeps the first FALCON_CLEAR_LEN bytes of the Falcon packet clear
 * (section 7.1), and an inner IP header of `inner_len` bytes before it (0 in transport mode). */
static inline uint8_t
wire_psp_crypt_offset(bool has_vc, unsigned inner_len)
{
	return (uint8_t)((has_vc ? PSP_VC_LEN / PSP_CRYPT_UNIT : 0) +
			 (inner_len + 4) / PSP_CRYPT_UNIT);
}

/* Returns a cookie as Saker makes it: the receiver's Destination Function (24 bits) above 40 random
 * bits. The function in the Falcon header may be encrypted, and acknowledgements do not have it. */
static inline uint64_t
wire_psp_vc(uint32_t function, uint64_t random)
{
	return (uint64_t)function << 40 | (random & ((1ull << 40) - 1));
}

static inline uint32_t
wire_psp_vc_function(uint64_t vc)
{
	return (uint32_t)(vc >> 40);
}

/* Returns 0 when the UDP length is that of the IP payload (section 9.2.2.1), else
 * -WIRE_UDP_HEADER. */
static inline int
wire_psp_udp_check(const struct wire_ip *ip, const struct wire_udp *udp)
{
	return ip->payload_len == UDP_LEN + (uint32_t)udp->payload_len ? 0 : -WIRE_UDP_HEADER;
}

/* Converts ns into Falcon's time unit of 131.072 ns = 2^17 ps (section 10.1), exactly and without
 * an overflow. */
static inline uint64_t
wire_falcon_ticks(uint64_t ns)
{
	return (ns >> 14) * 125 + ((ns & 0x3fff) * 125 >> 14);
}

/* The IV consists of a transmit time in ticks (48 bits) and a counter that makes it unique (16
 * bits). An acknowledgement returns the low 32 bits of the time as t1. */
#define PSP_IV_COUNTER_BITS 16

static inline uint32_t
wire_psp_iv_ticks(uint64_t iv)
{
	return (uint32_t)(iv >> PSP_IV_COUNTER_BITS);
}

/* ---- Falcon ---- */

#define FALCON_BASE_LEN         24
#define FALCON_PULL_REQUEST_LEN 32
#define FALCON_PULL_DATA_LEN    24
#define FALCON_PUSH_DATA_LEN    28
#define FALCON_RESYNC_LEN       32
#define FALCON_BACK_LEN         32
#define FALCON_NACK_LEN         40
#define FALCON_EACK_LEN         72
#define FALCON_MAX              72
#define FALCON_CLEAR_LEN        4 /* version and CID stay clear (section 7.1) */
#define FALCON_CID_MAX          0xffffff
#define FALCON_ECN_MASK         0x3fff   /* 14 bits */
#define FALCON_RUE_MASK         0x1fffff /* the bits that both kinds of acknowledgement have */

enum falcon_type { /* section 7.2; other values are reserved */
	FALCON_PULL_REQUEST = 0,
	FALCON_PULL_DATA = 3,
	FALCON_PUSH_DATA = 5,
	FALCON_RESYNC = 6,
	FALCON_NACK = 8,
	FALCON_BACK = 9,
	FALCON_EACK = 10,
};

enum falcon_proto {
	FALCON_RDMA = 2,
	FALCON_NVME = 3,
};

enum falcon_resync_code { /* section 7.6; other values are reserved */
	FALCON_RESYNC_CIE = 1,
	FALCON_RESYNC_LOCAL_XLR = 2,
	FALCON_RESYNC_RETRANSMISSIONS = 3,
	FALCON_RESYNC_TIMEOUT = 4,
	FALCON_RESYNC_REMOTE_XLR = 5,
	FALCON_RESYNC_NON_RECOVERABLE = 6,
	FALCON_RESYNC_INVALID_CID = 7,
};

enum falcon_nack_code { /* section 7.8; other values are reserved */
	FALCON_NACK_RESOURCES = 1,
	FALCON_NACK_RNR = 2,
	FALCON_NACK_XLR = 4,
	FALCON_NACK_CIE = 6,
	FALCON_NACK_NON_RECOVERABLE = 7,
	FALCON_NACK_INVALID_CID = 8,
};

/* A record for all packets. parse sets the fields that a packet type does not have to 0. */
struct wire_falcon {
	uint8_t type; /* enum falcon_type */
	/* Base header of Pull Request, Pull Data, Push Data and Resync (section 7.2). */
	bool ar;           /* Ack Req: the sender requests an acknowledgement */
	uint8_t proto;     /* enum falcon_proto */
	uint32_t cid;      /* 24 bits, chosen by the receiver; in each packet */
	uint32_t function; /* Destination Function, 24 bits */
	uint32_t dbpsn;    /* base of the receiver's data window; in each packet */
	uint32_t rbpsn;    /* base of the receiver's request window; in each packet */
	uint32_t psn;      /* of this packet; in a NACK, of the refused packet */
	uint32_t rsn;
	/* Bytes: of the requested Pull Data (Pull Request), or of the payload (Push Data). */
	uint16_t request_len;
	/* Resync (section 7.6). */
	uint8_t resync_code; /* enum falcon_resync_code; parse returns any value */
	uint8_t resync_type; /* type of the replaced packet: pull or push */
	uint32_t vendor;     /* vendor specific; 0 when unused */
	/* BACK, EACK and NACK (sections 7.7, 7.8). Times are in ticks. */
	uint32_t t1, t2;            /* transmit time of the packet, receive time */
	uint8_t hops;               /* forward hop count, 4 bits */
	uint8_t rx_level;           /* quantised receive buffer occupancy, 5 bits */
	uint16_t ecn;               /* cumulative count of packets with an ECN mark, 14 bits */
	uint32_t rue;               /* RUE info; emit writes the bits of FALCON_RUE_MASK */
	bool own_request, own_data; /* OWN; BACK and EACK */
	/* EACK (section 7.7.2): bit n % 64 of word n / 64 stands for the base PSN + n. */
	uint64_t data_ack[2], data_rx[2];
	uint64_t req_map;
	/* NACK (section 7.8). */
	uint8_t nack_code;   /* enum falcon_nack_code; parse returns any value */
	uint8_t rnr_timeout; /* 5 bits: see wire_rnr_ns() */
	bool nack_request;   /* W: the PSN is of the request window, not of the data window */
	uint8_t ulp_code;    /* Falcon does not interpret it */
};

/*
 * Parses a packet of `len` bytes, from the Falcon header to the end of the packet without the ICV;
 * reads its first FALCON_MAX bytes only. The payload follows the bytes that the return value
 * counts. Refuses reserved packet and protocol types, a Push Data whose request length is not that
 * of its payload, and bytes behind a packet without payload (Resync, BACK, EACK, NACK). Ignores
 * reserved bits.
 */
int wire_falcon_parse(struct wire_falcon *out, const uint8_t *p, size_t len);
/* The fields of a Push Data packet, a Pull Request or Pull Data. */
struct wire_falcon_plain {
	uint32_t function; /* Destination Function, 24 bits */
	uint32_t dbpsn, rbpsn, psn, rsn;
	uint32_t head, len;   /* bytes of the header, and of the payload behind it */
	uint16_t request_len; /* Pull Data: 0 */
	uint8_t type;         /* enum falcon_type */
	uint8_t proto;
	bool ar;
};
/* Parses such a packet with a payload, whose version and CID the caller has compared. Returns false
 * for any other packet, and for one that wire_falcon_parse() refuses. */
bool wire_falcon_plain_parse(struct wire_falcon_plain *out, const uint8_t *p, size_t len);
/* Writes the header of a packet; in->type is one of enum falcon_type, and reserved bits are 0. */
unsigned wire_falcon_emit(uint8_t *p, const struct wire_falcon *in);

/*
 * The headers of a Pull Request, Pull Data or Push Data packet in transport mode without a cookie,
 * composed in registers for the data path. The functions return words in memory order.
 * wire_falcon_words() returns the wire_falcon_len() bytes of in->type: Pull Data does not use the
 * last word, and Push Data only its first half; the second half is 0.
 */
static inline void
wire_psp_words(uint64_t word[2], const struct wire_psp *in)
{
	uint64_t flags =
		(in->sample ? 0x80u : 0) | (in->drop ? 0x40u : 0) | (in->version & 0xfu) << 2 | 1u;

	word[0] = htobe64((uint64_t)in->next << 56 | 1ull << 48 |
			  (in->crypt_offset & 0x3full) << 40 | flags << 32 | in->spi);
	word[1] = htobe64(in->iv);
}

static inline void
wire_falcon_words(uint64_t word[4], const struct wire_falcon *in)
{
	uint64_t first = 1ull << 28 | (in->cid & FALCON_CID_MAX);
	uint32_t second =
		in->function << 8 | (in->proto & 7u) << 5 | (in->type & 0xfu) << 1 | in->ar;

	word[0] = htobe64(first << 32 | second);
	word[1] = htobe64((uint64_t)in->dbpsn << 32 | in->rbpsn);
	word[2] = htobe64((uint64_t)in->psn << 32 | in->rsn);
	word[3] = htobe64((uint64_t)in->request_len << 32);
}

/* Returns the bytes that emit writes for the type, or 0 for a reserved type. */
unsigned wire_falcon_len(uint8_t type);

/* Returns the CID, which is never encrypted, or -WIRE_SHORT or -WIRE_FALCON_VERSION. */
int wire_falcon_cid(const uint8_t *p, size_t len);

/* Converts between the 5-bit code of an RNR timeout and ns (section 7.8; InfiniBand has the same
 * table). wire_rnr_code() returns the code of the shortest delay that is at least `ns`, or 0, the
 * code of the longest delay. */
#define FALCON_RNR_CODES 32
uint64_t wire_rnr_ns(uint8_t code);
uint8_t wire_rnr_code(uint64_t ns);

#endif
