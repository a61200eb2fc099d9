/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reasons are counters. A layer lists its reasons once, as an X-macro of X(NAME, severity, "one
 * line of help"). This file turns such a list into an enum, a table for telemetry, prompt and
 * documentation, and a block of counters that one lcore writes.
 *
 * A parser or a check returns 0 or more for success, and -reason to refuse its input. The caller
 * then drops the input and counts the reason with sk_count().
 */
#ifndef SAKER_BASE_REASON_H
#define SAKER_BASE_REASON_H

#include <stdint.h>

enum sk_severity {
	SK_NORMAL,  /* happens on a healthy system */
	SK_NOTICE,  /* an increase deserves attention */
	SK_WARNING, /* a peer, a client or a link misbehaves */
	SK_FATAL,   /* Saker itself has an error, or lacks a resource */
};

struct sk_reason {
	const char *name; /* spelled as the enumerator */
	enum sk_severity severity;
	const char *help; /* one line */
};

struct sk_reason_list {
	const char *layer;
	const struct sk_reason *reasons; /* `count` entries; entry 0 stands for "none" */
	unsigned count;
};

#define SK_REASON_ENUM(name, sev, help) name,
#define SK_REASON_ROW(name, sev, help)  {#name, sev, help},

/* For a header: SK_REASONS_DECLARE(tcp, TCP_NONE, TCP_REASONS) declares enum tcp_reason, which
 * begins with TCP_NONE = 0 and ends with tcp_reason_count, and struct sk_reason_list
 * tcp_reasons. */
#define SK_REASONS_DECLARE(layer, NONE, LIST)                                                      \
	enum layer##_reason{NONE = 0, LIST(SK_REASON_ENUM) layer##_reason_count};                  \
	extern const struct sk_reason_list layer##_reasons;

/* For one .c file: defines the table that SK_REASONS_DECLARE() declares. */
#define SK_REASONS_DEFINE(layer_, NONE, LIST)                                                      \
	static const struct sk_reason layer_##_rows[] = {                                          \
		{#NONE, SK_NORMAL, "no reason"}, LIST(SK_REASON_ROW)};                             \
	const struct sk_reason_list layer_##_reasons = {                                           \
		.layer = #layer_, .reasons = layer_##_rows, .count = layer_##_reason_count};

/* Add 1, or `n`, to a counter. One lcore writes a block of counters; any thread may read it. */
static inline void
sk_count(uint64_t *counters, unsigned reason)
{
	__atomic_store_n(&counters[reason], counters[reason] + 1, __ATOMIC_RELAXED);
}

static inline void
sk_count_n(uint64_t *counters, unsigned reason, uint64_t n)
{
	__atomic_store_n(&counters[reason], counters[reason] + n, __ATOMIC_RELAXED);
}

#endif
