import type { UserJson } from '@remora/gateway/http/json/users';
import { steeringRefusal } from '../../api/access.ts';
import { addRole, deleteUser, grantRole, putUser, revokeRole } from '../../api/users.ts';
import { Action, type ActionField } from '../../kit/action.tsx';

const PASSWORD: ActionField = {
  name: 'password',
  label: 'Password',
  type: 'password',
  hint: 'It is sent to this node, which keeps a hash of it only.',
};

export function AddUser({ done }: { done(): void }) {
  return (
    <Action
      label="Add user"
      title="Add a user"
      explanation="The user may do nothing until it has a role."
      refusal={steeringRefusal()}
      fields={[
        { name: 'name', label: 'Name', isRequired: true },
        { ...PASSWORD, hint: 'Empty: the user logs in with a certificate whose common name is its name.' },
      ]}
      command={({ name = '', password = '' }) => [
        ...['remora', 'auth', 'user', 'add', name],
        ...(password === '' ? ['--no-password'] : []),
      ]}
      run={async ({ name = '', password = '' }) => {
        await putUser(name, password);
        return `The user ${name} is there.`;
      }}
      done={done}
    />
  );
}

export function AddRole({ done }: { done(): void }) {
  return (
    <Action
      label="Add role"
      title="Add a role"
      explanation="The role has no permissions until you grant some."
      refusal={steeringRefusal()}
      fields={[{ name: 'name', label: 'Name', isRequired: true }]}
      command={({ name = '' }) => ['remora', 'auth', 'role', 'add', name]}
      run={async ({ name = '' }) => {
        await addRole(name);
        return `The role ${name} is there.`;
      }}
      done={done}
    />
  );
}

interface UserActionsProps {
  readonly user: UserJson;
  readonly roles: readonly string[];
  done(): void;
}

export function UserActions({ user, roles, done }: UserActionsProps) {
  const { name } = user;
  const shared = { isSmall: true, refusal: steeringRefusal(), done };
  const lacking = [...new Set([...roles, 'root'])].filter((role) => !user.roles.includes(role));
  const command = (...words: readonly string[]) => ['remora', 'auth', 'user', ...words];
  return (
    <span class="row row-tight">
      <Action
        {...shared}
        label="Give role"
        title={`Give ${name} a role`}
        explanation="With all permissions of the role. The role root may do everything."
        fields={[roleField(lacking)]}
        command={({ role = '' }) => command('grant-role', name, role)}
        run={async ({ role = '' }) => {
          await grantRole(name, role);
          return `${name} has the role ${role}.`;
        }}
      />
      <Action
        {...shared}
        label="Take role"
        title={`Take a role from ${name}`}
        explanation="Its watches, and its waits for locks, end where they are not allowed any more."
        refusal={shared.refusal ?? (user.roles.length === 0 ? 'The user has no role.' : undefined)}
        fields={[roleField(user.roles)]}
        command={({ role = '' }) => command('revoke-role', name, role)}
        run={async ({ role = '' }) => {
          await revokeRole(name, role);
          return `${name} has no longer the role ${role}.`;
        }}
      />
      <Action
        {...shared}
        label="Password"
        title={`Change the password of ${name}`}
        explanation="Clients that have logged in with the old one have to log in again."
        fields={[{ ...PASSWORD, isRequired: true }]}
        command={() => command('passwd', name)}
        run={async ({ password = '' }) => {
          await putUser(name, password);
          return `${name} has a new password.`;
        }}
      />
      <Action
        {...shared}
        label="Delete"
        isDangerous
        title={`Delete the user ${name}?`}
        explanation="Its tokens are not valid any more, and its watches end. Its sessions stay until their TTL ends."
        confirmation={name}
        command={() => command('delete', name)}
        run={async () => {
          await deleteUser(name);
          return `The user ${name} is deleted.`;
        }}
      />
    </span>
  );
}

function roleField(roles: readonly string[]): ActionField {
  return { name: 'role', label: 'Role', isRequired: true, initial: roles[0] ?? '', options: roles };
}
