/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests a switch: routes, the selection among paths of equal cost, time to live. */
#include <criterion/criterion.h>

#include "rig.h"

#define PORTS 5
#define HOSTS 4

static struct rig r[PORTS];
static struct sim_switch s;

/* Routes: host 0 to port 0, host 1 to any of 1..4, host 2 to port 3, host 3 none. All rigs use the
 * events of r[0]. */
static void
init(void)
{
	struct sim_link_params p = {.bps = 8000000000};

	for (unsigned i = 0; i < PORTS; i++)
		rig_init(&r[i]);
	sim_switch_init(&s, PORTS, HOSTS, &r[0].memory, 9);
	for (unsigned i = 0; i < PORTS; i++)
		sim_link_init(&s.ports[i], &p, &r[0].events, &r[0].memory, &r[i].node, 1, i);
	s.routes[0] = (struct sim_route){0, 1};
	s.routes[1] = (struct sim_route){1, 4};
	s.routes[2] = (struct sim_route){3, 1};
}

static void
fini(void)
{
	sim_switch_free(&s);
	for (unsigned i = 0; i < PORTS; i++) {
		sim_pool_free(&r[i].memory.packets);
		sim_events_free(&r[i].events);
	}
}

TestSuite(sw, .init = init, .fini = fini);

static void
send(uint32_t dst, uint32_t entropy, uint8_t ttl)
{
	struct sim_packet *p = rig_packet(&r[0], 0, 100);

	p->dst = dst;
	p->entropy = entropy;
	p->ttl = ttl;
	s.node.receive(&s.node, p, 0);
}

/* The packets come from the pool of r[0] and go back to it. */
static void
keep(struct sim_node *self, struct sim_packet *p, sim_time now)
{
	((struct rig *)self)->count++;
	cr_assert_eq(p->ttl, 63);
	sim_packet_free(&r[0].memory, p);
}

static void
settle(void)
{
	for (unsigned i = 0; i < PORTS; i++)
		r[i].node.receive = keep;
	rig_run(&r[0]);
	cr_assert_eq(r[0].memory.packets.alive, 0);
}

Test(sw, forwards_by_destination_and_counts_a_hop)
{
	send(0, 1, 64);
	send(2, 1, 64);
	send(2, 77, 64);
	settle();
	cr_assert_eq(r[0].count, 1);
	cr_assert_eq(r[3].count, 2);
	cr_assert_eq(r[1].count + r[2].count + r[4].count, 0);
}

Test(sw, a_flow_keeps_its_path)
{
	struct sim_packet p = {.dst = 1, .src = 7, .entropy = 123};
	int port = sim_switch_port(&s, &p);

	for (unsigned i = 0; i < 100; i++) {
		p.flow = i; /* the hash uses only hosts and entropy */
		p.payload = i;
		cr_assert_eq(sim_switch_port(&s, &p), port);
	}
}

Test(sw, entropy_spreads_over_equal_paths)
{
	unsigned n[PORTS] = {0};
	struct sim_packet p = {.dst = 1};

	for (p.entropy = 0; p.entropy < 4000; p.entropy++)
		n[sim_switch_port(&s, &p)]++;
	cr_assert_eq(n[0], 0);
	for (unsigned i = 1; i < PORTS; i++)
		cr_assert(n[i] > 850 && n[i] < 1150, "port %u: %u", i, n[i]);
}

Test(sw, switches_hash_differently)
{
	struct sim_switch other;
	struct sim_packet p = {.dst = 1};
	unsigned same = 0;

	sim_switch_init(&other, PORTS, HOSTS, &r[0].memory, 10);
	other.routes[1] = s.routes[1];
	for (p.entropy = 0; p.entropy < 1000; p.entropy++)
		same += sim_switch_port(&s, &p) == sim_switch_port(&other, &p);
	cr_assert(same > 150 && same < 350, "%u", same);
	sim_switch_free(&other);
}

Test(sw, counts_what_it_cannot_forward)
{
	send(3, 0, 64);
	send(99, 0, 64);
	send(0, 0, 1);
	send(0, 0, 0);
	settle();
	cr_assert_eq(s.no_route, 2);
	cr_assert_eq(s.expired, 2);
	cr_assert_eq(r[0].count, 0);
}
