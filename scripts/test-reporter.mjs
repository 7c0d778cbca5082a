// Vitest's reporter for `npm test`. When all is well its output fits on a screen.
//
// P1. While the tests run: on a terminal one line that is overwritten, otherwise one line a minute.
// P2. A test that fails is named at once, with what it printed; at the end all errors are printed in full.
// P3. What a passing test prints is dropped. Its annotations are printed at the end, at most NOTES_MAX of them.
// P4. Skipped tests are listed with the name of their suite, which says what they lack (test/support/needs.ts).
// P5. The slowest files are listed if there are many: they decide how long a run takes. Those of ten seconds and more
//     belong in test/support/longest-first.ts.
// P6. The counts go to the file that REMORA_TEST_COUNTS names. A file that does not load, and an error outside any
//     test, are one failure each.
import { writeFileSync } from 'node:fs';
import { MinimalReporter } from 'vitest/node';

const LINE_EVERY_MS = 60_000;
const REDRAW_EVERY_MS = 500;
const NOTES_MAX = 12;
const SLOWEST_MAX = 8;
const CLEAR_LINE = '\r\x1b[K';

// Vitest loads a reporter by its default export.
export default class TestReporter extends MinimalReporter {
  #files = { total: 0, done: 0 };
  #counts = { passed: 0, failed: 0, skipped: 0 };
  #running = new Set();
  #notes = [];
  #startedAt = 0;
  #timer;
  #drawn = false;

  log(...messages) {
    this.#clear();
    super.log(...messages);
  }

  error(...messages) {
    this.#clear();
    super.error(...messages);
  }

  onTestRunStart(specifications) {
    super.onTestRunStart(specifications);
    this.#files.total = specifications.length;
    this.#startedAt = performance.now();
    // P1
    this.#timer = this.isTTY
      ? setInterval(() => this.#draw(), REDRAW_EVERY_MS)
      : setInterval(() => this.log(this.#progress()), LINE_EVERY_MS);
    this.#timer.unref();
  }

  onTestModuleStart(module) {
    this.#running.add(this.relative(module.moduleId));
  }

  onTestModuleEnd(module) {
    this.#running.delete(this.relative(module.moduleId));
    this.#files.done += 1;
    super.onTestModuleEnd(module);
  }

  onTestCaseResult(test) {
    const { state } = test.result();
    if (state in this.#counts) this.#counts[state] += 1;
    if (state === 'failed') this.log(`FAILED ${placeOf(test)}`); // P2
    super.onTestCaseResult(test);
  }

  onTestCaseAnnotate(test, { message }) {
    this.#notes.push(`${placeOf(test)}: ${message}`);
  }

  onTestRunEnd(modules, unhandledErrors, reason) {
    clearInterval(this.#timer);
    this.#clear();
    super.onTestRunEnd(modules, unhandledErrors, reason);
    this.#list('Notes', this.#notes); // P3
    this.#list('Skipped', skippedIn(modules)); // P4
    if (modules.length > SLOWEST_MAX) this.#list('Slowest files', slowestOf(modules)); // P5
    const file = process.env.REMORA_TEST_COUNTS;
    if (file) writeFileSync(file, JSON.stringify(countsOf(modules, unhandledErrors))); // P6
  }

  #progress() {
    const { total, done } = this.#files;
    const { passed, failed } = this.#counts;
    const seconds = Math.round((performance.now() - this.#startedAt) / 1_000);
    const time = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
    return `${time}  ${done} of ${total} files, ${passed} tests passed, ${failed} failed`;
  }

  #draw() {
    const text = `${this.#progress()}  ${[...this.#running].at(-1) ?? ''}`;
    process.stdout.write(`${CLEAR_LINE}${text.slice(0, (process.stdout.columns ?? 80) - 1)}`);
    this.#drawn = true;
  }

  #clear() {
    if (this.#drawn) process.stdout.write(CLEAR_LINE);
    this.#drawn = false;
  }

  #list(title, lines) {
    if (lines.length === 0) return;
    this.log(`${title}:`);
    for (const line of lines.slice(0, NOTES_MAX)) this.log(`  ${line}`);
    if (lines.length > NOTES_MAX) this.log(`  and ${lines.length - NOTES_MAX} more`);
    this.log();
  }
}

function placeOf(test) {
  return `${test.module.relativeModuleId} > ${test.fullName}`;
}

/** A line for each outermost suite of which every test was skipped, and for each other test that was. */
function skippedIn(modules) {
  const counts = new Map();
  for (const module of modules) {
    for (const test of module.children.allTests('skipped')) {
      const place = placeOf(outermostSkipped(test));
      counts.set(place, (counts.get(place) ?? 0) + 1);
    }
  }
  return [...counts].map(([place, count]) => (count === 1 ? place : `${place} (${count} tests)`));
}

function outermostSkipped(test) {
  let outermost = test;
  for (let suite = test.parent; suite.type === 'suite'; suite = suite.parent) {
    if (suite.state() === 'skipped') outermost = suite;
  }
  return outermost;
}

function slowestOf(modules) {
  const took = modules.map((module) => {
    const { collectDuration, setupDuration, duration } = module.diagnostic();
    return { path: module.relativeModuleId, seconds: (collectDuration + setupDuration + duration) / 1_000 };
  });
  took.sort((a, b) => b.seconds - a.seconds);
  return took.slice(0, SLOWEST_MAX).map(({ path, seconds }) => `${seconds.toFixed(0).padStart(4)} s  ${path}`);
}

function countsOf(modules, unhandledErrors) {
  const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
  for (const module of modules) {
    counts.failed += module.errors().length;
    for (const suite of module.children.allSuites()) counts.failed += suite.errors().length;
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      if (state in counts) counts[state] += 1;
    }
  }
  return counts;
}
