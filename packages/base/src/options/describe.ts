import { type Definitions, envName, kebabName, type OptionsSchema } from './schema.ts';

/** Describes one option for users, in every place where it can be set. */
export interface OptionDescription {
  readonly option: string;
  /** With its placeholder: `--data-dir <path>`. */
  readonly usage: string;
  /** Its key in a configuration file. */
  readonly key: string;
  readonly env: string;
  /** The default as a user would write it; undefined if there is none. */
  readonly defaultText: string | undefined;
  readonly desc: string;
  readonly group: string;
  readonly isSwitch: boolean;
}

/** Describes every option of a schema, in its order: used by `--help` and by the reference. */
export function describeOptions<D extends Definitions>(schema: OptionsSchema<D>): readonly OptionDescription[] {
  return Object.entries(schema.definitions).map(([option, definition]) => {
    const { type } = definition;
    const key = kebabName(option);
    return {
      option,
      usage: type.placeholder === '' ? `--${key}` : `--${key} ${type.placeholder}`,
      key,
      env: envName(schema.envPrefix, option),
      defaultText: definition.default === undefined ? undefined : type.show(definition.default) || undefined,
      desc: definition.desc,
      group: definition.group ?? 'Options',
      isSwitch: type.placeholder === '',
    };
  });
}

/** A reference in Markdown: one table per group, in the schema's order. */
export function optionsReference<D extends Definitions>(schema: OptionsSchema<D>): string {
  const groups = new Map<string, OptionDescription[]>();
  for (const row of describeOptions(schema)) {
    const rows = groups.get(row.group) ?? [];
    rows.push(row);
    groups.set(row.group, rows);
  }
  const sections: string[] = [];
  for (const [group, rows] of groups) {
    const lines = rows.map(
      ({ usage, env, defaultText, desc }) =>
        `| \`${cell(usage)}\` | \`${env}\` | ${defaultText === undefined ? '' : `\`${cell(defaultText)}\``} | ${cell(desc)} |`,
    );
    sections.push(
      [`### ${group}`, '', '| Flag | Variable | Default | |', '| --- | --- | --- | --- |', ...lines].join('\n'),
    );
  }
  return `${sections.join('\n\n')}\n`;
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}
