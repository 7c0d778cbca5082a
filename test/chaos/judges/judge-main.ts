/** The process that judges a run, round by round, while it goes on. It reads the journals of all other processes. */
import { closeSync, existsSync, openSync } from 'node:fs';
import { type Finding, NOTHING } from '../../checkers/index.ts';
import { JournalTail } from '../journal/tail.ts';
import { Afterwards } from './afterwards.ts';
import { Evidence } from './evidence.ts';
import { Figures } from './figures.ts';
import { judgeRound } from './judge-round.ts';
import type { FromJudge, ToJudge } from './messages.ts';
import { Overlaps } from './overlaps.ts';
import { VisitsJudge } from './visits.ts';
import { compactionOf } from './watches.ts';

const READ_EVERY_MS = 250;
const PROGRESS_EVERY_MS = 1_000;
/** Further findings add nothing new. */
const FINDINGS_MAX = 100;

class Judge {
  readonly #figures = new Figures();
  readonly #afterwards = new Afterwards();
  readonly #overlaps = new Overlaps();
  readonly #visits = new VisitsJudge();
  readonly #evidence = new Evidence({
    operation: (operation) => this.#figures.take(operation),
    late: (r, events) => this.#tell(r, this.#afterwards.late(r, events)),
    left: (r, pairs) => this.#left.push([r, pairs]),
  });
  readonly #tails = new Map<string, JournalTail>();
  readonly #gone = new Set<string>();
  /** What the last read found. It is kept until all rounds are judged. */
  readonly #left: [r: number, pairs: readonly (readonly [string, string])[]][] = [];
  #rounds = 0;
  #compacted = 0;
  #findings = 0;

  take(message: ToJudge): void {
    switch (message.type) {
      case 'opened':
        this.#evidence.opened(message.process);
        if (!existsSync(message.file)) closeSync(openSync(message.file, 'a'));
        this.#tails.set(message.process, new JournalTail(message.file));
        return;
      case 'ended':
        this.#gone.add(message.process);
        return;
      case 'finish':
        this.read();
        this.read();
        return this.#finish(message.loadEndedNs);
    }
  }

  read(): void {
    // By now all lines about these rounds are in the journals. They are read before the rounds are judged.
    const { overUpTo } = this.#evidence;
    for (const [process, tail] of this.#tails) {
      // Checked before the last read of its journal: nothing is added afterwards.
      const gone = this.#gone.has(process);
      for (let lines = tail.read(); lines.length > 0; lines = tail.read()) {
        for (const line of lines) this.#evidence.take(process, line);
      }
      if (!gone) continue;
      this.#evidence.ended(process);
      tail.close();
      this.#tails.delete(process);
    }
    for (const round of this.#evidence.takeRounds(overUpTo)) {
      this.#compacted = Math.max(this.#compacted, compactionOf(round));
      this.#tell(round.r, judgeRound(round, { compacted: this.#compacted }));
      this.#tell(round.r, this.#visits.take(round));
      this.#afterwards.remember(round);
      this.#overlaps.take(round);
      this.#rounds += 1;
    }
  }

  progress(): void {
    send({ type: 'progress', counts: this.#figures.counts, rounds: this.#rounds });
  }

  #finish(loadEndedNs: number): void {
    this.#tell(this.#rounds, this.#visits.finish());
    for (const [r, pairs] of this.#left) this.#tell(r, this.#afterwards.left(r, pairs));
    if (this.#left.length === 0) {
      this.#tell(0, [{ result: 'undecided', property: 'the end', detail: 'nobody read what is left at the end' }]);
    }
    const figures = this.#figures.result(loadEndedNs);
    send({ type: 'result', figures, rounds: this.#rounds, overlaps: this.#overlaps.all, visits: this.#visits.figures });
    process.disconnect();
  }

  #tell(r: number, findings: readonly Finding[] = NOTHING): void {
    for (const finding of findings) {
      if (++this.#findings > FINDINGS_MAX) return;
      send({ type: 'finding', finding: { ...finding, detail: `round ${r}: ${finding.detail}` } });
    }
  }
}

function send(message: FromJudge): void {
  process.send?.(message);
}

const judge = new Judge();
const reading = setInterval(() => judge.read(), READ_EVERY_MS);
const telling = setInterval(() => judge.progress(), PROGRESS_EVERY_MS);
process.on('message', (message: ToJudge) => judge.take(message));
process.on('disconnect', () => {
  clearInterval(reading);
  clearInterval(telling);
});
