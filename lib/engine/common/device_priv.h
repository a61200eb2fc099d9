/* SPDX-License-Identifier: BSD-3-Clause */
/* The function of device_peer.c, for device.c. */
#ifndef SAKER_ENGINE_DEVICE_PRIV_H
#define SAKER_ENGINE_DEVICE_PRIV_H

#include "../device.h"

/* Returns whether this process has a connection to the server of a port of net_memif that has these
 * arguments. */
bool eng_device_peer_open(const char *args);

#endif
