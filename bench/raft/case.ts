/**
 * A case of `pnpm bench raft`, `ranges`, `locks` or `etcd`: a file in its `cases/`, named after it, that exports `run:
 * RaftCase` and `SETTINGS`, the names that its settings have on the command line.
 *
 * It starts the processes that it needs with `RaftCluster.start`, stops them before it resolves, and asserts nothing:
 * what came of it goes into the result.
 */

export interface CaseContext {
  readonly root: string;
  /** Another working tree, built, whose nodes a case may measure by turns with this one's. */
  readonly baseline: string | undefined;
  /** Other systems to measure by turns with this one, where a case can. */
  readonly peers: readonly string[];
  /** Empty, of this case alone; removed when all went well. */
  readonly dir: string;
  /** Length of one measurement, where a case measures for a time. */
  readonly seconds: number;
  /** Repetitions, of which the median counts. */
  readonly runs: number;
  /** Where processes leave their CPU profiles; undefined takes none. */
  readonly profileDir: string | undefined;
  /** `--set name=value` of the command line: a case's own settings, which its file lists. */
  readonly settings: ReadonlyMap<string, string>;
  /** Says on standard error what is going on. */
  progress(line: string): void;
}

export interface CaseBar {
  readonly text: string;
  readonly value: number;
  readonly unit: string;
  readonly met: boolean;
}

export interface CaseResult {
  /** Everything measured, as JSON. */
  readonly data: unknown;
  /** The same for people: tables. */
  readonly text: string;
  /** What the project asks for, as far as it was measured. */
  readonly bars: readonly CaseBar[];
}

export type RaftCase = (context: CaseContext) => Promise<CaseResult>;

/** What a case's file exports. */
export interface CaseModule {
  readonly run: RaftCase;
  readonly SETTINGS: readonly string[];
}

/** A setting that is a list of numbers: `--set inflight=1,64`. @throws Error that names what is wrong. */
export function numbersOf(context: CaseContext, name: string, fallback: readonly number[]): readonly number[] {
  const text = context.settings.get(name);
  if (text === undefined) return fallback;
  return text.split(',').map((part) => {
    const value = Number(part);
    if (!(value >= 0)) throw new Error(`--set ${name}: "${part}" is not a number`);
    return value;
  });
}

/** A setting that is a list of words out of `known`. @throws Error that names what is wrong. */
export function wordsOf<T extends string>(context: CaseContext, name: string, known: readonly T[]): readonly T[] {
  const text = context.settings.get(name);
  if (text === undefined) return known;
  return text.split(',').map((part) => {
    const found = known.find((word) => word === part);
    if (found === undefined) throw new Error(`--set ${name}: "${part}" is none of ${known.join(', ')}`);
    return found;
  });
}
