/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Falcon peers that follow the exchange and then break its terms. They stand on the other side of a
 * net_tap port and use the kernel's TCP for the exchange and the kernel's UDP for Falcon packets. A
 * client of saker, in the same program, listens and accepts them, and lets them read its memory.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../lib/base/be.h"
#include "../support/clock.h"
#include "../support/lone.h"
#include "../../lib/wire/rof.h"
#include "hostile.h"

#define CONTROL    4795 /* saker's TCP port of carriers */
#define AGREED     4    /* Reads that saker allows a peer to have outstanding */
#define PEERS      16
#define KEPT       1024 /* Reads of a peer whose data it never acknowledges */
#define READ_BYTES 1024u
#define MEMORY     65536u
#define MTU        1024
#define FLOW       0xfffc     /* source port of all requests: a path number and flow 0 */
#define BATCH      8          /* packets of a peer at a time */
#define AGAIN_NS   1000000ull /* between two packets of a peer whose requests were refused */
#define REST_US    20
#define STILL_NS   300000000ull   /* without progress, a window is full */
#define START_NS   10000000000ull /* for an exchange */

struct peer {
	struct lone *x;
	struct rofx_agreed terms;
	struct raw_qp qp;
	int fd;                         /* the exchange's TCP connection */
	uint32_t asked, data, answered; /* requests sent, Pull Data in order, requests received */
	uint32_t again;                 /* the request that is repeated next */
	uint32_t stamp;                 /* of the last packet with data, in ticks */
};

static struct {
	struct hostile *h;
	struct peer *peers;
	uint32_t npeers;
	int in, out; /* UDP */
	struct sockaddr_in to;
	uint64_t iv;
	struct raw_cq cq;
	struct raw_mem mem;
} p;

/* ---- Falcon packets ---- */

static uint32_t
next_psn(const struct peer *q)
{
	return q->terms.peer.data_psn + q->data;
}

/* Sends a packet to saker, with PSP without crypto. The kernel adds the UDP checksum. */
static bool
packet_send(const struct peer *q, struct wire_falcon *f, const struct wire_rof *rof)
{
	uint64_t iv = wire_falcon_ticks(now_ns()) << PSP_IV_COUNTER_BITS;
	struct wire_psp psp = {.next = PSP_NEXT_FALCON,
		.crypt_offset = wire_psp_crypt_offset(false, 0),
		.version = PSP_NO_CRYPTO,
		.spi = q->terms.tx.spi};
	uint8_t buf[PSP_MAX + FALCON_MAX + ROF_MAX];
	unsigned n;

	p.iv = iv > p.iv ? iv : p.iv + 1;
	psp.iv = p.iv;
	f->cid = q->terms.peer.cid;
	f->function = q->terms.peer.function;
	f->dbpsn = next_psn(q);
	f->rbpsn = q->terms.peer.request_psn;
	n = wire_psp_emit(buf, &psp);
	n += wire_falcon_emit(buf + n, f);
	if (rof != NULL)
		n += wire_rof_emit(buf + n, rof);
	return sendto(p.out, buf, n, 0, (struct sockaddr *)&p.to, sizeof(p.to)) == (ssize_t)n;
}

/* Sends request `i` of a peer. */
static bool
read_send(const struct peer *q, uint32_t i)
{
	struct wire_rof rof = {.opcode = ROF_READ_REQUEST,
		.dest_qp = q->terms.peer.qpn,
		.sn = 1 + i,
		.rmsn = 1 + i,
		.va = p.mem.base,
		.rkey = p.mem.stag,
		.length = READ_BYTES};
	struct wire_falcon f = {.type = FALCON_PULL_REQUEST,
		.ar = true,
		.proto = FALCON_RDMA,
		.psn = q->terms.ours.request_psn + i,
		.rsn = q->terms.ours.rsn + i,
		.request_len = (uint16_t)(wire_rof_len(ROF_READ_RESPONSE_ONLY) + READ_BYTES)};

	return packet_send(q, &f, &rof);
}

static void
data_ack(const struct peer *q)
{
	struct wire_falcon f = {
		.type = FALCON_BACK, .t1 = q->stamp, .t2 = (uint32_t)wire_falcon_ticks(now_ns())};

	packet_send(q, &f, NULL);
}

/* Receives one packet. Returns the peer that it is for, or NULL. */
static struct peer *
packet_receive(bool keep)
{
	uint8_t buf[2048];
	ssize_t len = recv(p.in, buf, sizeof(buf), 0);
	struct wire_psp psp;
	struct wire_falcon f;
	struct peer *q;
	int n;

	if (len <= 0)
		return NULL;
	n = wire_psp_parse(&psp, buf, (size_t)len);
	if (n < 0 || wire_falcon_parse(&f, buf + n, (size_t)(len - n)) < 0 || f.cid == 0 ||
		f.cid > p.npeers)
		return NULL;
	q = &p.peers[f.cid - 1];
	if ((int32_t)(f.rbpsn - q->terms.ours.request_psn - q->answered) > 0)
		q->answered = f.rbpsn - q->terms.ours.request_psn;
	if (f.type != FALCON_PULL_DATA)
		return q;
	p.h->refused += keep;
	q->stamp = wire_psp_iv_ticks(psp.iv);
	if (!keep && f.psn == next_psn(q)) {
		q->data++;
		p.h->done++;
	}
	return q;
}

/* ---- The exchange ---- */

/* Connects a socket to saker. Returns it or -errno. */
static int
dial(struct sk_addr *own)
{
	struct sockaddr_in to = p.to, from;
	socklen_t len = sizeof(from);
	char text[INET_ADDRSTRLEN];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to.sin_port = htons(CONTROL);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 ||
		getsockname(fd, (struct sockaddr *)&from, &len) < 0 ||
		fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		goto failed;
	inet_ntop(AF_INET, &from.sin_addr, text, sizeof(text));
	if (sk_addr_parse(text, own) == 0)
		return fd;
failed:
	if (fd >= 0)
		close(fd);
	return errno ? -errno : -EINVAL;
}

/* Accepts what asks for the listener, in the place of the client. */
static void
client_turn(struct peer *q)
{
	struct shm_msg m;

	while (raw_event(&p.h->c, &m)) {
		struct shm_msg a = {.body.cm = {.request = m.body.cm.request,
					    .qp = q->qp.i.qp,
					    .ird = AGREED,
					    .ord = AGREED}};

		if (m.op == SHM_EV_CONNECT_REQUEST)
			raw_post(&p.h->c, &a, SHM_ACCEPT);
		if (m.status < 0)
			fprintf(stderr, "client: message %u: %s\n", m.op, strerror(-m.status));
	}
}

/* Moves the bytes of the exchange. Returns 0, 1 when saker and the peer have agreed, or -errno. */
static int
exchange_turn(struct peer *q)
{
	uint8_t buf[2048];
	ssize_t got = recv(q->fd, buf, sizeof(buf), 0);
	int rc = 0;

	if (got > 0)
		lone_input(q->x, now_ns(), buf, (size_t)got);
	for (enum rofx_event e; (e = lone_event(q->x)) != ROFX_EV_NONE;) {
		if (e != ROFX_EV_AGREED)
			return -ECONNREFUSED;
		q->terms = *lone_agreed(q->x);
		rc = lone_ready(q->x) == 0 ? 1 : -EPROTO;
	}
	for (size_t n; (n = lone_output(q->x, buf, sizeof(buf))) > 0;)
		if (send(q->fd, buf, n, MSG_NOSIGNAL) != (ssize_t)n)
			return -EPIPE;
	return got == 0 ? -ECONNRESET : rc;
}

static int
peer_join(struct peer *q, uint32_t cid)
{
	const struct rofx_config cfg = {0};
	struct rofx_side ours = {.transport = ROF_RC,
		.cid = cid,
		.qpn = 0x1000 + cid,
		.request_psn = 1,
		.data_psn = 1,
		.rsn = 1,
		.mtu = MTU,
		.ird = AGREED,
		.ord = AGREED,
		.request_window = FA_REQUEST_WINDOW,
		.data_window = FA_DATA_WINDOW,
		.flows = 1,
		.rnr_retry = 7,
		.ttl = 64,
		.psp = ROFX_PSP(PSP_NO_CRYPTO),
		.spi = 0x1000 + cid};
	uint64_t end = now_ns() + START_NS;
	int rc;

	/* saker listens for carriers while it has a listener of Falcon. */
	while ((q->fd = dial(&ours.gid)) == -ECONNREFUSED && now_ns() < end)
		hostile_rest(p.h, 1000);
	if (q->fd < 0)
		return q->fd;
	/* The victim's process runs the attack in each round. saker would take the name of an
	 * earlier round for a repetition of that round's exchange. */
	q->x = lone_connect_as(&cfg, now_ns(), (uint32_t)now_ns() ^ (uint32_t)getpid() << 24,
		p.h->port, &ours, NULL, 0, &rc);
	if (q->x == NULL)
		return rc;
	while ((rc = exchange_turn(q)) == 0 && now_ns() < end) {
		client_turn(q);
		hostile_rest(p.h, 100);
	}
	if (rc == -ECONNREFUSED)
		fprintf(stderr, "the exchange: %s\n", rofx_reasons.reasons[lone_why(q->x)].help);
	return rc == 0 ? -ETIMEDOUT : rc < 0 ? rc : 0;
}

/* ---- Preparation ---- */

static int
udp_open(uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
		return fd;
	return errno ? -errno : -EINVAL;
}

static int
pulls_prepare(struct hostile *h)
{
	uint32_t pd, n = h->number ? h->number : PEERS;
	int rc = raw_pd(&h->c, &pd);

	memset(&p, 0, sizeof(p));
	p.h = h;
	p.peers = calloc(n, sizeof(*p.peers));
	p.to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(PSP_UDP_PORT)};
	p.in = udp_open(PSP_UDP_PORT);
	p.out = udp_open(FLOW);
	if (p.peers == NULL || p.in < 0 || p.out < 0)
		return p.in < 0 ? p.in : p.out < 0 ? p.out : -ENOMEM;
	if (h->addr == NULL || inet_pton(AF_INET, h->addr, &p.to.sin_addr) != 1)
		return -EINVAL;
	if (rc == 0)
		rc = raw_cq(&h->c, 64, &p.cq);
	if (rc == 0)
		rc = raw_memory(&h->c, pd, MEMORY, 0, &p.mem);
	if (rc == 0)
		rc = raw_listen(&h->c, h->port);
	for (; rc == 0 && p.npeers < n; p.npeers++) {
		struct peer *q = &p.peers[p.npeers];

		q->fd = -1; /* pulls_end() frees this peer, too, if it cannot join */
		rc = raw_qp(&h->c, pd, &p.cq, 2, SHM_FALCON, &q->qp);
		if (rc == 0)
			rc = peer_join(q, p.npeers + 1);
	}
	return rc;
}

static void
pulls_end(void)
{
	for (uint32_t i = 0; p.peers != NULL && i < p.npeers; i++) {
		lone_destroy(p.peers[i].x);
		if (p.peers[i].fd >= 0)
			close(p.peers[i].fd);
	}
	if (p.in >= 0)
		close(p.in);
	if (p.out >= 0)
		close(p.out);
	raw_memory_free(&p.mem);
	free(p.peers);
}

/* ---- The attacks ---- */

/* Sends requests of one peer as far as the request window and `most` outstanding ones allow. */
static unsigned
peer_ask(struct peer *q, uint32_t most)
{
	unsigned n = 0;

	while (n < BATCH && q->asked - q->answered < FA_REQUEST_WINDOW &&
		q->asked - q->data < most && read_send(q, q->asked)) {
		q->asked++;
		n++;
	}
	return n;
}

/* Sends up to `most` requests again that saker has not received or has refused. Returns how many.
 */
static unsigned
peer_repeat(struct peer *q, unsigned most)
{
	uint32_t open = q->asked - q->answered;
	unsigned n = 0;

	while (n < most && n < open) {
		if (q->again - q->answered >= open)
			q->again = q->answered;
		if (!read_send(q, q->again))
			break;
		q->again++;
		n++;
	}
	return n;
}

/* Goes on to ask: each peer repeats a refused request every AGAIN_NS. */
static void
kept_again(struct hostile *h)
{
	uint64_t due = now_ns();

	while (!hostile_stop) {
		while (packet_receive(true) != NULL)
			;
		if (now_ns() >= due) {
			due = now_ns() + AGAIN_NS;
			for (uint32_t i = 0; i < p.npeers; i++)
				h->done += peer_repeat(&p.peers[i], 1);
		}
		hostile_rest(h, REST_US);
	}
}

/* Has saker hold Pull Data that the peers never acknowledge, and asks for more than agreed. */
int
attack_pulls_kept(struct hostile *h)
{
	int rc = pulls_prepare(h);
	uint64_t end = now_ns() + STILL_NS, sent = 0;

	while (rc == 0 && !hostile_stop && now_ns() < end) {
		unsigned n = 0;

		while (packet_receive(true) != NULL)
			;
		for (uint32_t i = 0; i < p.npeers; i++)
			n += peer_ask(&p.peers[i], KEPT);
		sent += n;
		if (n > 0)
			end = now_ns() + STILL_NS;
		hostile_rest(h, REST_US);
	}
	if (rc == 0) {
		h->done = sent;
		hostile_ready("Reads whose data nobody acknowledges", sent);
		kept_again(h);
	}
	pulls_end();
	return rc;
}

/* Asks for up to sixteen times as many Reads as agreed, without a pause: those that were refused,
 * too, come again at once. */
int
attack_pulls_excess(struct hostile *h)
{
	int rc = pulls_prepare(h);

	if (rc == 0)
		hostile_ready("Reads outstanding of each peer", FA_REQUEST_WINDOW);
	while (rc == 0 && !hostile_stop) {
		for (uint32_t i = 0; i < p.npeers; i++) {
			struct peer *q = NULL, *last = NULL;

			for (int n = 0; n < BATCH && (q = packet_receive(false)) != NULL; n++) {
				if (last != NULL && q != last)
					data_ack(last);
				last = q;
			}
			if (last != NULL)
				data_ack(last);
			if (peer_ask(&p.peers[i], FA_REQUEST_WINDOW) == 0)
				peer_repeat(&p.peers[i], BATCH);
			hostile_rest(h, REST_US);
		}
	}
	pulls_end();
	return rc;
}
