/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DDP Stream Session Control over SCTP (RFC 5043, enhanced by RFC 6581 7): the messages with which
 * two sides open, refuse and end a DDP stream, and the negotiation of IRD, ORD and ready-to-receive
 * messages in them. SCTP itself is outside of this library: it carries each message whole, with
 * payload protocol identifier 17. No program has an SCTP and calls these functions yet. They read
 * no clock and perform no I/O. Values in structures are in host byte order.
 *
 * On SCTP, either side may send the first DDP segment, since the payload protocol identifier
 * distinguishes segments from session control messages (RFC 6581 7). A ready-to-receive message
 * therefore is an agreement of the applications and not a requirement of the stream.
 */
#ifndef SAKER_SCTP_SESSION_H
#define SAKER_SCTP_SESSION_H

#include <stddef.h>
#include <stdint.h>

#include "mpa.h"

#define SCTP_SESSION_LEN 4 /* sequence number (2 bytes), function code (2 bytes) */
#define SCTP_SESSION_MAX (SCTP_SESSION_LEN + MPA_PRIVATE_MAX)

enum sctp_function {
	SCTP_INITIATE = 1, /* RFC 5043 */
	SCTP_ACCEPT = 2,
	SCTP_REJECT = 3,
	SCTP_TERMINATE = 4,
	SCTP_INITIATE_ENHANCED = 5, /* RFC 6581 7 */
	SCTP_ACCEPT_ENHANCED = 6,
	SCTP_REJECT_ENHANCED = 7,
};

/* A message. Only Enhanced Initiate and Enhanced Accept carry the word of IRD, ORD and flags. */
struct sctp_session_msg {
	uint16_t ssn;      /* the sender's sequence number on the stream */
	uint16_t function; /* enum sctp_function */
	struct wire_mpa_ird_ord word;
	uint16_t private_len;        /* bytes, without the word; 0 in Terminate */
	const uint8_t *private_data; /* points into the parsed message */
};

/* Parses a message. Returns 0 or -reason: MPA_BAD_STARTUP (too short, unknown function),
 * MPA_PRIVATE_TOO_LONG (more than 512 bytes, or any in a Terminate), MPA_ENHANCED_SHORT (no
 * word). */
int sctp_session_parse(struct sctp_session_msg *out, const uint8_t *p, size_t len);
/* Writes a message of at most SCTP_SESSION_MAX bytes at `p`. Returns its length, or -EMSGSIZE if
 * there is too much private data. */
int sctp_session_emit(uint8_t *p, const struct sctp_session_msg *in);

enum sctp_session_state {
	SCTP_SESSION_IDLE,
	SCTP_SESSION_WAIT_REPLY,    /* initiator */
	SCTP_SESSION_WAIT_INITIATE, /* responder */
	SCTP_SESSION_REQUESTED,     /* responder: the application has to decide */
	SCTP_SESSION_ACCEPTED,      /* either side may send DDP segments */
	SCTP_SESSION_REFUSED,       /* by the peer's application or by the local one */
	SCTP_SESSION_NO_ULP,        /* the peer ended the session before its application decided */
	SCTP_SESSION_TERMINATED,
	SCTP_SESSION_FAILED,
};

/* The session of one DDP stream. Revision 2 in the offer means the enhanced messages. The offer's
 * CRC and markers have no meaning here; in the result they stay false. */
struct sctp_session {
	enum sctp_session_state state;
	enum mpa_reason why; /* valid in SCTP_SESSION_FAILED */
	bool initiator;
	/* The peer accepts DDP segments, even if this side has failed since. */
	bool accepted;
	/* Refused: the peer would accept a request without the enhancements. */
	bool unenhanced_would;
	uint16_t ssn; /* of the next message that this side sends */
	struct mpa_offer offer;
	struct mpa_result result;
	struct mpa_private peer_private; /* valid whenever `result` is */
};

enum sctp_verdict {
	SCTP_VERDICT_ACCEPT,
	SCTP_VERDICT_REJECT,
	/* Because of the enhancements: a request without them would be accepted. */
	SCTP_VERDICT_REJECT_ENHANCED,
};

/* Begins a session with the given offer, which is copied. */
void sctp_session_init(struct sctp_session *s, bool initiator, const struct mpa_offer *offer);
/* Initiator: writes the Initiate at `buf`. Returns its length, -EINVAL in another state than
 * SCTP_SESSION_IDLE or for an invalid offer, or -EMSGSIZE if there is too much private data. */
int sctp_session_initiate(
	struct sctp_session *s, uint8_t *buf, const void *private_data, size_t len);
/* Responder in SCTP_SESSION_REQUESTED: writes the reply and returns as sctp_session_initiate()
 * does. Also returns -EINVAL for SCTP_VERDICT_REJECT_ENHANCED to a request that was not
 * enhanced. */
int sctp_session_reply(struct sctp_session *s, uint8_t *buf, enum sctp_verdict verdict,
	uint16_t ird, uint16_t ord, const void *private_data, size_t len);
/* Writes a Terminate, which ends the stream or refuses it without a decision of the application.
 * Returns its length, or -EINVAL if there is no stream to end. */
int sctp_session_terminate(struct sctp_session *s, uint8_t *buf);
/* Handles one message from the peer. Returns 0, or -reason; the state then is SCTP_SESSION_FAILED,
 * unless the session was already over. */
int sctp_session_input(struct sctp_session *s, const uint8_t *p, size_t len);
/* In SCTP_SESSION_FAILED: writes the RDMAP Terminate that is sent as a DDP segment before the
 * session's own Terminate (RFC 6581 8), at most MPA_TERMINATE_FPDU bytes. Returns its length, or 0
 * if the peer does not accept segments. */
unsigned sctp_session_fault(const struct sctp_session *s, uint8_t *ulpdu);

#endif
