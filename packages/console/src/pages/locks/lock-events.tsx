import { useEffect, useRef, useState } from 'preact/hooks';
import { messageOf } from '../../api/errors.ts';
import { stream } from '../../api/events.ts';
import { eventsPath, type LockName } from '../../api/locks.ts';
import { clusterNow } from '../../app/time.ts';
import { Badge } from '../../kit/badge.tsx';
import { Card } from '../../kit/page.tsx';
import { ErrorNote } from '../../kit/states.tsx';
import { Text } from '../../kit/text.tsx';
import { Time } from '../../kit/time.tsx';
import { SessionLink } from '../sessions/session-link.tsx';
import { eventText, type LockEventJson, sessionOf } from './event-text.ts';

/** The newest events are kept. */
const EVENTS_MAX = 100;

interface Seen {
  readonly id: number;
  readonly at: number;
  readonly event: LockEventJson;
}

/** What happens to a lock while the page is open. */
export function LockEvents({ lock, changed }: { readonly lock: LockName; changed(): void }) {
  const [seen, setSeen] = useState<readonly Seen[]>([]);
  const [isLive, setLive] = useState(false);
  const [error, setError] = useState<unknown>();
  const onChange = useRef(changed);
  onChange.current = changed;

  useEffect(() => {
    let id = 0;
    try {
      return stream({
        path: eventsPath(lock),
        events: ['begin', 'events'],
        state: (state) => state === 'closed' && setLive(false),
        event(name, data) {
          if (name === 'begin') return setLive(true);
          const { events } = data as { readonly events: readonly LockEventJson[] };
          const at = clusterNow();
          const added = events.map((event) => ({ id: ++id, at, event })).reverse();
          setSeen((before) => [...added, ...before].slice(0, EVENTS_MAX));
          onChange.current();
        },
      });
    } catch (cause) {
      setError(cause instanceof Error ? cause : messageOf(cause));
      return undefined;
    }
  }, []);

  return (
    <Card title="Events" aside={isLive ? <Badge tone="ok">live</Badge> : <Badge>connecting …</Badge>}>
      {error !== undefined && <ErrorNote error={error} />}
      {seen.length === 0 && <p class="muted">What happens to the lock while this page is open appears here.</p>}
      <ol class="events">
        {seen.map(({ id, at, event }) => {
          const session = sessionOf(event);
          return (
            <li key={id}>
              <Time at={at} isFocusable={false} />
              <span>
                <Text value={eventText(event)} max={300} /> {session !== undefined && <SessionLink id={session} />}
              </span>
            </li>
          );
        })}
      </ol>
    </Card>
  );
}
