/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the attacks, and what they share. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hostile.h"

volatile bool hostile_stop;
void (*hostile_on_ready)(const char *what, uint64_t n);

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
	{"wakes", attack_wakes, false},
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
	{"pulls-kept", attack_pulls_kept, false},
	{"pulls-excess", attack_pulls_excess, false},
	{"frames", attack_frames, true},
	{"chaos", attack_chaos, true},
	{"churn", attack_churn, true},
};

int
hostile_attach(const struct hostile *h, struct raw_client *c)
{
	uid_t own = geteuid();
	int rc;

	/* saker takes the user from the socket, at connect(). */
	if (h->user != own && seteuid(h->user) < 0)
		return -errno;
	rc = raw_attach(c, h->where, false);
	if (h->user != own && seteuid(own) < 0)
		return -errno;
	return rc;
}

void
hostile_ready(const char *what, uint64_t n)
{
	if (hostile_on_ready != NULL) {
		hostile_on_ready(what, n);
		return;
	}
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

int
hostile_run(struct hostile *h, const char *name)
{
	const struct attack *a = attacks, *end = a + sizeof(attacks) / sizeof(attacks[0]);
	int rc = 0;

	while (a < end && strcmp(a->name, name) != 0)
		a++;
	if (a == end)
		return -ENOENT;
	if (!a->alone) {
		rc = hostile_attach(h, &h->c);
		h->attached = rc == 0;
	}
	if (rc == 0)
		rc = a->run(h);
	if (h->attached)
		raw_detach(&h->c);
	h->attached = false;
	return rc;
}

void
hostile_names(void)
{
	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
		fprintf(stderr, " %s", attacks[i].name);
	fprintf(stderr, "\n");
}
