import type { ConditionJson, NodeJson } from '@remora/gateway/http/json/cluster';
import { useState } from 'preact/hooks';
import { State } from '../../kit/badge.tsx';
import { Card } from '../../kit/page.tsx';
import { Text } from '../../kit/text.tsx';
import { counted } from '../../logic/format.ts';
import { NodeLink, RangeLink } from '../nodes/node-link.tsx';

interface ConditionsProps {
  readonly conditions: readonly ConditionJson[];
  readonly nodes: readonly NodeJson[];
}

/** A failure of many nodes makes a finding of each range: the worst ones are shown, and more on demand. */
const FIRST_SHOWN = 20;
const MORE_SHOWN = 100;

/** The findings of `remora admin check`, each with what to do. */
export function Conditions({ conditions, nodes }: ConditionsProps) {
  const [most, setMost] = useState(FIRST_SHOWN);
  const left = conditions.length - most;
  if (conditions.length === 0) {
    return (
      <div class="health health-ok" role="status">
        <span class="health-sign" aria-hidden="true">
          ✓
        </span>
        <b>The cluster is well.</b> <span class="muted">No node and no range needs attention.</span>
      </div>
    );
  }
  return (
    <Card title={counted(conditions.length, 'finding')} aside="the worst first">
      <ul class="conditions">
        {conditions.slice(0, most).map((condition) => (
          <li key={`${condition.name} ${condition.rangeId} ${condition.nodeId} ${condition.text}`}>
            <State name={condition.severity} />
            <div>
              <p>
                <Text value={condition.text} max={600} />
              </p>
              {condition.advice !== '' && (
                <p class="muted">
                  <Text value={condition.advice} max={600} />
                </p>
              )}
              <p class="muted parts">
                {condition.nodeId > 0 && (
                  <span>
                    node <NodeLink id={condition.nodeId} nodes={nodes} />
                  </span>
                )}
                {condition.rangeId > 0 && (
                  <span>
                    range <RangeLink id={condition.rangeId} />
                  </span>
                )}
                <code>{condition.name}</code>
                <Text value={condition.docs} />
              </p>
            </div>
          </li>
        ))}
      </ul>
      {left > 0 && (
        <p class="muted">
          {counted(left, 'more finding')}{' '}
          <button type="button" class="button button-small" onClick={() => setMost(most + MORE_SHOWN)}>
            Show more
          </button>
        </p>
      )}
    </Card>
  );
}
