/** The judge of a run in a separate process: it needs CPU time that the proxies of this process cannot spare. */
import { join } from 'node:path';
import type { Finding } from '../../checkers/index.ts';
import { Program } from '../clients/program.ts';
import type { FromJudge, ToJudge } from './messages.ts';

type Progress = Extract<FromJudge, { type: 'progress' }>;
export type JudgeResult = Extract<FromJudge, { type: 'result' }>;

export class JudgeProcess {
  readonly #program: Program<FromJudge, ToJudge>;
  readonly #result: Promise<JudgeResult>;
  #progress: Progress | undefined;

  constructor(given: {
    readonly programs: string;
    readonly dir: string;
    readonly report: (finding: Finding) => void;
  }) {
    let settle: (result: JudgeResult) => void = () => {};
    const result = new Promise<JudgeResult>((resolve) => {
      settle = resolve;
    });
    this.#program = new Program({
      file: join(given.programs, 'judges/judge-main.js'),
      argument: {},
      logPath: join(given.dir, 'judge.log'),
      onMessage: (message: FromJudge) => {
        if (message.type === 'finding') given.report(message.finding);
        else if (message.type === 'progress') this.#progress = message;
        else settle(message);
      },
    });
    const failed = this.#program.ended.then((how) => {
      throw new Error(`the judge ended with ${how}:\n${this.#program.lastWords()}`);
    });
    this.#result = Promise.race([result, failed]);
    this.#result.catch(() => undefined); // Callers that request the result get the error.
  }

  get progress(): Progress | undefined {
    return this.#progress;
  }

  tell(message: ToJudge): void {
    this.#program.send(message);
  }

  /** Called after all writing has ended: judges what is left. */
  finish(loadEndedNs: number): Promise<JudgeResult> {
    this.tell({ type: 'finish', loadEndedNs });
    return this.#result;
  }

  close(): void {
    if (this.#program.running) this.#program.signal('SIGKILL');
  }
}
