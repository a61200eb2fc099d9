/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPA start-up frames from an unknown peer, in pieces. The first bytes choose the local role, the
 * local offer and the cuts. An accepted request must lead to a reply that a correct initiator
 * accepts.
 */
#include <stdlib.h>

#include "../../lib/iwarp/mpa.h"

static void
check(bool ok)
{
	if (!ok)
		abort();
}

static void
check_result(const struct mpa_startup *s)
{
	const struct mpa_result *r = &s->result;

	check(r->revision == 1 || r->revision == 2);
	check(!r->enhanced || r->revision == 2);
	check(s->peer_private.len <=
		(r->enhanced ? MPA_PRIVATE_MAX - MPA_IRD_ORD_LEN : MPA_PRIVATE_MAX));
	check(r->ird <= MPA_IRD_AUTO && r->ord <= MPA_IRD_AUTO);
	check(r->peer_ird <= MPA_IRD_AUTO && r->peer_ord <= MPA_IRD_AUTO);
}

/* Only an initiator that was accepted has a peer that reads its Terminate. */
static void
check_failure(const struct mpa_startup *s)
{
	uint8_t buf[MPA_TERMINATE_FPDU];
	unsigned len = mpa_terminate_emit(s, buf);

	check(s->why != MPA_NONE);
	check(len == 0 || (s->initiator && s->accepted && len >= 28 && len <= sizeof(buf)));
}

/* Checks that the outcome for the application's offer is known before the reply is built. */
static void
answer(struct mpa_startup *s, bool accept, unsigned wish)
{
	const struct mpa_offer o = {.crc = wish & 1,
		.markers = wish & 2,
		.rtr_send = wish & 4,
		.rtr_write = wish & 8,
		.rtr_read = wish & 16,
		.ird = 17,
		.ord = 33};
	struct mpa_result said = s->result;
	uint8_t buf[MPA_STARTUP_MAX];
	struct wire_mpa_startup h;
	int len;

	mpa_result_accept(&said, &o);
	if (accept)
		mpa_startup_choose(s, &o);
	len = mpa_reply_emit(s, buf, accept, o.ird, o.ord, NULL, 0);
	check(!accept || (said.crc == s->result.crc && said.rtr == s->result.rtr &&
				 said.ird == s->result.ird && said.ord == s->result.ord));

	check(len >= MPA_STARTUP_LEN && len <= MPA_STARTUP_MAX);
	check(wire_mpa_startup_parse(&h, buf, (size_t)len) == MPA_STARTUP_LEN);
	check(h.reply && h.reject == !accept && h.revision == s->result.revision);
	check(h.enhanced == s->result.enhanced && h.private_len + MPA_STARTUP_LEN == len);
	check_result(s);
	check(!accept || s->result.peer_ird == MPA_IRD_AUTO || s->result.ord <= s->result.peer_ird);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t buf[MPA_STARTUP_MAX];
	struct mpa_offer o = {0};
	struct mpa_startup s;
	size_t cut;

	if (len < 3)
		return 0;
	o.revision = data[0] & 1 ? 2 : 1;
	o.crc = data[0] & 2;
	o.markers = data[0] & 4;
	o.rtr_send = data[0] & 8;
	o.rtr_write = data[0] & 16;
	o.rtr_read = data[0] & 32;
	o.ird = o.ord = data[1];
	cut = data[2] + 1u;
	mpa_startup_init(&s, data[0] & 128, &o);
	if (s.initiator)
		check(mpa_request_emit(&s, buf, NULL, 0) > 0);
	for (size_t at = 3; at < len;) {
		size_t n = len - at < cut ? len - at : cut;
		int took = mpa_startup_input(&s, data + at, n);

		check(took <= (int)n);
		if (took <= 0)
			break;
		at += (size_t)took;
	}
	if (s.state == MPA_FAILED)
		check_failure(&s);
	if (s.state == MPA_REQUESTED || s.state == MPA_ACCEPTED || s.state == MPA_REFUSED)
		check_result(&s);
	if (s.state == MPA_REQUESTED)
		answer(&s, data[0] & 64, data[1] ^ data[2]);
	return 0;
}
