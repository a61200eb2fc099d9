/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connects the QPs of both ends. The connecting end keeps several connections under way, so that
 * their number in a second depends on the processor and not on the round trip. Local ports limit
 * the connections between two addresses and one listener port: further connections use further
 * listener ports, and further local addresses if the connecting end has some.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/base/mem.h"
#include "perf.h"

#define READS   128 /* outstanding Reads and Atomics of a QP: the engine's default limit */
#define WINDOW  64  /* connections under way at a time */
#define BACKLOG 256 /* requests that wait for an answer: more than WINDOW if frames are lost */
#define WAIT_NS 60000000000ull /* timeout of a connection event, reached only after a failure */

/* The private data of the connection, in host byte order: the end's memory, the number of the QP,
 * and the options that both ends must share. */
struct hello {
	char name[8];
	uint64_t addr;
	uint32_t stag, qp;
	char shared[400];
};

static const char hello_name[8] = "skperf1";

static int
next_event(struct perf_end *e, struct saker_event *ev)
{
	for (uint64_t end = eng_clock() + WAIT_NS; eng_clock() < end; perf_idle(e)) {
		if (saker_event(e->s, ev) == 1)
			return 0;
	}
	fprintf(stderr, "saker-perf: connecting: nothing has happened for %llu s\n",
		WAIT_NS / 1000000000);
	return -1;
}

static struct hello
hello_of(const struct perf_end *e)
{
	struct hello h = {.addr = (uintptr_t)e->buf, .stag = saker_mr_stag(e->mr)};

	memcpy(h.name, hello_name, sizeof(h.name));
	perf_options_shared(e->o, h.shared, sizeof(h.shared));
	return h;
}

/* Ends the text of a peer, which may send anything, and replaces what a terminal would act upon. */
static void
make_printable(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (size_t i = 0; text[i] != '\0'; i++)
		if (text[i] < ' ' || text[i] > '~')
			text[i] = '?';
}

/* Checks the other end's private data. Returns the number of its QP, or -1. */
static int64_t
check_hello(struct perf_end *e, const struct saker_conn_info *cm)
{
	struct hello h, mine = hello_of(e);

	memset(&h, 0, sizeof(h));
	memcpy(&h, cm->private_data, SK_MIN(cm->private_len, sizeof(h)));
	if (cm->private_len < sizeof(h) || memcmp(h.name, hello_name, sizeof(h.name)) != 0) {
		fprintf(stderr, "saker-perf: the other end is no saker-perf of this version\n");
		return -1;
	}
	make_printable(h.shared, sizeof(h.shared));
	if (perf_options_compare(mine.shared, h.shared))
		return -1;
	e->peer_addr = h.addr;
	e->peer_stag = h.stag;
	return h.qp;
}

static int
unexpected(struct perf_end *e, const struct saker_event *ev)
{
	/* An end that rejects a request because of its options sends its own. */
	if (ev->type == SAKER_EV_REJECTED && ev->cm.private_len > 0 && check_hello(e, &ev->cm) < 0)
		return -1;
	if (ev->type == SAKER_EV_REJECTED)
		fprintf(stderr, "saker-perf: connecting: the other end has rejected the request\n");
	else if (ev->type == SAKER_EV_DISCONNECTED)
		fprintf(stderr, "saker-perf: connecting: the other end has disconnected\n");
	else
		fprintf(stderr, "saker-perf: connecting: %s: %s\n", saker_event_str(ev->type),
			strerror(ev->status ? -ev->status : ECONNABORTED));
	return -1;
}

static struct saker_conn_param
params(const struct perf_end *e, const struct hello *h)
{
	return (struct saker_conn_param){
		.ird = READS,
		.ord = READS,
		.crc = e->o->crc,
		.markers = e->o->markers,
		.private_data = h,
		.private_len = sizeof(*h),
		.no_wait = true,
	};
}

/* Starts to connect the QP with number h->qp. */
static int
connect_qp(struct perf_end *e, const struct sk_addr *addr, const struct hello *h)
{
	struct saker_conn_param p = params(e, h);
	uint32_t path = h->qp / PERF_PATH_QPS, n = SK_MAX(e->nlocal, 1u);
	const struct sk_addr *local = e->nlocal > 0 ? &e->local[path % n] : NULL;
	uint16_t port = (uint16_t)(e->o->tcp_port + path / n);
	int rc = saker_connect(e->qp[h->qp], local, addr, port, &p);

	return rc < 0 ? perf_fail("connecting", rc) : 0;
}

int
perf_end_connect(struct perf_end *e, const struct sk_addr *addr)
{
	uint64_t start = eng_clock();
	struct hello h = hello_of(e);
	struct saker_event ev;

	for (uint32_t up = 0; up < e->nqp; up++) {
		for (; h.qp < e->nqp && h.qp - up < WINDOW; h.qp++)
			if (connect_qp(e, addr, &h))
				return -1;
		if (next_event(e, &ev) < 0)
			return -1;
		if (ev.type != SAKER_EV_ESTABLISHED)
			return unexpected(e, &ev);
		if (check_hello(e, &ev.cm) < 0)
			return -1;
		if (e->nqp >= 10000 && up % 10000 == 9999)
			perf_progress(e->o, "%u QPs connected", up + 1);
	}
	e->connect_ns = eng_clock() - start;
	return 0;
}

/* Accepts a request with the QP that has the number of the other end's QP. */
static int
connect_accept(struct perf_end *e, const struct saker_event *ev, struct saker_qp **left)
{
	int64_t qp = check_hello(e, &ev->cm);
	struct hello h = hello_of(e);
	struct saker_conn_param p;
	int rc;

	if (qp < 0) {
		saker_reject(e->s, ev->request, &h, sizeof(h));
		return -1;
	}
	if (qp >= e->nqp || left[qp] == NULL)
		return perf_fail("accepting a second connection of a QP", -EPROTO);
	h.qp = (uint32_t)qp;
	p = params(e, &h);
	rc = saker_accept(e->s, ev->request, left[qp], &p);
	left[qp] = NULL;
	return rc < 0 ? perf_fail("accepting", rc) : 0;
}

/* Accepts connections until all QPs have one. `left`: the QPs that have none yet. */
static int
connect_serve(struct perf_end *e, struct saker_qp **left)
{
	struct saker_event ev;

	/* If frames are lost, a request may arrive before the previous connection stands. */
	for (uint32_t up = 0; up < e->nqp;) {
		if (next_event(e, &ev) < 0)
			return -1;
		if (ev.type == SAKER_EV_ESTABLISHED)
			up++;
		else if (ev.type != SAKER_EV_CONNECT_REQUEST)
			return unexpected(e, &ev);
		else if (connect_accept(e, &ev, left))
			return -1;
	}
	return 0;
}

int
perf_end_listen(struct perf_end *e)
{
	uint32_t n = perf_ports(e->o);

	e->listener = calloc(n, sizeof(struct saker_listener *));
	if (e->listener == NULL)
		return perf_fail("allocating memory for the test", -ENOMEM);
	for (uint32_t i = 0; i < n; i++) {
		int rc = saker_listen(
			e->s, NULL, (uint16_t)(e->o->tcp_port + i), BACKLOG, NULL, &e->listener[i]);

		if (rc < 0)
			return perf_fail("listening", rc);
	}
	if (e->o->listen)
		fprintf(stderr, "listening\n"); /* scripts then start the other end */
	return 0;
}

int
perf_end_accept(struct perf_end *e)
{
	struct saker_qp **left = calloc(e->nqp, sizeof(struct saker_qp *));
	int rc;

	if (left == NULL)
		return perf_fail("allocating memory for the test", -ENOMEM);
	memcpy(left, e->qp, e->nqp * sizeof(struct saker_qp *));
	rc = connect_serve(e, left);
	free(left);
	for (uint32_t i = 0; rc == 0 && i < perf_ports(e->o); i++)
		saker_unlisten(e->listener[i]);
	return rc;
}
