# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Completion of sakerctl's commands, by the running saker, and of its options, by --help.
_sakerctl() {
    local cur=${COMP_WORDS[COMP_CWORD]} socket=() i=1 word
    COMPREPLY=()
    while [ "$i" -lt "$COMP_CWORD" ]; do
        word=${COMP_WORDS[i]}
        case $word in
        -s | --socket)
            i=$((i + 1))
            if [ "$i" -ge "$COMP_CWORD" ]; then
                mapfile -t COMPREPLY < <(compgen -f -- "$cur")
                return
            fi
            socket=(--socket "${COMP_WORDS[i]}")
            ;;
        -*) ;;
        *) break ;;
        esac
        i=$((i + 1))
    done
    if [ "$i" = "$COMP_CWORD" ] && [[ $cur == -* ]]; then
        word=$("$1" --help | grep -oE -- '--[a-z-]+')
    else
        word=$("$1" "${socket[@]}" --complete "${COMP_WORDS[*]:i:COMP_CWORD-i+1}" 2>/dev/null)
    fi
    mapfile -t COMPREPLY < <(compgen -W "$word" -- "$cur")
}
complete -F _sakerctl sakerctl
