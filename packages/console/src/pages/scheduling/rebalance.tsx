import { useState } from 'preact/hooks';
import { steeringRefusal } from '../../api/access.ts';
import { rebalance, rebalancePlan } from '../../api/cluster.ts';
import { useResource } from '../../app/hooks.ts';
import { ActionDialog } from '../../kit/action.tsx';
import { Loaded } from '../../kit/states.tsx';
import { Text } from '../../kit/text.tsx';
import { announce } from '../../kit/toast.tsx';
import { counted } from '../../logic/format.ts';

/** Lets all schedulers look for work, after a look at what they would do. */
export function Rebalance({ done }: { done(): void }) {
  const [isOpen, setOpen] = useState(false);
  const refusal = steeringRefusal();
  return (
    <>
      <button
        type="button"
        class="button"
        aria-disabled={refusal !== undefined}
        title={refusal ?? ''}
        onClick={() => (refusal === undefined ? setOpen(true) : announce(refusal, 'warn'))}
      >
        Rebalance
      </button>
      {isOpen && (
        <ActionDialog
          label="Rebalance"
          title="Run all schedulers now?"
          explanation={<Plan />}
          command={() => ['remora', 'admin', 'rebalance']}
          run={async () => `${counted((await rebalance()).changes.length, 'operator')} started.`}
          done={done}
          close={() => setOpen(false)}
        />
      )}
    </>
  );
}

function Plan() {
  const plan = useResource('plan', rebalancePlan);
  return (
    <Loaded of={plan} lines={3}>
      {({ changes }) => (
        <>
          <p>
            {changes.length === 0
              ? 'They would change nothing: the cluster is balanced.'
              : `They would start ${counted(changes.length, 'operator')}:`}
          </p>
          <ul class="reasons">
            {changes.map(({ rangeId, kind, reason }) => (
              <li key={`${rangeId} ${kind}`}>
                range {rangeId}, {kind}: <Text value={reason} max={300} />
              </li>
            ))}
          </ul>
        </>
      )}
    </Loaded>
  );
}
