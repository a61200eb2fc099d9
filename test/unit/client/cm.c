/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections and events. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

static struct fake f;
static struct saker *s;
static struct saker_qp *qp;
static struct saker_qp_attr attr;
static struct saker_pd *pd;
static struct sk_addr here, there;

static void
setup(void)
{
	s = fake_flat(&f, 1 << 20, 0);
	cr_assert_eq(saker_pd_create(s, &pd), 0);
	cr_assert_eq(saker_cq_create(s, 4, NULL, &attr.send_cq), 0);
	attr.recv_cq = attr.send_cq;
	cr_assert_eq(saker_qp_create(pd, &attr, &qp), 0);
	cr_assert_eq(sk_addr_parse("10.0.0.1", &here), 0);
	cr_assert_eq(sk_addr_parse("fd00::2", &there), 0);
}

static void
teardown(void)
{
	saker_close(s);
	free(f.home);
}

TestSuite(client_cm, .init = setup, .fini = teardown);

Test(client_cm, connect_carries_addresses_and_parameters)
{
	struct saker_conn_param p = {.ird = 3,
		.ord = 4,
		.revision = 1,
		.crc = 1,
		.markers = 0,
		.rtr = SAKER_RTR_READ,
		.enhanced = SAKER_ENHANCED_TRY,
		.lport = 801,
		.dialect = SAKER_DIALECT_DRAFT,
		.private_data = "hello",
		.private_len = 5};
	const struct shm_cm *cm = &f.last.body.cm;

	cr_assert_eq(saker_connect(qp, &here, &there, 7471, &p), 0);
	cr_assert_eq(f.last.op, SHM_CONNECT);
	cr_assert_eq(cm->qp, 7);
	cr_assert(sk_addr_eq(&cm->local, &here));
	cr_assert(sk_addr_eq(&cm->remote, &there));
	cr_assert_eq(cm->rport, 7471);
	cr_assert_eq(cm->lport, 801);
	cr_assert_eq(cm->ird, 3);
	cr_assert_eq(cm->ord, 4);
	cr_assert_eq(cm->revision, 1);
	cr_assert_eq(cm->crc, 1);
	cr_assert_eq(cm->markers, 0);
	cr_assert_eq(cm->rtr, SHM_RTR_READ);
	cr_assert_eq(cm->enhanced, SHM_ENHANCED_TRY);
	cr_assert_eq(cm->dialect, SHM_DIALECT_DRAFT);
	cr_assert_eq(cm->private_len, 5);
	cr_assert_arr_eq(cm->private_data, "hello", 5);
}

static const struct saker_conn_param no_wait = {.no_wait = true, .crc = 2, .markers = 2};

Test(client_cm, a_program_need_not_wait_for_the_reply)
{
	struct saker_event ev;

	f.mute = true;
	cr_assert_eq(saker_connect(qp, NULL, &there, 1, &no_wait), 0);
	cr_assert_eq(saker_accept(s, 5, qp, &no_wait), 0);
	cr_assert_eq(f.seen[SHM_CONNECT], 0);
	f.mute = false;
	fake_poll(&f);
	cr_assert_eq(f.seen[SHM_CONNECT], 1);
	cr_assert_eq(f.seen[SHM_ACCEPT], 1);
	cr_assert_eq(f.most, 2);
	cr_assert_eq(saker_event(s, &ev), 0, "a success is no event");
}

Test(client_cm, a_refusal_without_a_waiting_call_is_an_event)
{
	struct saker_event ev;

	f.refuse_op = SHM_CONNECT;
	f.refuse_status = -EAFNOSUPPORT;
	f.refuse_text = "it is of another family";
	cr_assert_eq(saker_connect(qp, NULL, &there, 1, &no_wait), 0);
	fake_poll(&f);
	cr_assert_eq(saker_event(s, &ev), 1);
	cr_assert_eq(ev.type, SAKER_EV_UNREACHABLE);
	cr_assert_eq(ev.status, -EAFNOSUPPORT);
	cr_assert_eq(ev.qp, qp);
	cr_assert_str_eq(saker_error(), f.refuse_text);
	cr_assert_eq(saker_event(s, &ev), 0);
	f.refuse_status = INT32_MIN;
	cr_assert_eq(saker_connect(qp, NULL, &there, 1, &no_wait), 0);
	fake_poll(&f);
	cr_assert_eq(saker_event(s, &ev), 1);
	cr_assert_eq(ev.status, -EPROTO, "no errno");
	cr_assert_eq(saker_connect(qp, NULL, &there, 1, &no_wait), 0);
	fake_poll(&f);
	cr_assert_eq(saker_qp_destroy(qp), 0);
	cr_assert_eq(saker_event(s, &ev), 0, "it ends with its QP");
}

Test(client_cm, more_commands_than_the_mailbox_holds_wait_for_room)
{
	f.most = 0;
	for (int i = 0; i < 100; i++)
		cr_assert_eq(saker_connect(qp, NULL, &there, 1, &no_wait), 0);
	fake_poll(&f);
	cr_assert_eq(f.seen[SHM_CONNECT], 100);
	cr_assert_gt(f.most, 1);
}

Test(client_cm, no_command_without_a_reply_reaches_an_engine_that_went)
{
	f.h->engine_alive = 0;
	cr_assert_eq(saker_connect(qp, NULL, &there, 1, &no_wait), -EPIPE);
}

Test(client_cm, no_parameters_mean_the_device_and_the_configuration)
{
	const struct shm_cm *cm = &f.last.body.cm;

	cr_assert_eq(saker_connect(qp, NULL, &there, 1, NULL), 0);
	cr_assert(sk_addr_is_any(&cm->local));
	cr_assert_eq(cm->ird, 16);
	cr_assert_eq(cm->ord, 8);
	cr_assert_eq(cm->revision, 0);
	cr_assert_eq(cm->crc, 2);
	cr_assert_eq(cm->markers, 2);
	cr_assert_eq(cm->private_len, 0);
}

Test(client_cm, private_data_beyond_the_limit_is_refused_here)
{
	static uint8_t bytes[SAKER_PRIVATE_MAX + 1];
	struct saker_conn_param p = {.private_data = bytes, .private_len = sizeof(bytes)};

	cr_assert_eq(saker_connect(qp, NULL, &there, 1, &p), -EINVAL);
	cr_assert_not_null(strstr(saker_error(), "513"));
	cr_assert_eq(saker_accept(s, 1, qp, &p), -EINVAL);
	cr_assert_eq(saker_reject(s, 1, bytes, sizeof(bytes)), -EINVAL);
	cr_assert_eq(saker_reject(s, 1, bytes, 65536 + 4), -EINVAL, "a length that would wrap");
	p.private_len--;
	cr_assert_eq(saker_connect(qp, NULL, &there, 1, &p), 0);
}

Test(client_cm, listen_reports_the_port_that_was_chosen)
{
	struct saker_listener *l;

	cr_assert_eq(saker_listen(s, &here, 0, 5, &f, &l), 0);
	cr_assert_eq(f.last.body.cm.backlog, 5);
	cr_assert_eq(f.last.body.cm.revision, 0, "as the configuration says");
	cr_assert_eq(f.last.body.cm.crc, 2);
	cr_assert_eq(f.last.body.cm.rtr, SHM_RTR_ANY);
	cr_assert(sk_addr_eq(&f.last.body.cm.local, &here));
	cr_assert_eq(saker_listener_port(l), 49152);
	cr_assert_eq(saker_listener_user(l), &f);
	cr_assert_eq(saker_unlisten(l), 0);
	cr_assert_eq(f.last.op, SHM_UNLISTEN);
	cr_assert_eq(f.last.body.handle, 601);
}

Test(client_cm, a_listener_may_differ_from_the_configuration)
{
	struct saker_conn_param p = {.revision = 1, .crc = 0, .markers = 1};
	struct saker_listener *l;

	cr_assert_eq(saker_listen_as(s, &here, 7, 5, &p, &f, &l), 0);
	cr_assert_eq(f.last.body.cm.revision, 1);
	cr_assert_eq(f.last.body.cm.crc, 0);
	cr_assert_eq(f.last.body.cm.markers, 1);
	cr_assert_eq(saker_listener_user(l), &f);
}

Test(client_cm, accept_reject_and_disconnect_name_their_object)
{
	cr_assert_eq(saker_accept(s, 91, qp, NULL), 0);
	cr_assert_eq(f.last.op, SHM_ACCEPT);
	cr_assert_eq(f.last.body.cm.request, 91);
	cr_assert_eq(f.last.body.cm.qp, 7);
	cr_assert_eq(saker_reject(s, 92, "no", 2), 0);
	cr_assert_eq(f.last.op, SHM_REJECT);
	cr_assert_eq(f.last.body.cm.request, 92);
	cr_assert_arr_eq(f.last.body.cm.private_data, "no", 2);
	cr_assert_eq(saker_disconnect(qp, true), 0);
	cr_assert_eq(f.last.op, SHM_DISCONNECT);
	cr_assert_eq(f.last.body.cm.qp, 7);
	cr_assert_eq(f.last.body.cm.abort, 1);
}

Test(client_cm, a_request_comes_to_its_listener_with_private_data)
{
	struct shm_msg m = {.op = SHM_EV_CONNECT_REQUEST};
	struct saker_listener *l;
	struct saker_event ev;

	cr_assert_eq(saker_listen(s, NULL, 5, 1, NULL, &l), 0);
	m.body.cm.qp = SHM_NONE;
	m.body.cm.listener = 601;
	m.body.cm.request = 1234;
	m.body.cm.remote = there;
	m.body.cm.private_len = 3;
	memcpy(m.body.cm.private_data, "abc", 3);
	fake_event(&f, &m);
	cr_assert_eq(saker_event(s, &ev), 1);
	cr_assert_eq(ev.type, SAKER_EV_CONNECT_REQUEST);
	cr_assert_eq(ev.listener, l);
	cr_assert_null(ev.qp);
	cr_assert_eq(ev.request, 1234);
	cr_assert(sk_addr_eq(&ev.cm.remote, &there));
	cr_assert_arr_eq(ev.cm.private_data, "abc", 3);
	cr_assert_eq(saker_event(s, &ev), 0);
}

Test(client_cm, each_event_of_a_queue_pair_has_its_type)
{
	static const struct {
		uint16_t op;
		enum saker_event_type type;
	} rows[] = {
		{SHM_EV_ESTABLISHED, SAKER_EV_ESTABLISHED},
		{SHM_EV_REJECTED, SAKER_EV_REJECTED},
		{SHM_EV_UNREACHABLE, SAKER_EV_UNREACHABLE},
		{SHM_EV_DISCONNECTED, SAKER_EV_DISCONNECTED},
	};
	struct saker_event ev;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct shm_msg m = {.op = rows[i].op, .status = -ECONNREFUSED};

		m.body.cm.qp = 7;
		fake_event(&f, &m);
		cr_assert_eq(saker_event(s, &ev), 1);
		cr_assert_eq(ev.type, rows[i].type);
		cr_assert_eq(ev.qp, qp);
		cr_assert_eq(ev.status, -ECONNREFUSED);
	}
}

Test(client_cm, asynchronous_errors_name_object_and_reason)
{
	struct shm_msg m = {.op = SHM_EV_QP_FATAL};
	struct saker_event ev;

	m.body.async.object = 7;
	m.body.async.code = 33;
	strcpy(m.body.async.reason, "TERM_SENT");
	fake_event(&f, &m);
	m.op = SHM_EV_CQ_OVERFLOW;
	m.body.async.object = 100;
	fake_event(&f, &m);
	cr_assert_eq(saker_event(s, &ev), 1);
	cr_assert_eq(ev.type, SAKER_EV_QP_FATAL);
	cr_assert_eq(ev.qp, qp);
	cr_assert_eq(ev.async.code, 33);
	cr_assert_str_eq(ev.async.reason, "TERM_SENT");
	cr_assert_eq(saker_event(s, &ev), 1);
	cr_assert_eq(ev.type, SAKER_EV_CQ_OVERFLOW);
	cr_assert_eq(ev.cq, attr.send_cq);
}

Test(client_cm, events_between_replies_wait_in_order)
{
	struct shm_msg m = {.op = SHM_EV_ESTABLISHED};
	struct saker_event ev;

	m.body.cm.qp = 7;
	for (uint16_t i = 0; i < 40; i++) {
		struct saker_qp_info info;

		m.body.cm.ird = i;
		fake_event(&f, &m);
		cr_assert_eq(saker_qp_query(qp, &info), 0, "a reply behind %u events", i);
	}
	for (uint16_t i = 0; i < 40; i++) {
		cr_assert_eq(saker_event(s, &ev), 1);
		cr_assert_eq(ev.cm.ird, i);
	}
	cr_assert_eq(saker_event(s, &ev), 0);
}

Test(client_cm, the_events_of_an_object_that_is_gone_are_gone)
{
	struct shm_msg m = {.op = SHM_EV_DISCONNECTED};
	struct saker_event ev;
	struct saker_qp *next;

	m.body.cm.qp = 7;
	fake_event(&f, &m);
	cr_assert_eq(saker_qp_destroy(qp), 0);
	/* The next QP gets the same handle. */
	f.nqp = 0;
	cr_assert_eq(saker_qp_create(pd, &attr, &next), 0);
	cr_assert_eq(saker_event(s, &ev), 0, "the news of the old one is not the new one's");
	fake_event(&f, &m);
	cr_assert_eq(saker_event(s, &ev), 1);
	cr_assert_eq(ev.qp, next);
}

Test(client_cm, an_event_that_makes_no_sense_is_skipped)
{
	struct shm_msg m = {.op = 99};
	struct saker_event ev;

	fake_event(&f, &m);
	m.op = 0xffff;
	fake_event(&f, &m);
	m.op = SHM_EV_ESTABLISHED;
	m.body.cm.qp = 4711;
	fake_event(&f, &m);
	m.body.cm.qp = 7;
	m.body.cm.private_len = 60000;
	fake_event(&f, &m);
	cr_assert_eq(saker_event(s, &ev), 1);
	cr_assert_eq(ev.qp, qp);
	cr_assert_eq(ev.cm.private_len, 0);
	cr_assert_eq(saker_event(s, &ev), 0);
}
