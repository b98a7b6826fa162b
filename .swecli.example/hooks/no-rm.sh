#!/bin/sh
# PreToolUse, matcher "Bash": blocks commands with rm and gives the model the reason.
# The event is JSON on stdin. Exit 2 blocks and sends stderr to the model; exit 0 continues.
command=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["tool_input"]["command"])')
case " $command " in
*[\ \;\&\|]rm\ *)
    echo "rm is not allowed here. Move the file to .trash instead." >&2
    exit 2
    ;;
esac
