/** Identities of this machine's processes that stay valid after the id was reused. */

/**
 * Distinguishes a process from all others, also from later ones with the same id. Text is empty where it is not known.
 */
export interface ProcessIdentity {
  readonly host: string;
  /** From one start of the machine to the next. */
  readonly boot: string;
  /** The space in which process ids are unique. Each container has its own. */
  readonly space: string;
  readonly pid: number;
  /** When the process started, in the system's own unit. */
  readonly start: string;
}

/** A command: its first process, and the processes started by it that did not leave its session. */
export interface CommandIdentity extends ProcessIdentity {
  /** The command's session; equal to `pid` if the command has a session of its own. */
  readonly session: number;
  /** An entry of its environment, `NAME=value`, that no other process has; empty: none. */
  readonly mark: string;
}
