/** What the relay holds, how it is, and what is wrong. */
import { useEffect, useState } from 'preact/hooks';
import { sentenceOf } from '../notice.ts';
import { Button, count, Facts, Heading, Id, size, Table, When } from '../parts.tsx';
import { call, read } from '../session.ts';
import { faultsOf, type Health } from './health.ts';
import { freeBytesOf } from './metrics.ts';

/** One of the largest accounts, groups or channels. */
interface Largest {
  readonly id: string;
  readonly records: number;
  readonly bytes: number;
}

type Numbers<Names extends string> = Readonly<Record<Names, number>>;

/** What the verb `relay stats` answers. */
interface Stats extends Numbers<'taken_at' | 'accounts' | 'groups' | 'channels'> {
  readonly bytes: Numbers<
    | ('accounts' | 'messages' | 'groups' | 'channels' | 'attachments')
    | ('database' | 'database_unused')
  >;
  readonly last_day: Numbers<'timelines' | 'groups' | 'channels'>;
  readonly oldest_deadline: number | null;
  readonly queue: { readonly messages: number; readonly oldest: number | null };
  readonly restored: Numbers<'accounts_unconfirmed' | 'groups_waiting' | 'groups_incomplete'> & {
    readonly restored_at: number | null;
  };
  readonly top: Readonly<Record<'accounts' | 'groups' | 'channels', readonly Largest[]>>;
}

const bytes = (value: number) =>
  value < 1_000 ? count(value) : `${count(value)} (${size(value)})`;

export function Usage() {
  const [at, setAt] = useState(0);
  return (
    <>
      <Heading>Usage</Heading>
      <HealthOf key={`health ${at}`} />
      <Totals key={`totals ${at}`} />
      <Button kind="main" work={() => setAt(at + 1)}>
        Read again
      </Button>
    </>
  );
}

function HealthOf() {
  const [health, setHealth] = useState<Health>();
  const [metrics, setMetrics] = useState('');
  const [fault, setFault] = useState('');
  useEffect(() => {
    const load = async () => {
      setHealth(JSON.parse(await read('/health')) as Health);
      setMetrics(await read('/metrics'));
    };
    load().catch((error) => setFault(sentenceOf(error)));
  }, []);
  const faults = health === undefined ? [] : faultsOf(health);
  return (
    <section>
      <h2>Health</h2>
      {fault !== '' && (
        <p class="fault" role="alert">
          {fault}
        </p>
      )}
      {health !== undefined && faults.length === 0 && <p class="good">All is well.</p>}
      {faults.length > 0 && (
        <ul class="faults">
          {faults.map((text) => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      )}
      {health !== undefined && (
        <Facts
          of={[
            ['Version', `${health.version}, schema ${health.schema}`],
            ...freeBytesOf(metrics).map(
              ([part, free]) => [`Free on the disk of ${part}`, size(free)] as const,
            ),
            ['Relays connected', count(health.peers.connected)],
            ['Relays failing', count(health.peers.failing)],
          ]}
        />
      )}
    </section>
  );
}

function Totals() {
  const [stats, setStats] = useState<Stats>();
  const [done, setDone] = useState(0);
  const [fault, setFault] = useState('');
  useEffect(() => {
    let isShown = true;
    const progress = (state: { readonly done: number }) => {
      if (isShown) setDone(state.done);
    };
    call<Stats>('relay/stats', { top: 5 }, progress).then(
      (found) => isShown && setStats(found),
      (error) => isShown && setFault(sentenceOf(error)),
    );
    return () => {
      isShown = false;
    };
  }, []);
  if (fault !== '') {
    return (
      <p class="fault" role="alert">
        {fault}
      </p>
    );
  }
  if (stats === undefined) {
    return <p role="status">Adding up {done > 0 && `, ${count(done)} rows so far`} …</p>;
  }
  const { last_day, queue, restored } = stats;
  return (
    <section>
      <h2>What it holds</h2>
      <Facts
        of={[
          ['Accounts', count(stats.accounts)],
          ['Groups', count(stats.groups)],
          ['Channels', count(stats.channels)],
          ['Bytes of accounts', bytes(stats.bytes.accounts)],
          ['Bytes of messages', bytes(stats.bytes.messages)],
          ['Bytes of groups', bytes(stats.bytes.groups)],
          ['Bytes of channels', bytes(stats.bytes.channels)],
          ['Bytes of attachments', bytes(stats.bytes.attachments)],
          ['Bytes of the database', bytes(stats.bytes.database)],
          ['Of these, unused', bytes(stats.bytes.database_unused)],
          [
            'Bytes of the last day',
            bytes(last_day.timelines + last_day.groups + last_day.channels),
          ],
          ['Next deadline', <When at={stats.oldest_deadline} />],
          ['Waiting for other relays', count(queue.messages)],
          ['The oldest of these', <When at={queue.oldest} />],
          ...(restored.restored_at === null
            ? []
            : ([
                ['Restored', <When at={restored.restored_at} />],
                ['Accounts not confirmed since', count(restored.accounts_unconfirmed)],
                ['Groups that wait for their owner', count(restored.groups_waiting)],
                ['Groups that may lack events', count(restored.groups_incomplete)],
              ] as const)),
          ['Added up', <When at={stats.taken_at} />],
        ]}
      />
      {Object.entries(stats.top).map(([kind, largest]) => (
        <Table
          key={kind}
          caption={`The largest ${kind}`}
          items={largest}
          keyOf={(one) => one.id}
          none={`No ${kind} have stored anything.`}
          columns={[
            { title: 'ID', cell: ({ id }) => <Id text={id} /> },
            { title: 'Records', cell: ({ records }) => count(records), isNumber: true },
            { title: 'Bytes', cell: (one) => count(one.bytes), isNumber: true },
          ]}
        />
      ))}
    </section>
  );
}
