/** How workloads send requests, and record the requests and the answers. */
import { ServiceError } from '@remora/base';
import type { Workload } from '../journal/lines.ts';
import type { Client } from './workload.ts';

export interface Question {
  readonly w: Workload;
  readonly r: number;
  /** In the workload's own form. */
  readonly q: object;
}

/** The answer. Undefined: there was none, or one of another type. `told` returns the part of it that is recorded. */
export async function ask<T>(
  { journal }: Client,
  { w, r, q }: Question,
  question: () => Promise<T>,
  told: (answer: T) => object = () => ({}),
): Promise<T | undefined> {
  const operation = journal.begin(w, r, q);
  try {
    const answer = await question();
    operation.end('done', { a: told(answer) });
    return answer;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { code } = error;
    operation.end(error.mayBeApplied ? 'unknown' : 'refused', { code });
    return undefined;
  }
}
