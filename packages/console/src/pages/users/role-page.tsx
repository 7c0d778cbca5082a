import type { RoleJson } from '@remora/gateway/http/json/users';
import { useState } from 'preact/hooks';
import { steeringRefusal } from '../../api/access.ts';
import { grant, roles } from '../../api/users.ts';
import { useResource } from '../../app/hooks.ts';
import { Command } from '../../kit/command.tsx';
import { Card, Page } from '../../kit/page.tsx';
import { Empty, ErrorNote, Loaded, Note } from '../../kit/states.tsx';
import { Table } from '../../kit/table.tsx';
import { Text } from '../../kit/text.tsx';
import { announce } from '../../kit/toast.tsx';
import { addressOf } from '../../logic/location.ts';
import { type Permission, permissionOf, permissionWords } from '../../logic/permission.ts';
import { isWhole, NO_PERMISSION, PermissionForm } from './permission-form.tsx';
import { PermissionText } from './permission-text.tsx';
import { DeleteRole, RevokePermission } from './role-actions.tsx';

/** What one role may do. */
export function RolePage({ name }: { readonly name: string }) {
  const all = useResource('roles', roles);
  return (
    <Page
      title="Role"
      subject={<Text value={name} />}
      subjectText={name}
      trail={[
        { text: 'Users and roles', href: addressOf('users') },
        { text: 'Roles', href: addressOf('users', { show: 'roles' }) },
      ]}
      actions={<DeleteRole name={name} done={all.reload} />}
    >
      <Loaded of={all}>
        {(rows) => {
          if (name === 'root') return <Note>The role root may do everything, whatever is granted to it.</Note>;
          const role = rows.find((each) => each.name === name);
          return role === undefined ? (
            <Empty title="There is no such role." />
          ) : (
            <Permissions role={role} done={all.reload} />
          );
        }}
      </Loaded>
      <Command words={['remora', 'auth', 'role', 'show', name]} />
    </Page>
  );
}

function Permissions({ role, done }: { readonly role: RoleJson; done(): void }) {
  const permissions: readonly Permission[] = [
    ...role.keys.map((keys) => ({ keys })),
    ...role.locks.map((locks) => ({ locks })),
  ];
  return (
    <>
      <Card isFlush title="Permissions">
        <Table
          label="Permissions"
          rows={permissions}
          keyOf={(permission) => JSON.stringify(permission)}
          columns={[
            { title: 'May', cell: (permission) => <PermissionText permission={permission} /> },
            {
              title: '',
              width: 'shrink',
              cell: (permission) => <RevokePermission role={role.name} permission={permission} done={done} />,
            },
          ]}
          empty={<Empty title="The role has no permissions." />}
        />
      </Card>
      <Grant role={role.name} done={done} />
    </>
  );
}

function Grant({ role, done }: { readonly role: string; done(): void }) {
  const [typed, setTyped] = useState(NO_PERMISSION);
  const [error, setError] = useState<unknown>();
  const refusal = steeringRefusal();
  const permission = permissionOf(typed);
  const run = async (): Promise<void> => {
    setError(undefined);
    try {
      await grant(role, permission);
      announce('The permission is granted.', 'ok');
      done();
    } catch (cause) {
      setError(cause);
    }
  };
  return (
    <Card title="Grant a permission">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (isWhole(typed)) void run();
        }}
      >
        <PermissionForm value={typed} change={setTyped} />
        {isWhole(typed) && <Command words={['remora', 'auth', 'grant', role, ...permissionWords(permission)]} />}
        {error !== undefined && <ErrorNote error={error} />}
        {refusal !== undefined && <Note tone="warn">{refusal}</Note>}
        <div class="row">
          <button type="submit" class="button button-primary" disabled={refusal !== undefined || !isWhole(typed)}>
            Grant
          </button>
        </div>
      </form>
    </Card>
  );
}
