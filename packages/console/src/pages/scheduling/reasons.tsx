import type { Resource } from '../../app/hooks.ts';
import { Card } from '../../kit/page.tsx';
import { Loaded } from '../../kit/states.tsx';
import { Text } from '../../kit/text.tsx';

/** What the masters say about a range or a node, a statement a line. */
export function Reasons({ of, title }: { readonly of: Resource<readonly string[]>; readonly title: string }) {
  return (
    <Card title={title}>
      <Loaded of={of} lines={3}>
        {(lines) =>
          lines.length === 0 ? (
            <p class="muted">There is nothing to say: nothing is wrong, and nothing is planned.</p>
          ) : (
            <ul class="reasons">
              {lines.map((line) => (
                <li key={line}>
                  <Text value={line} max={600} />
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Card>
  );
}
