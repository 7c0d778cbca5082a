/** How workloads ask, and write down what they asked and were told. */
import { ServiceError } from '@remora/base';
import type { Workload } from '../journal/lines.ts';
import type { Client } from './workload.ts';

export interface Question {
  readonly w: Workload;
  readonly r: number;
  /** In the workload's own form. */
  readonly q: object;
}

/** The answer; undefined: there was none, or another one than was asked for. `told`: what is written down of it. */
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
