import { Badge } from '../../kit/badge.tsx';
import { Text } from '../../kit/text.tsx';
import { identityOf } from '../../logic/bytes.ts';
import { type Permission, scopeOf } from '../../logic/permission.ts';

export function PermissionText({ permission }: { readonly permission: Permission }) {
  const { text, names } = scopeOf(permission);
  const verb = 'locks' in permission ? permission.locks.verb : permission.keys.access;
  return (
    <span class="parts">
      <Badge>{verb}</Badge>
      <Text value={text} />
      {names.map((name) => (
        <b key={identityOf(name)}>
          <Text value={name} max={120} />
        </b>
      ))}
    </span>
  );
}
