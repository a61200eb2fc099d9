/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of the exchange: see exchange.h. */
#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "exchange.h"

enum { WR_DATA = 1, WR_CTRL = 2, WR_CTRL_SEND = 3, WR_OP = 4, WR_INV = 5 };

struct ctrl { /* on the wire, big-endian */
	uint64_t addr;
	uint32_t stag, window, step, failed;
};

struct state {
	struct ex_peer *p;
	unsigned ctrl_posted, ctrl_in, ctrl_out, ctrl_sent; /* slots are used round robin */
	bool got_ctrl, got_data;
	struct ctrl ctrl;
	struct ex_done data;
};

static const uint32_t sizes[] = {0, 1, 7, 64, 1000, 1448, 1449, 4096, 65536, 1u << 20, EX_DATA_LEN};
static const uint32_t quick_sizes[] = {0, 1, 64, 1449, 65536, 300000};
static const char *const names[] = {
	"send",
	"send-se",
	"send-inv",
	"send-se-inv",
	"write",
	"read",
	"write-window",
	"read-window",
};

static uint8_t
pattern(uint32_t step, uint32_t i)
{
	uint32_t v = (i + step * 7919u) * 2654435761u;

	return (uint8_t)(v >> 24);
}

static void
fill(uint8_t *b, uint32_t len, uint32_t step)
{
	for (uint32_t i = 0; i < len; i++)
		b[i] = pattern(step, i);
}

static bool
verify(const uint8_t *b, uint32_t len, uint32_t step)
{
	for (uint32_t i = 0; i < len; i++)
		if (b[i] != pattern(step, i)) {
			printf("step %u: byte %u is %02x, not %02x\n", step, i, b[i],
				pattern(step, i));
			return false;
		}
	return true;
}

static uint32_t
slot_off(unsigned n, bool out)
{
	return EX_DATA_LEN + ((out ? EX_CTRL_SLOTS : 0) + n % EX_CTRL_SLOTS) * EX_CTRL_LEN;
}

static int
want_ctrl(struct state *s)
{
	return s->p->verbs->post_recv(
		s->p, WR_CTRL, slot_off(s->ctrl_posted++, false), EX_CTRL_LEN);
}

static int
send_ctrl(struct state *s, uint32_t step, uint32_t window, bool failed)
{
	uint32_t off = slot_off(s->ctrl_out++, true);
	struct ctrl c = {
		.addr = htobe64((uintptr_t)s->p->buf),
		.stag = htonl(s->p->stag),
		.window = htonl(window),
		.step = htonl(step),
		.failed = htonl(failed),
	};

	memcpy(s->p->buf + off, &c, sizeof(c));
	return s->p->verbs->post(s->p, WR_CTRL_SEND, EX_SEND, off, EX_CTRL_LEN, 0, 0, 0);
}

/* Takes completions until that of `wr_id`. */
static int
wait_for(struct state *s, uint64_t wr_id, bool solicited)
{
	for (;;) {
		struct ex_done d;

		if (wr_id == WR_CTRL && s->got_ctrl) {
			s->got_ctrl = false;
			return 0;
		}
		if (wr_id == WR_DATA && s->got_data) {
			s->got_data = false;
			return 0;
		}
		if (s->p->verbs->wait(s->p, &d, solicited))
			return -1;
		if (!d.ok) {
			printf("completion of request %llu: %s\n", (unsigned long long)d.wr_id,
				d.status);
			return -1;
		}
		if (d.wr_id == WR_CTRL) {
			memcpy(&s->ctrl, s->p->buf + slot_off(s->ctrl_in++, false),
				sizeof(s->ctrl));
			s->got_ctrl = true;
		} else if (d.wr_id == WR_DATA) {
			s->data = d;
			s->got_data = true;
		} else {
			s->ctrl_sent += d.wr_id == WR_CTRL_SEND;
			if (d.wr_id == wr_id)
				return 0;
		}
	}
}

static bool
is_send(enum ex_op op)
{
	return op <= EX_SEND_SE_INV;
}

static bool
windowed(enum ex_op op)
{
	return op == EX_WRITE_WINDOW || op == EX_READ_WINDOW;
}

static bool
reads(enum ex_op op)
{
	return op == EX_READ || op == EX_READ_WINDOW;
}

static bool
invalidates(enum ex_op op)
{
	return op == EX_SEND_INV || op == EX_SEND_SE_INV || windowed(op);
}

/* Checks the Send at the end of a step: its length and the STag that it invalidates. */
static bool
send_was_right(const struct state *s, uint32_t step, enum ex_op op, uint32_t len, uint32_t window)
{
	uint32_t want = windowed(op) ? 0 : len;

	if (s->data.len != want) {
		printf("step %u: %u bytes came, not %u\n", step, s->data.len, want);
		return false;
	}
	if (invalidates(op) && s->data.invalidated != window && s->data.invalidated != EX_UNTOLD) {
		printf("step %u: STag %08x was invalidated, not %08x\n", step, s->data.invalidated,
			window);
		return false;
	}
	return true;
}

/* The verifying side prepares, sends "ready", and waits for the operation and then for the message
 * "done". The side that acts in the next step posts a receive for its "ready" before the last
 * message of this step. */
static int
verifying_step(struct state *s, uint32_t step, enum ex_op op, uint32_t len, bool act_next)
{
	const struct ex_verbs *v = s->p->verbs;
	uint32_t window = 0;
	bool bad = false;

	if (reads(op))
		fill(s->p->buf, len, step);
	else
		memset(s->p->buf, 0xee, len);
	if ((is_send(op) || windowed(op)) && v->post_recv(s->p, WR_DATA, 0, EX_DATA_LEN))
		return -1;
	if (invalidates(op) && v->window(s->p, &window))
		return -1;
	if (want_ctrl(s) || send_ctrl(s, step, window, false))
		return -1;
	if (is_send(op) || windowed(op)) {
		if (wait_for(s, WR_DATA, op == EX_SEND_SE || op == EX_SEND_SE_INV))
			return -1;
		bad = !send_was_right(s, step, op, len, window);
	}
	if (wait_for(s, WR_CTRL, false))
		return -1;
	bad = bad || ntohl(s->ctrl.failed) || ntohl(s->ctrl.step) != step;
	if (!reads(op))
		bad = !verify(s->p->buf, len, step) || bad;
	if (invalidates(op))
		v->window_end(s->p);
	if (act_next && want_ctrl(s))
		return -1;
	return send_ctrl(s, step, 0, bad) ? -1 : bad;
}

/* Performs the operation, through the buffer's STag or through the grant, which is then
 * invalidated. */
static int
act(struct state *s, enum ex_op op, uint32_t len)
{
	const struct ex_verbs *v = s->p->verbs;
	uint32_t window = ntohl(s->ctrl.window), rkey = windowed(op) ? window : ntohl(s->ctrl.stag);
	enum ex_op plain = op == EX_WRITE_WINDOW ? EX_WRITE : op == EX_READ_WINDOW ? EX_READ : op;

	if (v->post(s->p, WR_OP, plain, 0, len, be64toh(s->ctrl.addr), rkey, window) ||
		wait_for(s, WR_OP, false))
		return -1;
	if (!windowed(op))
		return 0;
	return v->post(s->p, WR_INV, EX_SEND_INV, 0, 0, 0, 0, window) || wait_for(s, WR_INV, false);
}

static int
acting_step(struct state *s, uint32_t step, enum ex_op op, uint32_t len, bool act_next)
{
	bool bad = false;

	if (wait_for(s, WR_CTRL, false))
		return -1;
	if (reads(op))
		memset(s->p->buf, 0xdd, len);
	else
		fill(s->p->buf, len, step);
	if (want_ctrl(s) || act(s, op, len))
		return -1;
	if (reads(op))
		bad = !verify(s->p->buf, len, step);
	if (act_next && want_ctrl(s))
		return -1;
	if (send_ctrl(s, step, 0, bad) || wait_for(s, WR_CTRL, false))
		return -1;
	return bad || ntohl(s->ctrl.failed);
}

int
exchange_prepare(struct ex_peer *p)
{
	return p->verbs->post_recv(p, WR_CTRL, slot_off(0, false), EX_CTRL_LEN);
}

/* Sends the connecting side's first message. The receive that exchange_prepare() posted is for that
 * message or for the first "ready". */
static int
say_hello(struct state *s, bool first)
{
	return first ? send_ctrl(s, 0, 0, false) : wait_for(s, WR_CTRL, false);
}

static int
one_step(struct state *s, bool acting, uint32_t step, enum ex_op op, uint32_t len, bool act_next)
{
	int rc = acting ? acting_step(s, step, op, len, act_next)
			: verifying_step(s, step, op, len, act_next);

	if (rc)
		printf("step %u (%s, %u bytes, %s): %s\n", step, names[op], len,
			acting ? "acting" : "verifying", rc < 0 ? "broken" : "FAILED");
	return rc;
}

int
exchange(struct ex_peer *p, bool first, bool quick)
{
	const uint32_t *list = quick ? quick_sizes : sizes;
	unsigned n = quick ? sizeof(quick_sizes) / 4 : sizeof(sizes) / 4;
	struct state s = {.p = p, .ctrl_posted = 1};
	uint32_t step = 0, half = EX_OPS * n;
	int failed = 0;

	if (say_hello(&s, first))
		return -1;
	for (; step < 2 * half; step++) {
		bool acting = first == (step < half);
		bool act_next = step + 1 < 2 * half && first == (step + 1 < half);
		enum ex_op op = step % half / n;
		/* siw may answer an empty Read with the length of an earlier one. */
		uint32_t len = reads(op) && list[step % n] == 0 ? 2 : list[step % n];
		int rc = one_step(&s, acting, step, op, len, act_next);

		if (rc < 0)
			return -1;
		failed += rc;
	}
	/* The side that connected disconnects, and a disconnection may flush requests that have not
	 * been sent. */
	while (first && s.ctrl_sent < s.ctrl_out)
		if (wait_for(&s, WR_CTRL_SEND, false))
			return -1;
	printf("%u steps, %d failed\n", step, failed);
	return failed;
}
