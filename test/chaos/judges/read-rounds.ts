import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { JournalTail } from '../journal/tail.ts';
import { Evidence, type Round } from './evidence.ts';

/** Reads all journals of a run again after it is over. */
export function readRounds(dir: string): readonly Round[] {
  const evidence = new Evidence({ operation: () => {}, late: () => {}, left: () => {} });
  const files = readdirSync(dir).filter((file) => file.endsWith('.jsonl'));
  for (const file of files) {
    const process = basename(file, '.jsonl');
    const tail = new JournalTail(join(dir, file));
    evidence.opened(process);
    for (let lines = tail.read(); lines.length > 0; lines = tail.read()) {
      for (const line of lines) evidence.take(process, line);
    }
    evidence.ended(process);
    tail.close();
  }
  return evidence.takeRounds(evidence.overUpTo);
}
