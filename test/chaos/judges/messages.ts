/** The messages between a run and the process that judges it. */
import type { Finding } from '../../checkers/index.ts';
import type { How } from '../journal/lines.ts';
import type { FigureData } from './figures.ts';
import type { Overlap } from './overlaps.ts';
import type { VisitFigures } from './visits.ts';

export type ToJudge =
  /** A process begins to write. Sent before it does. */
  | { readonly type: 'opened'; readonly process: string; readonly file: string }
  /** A process is gone. */
  | { readonly type: 'ended'; readonly process: string }
  /** All processes are gone: judge what is left and report the result. `loadEndedNs`: the end of the load. */
  | { readonly type: 'finish'; readonly loadEndedNs: number };

export type FromJudge =
  | {
      readonly type: 'progress';
      readonly counts: Readonly<Record<How, number>>;
      /** The number of judged rounds. */
      readonly rounds: number;
    }
  | { readonly type: 'finding'; readonly finding: Finding }
  | {
      readonly type: 'result';
      readonly figures: FigureData;
      readonly rounds: number;
      readonly overlaps: readonly Overlap[];
      readonly visits: VisitFigures;
    };
