/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Types that a program and the engine share: opcodes, status codes, access rights, elements and
 * completions. Status codes, access rights and types of memory windows have the values of
 * <infiniband/verbs.h>; all numbers are fixed, because they pass between processes.
 */
#ifndef SAKER_TYPES_H
#define SAKER_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RD_MAX_SGE    28          /* scatter/gather elements of a work request */
#define RD_MAX_INLINE 448         /* bytes of inline data */
#define RD_MAX_MSG    0xffffffffu /* bytes of a message: 4 GiB - 1 */

/* The operation of a work request. */
enum rd_opcode {
	RD_SEND = 0,
	RD_SEND_INV = 1, /* the receiver invalidates the STag in `imm` */
	RD_SEND_IMM = 2,
	RD_WRITE = 3,
	RD_WRITE_IMM = 4,
	RD_READ = 5,
	/* A Read that invalidates the STag of the local sink when it is complete. The elements with
	 * bytes have the same lkey, else the Read completes with RD_LOC_QP_OP_ERR. Without bytes
	 * it has no sink and invalidates nothing. */
	RD_READ_INV = 6,
	RD_CMP_SWAP = 7,
	RD_FETCH_ADD = 8,
	RD_IMM = 9,        /* immediate data alone (RFC 7306 6) */
	RD_LOCAL_INV = 10, /* invalidates the region or type 2 window whose STag is `imm` */
	RD_BIND_MW = 11,   /* binds a memory window */
	RD_SWAP = 12,      /* iWARP, in the dialect of draft-ietf-storm-rdmap-ext-00 only */
	/* Completions only: */
	RD_RECV = 128,
	RD_RECV_IMM = 129, /* RD_WRITE_IMM or RD_IMM of the peer consumed the receive */
};

enum rd_wr_flags {
	RD_SIGNALED = 1,  /* requests a completion also for success */
	RD_SOLICITED = 2, /* the peer's completion is a solicited one */
	RD_FENCE = 4,     /* starts after all earlier Reads and Atomics are complete */
	RD_INLINE = 8,    /* the payload is in the work request itself */
};

/* The status of a completion (enum ibv_wc_status). */
enum rd_status {
	RD_SUCCESS = 0,
	RD_LOC_LEN_ERR = 1,        /* longer than the transport, or the receive, allows */
	RD_LOC_QP_OP_ERR = 2,      /* a request that this QP cannot execute */
	RD_LOC_PROT_ERR = 4,       /* STag, right or bound of a local element */
	RD_WR_FLUSH_ERR = 5,       /* the QP was in the error state */
	RD_MW_BIND_ERR = 6,        /* a bind that was refused */
	RD_BAD_RESP_ERR = 7,       /* a response that the transport does not allow */
	RD_LOC_ACCESS_ERR = 8,     /* incoming data has no right to its place */
	RD_REM_INV_REQ_ERR = 9,    /* the peer cannot execute the request */
	RD_REM_ACCESS_ERR = 10,    /* STag, right or bound at the peer */
	RD_REM_OP_ERR = 11,        /* the peer failed to execute the request */
	RD_RETRY_EXC_ERR = 12,     /* the peer did not answer */
	RD_RNR_RETRY_EXC_ERR = 13, /* the peer had no receive */
	RD_REM_ABORT_ERR = 16,     /* the peer ended the connection */
	RD_FATAL_ERR = 19,         /* no completion has it; the number is that of verbs */
	RD_RESP_TIMEOUT_ERR = 20,  /* no completion has it; the number is that of verbs */
	RD_GENERAL_ERR = 21,       /* any other error of the transport */
};

/* Rights of a memory region, a memory window or a QP (enum ibv_access_flags). */
enum rd_access {
	RD_ACC_LOCAL_WRITE = 1,
	RD_ACC_REMOTE_WRITE = 2,
	RD_ACC_REMOTE_READ = 4,
	RD_ACC_REMOTE_ATOMIC = 8,
	RD_ACC_MW_BIND = 16,    /* windows can be bound to the region */
	RD_ACC_ZERO_BASED = 32, /* the first byte has address 0 */
};

/* The types of memory windows (enum ibv_mw_type); type 2 is verbs' 2B. */
enum rd_mw_type { RD_MW_TYPE_1 = 1, RD_MW_TYPE_2 = 2 };

enum rd_qp_state { RD_QP_RESET, RD_QP_INIT, RD_QP_RTR, RD_QP_RTS, RD_QP_SQD, RD_QP_SQE, RD_QP_ERR };

/* A scatter/gather element. */
struct rd_sge {
	uint64_t addr; /* virtual address, or offset in a zero-based region */
	uint32_t len;  /* bytes */
	uint32_t lkey; /* STag of the region */
};

enum rd_wc_flags {
	RD_WC_IMM = 1, /* `imm` is valid */
	RD_WC_INV = 2, /* `inv_stag` is valid */
	RD_WC_SOLICITED = 4,
	RD_WC_GRH = 8,  /* a datagram: 40 bytes of addresses precede its payload, and byte_len
			   counts them */
	RD_WC_IP4 = 16, /* with RD_WC_GRH: the addresses are an IPv4 header in the last 20 of these
			   bytes, otherwise an IPv6 header */
};

/* A completion. */
struct rd_wc {
	uint64_t wr_id;    /* of the work request */
	uint32_t qpn;      /* number of the local QP */
	uint8_t opcode;    /* enum rd_opcode: that of the request, or RD_RECV, RD_RECV_IMM */
	uint8_t status;    /* enum rd_status */
	uint8_t flags;     /* enum rd_wc_flags */
	uint32_t byte_len; /* of the message */
	uint64_t imm;      /* immediate data, host byte order: 64 bits over iWARP, 32 over Falcon */
	uint32_t inv_stag; /* the local STag that the peer invalidated */
	uint32_t src_qp;   /* a datagram's sender */
	uint32_t vendor_err; /* of the transport; saker_reason_str() has its name. 0: none */
};

#endif
