# SPDX-License-Identifier: BSD-3-Clause
"""The rules of the source tree as data: rooms, their order, private headers, prefixes of names.

A room is a folder with an entry in ROOMS or, without one, a library (lib/tcp), a driver
(drivers/verbs) or a program (app/saker). A file belongs to the deepest room above it. A room that
does not exist yet is no fault.
"""

# The libraries: lib/meson.build's list `layers`. A library uses only itself and the entries above
# it. Drivers use every library, programs use every library and driver.
LAYERS_FILE = 'lib/meson.build'

_COMMON = 'lib/engine/common'
_TRANSPORT = 'lib/engine/transport'
_FALCON = 'lib/engine/transport/falcon'
_IWARP = 'lib/engine/transport/iwarp'
_STAGE = 'lib/engine/stage'
_CONTROL = 'lib/engine/control'
_CORE = 'lib/engine/control/core'
_REGISTRY = 'lib/engine/control/registry'
_CM = 'lib/engine/control/cm'
_ATTACH = 'lib/engine/control/attach'

# Rooms within a library, a driver or the programs: room -> the sibling rooms that it uses.
# The three stages of the engine never use each other. They share only `common`.
ROOMS = {
    _COMMON: [],
    _TRANSPORT: [_COMMON],
    _FALCON: [_COMMON, _TRANSPORT],
    _IWARP: [_COMMON, _TRANSPORT],
    _STAGE: [_COMMON],
    _CORE: [_COMMON],
    _REGISTRY: [_COMMON, _CORE],
    _CM: [_COMMON, _CORE, _REGISTRY],
    _ATTACH: [_COMMON, _CORE, _REGISTRY, _CM],
    _CONTROL: [_COMMON, _CORE, _REGISTRY, _CM, _ATTACH],
    # The assembly: the files directly in lib/engine.
    'lib/engine': [_COMMON, _TRANSPORT, _FALCON, _IWARP, _STAGE, _CORE, _REGISTRY, _CM, _ATTACH,
                   _CONTROL],
    'drivers/net/impair': [],
    'drivers/verbs/cm': ['drivers/verbs'],
    'drivers/verbs/rsocket': ['drivers/verbs'],
    'drivers/verbs/sockets': ['drivers/verbs', 'drivers/verbs/rsocket'],
}

# Headers that count as part of another room than their folder's.
HEADERS = {
    # The engine's public headers declare the configuration and the devices that its rooms use.
    'lib/engine/engine.h': _COMMON,
    'lib/engine/device.h': _COMMON,
}

# Pairs that the order of the list permits and that stay apart nevertheless.
NEVER = [
    # A client process links neither the engine nor DPDK.
    ('lib/client', 'lib/engine'),
    ('lib/move', 'lib/engine'),
]

# A *_priv.h is included by the files of its own folder and of the folders named here.
PRIVATE_USERS = {
    _TRANSPORT: [_FALCON, _IWARP],
    'drivers/verbs': ['drivers/verbs/cm', 'drivers/verbs/rsocket', 'drivers/verbs/sockets'],
    'drivers/verbs/rsocket': ['drivers/verbs/sockets'],
    'lib/client': ['lib/client/attach'],
}

# Folders whose static functions may share names. Each example is one program in one file, which a
# newcomer reads for itself.
OWN_NAMES = ('app/examples/',)

# Prefixes of the global symbols of each library. `=name` permits one name.
PREFIXES = {
    'lib/base': ['sk_'],
    'lib/conf': ['conf_'],
    'lib/command': ['cmd_'],
    'lib/wire': ['wire_'],
    'lib/net': ['net_'],
    'lib/tcp': ['tcp_'],
    'lib/falcon': ['fa_', 'psp_', 'pdl_', 'tl_', 'rue_'],
    'lib/rdma': ['rd_'],
    'lib/iwarp': ['iw_', 'mpa_', 'sctp_'],
    'lib/rof': ['rof_', 'rofx_'],
    'lib/shm': ['shm_'],
    'lib/engine': ['eng_', 'ctl_', 'cm_'],
    'lib/move': ['mv_'],
    'lib/client': ['saker_', 'cl_', 'sk_'],
    'drivers/gateway': ['gw_', 'sw_'],
    # The functions of libibverbs and librdmacm that the library replaces, and its own.
    'drivers/verbs': ['vb_', 'ibv_', 'rdma_', '_ibv_',
                      '=mult_to_ibv_rate', '=mbps_to_ibv_rate',
                      # <rdma/rsocket.h>
                      '=rsocket', '=rbind', '=rlisten', '=raccept', '=rconnect', '=rshutdown',
                      '=rclose', '=rrecv', '=rrecvfrom', '=rrecvmsg', '=rread', '=rreadv',
                      '=rsend', '=rsendto', '=rsendmsg', '=rwrite', '=rwritev', '=rpoll',
                      '=rselect', '=rfcntl', '=rgetpeername', '=rgetsockname', '=rsetsockopt',
                      '=rgetsockopt', '=riomap', '=riounmap', '=riowrite'],
    'drivers/net': ['impair_'],
}

# Libraries that programs outside the tree use: the prefixes of the symbols that these do not call.
# Any other symbol may be without a user in the tree.
INTERNAL = {
    'lib/client': ['cl_'],
    'drivers/verbs': ['vb_'],
}

# Libraries that replace functions of the C library: their symbols have its names.
REPLACERS = ('drivers/verbs/libsaker-sockets.so', 'drivers/verbs/libsaker-sysfs.so')

# The variables SAKER_... that saker accepts in its environment: those of its settings (SAKER_MTU,
# SAKER_TCP_CC), and those that other programs and libraries of Saker, and its tests, read.
ENVIRONMENT_FILE = 'app/saker/settings.c'
SETTINGS_LIST = 'rows'
ENVIRONMENT_LIST = 'env_others'

# Where code stands: each include, each static name and each trailing comment here is checked.
CODE = ('lib/', 'drivers/', 'app/')
