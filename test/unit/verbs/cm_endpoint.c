/* SPDX-License-Identifier: BSD-3-Clause */
/* Synchronous ids: rdma_create_ep(3), rdma_get_request(3), rdma_create_id(3) without a channel; and
 * the queues that the library creates for an id: rdma_create_qp(3), rdma_create_srq(3). */
#include <criterion/criterion.h>

#include "cm_fake.h"

static void
established(struct saker_qp *qp)
{
	struct saker_event ev = {.type = SAKER_EV_ESTABLISHED, .qp = qp};

	/* The caller, saker_connect() or saker_accept(), is called with the events' lock held;
	 * fake_event() takes that lock. */
	vb_events_unlock();
	fake_event(&ev);
	vb_events_lock();
}

static void
rejected(struct saker_qp *qp)
{
	struct saker_event ev = {.type = SAKER_EV_REJECTED, .qp = qp};

	vb_events_unlock();
	fake_event(&ev);
	vb_events_lock();
}

TestSuite(cm_endpoint, .init = fake_reset);

static struct rdma_addrinfo *
info(const char *node, int flags)
{
	struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_TCP}, *res;

	cr_assert_eq(rdma_getaddrinfo(node, "7471", &hints, &res), 0);
	return res;
}

static struct rdma_cm_id *
client(void)
{
	struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 0}, .sq_sig_all = 1};
	struct rdma_addrinfo *res = info("192.0.2.9", 0);
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_ep(&id, res, NULL, &init), 0);
	rdma_freeaddrinfo(res);
	return id;
}

Test(cm_endpoint, an_active_endpoint_is_resolved_and_has_its_queues)
{
	struct rdma_cm_id *id = client();

	cr_assert_not_null(id->verbs);
	cr_assert_not_null(id->pd);
	cr_assert_not_null(id->qp);
	cr_assert_not_null(id->send_cq_channel);
	/* rdma_get_send_comp() checks the queue's context. */
	cr_assert_eq(id->send_cq->cq_context, id);
	cr_assert_eq(id->recv_cq->cq_context, id);
	cr_assert_eq(id->send_cq->channel, id->send_cq_channel);
	cr_assert_eq(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	cr_assert_eq(fake.cqs, 2);
	rdma_destroy_ep(id);
	cr_assert_eq(fake.cqs + fake.channels + fake.qps, 0);
}

Test(cm_endpoint, connecting_waits_for_the_outcome)
{
	struct rdma_cm_id *id = client();

	fake.at_once = established;
	cr_assert_eq(rdma_connect(id, NULL), 0);
	cr_assert_eq(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
	cr_assert_eq(id->qp->state, IBV_QPS_RTS);
	rdma_destroy_ep(id);
}

Test(cm_endpoint, a_refusal_is_econnrefused)
{
	struct rdma_cm_id *id = client();

	fake.at_once = rejected;
	cr_assert_eq(rdma_connect(id, NULL), -1);
	cr_assert_eq(errno, ECONNREFUSED);
	cr_assert_eq(id->event->event, RDMA_CM_EVENT_REJECTED);
	rdma_destroy_ep(id);
}

Test(cm_endpoint, a_peer_that_went_first_does_not_hold_up_disconnecting)
{
	struct rdma_cm_id *id = client();

	fake.at_once = established;
	cr_assert_eq(rdma_connect(id, NULL), 0);
	fake_qp_event(id->qp, SAKER_EV_DISCONNECTED, 0);
	cr_assert_eq(rdma_disconnect(id), 0);
	cr_assert_eq(id->event->event, RDMA_CM_EVENT_DISCONNECTED);
	/* A second call has no event to wait for. */
	cr_assert_eq(rdma_disconnect(id), 0);
	cr_assert_null(id->event);
	rdma_destroy_ep(id);
}

Test(cm_endpoint, a_request_comes_with_the_listeners_queues)
{
	struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 0}};
	struct rdma_addrinfo *res = info(NULL, RAI_PASSIVE);
	struct rdma_cm_id *l, *id;

	cr_assert_eq(rdma_create_ep(&l, res, NULL, &init), 0);
	rdma_freeaddrinfo(res);
	cr_assert_eq(fake.qps, 0);
	cr_assert_eq(rdma_get_request(l, &id), -1);
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(rdma_listen(l, 0), 0);
	fake_request(SAKER_FALCON, 40);
	cr_assert_eq(rdma_get_request(l, &id), 0);
	cr_assert_eq(id->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	cr_assert_eq(id->event->param.conn.private_data_len, 5);
	cr_assert_neq(id->channel, l->channel);
	cr_assert_not_null(id->qp);
	/* The program may destroy the listener while it holds the request. */
	rdma_destroy_ep(l);
	fake.at_once = established;
	cr_assert_eq(rdma_accept(id, NULL), 0);
	cr_assert_eq(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
	rdma_destroy_ep(id);
	cr_assert_eq(fake.cqs + fake.channels + fake.qps, 0);
}

Test(cm_endpoint, a_request_that_cannot_be_equipped_is_turned_down)
{
	struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 0}};
	struct rdma_addrinfo *res = info(NULL, RAI_PASSIVE);
	struct rdma_cm_id *l, *id;

	cr_assert_eq(rdma_create_ep(&l, res, NULL, &init), 0);
	rdma_freeaddrinfo(res);
	cr_assert_eq(rdma_listen(l, 0), 0);
	fake_request(SAKER_IWARP, 40);
	fake.answer = -ENOMEM;
	cr_assert_eq(rdma_get_request(l, &id), -1);
	cr_assert_eq(errno, ENOMEM);
	cr_assert_eq(fake.rejects, 1);
	fake.answer = 0;
	rdma_destroy_ep(l);
	cr_assert_eq(fake.cqs + fake.channels + fake.qps, 0);
}

Test(cm_endpoint, an_id_without_a_channel_resolves_synchronously)
{
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP), 0);
	fake.no_falcon = true;
	cr_assert_eq(rdma_resolve_addr(id, NULL, fake_addr("192.0.2.9", 1), 1), -1);
	cr_assert_eq(errno, ENODEV);
	cr_assert_eq(id->event->event, RDMA_CM_EVENT_ADDR_ERROR);
	rdma_destroy_id(id);
}

Test(cm_endpoint, migrating_makes_an_endpoint_asynchronous)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id = client();

	cr_assert_eq(rdma_migrate_id(id, ch), 0);
	cr_assert_null(id->event);
	/* The call does not wait, and the library raises no event by itself. */
	cr_assert_eq(rdma_connect(id, NULL), 0);
	cr_assert_not(fake_readable(ch));
	fake_qp_event(id->qp, SAKER_EV_ESTABLISHED, 0);
	fake_expect(ch, RDMA_CM_EVENT_ESTABLISHED, 0);
	rdma_destroy_ep(id);
	rdma_destroy_event_channel(ch);
}

Test(cm_endpoint, the_programs_own_queues_stay_its_own)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id = fake_active(&ch);
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);

	cr_assert_eq(rdma_create_qp(id, NULL, &init), -1);
	cr_assert_eq(errno, EINVAL);
	rdma_destroy_qp(id);
	init.send_cq = init.recv_cq = cq;
	cr_assert_eq(rdma_create_qp(id, NULL, &init), 0);
	cr_assert_null(id->send_cq);
	cr_assert_eq(id->qp->send_cq, cq);
	rdma_destroy_qp(id);
	cr_assert_eq(fake.cqs, 1);
	ibv_destroy_cq(cq);
	fake_destroy(id, ch);
}

Test(cm_endpoint, a_protection_domain_of_another_device_is_refused)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id = fake_active(&ch);
	struct ibv_context **list = rdma_get_devices(NULL);
	struct ibv_pd *pd = ibv_alloc_pd(list[1]);

	rdma_destroy_qp(id);
	cr_assert_eq(rdma_create_qp(id, pd, &init), -1);
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(fake.cqs + fake.qps, 0);
	rdma_free_devices(list);
	ibv_dealloc_pd(pd);
	fake_destroy(id, ch);
}

Test(cm_endpoint, an_srq_of_the_id_is_its_qps)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id = fake_active(&ch);

	cr_assert_eq(rdma_create_srq(id, NULL, &srq), 0);
	cr_assert_not_null(id->srq);
	cr_assert_eq(rdma_create_srq(id, NULL, &srq), -1);
	cr_assert_eq(errno, EINVAL);
	rdma_destroy_srq(id);
	cr_assert_null(id->srq);
	cr_assert_eq(fake.srqs, 0);
	fake_destroy(id, ch);
}
