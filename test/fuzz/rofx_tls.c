/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The exchange in TLS with a pre-shared key: an honest initiator and an honest responder, and
 * between them somebody who changes, cuts, doubles and inserts bytes. Untouched bytes must
 * establish the connection. If both sides are established, whatever happened, they must have the
 * same keys.
 *
 * Input: [options], then for each transfer of bytes [what][where][value]; behind the end of the
 * input the bytes pass as they are.
 */
#include "../support/lone.h"
#include "fuzz.h"

#define ROUNDS 40
#define ROOM   8192

enum what { PASS, CHANGE, CUT, DOUBLE, INSERT, SPLIT, CLOSE, KINDS };

static struct rofx_tls *tls;
static bool touched, up[2];

static struct rofx_side
side(unsigned n)
{
	struct rofx_side s = {.cid = 100 + n,
		.qpn = 200 + n,
		.mtu = 4096,
		.ird = 16,
		.ord = 16,
		.request_window = 64,
		.data_window = 128,
		.flows = FA_FLOWS_MAX,
		.ttl = 64,
		.psp = ROFX_PSP_KEYED,
		.spi = 300 + n};

	memset(s.key128, (int)(1 + n), sizeof(s.key128));
	memset(s.key256, (int)(3 + n), sizeof(s.key256));
	return s;
}

static void
answer(struct lone *x)
{
	struct rofx_side s = side(2);

	CLAIM(lone_request(x)->secure);
	s.transport = lone_request(x)->peer.transport;
	s.qpn = lone_request(x)->peer.to_qpn;
	s.gid = lone_request(x)->peer.to_gid;
	s.to_qpn = lone_request(x)->peer.qpn;
	s.to_gid = lone_request(x)->peer.gid;
	CLAIM(lone_accept(x, 0, &s, "yes", 3) == 0);
}

/* Handles the events of end `k`. Returns false when the exchange has ended. */
static bool
events(struct lone *x, unsigned k)
{
	enum rofx_event ev;

	while ((ev = lone_event(x)) != ROFX_EV_NONE) {
		switch (ev) {
		case ROFX_EV_REQUEST:
			answer(x);
			break;
		case ROFX_EV_AGREED:
			CLAIM(psp_key_len(lone_agreed(x)->psp) > 0);
			CLAIM(lone_ready(x) == 0);
			up[k] = true;
			break;
		case ROFX_EV_ESTABLISHED:
			up[k] = true;
			break;
		case ROFX_EV_REKEY:
			CLAIM(lone_rekeyed(x) == 0);
			break;
		case ROFX_EV_FAILED:
			CLAIM(lone_why(x) != ROFX_NONE && lone_why(x) < rofx_reason_count);
			return false;
		case ROFX_EV_REJECTED:
		case ROFX_EV_ENDED:
			return false;
		default:
			break;
		}
	}
	return true;
}

/* Passes the output of one end on. Returns its length, or -1 when the stream has ended. */
static int
pass(struct lone *from, struct lone *to, unsigned k, struct fuzz_input *in)
{
	uint8_t buf[2 * ROOM], *copy;
	size_t len = lone_output(from, buf, ROOM), where, cut;
	enum what what = (enum what)(fuzz_byte(in) % KINDS);
	uint8_t value;

	if (len == 0)
		return 0;
	where = (size_t)fuzz_byte(in) * len / 256;
	value = fuzz_byte(in);
	cut = len;
	switch (what) {
	case CHANGE:
		buf[where] ^= value;
		touched |= value != 0;
		break;
	case CUT:
		len = where;
		touched = true;
		break;
	case DOUBLE:
		memmove(buf + len, buf, len);
		len *= 2;
		touched = true;
		break;
	case INSERT:
		memmove(buf + where + 1, buf + where, len - where);
		buf[where] = value;
		len++;
		touched = true;
		break;
	case SPLIT:
		cut = 1 + value;
		break;
	case CLOSE:
		lone_lost(to);
		events(to, k);
		touched = true;
		return -1;
	default:
		break;
	}
	for (size_t at = 0, n; at < len; at += n) {
		int took;

		n = len - at < cut ? len - at : cut;
		copy = exact_copy(buf + at, n);
		took = lone_input(to, 0, copy, n);
		free(copy);
		CLAIM(took == (int)n || (took < 0 && took == -(int)lone_why(to)));
		if (!events(to, k))
			return -1;
	}
	return (int)len;
}

static void
same_keys(const struct rofx_sa *rx, const struct rofx_sa *tx)
{
	CLAIM(rx->version == tx->version && rx->spi == tx->spi);
	CLAIM(memcmp(rx->key, tx->key, psp_key_len(rx->version)) == 0);
}

static void
rekey(struct lone *x)
{
	const struct rofx_agreed *a = lone_agreed(x);
	struct rofx_sa sa = {.version = a->psp, .spi = a->rx.spi + 1};

	memset(sa.key, 9, sizeof(sa.key));
	lone_rekey(x, 0, &sa);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t psk[32] = "a pre-shared key of thirty bytes";
	const struct rofx_tls_config tc = {.psk = psk, .psk_len = sizeof(psk)};
	struct fuzz_input in = {.p = data, .len = size};
	struct rofx_config cfg = {0};
	struct rofx_side s = side(1);
	struct lone *x[2];
	uint8_t options = fuzz_byte(&in);
	char text[256];
	int err;

	if (tls == NULL)
		tls = rofx_tls_create(&tc, text, sizeof(text));
	CLAIM(tls != NULL);
	cfg.tls = tls;
	x[0] = lone_connect(&cfg, 0, &s, "hello", 5, &err);
	x[1] = lone_listen(&cfg, 0);
	CLAIM(x[0] != NULL && x[1] != NULL);
	touched = up[0] = up[1] = false;
	for (unsigned i = 0, idle = 0; i < ROUNDS && idle < 2 + (options & 6u) * 10; i++) {
		int n = pass(x[i & 1], x[!(i & 1)], !(i & 1), &in);

		if (n < 0)
			break;
		idle = n == 0 ? idle + 1 : 0;
		if (up[0] && up[1] && i < 20) {
			same_keys(&lone_agreed(x[0])->rx, &lone_agreed(x[1])->tx);
			same_keys(&lone_agreed(x[1])->rx, &lone_agreed(x[0])->tx);
		}
		if (up[0] && up[1] && (options & 2) != 0 && i == 20)
			rekey(x[0]);
		if (up[0] && up[1] && (options & 4) != 0 && i == 24)
			lone_give_up(x[1], ROFX_REFUSED);
	}
	CLAIM(touched || (up[0] && up[1]));
	lone_destroy(x[0]);
	lone_destroy(x[1]);
	return 0;
}
