/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The types that all stages use to describe a connection: the offer of one side, the request of the
 * peer, the terms that both sides agreed on, and the ways in which a connection starts and ends.
 * The members outside of the unions have the same meaning for every transport. A union holds the
 * members of one transport, and only the files of that transport read them.
 */
#ifndef SAKER_ENGINE_CONNECT_H
#define SAKER_ENGINE_CONNECT_H

#include <stdbool.h>
#include <stdint.h>

#include "../../iwarp/iwarp.h"
#include "../../iwarp/mpa.h"
#include "../../net/net.h"
#include "../../rof/rof.h"
#include "../../shm/shm_msg.h"
#include "../../tcp/tcp.h"

/* The transports. Each stage uses the value as the index into its table of transports. Clients use
 * the same values (enum shm_transport). */
enum eng_kind { ENG_IWARP = SHM_IWARP, ENG_FALCON = SHM_FALCON, ENG_KINDS };

/* Returns whether a listener at address `at` accepts requests to `addr`. :: stands for every
 * address, with `v6only` for every IPv6 address, and 0.0.0.0 for every IPv4 address. */
static inline bool
eng_listens_at(const struct sk_addr *at, bool v6only, const struct sk_addr *addr)
{
	if (!sk_addr_is_any(at))
		return sk_addr_eq(at, addr);
	return sk_addr_is_v4(addr) ? !v6only : !sk_addr_is_v4(at);
}

enum eng_close {
	ENG_CLOSE_ORDERLY, /* the QP sends all posted work requests first */
	ENG_CLOSE_ABORT,   /* the QP flushes all posted work requests */
	/* The QP has started, but the transport stage has no connection for it. */
	ENG_CLOSE_UNBOUND,
};

/* Falcon: the properties that a QP requests for its connection, or that the peer's QP has
 * requested. */
struct eng_falcon_ask {
	uint8_t transport;  /* ROF_RC, ROF_XRC, ROF_UD */
	uint8_t addressing; /* enum rofx_addressing; ROFX_ADDRESS: `to_qpn` is the peer's QPN */
	uint8_t ordering;   /* enum rof_ordering or, of a responder, ROFX_ANY */
	uint8_t errors;     /* enum rof_errors or, of a responder, ROFX_ANY */
	uint8_t flows;
	uint8_t rnr_retry, rnr_code;
	uint16_t psp; /* ROFX_PSP() bits */
	uint16_t mtu; /* RDMA payload bytes of a packet, before the port's MTU reduces it */
	uint32_t qpn, to_qpn, function;
};

/* The terms that one side offers. */
struct eng_offer {
	uint8_t kind; /* enum eng_kind */
	/* ENG_CT_CONNECT: a second attempt with a reduced offer is allowed. ENG_TC_FAILED: the
	 * control stage should make the second attempt. */
	bool retry;
	uint16_t ird, ord;      /* in RDMA Read requests, or SHM_DEPTH_AUTO */
	struct net_class class; /* of the packets of this side */
	union {
		struct mpa_offer mpa;
		struct eng_falcon_ask falcon;
	};
};

/* The terms that a peer has requested, or that both sides agreed on. */
struct eng_outcome {
	uint8_t kind; /* enum eng_kind */
	/* The depths of this side: RDMA Reads that the peer may have outstanding at this side
	 * (ird), and that this side may have outstanding at the peer (ord). */
	uint16_t ird, ord;
	uint16_t peer_ird, peer_ord; /* the depths that the peer stated, or SHM_DEPTH_AUTO */
	union {
		struct mpa_result mpa;
		struct eng_falcon_ask falcon;
	};
};

/* A peer's side of a connection, as the transport stage reports it. */
struct eng_peer {
	struct tcp_tuple tuple;
	uint32_t listener; /* requests: the control stage's listener number */
	struct eng_outcome outcome;
	uint32_t emss;      /* effective maximum segment size of TCP, bytes */
	int64_t send_space; /* stream bytes that the transport stage accepts now */
};

/* The parameters with which a QP starts: ENG_CE_QP_START. */
struct eng_start {
	bool initiator;
	uint16_t ird, ord;
	uint32_t emss;
	int64_t send_space;
	bool draft_ext; /* iWARP: the QP uses the opcodes of draft-ietf-storm-rdmap-ext-00 */
	union {
		struct mpa_result mpa; /* a Falcon QP receives its parameters with ENG_E_OPEN */
	};
};

/* The parameters with which a Falcon QP starts: ENG_E_OPEN. */
struct eng_falcon_start {
	struct rof_chan_params chan;
	struct sk_addr laddr, raddr; /* of this host, of the peer's host */
	uint32_t peer_qpn;
	uint16_t ird, ord;
};

#endif
