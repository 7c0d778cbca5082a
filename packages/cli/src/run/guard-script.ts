/**
 * The shell that a guard is while it waits, and what that does when the program that ends the command is no help.
 *
 * GS1. A program that a signal ended is started again: supervisors and `pkill node` reach it as they reach any Node.
 *      The number of starts is bounded.
 * GS2. Otherwise, as after an upgrade that has removed the program, the shell kills by itself, with nothing but what a
 *      POSIX shell has built in. It kills only what is certainly the command's, by the rules of CP1
 *      (command-processes.ts): the first process when its start is the known one, and in a session of the command's own
 *      every process group that has a process in that session, for as long as there is one. Where the system does not
 *      tell when a process started (no /proc), it kills nothing.
 */
import type { CommandIdentity } from '@remora/base';

const STARTS_MAX = 6;
/** Of the looks at the processes of the session. */
const ROUNDS_MAX = 1000;

/** One line on standard input says that nothing is left to do; its end says that there is. */
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

/** Arguments of `/bin/sh`; the program is what ends the command. */
export function guardArguments({ pid, start, session }: CommandIdentity, program: readonly string[]): string[] {
  return ['-c', SCRIPT, 'sh', String(pid), start, String(session), ...program];
}
