#!/bin/sh
# PreToolUse, matcher "Bash": commands with rm are blocked, and the model reads why.
# The event is JSON on stdin; exit 2 blocks and stderr goes to the model, exit 0 goes on.
command=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["tool_input"]["command"])')
case " $command " in
*[\ \;\&\|]rm\ *)
    echo "rm is not allowed here. Move the file to .trash instead." >&2
    exit 2
    ;;
esac
