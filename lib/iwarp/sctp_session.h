/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DDP Stream Session Control over SCTP (RFC 5043, enhanced by RFC 6581 7): the messages by which
 * two sides open, refuse and end a DDP stream, and the negotiation of IRD, ORD and ready-to-receive
 * messages in them. SCTP itself is somebody else's: it carries each message whole, with payload
 * protocol identifier SCTP_SESSION_PPID. No clock and no I/O.
 *
 * On SCTP either side may send the first DDP segment, since the payload protocol identifier tells
 * segments from session control (RFC 6581 7): a ready-to-receive message is an agreement of the
 * applications, not a need of the stream.
 */
#ifndef SAKER_SCTP_SESSION_H
#define SAKER_SCTP_SESSION_H

#include <stddef.h>
#include <stdint.h>

#include "mpa.h"

#define SCTP_SESSION_PPID 17 /* DDP Stream Session Control (RFC 5043) */
#define SCTP_SESSION_LEN  4  /* sequence number 2, function code 2 */
#define SCTP_SESSION_MAX  (SCTP_SESSION_LEN + MPA_PRIVATE_MAX)

enum sctp_function {
	SCTP_INITIATE = 1, /* RFC 5043 */
	SCTP_ACCEPT = 2,
	SCTP_REJECT = 3,
	SCTP_TERMINATE = 4,
	SCTP_INITIATE_ENHANCED = 5, /* RFC 6581 7 */
	SCTP_ACCEPT_ENHANCED = 6,
	SCTP_REJECT_ENHANCED = 7,
};

/* A message. The word of IRD, ORD and flags stands in Enhanced Initiate and Enhanced Accept only.
 */
struct sctp_session_msg {
	uint16_t ssn;      /* the sender's sequence number on the stream */
	uint16_t function; /* enum sctp_function */
	struct wire_mpa_ird_ord word;
	uint16_t private_len;        /* without the word; 0 in Terminate */
	const uint8_t *private_data; /* points into the message */
};

/* 0 or -reason: MPA_BAD_STARTUP (too short, unknown function), MPA_PRIVATE_TOO_LONG (more than 512
 * bytes, or any in a Terminate), MPA_ENHANCED_SHORT. */
int sctp_session_parse(struct sctp_session_msg *out, const uint8_t *p, size_t len);
/* Writes at most SCTP_SESSION_MAX bytes; returns the length, or -EMSGSIZE. */
int sctp_session_emit(uint8_t *p, const struct sctp_session_msg *in);

enum sctp_session_state {
	SCTP_SESSION_IDLE,
	SCTP_SESSION_WAIT_REPLY,    /* initiator */
	SCTP_SESSION_WAIT_INITIATE, /* responder */
	SCTP_SESSION_REQUESTED,     /* responder: the application decides */
	SCTP_SESSION_ACCEPTED,      /* DDP segments may flow, from either side */
	SCTP_SESSION_REFUSED,       /* by the peer's application, or by ours */
	SCTP_SESSION_NO_ULP,        /* the peer ended it before its application was asked */
	SCTP_SESSION_TERMINATED,
	SCTP_SESSION_FAILED,
};

/* One DDP stream's session. The offer's revision 2 means enhanced; its CRC and markers mean nothing
 * here, and stay false in the result. */
struct sctp_session {
	enum sctp_session_state state;
	enum mpa_reason why; /* in SCTP_SESSION_FAILED */
	bool initiator;
	bool accepted;         /* the peer takes DDP segments, though we may have failed then */
	bool unenhanced_would; /* refused: without the enhancements it would have been accepted */
	uint16_t ssn;          /* of our next message */
	struct mpa_offer offer;
	struct mpa_result result;
};

enum sctp_verdict {
	SCTP_SAY_ACCEPT,
	SCTP_SAY_REJECT,
	SCTP_SAY_REJECT_ENHANCED, /* the enhancements are the reason: without, we would accept */
};

void sctp_session_init(struct sctp_session *s, bool initiator, const struct mpa_offer *offer);
/* Initiator: the length of the message at `buf`, or -EINVAL (not the time, or an offer that cannot
 * be), -EMSGSIZE. */
int sctp_session_initiate(
	struct sctp_session *s, uint8_t *buf, const void *private_data, size_t len);
/* Responder in SCTP_SESSION_REQUESTED; returns likewise. -EINVAL also for SCTP_SAY_REJECT_ENHANCED
 * to a request that was not enhanced. */
int sctp_session_reply(struct sctp_session *s, uint8_t *buf, enum sctp_verdict verdict,
	uint16_t ird, uint16_t ord, const void *private_data, size_t len);
/* Ends the stream, or refuses it without the application's word; -EINVAL when there is nothing to
 * end. */
int sctp_session_terminate(struct sctp_session *s, uint8_t *buf);
/* One message from the peer. 0, or -reason (the state is then SCTP_SESSION_FAILED, unless there was
 * none to spoil). */
int sctp_session_input(struct sctp_session *s, const uint8_t *p, size_t len);
/* In SCTP_SESSION_FAILED: the RDMAP Terminate that goes out as a DDP segment before the session's
 * own (RFC 6581 8), at most MPA_TERMINATE_FPDU bytes. 0: the peer takes no segments. */
unsigned sctp_session_fault(const struct sctp_session *s, uint8_t *ulpdu);

#endif
