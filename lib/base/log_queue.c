/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of lines with a turn in each entry. Entry i % SK_LOG_QUEUE is free for line number i while
 * its turn is i, and has that line while its turn is i + 1. A thread that logs takes the next
 * number by compare and exchange, and never waits for another one.
 */
#include "log_queue.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "wake.h"

struct queue_entry {
	uint32_t turn; /* atomic */
	enum sk_log_level level;
	char line[SK_LOG_LINE];
};

static struct log_queue {
	struct queue_entry entry[SK_LOG_QUEUE];
	uint32_t next;     /* atomic: number of the next line */
	uint32_t lost;     /* atomic: lines since the last message about them */
	bool asleep, stop; /* atomic; asleep: a write to `fd` is necessary */
	int fd;            /* eventfd */
	bool runs;
	pthread_t thread;
	void (*sink)(enum sk_log_level level, const char *line);
} queue;

/* The sink of sk_log() while the thread runs. */
static void
log_put(enum sk_log_level level, const char *line)
{
	uint32_t i = __atomic_load_n(&queue.next, __ATOMIC_RELAXED);
	struct queue_entry *e;

	for (;;) {
		int32_t ahead;

		e = &queue.entry[i % SK_LOG_QUEUE];
		ahead = (int32_t)(__atomic_load_n(&e->turn, __ATOMIC_ACQUIRE) - i);
		if (ahead < 0) {
			__atomic_add_fetch(&queue.lost, 1, __ATOMIC_RELAXED);
			return;
		}
		if (ahead == 0 && __atomic_compare_exchange_n(&queue.next, &i, i + 1, true,
					  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			break;
		if (ahead > 0)
			i = __atomic_load_n(&queue.next, __ATOMIC_RELAXED);
	}
	e->level = level;
	snprintf(e->line, sizeof(e->line), "%s", line);
	__atomic_store_n(&e->turn, i + 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&queue.asleep, __ATOMIC_SEQ_CST))
		sk_wake(queue.fd);
}

/* Passes on line number `i`. Returns false when there is none yet. */
static bool
queue_take(uint32_t i)
{
	struct queue_entry *e = &queue.entry[i % SK_LOG_QUEUE];

	if (__atomic_load_n(&e->turn, __ATOMIC_SEQ_CST) != i + 1)
		return false;
	queue.sink(e->level, e->line);
	__atomic_store_n(&e->turn, i + SK_LOG_QUEUE, __ATOMIC_RELEASE);
	return true;
}

static void
report_lost(void)
{
	uint32_t lost = __atomic_exchange_n(&queue.lost, 0, __ATOMIC_RELAXED);
	char line[96];

	if (lost == 0)
		return;
	snprintf(line, sizeof(line), "%u messages are lost: they came faster than they are written",
		lost);
	queue.sink(SK_LOG_WARNING, line);
}

static void *
queue_run(void *arg)
{
	uint32_t i = 0;
	uint64_t n;

	for (;;) {
		bool stop = __atomic_load_n(&queue.stop, __ATOMIC_SEQ_CST);

		while (queue_take(i))
			i++;
		report_lost();
		if (stop)
			return NULL;
		__atomic_store_n(&queue.asleep, true, __ATOMIC_SEQ_CST);
		if (queue_take(i))
			i++;
		else if (!__atomic_load_n(&queue.stop, __ATOMIC_SEQ_CST) &&
			 read(queue.fd, &n, sizeof(n)) < 0 && errno != EINTR)
			return NULL;
		__atomic_store_n(&queue.asleep, false, __ATOMIC_SEQ_CST);
	}
}

int
sk_log_queue_start(void (*sink)(enum sk_log_level level, const char *line))
{
	sigset_t all, before;
	int rc;

	memset(&queue, 0, sizeof(queue));
	for (uint32_t i = 0; i < SK_LOG_QUEUE; i++)
		queue.entry[i].turn = i;
	queue.sink = sink;
	queue.fd = eventfd(0, EFD_CLOEXEC);
	if (queue.fd < 0)
		return -errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for other threads */
	rc = pthread_create(&queue.thread, NULL, queue_run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0) {
		close(queue.fd);
		return -rc;
	}
	pthread_setname_np(queue.thread, "saker-log");
	queue.runs = true;
	sk_log_set(SK_LOG_DEBUG, log_put);
	return 0;
}

void
sk_log_queue_stop(void)
{
	if (!queue.runs)
		return;
	__atomic_store_n(&queue.stop, true, __ATOMIC_SEQ_CST);
	sk_wake(queue.fd);
	pthread_join(queue.thread, NULL);
	close(queue.fd);
	queue.runs = false;
	sk_log_set(SK_LOG_DEBUG, queue.sink);
}
