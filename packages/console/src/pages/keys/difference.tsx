import { useMemo } from 'preact/hooks';
import { Scroll } from '../../kit/scroll.tsx';
import { Empty } from '../../kit/states.tsx';
import { Text } from '../../kit/text.tsx';
import { byteLength, type JsonBytes } from '../../logic/bytes.ts';
import { diffLines, withGaps } from '../../logic/diff.ts';
import { counted } from '../../logic/format.ts';
import { comparable } from '../../logic/value.ts';
import { ValueView } from './value-view.tsx';

/** Larger values are not compared: the tab would stand still. */
const COMPARED_BYTES_MAX = 256 * 1024;
const LINE_MAX = 2_000;
const SIGNS = { same: ' ', removed: '−', added: '+' } as const;

interface DifferenceProps {
  /** Undefined: the key did not exist. */
  readonly before: JsonBytes | undefined;
  readonly after: JsonBytes | undefined;
}

export function Difference({ before, after }: DifferenceProps) {
  if (before === undefined || after === undefined) {
    const only = after ?? before;
    return only === undefined ? <Empty title="The key did not exist." /> : <ValueView value={only} />;
  }
  if (Math.max(byteLength(before), byteLength(after)) > COMPARED_BYTES_MAX) return <ValueView value={after} />;
  return <Lines before={before} after={after} />;
}

function Lines({ before, after }: { readonly before: JsonBytes; readonly after: JsonBytes }) {
  const lines = useMemo(() => withGaps(diffLines(comparable(before), comparable(after))), [before, after]);
  return (
    <Scroll class="diff" label="Difference to the version before">
      {lines.map((line, at) =>
        'skipped' in line ? (
          <div key={at} class="diff-gap">
            {counted(line.skipped, 'unchanged line')} not shown
          </div>
        ) : (
          <div key={at} class={`diff-line diff-${line.kind}`}>
            <span class="diff-number">{line.before ?? ''}</span>
            <span class="diff-number">{line.after ?? ''}</span>
            <span class="diff-sign">
              {SIGNS[line.kind]}
              {line.kind !== 'same' && <span class="outside">{line.kind}</span>}
            </span>
            <Text value={line.text} max={LINE_MAX} />
          </div>
        ),
      )}
    </Scroll>
  );
}
