# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Completion of saker-run's options, which --help lists, and then of a program and its files.
_saker_run() {
    local cur=${COMP_WORDS[COMP_CWORD]} i=1
    while [ "$i" -lt "$COMP_CWORD" ]; do
        case ${COMP_WORDS[i]} in
        -[sdtpl] | --socket | --devices | --transport | --poll | --library) i=$((i + 1)) ;;
        -*) ;;
        *) break ;;
        esac
        i=$((i + 1))
    done
    if [ "$i" -gt "$COMP_CWORD" ]; then
        mapfile -t COMPREPLY < <(compgen -f -W "iwarp falcon yield spin" -- "$cur")
    elif [ "$i" -lt "$COMP_CWORD" ]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    elif [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$("$1" --help | grep -oE '^ *-., --[a-z-]+' |
            grep -oE -- '--[a-z-]+')" -- "$cur")
    else
        mapfile -t COMPREPLY < <(compgen -c -- "$cur")
    fi
}
complete -F _saker_run saker-run
