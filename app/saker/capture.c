/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Captures the frames of a port into a pcapng file while saker runs. Callbacks on the port's queues
 * copy each frame into mbufs of a pool of their own, and a thread writes the copies: a slow disk
 * loses copies, which are counted, and never frames. Without a capture there is no callback, and so
 * no cost. dpdk-dumpcap needs a second process, which EAL's --in-memory does not permit; this needs
 * none.
 */
#define ALLOW_EXPERIMENTAL_API /* rte_pcapng */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_pcapng.h>
#include <rte_ring.h>

#include "../../lib/base/log.h"
#include "../../lib/wire/wire.h"
#include "saker.h"

#define CAPTURE_MBUFS 2047
#define CAPTURE_RING  2048 /* entries; one less fits, which is all mbufs */
#define CAPTURE_BURST 32
#define CAPTURE_MOST  (UINT64_C(1) << 30) /* bytes of packets in a file */
#define CAPTURE_NAP   1000                /* us */
#define QUIET_MS      5000                /* longest wait for the loops to leave the callbacks */

struct queue_hook {
	const struct rte_eth_rxtx_callback *rx, *tx;
};

static struct {
	bool on, stop;  /* stop: atomic */
	unsigned index; /* of the port in eng_config.ports */
	uint16_t port;
	uint32_t snap; /* bytes of a frame that are kept */
	rte_pcapng_t *file;
	struct rte_mempool *pool;
	struct rte_ring *ring;
	pthread_t thread;
	struct queue_hook *hooks; /* [nhooks], by queue */
	unsigned nhooks;
	/* Atomic: frames written; frames that no mbuf was free for, or that exceed the file. */
	uint64_t written, lost;
	uint64_t bytes; /* of the thread */
} cap;

/* ---- On the lcores ---- */

static void
capture_frames(uint16_t port, uint16_t queue, struct rte_mbuf **m, uint16_t n,
	enum rte_pcapng_direction direction)
{
	uint64_t now = rte_get_tsc_cycles();

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *copy =
			rte_pcapng_copy(port, queue, m[i], cap.pool, cap.snap, now, direction);

		if (copy != NULL && rte_ring_mp_enqueue(cap.ring, copy) == 0)
			continue;
		rte_pktmbuf_free(copy);
		__atomic_fetch_add(&cap.lost, 1, __ATOMIC_RELAXED);
	}
}

static uint16_t
capture_rx(
	uint16_t port, uint16_t queue, struct rte_mbuf *m[], uint16_t n, uint16_t most, void *arg)
{
	capture_frames(port, queue, m, n, RTE_PCAPNG_DIRECTION_IN);
	return n;
}

static uint16_t
capture_tx(uint16_t port, uint16_t queue, struct rte_mbuf *m[], uint16_t n, void *arg)
{
	capture_frames(port, queue, m, n, RTE_PCAPNG_DIRECTION_OUT);
	return n;
}

/* ---- The thread that writes ---- */

static void
capture_write(struct rte_mbuf **m, unsigned n)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < n; i++)
		bytes += m[i]->pkt_len;
	cap.bytes += bytes;
	if (cap.bytes <= CAPTURE_MOST && rte_pcapng_write_packets(cap.file, m, (uint16_t)n) > 0)
		__atomic_fetch_add(&cap.written, n, __ATOMIC_RELAXED);
	else
		__atomic_fetch_add(&cap.lost, n, __ATOMIC_RELAXED);
	rte_pktmbuf_free_bulk(m, n);
}

static void *
capture_main(void *arg)
{
	struct rte_mbuf *m[CAPTURE_BURST];

	for (;;) {
		bool stop = __atomic_load_n(&cap.stop, __ATOMIC_ACQUIRE);
		unsigned n = rte_ring_sc_dequeue_burst(cap.ring, (void **)m, CAPTURE_BURST, NULL);

		if (n > 0)
			capture_write(m, n);
		else if (stop)
			return NULL;
		else
			usleep(CAPTURE_NAP);
	}
}

/* ---- Commands ---- */

/* Adds a callback to each queue. Returns 0, or -errno; then some queues may have one. */
static int
capture_hook(const struct eng_port_view *v)
{
	unsigned n = RTE_MAX(v->rx_queues, v->tx_queues);

	cap.hooks = calloc(n, sizeof(cap.hooks[0]));
	if (cap.hooks == NULL)
		return -ENOMEM;
	cap.nhooks = n;
	for (unsigned q = 0; q < n; q++) {
		struct queue_hook *h = &cap.hooks[q];
		uint16_t queue = (uint16_t)q;

		if (q < v->rx_queues)
			h->rx = rte_eth_add_rx_callback(cap.port, queue, capture_rx, NULL);
		if (q < v->rx_queues && h->rx == NULL)
			return -rte_errno;
		if (q < v->tx_queues)
			h->tx = rte_eth_add_tx_callback(cap.port, queue, capture_tx, NULL);
		if (q < v->tx_queues && h->tx == NULL)
			return -rte_errno;
	}
	return 0;
}

/* Waits until each loop has begun two turns, so that none is in a callback. */
static bool
capture_quiet(const struct app *a)
{
	uint64_t turns[ENG_MAX_LCORES];
	struct eng_loop_stats st;
	unsigned ms = 0;

	for (unsigned k = 0; k < a->s.eng.nloops; k++) {
		eng_loop_stats(a->e, k, &st);
		turns[k] = st.turns;
	}
	for (unsigned k = 0; k < a->s.eng.nloops && run_running(); k++)
		for (eng_loop_stats(a->e, k, &st); st.turns < turns[k] + 2 && run_running();
			eng_loop_stats(a->e, k, &st)) {
			if (++ms > QUIET_MS)
				return false;
			usleep(1000);
		}
	return true;
}

/* The port is still open: see capture_look(). From a closed port, no callback could be removed, and
 * the next port with its number would call it. Returns false when a loop that a debugger holds may
 * still be in a callback: nothing that a callback uses may be freed then. */
static bool
capture_unhook(const struct app *a)
{
	bool quiet;

	for (unsigned q = 0; q < cap.nhooks; q++) {
		if (cap.hooks[q].rx != NULL)
			rte_eth_remove_rx_callback(cap.port, (uint16_t)q, cap.hooks[q].rx);
		if (cap.hooks[q].tx != NULL)
			rte_eth_remove_tx_callback(cap.port, (uint16_t)q, cap.hooks[q].tx);
	}
	quiet = capture_quiet(a);
	for (uint16_t q = 0; quiet && q < cap.nhooks; q++) {
		rte_free((void *)(uintptr_t)cap.hooks[q].rx);
		rte_free((void *)(uintptr_t)cap.hooks[q].tx);
	}
	free(cap.hooks);
	cap.hooks = NULL;
	cap.nhooks = 0;
	return quiet;
}

static void
capture_close(void)
{
	if (cap.file != NULL)
		rte_pcapng_close(cap.file);
	cap.file = NULL;
}

/* Frees what the callbacks use. */
static void
capture_free(void)
{
	rte_ring_free(cap.ring);
	rte_mempool_free(cap.pool);
	cap.ring = NULL;
	cap.pool = NULL;
}

/* Creates the file, the pool and the ring. */
static int
capture_open(const char *path, uint32_t mtu, struct cmd_out *out)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return cmd_refuse(out, "%s cannot be created: %s", path, strerror(errno));
	cap.snap = mtu + ETH_MAX;
	cap.file = rte_pcapng_fdopen(fd, NULL, NULL, "saker " SAKER_VERSION, NULL);
	if (cap.file == NULL)
		close(fd);
	cap.pool = rte_pktmbuf_pool_create("saker-capture", CAPTURE_MBUFS, 0, 0,
		(uint16_t)RTE_MIN(rte_pcapng_mbuf_size(cap.snap), (uint32_t)UINT16_MAX),
		SOCKET_ID_ANY);
	cap.ring = rte_ring_create("saker-capture", CAPTURE_RING, SOCKET_ID_ANY, RING_F_SC_DEQ);
	if (cap.file != NULL && cap.pool != NULL && cap.ring != NULL)
		return 0;
	unlink(path);
	return cmd_refuse(out, "there is no memory for %d captured frames", CAPTURE_MBUFS);
}

/* Parses "FILE" or "FILE N". */
static int
capture_parse(const struct app *a, const char *arg, char path[FILE_LEN], struct cmd_out *out)
{
	size_t n = strcspn(arg, " ");
	int port;

	if (arg[0] != '/' || n >= FILE_LEN)
		return cmd_refuse(out,
			"the path of the file begins with /, and has at most %d bytes",
			FILE_LEN - 1);
	snprintf(path, FILE_LEN, "%.*s", (int)n, arg);
	port = arg[n] == '\0' ? 0 : ports_index(&a->s.eng, arg + n + 1);
	if (port < 0)
		return cmd_refuse(out, "there is no port '%.60s'", arg + n + 1);
	cap.index = (unsigned)port;
	cap.port = a->s.eng.ports[port].port_id;
	return 0;
}

int
capture_start(void *app, const char *arg, struct cmd_out *out)
{
	struct app *a = app;
	struct eng_port_view v;
	char path[FILE_LEN];
	int rc;

	if (cap.on)
		return cmd_refuse(out, "a capture runs already; enter 'capture stop' first");
	if (cap.pool != NULL)
		return cmd_refuse(out,
			"a loop that stood still may still use the memory of the last capture");
	rc = capture_parse(a, arg, path, out);
	if (rc < 0)
		return rc;
	eng_port_look(a->e, cap.index, &v);
	if (v.removed)
		return cmd_refuse(out, "the device of port %u was removed", ports_label(cap.index));
	rc = capture_open(path, a->s.eng.ports[cap.index].mtu, out);
	cap.written = cap.lost = cap.bytes = 0;
	cap.stop = false;
	if (rc == 0 &&
		rte_ctrl_thread_create(&cap.thread, "saker-capture", NULL, capture_main, NULL) != 0)
		rc = cmd_refuse(out, "the thread that writes the capture cannot be created");
	if (rc < 0) {
		if (cap.file != NULL)
			unlink(path);
		capture_close();
		capture_free();
		return rc;
	}
	cap.on = true;
	rc = capture_hook(&v);
	if (rc < 0) {
		capture_end(a);
		unlink(path);
		return cmd_refuse(out, "the frames of port %u cannot be captured: %s",
			ports_label(cap.index), strerror(-rc));
	}
	return cmd_say(out, "Capturing the frames of port %u to %s.", ports_label(cap.index), path);
}

void
capture_end(struct app *a)
{
	bool quiet;

	if (!cap.on)
		return;
	quiet = capture_unhook(a);
	__atomic_store_n(&cap.stop, true, __ATOMIC_RELEASE);
	pthread_join(cap.thread, NULL);
	rte_pcapng_write_stats(cap.file, cap.port, NULL, 0, 0, cap.written, cap.lost);
	capture_close();
	if (quiet)
		capture_free();
	cap.on = false;
}

void
capture_look(struct app *a)
{
	struct eng_port_view v;

	if (!cap.on)
		return;
	eng_port_look(a->e, cap.index, &v);
	if (!v.removed)
		return;
	capture_end(a);
	sk_log(SK_LOG_WARNING,
		"the capture ended, because the device of port %u was removed: %" PRIu64
		" frames written, %" PRIu64 " lost",
		ports_label(cap.index), cap.written, cap.lost);
}

int
capture_stop(void *app, const char *arg, struct cmd_out *out)
{
	if (!cap.on)
		return cmd_refuse(out, "no capture runs");
	capture_end(app);
	cmd_number(out, "written", cap.written);
	cmd_number(out, "lost", cap.lost);
	return 0;
}
