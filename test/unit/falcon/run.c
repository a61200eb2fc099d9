/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs of packets (fa_run_begin()) and of answers (fa_answer()) against the general path: two
 * stacks with the same seed receive the same packets, one of them through fa_input() alone. After
 * each step they must have sent the same packets, made the same deliveries in the same order, and
 * counted the same. The packets are those of a peer on a wire that loses, repeats and reorders
 * them; the ULP takes its time, is not ready for some requests (RNR), and refuses others. It has
 * requests of its own, too, whose pull data is among the packets of the peer.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/falcon/falcon.h"

#define STEPS    3000
#define SENT_MAX 65536 /* packets of the peer in a test */
#define LOG_MAX  4096  /* events of a step */
#define MTU      4096
#define BURST    32
#define BASE_RSN 0xffffff00u /* the numbers wrap */

struct event {
	uint8_t bytes[FALCON_MAX + 16];
};

struct log {
	struct event at[LOG_MAX];
	unsigned n;
};

struct waiting {
	struct fa_delivery d;
};

struct side {
	bool runs;
	struct fa_stack *s;
	struct fa_conn *c;
	struct log out, in;
	struct waiting queue[1024]; /* deliveries that the ULP has not processed */
	unsigned head, tail;
	bool refused; /* until a delivery with `restart` */
	int bufs;
	unsigned in_runs[16];  /* packets by type */
	uint32_t dbase, rbase; /* of the last acknowledgement */
	uint32_t data_next;    /* PSN after the newest packet of the data window */
};

struct packet {
	struct wire_falcon h;
	uint32_t len;
	bool pull;    /* a pull request */
	bool refused; /* for good: a Resync takes its place */
};

static struct side side[2];
static struct packet *sent;
static unsigned nsent, cursor;   /* packets so far; the next one to send */
static uint32_t requests_acked;  /* the same of requests */
static uint32_t acked;           /* PSN up to which the peer acknowledges the data window */
static uint32_t asked[SENT_MAX]; /* RSNs of the pulls that have arrived at the peer */
static unsigned nasked, ndata;   /* their number; those of them with pull data */
static unsigned pull_share;      /* of 16 requests of the peer */
static bool ring_full, lossy;
static uint64_t seed;

static uint32_t
draw(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 20) % below;
}

static uint8_t *
add(struct log *log)
{
	cr_assert_lt(log->n, LOG_MAX);
	memset(&log->at[log->n], 0, sizeof(log->at[0]));
	return log->at[log->n++].bytes;
}

static struct fa_buf *
buf_new(struct side *sd, uint32_t id, uint32_t len)
{
	struct fa_buf *b = calloc(1, sizeof(*b));

	cr_assert_not_null(b);
	b->len = b->data_len = len;
	b->wait_rsn = id; /* the initiator's field names the packet */
	sd->bufs++;
	return b;
}

static void
op_free(void *ctx, struct fa_buf *b)
{
	struct side *sd = ctx;

	sd->bufs--;
	free(b);
}

/* Returns the newest packet with this PSN, or NULL. */
static struct packet *
packet_of(bool pull, uint32_t psn)
{
	for (unsigned i = 0; i < SK_MIN(nsent, 400u); i++) {
		struct packet *p = &sent[nsent - 1 - i];

		if (p->pull == pull && p->h.psn == psn)
			return p;
	}
	return NULL;
}

static int
op_output(void *ctx, struct fa_conn *c, const struct fa_out *out)
{
	struct side *sd = ctx;
	uint8_t *at = add(&sd->out);

	wire_falcon_emit(at, out->hdr);
	memcpy(at + FALCON_MAX, &out->stamp, 4);
	memcpy(at + FALCON_MAX + 4, &out->path, 4);
	if (out->hdr->type == FALCON_NACK && out->hdr->nack_code == FALCON_NACK_CIE)
		packet_of(false, out->hdr->psn)->refused = true;
	if ((out->hdr->type == FALCON_PULL_DATA || out->hdr->type == FALCON_PUSH_DATA) &&
		(int32_t)(out->hdr->psn + 1 - sd->data_next) > 0)
		sd->data_next = out->hdr->psn + 1;
	if (out->hdr->type == FALCON_PULL_REQUEST && sd == &side[0] && out->hdr->psn == nasked)
		asked[nasked++] = out->hdr->rsn;
	sd->dbase = out->hdr->dbpsn;
	sd->rbase = out->hdr->rbpsn;
	return 0;
}

static void
receive(struct side *sd, const struct fa_delivery *d)
{
	uint8_t *at = add(&sd->in);
	uint32_t id = d->buf != NULL ? d->buf->wait_rsn : 0;

	at[0] = d->type;
	at[1] = d->restart;
	memcpy(at + 4, &d->rsn, 4);
	memcpy(at + 8, &id, 4);
	cr_assert_lt(sd->tail - sd->head, 1024);
	sd->queue[sd->tail++ % 1024].d = *d;
}

static bool
run_deliver(void *ctx, struct fa_conn *c, const struct fa_delivery *d)
{
	if (ring_full)
		return false;
	receive(ctx, d);
	return true;
}

static void
op_no_event(void *ctx, struct fa_conn *c, enum fa_event ev)
{
}

static void
start(uint8_t flows)
{
	static const struct fa_ops ops = {.output = op_output,
		.deliver = run_deliver,
		.buf_free = op_free,
		.event = op_no_event};
	struct fa_params p = {.cid = 1,
		.peer_cid = 2,
		.protocol = FALCON_RDMA,
		.ordered = true,
		.rx_request_psn = BASE_RSN,
		.rx_data_psn = BASE_RSN,
		.rx_rsn = BASE_RSN,
		.mtu = MTU,
		.flows = flows};

	memset(side, 0, sizeof(side));
	sent = calloc(SENT_MAX, sizeof(*sent));
	nsent = cursor = acked = nasked = ndata = requests_acked = 0;
	ring_full = lossy = false;
	for (unsigned i = 0; i < 2; i++) {
		struct fa_config cfg;

		fa_config_default(&cfg);
		cfg.max_conns = 1;
		cfg.seed = 1;
		/* Few enough for refusals: the pools, and what one peer may hold. */
		cfg.pools.rx_pkt_net = 100;
		cfg.pools.rx_pkt_red = 4;
		cfg.conn_requests = 90;
		side[i].runs = i == 1;
		side[i].dbase = side[i].rbase = BASE_RSN;
		side[i].s = fa_stack_create(&cfg, &ops, &side[i], 1);
		cr_assert_not_null(side[i].s);
		p.user = &side[i];
		cr_assert_eq(fa_conn_create(side[i].s, 1, &p, &side[i].c), 0);
	}
}

static void
finish(void)
{
	for (unsigned i = 0; i < 2; i++) {
		for (; side[i].head != side[i].tail; side[i].head++)
			if (side[i].queue[side[i].head % 1024].d.buf != NULL)
				op_free(&side[i], side[i].queue[side[i].head % 1024].d.buf);
		fa_stack_destroy(side[i].s);
		cr_assert_eq(side[i].bufs, 0);
	}
	free(sent);
}

/* ---- The peer ---- */

static uint32_t next_rsn, next_data, next_request;

static const struct packet *
new_packet(void)
{
	static const uint32_t lengths[] = {36, 36, 36, 1000, 3000, 0};
	struct packet *p = &sent[nsent];
	bool data = ndata < nasked && draw(3) > 0;

	cr_assert_lt(nsent, SENT_MAX);
	p->pull =
		!data && draw(16) < pull_share && next_request - side[0].rbase < FA_REQUEST_WINDOW;
	if (!p->pull && next_data - side[0].dbase >= FA_DATA_WINDOW + (draw(16) == 0))
		return NULL;
	p->len = p->pull ? 40 : data ? 8 + draw(2) * 100 : lengths[draw(6)];
	p->h = (struct wire_falcon){.type = p->pull ? FALCON_PULL_REQUEST
					    : data  ? FALCON_PULL_DATA
						    : FALCON_PUSH_DATA,
		.ar = draw(16) == 0,
		.proto = FALCON_RDMA,
		.cid = 1,
		.psn = p->pull ? next_request++ : next_data++,
		.rsn = data ? asked[ndata++] : next_rsn++,
		.request_len = (uint16_t)(p->pull ? 8
					  : data  ? 0
						  : p->len)};
	nsent++;
	return p;
}

/* Makes the peer send again from the oldest packet on that a window waits for. */
static void
go_back(void)
{
	const struct packet *a = packet_of(true, side[0].rbase);
	const struct packet *b = packet_of(false, side[0].dbase);

	cursor = nsent;
	if (a != NULL)
		cursor = (unsigned)(a - sent);
	if (b != NULL)
		cursor = SK_MIN(cursor, (unsigned)(b - sent));
}

/* Returns the packet that the peer sends next: one that was lost, a new one, an old one again, or
 * the Resync that takes the place of one. */
static struct packet
next_packet(void)
{
	const struct packet *p = NULL;
	struct packet copy;

	if (draw(60) > 0) {
		p = cursor < nsent ? &sent[cursor] : new_packet();
		cursor += p != NULL;
	}
	if (p == NULL)
		p = nsent > 0 ? &sent[nsent - 1 - draw(SK_MIN(nsent, 60u))] : new_packet();
	copy = *p;
	if (p->refused || (p->h.type == FALCON_PUSH_DATA && draw(1000) == 0)) {
		copy.h.type = FALCON_RESYNC;
		copy.h.resync_type = FALCON_PUSH_DATA;
		copy.h.resync_code = FALCON_RESYNC_CIE;
		copy.len = 0;
	}
	return copy;
}

/* ---- Packets to one side ---- */

struct open_run {
	struct fa_run run;
	struct fa_buf *bufs[BURST];
	bool open;
};

static void
end_run(struct side *sd, uint64_t now, struct open_run *r)
{
	if (!r->open)
		return;
	r->open = false;
	fa_run_end(sd->c, now, &r->run);
	for (uint32_t i = 0; i < r->run.n; i++) {
		struct fa_delivery d = {.type = r->run.type == FALCON_PUSH_DATA   ? FA_PUSH
						: r->run.type == FALCON_PULL_DATA ? FA_PULL_DATA
										  : FA_PULL,
			.rsn = r->run.rsn + i,
			.buf = r->bufs[i]};

		receive(sd, &d);
	}
	sd->in_runs[r->run.type] += r->run.n;
	fa_run_done(sd->c, now);
}

static bool
run_takes(struct side *sd, uint64_t now, struct open_run *r, const struct wire_falcon *h,
	const struct fa_in *in)
{
	uint8_t bytes[FALCON_MAX + MTU] = {0};
	struct wire_falcon_plain plain;

	wire_falcon_emit(bytes, h);
	if (!sd->runs || ring_full || in->payload == NULL ||
		!wire_falcon_plain_parse(
			&plain, bytes, wire_falcon_len(h->type) + in->payload->len))
		return false;
	if (!r->open)
		r->open = fa_run_begin(sd->c, now, &r->run, &plain);
	if (!r->open || !fa_run_add(sd->c, now, &r->run, &plain, in))
		return false;
	r->bufs[r->run.n - 1] = in->payload;
	return true;
}

static void
input(struct side *sd, uint64_t now, struct open_run *r, const struct packet *p, uint32_t id,
	const struct fa_in *like)
{
	struct fa_in in = *like;

	in.hdr = &p->h;
	in.payload = p->len > 0 ? buf_new(sd, id, p->len) : NULL;
	if (run_takes(sd, now, r, &p->h, &in))
		return;
	end_run(sd, now, r);
	fa_input(sd->c, now, &in);
}

/* Delivers a packet to both sides. The network has marked one of 50. */
static void
deliver(uint64_t now, struct open_run runs[2], const struct packet *p, uint32_t path)
{
	const struct fa_in in = {.stamp = fa_ticks(now) - 10 - draw(20),
		.path = path,
		.ttl = 60,
		.ce = draw(50) == 0};

	for (unsigned k = 0; k < 2; k++)
		input(&side[k], now, &runs[k], p, p->h.rsn, &in);
}

static void
burst(uint64_t now, uint8_t flows)
{
	struct open_run runs[2] = {0};
	unsigned n = 1 + draw(BURST);

	if (lossy || draw(8) == 0)
		go_back();
	lossy = draw(10) == 0;

	for (unsigned i = 0; i < n; i++) {
		uint32_t path = flows > 1 && draw(6) == 0 ? draw(4) : 0;
		struct packet p = next_packet();

		/* The peer acknowledges what it has at its own time. */
		if (draw(20) == 0) {
			acked = side[0].data_next;
			requests_acked = nasked;
		}
		p.h.dbpsn = acked;
		p.h.rbpsn = requests_acked;
		if (lossy && draw(8) == 0)
			continue;
		deliver(now, runs, &p, path);
		if (draw(30) == 0) /* the wire repeats it at once */
			deliver(now, runs, &p, path);
	}
	for (unsigned k = 0; k < 2; k++)
		end_run(&side[k], now, &runs[k]);
}

/* ---- The ULP ---- */

enum choice { TAKE, NOT_READY, REFUSE };

static enum choice
choose(const struct side *sd, const struct fa_delivery *d, uint32_t dice)
{
	if (sd->refused && !d->restart)
		return NOT_READY;
	if (dice < 2)
		return NOT_READY;
	return dice == 2 && d->type == FA_PUSH ? REFUSE : TAKE;
}

/* Reports that `n` consecutive requests were taken, with the answers of pulls. */
static void
report(struct side *sd, uint64_t now, const struct fa_outcome *o, bool pull, unsigned n)
{
	struct fa_buf *first = NULL, **end = &first;

	if (pull && sd->runs) {
		for (unsigned i = 0; i < n; i++, end = &(*end)->next)
			*end = buf_new(sd, 1, 8);
		fa_answer(sd->c, now, o->rsn, first);
		return;
	}
	fa_outcome(sd->c, now, o);
	if (pull)
		fa_pull_data(sd->c, now, o->rsn, buf_new(sd, 1, 8));
}

/* Answers one request, or with runs also those of its type behind it that are taken. Returns their
 * number. */
static unsigned
answer_request(struct side *sd, uint64_t now, const struct fa_delivery *d, const uint32_t *dice,
	unsigned n)
{
	enum choice what = choose(sd, d, dice[0]);
	struct fa_outcome o = {.rsn = d->rsn, .verdict = FA_TAKEN};
	unsigned done = 1;

	sd->refused = what == NOT_READY || (sd->refused && !d->restart);
	if (what == NOT_READY) {
		o.verdict = FA_RNR;
		o.rnr = 1;
		o.buf = d->buf;
	} else if (d->buf != NULL) {
		op_free(sd, d->buf);
	}
	if (what == REFUSE) {
		o.verdict = FA_CIE;
		o.ulp_code = 7;
	}
	while (what == TAKE && sd->runs && done < n) {
		const struct fa_delivery *behind = &sd->queue[sd->head % 1024].d;

		if (behind->type != d->type || behind->restart || behind->rsn != d->rsn + done ||
			choose(sd, behind, dice[done]) != TAKE)
			break;
		if (behind->buf != NULL)
			op_free(sd, behind->buf);
		sd->head++;
		done++;
	}
	o.more = (uint16_t)(done - 1);
	report(sd, now, &o, what == TAKE && d->type == FA_PULL, done);
	return done;
}

/* Processes one delivery, or several requests. Returns their number. */
static unsigned
answer(struct side *sd, uint64_t now, const uint32_t *dice, unsigned n)
{
	struct fa_delivery d = sd->queue[sd->head++ % 1024].d;

	if (d.type == FA_PUSH || d.type == FA_PULL)
		return answer_request(sd, now, &d, dice, n);
	if (d.buf != NULL)
		op_free(sd, d.buf);
	return 1;
}

/* Starts a pull, or a push, as both ULPs do. */
static void
request(uint64_t now)
{
	bool pull = draw(4) > 0;

	for (unsigned k = 0; k < 2; k++)
		if (pull)
			fa_pull(side[k].c, now, buf_new(&side[k], 2, 40), 108);
		else
			fa_push(side[k].c, now, buf_new(&side[k], 2, 40));
}

static void
ulp(uint64_t now)
{
	unsigned n = draw(64);
	uint32_t dice[64];

	n = SK_MIN(n, side[0].tail - side[0].head);
	for (unsigned i = 0; i < n; i++)
		dice[i] = draw(2000);
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < n;)
			i += answer(&side[k], now, dice + i, n - i);
}

/* ---- The comparison ---- */

static void
compare(unsigned step)
{
	const uint64_t *a = fa_stack_counters(side[0].s), *b = fa_stack_counters(side[1].s);
	struct fa_info x, y;

	cr_assert_eq(side[0].in.n, side[1].in.n, "step %u: %u and %u deliveries", step,
		side[0].in.n, side[1].in.n);
	cr_assert_eq(memcmp(side[0].in.at, side[1].in.at, side[0].in.n * sizeof(struct event)), 0,
		"step %u: deliveries", step);
	cr_assert_eq(side[0].out.n, side[1].out.n, "step %u: %u and %u packets", step,
		side[0].out.n, side[1].out.n);
	cr_assert_eq(memcmp(side[0].out.at, side[1].out.at, side[0].out.n * sizeof(struct event)),
		0, "step %u: packets", step);
	for (unsigned i = 0; i < fa_reason_count; i++)
		cr_assert_eq(a[i], b[i], "step %u: %s", step, fa_reasons.reasons[i].name);
	fa_get_info(side[0].c, &x);
	fa_get_info(side[1].c, &y);
	cr_assert_eq(x.packets_in, y.packets_in);
	cr_assert_eq(x.acks_out, y.acks_out);
	cr_assert_eq(side[0].bufs, side[1].bufs, "step %u: %d and %d buffers", step, side[0].bufs,
		side[1].bufs);
	side[0].in.n = side[1].in.n = side[0].out.n = side[1].out.n = 0;
}

static void
storm(uint8_t flows, uint64_t from)
{
	uint64_t now = 1000000;

	seed = from;
	pull_share = draw(2) == 0 ? 1 : 12;
	next_rsn = next_data = next_request = BASE_RSN;
	start(flows);
	for (unsigned step = 0; step < STEPS && nsent + BURST < SENT_MAX; step++) {
		now += 500 + draw(40000);
		if (draw(4) == 0)
			ring_full = draw(10) == 0;
		if (!ring_full)
			for (unsigned k = 0; k < 2; k++)
				fa_deliver_resume(side[k].c, now);
		burst(now, flows);
		if (draw(3) > 0)
			ulp(now);
		for (unsigned i = draw(12); i > 0; i--)
			request(now);
		for (unsigned k = 0; k < 2; k++)
			fa_stack_poll(side[k].s, now, 64);
		compare(step);
	}
	cr_assert_gt(nsent, 1000u, "%u packets", nsent);
	cr_assert_gt(side[1].in_runs[FALCON_PUSH_DATA], 300u);
	cr_assert_gt(side[1].in_runs[FALCON_PULL_REQUEST], pull_share > 1 ? 300u : 20u);
	cr_assert_gt(side[1].in_runs[FALCON_PULL_DATA], 300u);
	cr_assert_gt(fa_stack_counters(side[0].s)[FA_RNR_OUT], 0);
	cr_assert_gt(fa_stack_counters(side[0].s)[FA_DUPLICATE], 0);
	finish();
}

Test(run, runs_and_single_packets_have_the_same_effects)
{
	for (uint64_t from = 1; from <= 4; from++)
		storm(1, from * 0x9e3779b97f4a7c15u);
}

Test(run, runs_and_single_packets_have_the_same_effects_on_four_paths)
{
	for (uint64_t from = 1; from <= 4; from++)
		storm(4, from * 0x9e3779b97f4a7c15u);
}
