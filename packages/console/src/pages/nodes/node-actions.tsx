import type { NodeJson } from '@remora/gateway/http/json/cluster';
import { steeringRefusal } from '../../api/access.ts';
import { setDuty, setLogLevel } from '../../api/cluster.ts';
import { Action, type ActionProps } from '../../kit/action.tsx';
import { durationProblem, parseDuration } from '../../logic/duration.ts';

interface NodeActionsProps {
  readonly node: NodeJson;
  done(): void;
}

/** What can be done with a node. */
export function NodeActions({ node, done }: NodeActionsProps) {
  const shared = { refusal: steeringRefusal(), done };
  const isServing = node.duty === 'serving';
  return (
    <>
      <LogLevel node={node} {...shared} />
      {isServing ? (
        <>
          {node.state === 'up' && <Drain node={node} {...shared} />}
          <Maintenance node={node} {...shared} />
        </>
      ) : (
        node.duty !== 'removed' && (
          <Action
            {...shared}
            label="Return to service"
            title="Return this node to service?"
            explanation="The node accepts leaders and replicas again; balancing brings some back within minutes."
            command={() => ['remora', 'admin', 'nodes', 'undrain', node.name]}
            run={() => duty(node, 'serving', `${node.name} serves again.`)}
          />
        )
      )}
      {node.duty !== 'decommissioning' && node.duty !== 'removed' && <Decommission node={node} {...shared} />}
      {node.duty !== 'removed' && node.state !== 'up' && <Remove node={node} {...shared} />}
    </>
  );
}

type Shared = Pick<ActionProps, 'refusal'> & NodeActionsProps;

function Drain({ node, ...shared }: Shared) {
  return (
    <Action
      {...shared}
      label="Drain"
      title="Drain this node?"
      explanation="It transfers its leaders to other nodes and accepts no new leaders or replicas until it returns to service. Its replicas stay, and clients notice nothing."
      command={() => ['remora', 'admin', 'nodes', 'drain', node.name]}
      run={() => duty(node, 'draining', `${node.name} is being drained: its leaders move away.`)}
    />
  );
}

function Maintenance({ node, ...shared }: Shared) {
  const isUp = node.state === 'up';
  return (
    <Action
      {...shared}
      label={isUp ? 'Maintenance' : 'Do not replace it yet'}
      title={isUp ? 'Prepare the node for a restart?' : 'Wait for this node to return?'}
      explanation={
        isUp
          ? 'It transfers its leaders away, and for the given time its replicas are not replaced while it is down.'
          : 'For the given time, its replicas are not replaced although it does not answer.'
      }
      fields={[{ name: 'for', label: 'For how long', initial: '1h', isRequired: true, check: durationProblem }]}
      command={({ for: time = '' }) => ['remora', 'admin', 'nodes', 'maintenance', node.name, '--for', time]}
      run={({ for: time = '' }) =>
        duty(node, 'maintenance', `${node.name} is in maintenance for ${time}.`, parseDuration(time))
      }
    />
  );
}

function Decommission({ node, ...shared }: Shared) {
  return (
    <Action
      {...shared}
      label="Decommission"
      title="Empty this node for good?"
      isDangerous
      explanation="Its replicas move to other nodes one by one; each new one is in place before the old one is removed. You can stop it: let the node serve again."
      confirmation={node.name}
      command={() => ['remora', 'admin', 'nodes', 'decommission', node.name]}
      run={() => duty(node, 'decommissioning', `${node.name} is being emptied.`)}
    />
  );
}

function Remove({ node, ...shared }: Shared) {
  return (
    <Action
      {...shared}
      label="Remove"
      title="Remove this node from the cluster?"
      isDangerous
      explanation="It can never return under this id, and its replicas are replaced at once, without waiting for it. Use it for a node that is gone."
      confirmation={node.name}
      command={() => ['remora', 'admin', 'nodes', 'remove', node.name]}
      run={() => duty(node, 'removed', `${node.name} is removed.`)}
    />
  );
}

const LEVELS = ['debug', 'info', 'warn', 'error'];

function LogLevel({ node, ...shared }: Shared) {
  return (
    <Action
      {...shared}
      label="Log level"
      title="Change the level of the log"
      explanation="The change lasts until the node restarts. The level debug logs every decision, and fills disks."
      fields={[
        {
          name: 'level',
          label: 'Lowest level that is logged',
          hint: LEVELS.join(', '),
          initial: 'info',
          isRequired: true,
          check: (value) => (LEVELS.includes(value) ? undefined : `Expected one of ${LEVELS.join(', ')}.`),
        },
      ]}
      command={({ level = '' }) => ['remora', 'admin', 'log-level', node.name, level]}
      run={async ({ level = '' }) => {
        const { before } = await setLogLevel(node.id, level);
        return `${node.name} logs ${level} and above; it was ${before}.`;
      }}
    />
  );
}

async function duty(node: NodeJson, name: string, effect: string, forMs?: number): Promise<string> {
  await setDuty(node.id, name, forMs);
  return effect;
}
