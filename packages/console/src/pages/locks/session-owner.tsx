import { session } from '../../api/locks.ts';
import { useResource } from '../../app/hooks.ts';
import { Text } from '../../kit/text.tsx';

/** The program behind a session: host, process, and user, as far as its client has told. */
export function SessionOwner({ id }: { readonly id: string }) {
  const { data, error } = useResource(id, (signal) => session(id, signal));
  if (error !== undefined) return <span class="muted">ended, or not yours to see</span>;
  if (data === undefined) return <span class="muted">…</span>;
  const { attributes, owner } = data;
  return <Client attributes={attributes} owner={owner} />;
}

interface ClientProps {
  readonly attributes: Readonly<Record<string, string>>;
  readonly owner: string | undefined;
}

export function Client({ attributes, owner }: ClientProps) {
  const { host, pid, ...others } = attributes;
  const rest = Object.entries(others).slice(0, 2);
  const parts = [
    ...(host === undefined ? [] : [<Text key="host" value={host} max={60} />]),
    ...(pid === undefined
      ? []
      : [
          <span key="pid" class="whole">
            pid <Text value={pid} max={20} />
          </span>,
        ]),
    ...rest.map(([name, value]) => (
      <span key={name}>
        <Text value={name} max={30} />=<Text value={value} max={40} />
      </span>
    )),
    ...(owner === undefined || owner === ''
      ? []
      : [
          <span key="owner" class="muted">
            user <Text value={owner} max={40} />
          </span>,
        ]),
  ];
  if (parts.length === 0) return <span class="muted">unnamed</span>;
  return <span class="parts">{parts}</span>;
}
