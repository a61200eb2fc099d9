/* SPDX-License-Identifier: BSD-3-Clause */
/* See transport_rig.h. */
#include "transport_rig.h"

#include <string.h>

#include <criterion/criterion.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

void
turn(struct world *w)
{
	int end = w->still ? 1 : 2;

	w->now += 20000;
	for (int i = w->deaf ? 1 : 0; i < end; i++)
		eng_transport_rx(w->pair.e[i]->transports[0], w->now);
	for (int i = 0; i < end; i++)
		eng_transport_tx(w->pair.e[i]->transports[0], w->now);
}

void
world_start(struct world *w)
{
	w->deaf = w->still = false;
	w->user = SK_USER_INSTANCE;
	pair_start(&w->pair);
	w->now = eng_clock(); /* not before the time at which the stages' wheels begin */
}

void
command(struct world *w, int side, struct eng_ctl *m)
{
	struct eng_control_args *args = &w->pair.e[side]->control->args;

	cr_assert_eq(rte_ring_sp_enqueue(args->to_transport[0], m), 0);
}

struct eng_ctl *
heard(struct world *w, int side)
{
	struct eng_control_args *args = &w->pair.e[side]->control->args;
	void *m;

	for (int i = 0; i < 2000; i++) {
		if (rte_ring_sc_dequeue(args->from_transport[0], &m) == 0)
			return m;
		turn(w);
	}
	return NULL;
}

struct eng_ctl *
expect(struct world *w, int side, enum eng_ctl_type type)
{
	struct eng_ctl *m = heard(w, side);

	cr_assert_not_null(m, "message %d did not come", type);
	cr_assert_eq(m->type, type, "message %d came instead of %d", m->type, type);
	return m;
}

void
do_command(struct world *w, int side, struct eng_ctl *m, int status)
{
	command(w, side, m);
	cr_assert_eq(expect(w, side, m->type), m);
	cr_assert_eq(m->status, status, "command %d: %d", m->type, m->status);
}

const struct eng_offer offer = {.kind = ENG_IWARP,
	.ird = 8,
	.ord = 8,
	.mpa = {.revision = 2, .crc = true, .ird = 8, .ord = 8}};

void
listen_at(struct world *w, int side)
{
	static struct eng_ctl m;

	m = (struct eng_ctl){.type = ENG_CT_LISTEN,
		.listen = {.number = 3, .backlog = 8, .port = PORT, .offer = offer}};
	do_command(w, side, &m, 0);
}

uint32_t
connect_from(struct world *w, int side, const char *to)
{
	static struct eng_ctl m;

	m = (struct eng_ctl){
		.type = ENG_CT_CONNECT, .cookie = 77, .connect.offer = offer, .private_len = 5};
	m.user = w->user;
	m.connect.tuple.raddr = addr(to);
	m.connect.tuple.rport = PORT;
	memcpy(m.private_data, "hello", 5);
	do_command(w, side, &m, 0);
	return m.conn;
}

uint32_t
change_step(struct world *w, int side, uint8_t step, const struct eng_config *next, int status)
{
	struct eng_ctl m = {.type = ENG_CT_CHANGE};

	m.change.step = step;
	m.change.was = &w->pair.e[side]->cfg;
	m.change.next = next;
	do_command(w, side, &m, status);
	return m.change.ended;
}

bool
told(struct world *w, int side, struct eng_dmsg *m)
{
	return rte_ring_sc_dequeue_elem(
		       w->pair.e[side]->stages[0]->from_transport[0], m, sizeof(*m)) == 0;
}

static void
request_again(struct world *w, uint32_t conn[2])
{
	struct eng_ctl *m;

	conn[SIDE_A] = connect_from(w, SIDE_A, PAIR_ADDR_B);
	m = expect(w, SIDE_B, ENG_TC_REQUEST);
	conn[SIDE_B] = m->conn;
	cr_assert_eq(m->peer.listener, 3);
	cr_assert_eq(m->private_len, 5);
	cr_assert_eq(memcmp(m->private_data, "hello", 5), 0);
	command(w, SIDE_B, m);
}

void
request(struct world *w, uint32_t conn[2])
{
	listen_at(w, SIDE_B);
	request_again(w, conn);
}

void
accept_request(struct world *w, const uint32_t conn[2])
{
	static struct eng_ctl c;
	struct eng_ctl *m;

	c = (struct eng_ctl){.type = ENG_CT_ACCEPT,
		.conn = conn[SIDE_B],
		.cookie = 78,
		.qp_index = 9,
		.connect.offer = offer};
	/* The notice of the outcome may arrive before the answer of the command. */
	command(w, SIDE_B, &c);
	for (int i = 0; i < 2; i++) {
		m = heard(w, SIDE_B);
		cr_assert_not_null(m);
		if (m == &c) {
			cr_assert_eq(m->status, 0);
			continue;
		}
		cr_assert_eq(m->type, ENG_TC_ESTABLISHED);
		cr_assert_eq(m->cookie, 78);
		command(w, SIDE_B, m);
	}
}

void
take_reply(struct world *w, const uint32_t conn[2])
{
	struct eng_ctl *m = expect(w, SIDE_A, ENG_TC_ESTABLISHED);
	static struct eng_ctl c;

	cr_assert_eq(m->cookie, 77);
	cr_assert(m->peer.outcome.mpa.crc);
	cr_assert_eq(m->peer.emss, tcp_emss(w->pair.e[0]->transports[0]->conns[m->conn].tcp));
	command(w, SIDE_A, m);
	c = (struct eng_ctl){.type = ENG_CT_BIND, .conn = conn[SIDE_A], .qp_index = 5};
	do_command(w, SIDE_A, &c, 0);
}

void
connect_again(struct world *w, uint32_t conn[2])
{
	request_again(w, conn);
	accept_request(w, conn);
	take_reply(w, conn);
}

void
connect_both(struct world *w, uint32_t conn[2])
{
	listen_at(w, SIDE_B);
	connect_again(w, conn);
}

void
world_connect(struct world *w, uint32_t conn[2])
{
	pair_init(&w->pair);
	world_start(w);
	connect_both(w, conn);
}

void
say(struct world *w, int side, enum eng_to_transport type, uint32_t conn, void *ptr, uint32_t arg)
{
	struct eng_dmsg m = {.u = (uintptr_t)ptr, .arg = arg, .id_type = ENG_DMSG(type, conn)};

	cr_assert_eq(rte_ring_sp_enqueue_elem(
			     w->pair.e[side]->stages[0]->to_transport[0], &m, sizeof(m)),
		0);
}

struct eng_dmsg
expect_told(struct world *w, int side, enum eng_to_stage type)
{
	struct eng_dmsg m;

	for (int i = 0; i < 2000; i++) {
		while (told(w, side, &m)) {
			uint32_t got = m.id_type & 15;

			if (got == type)
				return m;
			cr_assert(got == ENG_E_SPACE || got == ENG_E_EMSS,
				"message %u came instead of %d", got, type);
		}
		turn(w);
	}
	cr_assert_fail("message %d did not come", type);
	return m;
}

void
send_bytes(struct world *w, int side, uint32_t conn, uint8_t first, uint32_t len)
{
	struct tcp_rec *rec = eng_rec_alloc(w->pair.e[side]->stages[0]->store);

	cr_assert_not_null(rec);
	rec->len = len;
	for (uint32_t i = 0; i < len; i++)
		rec->data[i] = (uint8_t)(first + i);
	say(w, side, ENG_T_RECORD, conn, rec, 0);
}

void
expect_bytes(struct world *w, int side, uint32_t conn, uint8_t first, uint32_t len)
{
	uint32_t have = 0;

	while (have < len) {
		struct eng_dmsg m = expect_told(w, side, ENG_E_DATA);
		struct tcp_slice *chain = (struct tcp_slice *)(uintptr_t)m.u;

		for (const struct tcp_slice *s = chain; s != NULL; s = s->next)
			for (uint32_t i = 0; i < s->len; i++, have++)
				cr_assert_eq(s->data[i], (uint8_t)(first + have), "byte %u", have);
		eng_slice_free(chain);
	}
	cr_assert_eq(have, len);
	say(w, side, ENG_T_CONSUMED, conn, NULL, len);
}

void
close_after_peer(struct world *w, const uint32_t conn[2])
{
	expect_told(w, SIDE_B, ENG_E_FIN);
	say(w, SIDE_B, ENG_T_CLOSE, conn[SIDE_B], NULL, 0);
	cr_assert_eq(expect_told(w, SIDE_B, ENG_E_CLOSED).arg, 0);
	say(w, SIDE_B, ENG_T_RELEASE, conn[SIDE_B], NULL, 0);
}

void
close_both(struct world *w, const uint32_t conn[2])
{
	for (int i = 0; i < 2; i++)
		say(w, i, ENG_T_CLOSE, conn[i], NULL, 0);
	for (int i = 0; i < 2; i++) {
		struct eng_dmsg m;

		expect_told(w, i, ENG_E_FIN);
		m = expect_told(w, i, ENG_E_CLOSED);
		cr_assert_eq(m.arg, 0);
		say(w, i, ENG_T_RELEASE, conn[i], NULL, 0);
	}
	turn(w);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(w->pair.e[i]->transports[0]->nused, 0, "an index was not released");
}
