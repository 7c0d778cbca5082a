/** What the process's exit code means. `remora --help` shows this table; scripts may rely on it. */
export const EXIT_CODES = {
  ok: { code: 0, means: 'success' },
  failed: { code: 1, means: 'the cluster refused the request, or it failed as the message explains' },
  usage: { code: 2, means: 'the command line, an environment variable or the configuration file is invalid' },
  dataDir: { code: 3, means: 'the data directory is in use, damaged, or belongs to another node, cluster or version' },
  portTaken: { code: 4, means: 'a listening port is in use' },
  unavailable: {
    code: 69,
    means: 'the cluster could not be reached or did not answer in time; the last request had no effect',
  },
  internal: { code: 70, means: 'internal error (broken invariant); please report it' },
  disk: { code: 74, means: 'the disk is full or failed; acknowledged writes are also on other nodes' },
  lockBusy: { code: 75, means: 'the lock was not acquired in time' },
  lockLost: {
    code: 76,
    means: 'the lock was lost, possibly before the command had ended, or a fencing version is not current',
  },
  unknown: {
    code: 77,
    means: 'outcome unknown: the request may have taken effect or still may; check before you repeat it',
  },
  // The same codes as env, nohup and timeout use.
  cannotRun: { code: 126, means: 'the command to run exists but cannot be executed' },
  notFound: { code: 127, means: 'the command to run was not found' },
} as const;

export type ExitName = keyof typeof EXIT_CODES;

export function exitCode(name: ExitName): number {
  return EXIT_CODES[name].code;
}

/** Whether restarting the same node may help; with the other codes an operator has to change something first. */
export function mayRestart(code: number | null): boolean {
  return code === null || ![0, exitCode('usage'), exitCode('dataDir'), exitCode('portTaken')].includes(code);
}

/** A failure that the command reports in one line, without a stack, and that determines the exit code. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly exit: ExitName;
  /** That of `exit`, unless the user has chosen another one. */
  readonly code: number;

  constructor(exit: ExitName, message: string, options: { readonly cause?: unknown; readonly code?: number } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.exit = exit;
    this.code = options.code ?? exitCode(exit);
  }
}
