import { type Definitions, describeOptions, type OptionSources, type OptionsSchema } from '@remora/base';
import { type Command, Option } from 'commander';

/** Gives a command one flag per option of a schema, with its default and its variable in the help text. */
export function addSchemaFlags<D extends Definitions>(command: Command, schema: OptionsSchema<D>): void {
  for (const { usage, desc, defaultText, env, group, isSwitch, option } of describeOptions(schema)) {
    // Values stay text here: the schema reads them, so that flags and variables follow the same rules.
    const flag = new Option(isSwitch ? `${usage} [true|false]` : usage, `${desc} (${shown(defaultText)}${env})`);
    flag.helpGroup(`${group}:`);
    if (isSwitch) flag.preset('true');
    if (usage.includes(',...')) {
      flag.argParser((value, previous: readonly string[] | undefined) => [...(previous ?? []), value]);
    }
    if (flag.attributeName() !== option) throw new Error(`flag ${usage} does not stand for option ${option}`);
    command.addOption(flag);
  }
}

function shown(defaultText: string | undefined): string {
  return defaultText === undefined ? '' : `default: ${defaultText}; `;
}

/** The part of a command's parsed flags that belongs to a schema. */
export function schemaFlags<D extends Definitions>(
  schema: OptionsSchema<D>,
  parsed: Readonly<Record<string, unknown>>,
): NonNullable<OptionSources['flags']> {
  const flags: Record<string, string | readonly string[]> = {};
  for (const option of Object.keys(schema.definitions)) {
    const value = parsed[option];
    if (typeof value === 'string') flags[option] = value;
    else if (Array.isArray(value)) flags[option] = value.map(String);
  }
  return flags;
}
