/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The vocabulary of connections that all stages share: what a side offers, what a peer has stated,
 * what both agreed on, how a connection starts and ends. The neutral members mean the same for
 * every transport; a union carries what only one transport has, and only that transport's files
 * read it.
 */
#ifndef SAKER_ENGINE_CONNECT_H
#define SAKER_ENGINE_CONNECT_H

#include <stdbool.h>
#include <stdint.h>

#include "../../iwarp/iwarp.h"
#include "../../iwarp/mpa.h"
#include "../../rof/rof.h"
#include "../../shm/shm.h"
#include "../../tcp/tcp.h"

/* The transports: the index of each stage's table of functions. Clients name them by the same
 * values (enum shm_transport). */
enum eng_kind { ENG_IWARP = SHM_IWARP, ENG_FALCON = SHM_FALCON, ENG_KINDS };

enum eng_close {
	ENG_CLOSE_ORDERLY, /* what was posted is sent first */
	ENG_CLOSE_ABORT,   /* what was posted is flushed */
};

/* Falcon: what a QP requests of its connection, and what a peer's QP has requested. */
struct eng_falcon_ask {
	uint8_t transport;  /* ROF_RC, ROF_XRC, ROF_UD */
	uint8_t addressing; /* enum rofx_addressing; ROFX_ADDRESS: `to_qpn` names the peer */
	uint8_t ordering, errors;
	uint8_t rnr_retry, rnr_code;
	uint32_t qpn, to_qpn, function;
};

/* What one side offers. */
struct eng_offer {
	uint8_t kind; /* enum eng_kind */
	bool retry;   /* connect: a second attempt with less is allowed; failed: it should follow */
	uint16_t ird, ord; /* depths, or SHM_DEPTH_AUTO */
	union {
		struct mpa_offer mpa;
		struct eng_falcon_ask falcon;
	};
};

/* What a peer has requested, or what both sides agreed on. */
struct eng_outcome {
	uint8_t kind; /* enum eng_kind */
	uint16_t ird,
		ord; /* of this side: Reads that the peer may have outstanding here, and back */
	uint16_t peer_ird, peer_ord; /* as the peer stated them, or SHM_DEPTH_AUTO */
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
	uint32_t emss;      /* TCP's */
	int64_t send_space; /* stream bytes that the transport stage takes now */
};

/* How a QP starts. */
struct eng_start {
	bool initiator;
	uint16_t ird, ord;
	uint32_t emss;
	int64_t send_space;
	bool draft_ext; /* iWARP: draft-ietf-storm-rdmap-ext-00 */
	union {
		struct mpa_result mpa; /* Falcon's comes with ENG_E_OPEN */
	};
};

/* How a Falcon QP starts: ENG_E_OPEN. */
struct eng_falcon_start {
	struct rof_chan_params chan;
	struct sk_addr laddr, raddr; /* of the two hosts */
	uint32_t peer_qpn;
	uint16_t ird, ord;
};

#endif
