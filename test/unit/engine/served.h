/* SPDX-License-Identifier: BSD-3-Clause */
/* A scripted control stage that serves the Unix socket, while a thread of the rig runs its turns.
 */
#ifndef TEST_ENGINE_SERVED_H
#define TEST_ENGINE_SERVED_H

#include <pthread.h>

#include "script.h"

struct served {
	struct script *s;
	pthread_t thread;
	bool stop; /* atomic */
	char path[64];
};

/* Creates the script and its socket. Each turn takes 10 ms of the script's clock. */
void served_start(struct served *d);
/* Waits until all clients have left, and checks that nothing is left of them, nor of the socket. */
void served_end(struct served *d);
/* Returns a connection to the socket. */
int served_dial(const struct served *d);

#endif
