/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA over Falcon headers (RDMA over Falcon revision 0.9, section 8): the base transport header
 * (RBTH) and the extended headers of its opcode, read and written in one go, as in wire.h. They
 * begin the payload of a Falcon packet; the bytes of the message and their padding follow. Sections
 * below are sections of this specification.
 */
#ifndef SAKER_WIRE_ROF_H
#define SAKER_WIRE_ROF_H

#include <string.h>

#include "falcon.h"

/* Opcodes of RC (section 8.1.3). Their upper three bits are the transport: RC 000, UD 011, XRC 101.
 * XRC is Saker's own and has InfiniBand's value. */
enum rof_opcode {
	ROF_SEND_FIRST = 0x00,
	ROF_SEND_MIDDLE = 0x01,
	ROF_SEND_LAST = 0x02,
	ROF_SEND_LAST_IMM = 0x03,
	ROF_SEND_ONLY = 0x04,
	ROF_SEND_ONLY_IMM = 0x05,
	ROF_WRITE_FIRST = 0x06,
	ROF_WRITE_MIDDLE = 0x07,
	ROF_WRITE_LAST = 0x08,
	ROF_WRITE_LAST_IMM = 0x09,
	ROF_WRITE_ONLY = 0x0a,
	ROF_WRITE_ONLY_IMM = 0x0b,
	ROF_READ_REQUEST = 0x0c,
	ROF_READ_RESPONSE_FIRST = 0x0d,
	ROF_READ_RESPONSE_MIDDLE = 0x0e,
	ROF_READ_RESPONSE_LAST = 0x0f,
	ROF_READ_RESPONSE_ONLY = 0x10,
	ROF_ATOMIC_RESPONSE = 0x12,
	ROF_CMP_SWAP = 0x13,
	ROF_FETCH_ADD = 0x14,
	ROF_SEND_LAST_INV = 0x16,
	ROF_SEND_ONLY_INV = 0x17,
	/* The transport, to be combined with an opcode. */
	ROF_RC = 0x00,
	ROF_UD = 0x60, /* only with ROF_SEND_ONLY and ROF_SEND_ONLY_IMM */
	ROF_XRC = 0xa0,
};
#define ROF_TRANSPORT 0xe0 /* mask of the transport */
#define ROF_OPERATION 0x1f /* mask of the operation */

/* The headers that are present, in their order on the wire behind RBTH (section 8.1.3). XRCETH is
 * that of InfiniBand, in requests of XRC. */
enum rof_header {
	ROF_XRCETH = 1 << 0,
	ROF_DETH = 1 << 1,
	ROF_RETH = 1 << 2,
	ROF_ATOMICETH = 1 << 3,
	ROF_ATOMICACKETH = 1 << 4,
	ROF_SETH = 1 << 5,
	ROF_OETH = 1 << 6,
	ROF_STETH = 1 << 7,
	ROF_IMMDT = 1 << 8,
	ROF_IETH = 1 << 9,
};

#define ROF_RBTH_LEN 12
#define ROF_MAX      60 /* an XRC atomic: RBTH 12, XRCETH 4, AtomicETH 28, SETH 4, STETH 12 */
#define ROF_QPN_MAX  0xffffff

struct wire_rof {
	/* RBTH (section 8.2). */
	uint8_t opcode;   /* enum rof_opcode, with the transport */
	bool ce;          /* complete in error; in Last and Only packets */
	bool se;          /* solicited event */
	uint8_t pad;      /* padding bytes behind the payload, 0 to 3 */
	uint32_t dest_qp; /* 24 bits */
	uint32_t sn;      /* sequence number */
	/* Fields of the extended headers that wire_rof_headers() returns (section 8.3). */
	uint64_t va;       /* RETH, AtomicETH: address at the target */
	uint32_t rkey;     /* RETH, AtomicETH */
	uint32_t length;   /* RETH */
	uint64_t swap_add; /* AtomicETH: the value to swap in, or to add */
	uint64_t compare;  /* AtomicETH */
	uint64_t original; /* AtomicAckETH */
	uint32_t rmsn;     /* SETH */
	uint32_t offset;   /* OETH: position of the packet's first byte in the message, bytes */
	uint64_t sink_va;  /* STETH: address at the initiator */
	uint32_t sink_lkey;
	uint32_t imm;      /* ImmDt, in host order */
	uint32_t inv_rkey; /* IETH */
	uint32_t xrc_srq;  /* XRCETH, 24 bits */
	uint32_t qkey;     /* DETH */
	uint32_t src_qp;   /* DETH, 24 bits */
};

/* Parses the payload of a Falcon packet, of `len` bytes; reads its first ROF_MAX bytes only. The
 * return value counts the header bytes; the message's bytes follow, and then out->pad bytes of
 * padding. Refuses reserved opcodes and padding that does not fit. Sets the fields that the opcode
 * does not have to 0. Ignores reserved bits. */
int wire_rof_parse(struct wire_rof *out, const uint8_t *p, size_t len);
/* The fields of a packet of an RDMA Write without immediate data. */
struct wire_rof_write {
	uint64_t va;
	uint32_t rkey, length, dest_qp, sn;
	uint8_t opcode;
	uint8_t pad;
};
/* Parses a packet of a reliable (ROF_RC) RDMA Write without immediate data and without CE; the
 * payload follows ROF_WRITE_LEN bytes. Returns false for any other packet, and for one that
 * wire_rof_parse() refuses. */
#define ROF_WRITE_LEN 28
bool wire_rof_write_parse(struct wire_rof_write *out, const uint8_t *p, size_t len);
unsigned wire_rof_emit(uint8_t *p, const struct wire_rof *in);

/*
 * The headers of a Write or a Send of one packet over RC, without CE, composed in registers for the
 * data path: what wire_rof_emit() writes for ROF_WRITE_ONLY and ROF_SEND_ONLY (in->offset 0). They
 * read only the fields of these headers.
 */
#define ROF_WRITE_ONLY_LEN 28
#define ROF_SEND_ONLY_LEN  20

static inline void
wire_rof_put(uint8_t *p, uint64_t word)
{
	word = htobe64(word);
	memcpy(p, &word, sizeof(word));
}

static inline uint64_t
wire_rof_first(const struct wire_rof *in, uint8_t opcode, bool se)
{
	uint64_t flags = (in->pad & 3u) << 2 | se;

	return 1ull << 60 | flags << 40 | (uint64_t)opcode << 32 | (uint32_t)(in->dest_qp << 8);
}

static inline void
wire_rof_write_put(uint8_t *p, const struct wire_rof *in)
{
	wire_rof_put(p, wire_rof_first(in, ROF_WRITE_ONLY, false));
	wire_rof_put(p + 8, (uint64_t)in->sn << 32);
	wire_rof_put(p + 12, in->va);
	wire_rof_put(p + 20, (uint64_t)in->rkey << 32 | in->length);
}

static inline void
wire_rof_send_put(uint8_t *p, const struct wire_rof *in)
{
	wire_rof_put(p, wire_rof_first(in, ROF_SEND_ONLY, in->se));
	wire_rof_put(p + 8, (uint64_t)in->sn << 32 | in->rmsn);
	memset(p + 16, 0, 4);
}

/* Returns the headers of the opcode (enum rof_header), or a negative value for a reserved
 * opcode. */
int wire_rof_headers(uint8_t opcode);
/* Returns the bytes of RBTH and the extended headers, or 0 for a reserved opcode. */
unsigned wire_rof_len(uint8_t opcode);
/* Returns the type of the Falcon packet for the opcode (section 8.1.3): FALCON_PUSH_DATA,
 * FALCON_PULL_REQUEST or FALCON_PULL_DATA, or a negative value for a reserved opcode. */
int wire_rof_falcon_type(uint8_t opcode);

static inline uint8_t
wire_rof_pad(uint32_t payload_len)
{
	return (uint8_t)(-payload_len & 3);
}

#endif
