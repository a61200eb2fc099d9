/* SPDX-License-Identifier: BSD-3-Clause */
/* The handlers of all messages that the control stage receives, by type. */
#ifndef SAKER_ENGINE_TABLES_PRIV_H
#define SAKER_ENGINE_TABLES_PRIV_H

#include "core/core.h"

extern const struct ctl_command ctl_commands[SHM_OP_COUNT];
extern ctl_inbox_handler *const ctl_inbox_handlers[CTL_IN_KINDS];
extern ctl_notice *const ctl_notices[ENG_CTL_TYPES];

#endif
