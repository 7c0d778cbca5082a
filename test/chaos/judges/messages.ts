/** What a run says to the process that judges it, and that to the run. */
import type { Finding } from '../../checkers/index.ts';
import type { How } from '../journal/lines.ts';
import type { FigureData } from './figures.ts';
import type { Overlap } from './overlaps.ts';

export type ToJudge =
  /** A process begins to write. Comes before it does. */
  | { readonly type: 'opened'; readonly process: string; readonly file: string }
  /** A process is gone. */
  | { readonly type: 'ended'; readonly process: string }
  /** All are gone: judge what is left, and tell the result. `loadEndedNs`: when the load ended. */
  | { readonly type: 'finish'; readonly loadEndedNs: number };

export type FromJudge =
  | {
      readonly type: 'progress';
      readonly counts: Readonly<Record<How, number>>;
      /** So many rounds were judged. */
      readonly rounds: number;
    }
  | { readonly type: 'finding'; readonly finding: Finding }
  | {
      readonly type: 'result';
      readonly figures: FigureData;
      readonly rounds: number;
      readonly overlaps: readonly Overlap[];
    };
