/* SPDX-License-Identifier: BSD-3-Clause */
/* The side that listens: rdma_listen(3), requests and the ids that they bring, rdma_accept(3) and
 * rdma_reject(3). */
#include <arpa/inet.h>
#include <criterion/criterion.h>

#include "cm_fake.h"

TestSuite(cm_listen, .init = fake_reset);

Test(cm_listen, a_request_brings_a_new_id_of_its_transports_device)
{
	static const enum saker_transport both[] = {SAKER_IWARP, SAKER_FALCON};
	struct rdma_event_channel *ch;
	struct rdma_cm_id *l = fake_passive(&ch, "0.0.0.0");

	cr_assert(fake.any_local);
	cr_assert_eq(fake.port, 7471);
	for (int i = 0; i < 2; i++) {
		struct rdma_cm_event *got;
		struct rdma_cm_id *id;

		fake_request(both[i], 40);
		got = fake_next(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
		id = got->id;
		cr_assert_eq(got->listen_id, l);
		cr_assert_neq(id, l);
		cr_assert_eq(fake_is_falcon(id->verbs), both[i] == SAKER_FALCON);
		cr_assert_eq(id->route.num_paths, 0);
		cr_assert_eq(id->context, &fake);
		cr_assert_eq(id->channel, ch);
		cr_assert_eq(id->ps, RDMA_PS_TCP);
		cr_assert_eq(ntohs(rdma_get_src_port(id)), 7471);
		cr_assert_eq(ntohs(rdma_get_dst_port(id)), 4444);
		cr_assert_eq(got->param.conn.responder_resources, 7);
		cr_assert_eq(got->param.conn.initiator_depth, 9);
		cr_assert_eq(got->param.conn.private_data_len, 5);
		cr_assert_arr_eq(got->param.conn.private_data, "hello", 5);
		rdma_ack_cm_event(got);
		/* Destroying the id rejects the request, which the program has not answered. */
		fake_destroy(id, NULL);
		cr_assert_eq(fake.rejects, (unsigned)i + 1);
	}
	fake_destroy(l, ch);
	cr_assert_eq(fake.unlistens, 1);
}

static struct rdma_cm_id *
bound(struct rdma_event_channel **ch, const char *text)
{
	struct rdma_cm_id *id;

	*ch = rdma_create_event_channel();
	cr_assert_eq(rdma_create_id(*ch, &id, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_bind_addr(id, fake_addr(text, 7471)), 0);
	return id;
}

Test(cm_listen, a_request_that_comes_before_listening_waits_for_it)
{
	struct rdma_event_channel *ch, *other = rdma_create_event_channel();
	struct rdma_cm_id *l = bound(&ch, "0.0.0.0"), *of[2];

	cr_assert_eq(fake.listens, 1);
	fake_request(SAKER_IWARP, 50);
	fake_request(SAKER_FALCON, 51);
	cr_assert_eq(fake.rejects, 0);
	cr_assert_not(fake_readable(ch));
	cr_assert_eq(rdma_migrate_id(l, other), 0);
	cr_assert_eq(rdma_listen(l, 3), 0);
	cr_assert_eq(fake.listens, 1);
	for (int i = 0; i < 2; i++) {
		struct rdma_cm_event *ev = fake_next(other, RDMA_CM_EVENT_CONNECT_REQUEST);

		of[i] = ev->id;
		cr_assert_eq(ev->listen_id, l);
		cr_assert_eq(ev->id->channel, other);
		cr_assert_eq(rdma_ack_cm_event(ev), 0);
		cr_assert_eq(rdma_reject(of[i], NULL, 0), 0);
		cr_assert_eq(fake.request, 50 + (uint32_t)i, "the first comes first");
		fake_destroy(of[i], NULL);
	}
	cr_assert_not(fake_readable(other));
	fake_request(SAKER_IWARP, 52);
	cr_assert(fake_readable(other));
	fake_destroy(l, other);
	rdma_destroy_event_channel(ch);
}

Test(cm_listen, a_request_that_waits_moves_with_its_listener)
{
	struct rdma_event_channel *ch, *other = rdma_create_event_channel();
	struct rdma_cm_id *l = fake_passive(&ch, "0.0.0.0"), *id;
	struct rdma_cm_event *ev;

	fake_request(SAKER_IWARP, 50);
	cr_assert_eq(rdma_migrate_id(l, other), 0);
	cr_assert_not(fake_readable(ch));
	rdma_destroy_event_channel(ch);
	ev = fake_next(other, RDMA_CM_EVENT_CONNECT_REQUEST);
	id = ev->id;
	cr_assert_eq(ev->listen_id, l);
	cr_assert_eq(id->channel, other);
	cr_assert_eq(rdma_ack_cm_event(ev), 0);
	fake_destroy(id, NULL);
	fake_destroy(l, other);
}

Test(cm_listen, the_events_of_a_request_that_waits_move_behind_it)
{
	struct rdma_event_channel *ch, *other = rdma_create_event_channel();
	struct saker_event gone = {.type = SAKER_EV_ENGINE_GONE, .status = -EPIPE};
	struct rdma_cm_id *l = fake_passive(&ch, "0.0.0.0"), *of[2];

	fake_request(SAKER_IWARP, 50);
	fake_request(SAKER_IWARP, 51);
	fake_event(&gone);
	cr_assert_eq(rdma_migrate_id(l, other), 0);
	cr_assert_not(fake_readable(ch));
	rdma_destroy_event_channel(ch);
	for (int i = 0; i < 2; i++) {
		struct rdma_cm_event *ev = fake_next(other, RDMA_CM_EVENT_CONNECT_REQUEST);

		of[i] = ev->id;
		cr_assert_eq(rdma_ack_cm_event(ev), 0);
	}
	for (int i = 0; i < 2; i++) {
		cr_assert(fake_readable(other));
		fake_expect(other, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	}
	cr_assert_not(fake_readable(other));
	fake_destroy(of[0], NULL);
	fake_destroy(of[1], NULL);
	fake_destroy(l, other);
}

/* Its end, with that of the listener, looks for its events on its channel. */
Test(cm_listen, a_request_that_waits_for_listening_moves_with_its_listener)
{
	struct rdma_event_channel *ch, *other = rdma_create_event_channel();
	struct saker_event gone = {.type = SAKER_EV_ENGINE_GONE, .status = -EPIPE};
	struct rdma_cm_id *l = bound(&ch, "0.0.0.0");

	fake_request(SAKER_IWARP, 50);
	fake_event(&gone);
	cr_assert_eq(rdma_migrate_id(l, other), 0);
	cr_assert_not(fake_readable(ch));
	cr_assert(fake_readable(other));
	rdma_destroy_event_channel(ch);
	fake_destroy(l, other);
}

Test(cm_listen, a_listener_accepts_with_its_traffic_class_or_that_of_the_request)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {8, 8, 1, 1, 0}};
	struct rdma_event_channel *ch;
	struct rdma_cm_id *l = bound(&ch, "0.0.0.0");

	cr_assert_eq(fake.listen_param.traffic.set, 0);
	fake_set_tos(l, 96);
	cr_assert_eq(rdma_listen(l, 3), 0);
	cr_assert_eq(fake.listens, 2, "what it listened with before has ended");
	cr_assert_eq(fake.unlistens, 1);
	cr_assert_eq(fake.listen_param.traffic.set, SAKER_CLASS_TRAFFIC);
	cr_assert_eq(fake.listen_param.traffic.traffic_class, 96);
	for (uint32_t i = 0; i < 2; i++) {
		struct rdma_cm_event *ev;
		struct rdma_cm_id *id;

		fake_request(SAKER_IWARP, 50 + i);
		ev = fake_next(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
		id = ev->id;
		cr_assert_eq(rdma_ack_cm_event(ev), 0);
		if (i == 1)
			fake_set_tos(id, 32);
		cr_assert_eq(rdma_create_qp(id, NULL, &init), 0);
		cr_assert_eq(rdma_accept(id, NULL), 0);
		cr_assert_eq(fake.param.traffic.set, SAKER_CLASS_TRAFFIC);
		cr_assert_eq(fake.param.traffic.traffic_class, i == 0 ? 96 : 32);
		fake_destroy(id, NULL);
	}
	fake_destroy(l, ch);
}

Test(cm_listen, no_more_requests_wait_than_the_backlog)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *l = fake_passive(&ch, "0.0.0.0"); /* backlog 5 */

	for (uint32_t i = 0; i < 7; i++)
		fake_request(SAKER_IWARP, 70 + i);
	cr_assert_eq(fake.rejects, 2);
	for (int i = 0; i < 5; i++) {
		struct rdma_cm_event *ev = fake_next(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
		struct rdma_cm_id *id = ev->id;

		cr_assert_eq(rdma_ack_cm_event(ev), 0);
		fake_destroy(id, NULL);
	}
	cr_assert_not(fake_readable(ch));
	fake_destroy(l, ch);
}

Test(cm_listen, an_id_that_connects_or_goes_refuses_requests_to_its_port)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id = bound(&ch, "192.0.2.1");

	fake_request(SAKER_IWARP, 60);
	cr_assert_eq(rdma_resolve_addr(id, NULL, fake_addr("192.0.2.9", 7471), 100), 0);
	cr_assert_eq(fake.unlistens, 1);
	cr_assert_eq(fake.rejects, 1);
	fake_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	cr_assert_not(fake_readable(ch));
	fake_destroy(id, ch);
	id = bound(&ch, "192.0.2.1");
	fake_request(SAKER_IWARP, 61);
	fake_destroy(id, ch);
	cr_assert_eq(fake.unlistens, 2);
	cr_assert_eq(fake.rejects, 2);
}

Test(cm_listen, an_id_that_shares_its_port_is_reachable_when_it_listens)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id;
	int one = 1;

	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &one, 4), 0);
	cr_assert_eq(rdma_bind_addr(id, fake_addr("0.0.0.0", 7471)), 0);
	cr_assert_eq(fake.listens, 0);
	cr_assert_eq(rdma_listen(id, 3), 0);
	cr_assert_eq(fake.listens, 1);
	cr_assert_eq(fake.backlog, 3);
	fake_destroy(id, ch);
}

Test(cm_listen, a_listener_at_an_address_takes_its_devices_requests_only)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *l = fake_passive(&ch, "192.0.2.1");

	cr_assert_not(fake.any_local);
	fake_request(SAKER_FALCON, 41);
	cr_assert_not(fake_readable(ch));
	cr_assert_eq(fake.rejects, 1);
	cr_assert_eq(fake.request, 41);
	fake_destroy(l, ch);
}

Test(cm_listen, a_listener_of_one_family_takes_no_other)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *l;
	int one = 1;

	/* The unspecified address of IPv6 accepts both families, unless the option AFONLY is
	 * set. */
	l = fake_passive(&ch, "::");
	fake_request(SAKER_IWARP, 1);
	cr_assert(fake_readable(ch));
	cr_assert_eq(fake.rejects, 0);
	fake_destroy(l, ch);
	cr_assert_eq(fake.rejects, 1);

	ch = rdma_create_event_channel();
	cr_assert_eq(rdma_create_id(ch, &l, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_set_option(l, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &one, 4), 0);
	cr_assert_eq(rdma_bind_addr(l, fake_addr("::", 7471)), 0);
	cr_assert_eq(rdma_listen(l, 0), 0);
	fake_request(SAKER_IWARP, 2);
	cr_assert_not(fake_readable(ch));
	cr_assert_eq(fake.rejects, 2);
	fake_destroy(l, ch);
}

Test(cm_listen, a_dual_stack_server_listens_at_one_port_of_each_family)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *v4, *v6, *both;
	int one = 1;

	cr_assert_eq(rdma_create_id(ch, &v4, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_bind_addr(v4, fake_addr("0.0.0.0", 7471)), 0);
	cr_assert_eq(rdma_listen(v4, 0), 0);
	cr_assert(fake.any_local && fake.v4_local, "IPv4 only");
	cr_assert_eq(rdma_create_id(ch, &both, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_bind_addr(both, fake_addr("::", 7471)), -1);
	cr_assert_eq(errno, EADDRINUSE);
	cr_assert_eq(rdma_create_id(ch, &v6, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_set_option(v6, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &one, 4), 0);
	cr_assert_eq(rdma_bind_addr(v6, fake_addr("::", 7471)), 0);
	cr_assert_eq(rdma_listen(v6, 0), 0);
	cr_assert_gt(fake.v6only, 0);
	cr_assert_eq(rdma_bind_addr(both, fake_addr("2001:db8::1", 7471)), -1);
	cr_assert_eq(errno, EADDRINUSE);
	fake_destroy(v4, NULL);
	fake_destroy(both, NULL);
	fake_destroy(v6, ch);
}

static struct rdma_cm_id *
requested(struct rdma_event_channel *ch, enum saker_transport transport)
{
	struct rdma_cm_event *got;
	struct rdma_cm_id *id;

	fake_request(transport, 40);
	got = fake_next(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	id = got->id;
	rdma_ack_cm_event(got);
	return id;
}

static void
with_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {8, 8, 1, 1, 0}};

	cr_assert_eq(rdma_create_qp(id, NULL, &init), 0);
}

Test(cm_listen, accepting_without_depths_grants_what_was_asked)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *l = fake_passive(&ch, "0.0.0.0"), *id = requested(ch, SAKER_IWARP);

	with_qp(id);
	cr_assert_eq(rdma_accept(id, NULL), 0);
	cr_assert_eq(fake.accepts, 1);
	cr_assert_eq(fake.request, 40);
	cr_assert_eq(fake.param.ird, 7);
	cr_assert_eq(fake.param.ord, 9);
	/* The program may post at once. */
	cr_assert_eq(id->qp->state, IBV_QPS_RTS);
	cr_assert_not(fake_readable(ch));
	fake_qp_event(id->qp, SAKER_EV_ESTABLISHED, 0);
	fake_expect(ch, RDMA_CM_EVENT_ESTABLISHED, 0);
	cr_assert_eq(rdma_notify(id, IBV_EVENT_COMM_EST), 0);
	cr_assert_eq(rdma_accept(id, NULL), -1);
	fake_destroy(id, NULL);
	fake_destroy(l, ch);
}

Test(cm_listen, an_acceptance_that_comes_to_nothing_is_a_connect_error)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *l = fake_passive(&ch, "0.0.0.0"), *id = requested(ch, SAKER_IWARP);

	with_qp(id);
	cr_assert_eq(rdma_accept(id, NULL), 0);
	fake_qp_event(id->qp, SAKER_EV_DISCONNECTED, 0);
	fake_expect(ch, RDMA_CM_EVENT_CONNECT_ERROR, -ECONNRESET);
	fake_destroy(id, NULL);
	/* The peer has gone before the program accepts. */
	id = requested(ch, SAKER_IWARP);
	with_qp(id);
	fake.answer = -ECONNRESET;
	cr_assert_eq(rdma_accept(id, NULL), -1);
	cr_assert_eq(errno, ECONNRESET);
	fake_destroy(id, NULL);
	fake_destroy(l, ch);
}

Test(cm_listen, a_rejection_carries_private_data)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *l = fake_passive(&ch, "0.0.0.0"), *id = requested(ch, SAKER_IWARP);

	cr_assert_eq(rdma_reject(id, "no", 2), 0);
	cr_assert_eq(fake.rejects, 1);
	cr_assert_eq(fake.param.private_len, 2);
	cr_assert_arr_eq(fake.private_data, "no", 2);
	cr_assert_eq(rdma_reject(id, NULL, 0), -1);
	fake_destroy(id, NULL);
	cr_assert_eq(fake.rejects, 1);
	fake_destroy(l, ch);
}

Test(cm_listen, a_listener_that_goes_refuses_requests_that_were_not_taken)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *l = fake_passive(&ch, "0.0.0.0");

	fake_request(SAKER_IWARP, 50);
	fake_request(SAKER_IWARP, 51);
	fake_destroy(l, NULL);
	cr_assert_eq(fake.rejects, 2);
	cr_assert_not(fake_readable(ch));
	rdma_destroy_event_channel(ch);
}

Test(cm_listen, a_port_of_our_choice_moves_on_when_it_is_taken)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	fake.ports_in_use = 2;
	cr_assert_eq(rdma_listen(id, 0), 0);
	cr_assert_eq(fake.listens, 3);
	cr_assert_eq(fake.port, ntohs(rdma_get_src_port(id)));
	fake_destroy(id, NULL);
	/* A port that the program chose does not change. */
	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	fake.ports_in_use = 1;
	cr_assert_eq(rdma_bind_addr(id, fake_addr("0.0.0.0", 900)), -1);
	cr_assert_eq(errno, EADDRINUSE);
	cr_assert_eq(rdma_bind_addr(id, fake_addr("0.0.0.0", 901)), 0, "the id is unbound");
	cr_assert_eq(fake.port, 901);
	fake_destroy(id, ch);
}
