/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue between sk_log() and a sink that may block, such as a terminal or the system's log: a
 * thread passes the lines on, so that no thread that logs waits. Lines that find the queue full are
 * lost, and a line says how many.
 */
#ifndef SAKER_BASE_LOG_QUEUE_H
#define SAKER_BASE_LOG_QUEUE_H

#include "log.h"

#define SK_LOG_QUEUE 256 /* lines that may wait */

/* Starts the thread, which has the caller's scheduling policy and processors, and makes the queue
 * the sink of sk_log(). No other thread logs meanwhile. Returns 0, or -errno, and then changes
 * nothing. */
int sk_log_queue_start(void (*sink)(enum sk_log_level level, const char *line));
/* Waits until all lines have been passed on, ends the thread, and makes `sink` of
 * sk_log_queue_start() the sink of sk_log(). No other thread logs meanwhile. Does nothing if the
 * thread does not run. */
void sk_log_queue_stop(void);

#endif
