import { steeringRefusal } from '../../api/access.ts';
import { deleteRole, revokePermission } from '../../api/users.ts';
import { Action } from '../../kit/action.tsx';
import { type Permission, permissionWords } from '../../logic/permission.ts';
import { PermissionText } from './permission-text.tsx';

interface DeleteRoleProps {
  readonly name: string;
  readonly isSmall?: boolean;
  done(): void;
}

export function DeleteRole({ name, isSmall = false, done }: DeleteRoleProps) {
  return (
    <Action
      label="Delete"
      isSmall={isSmall}
      isDangerous
      title={`Delete the role ${name}?`}
      explanation="With its permissions, and for all users that have it."
      confirmation={name}
      refusal={steeringRefusal()}
      command={() => ['remora', 'auth', 'role', 'delete', name]}
      run={async () => {
        await deleteRole(name);
        return `The role ${name} is deleted.`;
      }}
      done={done}
    />
  );
}

interface RevokeProps {
  readonly role: string;
  readonly permission: Permission;
  done(): void;
}

export function RevokePermission({ role, permission, done }: RevokeProps) {
  return (
    <Action
      label="Revoke"
      isSmall
      title={`Take a permission from the role ${role}?`}
      explanation={
        <>
          <PermissionText permission={permission} />. Watches and waits for locks end where they are not allowed any
          more.
        </>
      }
      refusal={steeringRefusal()}
      command={() => ['remora', 'auth', 'revoke', role, ...permissionWords(permission)]}
      run={async () => {
        await revokePermission(role, permission);
        return 'The permission is revoked.';
      }}
      done={done}
    />
  );
}
