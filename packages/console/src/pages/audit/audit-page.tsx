import type { AuditRecordJson } from '@remora/gateway/http/json/audit';
import { audit } from '../../api/users.ts';
import { nodeName, useCluster } from '../../app/cluster-hook.ts';
import { useResource } from '../../app/hooks.ts';
import { usePages } from '../../app/pages-hook.ts';
import { go } from '../../app/router.ts';
import { Badge } from '../../kit/badge.tsx';
import { Select } from '../../kit/form.tsx';
import { Card, Page } from '../../kit/page.tsx';
import { Empty, ErrorNote, Loading, Note } from '../../kit/states.tsx';
import { type Column, Table } from '../../kit/table.tsx';
import { Text } from '../../kit/text.tsx';
import { Time } from '../../kit/time.tsx';
import { numberOf } from '../../logic/location.ts';
import type { PageProps } from '../page-props.ts';

const EVERY_MS = 5_000;

/** Who has changed what, as one node has recorded it. */
export function AuditPage({ query }: PageProps) {
  const cluster = useCluster();
  const nodes = (cluster.data?.nodes ?? []).filter(({ duty }) => duty !== 'removed');
  const node = numberOf(query, 'node') ?? cluster.data?.answeringNode;
  return (
    <Page title="Audit log">
      {node === undefined ? (
        <>
          {cluster.error !== undefined && <ErrorNote error={cluster.error} retry={cluster.reload} />}
          {cluster.error === undefined && <Loading />}
        </>
      ) : (
        <>
          <div class="row">
            <Select
              label="Node"
              isBare
              value={String(node)}
              options={nodes.map(({ id }) => ({ value: String(id), text: nodeName(nodes, id) }))}
              change={(id) => go('audit', { node: id })}
            />
            <span class="muted">Each node keeps its last 1,000 records in memory; its audit log on disk has all.</span>
          </div>
          <Records key={node} node={node} />
        </>
      )}
    </Page>
  );
}

function Records({ node }: { readonly node: number }) {
  const kept = useResource(`kept ${node}`, (signal) => audit(node, undefined, signal));
  const list = usePages(
    `audit ${node}`,
    async (after, signal) => {
      const { records, next } = await audit(node, after === undefined ? undefined : Number(after), signal);
      return { rows: records, next: next === undefined ? undefined : String(next) };
    },
    { everyMs: EVERY_MS },
  );
  return (
    <>
      {kept.data?.isKept === false && (
        <Note>
          The node records nothing now: authentication is off, and no audit log is configured (<code>--audit-log</code>
          ).
        </Note>
      )}
      <Card isFlush>
        {list.error !== undefined && <ErrorNote error={list.error} retry={list.reload} />}
        {list.isLoaded ? (
          <Table
            label="Audit records"
            columns={COLUMNS}
            rows={list.rows}
            keyOf={({ number }) => number}
            tone={({ decision }) => (decision === 'denied' ? 'bad' : decision === 'failed' ? 'warn' : undefined)}
            atEnd={list.hasMore ? list.more : undefined}
            empty={<Empty title="The node has recorded nothing." />}
          />
        ) : (
          list.error === undefined && <Loading lines={10} />
        )}
      </Card>
    </>
  );
}

const TONES = { allowed: 'ok', denied: 'bad', failed: 'warn' } as const;

const COLUMNS: readonly Column<AuditRecordJson>[] = [
  { title: 'When', width: 'shrink', cell: ({ timeMs }) => <Time at={timeMs} isFocusable={false} /> },
  {
    title: 'Who',
    cell: ({ principal, address }) => (
      <span class="parts">
        {principal === undefined ? <span class="muted">nobody</span> : <Text value={principal} max={60} />}
        {address !== undefined && (
          <span class="muted">
            <Text value={address} max={50} />
          </span>
        )}
      </span>
    ),
  },
  { title: 'Action', cell: ({ action }) => <code>{action}</code> },
  { title: 'Decision', cell: ({ decision }) => <Badge tone={TONES[decision]}>{decision}</Badge> },
  {
    title: 'Of what',
    isMinor: true,
    cell: ({ targets, reason }) => (
      <span class="parts">
        {targets.length > 0 && <Text value={targets.join(', ')} max={200} />}
        {reason !== undefined && (
          <span class="muted">
            <Text value={reason} max={200} />
          </span>
        )}
      </span>
    ),
  },
  {
    title: 'Through',
    isMinor: true,
    cell: ({ door = '', method }) => <span class="muted">{`${door} ${method === 'none' ? '' : method}`}</span>,
  },
];
