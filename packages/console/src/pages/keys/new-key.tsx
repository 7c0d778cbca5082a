import { write } from '../../api/kv.ts';
import { go } from '../../app/router.ts';
import { Action } from '../../kit/action.tsx';
import { count } from '../../logic/format.ts';

export function NewKey({ prefix }: { readonly prefix: string }) {
  return (
    <Action
      label="New key"
      title="Create a key"
      explanation="The key is created only if it does not exist."
      fields={[
        { name: 'key', label: 'Key', isRequired: true, initial: prefix },
        { name: 'value', label: 'Value', lines: 6 },
      ]}
      command={({ key = '', value = '' }) => ['remora', 'kv', 'put', key, value]}
      run={async ({ key = '', value = '' }) => {
        const { modRevision } = await write(key, { value, ifModRevision: 0, lease: '' });
        go('keys', { key });
        return `The key was created at revision ${count(modRevision)}.`;
      }}
    />
  );
}
