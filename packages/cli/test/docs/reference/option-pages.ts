import { optionsReference } from '@remora/base';
import { SettingsSchema } from '../../../../master/src/admin/settings.ts';
import { nodeSchema } from '../../../src/node-options.ts';
import { code, table } from './table.ts';

export function nodeOptionsPage(): string {
  return `# Options of a node

Every option is a flag of \`remora node\`, an environment variable, or a line of the file that \`--config\` names (the flag without its
dashes). A flag overrides a variable, and a variable overrides the file. \`remora node --print-options\` prints the result.

${optionsReference(nodeSchema).trimEnd()}
`;
}

export function settingsPage(): string {
  const rows = new SettingsSchema({ replicas: 3 })
    .describe(new Map())
    .map(({ name, defaultValue, description }) => [code(name), code(defaultValue), description]);
  return `# Settings of a cluster

Settings hold for the whole cluster, at once, and outlive restarts:

\`\`\`sh
remora admin settings
remora admin settings set down-after 5m
remora admin settings describe down-after
remora admin settings reset down-after
\`\`\`

Settings that are also [options of a node](node-options.md), such as \`split-size\`, take their first value from there.

${table(['Setting', 'Default', 'Meaning'], rows)}
`;
}
