import type { RoleJson } from '@remora/gateway/http/json/users';
import { Empty } from '../../kit/states.tsx';
import { Table } from '../../kit/table.tsx';
import { Text } from '../../kit/text.tsx';
import { counted } from '../../logic/format.ts';
import { addressOf } from '../../logic/location.ts';
import { DeleteRole } from './role-actions.tsx';

export function RoleTable({ roles, done }: { readonly roles: readonly RoleJson[]; done(): void }) {
  return (
    <Table
      label="Roles"
      rows={roles}
      keyOf={({ name }) => name}
      columns={[
        {
          title: 'Role',
          cell: ({ name }) => (
            <a href={addressOf('users', { role: name })}>
              <Text value={name} max={60} />
            </a>
          ),
        },
        { title: 'Permissions', cell: (role) => <Summary role={role} /> },
        { title: '', width: 'shrink', cell: ({ name }) => <DeleteRole name={name} isSmall done={done} /> },
      ]}
      empty={<Empty title="There are no roles yet, except root, which may do everything." />}
    />
  );
}

function Summary({ role: { name, keys, locks } }: { readonly role: RoleJson }) {
  if (name === 'root') return <>everything</>;
  if (keys.length + locks.length === 0) return <span class="muted">none</span>;
  return (
    <>
      {counted(keys.length, 'for keys', 'for keys')}, {counted(locks.length, 'for locks', 'for locks')}
    </>
  );
}
