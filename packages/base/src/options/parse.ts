// O1. Every value is checked at its source; the result of `parseOptions` is complete, consistent and frozen.
// O2. A flag goes before the environment, the environment before the file, the file before the default.
// O3. Nothing is silently ignored: an unknown key is an error. The exception are foreign variables under the same
//     prefix, unless one looks like a misspelt option.
// O4. A variable with a value such as tcp://10.0.0.1:7480 is foreign: Kubernetes makes REMORA_CLIENT_PORT in pods for a
//     service that is named remora-client. No option has such values.
// O5. All problems are reported together, each with its source, its value and the correct form.
import { type Definitions, envName, kebabName, type OptionsSchema, type OptionValues } from './schema.ts';
import { suggest } from './suggest.ts';
import type { OptionType, Reading } from './types.ts';

/** O4. */
const SERVICE_LINK = /^(tcp|udp|sctp):\/\//;
/** From this edit distance on, a variable under the same prefix belongs to another program. */
const FOREIGN_DISTANCE = 3;

/** The contents of a parsed configuration file; keys are in kebab-case, like the flags. */
export interface OptionsFile {
  readonly path: string;
  readonly values: Readonly<Record<string, unknown>>;
  /** The line of each key, counted from 1. */
  readonly lines?: Readonly<Record<string, number>>;
}

export interface OptionSources {
  /** By option name in camelCase, as command line parsers return them; an array for a repeated flag. */
  readonly flags?: Readonly<Record<string, string | boolean | readonly string[] | undefined>>;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly file?: OptionsFile | undefined;
}

export interface OptionProblem {
  /** The place of the value: `--log-level`, `REMORA_LOG_LEVEL`, `remora.yaml:3 (log-level)`. */
  readonly source: string;
  readonly message: string;
}

/** The options are invalid: `problems` lists all problems, and the message shows them, one line each. */
export class OptionsError extends Error {
  override readonly name = 'OptionsError';
  readonly problems: readonly OptionProblem[];

  constructor(problems: readonly OptionProblem[]) {
    super(problems.map(({ source, message }) => `${source}: ${message}`).join('\n'));
    this.problems = problems;
  }
}

/**
 * Combines a process's options from their sources (O2) and checks them.
 * @throws {OptionsError} naming every wrong value, unknown key, missing value and broken relation.
 */
export function parseOptions<D extends Definitions>(schema: OptionsSchema<D>, given: OptionSources): OptionValues<D> {
  const sources = { ...given, env: withoutServiceLinks(given.env ?? {}) };
  const problems: OptionProblem[] = [...unknownKeys(schema, sources)];
  const values: Record<string, unknown> = {};
  const origins: Record<string, string> = {};
  for (const [option, definition] of Object.entries(schema.definitions)) {
    const found = find(option, definition.type, schema.envPrefix, sources);
    if (found === undefined) {
      values[option] = definition.default;
      origins[option] = 'default';
      if (definition.required) {
        const env = envName(schema.envPrefix, option);
        problems.push({ source: `--${kebabName(option)}`, message: `is required (or set ${env})` });
      }
    } else if (found.reading.ok) {
      values[option] = found.reading.value;
      origins[option] = found.source;
    } else {
      const message = `invalid value ${JSON.stringify(found.written)}: expected ${found.reading.expected}`;
      problems.push({ source: found.source, message });
    }
  }
  if (problems.length === 0) problems.push(...brokenRelations(schema, values as OptionValues<D>, origins));
  if (problems.length > 0) throw new OptionsError(problems);
  return deepFreeze(values) as OptionValues<D>;
}

/** O4. */
function withoutServiceLinks(env: NonNullable<OptionSources['env']>): NonNullable<OptionSources['env']> {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => !SERVICE_LINK.test(value ?? '')));
}

interface Given {
  readonly source: string;
  readonly written: unknown;
  readonly reading: Reading<unknown>;
}

function find(
  option: string,
  type: OptionType<unknown>,
  envPrefix: string,
  { flags = {}, env = {}, file }: OptionSources,
): Given | undefined {
  const flag = flags[option];
  if (flag !== undefined) {
    const written = typeof flag === 'boolean' ? String(flag) : typeof flag === 'string' ? flag : flag.join(',');
    return { source: `--${kebabName(option)}`, written, reading: type.parse(written) };
  }
  const variable = envName(envPrefix, option);
  const set = env[variable];
  // An empty variable counts as not set: shells and container files have no other way to unset one.
  if (set !== undefined && set !== '') return { source: variable, written: set, reading: type.parse(set) };
  const key = kebabName(option);
  const written = file?.values[key];
  if (file === undefined || written === undefined || written === null) return undefined;
  return { source: fileSource(file, key), written, reading: type.fromFile(written) };
}

function fileSource(file: OptionsFile, key: string): string {
  const line = file.lines?.[key];
  return `${file.path}${line === undefined ? '' : `:${line}`} (${key})`;
}

function* unknownKeys<D extends Definitions>(
  schema: OptionsSchema<D>,
  { flags = {}, env = {}, file }: OptionSources,
): Generator<OptionProblem> {
  const options = Object.keys(schema.definitions);
  const keys = options.map(kebabName);
  for (const [option, value] of Object.entries(flags)) {
    if (value === undefined || options.includes(option)) continue;
    yield unknown(`--${kebabName(option)}`, 'flag', suggest(kebabName(option), keys), '--');
  }
  const variables = options.map((option) => envName(schema.envPrefix, option));
  for (const variable of Object.keys(env)) {
    if (!variable.startsWith(`${schema.envPrefix}_`) || variables.includes(variable)) continue;
    const bare = (name: string) => name.slice(schema.envPrefix.length + 1);
    const meant = suggest(bare(variable), variables.map(bare), FOREIGN_DISTANCE - 1);
    if (meant !== undefined) yield unknown(variable, 'variable', meant, `${schema.envPrefix}_`);
  }
  for (const key of Object.keys(file?.values ?? {})) {
    if (file === undefined || keys.includes(key)) continue;
    yield unknown(
      fileSource(file, key),
      'key',
      keys.includes(kebabName(key)) ? kebabName(key) : suggest(key, keys),
      '',
    );
  }
}

function unknown(source: string, kind: string, meant: string | undefined, prefix: string): OptionProblem {
  const hint = meant === undefined ? 'see --help for the options' : `did you mean ${prefix}${meant}?`;
  return { source, message: `unknown ${kind}; ${hint}` };
}

function* brokenRelations<D extends Definitions>(
  schema: OptionsSchema<D>,
  values: OptionValues<D>,
  origins: Readonly<Record<string, string>>,
): Generator<OptionProblem> {
  for (const relation of schema.relations) {
    if (relation.holds(values)) continue;
    const shown = relation.between.map((option) => {
      const value = values[option];
      const text = value === undefined ? 'not set' : schema.definitions[option]?.type.show(value);
      return `${kebabName(option)} is ${text} (${origins[option]})`;
    });
    const [first = ''] = relation.between;
    yield { source: `--${kebabName(first)}`, message: `must ${relation.must}; ${shown.join(', ')}` };
  }
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    for (const inner of Object.values(value)) deepFreeze(inner);
    Object.freeze(value);
  }
  return value;
}
