# bash completion for cudiag: the command itself knows its options, findings and runs.
_cudiag() {
    local line words=("${COMP_WORDS[@]:1:COMP_CWORD}") current=${COMP_WORDS[COMP_CWORD]}
    [ "$current" = = ] && current=
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :files) compopt -o filenames -o bashdefault 2>/dev/null
                mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$current") ;;
            :commands) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -c -- "$current"; compgen -f -- "$current") ;;
            *) COMPREPLY+=("${line%%$'\t'*}") ;;
        esac
    done < <("${COMP_WORDS[0]}" complete -- "${words[@]}" 2>/dev/null)
}
complete -F _cudiag cudiag
