import type { SettingJson } from '@remora/gateway/http/json/cluster';
import { useState } from 'preact/hooks';
import { steeringRefusal } from '../../api/access.ts';
import { setSetting, settings } from '../../api/cluster.ts';
import { useResource } from '../../app/hooks.ts';
import { Action } from '../../kit/action.tsx';
import { Badge } from '../../kit/badge.tsx';
import { Command } from '../../kit/command.tsx';
import { Search } from '../../kit/form.tsx';
import { Card, Page } from '../../kit/page.tsx';
import { Empty, Loaded } from '../../kit/states.tsx';
import { type Column, Table } from '../../kit/table.tsx';
import { Text } from '../../kit/text.tsx';
import { Upgrade } from './upgrade.tsx';

/** The settings of the cluster, with what they mean, and the version in force. */
export function SettingsPage() {
  const all = useResource('settings', settings, { everyMs: 10_000 });
  const [typed, setTyped] = useState('');
  const wanted = typed.trim().toLowerCase();
  const columns: readonly Column<SettingJson>[] = [
    ...COLUMNS,
    { title: '', width: 'shrink', cell: (setting) => <Change setting={setting} done={all.reload} /> },
  ];
  return (
    <Page title="Settings">
      <div class="row">
        <Search label="Search settings" value={typed} change={setTyped} />
      </div>
      <Card isFlush>
        <Loaded of={all} lines={12}>
          {({ settings: rows }) => (
            <Table
              label="Settings"
              columns={columns}
              rows={rows.filter(({ name, description }) => `${name} ${description}`.toLowerCase().includes(wanted))}
              keyOf={({ name }) => name}
              empty={<Empty title="No setting matches." />}
            />
          )}
        </Loaded>
      </Card>
      <Upgrade />
      <Command words={['remora', 'admin', 'settings']} />
    </Page>
  );
}

const COLUMNS: readonly Column<SettingJson>[] = [
  {
    title: 'Setting',
    cell: ({ name, description }) => (
      <span class="parts parts-lines">
        <code>{name}</code>
        <span class="muted">
          <Text value={description} max={500} />
        </span>
      </span>
    ),
  },
  {
    title: 'Value',
    cell: ({ value, defaultValue }) => (
      <span class="row">
        <code>{value}</code>
        {value !== defaultValue && <Badge tone="info">changed</Badge>}
      </span>
    ),
  },
  { title: 'Default', isMinor: true, cell: ({ defaultValue }) => <code class="muted">{defaultValue}</code> },
];

function Change({ setting, done }: { readonly setting: SettingJson; done(): void }) {
  const { name, value, defaultValue, placeholder, description } = setting;
  return (
    <Action
      label="Change"
      isSmall
      title={`Change ${name}`}
      explanation={<Text value={description} max={600} />}
      refusal={steeringRefusal()}
      fields={[
        {
          name: 'value',
          label: 'Value',
          initial: value,
          placeholder,
          hint: `${placeholder}. Empty: back to the default, ${defaultValue}.`,
        },
      ]}
      command={({ value: wanted = '' }) =>
        wanted === ''
          ? ['remora', 'admin', 'settings', 'reset', name]
          : ['remora', 'admin', 'settings', 'set', name, wanted]
      }
      run={async ({ value: wanted = '' }) => {
        await setSetting(name, wanted);
        return wanted === '' ? `${name} is back at its default.` : `${name} is ${wanted}.`;
      }}
      done={done}
    />
  );
}
