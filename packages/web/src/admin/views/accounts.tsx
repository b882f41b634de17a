/** Who is here, who waits, and who may come. */
import { visibleName } from '@posthouse/client/visible-text';
import { useState } from 'preact/hooks';
import { Listed, useList } from '../list.tsx';
import { attempt, confirm } from '../notice.ts';
import { Button, count, Facts, Field, Heading, Id, size, Table, When } from '../parts.tsx';
import { offerBlock } from '../route.ts';
import { call } from '../session.ts';
import { Opened } from './opened.tsx';

/** An account that waits for approval. */
interface Waiting {
  readonly account: string;
  readonly address: string;
  readonly asked_at: number;
}

/** An account that is let in, and not here yet. */
interface Allowed {
  readonly account: string;
  readonly allowed_at: number;
}

/** An account that is, or was, at home here. */
interface Account {
  readonly account: string;
  readonly home: string | null;
  readonly revision: number;
  readonly devices: number;
  readonly profile_at: number | null;
  readonly attachment_bytes: number;
  readonly records: number;
  readonly bytes: number;
  readonly last_day_bytes: number;
  readonly newest: number | null;
}

interface ShownAccount extends Omit<Account, 'devices'> {
  readonly devices: readonly {
    readonly device_id: string;
    readonly not_before: number;
    readonly expires_at: number;
  }[];
}

/** A group or channel that an account owns or helps to manage. */
interface Managed {
  readonly kind: string;
  readonly id: string;
  readonly role: string;
  readonly name: string | null;
}

/** Groups and channels that a question names. */
const mostNamed = 20;

export function Accounts() {
  const [opened, setOpened] = useState('');
  if (opened !== '') return <OneAccount id={opened} close={() => setOpened('')} />;
  return (
    <>
      <Heading>Accounts</Heading>
      <WaitingAccounts />
      <AllowedAccounts />
      <AccountsHere open={setOpened} />
    </>
  );
}

function WaitingAccounts() {
  const list = useList<Waiting>('account/waiting');
  const approve = (account: string) =>
    attempt(async () => {
      await call('account/approve', { account });
      await list.reload();
      return `${account} is let in. The person sets the account up again.`;
    });
  const reject = (account: string) =>
    attempt(async () => {
      const lines = [account, 'It may ask again.'];
      if (!(await confirm({ title: 'Reject this account?', lines, yes: 'Reject' }))) return;
      await call('account/reject', { account });
      await list.reload();
      return `${account} is rejected.`;
    });
  return (
    <section>
      <h2>Waiting for approval</h2>
      <Listed list={list}>
        <Table
          caption="Accounts that wait, in the order in which they asked"
          items={list.items}
          keyOf={(one) => one.account}
          none="No account waits."
          columns={[
            { title: 'Account', cell: ({ account }) => <Id text={account} /> },
            { title: 'Asked from', cell: ({ address }) => <Id text={address} /> },
            { title: 'Asked', cell: ({ asked_at }) => <When at={asked_at} /> },
            {
              title: 'Do',
              cell: ({ account }) => (
                <div class="row">
                  <Button about={account} work={() => approve(account)}>
                    Approve
                  </Button>
                  <Button kind="danger" about={account} work={() => reject(account)}>
                    Reject
                  </Button>
                </div>
              ),
            },
          ]}
        />
      </Listed>
    </section>
  );
}

function AllowedAccounts() {
  const list = useList<Allowed>('account/allowed');
  const [account, setAccount] = useState('');
  const allow = () =>
    attempt(async () => {
      const id = account.trim();
      const { is_here } = await call<{ readonly is_here: boolean }>('account/allow', {
        account: id,
      });
      setAccount('');
      await list.reload();
      return is_here ? `${id} is here already: it needs no right.` : `${id} is let in.`;
    });
  const disallow = (id: string) =>
    attempt(async () => {
      const asked = {
        title: 'Let this account in no longer?',
        lines: [id],
        yes: 'Let in no longer',
      };
      if (!(await confirm(asked))) return;
      await call('account/disallow', { account: id });
      await list.reload();
      return `${id} is let in no longer.`;
    });
  return (
    <section>
      <h2>Let in, and not here yet</h2>
      <Listed list={list}>
        <Table
          caption="Accounts that are let in, the newest last"
          items={list.items}
          keyOf={(one) => one.account}
          none="No account is let in that is not here."
          columns={[
            { title: 'Account', cell: (one) => <Id text={one.account} /> },
            { title: 'Since', cell: ({ allowed_at }) => <When at={allowed_at} /> },
            {
              title: 'Do',
              cell: (one) => (
                <Button kind="danger" about={one.account} work={() => disallow(one.account)}>
                  Let in no longer
                </Button>
              ),
            },
          ]}
        />
      </Listed>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void allow();
        }}
      >
        <Field
          label="Let an account in"
          help="Its ID, as neo:860833102:N… It may come once, with any client."
          value={account}
          onValue={setAccount}
          required
        />
        <button type="submit" class="main">
          Let in
        </button>
      </form>
    </section>
  );
}

function AccountsHere({ open }: { readonly open: (account: string) => void }) {
  const list = useList<Account>('account/list');
  return (
    <section>
      <h2>Here</h2>
      <Listed list={list}>
        <Table
          caption="Accounts that are, or were, at home here, in the order of their IDs"
          items={list.items}
          keyOf={(one) => one.account}
          none="No account is here."
          columns={[
            { title: 'Account', cell: ({ account }) => <Id text={account} /> },
            { title: 'Devices', cell: ({ devices }) => count(devices), isNumber: true },
            { title: 'Messages', cell: ({ records }) => count(records), isNumber: true },
            { title: 'Stored', cell: ({ bytes }) => size(bytes), isNumber: true },
            { title: 'Last day', cell: (one) => size(one.last_day_bytes), isNumber: true },
            { title: 'Attachments', cell: (one) => size(one.attachment_bytes), isNumber: true },
            { title: 'Newest', cell: ({ newest }) => <When at={newest} /> },
            {
              title: 'Do',
              cell: ({ account }) => (
                <Button about={account} work={() => open(account)}>
                  Show
                </Button>
              ),
            },
          ]}
        />
      </Listed>
    </section>
  );
}

function OneAccount({ id, close }: { readonly id: string; readonly close: () => void }) {
  const remove = () =>
    attempt(async () => {
      const lines = [id, ...(await stayLines(id))];
      const goes =
        'Its devices, profile, messages and attachments here are deleted for good. There is no way back.';
      const asked = { title: 'Delete this account?', lines: [...lines, goes], yes: 'Delete' };
      if (!(await confirm(asked))) return;
      const { records, blobs } = await call<{ readonly records: number; readonly blobs: number }>(
        'account/delete',
        { account: id },
        () => undefined,
      );
      close();
      return `${id} is deleted, with ${count(records)} of its messages and ${count(blobs)} attachments.`;
    });
  return (
    <Opened<ShownAccount>
      title="Account"
      verb="account/show"
      params={{ account: id }}
      close={close}
    >
      {(found) => (
        <>
          <Facts
            of={[
              ['Account', <Id text={found.account} />],
              ['Home relay', <Id text={found.home ?? 'not known'} />],
              ['Revision of its devices', count(found.revision)],
              ['Profile', <When at={found.profile_at} />],
              ['Messages', count(found.records)],
              ['Stored', size(found.bytes)],
              ['Stored in the last day', size(found.last_day_bytes)],
              ['Attachments', size(found.attachment_bytes)],
              ['Newest message', <When at={found.newest} />],
            ]}
          />
          <Table
            caption="Devices"
            items={found.devices}
            keyOf={(one) => one.device_id}
            none="It has no device."
            columns={[
              { title: 'Device', cell: ({ device_id }) => <Id text={device_id} /> },
              { title: 'Since', cell: ({ not_before }) => <When at={not_before} /> },
              { title: 'Until', cell: ({ expires_at }) => <When at={expires_at} /> },
            ]}
          />
          <div class="row">
            <Button work={() => offerBlock('account', id)}>Block …</Button>
            <Button kind="danger" work={remove}>
              Delete …
            </Button>
          </div>
        </>
      )}
    </Opened>
  );
}

/** Names the groups and channels that stay without the account. */
async function stayLines(account: string): Promise<string[]> {
  const { items, more } = await call<{
    readonly items: readonly Managed[];
    readonly more: boolean;
  }>('account/manages', { account });
  if (items.length === 0) return ['It owns, administers and moderates no group or channel here.'];
  const named = items.slice(0, mostNamed).map(({ kind, id, role, name }) => {
    const called = name === null ? '' : `, “${visibleName(name)}”`;
    return `${kind} ${id}${called}: ${role}`;
  });
  const left = items.length - named.length;
  const others = left > 0 ? [`and ${count(left)}${more ? ' or more' : ''} others`] : [];
  return [
    'These stay, and have no such owner, administrator or moderator then:',
    ...named,
    ...others,
  ];
}
