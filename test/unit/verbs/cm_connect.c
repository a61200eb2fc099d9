/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections by events: rdma_connect(3), rdma_disconnect(3), and the event types of
 * rdma_get_cm_event(3). */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "cm_fake.h"

TestSuite(cm_connect, .init = fake_reset);

Test(cm_connect, depths_and_private_data_reach_the_saker)
{
	struct rdma_conn_param p = {.responder_resources = 4,
		.initiator_depth = 6,
		.private_data = "abc",
		.private_data_len = 3};
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id = fake_active(&ch);

	cr_assert_eq(id->qp->state, IBV_QPS_INIT);
	cr_assert_eq(rdma_connect(id, &p), 0);
	cr_assert_eq(fake.connects, 1);
	/* RFC 6581 9.1: what the peer may read here is our IRD. */
	cr_assert_eq(fake.param.ird, 4);
	cr_assert_eq(fake.param.ord, 6);
	cr_assert_eq(fake.param.private_len, 3);
	cr_assert_arr_eq(fake.private_data, "abc", 3);
	cr_assert_eq(fake.port, 7471);
	/* The engine chooses the source by its routes. */
	cr_assert(fake.any_local);
	cr_assert_eq(fake.param.lport, 0);
	cr_assert_not(fake_readable(ch));
	fake_destroy(id, ch);
}

Test(cm_connect, the_environments_modes_reach_the_saker)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id = fake_active(&ch);

	fake.modes_wrong = true;
	cr_assert_eq(rdma_connect(id, NULL), -1);
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(fake.connects, 0);
	fake.modes_wrong = false;
	cr_assert_eq(rdma_connect(id, NULL), 0);
	cr_assert_eq(fake.param.modes.ordering, SAKER_ORDER_WEAK);
	fake_destroy(id, ch);
}

Test(cm_connect, the_queue_pair_shows_the_ids_acknowledgement_timeout)
{
	const uint8_t before = 7, after = 9;
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {8, 8, 1, 1, 0}};
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id = fake_active(&ch);

	rdma_destroy_qp(id);
	cr_assert_eq(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
			     (void *)(uintptr_t)&before, 1),
		0);
	cr_assert_eq(rdma_create_qp(id, NULL, &init), 0);
	cr_assert_eq(vb_qp(id->qp)->attr.timeout, before);
	cr_assert_eq(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
			     (void *)(uintptr_t)&after, 1),
		0);
	cr_assert_eq(rdma_connect(id, NULL), 0);
	cr_assert_eq(vb_qp(id->qp)->attr.timeout, after);
	fake_destroy(id, ch);
}

Test(cm_connect, an_id_connects_with_its_traffic_class)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id = fake_active(&ch);

	cr_assert_eq(rdma_connect(id, NULL), 0);
	cr_assert_eq(fake.param.traffic.set, 0, "it leaves the class to the configuration");
	fake_qp_event(id->qp, SAKER_EV_UNREACHABLE, -ETIMEDOUT);
	fake_expect(ch, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	for (uint8_t tos = 0; tos < 200; tos += 104) {
		fake_set_tos(id, tos);
		cr_assert_eq(rdma_connect(id, NULL), 0);
		cr_assert_eq(fake.param.traffic.set, SAKER_CLASS_TRAFFIC);
		cr_assert_eq(fake.param.traffic.traffic_class, tos, "0 is a class, too");
		fake_qp_event(id->qp, SAKER_EV_UNREACHABLE, -ETIMEDOUT);
		fake_expect(ch, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	}
	fake_destroy(id, ch);
}

Test(cm_connect, a_port_that_the_program_bound_is_the_connections)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {8, 8, 1, 1, 0}};
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(ch, &id, &fake, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_bind_addr(id, fake_addr("192.0.2.1", 801)), 0);
	cr_assert_eq(rdma_resolve_addr(id, NULL, fake_addr("192.0.2.9", 7471), 100), 0);
	fake_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	cr_assert_eq(rdma_resolve_route(id, 100), 0);
	fake_expect(ch, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	cr_assert_eq(rdma_create_qp(id, NULL, &init), 0);
	cr_assert_eq(rdma_connect(id, NULL), 0);
	cr_assert_eq(fake.param.lport, 801);
	cr_assert_not(fake.any_local);
	fake_destroy(id, ch);
}

Test(cm_connect, the_default_and_255_are_all_that_the_device_has)
{
	struct rdma_conn_param p = {
		.responder_resources = RDMA_MAX_RESP_RES, .initiator_depth = RDMA_MAX_INIT_DEPTH};
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id = fake_active(&ch);

	for (int i = 0; i < 2; i++) {
		cr_assert_eq(rdma_connect(id, i == 0 ? NULL : &p), 0);
		cr_assert_eq(fake.param.ird, 64);
		cr_assert_eq(fake.param.ord, 32);
		fake_qp_event(id->qp, SAKER_EV_UNREACHABLE, -ETIMEDOUT);
		fake_expect(ch, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	}
	fake_destroy(id, ch);
}

#define TRIES 50000

static struct ibv_qp *told_qp;
static uint32_t asked; /* the tries for which the engine must send an event */

static void *
saker_main(void *arg)
{
	for (uint32_t i = 0; i < TRIES; i++) {
		while (__atomic_load_n(&asked, __ATOMIC_ACQUIRE) != i + 1)
			sched_yield();
		fake_qp_event(told_qp, SAKER_EV_UNREACHABLE, -ETIMEDOUT);
	}
	return arg;
}

/* A thread of the program may take the event as soon as the library has queued it. */
Test(cm_connect, an_event_that_was_taken_has_set_the_state_of_its_id)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id = fake_active(&ch);
	struct rdma_cm_event *ev;
	pthread_t t;

	told_qp = id->qp;
	fcntl(ch->fd, F_SETFL, O_NONBLOCK);
	cr_assert_eq(pthread_create(&t, NULL, saker_main, NULL), 0);
	cr_assert_eq(rdma_connect(id, NULL), 0);
	for (uint32_t i = 0; i < TRIES; i++) {
		__atomic_store_n(&asked, i + 1, __ATOMIC_RELEASE);
		while (rdma_get_cm_event(ch, &ev) != 0)
			sched_yield();
		cr_assert_eq(ev->event, RDMA_CM_EVENT_UNREACHABLE);
		cr_assert_eq(rdma_connect(id, NULL), 0, "try %u: %s", i, strerror(errno));
		rdma_ack_cm_event(ev);
	}
	pthread_join(t, NULL);
	fake_destroy(id, ch);
}

Test(cm_connect, depths_beyond_the_device_are_invalid)
{
	struct rdma_conn_param p = {.responder_resources = 65};
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id = fake_active(&ch);

	cr_assert_eq(rdma_connect(id, &p), -1);
	cr_assert_eq(errno, EINVAL);
	p = (struct rdma_conn_param){.initiator_depth = 33};
	cr_assert_eq(rdma_connect(id, &p), -1);
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(fake.connects, 0);
	fake_destroy(id, ch);
}

Test(cm_connect, established_reports_depths_private_data_and_the_port)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id = fake_active(&ch);
	struct saker_event ev = {.type = SAKER_EV_ESTABLISHED, .qp = vb_qp(id->qp)->saker};
	struct rdma_cm_event *got;

	cr_assert_eq(rdma_connect(id, NULL), 0);
	ev.cm.ird = 3;
	ev.cm.ord = 300;
	ev.cm.private_len = 2;
	memcpy(ev.cm.private_data, "ok", 2);
	sk_addr_parse("198.51.100.1", &ev.cm.local);
	ev.cm.lport = 5151;
	fake_event(&ev);
	got = fake_next(ch, RDMA_CM_EVENT_ESTABLISHED);
	cr_assert_eq(got->id, id);
	cr_assert_eq(got->status, 0);
	cr_assert_eq(got->param.conn.responder_resources, 3);
	cr_assert_eq(got->param.conn.initiator_depth, 255);
	cr_assert_eq(got->param.conn.private_data_len, 2);
	cr_assert_arr_eq(got->param.conn.private_data, "ok", 2);
	rdma_ack_cm_event(got);
	cr_assert_eq(id->qp->state, IBV_QPS_RTS);
	cr_assert_eq(ntohs(rdma_get_src_port(id)), 5151);
	cr_assert_eq(id->route.addr.src_sin.sin_addr.s_addr, inet_addr("198.51.100.1"));
	fake_destroy(id, ch);
	/* Destroying the QP ends the connection, without a call of saker_disconnect(). */
	cr_assert_eq(fake.disconnects, 0);
}

Test(cm_connect, failures_come_as_the_events_that_the_manual_names)
{
	static const struct {
		enum saker_event_type type;
		int status;
		enum rdma_cm_event_type event;
		int told, told_ib;
	} rows[] = {
		{SAKER_EV_REJECTED, 0, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED, 28},
		{SAKER_EV_UNREACHABLE, -ECONNREFUSED, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED, 8},
		{SAKER_EV_UNREACHABLE, -ETIMEDOUT, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT,
			-ETIMEDOUT},
		{SAKER_EV_UNREACHABLE, -EHOSTUNREACH, RDMA_CM_EVENT_UNREACHABLE, -EHOSTUNREACH,
			-EHOSTUNREACH},
		{SAKER_EV_UNREACHABLE, -EPROTO, RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO, -EPROTO},
		{SAKER_EV_UNREACHABLE, -ENOBUFS, RDMA_CM_EVENT_CONNECT_ERROR, -ENOBUFS, -ENOBUFS},
	};

	for (int falcon = 0; falcon < 2; falcon++) {
		struct rdma_event_channel *ch;
		struct rdma_cm_id *id;

		setenv("SAKER_DEVICE", falcon ? "falcon" : "iwarp", 1);
		id = fake_active(&ch);
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			/* A QP whose connection attempt failed can connect again. */
			cr_assert_eq(rdma_connect(id, NULL), 0);
			fake_qp_event(id->qp, rows[i].type, rows[i].status);
			fake_expect(ch, rows[i].event, falcon ? rows[i].told_ib : rows[i].told);
		}
		fake_destroy(id, ch);
	}
}

Test(cm_connect, a_rejection_brings_the_peers_private_data)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id = fake_active(&ch);
	struct rdma_cm_event *got;

	cr_assert_eq(rdma_connect(id, NULL), 0);
	fake_qp_event(id->qp, SAKER_EV_REJECTED, 0);
	got = fake_next(ch, RDMA_CM_EVENT_REJECTED);
	cr_assert_eq(got->param.conn.private_data_len, 4);
	cr_assert_arr_eq(got->param.conn.private_data, "word", 4);
	rdma_ack_cm_event(got);
	fake_destroy(id, ch);
}

Test(cm_connect, what_the_saker_refuses_at_once_is_the_calls_error)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id = fake_active(&ch);

	fake.answer = -EMSGSIZE;
	cr_assert_eq(rdma_connect(id, NULL), -1);
	cr_assert_eq(errno, EMSGSIZE);
	cr_assert_not(fake_readable(ch));
	fake.answer = 0;
	cr_assert_eq(rdma_connect(id, NULL), 0);
	cr_assert_eq(rdma_connect(id, NULL), -1);
	cr_assert_eq(errno, EINVAL);
	fake_destroy(id, ch);
}

Test(cm_connect, the_end_is_reported_once_whichever_side_requested_it)
{
	for (int ours = 0; ours < 2; ours++) {
		struct rdma_event_channel *ch;
		struct rdma_cm_id *id = fake_active(&ch);

		fake_reset();
		cr_assert_eq(rdma_disconnect(id), -1);
		cr_assert_eq(errno, EINVAL);
		cr_assert_eq(rdma_connect(id, NULL), 0);
		fake_qp_event(id->qp, SAKER_EV_ESTABLISHED, 0);
		fake_expect(ch, RDMA_CM_EVENT_ESTABLISHED, 0);
		if (ours)
			cr_assert_eq(rdma_disconnect(id), 0);
		cr_assert_eq(fake.disconnects, (unsigned)ours);
		cr_assert_not(fake_readable(ch));
		fake_qp_event(id->qp, SAKER_EV_DISCONNECTED, 0);
		fake_expect(ch, RDMA_CM_EVENT_DISCONNECTED, 0);
		cr_assert_eq(id->qp->state, IBV_QPS_ERR);
		/* A program may call it when it receives the event. */
		cr_assert_eq(rdma_disconnect(id), 0);
		cr_assert_eq(fake.disconnects, (unsigned)ours);
		cr_assert_not(fake_readable(ch));
		fake_destroy(id, ch);
	}
}

Test(cm_connect, an_id_that_goes_cuts_its_connection)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
	struct rdma_conn_param p = {0};
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id = fake_active(&ch);
	struct ibv_qp *qp;

	rdma_destroy_qp(id);
	qp = ibv_create_qp(id->pd, &init);
	p.qp_num = qp->qp_num;
	cr_assert_eq(rdma_connect(id, &p), 0);
	fake_qp_event(qp, SAKER_EV_ESTABLISHED, 0);
	fake_expect(ch, RDMA_CM_EVENT_ESTABLISHED, 0);
	rdma_destroy_id(id);
	cr_assert_eq(fake.disconnects, 1);
	cr_assert(fake.abortive);
	/* A later event of the engine is about no id and is ignored. */
	fake_qp_event(qp, SAKER_EV_DISCONNECTED, 0);
	cr_assert_not(fake_readable(ch));
	ibv_destroy_qp(qp);
	rdma_destroy_event_channel(ch);
}

Test(cm_connect, a_qp_of_the_programs_own_is_named_by_its_number)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
	struct rdma_conn_param p = {.qp_num = 0xffff};
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	struct ibv_qp *qp;

	setenv("SAKER_DEVICE", "falcon", 1);
	id = fake_active(&ch);
	rdma_destroy_qp(id);
	cr_assert_eq(rdma_connect(id, &p), -1);
	cr_assert_eq(errno, EINVAL);
	qp = ibv_create_qp(id->pd, &init);
	p.qp_num = qp->qp_num;
	cr_assert_eq(rdma_connect(id, &p), 0);
	fake_qp_event(qp, SAKER_EV_ESTABLISHED, 0);
	/* The program changes the QP's state and calls rdma_establish(). */
	fake_expect(ch, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	cr_assert_eq(rdma_establish(id), 0);
	/* The program may destroy the QP before the id. */
	ibv_destroy_qp(qp);
	fake_destroy(id, ch);
	cr_assert_eq(fake.disconnects, 0);
}

Test(cm_connect, init_qp_attr_gives_what_each_state_needs)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	int mask;

	id = fake_active(&ch);
	cr_assert_eq(rdma_init_qp_attr(id, &attr, &mask), 0);
	cr_assert_eq(mask, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS);
	attr.qp_state = IBV_QPS_RTS;
	cr_assert_eq(rdma_init_qp_attr(id, &attr, &mask), 0);
	cr_assert_eq(mask, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_SQD;
	cr_assert_eq(rdma_init_qp_attr(id, &attr, &mask), -1);
	cr_assert_eq(errno, EINVAL);
	fake_destroy(id, ch);

	setenv("SAKER_DEVICE", "falcon", 1);
	id = fake_active(&ch);
	attr.qp_state = IBV_QPS_INIT;
	cr_assert_eq(rdma_init_qp_attr(id, &attr, &mask), 0);
	cr_assert_eq(mask, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT);
	attr.qp_state = IBV_QPS_RTR;
	attr.dest_qp_num = 7;
	cr_assert_eq(rdma_init_qp_attr(id, &attr, &mask), 0);
	cr_assert(mask & IBV_QP_DEST_QPN);
	cr_assert_eq(attr.dest_qp_num, 0);
	attr.qp_state = IBV_QPS_RTS;
	cr_assert_eq(rdma_init_qp_attr(id, &attr, &mask), 0);
	cr_assert(mask & IBV_QP_SQ_PSN);
	cr_assert(mask & IBV_QP_MAX_QP_RD_ATOMIC);
	cr_assert_eq(attr.max_rd_atomic, 32);
	fake_destroy(id, ch);
}

Test(cm_connect, falcons_ids_have_a_path_and_a_timewait)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;

	setenv("SAKER_DEVICE", "falcon", 1);
	id = fake_active(&ch);
	cr_assert_eq(id->route.num_paths, 1);
	cr_assert_eq(id->route.path_rec->mtu, IBV_MTU_4096);
	cr_assert_eq(id->route.path_rec->dgid.raw[15], 9);
	cr_assert_eq(rdma_connect(id, NULL), 0);
	fake_qp_event(id->qp, SAKER_EV_ESTABLISHED, 0);
	fake_expect(ch, RDMA_CM_EVENT_ESTABLISHED, 0);
	fake_qp_event(id->qp, SAKER_EV_DISCONNECTED, 0);
	fake_expect(ch, RDMA_CM_EVENT_DISCONNECTED, 0);
	fake_expect(ch, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	cr_assert_not(fake_readable(ch));
	fake_destroy(id, ch);
}

Test(cm_connect, an_engine_that_goes_is_a_device_removal)
{
	struct saker_event gone = {.type = SAKER_EV_ENGINE_GONE, .status = -EPIPE};
	struct rdma_event_channel *ch, *ch2;
	struct rdma_cm_id *id = fake_active(&ch), *wild;

	/* An id that is bound to no device receives no event. */
	wild = fake_passive(&ch2, "0.0.0.0");
	fake_event(&gone);
	fake_event(&gone);
	fake_expect(ch, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	cr_assert_not(fake_readable(ch));
	cr_assert_not(fake_readable(ch2));
	cr_assert_eq(rdma_connect(id, NULL), -1);
	cr_assert_eq(errno, ENODEV);
	fake_destroy(id, ch);
	fake_destroy(wild, ch2);
}

Test(cm_connect, datagram_services_are_asked_and_answered)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_UD, .cap = {8, 8, 1, 1, 0}};
	struct saker_event ev = {.type = SAKER_EV_ESTABLISHED};
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_event *got;
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_UDP), 0);
	cr_assert_eq(id->qp_type, IBV_QPT_UD);
	cr_assert_eq(rdma_resolve_addr(id, NULL, fake_addr("198.51.100.9", 7), 1), 0);
	fake_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	cr_assert_eq(rdma_resolve_route(id, 1), 0);
	fake_expect(ch, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	cr_assert_eq(rdma_create_qp(id, NULL, &init), 0);
	/* A datagram QP needs no connection and can send at once. */
	cr_assert_eq(id->qp->state, IBV_QPS_RTS);
	fake_set_tos(id, 104);
	cr_assert_eq(rdma_connect(id, NULL), 0);
	cr_assert_eq(fake.ud_resolves, 1);
	cr_assert_eq(fake.port, 7);
	ev.qp = vb_qp(id->qp)->saker;
	ev.cm.remote_qpn = 0x123;
	ev.cm.remote_qkey = RDMA_UDP_QKEY;
	fake_event(&ev);
	got = fake_next(ch, RDMA_CM_EVENT_ESTABLISHED);
	cr_assert_eq(got->param.ud.qp_num, 0x123);
	cr_assert_eq(got->param.ud.qkey, RDMA_UDP_QKEY);
	cr_assert_eq(got->param.ud.ah_attr.is_global, 1);
	cr_assert_eq(got->param.ud.ah_attr.port_num, 1);
	cr_assert_eq(got->param.ud.ah_attr.grh.dgid.raw[15], 9);
	cr_assert_eq(got->param.ud.ah_attr.grh.traffic_class, 104, "for ibv_create_ah()");
	/* 198.51.100.1 is the device's second address. */
	cr_assert_eq(got->param.ud.ah_attr.grh.sgid_index, 1);
	rdma_ack_cm_event(got);
	cr_assert_eq(rdma_disconnect(id), -1);
	cr_assert_eq(errno, EINVAL);
	fake_destroy(id, ch);
}

Test(cm_connect, what_saker_lacks_is_reported)
{
	struct ibv_ece ece = {.vendor_id = 1};
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id = fake_active(&ch);

	cr_assert_eq(rdma_join_multicast(id, fake_addr("224.0.0.1", 0), NULL), -1);
	cr_assert_eq(errno, EOPNOTSUPP);
	cr_assert_eq(rdma_leave_multicast(id, fake_addr("224.0.0.1", 0)), -1);
	cr_assert_eq(errno, EOPNOTSUPP);
	cr_assert_eq(rdma_set_local_ece(id, &ece), -1);
	cr_assert_eq(errno, EOPNOTSUPP);
	cr_assert_eq(rdma_get_remote_ece(id, &ece), 0);
	cr_assert_eq(ece.vendor_id, 0);
	fake_destroy(id, ch);
}
