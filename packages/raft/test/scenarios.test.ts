// Runs the scenarios: `scenarios/*.txt`, each a test. REWRITE=1 writes the traces anew; the difference is reviewed.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { runCommand } from './runner/commands.ts';
import { answered } from './runner/datadriven.ts';
import { traceViolations } from './runner/trace-checker.ts';
import { World } from './runner/world.ts';

const DIR = fileURLToPath(new URL('scenarios/', import.meta.url));
const REWRITE = process.env.REWRITE === '1';

const files = readdirSync(DIR)
  .filter((file) => file.endsWith('.txt'))
  .sort();

describe('scenario', () => {
  test.each(files)('%s', (file) => {
    const text = readFileSync(DIR + file, 'utf8');
    const header = text.slice(0, text.search(/^[^#]/m));
    expect(header).toMatch(/^# Source: .+/m);
    expect(header).toMatch(/^# Must happen: .+/m);
    const world = new World();
    const actual = answered(text, (args) => runCommand(world, args));
    expect(traceViolations(world.events)).toEqual([]);
    if (REWRITE && actual !== text) writeFileSync(DIR + file, actual);
    else expect(actual).toBe(text);
  });
});
