/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DDP Stream Session Control messages from an unknown peer. The first byte chooses the local role
 * and offer; then each message follows its length. A message that parses must be the same when it
 * is emitted again. A session must stay within its states, and its outcome must respect the limits
 * of both sides.
 */
#include "fuzz.h"

#include "../../lib/base/mem.h"
#include "../../lib/iwarp/sctp_session.h"

static void
again(const uint8_t *p, size_t len)
{
	uint8_t out[SCTP_SESSION_MAX];
	struct sctp_session_msg m;

	if (sctp_session_parse(&m, p, len) != 0)
		return;
	CLAIM(sctp_session_emit(out, &m) == (int)len);
	CLAIM(memcmp(out, p, len) == 0);
}

static void
answer(struct sctp_session *s, uint8_t verdict)
{
	uint8_t buf[SCTP_SESSION_MAX];
	int n = sctp_session_reply(s, buf, verdict % 3, 17, 33, "x", 1);

	CLAIM(n == -22 || (n > SCTP_SESSION_LEN && n <= SCTP_SESSION_MAX));
	CLAIM(n != -22 || (verdict % 3 == SCTP_VERDICT_REJECT_ENHANCED && !s->result.enhanced));
}

static void
check(const struct sctp_session *s)
{
	const struct mpa_result *r = &s->result;
	uint8_t buf[MPA_TERMINATE_FPDU];

	CLAIM(s->state <= SCTP_SESSION_FAILED);
	CLAIM(s->peer_private.len <= MPA_PRIVATE_MAX);
	if (s->state == SCTP_SESSION_FAILED) {
		CLAIM(s->why != MPA_NONE);
		CLAIM(sctp_session_fault(s, buf) == (s->accepted ? 22 : 0));
	}
	if (s->state != SCTP_SESSION_ACCEPTED || !r->enhanced)
		return;
	CLAIM(r->peer_ird == MPA_IRD_AUTO || r->ord <= SK_MAX(r->peer_ird, 1));
	CLAIM(!s->initiator || r->ird <= s->offer.ird);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t buf[SCTP_SESSION_MAX];
	struct mpa_offer o = {0};
	struct sctp_session s;

	if (size < 2)
		return 0;
	o.revision = data[0] & 1 ? 2 : 1;
	o.rtr_send = data[0] & 2;
	o.rtr_write = data[0] & 4;
	o.rtr_read = data[0] & 8;
	o.ird = o.ord = data[1];
	sctp_session_init(&s, data[0] & 128, &o);
	if (s.initiator)
		CLAIM(sctp_session_initiate(&s, buf, NULL, 0) > 0);
	for (size_t at = 2; at + 2 <= size;) {
		size_t n = SK_MIN((size_t)(data[at] << 8 | data[at + 1]), size - at - 2);
		uint8_t *msg = exact_copy(data + at + 2, n);

		again(msg, n);
		sctp_session_input(&s, msg, n);
		free(msg);
		check(&s);
		if (s.state == SCTP_SESSION_REQUESTED)
			answer(&s, data[0] >> 4 & 3);
		check(&s);
		at += 2 + n;
	}
	return 0;
}
