/** Accounts, addresses, channels and relays that this relay refuses. */
import { useEffect, useState } from 'preact/hooks';
import { Listed, useList } from '../list.tsx';
import { attempt, confirm } from '../notice.ts';
import { Button, count, Field, Heading, Id, Long, Table, timeOf, When } from '../parts.tsx';
import { type BlockKind, toBlock } from '../route.ts';
import { call } from '../session.ts';

type Block = { readonly kind: BlockKind; readonly reason: string } & {
  readonly blocked_at: number;
  readonly until?: number;
} & { readonly [Kind in BlockKind]?: string };

/** What each kind is called, and what its IDs look like. */
const kinds: Readonly<Record<BlockKind, readonly [name: string, form: string]>> = {
  account: ['Account', 'neo:860833102:N…'],
  address: ['Address', '192.0.2.7, 192.0.2.0/24 or 2001:db8::/48'],
  channel: ['Channel', 'chan_…'],
  relay: ['Relay', '0x and 40 hexadecimal digits'],
};

export function Blocks() {
  const list = useList<Block>('block/list');
  const remove = ({ kind, ...block }: Block) =>
    attempt(async () => {
      const id = block[kind] ?? '';
      const name = `${kinds[kind][0]} ${id}`;
      if (!(await confirm({ title: 'End this block?', lines: [name], yes: 'End the block' })))
        return;
      await call('block/remove', { [kind]: id });
      await list.reload();
      return `${name} is not blocked any more.`;
    });
  return (
    <>
      <Heading>Blocks</Heading>
      <Listed list={list}>
        <Table
          caption="What is blocked"
          items={list.items}
          keyOf={(one) => `${one.kind} ${one[one.kind]}`}
          none="Nothing is blocked."
          columns={[
            {
              title: 'Blocked',
              cell: ({ kind, ...block }) => (
                <>
                  {kinds[kind][0]} <Id text={block[kind] ?? ''} />
                </>
              ),
            },
            { title: 'Reason', cell: ({ reason }) => <Long text={reason} /> },
            { title: 'Since', cell: ({ blocked_at }) => <When at={blocked_at} /> },
            {
              title: 'Until',
              cell: ({ until }) => (until === undefined ? 'it is removed' : <When at={until} />),
            },
            {
              title: 'Do',
              cell: (block) => (
                <Button
                  kind="danger"
                  about={`${block.kind} ${block[block.kind]}`}
                  work={() => remove(block)}
                >
                  End
                </Button>
              ),
            },
          ]}
        />
      </Listed>
      <NewBlock added={list.reload} />
    </>
  );
}

function NewBlock({ added }: { readonly added: () => Promise<void> }) {
  const [kind, setKind] = useState<BlockKind>('account');
  const [id, setId] = useState('');
  const [reason, setReason] = useState('');
  const [until, setUntil] = useState('');
  const [isWide, setWide] = useState(false);
  useEffect(() => {
    const offered = toBlock.value;
    if (offered === undefined) return;
    setKind(offered.kind);
    setId(offered.id);
    toBlock.value = undefined;
  }, []);
  const add = () =>
    attempt(async () => {
      const ends = until === '' ? undefined : Math.floor(new Date(until).getTime() / 1_000);
      const named = `${kinds[kind][0]} ${id.trim()}`;
      const time = ends === undefined ? 'until you end it' : `until ${timeOf(ends)}`;
      const asked = {
        title: 'Block this?',
        lines: [named, `It is refused ${time}.`],
        yes: 'Block',
      };
      if (!(await confirm(asked))) return;
      const { is_new, rejected = 0 } = await call<{
        readonly is_new: boolean;
        readonly rejected?: number;
      }>('block/add', {
        ...{ [kind]: id.trim(), reason },
        ...(ends !== undefined && { until: ends }),
        ...(isWide && kind === 'address' && { wide: true }),
      });
      for (const clear of [setId, setReason, setUntil]) clear('');
      setWide(false);
      await added();
      const also = rejected > 0 ? ` ${count(rejected)} accounts that waited are rejected.` : '';
      return `${named} is ${is_new ? '' : 'still '}blocked, ${time}.${also}`;
    });
  return (
    <section>
      <h2>Block something</h2>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void add();
        }}
      >
        <p class="field">
          <label for="kind">What</label>
          <select
            id="kind"
            value={kind}
            onChange={({ currentTarget }) => setKind(currentTarget.value as BlockKind)}
          >
            {Object.entries(kinds).map(([value, [name]]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        </p>
        <Field label="Which" help={kinds[kind][1]} value={id} onValue={setId} required />
        <Field
          label="Reason"
          help="For you: nobody else sees it."
          value={reason}
          onValue={setReason}
        />
        <Field
          label="Until"
          help="Empty: until you end it."
          type="datetime-local"
          value={until}
          onValue={setUntil}
        />
        {kind === 'address' && (
          <p>
            <label>
              <input
                type="checkbox"
                checked={isWide}
                onChange={({ currentTarget }) => setWide(currentTarget.checked)}
              />{' '}
              Also a network of very many addresses
            </label>
          </p>
        )}
        <button type="submit" class="main">
          Block …
        </button>
      </form>
    </section>
  );
}
