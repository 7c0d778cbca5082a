/** Names for processes of this machine that still mean the same process after its id was given to another one. */

/** Tells a process from all others, also from one that was given its id later. Text is empty where it is not known. */
export interface ProcessIdentity {
  readonly host: string;
  /** From one start of the machine to the next. */
  readonly boot: string;
  /** The space in which process ids are unique. Each container has its own. */
  readonly space: string;
  readonly pid: number;
  /** When it started, in whatever the system counts. */
  readonly start: string;
}

/** A command: its first process, and what that started and did not leave its session. */
export interface CommandIdentity extends ProcessIdentity {
  /** The session that it is in; the same as `pid` where the command has a session of its own. */
  readonly session: number;
  /** An entry of its environment, `NAME=value`, that no other process's has; empty: none. */
  readonly mark: string;
}
