/* SPDX-License-Identifier: BSD-3-Clause */
#include "steps.h"

#include <stdio.h>

#include "../../../lib/base/mem.h"

#define IDLE      3 /* turns without work after which nothing happens before a timer is due */
#define STEPS     96
#define REPLY     5  /* turns in which most commands are answered */
#define CONNECTED 40 /* turns in which a connection is made, neighbour discovery included */

static struct client clients[CLIENTS];
static struct world *world;
static bool trace;

/* ---- Commands ---- */

/* Runs so many turns, or fewer when several in a row find no work. */
static void
run(unsigned turns)
{
	for (unsigned idle = 0; turns > 0 && idle < IDLE; turns--) {
		idle = world_turn(TURN_NS) ? 0 : idle + 1;
		for (unsigned i = 0; i < CLIENTS; i++)
			if (clients[i].number >= 0)
				client_read(&clients[i]);
	}
}

static struct client *
client(unsigned index)
{
	struct client *c = &clients[index % CLIENTS];

	if (c->number >= 0)
		return c;
	client_attach(c, world, index % CLIENTS);
	run(REPLY);
	return c;
}

/* Changes words of the command's body: [count], then [word][value: 4 bytes] for each. */
static void
patch(struct fuzz_input *in, struct shm_msg *m)
{
	for (unsigned n = fuzz_byte(in) % 4u; n > 0; n--) {
		unsigned word = fuzz_byte(in) % (sizeof(m->body) / 4);
		uint32_t value = fuzz_take(in, 4);

		memcpy(m->body.raw + word * 4, &value, 4);
	}
}

static void
command(struct client *c, struct client *other, struct fuzz_input *in)
{
	struct shm_msg m;

	client_fill(c, other, in, &m);
	patch(in, &m);
	client_command(c, &m);
	run(REPLY);
}

/* Sends the command that `n` operands describe. */
static void
command_of(struct client *c, struct client *other, const uint8_t *operands, size_t n)
{
	struct fuzz_input in = {.p = operands, .len = n};

	command(c, other, &in);
}

#define COMMAND(c, other, ...)                                                                     \
	command_of(c, other, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static uint8_t
last(const struct client *c, enum thing_kind kind)
{
	return (uint8_t)(c->n[kind] > 0 ? c->n[kind] - 1 : 0);
}

static void
basics(struct client *c)
{
	if (c->n[THING_PD] == 0)
		COMMAND(c, c, SHM_PD_CREATE);
	if (c->n[THING_CQ] == 0)
		COMMAND(c, c, SHM_CQ_CREATE, 63);
	if (c->n[THING_MR] == 0)
		COMMAND(c, c, SHM_MR_CREATE, 0);
}

/* ---- Connections ---- */

static void
listen_and_connect(struct client *a, struct client *b, uint8_t how, uint8_t more)
{
	uint8_t qa = last(a, THING_QP), qb = last(b, THING_QP);

	if (b->n[THING_LISTENER] == 0)
		COMMAND(b, a, SHM_LISTEN, (uint8_t)b->index, how, 0);
	COMMAND(a, b, SHM_CONNECT, qa, how, more);
	run(CONNECTED);
	COMMAND(b, a, SHM_ACCEPT, (uint8_t)((last(b, THING_REQUEST) << 4) | (qb & 15)), how, more);
	run(CONNECTED);
}

static void
step_connect(struct client *a, struct client *b, struct fuzz_input *in)
{
	uint8_t qp = fuzz_byte(in), how = fuzz_byte(in), more = fuzz_byte(in);

	basics(a);
	basics(b);
	qp &= 0xf9; /* connected QPs */
	COMMAND(a, b, SHM_QP_CREATE, qp, 0);
	COMMAND(b, a, SHM_QP_CREATE, qp, 0);
	listen_and_connect(a, b, how, more);
}

static void
move_up(struct client *c, struct client *other, uint8_t flags)
{
	uint8_t qp = last(c, THING_QP), peer = last(other, THING_QP);

	for (uint8_t state = RD_QP_INIT; state <= RD_QP_RTS; state++)
		COMMAND(c, other, SHM_QP_MODIFY, qp, (uint8_t)(peer << 4 | flags | state));
}

/* Two QPs that the programs connect. */
static void
step_pair(struct client *a, struct client *b, struct fuzz_input *in)
{
	uint8_t qp = fuzz_byte(in) | SHM_FALCON;

	basics(a);
	basics(b);
	COMMAND(a, b, SHM_QP_CREATE, qp & 0xf9, 0);
	if (a != b)
		COMMAND(b, a, SHM_QP_CREATE, qp & 0xf9, 0);
	move_up(a, b, qp & 8);
	if (a != b)
		move_up(b, a, qp & 8);
	run(CONNECTED);
}

static void
step_datagrams(struct client *a, struct client *b, struct fuzz_input *in)
{
	uint8_t qp = (fuzz_byte(in) & 0xf8) | SHM_UD << 1 | SHM_FALCON;

	basics(a);
	basics(b);
	COMMAND(a, b, SHM_QP_CREATE, qp, 0);
	COMMAND(b, a, SHM_QP_CREATE, qp, 0);
	move_up(a, b, 8);
	move_up(b, a, 8);
	COMMAND(a, b, SHM_AH_CREATE);
	COMMAND(b, a, SHM_AH_CREATE);
}

static void
step_xrc(struct client *a, struct client *b, struct fuzz_input *in)
{
	uint8_t how = fuzz_byte(in);

	basics(a);
	basics(b);
	COMMAND(b, a, SHM_XRCD_OPEN, how & 3);
	COMMAND(b, a, SHM_SRQ_CREATE, 64 | 5);
	COMMAND(b, a, SHM_QP_CREATE, SHM_XRC_RECV << 1 | SHM_FALCON, last(b, THING_XRCD));
	COMMAND(a, b, SHM_QP_CREATE, SHM_XRC_SEND << 1 | SHM_FALCON, 0);
	if (how & 4) {
		move_up(a, b, 0);
		move_up(b, a, 0);
		run(CONNECTED);
	} else {
		listen_and_connect(a, b, 0, 0);
	}
}

/* ---- Work requests ---- */

/* Rings for the QP if its flag was clear, or in any case. */
static void
ring_qp(struct client *c, const struct thing *t, bool always)
{
	if (t->at == 0)
		return;
	if (shm_pend(&((struct shm_qp *)(c->home + t->at))->pending) || always)
		client_ring(c, t->stage, t->handle);
}

static void
fill_bind(struct client *c, struct shm_sqe *e, unsigned how)
{
	const struct thing *mw = client_thing(c, THING_MW, how), *mr = client_thing(c, THING_MR, 0);

	e->rkey = mw != NULL ? mw->number + (how & 3) : how;
	e->imm = mr != NULL ? mr->number : how;
	e->remote_addr = CLIENT_BASE;
	e->bind.len = 4096;
	e->bind.access = RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ;
	e->len = sizeof(e->bind);
}

/* Fills in the target of a request: memory of the other client, its datagram QP, its XRC SRQ. */
static void
fill_target(struct client *c, struct client *other, const struct thing *qp, struct shm_sqe *e,
	unsigned how)
{
	const struct thing *mr = client_thing(other, THING_MR, how & 3);
	const struct thing *mw = client_thing(other, THING_MW, 0);
	const struct thing *t = client_thing(other, qp->type == SHM_UD ? THING_QP : THING_SRQ, how);

	e->rkey = how & 4 && mw != NULL ? mw->number : mr != NULL ? mr->number : how;
	e->remote_addr = CLIENT_BASE + (how >> 3 & 7) * 1000u;
	if (qp->type == SHM_UD) {
		e->remote_qpn = t != NULL ? t->number : how;
		e->remote_qkey = 0x1111;
		e->ah = client_handle(c, THING_AH, how);
	}
	if (qp->type == SHM_XRC_SEND)
		e->remote_srqn = t != NULL ? t->number : how;
}

static void
fill_local(struct client *c, const struct thing *qp, struct shm_sqe *e, unsigned len, unsigned more)
{
	const struct thing *mr = client_thing(c, THING_MR, 0);
	unsigned room = qp->sq.stride - SHM_SQE_BASE;

	unsigned nsge = SK_MIN(1 + (len >> 13) + more, room / sizeof(struct rd_sge));

	if (e->flags & RD_INLINE) {
		e->len = (uint16_t)len;
		memset(e->inl, 0x5a, SK_MIN(len, SK_MIN(room, sizeof(e->inl))));
		return;
	}
	e->len = (uint16_t)(nsge * sizeof(struct rd_sge));
	for (unsigned i = 0; i < nsge; i++)
		e->sge[i] = (struct rd_sge){.addr = CLIENT_BASE + 0x2000 * (i & 3),
			.len = len / nsge,
			.lkey = mr != NULL ? mr->number : 0};
}

/* Fills in an Atomic; `how` selects a Compare and Swap with masks, whose tail may continue in the
 * next entry. */
static void
fill_atomic(struct client *c, const struct thing *qp, struct shm_sqe *e, unsigned how)
{
	fill_local(c, qp, e, 8, 0);
	e->data = 1;
	e->atomic.compare = e->opcode == RD_FETCH_ADD ? 0 : 2;
	e->atomic.data_mask = 3;
	e->atomic.compare_mask = 4;
	if (e->opcode == RD_FETCH_ADD || e->opcode == RD_CMP_SWAP)
		e->len = e->opcode == RD_CMP_SWAP && how & 8 ? 40 : 24;
}

/* Fills in a request. `more`: elements in addition to those that the length needs. */
static void
fill_request(struct client *c, struct client *other, const struct thing *qp, struct shm_sqe *e,
	unsigned how, unsigned len, unsigned more)
{
	fill_target(c, other, qp, e, how);
	if (e->opcode == RD_CMP_SWAP || e->opcode == RD_FETCH_ADD || e->opcode == RD_SWAP)
		fill_atomic(c, qp, e, how);
	else
		fill_local(c, qp, e, len, more);
	if (e->opcode == RD_BIND_MW)
		fill_bind(c, e, how);
	if (e->opcode == RD_LOCAL_INV || e->opcode == RD_SEND_INV)
		e->imm = e->rkey;
}

/* Posts a request up to `n` times, and rings. */
static void
post_times(struct client *c, const struct thing *qp, const struct shm_sqe *e, unsigned n)
{
	struct shm_prod *sq = (struct shm_prod *)&qp->sq;

	for (; n > 0 && shm_prod_room(sq) > 0; n--) {
		memcpy((uint8_t *)shm_prod_entry(sq) + 4, (const uint8_t *)e + 4,
			SK_MIN(sizeof(*e), (size_t)sq->stride) - 4);
		shm_prod_push(sq);
	}
	ring_qp(c, qp, false);
}

/* Operands: [QP][opcode][flags and target][length: 2 bytes][patches of the entry]. */
static void
step_send(struct client *c, struct client *other, struct fuzz_input *in)
{
	const struct thing *qp = client_thing(c, THING_QP, fuzz_byte(in));
	unsigned opcode = fuzz_byte(in), flags = fuzz_byte(in), how = fuzz_byte(in);
	unsigned len = fuzz_take(in, 2) % (CLIENT_MEM + 2);
	struct shm_sqe e = {.opcode = (uint8_t)opcode, .flags = flags & 15, .wr_id = opcode};

	if (qp == NULL || qp->sq.entries == NULL)
		return;
	fill_request(c, other, qp, &e, how, len, 0);
	for (unsigned n = flags >> 4 & 3; n > 0; n--) {
		unsigned word = fuzz_byte(in) % 32u;
		uint32_t value = fuzz_take(in, 4);

		memcpy((uint8_t *)&e + 4 + word * 4, &value, 4);
	}
	post_times(c, qp, &e, 1 + (flags >> 6));
	run(1);
}

/* Posts requests that the engine serves in one turn. Operands: [QP][opcode][flags, and elements
 * beyond the first][target][length: 2 bytes][count]. */
static void
step_burst(struct client *c, struct client *other, struct fuzz_input *in)
{
	const struct thing *qp = client_thing(c, THING_QP, fuzz_byte(in));
	unsigned opcode = fuzz_byte(in), flags = fuzz_byte(in), how = fuzz_byte(in);
	unsigned len = fuzz_take(in, 2) % (CLIENT_MEM + 2), count = fuzz_byte(in);
	struct shm_sqe e = {.opcode = (uint8_t)opcode, .flags = flags & 15};

	if (qp == NULL || qp->sq.entries == NULL)
		return;
	fill_request(c, other, qp, &e, how, len, flags >> 4);
	for (unsigned i = 0; i < count % 16u + 1; i++) {
		e.wr_id = i;
		post_times(c, qp, &e, 1);
	}
	/* Without a turn, the next step posts to another QP in the same turn. */
	if (count & 128)
		run(1);
}

static void
step_receive(struct client *c, struct fuzz_input *in)
{
	unsigned which = fuzz_byte(in), count = fuzz_byte(in);
	const struct thing *t = client_thing(c, which & 16 ? THING_SRQ : THING_QP, which);
	const struct thing *mr = client_thing(c, THING_MR, which >> 5);
	struct shm_rqe e = {.nsge = 1, .wr_id = which};
	struct shm_prod *rq;

	if (t == NULL || t->rq.entries == NULL)
		return;
	rq = (struct shm_prod *)&t->rq;
	e.sge[0] = (struct rd_sge){.addr = CLIENT_BASE,
		.len = CLIENT_MEM >> (count & 15),
		.lkey = mr != NULL ? mr->number : 0};
	for (unsigned n = 1 + (count >> 4); n > 0 && shm_prod_room(rq) > 0; n--) {
		memcpy((uint8_t *)shm_prod_entry(rq) + 4, (const uint8_t *)&e + 4,
			SK_MIN(sizeof(e), (size_t)rq->stride) - 4);
		shm_prod_push(rq);
	}
}

/* ---- Hostile steps ---- */

/* Returns the offset that `area` selects: of a ring, of a queue, or of any byte. */
static size_t
area_at(struct client *c, unsigned area, size_t offset)
{
	const struct thing *qp = client_thing(c, THING_QP, area >> 4);
	const struct thing *cq = client_thing(c, THING_CQ, area >> 4);
	size_t base = 0;

	switch (area & 7) {
	case 0:
		return offset * 8 % CLIENT_HOME;
	case 1:
		base = c->h.cmd.entries;
		break;
	case 2:
		base = c->h.doorbell[area >> 3 & 1].entries;
		break;
	case 3:
		base = c->h.evt.cons;
		break;
	case 4:
		base = qp != NULL ? qp->at : 0;
		break;
	case 5:
		base = cq != NULL ? cq->at : 0;
		break;
	case 6:
		base = qp != NULL && qp->sq.entries != NULL ? (size_t)(qp->sq.entries - c->home)
							    : 0;
		break;
	case 7:
		base = c->h.event[area >> 3 & 1].cons;
		break;
	}
	return (base + offset) % CLIENT_HOME;
}

static void
step_scribble(struct client *c, struct fuzz_input *in)
{
	unsigned area = fuzz_byte(in);
	size_t at = area_at(c, area, fuzz_take(in, 2));

	for (unsigned n = 1 + fuzz_byte(in) % 32u; n > 0; n--)
		c->home[at++ % CLIENT_HOME] = fuzz_byte(in);
}

static void
step_frame(struct fuzz_input *in)
{
	uint8_t frame[256];
	unsigned how = fuzz_byte(in);
	size_t n = fuzz_byte(in);

	for (size_t i = 0; i < n; i++)
		frame[i] = fuzz_byte(in);
	if (how & 2)
		world_checksums(frame, n);
	world_inject(how & 1, frame, n, how & 4 ? 1 + (how >> 3) : 0);
	run(2);
}

/* Operands: [frame, counted back][how][cut or length: 2 bytes][count][offset: 2 bytes, value]...
 * An offset counts from the end of the frame if bit 15 is set. `how`: 1: the instance that receives
 * the frame; 2: with checksums; 4: in pieces; 8: cut off; 16: as the packet of the Falcon
 * connection that follows bits 5 to 7 packets later, with a payload of `cut` bytes, and with 8 in
 * one turn with the next frame. */
static void
step_replay(struct fuzz_input *in)
{
	static uint8_t frame[WORLD_FRAME_MAX];
	unsigned back = fuzz_byte(in), how = fuzz_byte(in), cut = fuzz_take(in, 2);
	size_t len = world_kept(back, frame);

	for (unsigned n = fuzz_byte(in) % 8u; n > 0; n--) {
		uint32_t at = fuzz_take(in, 2);
		uint8_t value = fuzz_byte(in);

		if (len > 0)
			frame[at & 0x8000 ? len - 1 - (at & 0x7fff) % len : at % len] = value;
	}
	if (how & 16)
		len = world_later(frame, len, how >> 5, cut % 256);
	else if (how & 8)
		len = SK_MIN(len, (size_t)cut);
	if (how & 2)
		world_checksums(frame, len);
	if (len > 0)
		world_inject(how & 1, frame, len, how & 4 ? 14 + cut % 128 : 0);
	if ((how & 24) != 24)
		run(2);
}

static void
step_raw(struct client *c, struct fuzz_input *in)
{
	struct shm_msg m = {.op = fuzz_byte(in)};

	for (unsigned n = fuzz_byte(in), i = 0; i < n; i++)
		m.body.raw[i] = fuzz_byte(in);
	client_command(c, &m);
	run(REPLY);
}

static void
step_leave(struct client *c)
{
	client_detach(c);
	for (unsigned i = 0; i < 64 && client_busy(c); i++)
		run(1);
	if (!client_busy(c))
		c->number = -1;
}

/* ---- Programs ---- */

static void
step(struct fuzz_input *in, unsigned kinds)
{
	unsigned kind = fuzz_byte(in) % kinds, who = fuzz_byte(in);
	struct client *c = client(who), *other = client(who >> 2);

	if (trace)
		fprintf(stderr, "step %u of client %u to %u at %zu\n", kind, c->index, other->index,
			in->at);
	switch (kind) {
	case STEP_COMMAND:
		command(c, other, in);
		break;
	case STEP_BASICS:
		basics(c);
		break;
	case STEP_CONNECT:
		step_connect(c, other, in);
		break;
	case STEP_PAIR:
		step_pair(c, other, in);
		break;
	case STEP_DATAGRAMS:
		step_datagrams(c, other, in);
		break;
	case STEP_XRC:
		step_xrc(c, other, in);
		break;
	case STEP_SEND:
		step_send(c, other, in);
		break;
	case STEP_RECEIVE:
		step_receive(c, in);
		break;
	case STEP_POLL:
		client_poll(c, who >> 4, fuzz_byte(in) % 3u);
		break;
	case STEP_SCRIBBLE:
		step_scribble(c, in);
		break;
	case STEP_TURNS:
		run(1 + fuzz_byte(in) % 64u);
		break;
	case STEP_TIME: {
		unsigned how = fuzz_byte(in);

		world_turn(1000ull << how % 21);
		run(1 + (how >> 5));
		break;
	}
	case STEP_FATES:
		world_fates(fuzz_take(in, 4));
		break;
	case STEP_FRAME:
		step_frame(in);
		break;
	case STEP_REPLAY:
		step_replay(in);
		break;
	case STEP_LEAVE:
		step_leave(c);
		break;
	case STEP_BELL:
		client_ring(c, who >> 4, fuzz_take(in, 4));
		run(1);
		break;
	case STEP_DEAF:
		c->deaf = !c->deaf;
		break;
	case STEP_RAW:
		step_raw(c, in);
		break;
	case STEP_BURST:
		step_burst(c, other, in);
		break;
	}
}

void
steps_run(struct world *w, struct fuzz_input *in, unsigned kinds)
{
	world = w;
	trace = getenv("FUZZ_TRACE") != NULL;
	for (unsigned i = 0; i < CLIENTS; i++)
		clients[i].number = -1;
	for (unsigned i = 0; i < STEPS && in->at < in->len; i++)
		step(in, kinds);
}

void
steps_each(void (*each)(struct client *c))
{
	for (unsigned i = 0; i < CLIENTS; i++)
		if (clients[i].number >= 0)
			each(&clients[i]);
}

void
steps_end(void)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		client_detach(&clients[i]);
	world_settle();
}
