/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that attach and leave: in order, with all kinds of objects, and by removal. */
#include <criterion/criterion.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../lib/engine/control/attach/client.h"
#include "../../../lib/engine/common/sigbus.h"
#include "script.h"

static struct script *s;
static struct hand c;

static void
setup(void)
{
	s = script_new(NULL);
	hand_attach(&c, s);
}

static void
finish(void)
{
	struct eng_totals t = {0};

	script_turns(s, 60);
	cr_assert(eng_control_client_gone(s->control, c.number));
	eng_control_totals(s->control, &t);
	cr_assert_eq(t.clients + t.qps + t.cqs + t.mrs + t.mws + t.pds + t.srqs + t.listeners, 0);
	cr_assert_eq(rd_mr_count(s->mrs), 0);
	cr_assert_eq(script_out(s), 0);
	script_free(s);
	hand_free(&c);
}

/* Returns the position of the first command of a type in the log. */
static unsigned
first(enum eng_ctl_type type)
{
	for (unsigned i = 0; i < s->nlog; i++)
		if (s->log[i].type == type)
			return i;
	cr_assert_fail("no command %d", type);
	return 0;
}

static unsigned
last(enum eng_ctl_type type)
{
	for (unsigned i = s->nlog; i-- > 0;)
		if (s->log[i].type == type)
			return i;
	cr_assert_fail("no command %d", type);
	return 0;
}

static void
hands_full(void)
{
	uint32_t pd = hand_pd(&c), cq = hand_cq(&c);
	struct shm_msg m = {
		.body.srq = {.pd = pd, .depth = 8, .max_sge = 1, .xrcd = SHM_NONE, .cq = SHM_NONE}};

	cr_assert_eq(hand_do(&c, &m, SHM_SRQ_CREATE), 0);
	for (int i = 0; i < 20; i++)
		hand_qp(&c, pd, cq);
	m = (struct shm_msg){.body.mr = {.pd = pd,
				     .access = RD_ACC_LOCAL_WRITE,
				     .len = 4096,
				     .nextents = 1,
				     .extents = {{.offset = c.h.mem, .len = 4096}}}};
	cr_assert_eq(hand_do(&c, &m, SHM_MR_CREATE), 0);
	m = (struct shm_msg){.body.cm.lport = 7000};
	cr_assert_eq(hand_do(&c, &m, SHM_LISTEN), 0);
}

Test(engine_life, death_tears_down_in_order_and_rejects_waiting_requests)
{
	struct eng_ctl *m;

	setup();
	hands_full();
	m = script_say(s, ENG_TC_REQUEST);
	m->peer.listener = script_last(s, ENG_CT_LISTEN)->listen.number;
	m->conn = 9;
	script_send(s, m);
	script_turns(s, 3);
	cr_assert_eq(eng_control_detach(s->control, c.number), 0);
	script_turns(s, 60);
	cr_assert_eq(script_last(s, ENG_CT_REJECT)->conn, 9);
	cr_assert_eq(script_count(s, ENG_CE_QP_DEL), 20);
	cr_assert_eq(script_count(s, ENG_CT_UNLISTEN), SCRIPT_TRANSPORTS);
	cr_assert_eq(script_count(s, ENG_CE_CQ_DEL), SCRIPT_STAGES);
	cr_assert_eq(script_count(s, ENG_CE_CLIENT_DEL), SCRIPT_STAGES);
	cr_assert_lt(last(ENG_CE_QP_DEL), first(ENG_CE_SRQ_DEL));
	cr_assert_lt(last(ENG_CE_QP_DEL), first(ENG_CE_CQ_DEL));
	cr_assert_lt(last(ENG_CE_CQ_DEL), first(ENG_CE_CLIENT_DEL));
	cr_assert_eq(((struct shm_header *)c.home)->engine_alive, 0);
	cr_assert_eq(script_counter(s, ENG_CLIENT_DEAD), 1);
	finish();
}

static void
rates_by_name(struct eng_config *cfg)
{
	/* The user ID 0 is that of no flat client. */
	cfg->rates[0] = (struct eng_rates_config){.present = true, .rates.weight = 1};
	cfg->rates[1] = (struct eng_rates_config){
		.present = true, .name = "hand0", .uid = ENG_NO_UID, .rates.weight = 2};
	cfg->rates[2] = (struct eng_rates_config){
		.present = true, .name = "hand0", .uid = ENG_NO_UID, .rates.weight = 3};
	cfg->rates[3] = (struct eng_rates_config){.present = false, .name = "hand0"};
}

Test(engine_life, a_client_has_the_rates_of_the_first_row_with_its_name)
{
	const struct eng_client *client;

	s = script_new(rates_by_name);
	hand_attach(&c, s);
	script_turns(s, 3);
	client = script_last(s, ENG_CE_CLIENT_ADD)->client;
	cr_assert_eq(client->rates.weight, 2);
	cr_assert_eq(client->user_rates.weight, 0);
	cr_assert_eq(eng_control_detach(s->control, c.number), 0);
	script_turns(s, 60);
	finish();
}

Test(engine_life, memory_stays_until_every_loop_was_quiet)
{
	setup();
	hands_full();
	s->reader_busy = true;
	eng_control_detach(s->control, c.number);
	script_turns(s, 100);
	cr_assert_eq(script_count(s, ENG_CE_CLIENT_DEL), SCRIPT_STAGES);
	cr_assert_not(eng_control_client_gone(s->control, c.number));
	s->reader_busy = false;
	finish();
}

Test(engine_life, death_waits_for_commands_that_stages_have_not_answered)
{
	uint32_t pd, cq;
	struct shm_msg m;

	setup();
	pd = hand_pd(&c);
	cq = hand_cq(&c);
	s->hold = ENG_CE_QP_ADD;
	m = (struct shm_msg){.body.qp = {.pd = pd, .send_cq = cq, .recv_cq = cq, .srq = SHM_NONE}};
	hand_send(&c, &m, SHM_QP_CREATE);
	script_turns(s, 5);
	eng_control_detach(s->control, c.number);
	script_turns(s, 50);
	cr_assert_eq(script_count(s, ENG_CE_CQ_DEL), 0);
	cr_assert_not(eng_control_client_gone(s->control, c.number));
	script_release(s, 0);
	script_turns(s, 50);
	cr_assert_eq(script_count(s, ENG_CE_QP_DEL), 1);
	finish();
}

Test(engine_life, a_number_is_free_again_when_nothing_is_left)
{
	struct hand more[SCRIPT_CLIENTS];
	void *home = aligned_alloc(4096, SCRIPT_HOME);

	setup();
	for (int i = 1; i < SCRIPT_CLIENTS; i++)
		hand_attach(&more[i], s);
	memset(home, 0, SCRIPT_HOME);
	cr_assert_eq(eng_control_attach_flat(s->control, "x", home, SCRIPT_HOME, 0, -1), -EUSERS);
	eng_control_detach(s->control, more[2].number);
	script_turns(s, 30);
	hand_free(&more[2]);
	hand_attach(&more[2], s);
	for (int i = 1; i < SCRIPT_CLIENTS; i++)
		cr_assert_eq(eng_control_detach(s->control, more[i].number), 0);
	eng_control_detach(s->control, c.number);
	script_turns(s, 60);
	cr_assert_eq(eng_control_detach(s->control, c.number), -EINVAL);
	for (int i = 1; i < SCRIPT_CLIENTS; i++)
		hand_free(&more[i]);
	free(home);
	finish();
}

Test(engine_life, a_home_region_that_is_too_small_is_refused)
{
	static uint8_t home[65536] __attribute__((aligned(4096)));

	setup();
	cr_assert_lt(eng_control_attach_flat(s->control, "x", home, 4096, 0, -1), 0);
	cr_assert_lt(eng_control_attach_flat(s->control, "x", home, 65536, 65536, -1), 0);
	cr_assert_lt(eng_control_attach_flat(s->control, "x", home, 65536, UINT64_MAX, -1), 0);
	for (unsigned i = 0; i < sizeof(home); i++)
		cr_assert_eq(home[i], 0, "something was written");
	eng_control_detach(s->control, c.number);
	finish();
}

static void
event(const struct eng_ctl *add, enum eng_ctl_type type)
{
	struct eng_ctl *m = script_say(s, type);

	m->stage = add->stage;
	m->qp = add->qp;
	m->client = add->client;
	script_send(s, m);
	script_turn(s);
}

Test(engine_life, events_wait_for_a_slow_client_and_come_in_order)
{
	const struct eng_ctl *add;
	struct eng_ctl copy;
	struct shm_msg m;

	setup();
	hand_qp(&c, hand_pd(&c), hand_cq(&c));
	add = script_last(s, ENG_CE_QP_ADD);
	copy = *add;
	for (unsigned i = 0; i < 200; i++) {
		struct eng_ctl *e = script_say(s, ENG_EC_QP_FATAL);

		e->stage = copy.stage;
		e->qp = copy.qp;
		e->client = copy.client;
		e->event.code = (int)i;
		script_send(s, e);
		script_turn(s);
	}
	for (unsigned i = 0; i < 200; i++) {
		cr_assert(hand_next(&c, &m), "event %u", i);
		cr_assert_eq(m.op, SHM_EV_QP_FATAL);
		cr_assert_eq(m.body.async.code, i);
	}
	eng_control_detach(s->control, c.number);
	finish();
}

Test(engine_life, a_client_that_never_reads_is_detached_at_a_bound)
{
	struct eng_ctl add;
	unsigned n = 0;

	setup();
	hand_qp(&c, hand_pd(&c), hand_cq(&c));
	add = *script_last(s, ENG_CE_QP_ADD);
	while (!script_counter(s, ENG_CLIENT_DEAD) && n++ < 5000)
		event(&add, ENG_EC_QP_FATAL);
	cr_assert_gt(n, CTL_CLIENT_EVENTS);
	cr_assert_lt(n, CTL_CLIENT_EVENTS + 100);
	finish();
}

Test(engine_life, the_events_of_a_client_that_never_read_are_freed_in_many_turns)
{
	struct ctl_client *cl;
	struct eng_ctl add;
	uint32_t n;

	setup();
	hand_qp(&c, hand_pd(&c), hand_cq(&c));
	cl = hand_client(&c);
	add = *script_last(s, ENG_CE_QP_ADD);
	while (!script_counter(s, ENG_CLIENT_DEAD))
		event(&add, ENG_EC_QP_FATAL);
	cr_assert_gt(cl->nevents, CTL_CLIENT_EVENTS / 2);
	do {
		n = cl->nevents;
		script_turn(s);
		if (eng_control_client_gone(s->control, c.number))
			break;
		cr_assert_leq(n - cl->nevents, 512);
	} while (true);
	cr_assert_leq(n, 512);
	finish();
}

Test(engine_life, a_client_that_scribbles_harms_only_itself)
{
	struct hand other;
	struct shm_msg m;
	uint32_t x = 1;

	setup();
	hand_attach(&other, s);
	hands_full();
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < SCRIPT_HOME; i += 4) {
			x = x * 1664525 + 1013904223;
			*(uint32_t *)(c.home + i) = x;
		}
		/* The turn numbers of the entries announce a full ring of commands, too. */
		for (unsigned i = 0; i < 16; i++)
			*(uint32_t *)(c.home + c.h.cmd.entries + i * sizeof(m)) =
				shm_turn(c.cmd.next + i, c.h.cmd.log2_count);
		s->now += CTL_PEEK_NS;
		script_turns(s, 20);
	}
	m = (struct shm_msg){.body.cq.depth = 4};
	cr_assert_eq(hand_do(&other, &m, SHM_CQ_CREATE), 0);
	eng_control_detach(s->control, other.number);
	eng_control_detach(s->control, c.number);
	script_turns(s, 60);
	hand_free(&other);
	finish();
}

Test(engine_life, a_stage_that_calls_a_client_bad_ends_it)
{
	struct eng_ctl add;

	setup();
	add = *script_last(s, ENG_CE_CLIENT_ADD);
	event(&add, ENG_EC_CLIENT_BAD);
	finish();
}

Test(engine_life, memory_that_is_taken_away_puts_its_client_out)
{
	int fd = memfd_create("m", 0);
	bool *dead;
	uint8_t *p;

	setup();
	cr_assert_eq(ftruncate(fd, 8192), 0);
	p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_eq(eng_sigbus_install(), 0);
	dead = &script_last(s, ENG_CE_CLIENT_ADD)->client->dead;
	cr_assert_geq(eng_guard(p, 8192, dead), 0);
	cr_assert_eq(ftruncate(fd, 0), 0);
	script_turns(s, 5);
	cr_assert_eq(script_counter(s, ENG_CLIENT_SIGBUS), 0);
	cr_assert_eq(__atomic_load_n(&p[5000], __ATOMIC_RELAXED), 0);
	script_turns(s, 2);
	cr_assert_eq(script_counter(s, ENG_CLIENT_SIGBUS), 1);
	finish();
}
