/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flat_exchange [EAL options] -- [one] [split] [v6] [vlan] [jumbo] [quick]: the exchange between
 * two flat clients (one region with a mailbox and no descriptors, as in a virtual machine). Each
 * client runs on its own lcore and polls the loops assigned to that lcore while it waits.
 *
 *	one	both are clients of one engine and connect over its loop port
 *	split	transport and engine stages run on different lcores
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include "../../lib/wire/wire.h"
#include "exchange_saker.h"
#include "rig.h"

#define PORT 7600

static struct rig rig;
static bool quick;
static unsigned listening, done;

/* The other client may still need the loops of this thread. */
static void
serve_until(struct rig_hand *hand, const unsigned *what, unsigned value)
{
	while (__atomic_load_n(what, __ATOMIC_ACQUIRE) < value) {
		rig_turn(hand);
		sched_yield();
	}
}

static int
client(int i, struct ex_saker *b)
{
	struct rig_hand *hand = &rig.hand[i];
	char text[SK_ADDR_STRLEN];

	if (rig_attach(&rig, i, hand))
		return -1;
	b->p.s = rig.end[i].s;
	if (peer_setup(&b->p, EX_BUF_LEN))
		return -1;
	exchange_saker_init(b);
	if (i == 0) {
		serve_until(hand, &listening, 1);
		return exchange_saker(b, sk_addr_str(&rig.end[1].addr, text), PORT, quick);
	}
	if (peer_listen(&b->p, PORT))
		return -1;
	__atomic_store_n(&listening, 1, __ATOMIC_RELEASE);
	return exchange_saker(b, NULL, PORT, quick);
}

/* Runs one client from attachment to detachment. */
static int
side(void *arg)
{
	int i = arg != NULL;
	static struct ex_saker both[2];

	if (client(i, &both[i]) || rig_detach(&rig, i)) {
		printf("FAIL\n");
		fflush(stdout);
		_exit(1); /* the other side would wait for ever */
	}
	__atomic_fetch_add(&done, 1, __ATOMIC_ACQ_REL);
	serve_until(&rig.hand[i], &done, 2);
	return 0;
}

static bool
has(int argc, char **argv, const char *word)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], word) == 0)
			return true;
	return false;
}

int
main(int argc, char **argv)
{
	int n = rte_eal_init(argc, argv);
	struct rig_options o = {.mem_len = EX_BUF_LEN + (1 << 20), .ring_len = 8 << 20};

	if (n < 0 || rte_lcore_count() < 2) {
		printf("flat_exchange needs two lcores\n");
		return 2;
	}
	argc -= n;
	argv += n;
	o.one = has(argc, argv, "one");
	o.split = has(argc, argv, "split");
	o.v6 = has(argc, argv, "v6");
	o.vlan = has(argc, argv, "vlan") ? 42 : ETH_NO_VLAN;
	o.mtu = has(argc, argv, "jumbo") ? 9000 : 1500;
	quick = has(argc, argv, "quick");
	if (rig_open(&rig, &o))
		return 1;
	rte_eal_remote_launch(side, &rig, rte_get_next_lcore(-1, 1, 0));
	side(NULL);
	rte_eal_mp_wait_lcore();
	rig.stop = true; /* no other thread polls any more */
	n = rig_all_home(&rig);
	rig_close(&rig);
	rte_eal_cleanup();
	printf("%s\n", n ? "FAIL" : "PASS");
	return n != 0;
}
