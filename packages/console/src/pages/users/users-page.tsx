import { roles, users } from '../../api/users.ts';
import { useResource } from '../../app/hooks.ts';
import { go } from '../../app/router.ts';
import { Command } from '../../kit/command.tsx';
import { Choice } from '../../kit/form.tsx';
import { Card, Page } from '../../kit/page.tsx';
import { Loaded, Note } from '../../kit/states.tsx';
import { textOf } from '../../logic/location.ts';
import type { PageProps } from '../page-props.ts';
import { Can } from './can.tsx';
import { RolePage } from './role-page.tsx';
import { RoleTable } from './role-table.tsx';
import { AddRole, AddUser } from './user-actions.tsx';
import { UserTable } from './user-table.tsx';

const EVERY_MS = 10_000;

const PARTS = [
  { value: 'users', text: 'Users' },
  { value: 'roles', text: 'Roles' },
] as const;

export function UsersPage({ query }: PageProps) {
  const role = textOf(query, 'role');
  return role === '' ? (
    <Lists part={textOf(query, 'show') === 'roles' ? 'roles' : 'users'} />
  ) : (
    <RolePage name={role} />
  );
}

/** Who may do what. */
function Lists({ part }: { readonly part: (typeof PARTS)[number]['value'] }) {
  const allUsers = useResource('users', users, { everyMs: EVERY_MS });
  const allRoles = useResource('roles', roles, { everyMs: EVERY_MS });
  const reload = (): void => {
    allUsers.reload();
    allRoles.reload();
  };
  const names = (allRoles.data ?? []).map(({ name }) => name);
  return (
    <Page title="Users and roles" actions={part === 'users' ? <AddUser done={reload} /> : <AddRole done={reload} />}>
      {allUsers.data?.authentication === false && (
        <Note tone="warn">
          Authentication is off: everybody who reaches a port may do everything. Add a user root with the role root,
          then run <code>remora auth enable</code>.
        </Note>
      )}
      <div class="row">
        <Choice
          label="What to show"
          value={part}
          options={PARTS}
          change={(value) => go('users', value === 'roles' ? { show: value } : {}, { replace: true })}
        />
      </div>
      <Card isFlush>
        {part === 'users' ? (
          <Loaded of={allUsers}>{(answer) => <UserTable users={answer.users} roles={names} done={reload} />}</Loaded>
        ) : (
          <Loaded of={allRoles}>{(rows) => <RoleTable roles={rows} done={reload} />}</Loaded>
        )}
      </Card>
      <Can users={(allUsers.data?.users ?? []).map(({ name }) => name)} />
      <Command words={['remora', 'auth', part === 'users' ? 'user' : 'role', 'ls']} />
    </Page>
  );
}
