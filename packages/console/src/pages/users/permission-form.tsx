import { Field, Select } from '../../kit/form.tsx';
import { isOfLocks, type Scope, type TypedPermission, VERBS } from '../../logic/permission.ts';

const SCOPES: Readonly<Record<'keys' | 'locks', readonly { readonly value: Scope; readonly text: string }[]>> = {
  keys: [
    { value: 'prefix', text: 'Keys with a prefix' },
    { value: 'one', text: 'One key' },
    { value: 'all', text: 'All keys' },
  ],
  locks: [
    { value: 'prefix', text: 'Locks with a prefix' },
    { value: 'one', text: 'One lock' },
    { value: 'all', text: 'All locks' },
  ],
};

export const NO_PERMISSION: TypedPermission = { verb: 'read', scope: 'prefix', target: '', namespace: 'default' };

interface PermissionFormProps {
  readonly value: TypedPermission;
  change(value: TypedPermission): void;
}

/** What may be done, and with what. */
export function PermissionForm({ value, change }: PermissionFormProps) {
  const { verb, scope, target, namespace } = value;
  const ofLocks = isOfLocks(verb);
  return (
    <div class="fields">
      <Select label="May" value={verb} options={VERBS} change={(next) => change({ ...value, verb: next })} />
      <Select
        label="With"
        value={scope}
        options={SCOPES[ofLocks ? 'locks' : 'keys']}
        change={(next) => change({ ...value, scope: next })}
      />
      {scope !== 'all' && (
        <Field
          label={scope === 'prefix' ? 'Prefix' : 'Name'}
          isMono
          value={target}
          change={(next) => change({ ...value, target: next })}
        />
      )}
      {ofLocks && (
        <Field
          label="Namespace"
          hint="Empty: all namespaces."
          value={namespace}
          change={(next) => change({ ...value, namespace: next })}
        />
      )}
    </div>
  );
}

export function isWhole({ scope, target }: TypedPermission): boolean {
  return scope === 'all' || target !== '';
}
