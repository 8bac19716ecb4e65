# fish completion for cudiag: the command itself knows its options, findings and runs.
function __cudiag_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in ($words[1] complete -- $words[2..-1] "$current" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path "$current"
            case :commands
                __fish_complete_command
                __fish_complete_path "$current"
            case '*'
                echo $line
        end
    end
end
complete -c cudiag -f -a '(__cudiag_complete)'
