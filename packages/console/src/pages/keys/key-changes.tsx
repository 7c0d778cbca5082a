import type { KvStreamChange, KvStreamChanges, KvStreamLive } from '@remora/gateway/http/json/kv';
import { useEffect, useState } from 'preact/hooks';
import { ApiError } from '../../api/errors.ts';
import { stream } from '../../api/events.ts';
import { clusterNow } from '../../app/time.ts';
import { Badge } from '../../kit/badge.tsx';
import { Card } from '../../kit/page.tsx';
import { ErrorNote } from '../../kit/states.tsx';
import { Text } from '../../kit/text.tsx';
import { Time } from '../../kit/time.tsx';
import type { JsonBytes } from '../../logic/bytes.ts';
import { count } from '../../logic/format.ts';

/** The newest changes are kept. */
const CHANGES_MAX = 200;

interface Seen {
  readonly at: number;
  readonly change: KvStreamChange;
}

/** Changes of a key as they happen. */
export function KeyChanges({ name, since }: { readonly name: JsonBytes; readonly since: number | undefined }) {
  const [seen, setSeen] = useState<readonly Seen[]>([]);
  const [isLive, setLive] = useState(false);
  const [error, setError] = useState<unknown>();

  useEffect(() => {
    let from = since;
    return stream({
      path: '/v1/kv-events',
      query: () => ({ key: name, since: from }),
      events: ['live', 'events', 'progress', 'error'],
      state: (state) => state === 'closed' && setLive(false),
      event(kind, data) {
        if (kind === 'error') {
          const { error: reason } = data as { readonly error: { readonly code: string; readonly message: string } };
          setError(new ApiError(0, reason.code, reason.message));
          if (reason.code === 'COMPACTED') from = undefined;
          return;
        }
        from = (data as KvStreamLive).revision;
        setLive(true);
        if (kind !== 'events') return;
        setError(undefined);
        const at = clusterNow();
        const added = (data as KvStreamChanges).events.map((change) => ({ at, change })).reverse();
        setSeen((before) => [...added, ...before].slice(0, CHANGES_MAX));
      },
    });
  }, []);

  return (
    <Card title="Changes" aside={isLive ? <Badge tone="ok">live</Badge> : <Badge>connecting …</Badge>}>
      {error !== undefined && <ErrorNote error={error} />}
      {seen.length === 0 && <p class="muted">Changes of the key appear here while the page is open.</p>}
      <ol class="events">
        {seen.map(({ at, change }) => (
          <li key={change.modRevision}>
            <Time at={at} isFocusable={false} />
            <span>
              {change.type === 'delete' ? <Badge tone="bad">deleted</Badge> : <Badge tone="info">put</Badge>}{' '}
              <span class="muted">
                at revision {count(change.modRevision)}
                {'value' in change && ':'}
              </span>{' '}
              {'value' in change && <Text value={change.value} max={300} />}
            </span>
          </li>
        ))}
      </ol>
    </Card>
  );
}
