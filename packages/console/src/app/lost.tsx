import { connection } from '../api/connection.ts';
import { clockSpan } from '../logic/format.ts';
import { gateways } from './gateways.ts';
import { useStore } from './hooks.ts';
import { now } from './time.ts';

/** Shown while the node that serves the page does not answer: what is lost, and where else to go. */
export function Lost() {
  const { isUp, lostAt = 0 } = useStore(connection);
  const others = useStore(gateways).filter(({ isThis }) => !isThis);
  useStore(now);
  if (isUp) return null;
  return (
    <div class="lost" role="alert">
      <p>
        <b>Connection lost.</b> The node that serves this page has not answered for {clockSpan(Date.now() - lostAt)}.
        What you see is its last answer; live data and actions wait until it is back.
      </p>
      {others.length > 0 && (
        <p>
          Other gateways:{' '}
          {others.map(({ name, url }) => (
            <a key={url} href={`${url}${location.pathname}${location.search}`}>
              {name}
            </a>
          ))}
        </p>
      )}
    </div>
  );
}
