/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues and their channels: what a completion reports, and the events of queues that
 * are armed while they hold completions. The test writes completions in place of an engine. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>

#include "../../../drivers/verbs/events_priv.h"
#include "../../../drivers/verbs/ops_priv.h"
#include "../../../drivers/verbs/path_priv.h"
#include "../../../drivers/verbs/wc_priv.h"
#include "../../../lib/client/client_priv.h"
#include "../../mini/mini.h"

#define HOME  (4ul << 20)
#define DEPTH 16

__thread uint32_t vb_path_depth __attribute__((tls_model("initial-exec")));
static struct mini mini;
static struct saker *s;
static struct vb_context context;
static struct ibv_comp_channel *channel;
static struct ibv_cq_ex *cq;

/* ---- What the tested files need of others ---- */

int
vb_dispatch_start(struct vb_attachment *a)
{
	return 0;
}

void
vb_retire_begin(struct vb_retire *r)
{
	cr_assert_eq(r->cq->events_got, r->cq->cq.comp_events_completed);
	if (r->cq->cq.channel != NULL)
		vb_channel_hide(r->cq, &r->channel_hidden);
}

void
vb_retire_end(struct vb_retire *r, bool destroyed)
{
}

/* ---- The rig ---- */

static void
start(void)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = DEPTH};

	cr_assert(mini_init(&mini, HOME));
	cr_assert_eq(saker_open_flat(mini.home, mini.size, mini_idle, &mini, &s), 0);
	context.saker = s;
	context.info.max_cq_depth = DEPTH;
	context.vctx.context.num_comp_vectors = 1;
	channel = ibv_create_comp_channel(&context.vctx.context);
	cr_assert_not_null(channel);
	cr_assert_eq(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	attr.channel = channel;
	cq = vb_create_cq_ex(&context.vctx.context, &attr);
	cr_assert_not_null(cq);
}

static void
end(void)
{
	cr_assert_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	cr_assert_eq(ibv_destroy_comp_channel(channel), 0);
	saker_close(s);
	mini_free(&mini);
}

TestSuite(verbs_cq, .init = start, .fini = end, .timeout = 60);

/* Writes a completion, as the engine does, without an event. */
static void
complete(uint8_t flags, uint8_t status)
{
	struct shm_cqe *e = shm_prod_entry(&mini.cq[0].ring);

	e->opcode = RD_RECV;
	e->flags = flags;
	e->status = status;
	shm_prod_push(&mini.cq[0].ring);
}

static void
arm(bool solicited_only)
{
	cr_assert_eq(vb_req_notify_cq(ibv_cq_ex_to_cq(cq), solicited_only), 0);
}

static bool
channel_readable(void)
{
	struct pollfd p = {.fd = channel->fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* Takes an event, and returns whether there was one. */
static bool
event(void)
{
	bool readable = channel_readable();
	struct ibv_cq *of;
	void *arg;

	if (ibv_get_cq_event(channel, &of, &arg) != 0) {
		cr_assert_eq(errno, EAGAIN);
		cr_assert_not(readable);
		return false;
	}
	cr_assert(readable);
	cr_assert_eq(of, ibv_cq_ex_to_cq(cq));
	ibv_ack_cq_events(of, 1);
	return true;
}

/* ---- Completions ---- */

Test(verbs_cq, a_datagrams_service_level_shows_the_family_of_its_header)
{
	static const struct {
		uint8_t flags, sl;
	} rows[] = {{0, 0}, {RD_WC_SOLICITED, 0}, {RD_WC_GRH, 1}, {RD_WC_GRH | RD_WC_IP4, 2},
		{RD_WC_GRH | RD_WC_IP4 | RD_WC_IMM, 2}};
	struct ibv_poll_cq_attr none = {0};
	struct ibv_wc wc;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		complete(rows[i].flags, RD_SUCCESS);
		cr_assert_eq(vb_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc), 1);
		cr_assert_eq(wc.sl, rows[i].sl, "row %zu", i);
		complete(rows[i].flags, RD_SUCCESS);
		cr_assert_eq(ibv_start_poll(cq, &none), 0);
		cr_assert_eq(ibv_wc_read_sl(cq), rows[i].sl, "row %zu", i);
		ibv_end_poll(cq);
	}
}

/* Writes a completion of a QP. */
static void
complete_of(uint32_t qpn, uint64_t wr_id)
{
	struct shm_cqe *e = shm_prod_entry(&mini.cq[0].ring);

	e->qpn = qpn;
	e->wr_id = wr_id;
	complete(0, RD_SUCCESS);
}

Test(verbs_cq, a_queue_pair_that_is_reset_takes_its_completions_with_it)
{
	struct ibv_poll_cq_attr none = {0};
	struct ibv_wc wc[8];

	for (uint64_t i = 0; i < DEPTH; i++)
		complete_of(i % 3 == 0 ? 7 : 8, i);
	vb_cq_clean(ibv_cq_ex_to_cq(cq), 7);
	cr_assert_eq(vb_poll_cq(ibv_cq_ex_to_cq(cq), 3, wc), 3);
	cr_assert(wc[0].wr_id == 1 && wc[1].wr_id == 2 && wc[2].wr_id == 4);
	complete_of(7, 100);
	complete_of(8, 101);
	vb_cq_clean(ibv_cq_ex_to_cq(cq), 7);
	cr_assert_eq(ibv_start_poll(cq, &none), 0);
	for (uint64_t i = 5; i < DEPTH; i++) {
		if (i % 3 == 0)
			continue;
		cr_assert_eq(cq->wr_id, i);
		cr_assert_eq(ibv_next_poll(cq), 0);
	}
	cr_assert_eq(cq->wr_id, 101);
	cr_assert_eq(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	vb_cq_clean(ibv_cq_ex_to_cq(cq), 7);
	cr_assert_eq(vb_poll_cq(ibv_cq_ex_to_cq(cq), 1, wc), 0);
	vb_cq_clean(NULL, 7);
	/* A poll that returns fewer than it may has emptied the queue: kept ones and new ones. */
	complete_of(8, 200);
	vb_cq_clean(ibv_cq_ex_to_cq(cq), 7);
	complete_of(8, 201);
	cr_assert_eq(vb_poll_cq(ibv_cq_ex_to_cq(cq), 8, wc), 2);
	cr_assert(wc[0].wr_id == 200 && wc[1].wr_id == 201);
}

/* Completions that a reset kept count beside those in the ring, and come out in their order. */
Test(verbs_cq, a_queue_grows_and_is_not_smaller_than_its_contents)
{
	struct ibv_cq *c = ibv_cq_ex_to_cq(cq);
	struct ibv_poll_cq_attr none = {0};
	struct ibv_wc wc[4 * DEPTH];

	context.info.max_cq_depth = 4 * DEPTH;
	complete_of(8, 0);
	vb_cq_clean(c, 7);
	for (uint64_t i = 1; i < DEPTH; i++)
		complete_of(8, i);
	cr_assert_eq(ibv_resize_cq(c, DEPTH - 1), EINVAL);
	cr_assert_eq(ibv_resize_cq(c, 0), EINVAL);
	cr_assert_eq(ibv_resize_cq(c, -1), EINVAL);
	cr_assert_eq(ibv_resize_cq(c, 4 * DEPTH + 1), EINVAL);
	cr_assert_eq(ibv_resize_cq(c, DEPTH), 0);
	cr_assert_eq(c->cqe, DEPTH);
	cr_assert_eq(ibv_resize_cq(c, 4 * DEPTH), 0);
	cr_assert_eq(c->cqe, 4 * DEPTH);
	for (uint64_t i = DEPTH; i < 4 * DEPTH; i++)
		complete_of(8, i);
	cr_assert_eq(vb_poll_cq(c, 4 * DEPTH, wc), 4 * DEPTH);
	for (uint64_t i = 0; i < 4 * DEPTH; i++)
		cr_assert_eq(wc[i].wr_id, i);
	complete_of(8, 1);
	cr_assert_eq(ibv_start_poll(cq, &none), 0);
	cr_assert_eq(ibv_resize_cq(c, 4 * DEPTH), EBUSY, "in the middle of a poll");
	ibv_end_poll(cq);
	cr_assert_eq(ibv_resize_cq(c, 1), 0);
}

static uint64_t
raw_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

Test(verbs_cq, a_completion_has_the_time_at_which_it_was_taken)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = DEPTH,
		.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK};
	struct ibv_poll_cq_attr none = {0};
	struct ibv_cq_ex *stamped;
	uint64_t before;

	stamped = vb_create_cq_ex(&context.vctx.context, &attr);
	cr_assert_not_null(stamped);
	before = raw_now();
	shm_prod_push(&mini.cq[1].ring);
	cr_assert_eq(ibv_start_poll(stamped, &none), 0);
	cr_assert_geq(ibv_wc_read_completion_ts(stamped), before);
	cr_assert_leq(ibv_wc_read_completion_ts(stamped), raw_now());
	cr_assert_leq(ibv_wc_read_completion_wallclock_ns(stamped) / 1000000000u,
		(uint64_t)time(NULL) + 1);
	cr_assert_geq(ibv_wc_read_completion_wallclock_ns(stamped) / 1000000000u,
		(uint64_t)time(NULL) - 60);
	ibv_end_poll(stamped);
	cr_assert_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(stamped)), 0);
	attr.wc_flags = IBV_WC_EX_WITH_TM_INFO;
	cr_assert_null(vb_create_cq_ex(&context.vctx.context, &attr));
	cr_assert_eq(errno, EOPNOTSUPP);
}

/* ---- Events ---- */

/* The event would make async_fd readable, where no thread delivers events. */
Test(verbs_cq, a_queue_without_a_channel_is_not_armed)
{
	struct ibv_cq *plain = ibv_create_cq(&context.vctx.context, DEPTH, NULL, NULL, 0);

	cr_assert_not_null(plain);
	cr_assert_eq(vb_req_notify_cq(plain, 0), 0);
	cr_assert_eq(mini.cq[1].shared->arm, mini.cq[0].shared->arm);
	arm(false);
	cr_assert_neq(mini.cq[1].shared->arm, mini.cq[0].shared->arm);
	cr_assert_eq(ibv_destroy_cq(plain), 0);
}

Test(verbs_cq, a_queue_that_is_armed_with_completions_has_an_event)
{
	struct ibv_wc wc;

	arm(false);
	cr_assert_not(event(), "the queue is empty");
	complete(0, RD_SUCCESS);
	cr_assert_not(event(), "the engine sends the event of a later completion");
	arm(false);
	cr_assert(event());
	cr_assert_not(event());
	/* The event has disarmed the queue. */
	cr_assert_not(shm_arm_fire(&mini.cq[0].shared->arm, true));
	arm(false);
	cr_assert_not(event(), "an event has reported this completion");
	complete(0, RD_SUCCESS);
	arm(false);
	cr_assert(event());
	cr_assert_eq(vb_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc), 1);
	cr_assert_eq(vb_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc), 1);
	arm(false);
	cr_assert_not(event());
	cr_assert(shm_arm_fire(&mini.cq[0].shared->arm, false), "the queue is armed");
}

/* perftest takes an event, arms, polls once, and relies on a completion for each event. */
Test(verbs_cq, a_completion_has_one_event_when_the_queue_is_armed_before_it_is_polled)
{
	struct saker_cq *of;
	struct ibv_wc wc;

	for (int i = 0; i < 100; i++) {
		arm(false);
		cr_assert_not(event(), "message %d", i);
		if (i > 0)
			cr_assert_eq(vb_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc), 1);
		complete(0, RD_SUCCESS);
		mini.cq[0].pending = shm_arm_fire(&mini.cq[0].shared->arm, false);
		mini_poll(&mini);
		cr_assert_eq(saker_cq_event(s, &of), 1);
	}
	/* A later one, which no event has reported. */
	complete(0, RD_SUCCESS);
	arm(false);
	cr_assert(event());
}

Test(verbs_cq, a_queue_that_is_armed_for_solicited_completions_has_an_event_of_these_alone)
{
	complete(0, RD_SUCCESS);
	arm(true);
	cr_assert_not(event());
	complete(RD_WC_SOLICITED, RD_SUCCESS);
	arm(true);
	cr_assert(event());
	complete(0, RD_LOC_LEN_ERR);
	arm(true);
	cr_assert(event());
	complete(RD_WC_SOLICITED, RD_SUCCESS);
	arm(true);
	arm(false);
	cr_assert(event(), "two calls may have one event");
	cr_assert_not(event());
}

void __real_vb_waitq_signal(struct vb_waitq *q);
void __wrap_vb_waitq_signal(struct vb_waitq *q);

static enum { NEVER, BEFORE, AFTER } beside; /* another thread tries to fetch around a signal */

static void
fetch_beside(void)
{
	struct ibv_cq *of;
	void *arg;

	if (ibv_get_cq_event(channel, &of, &arg) == 0)
		ibv_ack_cq_events(of, 1);
}

void
__wrap_vb_waitq_signal(struct vb_waitq *q)
{
	if (beside == BEFORE)
		fetch_beside();
	__real_vb_waitq_signal(q);
	if (beside == AFTER)
		fetch_beside();
	beside = NEVER;
}

/* The thread that arms lists the event and makes the descriptor readable afterwards. */
Test(verbs_cq, a_channel_is_not_readable_after_its_event_was_fetched_whenever_that_was)
{
	for (int i = 0; i < 4; i++) {
		complete(0, RD_SUCCESS);
		beside = i % 2 == 0 ? BEFORE : AFTER;
		arm(false);
		event(); /* asserts that the descriptor is readable if there is one */
		cr_assert_not(event());
	}
}

/* The second event would come without an item in the queue. */
Test(verbs_cq, events_of_a_queue_that_was_armed_twice_are_one)
{
	for (int i = 0; i < 2; i++) {
		complete(0, RD_SUCCESS);
		arm(false);
	}
	cr_assert(event());
	cr_assert_not(event());
}

Test(verbs_cq, a_handler_that_interrupted_a_poll_arms_without_an_event)
{
	struct vb_cq *v = (struct vb_cq *)cq;

	complete(0, RD_SUCCESS);
	cr_assert(vb_path_enter(&v->lock));
	arm(false);
	vb_path_leave(&v->lock);
	cr_assert_not(event());
	cr_assert(shm_arm_fire(&mini.cq[0].shared->arm, false));
}

Test(verbs_cq, an_event_that_was_not_fetched_ends_with_the_queue)
{
	complete(0, RD_SUCCESS);
	arm(false);
	cr_assert_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	cr_assert_eq(ibv_destroy_comp_channel(channel), 0);
	start();
}

/* ---- Events and completions that a reset of another QP kept ---- */

static void
reset_another(void)
{
	vb_cq_clean(ibv_cq_ex_to_cq(cq), 7);
}

Test(verbs_cq, a_completion_that_a_reset_kept_has_its_event)
{
	struct ibv_wc wc;

	complete_of(7, 0);
	reset_another();
	arm(false);
	cr_assert_not(event(), "the reset has removed it");
	complete_of(8, 1);
	reset_another();
	reset_another();
	arm(false);
	cr_assert(event(), "the queue holds a completion that no event has reported");
	arm(false);
	cr_assert_not(event(), "an event has reported it");
	cr_assert_eq(vb_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc), 1);
	cr_assert(shm_arm_fire(&mini.cq[0].shared->arm, false), "the queue is armed");
}

Test(verbs_cq, a_completion_that_was_reported_before_a_reset_kept_it_has_no_other_event)
{
	struct ibv_wc wc[4];

	complete_of(8, 1);
	arm(false);
	cr_assert(event());
	reset_another();
	arm(false);
	cr_assert_not(event());
	complete_of(8, 2);
	reset_another();
	arm(false);
	cr_assert(event(), "this one is new");
	complete_of(8, 3);
	reset_another();
	cr_assert_eq(vb_poll_cq(ibv_cq_ex_to_cq(cq), 4, wc), 3);
	arm(false);
	cr_assert_not(event(), "the program has polled it");
}

Test(verbs_cq, a_plain_completion_that_a_reset_kept_has_no_solicited_event)
{
	complete_of(8, 1);
	reset_another();
	arm(true);
	cr_assert_not(event());
	complete(RD_WC_SOLICITED, RD_SUCCESS);
	reset_another();
	arm(true);
	cr_assert(event());
	complete(0, RD_LOC_LEN_ERR);
	reset_another();
	arm(true);
	cr_assert(event());
	arm(false);
	cr_assert_not(event(), "each has had its event");
}
