/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids, listeners and devices of librdmacm when the saker goes and another one takes its place. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cm_fake.h"

static int stop;

static void
restart_setup(void)
{
	fake_reset();
	stop = eventfd(0, EFD_CLOEXEC);
}

static void
restart_teardown(void)
{
	close(stop);
}

TestSuite(cm_restart, .init = restart_setup, .fini = restart_teardown, .timeout = 60);

/* Destroys everything that the test has, and one id more, which lets the library close what it no
 * longer needs: what is left are the devices of the present saker. */
static void
nothing_old_is_left(void)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id = fake_active(&ch);

	fake_destroy(id, ch);
	cr_assert_leq(fake.contexts, 2);
	cr_assert_eq(fake.pds, fake.contexts);
	cr_assert_eq(fake_holds(), (unsigned)fake.contexts);
}

Test(cm_restart, a_listener_of_no_device_listens_at_the_next_saker)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *wild = fake_passive(&ch, "0.0.0.0");
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;
	unsigned before = fake.listens;

	fake.looks_fail = 2; /* the next saker takes its time */
	fake_restart(stop);
	cr_assert_eq(fake.looks, 3);
	cr_assert_eq(fake.listens, before + 1);
	cr_assert_eq(fake.unlistens, 1);
	cr_assert_eq(fake.backlog, 5);
	cr_assert_eq(fake.port, 7471);
	cr_assert_not(fake_readable(ch), "the program need not know");
	fake_request(SAKER_IWARP, 77);
	ev = fake_next(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	id = ev->id;
	rdma_ack_cm_event(ev);
	cr_assert_eq(rdma_reject(id, NULL, 0), 0);
	fake_destroy(id, NULL);
	fake_destroy(wild, ch);
	nothing_old_is_left();
}

Test(cm_restart, a_listener_that_could_not_be_bound_to_a_device_before_is_of_none)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	unsigned before = fake.listens;
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	fake.ports_in_use = 1;
	cr_assert_eq(rdma_bind_addr(id, fake_addr("192.0.2.1", 7471)), -1);
	cr_assert_eq(rdma_bind_addr(id, fake_addr("0.0.0.0", 7472)), 0);
	cr_assert_eq(rdma_listen(id, 5), 0);
	fake_restart(stop);
	cr_assert_not(fake_readable(ch));
	cr_assert_eq(fake.listens, before + 3);
	cr_assert_eq(fake.port, 7472);
	fake_destroy(id, ch);
	nothing_old_is_left();
}

Test(cm_restart, a_listener_that_the_next_saker_refuses_is_removed)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *wild = fake_passive(&ch, "0.0.0.0");

	fake.ports_in_use = 1;
	fake_restart(stop);
	fake_expect(ch, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	cr_assert_not(fake_readable(ch));
	fake_destroy(wild, ch);
	nothing_old_is_left();
}

Test(cm_restart, a_listener_survives_a_saker_that_ends_at_once)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *wild = fake_passive(&ch, "0.0.0.0");
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;
	unsigned before = fake.listens;

	fake.listens_end = 1;
	fake_restart(stop);
	cr_assert_eq(fake.listens, before + 2);
	cr_assert_eq(fake.unlistens, 1);
	cr_assert_not(fake_readable(ch));
	fake_request(SAKER_IWARP, 77);
	ev = fake_next(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	id = ev->id;
	rdma_ack_cm_event(ev);
	fake_destroy(id, NULL);
	fake_destroy(wild, ch);
	nothing_old_is_left();
}

Test(cm_restart, the_end_of_the_process_ends_the_wait_for_the_next_saker)
{
	const uint64_t one = 1;
	struct rdma_event_channel *ch;
	struct rdma_cm_id *wild = fake_passive(&ch, "0.0.0.0");
	unsigned before = fake.listens;

	fake.looks_fail = 1;
	cr_assert_eq(write(stop, &one, sizeof(one)), sizeof(one));
	fake_restart(stop);
	cr_assert_eq(fake.looks, 1);
	cr_assert_eq(fake.listens, before);
	fake_destroy(wild, ch);
	nothing_old_is_left();
}

Test(cm_restart, without_such_a_listener_no_call_waits_for_the_next_saker)
{
	struct rdma_event_channel *ch, *ch2;
	struct rdma_cm_id *bound = fake_passive(&ch, "192.0.2.1"), *id = fake_active(&ch2);

	fake_restart(stop);
	cr_assert_eq(fake.looks, 0);
	fake_expect(ch, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	fake_expect(ch2, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	fake_destroy(bound, ch);
	fake_destroy(id, ch2);
	nothing_old_is_left();
}

static void *
id_end(void *id)
{
	rdma_destroy_id(id);
	return NULL;
}

/* The program need not fetch the event, and rdma_destroy_id() would wait for its
 * acknowledgement. */
Test(cm_restart, an_id_that_is_being_destroyed_has_no_event_of_the_removal)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;
	pthread_t t;

	cr_assert_eq(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_resolve_addr(id, NULL, fake_addr("192.0.2.9", 1), 100), 0);
	ev = fake_next(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_assert_eq(rdma_resolve_route(id, 100), 0);
	cr_assert_eq(pthread_create(&t, NULL, id_end, id), 0);
	while (fake_readable(ch)) /* the call drops the event ROUTE_RESOLVED */
		usleep(1000);
	fake_restart(stop);
	cr_assert_not(fake_readable(ch));
	rdma_ack_cm_event(ev);
	pthread_join(t, NULL);
	rdma_destroy_event_channel(ch);
	nothing_old_is_left();
}

Test(cm_restart, new_ids_use_the_next_saker_beside_old_ones)
{
	struct rdma_event_channel *ch, *ch2, *ch3;
	struct rdma_cm_id *old = fake_active(&ch), *id, *bound;

	fake_restart(stop);
	fake_expect(ch, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	id = fake_active(&ch2);
	cr_assert_neq(id->verbs, old->verbs);
	cr_assert_neq(vb_context(id->verbs)->saker, vb_context(old->verbs)->saker);
	cr_assert_eq(vb_context(id->verbs)->at->running, true);
	cr_assert_eq(rdma_connect(id, NULL), 0);
	fake_qp_event(id->qp, SAKER_EV_ESTABLISHED, 0);
	fake_expect(ch2, RDMA_CM_EVENT_ESTABLISHED, 0);
	cr_assert_eq(rdma_connect(old, NULL), -1);
	cr_assert_eq(errno, ENODEV);
	/* The port of an id that was removed is free as soon as the id is destroyed. */
	fake_destroy(old, ch);
	bound = fake_passive(&ch3, "192.0.2.1");
	fake_destroy(bound, ch3);
	fake_destroy(id, ch2);
	nothing_old_is_left();
}

Test(cm_restart, a_device_stays_open_while_its_objects_exist)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id = fake_active(&ch);
	struct ibv_pd *pd = ibv_alloc_pd(id->verbs);
	struct ibv_context *old = id->verbs;

	fake_restart(stop);
	fake_expect(ch, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	/* Programs may destroy the id before the objects. */
	fake_destroy(id, ch);
	cr_assert_eq(pd->context, old);
	cr_assert_eq(vb_context(old)->saker, vb_context(pd->context)->saker);
	cr_assert_eq(ibv_dealloc_pd(pd), 0);
	nothing_old_is_left();
}

Test(cm_restart, a_device_that_a_program_has_listed_stays_open)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct ibv_context **list = rdma_get_devices(NULL), *first;
	int contexts = fake.contexts;

	cr_assert_not_null(list);
	first = list[0];
	rdma_free_devices(list);
	fake_restart(stop);
	list = rdma_get_devices(NULL);
	cr_assert_not_null(list);
	cr_assert_neq(list[0], first);
	rdma_free_devices(list);
	cr_assert_eq(fake.contexts, 2 * contexts);
	cr_assert_eq(vb_context(first)->kind, &vb_kinds[vb_kind_listed(0)]);
	rdma_destroy_event_channel(ch);
}
