import { useEffect, useState } from 'preact/hooks';
import { connection } from '../api/connection.ts';
import { clockSpan } from '../logic/format.ts';
import { useStore } from './hooks.ts';
import { OtherGateways } from './other-gateways.tsx';

const TICK_MS = 1_000;

/** Shown while the node that serves the page does not answer: what is lost, and where else to go. */
export function Lost() {
  const { isUp, lostAt = 0 } = useStore(connection);
  const [, redraw] = useState(0);
  useEffect(() => {
    if (isUp) return;
    const timer = setInterval(() => redraw((times) => times + 1), TICK_MS);
    return () => clearInterval(timer);
  }, [isUp]);
  if (isUp) return null;
  return (
    <div class="lost" role="alert">
      <p>
        <b>Connection lost.</b> The node that serves this page has not answered for {clockSpan(Date.now() - lostAt)}.
        What you see are its last answers; they are read again when it is back. Until then, actions are refused: none is
        kept to be sent later.
      </p>
      <OtherGateways />
    </div>
  );
}
