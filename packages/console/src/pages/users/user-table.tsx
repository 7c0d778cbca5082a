import type { UserJson } from '@remora/gateway/http/json/users';
import { Empty } from '../../kit/states.tsx';
import { Table } from '../../kit/table.tsx';
import { Text } from '../../kit/text.tsx';
import { addressOf } from '../../logic/location.ts';
import { UserActions } from './user-actions.tsx';

interface UserTableProps {
  readonly users: readonly UserJson[];
  /** The names of all roles. */
  readonly roles: readonly string[];
  done(): void;
}

export function UserTable({ users, roles, done }: UserTableProps) {
  return (
    <Table
      label="Users"
      rows={users}
      keyOf={({ name }) => name}
      columns={[
        { title: 'User', cell: ({ name }) => <Text value={name} max={60} /> },
        { title: 'Roles', cell: ({ roles: own }) => <Roles names={own} /> },
        {
          title: 'Logs in with',
          isMinor: true,
          cell: ({ hasPassword }) => (hasPassword ? 'password or certificate' : 'certificate'),
        },
        { title: '', width: 'shrink', cell: (user) => <UserActions user={user} roles={roles} done={done} /> },
      ]}
      empty={<Empty title="There are no users yet." />}
    />
  );
}

function Roles({ names }: { readonly names: readonly string[] }) {
  if (names.length === 0) return <span class="muted">none: may do nothing</span>;
  return (
    <span class="parts">
      {names.map((name) => (
        <a key={name} href={addressOf('users', { role: name })}>
          <Text value={name} max={40} />
        </a>
      ))}
    </span>
  );
}
