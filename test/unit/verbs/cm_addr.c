/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses, ports and names: rdma_bind_addr(3), rdma_resolve_addr(3), rdma_getaddrinfo(3). */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netdb.h>
#include <stdlib.h>

#include "cm_fake.h"

TestSuite(cm_addr, .init = fake_reset);

static struct rdma_event_channel *ch;

static struct rdma_cm_id *
new_id(enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	if (ch == NULL)
		ch = rdma_create_event_channel();
	cr_assert_eq(rdma_create_id(ch, &id, NULL, ps), 0);
	return id;
}

static const char *
text_of(struct sockaddr *sa)
{
	static char text[64];
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	if (sa->sa_family == AF_INET) {
		memcpy(&in, sa, sizeof(in));
		inet_ntop(AF_INET, &in.sin_addr, text, sizeof(text));
	} else {
		memcpy(&in6, sa, sizeof(in6));
		inet_ntop(AF_INET6, &in6.sin6_addr, text, sizeof(text));
	}
	return text;
}

Test(cm_addr, the_source_is_the_address_that_is_nearest)
{
	static const char *const rows[][2] = {
		{"192.0.2.77", "192.0.2.1"},
		{"198.51.100.77", "198.51.100.1"},
		{"2001:db8::77", "2001:db8::1"},
		{"fe80::77", "fe80::1"},
		/* A loopback address means this machine: the address of the saker itself. */
		{"127.0.0.1", "192.0.2.1"},
		{"::1", "2001:db8::1"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rdma_cm_id *id = new_id(RDMA_PS_TCP);

		cr_assert_eq(rdma_resolve_addr(id, NULL, fake_addr(rows[i][0], 9), 100), 0);
		fake_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		cr_assert_str_eq(text_of(rdma_get_local_addr(id)), rows[i][1], "to %s", rows[i][0]);
		cr_assert_eq(ntohs(rdma_get_dst_port(id)), 9);
		cr_assert_neq(rdma_get_src_port(id), 0);
		cr_assert_not_null(id->verbs);
		cr_assert_eq(id->pd->context, id->verbs);
		cr_assert_eq(id->port_num, 1);
		fake_destroy(id, NULL);
	}
}

Test(cm_addr, the_scope_chooses_the_link_local_address)
{
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);
	struct sockaddr_in6 to;

	memcpy(&to, fake_addr("fe80::77", 9), sizeof(to));
	to.sin6_scope_id = 2;
	cr_assert_eq(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 100), 0);
	fake_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	cr_assert_str_eq(text_of(rdma_get_local_addr(id)), "fe80::2");
	cr_assert_eq(id->route.addr.dst_sin6.sin6_scope_id, 2);
	fake_destroy(id, NULL);
}

Test(cm_addr, an_address_without_a_source_is_an_addr_error)
{
	struct rdma_cm_id *id = new_id(RDMA_PS_UDP);

	fake.no_falcon = true;
	cr_assert_eq(rdma_resolve_addr(id, NULL, fake_addr("192.0.2.9", 9), 100), 0);
	fake_expect(ch, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
	/* The program may call it again. */
	fake.no_falcon = false;
	cr_assert_eq(rdma_resolve_addr(id, NULL, fake_addr("192.0.2.9", 9), 100), 0);
	fake_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	fake_destroy(id, NULL);
}

Test(cm_addr, only_the_sakers_addresses_can_be_bound)
{
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);

	cr_assert_eq(rdma_bind_addr(id, fake_addr("192.0.2.2", 5)), -1);
	cr_assert_eq(errno, EADDRNOTAVAIL);
	cr_assert_null(id->verbs);
	cr_assert_eq(rdma_bind_addr(id, fake_addr("192.0.2.1", 5)), 0);
	cr_assert_not_null(id->verbs);
	cr_assert_eq(ntohs(rdma_get_src_port(id)), 5);
	cr_assert_eq(rdma_bind_addr(id, fake_addr("192.0.2.1", 6)), -1);
	cr_assert_eq(errno, EINVAL);
	fake_destroy(id, NULL);
}

Test(cm_addr, a_saker_that_ends_within_a_call_is_looked_for_once)
{
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);

	fake.lookups_find = 1;
	cr_assert_eq(rdma_bind_addr(id, fake_addr("192.0.2.1", 5)), 0);
	fake_destroy(id, NULL);
	fake.lookups = 0;
	id = new_id(RDMA_PS_TCP);
	cr_assert_eq(
		rdma_resolve_addr(id, fake_addr("192.0.2.1", 5), fake_addr("192.0.2.9", 9), 100),
		0);
	fake_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	fake_destroy(id, NULL);
	id = new_id(RDMA_PS_TCP);
	cr_assert_eq(rdma_bind_addr(id, fake_addr("192.0.2.1", 5)), -1);
	cr_assert_eq(errno, ECONNREFUSED);
	fake_destroy(id, NULL);
}

Test(cm_addr, a_wildcard_is_of_no_device)
{
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);

	cr_assert_eq(rdma_bind_addr(id, fake_addr("0.0.0.0", 5)), 0);
	cr_assert_null(id->verbs);
	fake_destroy(id, NULL);
}

static void
is_unbound(const struct rdma_cm_id *id)
{
	cr_assert_null(id->verbs);
	cr_assert_null(id->pd);
	cr_assert_eq(id->port_num, 0);
	cr_assert_eq(id->route.addr.src_addr.sa_family, 0);
}

/* An id that a failed bind leaves at a device accepts no requests of the other one. */
Test(cm_addr, an_id_that_could_not_be_bound_is_of_no_device)
{
	struct rdma_cm_id *other = new_id(RDMA_PS_TCP), *id = new_id(RDMA_PS_TCP);
	struct rdma_cm_event *ev;

	cr_assert_eq(rdma_bind_addr(other, fake_addr("192.0.2.1", 700)), 0);
	/* Another id of this process has the port, and then another process. */
	cr_assert_eq(rdma_bind_addr(id, fake_addr("192.0.2.1", 700)), -1);
	cr_assert_eq(errno, EADDRINUSE);
	is_unbound(id);
	fake.ports_in_use = 1;
	cr_assert_eq(rdma_bind_addr(id, fake_addr("192.0.2.1", 7471)), -1);
	cr_assert_eq(errno, EADDRINUSE);
	is_unbound(id);
	cr_assert_eq(rdma_bind_addr(id, fake_addr("0.0.0.0", 7471)), 0);
	cr_assert_eq(rdma_listen(id, 5), 0);
	fake_request(SAKER_FALCON, 1);
	ev = fake_next(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	fake_destroy(ev->id, NULL);
	rdma_ack_cm_event(ev);
	fake_destroy(id, NULL);
	fake_destroy(other, NULL);
}

Test(cm_addr, an_id_that_could_not_be_resolved_is_as_before)
{
	struct rdma_cm_id *bound = new_id(RDMA_PS_TCP), *id = new_id(RDMA_PS_TCP);
	struct ibv_context *verbs;

	/* The source can be bound, and is of another family than the destination. */
	cr_assert_eq(rdma_resolve_addr(
			     id, fake_addr("2001:db8::1", 700), fake_addr("192.0.2.9", 9), 100),
		-1);
	cr_assert_eq(errno, EINVAL);
	is_unbound(id);
	cr_assert_eq(rdma_bind_addr(bound, fake_addr("2001:db8::1", 700)), 0, "it is free again");
	verbs = bound->verbs;
	cr_assert_eq(rdma_resolve_addr(bound, NULL, fake_addr("192.0.2.9", 9), 100), -1);
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(bound->verbs, verbs);
	cr_assert_eq(ntohs(rdma_get_src_port(bound)), 700);
	cr_assert_eq(rdma_listen(bound, 5), 0);
	fake_destroy(id, NULL);
	fake_destroy(bound, NULL);
}

Test(cm_addr, a_port_is_held_once_in_each_port_space)
{
	struct rdma_cm_id *a = new_id(RDMA_PS_TCP), *b = new_id(RDMA_PS_TCP);
	struct rdma_cm_id *c = new_id(RDMA_PS_UDP);

	cr_assert_eq(rdma_bind_addr(a, fake_addr("0.0.0.0", 700)), 0);
	cr_assert_eq(rdma_bind_addr(b, fake_addr("192.0.2.1", 700)), -1);
	cr_assert_eq(errno, EADDRINUSE);
	cr_assert_eq(rdma_bind_addr(c, fake_addr("0.0.0.0", 700)), 0);
	fake_destroy(a, NULL);
	cr_assert_eq(rdma_bind_addr(b, fake_addr("192.0.2.1", 700)), 0);
	fake_destroy(b, NULL);
	fake_destroy(c, NULL);
}

Test(cm_addr, two_addresses_may_have_the_same_port)
{
	struct rdma_cm_id *a = new_id(RDMA_PS_TCP), *b = new_id(RDMA_PS_TCP);

	cr_assert_eq(rdma_bind_addr(a, fake_addr("198.51.100.1", 700)), 0);
	cr_assert_eq(rdma_bind_addr(b, fake_addr("192.0.2.1", 700)), 0);
	fake_destroy(a, NULL);
	fake_destroy(b, NULL);
}

Test(cm_addr, reuseaddr_shares_a_port_between_sockets_that_request_it)
{
	struct rdma_cm_id *a = new_id(RDMA_PS_TCP), *b = new_id(RDMA_PS_TCP);
	int one = 1;

	cr_assert_eq(rdma_set_option(a, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &one, 4), 0);
	cr_assert_eq(rdma_bind_addr(a, fake_addr("0.0.0.0", 700)), 0);
	cr_assert_eq(rdma_bind_addr(b, fake_addr("0.0.0.0", 700)), -1);
	cr_assert_eq(rdma_set_option(b, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &one, 4), 0);
	cr_assert_eq(rdma_bind_addr(b, fake_addr("0.0.0.0", 700)), 0);
	fake_destroy(a, NULL);
	fake_destroy(b, NULL);
}

Test(cm_addr, options_of_the_wrong_size_or_name_are_refused)
{
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);
	uint8_t tos = 8;

	cr_assert_eq(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1), 0);
	cr_assert_eq(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &tos, 1), 0);
	cr_assert_eq(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 4), -1);
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(rdma_set_option(id, RDMA_OPTION_ID, 99, &tos, 1), -1);
	cr_assert_eq(errno, ENOSYS);
	fake_destroy(id, NULL);
}

Test(cm_addr, other_families_and_port_spaces_are_refused)
{
	struct sockaddr sa = {.sa_family = AF_UNIX};
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP), *other;

	cr_assert_eq(rdma_bind_addr(id, &sa), -1);
	cr_assert_eq(errno, EAFNOSUPPORT);
	cr_assert_eq(rdma_resolve_addr(id, NULL, &sa, 1), -1);
	cr_assert_eq(errno, EAFNOSUPPORT);
	/* The source and the destination are of different families. */
	cr_assert_eq(
		rdma_resolve_addr(id, fake_addr("2001:db8::1", 0), fake_addr("192.0.2.9", 1), 1),
		-1);
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(rdma_create_id(ch, &other, NULL, RDMA_PS_IPOIB), -1);
	cr_assert_eq(errno, EOPNOTSUPP);
	fake_destroy(id, NULL);
}

Test(cm_addr, the_environment_chooses_the_device)
{
	struct rdma_cm_id *a, *b, *c;

	unsetenv("SAKER_DEVICE");
	a = new_id(RDMA_PS_TCP);
	cr_assert_eq(rdma_bind_addr(a, fake_addr("192.0.2.1", 0)), 0);
	cr_assert_not(fake_is_falcon(a->verbs));
	setenv("SAKER_DEVICE", "falcon", 1);
	b = new_id(RDMA_PS_TCP);
	cr_assert_eq(rdma_bind_addr(b, fake_addr("192.0.2.1", 0)), 0);
	cr_assert(fake_is_falcon(b->verbs));
	/* The UDP port space is bound to Falcon, whatever the variable names. */
	setenv("SAKER_DEVICE", "iwarp", 1);
	c = new_id(RDMA_PS_UDP);
	cr_assert_eq(rdma_bind_addr(c, fake_addr("192.0.2.1", 0)), 0);
	cr_assert(fake_is_falcon(c->verbs));
	fake_destroy(a, NULL);
	fake_destroy(b, NULL);
	fake_destroy(c, NULL);
}

Test(cm_addr, without_a_name_the_first_device_that_the_saker_has_is_chosen)
{
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);

	fake.no_iwarp = true;
	cr_assert_eq(rdma_bind_addr(id, fake_addr("192.0.2.1", 0)), 0);
	cr_assert(fake_is_falcon(id->verbs));
	fake_destroy(id, NULL);
	/* A device that the user names and the saker does not have is an error. */
	setenv("SAKER_DEVICE", "iwarp", 1);
	id = new_id(RDMA_PS_TCP);
	cr_assert_eq(rdma_bind_addr(id, fake_addr("192.0.2.1", 0)), -1);
	cr_assert_eq(errno, ENODEV);
	fake_destroy(id, NULL);
}

Test(cm_addr, both_devices_are_listed)
{
	int n;
	struct ibv_context **list = rdma_get_devices(&n);

	cr_assert_eq(n, 2);
	cr_assert_null(list[2]);
	cr_assert_not(fake_is_falcon(list[0]));
	cr_assert(fake_is_falcon(list[1]));
	rdma_free_devices(list);
}

Test(cm_addr, addrinfo_for_the_active_side)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *res;

	cr_assert_eq(rdma_getaddrinfo("192.0.2.9", "7471", &hints, &res), 0);
	cr_assert_eq(res->ai_family, AF_INET);
	cr_assert_eq(res->ai_qp_type, IBV_QPT_RC);
	cr_assert_eq(res->ai_port_space, RDMA_PS_TCP);
	cr_assert_eq(res->ai_dst_len, sizeof(struct sockaddr_in));
	cr_assert_str_eq(text_of(res->ai_dst_addr), "192.0.2.9");
	cr_assert_eq(res->ai_src_len, 0);
	cr_assert_null(res->ai_next);
	rdma_freeaddrinfo(res);
}

Test(cm_addr, addrinfo_for_the_passive_side)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE | RAI_FAMILY,
		.ai_family = AF_INET6,
		.ai_qp_type = IBV_QPT_UD};
	struct rdma_addrinfo *res;

	cr_assert_eq(rdma_getaddrinfo(NULL, "7471", &hints, &res), 0);
	cr_assert_eq(res->ai_family, AF_INET6);
	cr_assert_eq(res->ai_port_space, RDMA_PS_UDP);
	cr_assert_str_eq(text_of(res->ai_src_addr), "::");
	cr_assert_eq(res->ai_dst_len, 0);
	rdma_freeaddrinfo(res);
}

Test(cm_addr, addrinfo_takes_addresses_from_hints)
{
	struct rdma_addrinfo hints = {.ai_src_len = sizeof(struct sockaddr_in)}, *res;

	hints.ai_src_addr = fake_addr("192.0.2.1", 3);
	cr_assert_eq(rdma_getaddrinfo("192.0.2.9", "7471", &hints, &res), 0);
	cr_assert_str_eq(text_of(res->ai_src_addr), "192.0.2.1");
	cr_assert_neq(res->ai_src_addr, hints.ai_src_addr);
	rdma_freeaddrinfo(res);
}

Test(cm_addr, addrinfo_refuses_what_does_not_fit)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_UD};
	struct rdma_addrinfo *res;

	cr_assert_eq(rdma_getaddrinfo("192.0.2.9", NULL, &hints, &res), EAI_SOCKTYPE);
	hints = (struct rdma_addrinfo){.ai_flags = 1 << 20};
	cr_assert_eq(rdma_getaddrinfo("192.0.2.9", NULL, &hints, &res), EAI_BADFLAGS);
	hints = (struct rdma_addrinfo){.ai_flags = RAI_NUMERICHOST};
	cr_assert_eq(rdma_getaddrinfo("name.invalid", NULL, &hints, &res), EAI_NONAME);
	cr_assert_eq(rdma_getaddrinfo(NULL, NULL, NULL, &res), -1);
	cr_assert_eq(errno, EINVAL);
}
