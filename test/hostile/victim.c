/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * victim WHERE ADDR PORT iwarp|falcon: the client beside an attack. It attaches twice, connects a
 * QP to itself and one to its second client, and obeys lines from stdin, each with a line of its
 * own. WHERE is the path of saker's socket, or "bar:PATH:SLOT": it then needs three slots.
 *
 *	reads MS	8-byte Reads from itself, one at a time:
 *			"reads RATE P50 P99 P999 MAX ATTACKS"
 *	pong MS		8-byte Sends to the second client and back:
 *			"pong RATE P50 P99 P999 MAX ATTACKS"
 *	connect N	new connections with new QPs to the second client:
 *			"connect GOOD BAD P50 MAX REASON"
 *	attach N	new clients, which leave again: "attach GOOD BAD P50 MAX REASON"
 *	verify N	Writes of random bytes to itself, read back: "verify GOOD BAD 0 0 REASON"
 *	attack NAME USER WHERE [NUMBER [ADDR PORT]]
 *			starts an attack of hostile.c in this thread (beside.h), whose clients are
 *			those of the user: "attack 1 COUNT WHAT" when it is ready, or
 *			"attack 0 STATUS"
 *	server NAME ...	the same, but it also runs while the victim has no order
 *	relief		ends the attack: "relief 1 DONE REFUSED", or "relief 0" if it does not end
 *
 * Times are in ns of the processor's time that the victim had, without that of the attack. ATTACKS
 * is what the attack did meanwhile.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/base/mem.h"
#include "../support/clock.h"
#include "../support/rng.h"
#include "beside.h"

#define SAMPLES   (1u << 23)
#define STUCK_NS  10000000000ull
#define PATIENCE  15000000000ull /* for a connection */
#define NEW_NS    5000000000ull  /* for a connection beside an attack */
#define BAD_MOST  2              /* new things that fail, before the rest is not tried */
#define DEPTH     16
#define BYTES     4096u
#define PONG_SIZE 8
#define TURN      4096 /* looks at the CQ, some 10 us, between two turns of the attack */

static struct {
	struct raw_client c[2];
	uint32_t pd[2];
	struct raw_cq cq[2];
	struct raw_mem mem[2];
	struct raw_qp self[2], far[2]; /* far[0] of c[0], far[1] of c[1] */
	const char *where, *addr;
	uint16_t port;
	uint8_t transport;
	uint64_t rng;
	uint32_t *sample;
	uint32_t samples;
} v;

static int
compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void
sample_add(uint64_t ns)
{
	if (v.samples < SAMPLES)
		v.sample[v.samples++] = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

static uint32_t
percentile(double share)
{
	return v.samples ? v.sample[(uint32_t)((v.samples - 1) * share)] : 0;
}

/* Waits for a completion of one of the clients. Returns its status, or -1 when none comes. */
static int
completion(int client)
{
	struct shm_cqe e;
	uint64_t end = 0;

	for (uint32_t turn = 1; !raw_poll(&v.cq[client], &e); turn++) {
		if (turn % TURN)
			continue;
		beside_turn();
		if (end == 0)
			end = now_ns() + STUCK_NS;
		else if (now_ns() > end)
			return -1;
		raw_beat(&v.c[0]);
		raw_beat(&v.c[1]);
	}
	return e.status;
}

static bool
one_read(void)
{
	const struct rd_sge sge = {v.mem[0].base + 64, 8, v.mem[0].stag};

	return raw_request(&v.c[0], &v.self[0], RD_READ, RD_SIGNALED, &sge, v.mem[0].base,
		       v.mem[0].stag) &&
	       completion(0) == 0;
}

/* Sends to the other client, which has a receive posted, and waits until it arrives. */
static bool
one_way(int from)
{
	const struct rd_sge out = {v.mem[from].base, PONG_SIZE, v.mem[from].stag};
	const struct rd_sge in = {v.mem[!from].base + 128, PONG_SIZE, v.mem[!from].stag};

	return raw_request(&v.c[from], &v.far[from], RD_SEND, 0, &out, 0, 0) &&
	       completion(!from) == 0 && raw_recv(&v.far[!from], &in);
}

static bool
one_pong(void)
{
	return one_way(0) && one_way(1);
}

static void
measure(const char *name, bool (*one)(void), int ms)
{
	uint64_t begin = beside_now(), end = begin + (uint64_t)ms * 1000000, lost = 0, t, n = 0;
	uint64_t done = beside.h.done;
	bool ok = true;

	v.samples = 0;
	beside_lost();
	while (ok && (t = beside_now()) < end) {
		ok = one();
		n += ok;
		t = beside_now() - t;
		/* Time of other threads on the processor (saker's socket thread, the kernel) is no
		 * delay of saker's. */
		if (t > BESIDE_SLOW_NS) {
			uint64_t fresh = beside_lost();

			lost += SK_MIN(t, fresh);
			t -= SK_MIN(t, fresh);
		}
		sample_add(t);
		beside_turn();
	}
	t = beside_now() - begin - lost;
	qsort(v.sample, v.samples, sizeof(*v.sample), compare);
	if (!ok)
		printf("%s failed after %llu messages\n", name, (unsigned long long)n);
	else
		printf("%s %.0f %u %u %u %u %llu\n", name, (double)n * 1e9 / (double)t,
			percentile(0.5), percentile(0.99), percentile(0.999), percentile(1),
			(unsigned long long)(beside.h.done - done));
}

/* ---- New things during an attack ---- */

static char reason[160];

static bool
failed(const char *what, int rc)
{
	if (rc < 0 && reason[0] == '\0')
		snprintf(reason, sizeof(reason), "%s: %s", what, strerror(-rc));
	return rc < 0;
}

static bool
new_connection(void)
{
	struct raw_qp qp[2];
	struct raw_link l = {&v.c[0], &v.c[1], &qp[0], &qp[1], v.addr, v.port, "no QP"};
	int made = 0, rc = 0;

	for (; rc == 0 && made < 2; made += rc == 0)
		rc = raw_qp(&v.c[made], v.pd[made], &v.cq[made], DEPTH, v.transport, &qp[made]);
	if (rc == 0)
		rc = raw_join(&l, NEW_NS);
	for (int i = 0; i < made; i++)
		raw_destroy(&v.c[i], SHM_QP_DESTROY, qp[i].i.qp);
	/* The ends of the connection are events that nobody needs. */
	for (int i = 0; i < 2; i++)
		for (struct shm_msg m; raw_event(&v.c[i], &m);)
			;
	return !failed(l.why, rc);
}

/* Attaches the victim's client number `n`. */
static int
attach(struct raw_client *c, unsigned n)
{
	const char *slot = strrchr(v.where, ':');
	char where[128];

	if (slot == NULL)
		return raw_attach(c, v.where, false);
	snprintf(where, sizeof(where), "%.*s:%u", (int)(slot - v.where), v.where,
		(unsigned)atoi(slot + 1) + n);
	return raw_attach(c, where, false);
}

static bool
new_client(void)
{
	static struct raw_client c;
	int rc = attach(&c, 2);
	uint32_t pd;

	if (rc == 0) {
		rc = raw_pd(&c, &pd);
		raw_detach(&c);
	}
	return !failed("attach", rc);
}

static bool
verified(void)
{
	struct raw_mem *m = &v.mem[0];
	const uint32_t to = 2 * BYTES, back = 4 * BYTES;
	const struct rd_sge out = {m->base + BYTES, BYTES, m->stag};
	const struct rd_sge in = {m->base + back, BYTES, m->stag};
	int rc;

	for (uint32_t i = 0; i < BYTES; i++)
		m->at[BYTES + i] = (uint8_t)rng_next(&v.rng);
	raw_request(&v.c[0], &v.self[0], RD_WRITE, 0, &out, m->base + to, m->stag);
	raw_request(&v.c[0], &v.self[0], RD_READ, RD_SIGNALED, &in, m->base + to, m->stag);
	rc = completion(0);
	if (rc != 0)
		return !failed(rc < 0 ? "no completion" : "a completion with an error", -EIO);
	return !failed(
		"other bytes", memcmp(m->at + BYTES, m->at + to, BYTES) != 0 ||
					       memcmp(m->at + BYTES, m->at + back, BYTES) != 0
				       ? -EBADMSG
				       : 0);
}

static void
repeat(const char *name, bool (*one)(void), int n)
{
	unsigned good = 0, bad = 0;

	reason[0] = '\0';
	v.samples = 0;
	for (int i = 0; i < n && bad < BAD_MOST; i++) {
		uint64_t t = now_ns();
		bool ok = one();

		good += ok;
		bad += !ok;
		if (ok)
			sample_add(now_ns() - t);
	}
	qsort(v.sample, v.samples, sizeof(*v.sample), compare);
	printf("%s %u %u %u %u %s\n", name, good, bad, percentile(0.5), percentile(1),
		reason[0] ? reason : "-");
}

/* ---- Preparation ---- */

static int
prepare(void)
{
	struct raw_link self, far;
	int rc = 0;

	for (int i = 0; rc == 0 && i < 2; i++) {
		const struct rd_sge in = {RAW_BASE + 128, PONG_SIZE, 0};

		rc = attach(&v.c[i], (unsigned)i);
		if (rc == 0)
			rc = raw_pd(&v.c[i], &v.pd[i]);
		if (rc == 0)
			rc = raw_cq(&v.c[i], 64, &v.cq[i]);
		if (rc == 0)
			rc = raw_memory(&v.c[i], v.pd[i], 65536, 0, &v.mem[i]);
		if (rc == 0)
			rc = raw_qp(&v.c[i], v.pd[i], &v.cq[i], DEPTH, v.transport, &v.far[i]);
		for (int n = 0; rc == 0 && n < DEPTH / 2; n++)
			raw_recv(&v.far[i], &(struct rd_sge){in.addr, in.len, v.mem[i].stag});
	}
	for (int i = 0; rc == 0 && i < 2; i++)
		rc = raw_qp(&v.c[0], v.pd[0], &v.cq[0], DEPTH, v.transport, &v.self[i]);
	if (rc == 0)
		rc = raw_listen(&v.c[1], v.port);
	if (rc == 0)
		rc = raw_listen(&v.c[0], (uint16_t)(v.port + 1));
	if (rc < 0)
		return rc;
	far = (struct raw_link){&v.c[0], &v.c[1], &v.far[0], &v.far[1], v.addr, v.port, ""};
	self = (struct raw_link){
		&v.c[0], &v.c[0], &v.self[0], &v.self[1], v.addr, (uint16_t)(v.port + 1), ""};
	rc = raw_join(&far, PATIENCE);
	if (rc == 0)
		rc = raw_join(&self, PATIENCE);
	if (rc < 0)
		fprintf(stderr, "victim: no connection: %s, %s\n", far.why, self.why);
	return rc;
}

/* ---- Orders ---- */

/* Obeys "attack" and "server" with the words of the line. */
static bool
order_attack(char *line)
{
	static char name[32], where[128], addr[64];
	unsigned user, number = 0, port = 7900;
	int n = sscanf(
		line, "%*s %31s %u %127s %u %63s %u", name, &user, where, &number, addr, &port);

	if (n < 3 || beside.lives)
		return false;
	beside.name = name;
	beside.serves = line[0] == 's';
	beside.h = (struct hostile){.where = where,
		.addr = n > 4 ? addr : NULL,
		.number = number,
		.port = (uint16_t)port,
		.user = user};
	if (beside_start())
		printf("attack 1 %llu %s\n", (unsigned long long)beside.count, beside.what);
	else
		printf("attack 0 %d\n", beside.lives ? -ETIMEDOUT : beside.status);
	return true;
}

static bool
order_relief(void)
{
	if (beside_end())
		printf("relief 1 %llu %llu\n", (unsigned long long)beside.h.done,
			(unsigned long long)beside.h.refused);
	else
		printf("relief 0\n");
	return true;
}

static bool
obey(char *line)
{
	char word[16];
	int n = 0, words = sscanf(line, "%15s %d", word, &n);

	if (words < 1)
		return false;
	if (strcmp(word, "attack") == 0 || strcmp(word, "server") == 0)
		return order_attack(line);
	if (strcmp(word, "relief") == 0)
		return order_relief();
	if (words != 2)
		return false;
	if (strcmp(word, "reads") == 0)
		measure(word, one_read, n);
	else if (strcmp(word, "pong") == 0)
		measure(word, one_pong, n);
	else if (strcmp(word, "connect") == 0)
		repeat(word, new_connection, n);
	else if (strcmp(word, "attach") == 0)
		repeat(word, new_client, n);
	else if (strcmp(word, "verify") == 0)
		repeat(word, verified, n);
	else
		return false;
	return true;
}

/* Waits for the next line. Returns false at the end of the orders. */
static bool
next_order(char *line, int room)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};

	while (poll(&in, 1, beside.serves ? 1 : SHM_BAR_BEAT_MS / 2) == 0) {
		if (beside.serves)
			beside_turn();
		beside_beat();
		raw_beat(&v.c[0]);
		raw_beat(&v.c[1]);
	}
	return fgets(line, room, stdin) != NULL;
}

int
main(int argc, char **argv)
{
	char line[512];

	setvbuf(stdout, NULL, _IOLBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0);
	if (argc != 5) {
		fprintf(stderr, "usage: victim WHERE ADDR PORT iwarp|falcon\n");
		return 2;
	}
	v.where = argv[1];
	v.addr = argv[2];
	v.port = (uint16_t)atoi(argv[3]);
	v.transport = strcmp(argv[4], "falcon") == 0 ? SHM_FALCON : SHM_IWARP;
	v.sample = calloc(SAMPLES, sizeof(*v.sample));
	v.rng = 1;
	if (v.sample == NULL || prepare() < 0)
		return 1;
	printf("ready\n");
	while (next_order(line, sizeof(line)))
		if (!obey(line)) {
			fprintf(stderr, "an order that cannot be obeyed: %s", line);
			return 2;
		}
	raw_detach(&v.c[1]);
	raw_detach(&v.c[0]);
	return 0;
}
