import { useStore } from '../app/hooks.ts';
import { now } from '../app/time.ts';
import { absolute, ago, clockSpan, coarse, span } from '../logic/format.ts';

/** A moment: how long ago it was, and the absolute time on hover and focus. */
export function Time({ at, isFocusable = true }: { readonly at: number; readonly isFocusable?: boolean }) {
  const present = useStore(now);
  return (
    <time
      class="time tip"
      dateTime={Number.isFinite(at) ? new Date(at).toISOString() : undefined}
      data-tip={absolute(at)}
      {...(isFocusable ? { tabIndex: 0 } : {})}
    >
      {ago(at, present)}
    </time>
  );
}

/** How long something lasts already: `5 min`, with the moment of its begin on hover and focus. */
export function Since({ at }: { readonly at: number }) {
  const present = useStore(now);
  return (
    <time class="time tip" data-tip={`since ${absolute(at)}`}>
      {coarse(Math.max(0, present - at))}
    </time>
  );
}

/** Counts down to a moment. */
export function Countdown({ until, over = 'over' }: { readonly until: number; readonly over?: string }) {
  const rest = until - useStore(now);
  return <span class="time">{rest > 0 ? clockSpan(rest) : over}</span>;
}

export function Span({ ms }: { readonly ms: number }) {
  return <span class="time">{span(ms)}</span>;
}
