/** The command: `node test/checkers/main.mjs [--states N] FILE…` checks histories in JSON lines. */
import { createReadStream } from 'node:fs';
import { type AnyRecord, readJsonLines } from './json-lines.ts';
import { judge } from './judge.ts';

const USAGE = `node test/checkers/main.mjs [--states N] FILE…

Checks histories, one JSON object per line (docs/testing/checkers.md), and prints what they show.
  --states N   configurations to look at per key before giving up (1000000)
Ends with 0: all explained; 1: a violation; 2: undecided; 3: not a history.
`;

const EXIT = { ok: 0, violation: 1, undecided: 2, unusable: 3 } as const;

export async function main(
  argv: readonly string[],
  print: (line: string) => void = (line) => console.log(line),
): Promise<number> {
  const at = argv.indexOf('--states');
  const files = at < 0 ? argv : argv.filter((_, i) => i !== at && i !== at + 1);
  const statesMax = at < 0 ? undefined : Number(argv[at + 1]);
  const wrong = statesMax !== undefined && !(Number.isSafeInteger(statesMax) && statesMax > 0);
  if (wrong || files.length === 0 || files.some((file) => file.startsWith('-'))) {
    print(USAGE.trimEnd());
    return EXIT.unusable;
  }
  const results = new Set<keyof typeof EXIT>();
  for (const file of files) results.add(await checkFile(file, statesMax === undefined ? {} : { statesMax }, print));
  for (const result of ['unusable', 'violation', 'undecided'] as const) if (results.has(result)) return EXIT[result];
  return EXIT.ok;
}

async function checkFile(
  file: string,
  options: { readonly statesMax?: number },
  print: (line: string) => void,
): Promise<keyof typeof EXIT> {
  try {
    const history: AnyRecord[] = [];
    for await (const record of readJsonLines(createReadStream(file, 'utf8'))) history.push(record);
    const judgements = judge(history, options);
    if (judgements.length === 0) print(`${file}: no operations`);
    for (const { what, result, explanation } of judgements) {
      print(`${file}: ${what}: ${result}`);
      if (explanation !== '') print(explanation);
    }
    if (judgements.some(({ result }) => result === 'violation')) return 'violation';
    return judgements.some(({ result }) => result === 'undecided') ? 'undecided' : 'ok';
  } catch (error) {
    print(`${file}: ${error instanceof Error ? error.message : String(error)}`);
    return 'unusable';
  }
}
