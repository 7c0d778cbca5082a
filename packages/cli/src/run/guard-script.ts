/**
 * The shell script of a waiting guard, and what it does if the program that ends the command fails.
 *
 * GS1. If a signal ended the program, the script starts it again: supervisors and `pkill node` hit it like any Node
 *      process. The number of starts is bounded.
 * GS2. Otherwise, for example after an upgrade has removed the program, the shell itself kills the command, with only
 *      the built-ins of a POSIX shell. It kills only what certainly belongs to the command, by the rules of CP1
 *      (command-processes.ts): the first process if its start is the known one and, in a session of the command's own,
 *      every process group with a process in that session, for as long as there is one. If the system does not report
 *      when a process started (no /proc), it kills nothing.
 */
import type { CommandIdentity } from '@remora/base';

const STARTS_MAX = 6;
/** The maximum number of looks at the processes of the session. */
const ROUNDS_MAX = 1000;

/** One line on standard input means that nothing is left to do; the end of the input means that there is. */
const SCRIPT = `
trap '' HUP INT QUIT TERM USR1 USR2 ALRM PIPE TSTP TTIN TTOU
echo ready
read -r REMORA_GUARD && exit 0
pid=$1 start=$2 session=$3
shift 3
left=${STARTS_MAX}
while [ $left -gt 0 ]; do
  left=$((left - 1))
  "$@" && exit 0
  [ $? -ge 128 ] || break
done
[ -n "$start" ] || exit 1

# look PID: what /proc/PID/stat says after the name, which may have any character in it. False when it has ended.
look() {
  text=
  { while read -r line; do text="$text $line"; done; } <"/proc/$1/stat" || return 1
  set -f
  set -- \${text##*) }
  set +f
  state=$1 group=$3 itsSession=$4 itsStart=\${20}
  case $state in '' | Z | X | x) return 1 ;; esac
}

if [ "$session" != "$pid" ]; then
  look "$pid" && [ "$itsStart" = "$start" ] && kill -KILL "$pid"
  exit
fi
left=${ROUNDS_MAX}
found=yes
while [ -n "$found" ] && [ $left -gt 0 ]; do
  left=$((left - 1))
  found=
  # Its id was given to another process since: the command is over.
  look "$pid" && [ "$itsStart" != "$start" ] && exit
  for each in /proc/[0-9]*; do
    look "\${each#/proc/}" && [ "$itsSession" = "$session" ] || continue
    found=yes
    kill -KILL "-$group"
  done
done
`;

/** The arguments of `/bin/sh`; the program ends the command. */
export function guardArguments({ pid, start, session }: CommandIdentity, program: readonly string[]): string[] {
  return ['-c', SCRIPT, 'sh', String(pid), start, String(session), ...program];
}
