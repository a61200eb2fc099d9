/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PSP and Falcon headers (Falcon Transport Protocol revision 0.9 section 7): records and their
 * parse and emit pairs, in the manner of wire.h. What follows a UDP header is
 *
 *	PSP header (16 or 24 bytes) | [inner IP header] | Falcon packet | ICV (16 bytes)
 *
 * doc/falcon-wire.md lists what was chosen where the specification is silent.
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
#define PSP_CRYPT_UNIT  4   /* bytes that one step of crypt_offset stands for */
#define PSP_CRYPT_MAX   63  /* 6 bits */
#define PSP_NEXT_IP4    4   /* tunnel mode */
#define PSP_NEXT_IP6    41  /* tunnel mode */
#define PSP_NEXT_FALCON 252 /* section 7.1; also the protocol in an inner IP header */

enum psp_version {
	PSP_AES_GCM_128 = 0,
	PSP_AES_GCM_256 = 1,
	PSP_GMAC_128 = 2,
	PSP_GMAC_256 = 3,
	PSP_NO_CRYPTO = 15, /* ours: no ICV; the UDP checksum is then required */
};

struct wire_psp {
	uint8_t next;         /* PSP_NEXT_... */
	uint8_t crypt_offset; /* in PSP_CRYPT_UNIT, counted from behind the IV: a cookie is part of
				 it, what lies behind it is encrypted */
	uint8_t version;      /* enum psp_version */
	bool sample, drop;    /* S and D */
	bool has_vc;
	uint32_t spi; /* most significant bit: which device master key */
	uint64_t iv;  /* see wire_psp_iv_ticks */
	uint64_t vc;  /* when has_vc */
};

/* `len`: the UDP payload; only its first PSP_MAX bytes are read. Besides what is behind the
 * datagram's end, refuses a datagram that has no room for its clear part and its ICV, and a cookie
 * that is encrypted. */
int wire_psp_parse(struct wire_psp *out, const uint8_t *p, size_t len);
unsigned wire_psp_emit(uint8_t *p, const struct wire_psp *in);

static inline unsigned
wire_psp_icv_len(uint8_t version)
{
	return version == PSP_NO_CRYPTO ? 0 : PSP_ICV_LEN;
}

/* The crypt offset with which just the first FALCON_CLEAR_LEN bytes of the Falcon packet stay
 * readable (section 7.1), and an inner IP header of `inner_len` bytes before it (0 in transport
 * mode). */
static inline uint8_t
wire_psp_crypt_offset(bool has_vc, unsigned inner_len)
{
	return (uint8_t)((has_vc ? PSP_VC_LEN / PSP_CRYPT_UNIT : 0) +
			 (inner_len + 4) / PSP_CRYPT_UNIT);
}

/* How Saker makes a cookie: the receiver's Destination Function (24 bits), which in the Falcon
 * header may be sealed and is missing from acknowledgements, and below it 40 random bits. */
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

/* Section 9.2.2.1: 0 when the UDP length is that of what IP delivered, else -WIRE_UDP_HEADER. */
static inline int
wire_psp_udp_check(const struct wire_ip *ip, const struct wire_udp *udp)
{
	return ip->payload_len == UDP_LEN + (uint32_t)udp->payload_len ? 0 : -WIRE_UDP_HEADER;
}

/* Falcon's time unit is 131.072 ns = 2^17 ps (section 10.1). Exact, and nothing wraps on the way.
 */
static inline uint64_t
wire_falcon_ticks(uint64_t ns)
{
	return (ns >> 14) * 125 + ((ns & 0x3fff) * 125 >> 14);
}

/* The IV is a transmit time in ticks, 48 bits, before a counter of 16 bits that makes it unique. Of
 * the time, the low 32 bits are what an acknowledgement returns as t1. */
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
#define FALCON_CLEAR_LEN        4   /* version and CID stay readable (section 7.1) */
#define FALCON_REQUEST_WINDOW   64  /* bits of the request bitmap */
#define FALCON_DATA_WINDOW      128 /* bits of each data bitmap */
#define FALCON_CID_MAX          0xffffff
#define FALCON_ECN_MASK         0x3fff   /* 14 bits */
#define FALCON_RUE_MASK         0x1fffff /* what both figures of an acknowledgement have room for */

enum falcon_type { /* section 7.2; values that are missing here are reserved */
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

enum falcon_resync_code { /* section 7.6; others are reserved */
	FALCON_RESYNC_CIE = 1,
	FALCON_RESYNC_LOCAL_XLR = 2,
	FALCON_RESYNC_RETRANSMISSIONS = 3,
	FALCON_RESYNC_TIMEOUT = 4,
	FALCON_RESYNC_REMOTE_XLR = 5,
	FALCON_RESYNC_NON_RECOVERABLE = 6,
	FALCON_RESYNC_INVALID_CID = 7,
};

enum falcon_nack_code { /* section 7.8; others are reserved */
	FALCON_NACK_RESOURCES = 1,
	FALCON_NACK_RNR = 2,
	FALCON_NACK_XLR = 4,
	FALCON_NACK_CIE = 6,
	FALCON_NACK_NON_RECOVERABLE = 7,
	FALCON_NACK_INVALID_CID = 8,
};

/* One record for all packets. parse sets what a packet type does not have to 0. */
struct wire_falcon {
	uint8_t type; /* enum falcon_type */
	/* base header: pulls, pushes, Resync (section 7.2) */
	bool ar;           /* Ack Req */
	uint8_t proto;     /* enum falcon_proto */
	uint32_t cid;      /* 24 bits, the receiver's; in every packet */
	uint32_t function; /* Destination Function, 24 bits */
	uint32_t dbpsn;    /* receiver's data window base; in every packet */
	uint32_t rbpsn;    /* receiver's request window base; in every packet */
	uint32_t psn;      /* of this packet; in a NACK, of the packet that is refused */
	uint32_t rsn;
	uint16_t
		request_len; /* Pull Request: bytes of Pull Data wanted; Push Data: payload bytes */
	/* Resync (section 7.6) */
	uint8_t resync_code; /* enum falcon_resync_code, any value when parsed */
	uint8_t resync_type; /* of the packet that it replaces: pull or push */
	uint32_t vendor;     /* 0 when unused */
	/* BACK, EACK, NACK (sections 7.7, 7.8); times in ticks */
	uint32_t t1, t2;
	uint8_t hops;               /* forward hop count, 4 bits */
	uint8_t rx_level;           /* quantised receive buffer occupancy, 5 bits */
	uint16_t ecn;               /* cumulative count of ECN marked packets, 14 bits */
	uint32_t rue;               /* RUE info; emit writes FALCON_RUE_MASK of it */
	bool own_request, own_data; /* OWN; BACK and EACK */
	/* EACK (section 7.7.2): bit n % 64 of word n / 64 stands for PSN base + n */
	uint64_t data_ack[2], data_rx[2];
	uint64_t req_map;
	/* NACK (section 7.8) */
	uint8_t nack_code;   /* enum falcon_nack_code, any value when parsed */
	uint8_t rnr_timeout; /* 5 bits: wire_rnr_ns */
	bool nack_request;   /* W: the PSN is of the request window, else of the data window */
	uint8_t ulp_code;    /* opaque to Falcon */
};

/* `len`: from the Falcon header to the end of the packet, the ICV not included; only the first
 * FALCON_MAX bytes of it are read. The payload is the rest behind the return value. Refuses
 * reserved packet and protocol types, a Push Data whose request length is not that of its payload,
 * and bytes behind a packet that has no payload (Resync, ACKs, NACK). Reserved bits are ignored. */
int wire_falcon_parse(struct wire_falcon *out, const uint8_t *p, size_t len);
/* Writes zero where bits are reserved; in->type is one of enum falcon_type. */
unsigned wire_falcon_emit(uint8_t *p, const struct wire_falcon *in);

/* What emit will write for the type; 0: a reserved type. */
unsigned wire_falcon_len(uint8_t type);

/* The CID alone, which is never encrypted: -WIRE_SHORT, -WIRE_FALCON_VERSION, or the CID. */
int wire_falcon_cid(const uint8_t *p, size_t len);

/* The table of RNR NACK timeouts (section 7.8, also InfiniBand's): code (5 bits) to ns, and the
 * code of the shortest delay that is at least `ns`; the longest is that of code 0. */
#define FALCON_RNR_CODES 32
uint64_t wire_rnr_ns(uint8_t code);
uint8_t wire_rnr_code(uint64_t ns);

#endif
