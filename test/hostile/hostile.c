/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostile ATTACK WHERE [NUMBER [ADDR PORT]]: one hostile client. WHERE is the path of saker's
 * socket, or "bar:PATH:SLOT" for a program of a virtual machine. ADDR is an address of saker's.
 *
 * hostile share WHERE-A ADDR-A QPS-A WHERE-B ADDR-B QPS-B PORT MS: two clients within their rights.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hostile.h"

volatile bool hostile_stop;

static const struct attack {
	const char *name;
	int (*run)(struct hostile *h);
	bool alone; /* attaches its clients itself */
} attacks[] = {
	{"owed", attack_owed, false},
	{"hog-qps", attack_hog_qps, false},
	{"hog-cqs", attack_hog_cqs, false},
	{"hog-pds", attack_hog_pds, false},
	{"hog-listeners", attack_hog_listeners, false},
	{"hog-clients", attack_hog_clients, true},
	{"deep-cqs", attack_deep_cqs, false},
	{"deep-qps", attack_deep_qps, false},
	{"qp-open", attack_qp_open, false},
	{"rhythm", attack_rhythm, false},
	{"mailbox-valid", attack_mailbox_valid, false},
	{"mailbox-invalid", attack_mailbox_invalid, false},
	{"doorbell-valid", attack_doorbell_valid, false},
	{"doorbell-invalid", attack_doorbell_invalid, false},
	{"doorbell-empty", attack_doorbell_empty, false},
	{"punch", attack_punch, false},
	{"regions", attack_regions, false},
	{"regions-refused", attack_regions_refused, false},
	{"busy", attack_busy, false},
	{"accept", attack_accept, false},
	{"send", attack_send, false},
	{"chaos", attack_chaos, true},
	{"churn", attack_churn, true},
};

static void
on_term(int sig)
{
	hostile_stop = sig != 0;
}

void
hostile_ready(const char *what, uint64_t n)
{
	printf("ready: %llu %s\n", (unsigned long long)n, what);
	fflush(stdout);
}

void
hostile_rest(struct hostile *h, unsigned us)
{
	if (h->attached)
		raw_beat(&h->c);
	raw_nap(us);
}

int
hostile_sleep(struct hostile *h)
{
	while (!hostile_stop)
		hostile_rest(h, SHM_BAR_BEAT_MS * 500);
	return 0;
}

int
hostile_self(struct hostile *h, const struct raw_qp *a, const struct raw_qp *b)
{
	struct raw_link l = {&h->c, &h->c, a, b, h->addr, h->port, NULL};
	int rc = raw_join(&l, 20000000000ull);

	if (rc < 0)
		fprintf(stderr, "no connection: %s (%d)\n", l.why, rc);
	return rc;
}

static int
attack(const struct attack *a, struct hostile *h)
{
	int rc = 0;

	if (!a->alone) {
		rc = raw_attach(&h->c, h->where, false);
		h->attached = rc == 0;
	}
	if (rc == 0)
		rc = a->run(h);
	printf("%s: %llu done, %llu refused, status %d\n", a->name, (unsigned long long)h->done,
		(unsigned long long)h->refused, rc);
	if (h->attached)
		raw_detach(&h->c);
	return rc != 0;
}

int
main(int argc, char **argv)
{
	const struct sigaction sa = {.sa_handler = on_term};
	static struct hostile h;

	setvbuf(stdout, NULL, _IOLBF, 0);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	if (argc == 10 && strcmp(argv[1], "share") == 0)
		return share_main(argc, argv);
	for (size_t i = 0; argc >= 3 && i < sizeof(attacks) / sizeof(attacks[0]); i++) {
		if (strcmp(argv[1], attacks[i].name) != 0)
			continue;
		h.where = argv[2];
		h.number = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 0) : 0;
		h.addr = argc > 4 ? argv[4] : NULL;
		h.port = (uint16_t)(argc > 5 ? atoi(argv[5]) : 7900);
		return attack(&attacks[i], &h);
	}
	fprintf(stderr,
		"usage: hostile ATTACK WHERE [NUMBER [ADDR PORT]]\n"
		"       hostile share WHERE-A ADDR-A QPS-A WHERE-B ADDR-B QPS-B PORT MS\nattacks:");
	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
		fprintf(stderr, " %s", attacks[i].name);
	fprintf(stderr, "\n");
	return 2;
}
