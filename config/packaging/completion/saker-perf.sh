# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Completion of saker-perf's options, which --help lists, and of files.
_saker_perf() {
    local cur=${COMP_WORDS[COMP_CWORD]}
    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$("$1" --help | grep -oE '^ *(-., )?--[a-z-]+' |
            grep -oE -- '--[a-z-]+')" -- "$cur")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    fi
}
complete -F _saker_perf saker-perf
