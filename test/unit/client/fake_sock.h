/* SPDX-License-Identifier: BSD-3-Clause */
/* The scripted engine behind a real Unix socket, in a thread that sleeps: the loss of a wake-up
 * hangs the test. */
#ifndef TEST_CLIENT_FAKE_SOCK_H
#define TEST_CLIENT_FAKE_SOCK_H

#include <pthread.h>

#include "fake.h"

struct fake_sock {
	struct fake f; /* `lock` protects it while the thread runs */
	pthread_mutex_t lock;
	pthread_t thread;
	char path[64];
	int listen, sock, wake_engine, stop;
	/* The contents of its WELCOME. */
	const char *refuse_hello;
	int32_t refuse_status; /* of refuse_hello; 0: -EUSERS */
	bool wrong_magic, few_fds;
	uint64_t region_most; /* larger regions are refused */
	/* The contents of the messages of the client. */
	char name[128];
	uint32_t regions, refused_regions;
	uint64_t region_size[32];
	uint8_t *region[32];
	bool sealed;    /* all regions were sealed */
	uint32_t wakes; /* wake-ups of the engine */
};

/* Starts the thread. The test has set the fields of the WELCOME. */
void fake_sock_start(struct fake_sock *k);
/* Closes the socket and ends the thread. */
void fake_sock_stop(struct fake_sock *k);

#endif
